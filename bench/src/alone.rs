//! Measurements that need a process of their own.
//!
//! Memory use is measured as growth of the process. A process that has run other measurements reuses the
//! memory that they freed, and grows by less or not at all. So these measurements run in a child process, whose lines are
//! printed when it has ended.

use std::process::{Command, Stdio};

use crate::report::{self, Report};

/// The name of a measurement that needs a process of its own, and its function.
pub(crate) type Alone = (&'static str, fn(&mut Report));

/// The option that names the measurement of a child process.
pub(crate) const FLAG: &str = "--alone";

/// Runs a measurement in a child process, and waits for it.
pub(crate) fn run(name: &str) {
    let child = std::env::current_exe()
        .and_then(|program| Command::new(program).args([FLAG, name]).stderr(Stdio::inherit()).output());
    match child {
        Ok(output) => {
            let lines = String::from_utf8_lossy(&output.stdout);
            lines.lines().filter_map(|line| serde_json::from_str(line).ok()).for_each(report::print);
            if !output.status.success() {
                eprintln!("{name}: {}", output.status);
            }
        }
        Err(error) => eprintln!("{name}: the process cannot be started: {error}"),
    }
}
