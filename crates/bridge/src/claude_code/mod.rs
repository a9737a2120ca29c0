//! Claude Code as an engine, driven over its control protocol.
//!
//! `claude -p` reads and writes lines of JSON. Before the prompt, `initialize` registers callbacks for its hook events,
//! which the program awaits. So each call is held until the files before it are captured and the rules about calls have
//! been applied, without any command in the settings of the user. Those settings stay as they are: what they deny stays
//! denied.

mod command;
mod protocol;
mod run;
mod usage;

use crate::program::Program;

pub(crate) use run::ClaudeRun;

const NAME: &str = Program::ClaudeCode.name();
const TITLE: &str = Program::ClaudeCode.title();

/// What a user does about a key or login that is refused.
const LOGIN: &str = "Log in with `claude`, or set another ANTHROPIC_API_KEY";

/// Tools that change nothing. The calls of a sub-agent are asked about one by one.
pub(crate) const READS: [&str; 14] = [
    "Read",
    "Glob",
    "Grep",
    "LS",
    "NotebookRead",
    "TodoWrite",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TaskOutput",
    "Task",
    "Agent",
    "Skill",
];
