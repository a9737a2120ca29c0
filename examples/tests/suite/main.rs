//! The example programs run, offline, and print what they promise.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod programs;
#[cfg(unix)]
mod restate;

use std::process::Command;

#[test]
fn records_prints_the_cost_of_each_kind_of_agent() {
    let output = Command::new(env!("CARGO_BIN_EXE_records")).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}\n{printed}", String::from_utf8_lossy(&output.stderr));
    for row in ["calls tools, 15 pages", "one program", "two programs", "twelve programs"] {
        // One line for each compression.
        assert!(
            printed.lines().filter(|line| line.starts_with(row)).count() >= 3,
            "no {row:?} in:\n{printed}"
        );
    }
}
