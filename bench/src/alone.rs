//! Measurements that need a process of their own.
//!
//! How much memory something takes is how much the process grows. A process that has worked before holds memory that it has
//! freed, takes from that first, and grows by less or by nothing. So these measurements run in a child process, which prints
//! its lines to the same output.

use std::process::Command;

use crate::report::Report;

/// A measurement that needs a process of its own, by its name.
pub(crate) type Alone = (&'static str, fn(&mut Report));

/// The option by which a child process learns what to measure.
pub(crate) const FLAG: &str = "--alone";

/// Runs a measurement in a child process, and waits for it.
pub(crate) fn run(name: &str) {
    let child = std::env::current_exe().and_then(|program| Command::new(program).args([FLAG, name]).status());
    match child {
        Ok(status) if status.success() => {}
        Ok(status) => eprintln!("{name}: {status}"),
        Err(error) => eprintln!("{name}: no process could be started: {error}"),
    }
}
