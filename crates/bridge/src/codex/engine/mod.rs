//! Codex as an engine.
//!
//! Its approval policy is set to ask about everything. So the app-server requests an approval before each command, each
//! change of files and each call of a server's tool, and holds the call until it is answered. That is where the files before
//! the call are captured and the rules about calls are applied. The report of the end of a call is not held; but no other
//! call runs before its own approval is answered, which happens after the files have been captured. So the files of each call
//! are exact without a hook in the settings of the user. Calls of one answer overlap, and share their changes.
//!
//! The sandbox of Codex is off in such a run: that of the session applies to the program and everything that it starts.
//!
//! A conversation continues as the same thread, or as a fork of it after a turn. Codex cannot cut inside of a turn; if more of a
//! turn was undone than calls that did not end, the engine reports that the conversation is gone, and the driver passes the
//! recorded one to a new thread.

mod approval;
mod item;
mod point;
mod run;
mod start;

pub(crate) use run::CodexRun;
