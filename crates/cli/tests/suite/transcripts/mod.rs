//! Transcripts of every command, on a pipe and on a pseudo-terminal.
//!
//! [`rows`] lists the commands and what is expected of each: success, an empty store, wrong arguments, a damaged store, a session that another
//! process holds, and a terminal of 40 columns. What holds for all output is checked here.

mod findings;
mod rows;
mod situation;

use std::collections::BTreeSet;

use serde_json::json;

use self::findings::Findings;
use self::rows::{Expected, ROWS, Row};
use self::situation::{Original, Situation, remove};
use crate::command::backstitch;
use crate::pty::Pty;

/// Columns of the terminal, where they do not matter.
const COLUMNS: u16 = 100;

/// Columns of a narrow terminal.
const NARROW: u16 = 40;

#[test]
fn every_command_has_a_row() {
    let commands = |help: &str| -> Vec<String> {
        // Commands stand before the options, in one or in several groups.
        let listed = help.split_once("Options:\n").map_or(help, |(before, _)| before).lines();
        let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let is_name = |name: &&str| name.starts_with(|first: char| first.is_ascii_lowercase());
        names.filter(is_name).filter(|name| *name != "help").map(str::to_owned).collect()
    };
    let mut all = BTreeSet::new();
    for name in commands(&backstitch(&["--help"]).worked()) {
        let below = commands(&backstitch(&[&name, "--help"]).worked());
        if below.is_empty() {
            all.insert(name.clone());
        }
        all.extend(below.iter().map(|below| format!("{name} {below}")));
    }
    let known: BTreeSet<String> = ROWS.iter().map(|row| row.command.to_owned()).collect();
    assert_eq!(all, known, "transcripts/rows.rs needs one line for each command");
}

/// Runs all commands on a pipe, each on the same files.
fn on_pipes(situation: &Situation, expected: impl Fn(&Row) -> Expected) {
    let original = Original::of(&situation.stage);
    let mut findings = Findings::default();
    for row in ROWS {
        let ran = situation.pipe(&situation.arguments(row.arguments), row.input);
        findings.check_pipe(row, expected(row), &ran);
        original.restore(&situation.stage);
    }
    findings.report();
}

/// Runs all commands on a terminal, each on the same files.
fn on_terminals(situation: &Situation, columns: u16, expected: impl Fn(&Row) -> Expected) {
    let original = Original::of(&situation.stage);
    let mut findings = Findings::default();
    for row in ROWS {
        let printed = situation.terminal(&situation.arguments(row.arguments), row.input, columns);
        findings.check_terminal(row, expected(row), printed);
        original.restore(&situation.stage);
    }
    findings.report();
}

#[test]
fn success_on_pipes() {
    on_pipes(&Situation::full(), |row| row.success);
}

#[test]
fn success_on_terminals() {
    on_terminals(&Situation::full(), COLUMNS, |row| row.success);
}

#[test]
fn success_on_terminals_of_40_columns() {
    on_terminals(&Situation::full(), NARROW, |row| row.success);
}

#[test]
fn an_empty_store_on_pipes() {
    on_pipes(&Situation::empty(), |row| row.empty);
}

#[test]
fn an_empty_store_on_terminals() {
    on_terminals(&Situation::empty(), COLUMNS, |row| row.empty);
}

#[test]
fn an_empty_store_on_terminals_of_40_columns() {
    on_terminals(&Situation::empty(), NARROW, |row| row.empty);
}

#[test]
fn wrong_arguments() {
    const REFUSED: Expected = Expected { code: 2, words: "error: " };
    let situation = Situation::full();
    let mut findings = Findings::default();
    for row in ROWS {
        let arguments = situation.arguments(&format!("{} {}", row.command, row.wrong));
        let ran = situation.pipe(&arguments, "");
        findings.check_pipe(row, REFUSED, &ran);
        findings.check(row, ran.output.is_empty(), "prints to standard output", &ran.output);
        findings.check_terminal(row, REFUSED, situation.terminal(&arguments, "", NARROW));
    }
    findings.report();
    let mut pty = Pty::start(&situation.stage, &["show", "--nope"], 80, 24);
    assert_eq!(pty.exit_code(), Some(2));
    assert!(pty.raw().contains("\u{1b}[31merror:\u{1b}[0m unexpected argument"), "{:?}", pty.raw());
    assert!(pty.screen().ends_with("code: usage; `backstitch explain usage` says more"), "{}", pty.screen());
}

/// A store whose first page is sound, and nothing after it.
fn damaged() -> Situation {
    let situation = Situation::full();
    let store = situation.stage.path("store/store.db");
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&store, &bytes).unwrap();
    for name in ["store.db-wal", "store.db-shm"] {
        remove(&situation.stage.path("store").join(name));
    }
    situation
}

#[test]
fn a_damaged_store_on_pipes() {
    on_pipes(&damaged(), |row| row.damaged);
}

#[test]
fn a_damaged_store_on_terminals() {
    on_terminals(&damaged(), COLUMNS, |row| row.damaged);
}

#[test]
fn a_damaged_store_on_terminals_of_40_columns() {
    on_terminals(&damaged(), NARROW, |row| row.damaged);
}

/// A store with a session that another process drives, and that process.
fn held() -> (Situation, Pty) {
    let mut situation = Situation::empty();
    let slow = json!({"reply": [{"text": "Late.", "delay_ms": 600_000}]});
    let slow = situation.stage.write("slow.json", &slow.to_string());
    let run = ["run", "Take stock", "--model", &format!("scripted:{slow}"), "--json"];
    let holder = Pty::start_without_input(&situation.stage, &run, 300, 24);
    holder.wait_for("\"started\"");
    let session = situation.stage.session();
    (situation.done, situation.waiting) = (session.clone(), session);
    (situation, holder)
}

/// All commands, and last those after which the session is not held, or not to be removed.
fn rows_for_held() -> impl Iterator<Item = &'static Row> {
    let (mut last, first): (Vec<&Row>, Vec<&Row>) =
        ROWS.iter().partition(|row| matches!(row.command, "pause" | "cancel" | "fork"));
    last.reverse();
    first.into_iter().chain(last)
}

#[test]
fn a_held_session_on_pipes() {
    let (situation, _holder) = held();
    let mut findings = Findings::default();
    for row in rows_for_held() {
        remove(&situation.stage.path("new"));
        let ran = situation.pipe(&situation.arguments(row.arguments), row.input);
        findings.check_pipe(row, row.held, &ran);
    }
    findings.report();
}

#[test]
fn a_held_session_on_terminals() {
    held_on_terminals(COLUMNS);
}

#[test]
fn a_held_session_on_terminals_of_40_columns() {
    held_on_terminals(NARROW);
}

fn held_on_terminals(columns: u16) {
    let (situation, _holder) = held();
    let mut findings = Findings::default();
    for row in rows_for_held() {
        remove(&situation.stage.path("new"));
        let printed = situation.terminal(&situation.arguments(row.arguments), row.input, columns);
        findings.check_terminal(row, row.held, printed);
    }
    findings.report();
}
