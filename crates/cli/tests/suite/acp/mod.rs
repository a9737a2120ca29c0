//! `acp`, as an editor sees it: the client library of the protocol over the pipes of a real process.

mod cancelling;
mod client;
mod conversations;
mod hostile;
mod kills;
mod modes;
mod permissions;
mod rewinding;
mod servers;
