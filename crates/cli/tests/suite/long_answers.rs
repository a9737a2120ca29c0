//! Long answers: they are shown whole, however large they are and however slowly they are read.

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::model::{Model, Said};
use crate::pty::Pty;
use crate::stage::{Stage, as_slices, last_line, scripted};

/// Stops the output of a terminal.
const CTRL_S: &str = "\u{13}";

/// Continues the output of a terminal.
const CTRL_Q: &str = "\u{11}";

/// Time limit of an answer, whose megabytes take a busy machine long.
const LONGEST: Duration = Duration::from_mins(10);

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

/// How long an output is stopped at least. The promise is for ten seconds, which `BACKSTITCH_STOPPED_SECONDS=10` tries.
fn stop_time() -> Duration {
    let seconds = std::env::var("BACKSTITCH_STOPPED_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// A model whose answer has 5 MB. All but its first line is sent at once, as fast as it is read.
struct LongAnswer {
    stage: Stage,
    answer: String,
    gate: Arc<AtomicBool>,
    /// A command that prints the answer.
    arguments: Vec<String>,
    _model: Model,
}

impl LongAnswer {
    fn new(more: &[&str]) -> Self {
        let stage = Stage::new().with_variable("OPENAI_API_KEY", "key");
        let (answer, gate) = (lines(5_000_000), Arc::new(AtomicBool::new(false)));
        let model = Model::new("openai-chat", [Said::Lines(answer.as_str().into(), gate.clone())]);
        let mut arguments = Stage::asking("openai-chat", &model, &["--quiet"]);
        arguments.extend(more.iter().map(|&more| more.to_owned()));
        Self { stage, answer, gate, arguments, _model: model }
    }

    /// Sends the rest of the answer while nobody reads the output of the command.
    fn send(&self) {
        let stopped = Instant::now();
        self.gate.store(true, Ordering::SeqCst);
        // The session does not wait for the output.
        while !self.stage.run(&["log"]).output.contains("completed") {
            assert!(stopped.elapsed() < LONGEST, "the answer did not end");
            // Each look starts a process, which takes time from the session.
            std::thread::sleep(Duration::from_millis(200));
        }
        std::thread::sleep(stop_time().saturating_sub(stopped.elapsed()));
    }

    /// Runs the command on a terminal that is stopped while the answer arrives, and returns what was printed.
    fn print_on_stopped_terminal(&self) -> String {
        let mut terminal = Pty::start(&self.stage, &as_slices(&self.arguments), 60, 40);
        terminal.wait_for("line 0000000");
        terminal.send(CTRL_S);
        self.send();
        terminal.send(CTRL_Q);
        assert_eq!(terminal.exit_code(), Some(0));
        terminal.raw()
    }

    /// Checks events for programs: they have the whole answer, also in pieces.
    fn check_events(&self, printed: &str) {
        let events: Vec<Value> = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let named = |name: &'static str| events.iter().filter(move |event| event["event"] == name);
        let pieces: String = named("text").filter_map(|event| event["text"].as_str()).collect();
        assert!(pieces == self.answer, "{} of {} bytes", pieces.len(), self.answer.len());
        assert!(named("missed").next().is_some(), "the gap is reported");
        let said: Vec<&Value> = named("said").collect();
        assert_eq!(said.len(), 1);
        assert!(said[0]["text"] == self.answer.as_str(), "`said` has the whole text");
        assert_eq!(events.last().map(|event| &event["event"]), Some(&json!("ended")));
    }
}

#[test]
fn a_terminal_that_was_stopped_shows_the_whole_answer() {
    let long = LongAnswer::new(&[]);
    let printed = long.print_on_stopped_terminal();
    let (shown, count) = (printed.matches("of a long answer").count(), long.answer.lines().count());
    assert!(printed.contains(&long.answer), "{shown} of {count} lines");
    assert_eq!(shown, count, "no line is printed twice");
}

#[test]
fn pieces_on_a_terminal_that_was_stopped_have_no_hole() {
    let long = LongAnswer::new(&["--json"]);
    long.check_events(&long.print_on_stopped_terminal());
}

#[test]
fn pieces_on_a_pipe_that_was_not_read_have_no_hole() {
    let long = LongAnswer::new(&["--json"]);
    let mut child = long.stage.command(&as_slices(&long.arguments)).spawn().unwrap();
    let (mut output, mut printed) = (BufReader::new(child.stdout.take().unwrap()), String::new());
    while !printed.contains("line 0000000") {
        assert!(output.read_line(&mut printed).unwrap() > 0, "{printed}");
    }
    long.send();
    output.read_to_string(&mut printed).unwrap();
    assert!(child.wait().unwrap().success());
    long.check_events(&printed);
}
