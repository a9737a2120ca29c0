//! Real programs of others, such as Claude Code, and scripted models for them on loopback.
//!
//! Variables name the commands of the programs; `./test` installs them and sets the variables.

mod events;
mod model;

use std::path::PathBuf;

pub use events::{is_call, messages_events, responses_events, step_after};
pub use model::model;

/// Returns the command that a variable names. Prints that something is skipped if there is none.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub fn named(variable: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    if named.is_none() {
        eprintln!("SKIPPED: {variable} does not name the command of the program");
    }
    named
}
