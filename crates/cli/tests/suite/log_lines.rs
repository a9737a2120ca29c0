//! `log`: filters, times and the graph.

use serde_json::{Value, json};

use crate::pty::Pty;
use crate::stage::{Stage, last_line, scripted};

fn session(stage: &Stage, replies: &Value) -> String {
    let model = scripted(stage, replies);
    last_line(&stage.run(&["run", "Sew it", "--model", &model, "--json"]).output)["session"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn shell(command: &str) -> Value {
    json!({"calls": [{"name": "shell", "arguments": {"command": command, "rollback_on_error": true}}]})
}

fn two_calls(stage: &Stage) -> String {
    session(stage, &json!([shell("echo a > a.txt"), shell("echo b > b.txt; exit 3"), {"text": "Done."}]))
}

#[test]
fn every_line_has_its_position_and_time() {
    let stage = Stage::new();
    let session = two_calls(&stage);
    let log = stage.run(&["log", &session]).worked();
    let records = stage.run(&["log", &session, "--json"]).worked();
    for (line, record) in log.lines().zip(records.lines()) {
        let record: Value = serde_json::from_str(record).unwrap();
        let start =
            format!("{:>5} {} * ", record["position"].as_u64().unwrap(), record["at"].as_str().unwrap());
        assert!(line.starts_with(&start), "{line} does not start with {start}");
    }
    assert_eq!(log.lines().count(), records.lines().count());
}

#[test]
fn a_terminal_gets_the_time_of_day_once_per_day_the_date() {
    let stage = Stage::new().with_variable("TZ", "Asia/Tokyo").with_variable("NO_COLOR", "1");
    let session = two_calls(&stage);
    let (code, screen) = Pty::start(&stage, &["log", &session], 80, 60).finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("Z *"), "{screen}");
    let dates =
        screen.lines().filter(|line| line.trim().len() == 10 && line.trim().starts_with("20")).count();
    assert!((1..=2).contains(&dates), "{screen}");
    let (code, narrow) = Pty::start(&stage, &["log", &session], 40, 200).finish();
    assert_eq!(code, Some(0), "{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
}

#[test]
fn filters_select() {
    let stage = Stage::new();
    let session = two_calls(&stage);
    let failed = stage.run(&["log", &session, "--failed"]).worked();
    assert_eq!(failed.lines().count(), 1, "{failed}");
    assert!(failed.contains("failed, rolled back"), "{failed}");
    let all = stage.run(&["log", &session]).worked();
    let last: Vec<_> = all.lines().rev().take(2).collect();
    let limited = stage.run(&["log", &session, "--limit", "2"]).worked();
    assert_eq!(limited.lines().rev().collect::<Vec<_>>(), last);
    assert_eq!(stage.run(&["log", &session, "-n", "0"]).worked(), "");
    assert_eq!(stage.run(&["log", &session, "--since", "2h"]).worked(), all);
    assert_eq!(stage.run(&["log", &session, "--since", "2999-01-01T00:00:00Z"]).worked(), "");
    let starts = stage.run(&["log", &session, "--kind", "call_started", "--kind", "call_finished"]).worked();
    assert_eq!(starts.lines().count(), 4, "{starts}");
    assert!(starts.contains("shell starts ["), "{starts}");
    let lines = stage.run(&["log", &session, "--kind", "request_started", "--json"]).worked();
    assert!(lines.lines().all(|line| line.contains(r#""kind":"request_started""#)), "{lines}");
    assert_eq!(lines.lines().count(), 3);
    let every = stage.run(&["log", &session, "--all"]).worked();
    assert!(!every.contains('_') || !every.contains("slice_changed"), "identifiers are shown: {every}");
}

#[test]
fn wrong_filters_are_refused() {
    let stage = Stage::new();
    assert!(stage.run(&["log"]).failed().contains("store_not_found"));
    let session = two_calls(&stage);
    assert!(stage.run(&["log", &session, "--since", "yesterday"]).called_wrongly().contains("is not a time"));
    assert!(stage.run(&["log", &session, "--kind", "nothing"]).called_wrongly().contains("possible values"));
    assert!(stage.run(&["log", &session, "--limit", "x"]).called_wrongly().contains("invalid value"));
    let ran = stage.run(&["log", &session, "--graph", "--json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(stage.run(&["log", &session, "--graph", "--follow"]).code, Some(2));
}

/// The symbols before the text of each line.
fn drawing(graph: &str) -> Vec<String> {
    let is_drawing = |letter: &char| !letter.is_alphanumeric();
    graph
        .lines()
        .map(|line| line.chars().take_while(is_drawing).collect::<String>().trim_end().to_owned())
        .collect()
}

#[test]
fn rewinds_forks_and_rescues_are_drawn() {
    let stage = Stage::new().with_variable("LC_ALL", "C.UTF-8");
    let session = two_calls(&stage);
    std::fs::write(stage.path("files/mine.txt"), "by hand").unwrap();
    stage.run(&["rewind", &session, "turn:1", "--all-files"]).worked_quietly();
    let fork = stage.json(&["fork", &session, "start"])["session"].as_str().unwrap().to_owned();
    // The command failed outside of the sandbox, so it is not run again unasked.
    let waits = stage.run(&["resume", &session]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    assert!(
        waits.errors.contains("was made before the session went back, and its result can be used"),
        "{waits:?}"
    );

    let graph = stage.run(&["log", &session, "--graph"]).worked();
    let drawn = drawing(&graph);
    assert_eq!(drawn.first().map(String::as_str), Some("@"), "{graph}");
    for row in ["│ ○", "├─╯", "│ ×", "│ ◇"] {
        assert!(drawn.iter().any(|line| line == row), "{row} is missing: {graph}");
    }
    assert!(graph.contains(&format!("fork {}", &fork[fork.len() - 12..])), "{graph}");
    assert!(graph.contains("rescue:"), "{graph}");
    // Every described record is drawn once.
    let log = stage.run(&["log", &session]).worked();
    for line in log.lines() {
        let position = line.split_whitespace().next().unwrap();
        // What waits is described on further lines.
        if position.parse::<u64>().is_err() {
            continue;
        }
        let drawn = graph.lines().filter(|line| line.contains(&format!(" {position} 20"))).count();
        assert_eq!(drawn, 1, "{position}: {graph}");
    }
    let few = stage.run(&["log", &session, "--graph", "--limit", "2"]).worked();
    assert!(graph.starts_with(&few), "{few}");

    let plain = stage.with_variable("LC_ALL", "C");
    let ascii = plain.run(&["log", &session, "--graph"]).worked();
    assert!(ascii.is_ascii(), "{ascii}");
    assert!(drawing(&ascii).iter().any(|line| line == "|-'"), "{ascii}");
}
