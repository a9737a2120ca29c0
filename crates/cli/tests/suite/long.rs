//! Long conversations: requests are shortened, and rendered again from the journal.

use serde_json::{Value, json};

use crate::chat;
use crate::model::{MODEL, Model, Said};
use crate::pty::Pty;
use crate::stage::{Stage, as_slices, text_of, wait_until};

/// Size of each file that the model reads.
const FILE: usize = 6_000;

/// Returns a stage with files, and answers that read them one after the other.
fn reading(count: usize) -> (Stage, Vec<Said>) {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "key");
    let mut answers = Vec::new();
    for number in 0..count {
        let name = format!("{number}.txt");
        std::fs::write(stage.path("files").join(&name), format!("{number} ").repeat(FILE / 3)).unwrap();
        answers.push(Said::Call("Next.", "read_file", json!({ "path": name })));
    }
    answers.push(Said::Text("I have read them."));
    (stage, answers)
}

/// Checks that every request of a session is rendered to the same bytes again.
fn requests_agree(stage: &Stage, session: &str, turns: usize) {
    for turn in 1..=turns {
        let again = stage.run(&["request", session, &turn.to_string(), "--json"]);
        assert_eq!(again.code, Some(0), "turn {turn}: {}{}", again.output, again.errors);
    }
}

fn records(stage: &Stage, kind: &str) -> Vec<Value> {
    let log = stage.run(&["log", "--all", "--json"]).worked();
    let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| record["kind"] == kind).map(|record| record["data"].clone()).collect()
}

#[test]
fn a_request_that_is_refused_for_its_length_is_shortened_and_sent_again() {
    const MOST: usize = 45_000;
    let (stage, answers) = reading(14);
    let model = Model::with_limit("openai-chat", answers, MOST);
    let mut arguments = Stage::asking("openai-chat", &model, &["--tools", "read_file"]);
    arguments.push("--json".to_owned());
    let run = stage.run(&as_slices(&arguments));
    assert_eq!(run.code, Some(0), "{}{}", run.output, run.errors);
    let failed = records(&stage, "request_failed");
    assert!(!failed.is_empty());
    assert!(failed.iter().all(|failed| failed["kind"] == "context_too_long"), "{failed:?}");
    let refused = model.asked().iter().filter(|asked| asked.body.len() > MOST).count();
    assert_eq!(refused, failed.len());
    assert!(model.asked().last().unwrap().body.contains("is not shown"));
    let notes = records(&stage, "note");
    let notes: Vec<_> = notes.iter().map(ToString::to_string).collect();
    assert!(notes.iter().any(|note| note.contains("older results")), "{notes:#?}");
    let session = crate::stage::last_line(&run.output)["session"].as_str().unwrap().to_owned();
    requests_agree(&stage, &session, 15);
}

#[test]
fn above_three_quarters_of_the_window_older_results_are_not_sent() {
    let (stage, answers) = reading(14);
    let model = Model::new("openai-chat", answers);
    let mut arguments = Stage::asking("openai-chat", &model, &["--tools", "read_file", "--window", "16000"]);
    arguments.push("--json".to_owned());
    let run = stage.run(&as_slices(&arguments));
    assert_eq!(run.code, Some(0), "{}{}", run.output, run.errors);
    assert_eq!(records(&stage, "request_failed").len(), 0);
    let longest = model.asked().iter().map(|asked| asked.body.len()).max().unwrap();
    assert!(longest < 4 * 16_000, "{longest}");
    assert!(longest > 2 * 16_000, "{longest}");
    let session = crate::stage::last_line(&run.output)["session"].as_str().unwrap().to_owned();
    requests_agree(&stage, &session, 15);
}

#[test]
fn a_message_that_is_too_long_by_itself_is_an_error() {
    let (stage, answers) = reading(0);
    let model = Model::with_limit("openai-chat", answers, 20_000);
    let name = format!("openai-chat:{MODEL}");
    let mission = stage.write("mission.txt", &"word ".repeat(10_000));
    let run =
        stage.run(&["run", "--mission-file", &mission, "--model", &name, "--base-url", &model.url, "--json"]);
    assert_eq!(run.code, Some(1), "{}", run.output);
    let ended = crate::stage::last_line(&run.output);
    assert_eq!(ended["kind"], "context_too_long", "{ended}");
    assert_eq!(model.asked().len(), 1);
}

