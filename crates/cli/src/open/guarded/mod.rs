//! Sessions in which other programs work, as all commands see them: what a rewind has to check, what cannot be driven here,
//! and how the program continues.
//!
//! The guard records these sessions. Commands that rewind, list or drive sessions ask here, and do not need the guard.

mod binding;
mod command;
mod ended;
mod patience;
mod processes;
mod resume;
mod running;
mod tags;

pub(crate) use binding::Binding;
pub(crate) use command::{CommandSession, command_line};
pub(crate) use ended::{close_ended, record_results};
pub(crate) use patience::{FOR_GUARDS, Patience, is_recorded_by_guard};
pub(crate) use processes::running_conversations;
pub(crate) use resume::{ContinueCommand, GuardedSession, is_guarded, kept_files, refuse_to_drive};
pub(crate) use running::{KilledGuard, RunningGuard};
pub(crate) use tags::{COMMAND, COMMAND_VARIABLE, CONVERSATION, PERMISSION_MODE, PROGRAM};
