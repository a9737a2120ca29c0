//! Long answers: they are shown whole, however large they are and however slowly they are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::model::{Model, Said};
use crate::pty::Pty;
use crate::stage::{Stage, as_slices, last_line, scripted, wait_until};

/// Stops the output of a terminal.
const CTRL_S: &str = "\u{13}";

/// Continues the output of a terminal.
const CTRL_Q: &str = "\u{11}";

/// Returns numbered lines with about this many bytes.
fn lines(bytes: usize) -> String {
    (0..bytes / 50)
        .map(|number| format!("line {number:07} of a long answer, with some more text\n"))
        .collect()
}

#[test]
fn texts_above_64_kib_are_shown_like_others() {
    let stage = Stage::new();
    let (answer, mission) = (lines(100_000), format!("Sew.\n{}", lines(90_000)));
    let model = scripted(&stage, &json!([{"text": answer}]));
    let file = stage.write("mission.txt", &mission);
    let ran = stage.run(&["run", "--mission-file", &file, "--model", &model, "--json"]).worked_quietly();
    let events = ran.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said: Vec<Value> = events.filter(|event| event["event"] == "said").collect();
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["text"], answer);
    let session = last_line(&ran)["session"].as_str().unwrap().to_owned();

    let shown = stage.run(&["show", &session]).worked();
    assert!(shown.contains(&format!("agent: {}", answer.trim_end())), "{} bytes", shown.len());
    assert!(shown.contains(&format!("user: {}", mission.trim_end())), "{} bytes", shown.len());
    let json = stage.json(&["show", &session]).to_string();
    assert!(json.contains("line 0001999 of a long answer"), "{} bytes", json.len());
    let log = stage.run(&["log", &session]).worked();
    assert!(
        log.contains("turn 1: line 0000000 of a long answer") && log.contains("asked: Sew. line"),
        "{log}"
    );
    let last = stage.run(&["log", &session, "--all", "--json"]).worked();
    assert!(last.contains("turn 1: line 0000000"), "{last}");

    let terminal = Pty::start(&stage, &["chat", &session], 100, 40);
    terminal.wait_for("> Sew.");
    terminal.wait_for("line 0000011 of a long answer");
    terminal.wait_for("more lines");
    terminal.send("/exit\r");
    assert_eq!(terminal.finish().0, Some(0));
}

/// Runs the command on a terminal that is stopped while an answer of 5 MB arrives, and returns the answer and what was printed.
fn print_on_stopped_terminal(more: &[&str]) -> (String, String) {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "key").with_variable("TERM", "dumb");
    let (answer, gate) = (lines(5_000_000), Arc::new(AtomicBool::new(false)));
    let model = Model::new("openai-chat", [Said::Lines(answer.as_str().into(), gate.clone())]);
    let mut arguments = Stage::asking("openai-chat", &model, &["--quiet"]);
    arguments.extend(more.iter().map(|&more| more.to_owned()));
    let mut terminal = Pty::start(&stage, &as_slices(&arguments), 100, 40);
    terminal.wait_for("line 0000000");
    terminal.send(CTRL_S);
    gate.store(true, Ordering::SeqCst);
    // The session does not wait for the terminal.
    wait_until("the end of the answer", || stage.run(&["log"]).output.contains("completed"));
    terminal.send(CTRL_Q);
    assert_eq!(terminal.exit_code(), Some(0));
    (answer, terminal.raw())
}

#[test]
fn a_terminal_that_was_stopped_shows_the_whole_answer() {
    let (answer, printed) = print_on_stopped_terminal(&[]);
    assert!(
        printed.contains(&answer),
        "{} of {} lines",
        printed.matches("of a long").count(),
        answer.lines().count()
    );
    assert_eq!(
        printed.matches("of a long answer").count(),
        answer.lines().count(),
        "no line is printed twice"
    );
}

#[test]
fn pieces_for_a_program_that_was_stopped_have_no_hole() {
    let (answer, printed) = print_on_stopped_terminal(&["--json"]);
    let events: Vec<Value> = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let named = |name: &'static str| events.iter().filter(move |event| event["event"] == name);
    let pieces: String = named("text").filter_map(|event| event["text"].as_str()).collect();
    assert!(pieces == answer, "{} of {} bytes", pieces.len(), answer.len());
    assert!(named("missed").next().is_some(), "the gap is reported");
    assert!(named("said").all(|event| event["text"] == answer.as_str()));
    assert_eq!(events.last().map(|event| &event["event"]), Some(&json!("ended")));
}