#[test]
fn a_conversation_of_300_turns_does_not_fail() {
    const TURNS: usize = 300;
    const MOST: usize = 60_000;
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "key");
    let state = text_of(&stage.path("state"));
    let stage = stage.with_variable("XDG_STATE_HOME", &state);
    let long: &'static str = Box::leak("A seam is a line of stitches. ".repeat(20).into_boxed_str());
    let model = Model::with_limit("openai-chat", vec![Said::Text(long); TURNS], MOST);
    let name = format!("openai-chat:{MODEL}");
    let terminal =
        Pty::start(&stage, &["chat", "--model", &name, "--base-url", &model.url, "--tools", "none"], 100, 30);
    for turn in 1..=TURNS {
        chat::prompt(&terminal);
        terminal.send(&format!("Message {turn}\r"));
        wait_until("the answer", || terminal.screen().contains(&format!("turn {turn}")));
    }
    chat::prompt(&terminal);
    assert!(terminal.screen().contains("older results not shown"), "{}", terminal.screen());
    terminal.send("\u{4}");
    assert_eq!(terminal.finish().0, Some(0));
    let failed = records(&stage, "request_failed");
    assert!(!failed.is_empty() && failed.len() < 10, "{}", failed.len());
    assert_eq!(records(&stage, "request_finished").len(), TURNS);
}

/// Whether a request holds all of the files that were read.
fn holds_all(body: &str, count: usize) -> bool {
    (0..count).all(|number| body.contains(&format!("{number} {number} {number} {number}")))
        && !body.contains("is not shown")
}

#[test]
fn a_limit_that_a_model_set_does_not_shorten_requests_to_another() {
    const FILES: usize = 10;
    const MOST: usize = 25_000;
    let (stage, answers) = reading(FILES);
    let small = Model::with_limit("openai-chat", answers, MOST);
    let arguments = Stage::asking("openai-chat", &small, &["--tools", "read_file", "--json"]);
    let run = stage.run(&as_slices(&arguments));
    assert_eq!(run.code, Some(0), "{}{}", run.output, run.errors);
    assert!(!holds_all(&small.asked().last().unwrap().body, FILES));
    let session = crate::stage::last_line(&run.output)["session"].as_str().unwrap().to_owned();
    let large = Model::new("openai-chat", [Said::Text("They hold numbers."), Said::Text("Yes.")]);
    let other = ["--model", "openai-chat:tailor-2", "--base-url", &large.url, "--json"];
    let ask = |text: &str, more: &[&str]| {
        let asked = stage.run(&[&["ask", &session, text], more].concat());
        assert_eq!(asked.code, Some(0), "{}{}", asked.output, asked.errors);
    };
    ask("What do they hold?", &other);
    assert!(holds_all(&large.asked()[0].body, FILES), "{}", large.asked()[0].body.len());
    // The first model is still small.
    let again = Model::with_limit("openai-chat", [Said::Text("Yes.")], MOST);
    let name = format!("openai-chat:{MODEL}");
    ask("Really?", &["--model", &name, "--base-url", &again.url, "--json"]);
    assert_eq!(again.asked().len(), 1, "the request was short enough at once");
    requests_agree(&stage, &session, 1);
}

#[test]
fn the_window_of_a_model_can_be_set_in_the_settings() {
    let (stage, answers) = reading(14);
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    let settings = format!("[windows]\n\"openai-chat:{MODEL}\" = 16000\n\"openai-chat:other\" = 9000000\n");
    std::fs::write(stage.path("config/backstitch/config.toml"), settings).unwrap();
    let model = Model::new("openai-chat", answers);
    let arguments = Stage::asking("openai-chat", &model, &["--tools", "read_file", "--json"]);
    let run = stage.run(&as_slices(&arguments));
    assert_eq!(run.code, Some(0), "{}{}", run.output, run.errors);
    let longest = model.asked().iter().map(|asked| asked.body.len()).max().unwrap();
    assert!(longest > 2 * 16_000 && longest < 4 * 16_000, "{longest}");
    let session = crate::stage::last_line(&run.output)["session"].as_str().unwrap().to_owned();
    requests_agree(&stage, &session, 15);
    let zero = stage.run(&["config", "set", &format!("windows.\"openai-chat:{MODEL}\""), "0"]);
    assert_eq!(zero.code, Some(2), "{}{}", zero.output, zero.errors);
}

/// The bundle was written before there were cuts: its requests were shortened for each request anew.
#[test]
fn requests_from_before_there_were_cuts_are_rendered_as_they_were() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "key");
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/elided.bundle");
    stage.run(&["import", bundle]).worked_quietly();
    let session = stage.session();
    requests_agree(&stage, &session, 13);
    let last = stage.json(&["request", &session, "13"]);
    assert!(last["rendered"]["renderer"].as_str().unwrap().starts_with("elide/1 "));
}
