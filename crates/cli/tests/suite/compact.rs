//! Summaries in the place of earlier answers: by the strategy `summary`, by `compact`, and by `/compact`.

use serde_json::{Value, json};

use crate::chat;
use crate::model::{MODEL, Model, Said};
use crate::pty::Pty;
use crate::stage::{Stage, as_slices, last_line, text_of};

/// What the model writes when it is asked for a summary. It holds a key.
const SUMMARY: &str = "The rows are read. The gate is sk-tailor-0192837465.";

const KEY: &str = "sk-tailor-0192837465";

/// Whether a request asks for a summary.
fn is_for_summary(body: &str) -> bool {
    body.contains("Write a summary of everything above")
}

/// Checks that requests of a session are rendered to the same bytes again.
fn requests_agree(stage: &Stage, session: &str, turns: impl IntoIterator<Item = usize>) {
    for turn in turns {
        let again = stage.run(&["request", session, &turn.to_string(), "--json"]);
        assert_eq!(again.code, Some(0), "turn {turn}: {}{}", again.output, again.errors);
    }
    let latest = stage.run(&["request", session, "--json"]);
    assert_eq!(latest.code, Some(0), "{}{}", latest.output, latest.errors);
}

/// A session with several answers, of which each but the last read a file.
fn read_files(stage: &Stage, provider: &'static str, more: &[&str], answers: Vec<Said>) -> (Model, String) {
    for number in 0..14 {
        let word = format!("{number} ");
        let text = word.repeat(6_000 / word.len());
        std::fs::write(stage.path("files").join(format!("{number}.txt")), text).unwrap();
    }
    let model = Model::new(provider, answers);
    let more: Vec<&str> = ["--tools", "read_file", "--json"].iter().chain(more).copied().collect();
    let run = stage.run(&as_slices(&Stage::asking(provider, &model, &more)));
    assert_eq!(run.code, Some(0), "{}{}", run.output, run.errors);
    let session = last_line(&run.output)["session"].as_str().unwrap().to_owned();
    (model, session)
}

fn read(number: usize) -> Said {
    Said::Call("Next.", "read_file", json!({ "path": format!("{number}.txt") }))
}

fn stage() -> Stage {
    chat::stage().with_variable("OPENAI_API_KEY", "key").with_variable("ANTHROPIC_API_KEY", "key")
}

#[test]
fn a_summary_is_written_when_the_room_is_used_up() {
    for provider in ["openai-chat", "anthropic"] {
        let stage = stage();
        let before = (0..8).map(read);
        let after = (8..14).map(read);
        let answers = before.chain([Said::Text(SUMMARY)]).chain(after).chain([Said::Text("Done.")]);
        let more = ["--window", "16000", "--compression", "summary"];
        let (model, session) = read_files(&stage, provider, &more, answers.collect());
        let asked = model.asked();
        let summaries: Vec<usize> = (0..asked.len()).filter(|at| is_for_summary(&asked[*at].body)).collect();
        assert_eq!(summaries, [8], "{provider}");
        assert!(asked[9].body.contains(KEY) && !asked[9].body.contains("1 1 1 1"));
        let stats = stage.json(&["stats"]);
        assert_eq!(stats["total"]["requests"], 16, "{stats}");
        requests_agree(&stage, &session, 1..=15);
        let log = stage.run(&["log", &session]).worked();
        assert!(log.contains("the model is asked for a summary"), "{log}");
        assert!(log.contains("summary of earlier answers: The rows are read."), "{log}");
    }
}

#[test]
fn a_refused_summary_does_not_stop_the_session() {
    let stage = stage();
    let refused = Said::Refused("400 Bad Request", json!({"error": {"message": "no summaries"}}).to_string());
    let before = (0..8).map(read);
    let answers = before.chain([refused]).chain((8..10).map(read)).chain([Said::Text("Done.")]);
    let more = ["--window", "16000", "--compression", "summary"];
    let (model, session) = read_files(&stage, "openai-chat", &more, answers.collect());
    let asked = model.asked();
    assert!(is_for_summary(&asked[8].body) && asked[9].body.contains("is not shown"));
    requests_agree(&stage, &session, 1..=11);
}

#[test]
fn a_conversation_is_compacted_by_a_command() {
    let stage = stage();
    let answers = (0..4).map(read).chain([Said::Text("Read."), Said::Text(SUMMARY), Said::Text("Nothing.")]);
    let (model, session) = read_files(&stage, "anthropic", &[], answers.collect());
    let done = stage.json(&["compact", &session, "--focus", "the gate"]);
    assert_eq!((&done["answers"], &done["summary"]), (&json!(3), &json!(SUMMARY)), "{done}");
    assert!(done["tokens_after"].as_u64() < done["tokens_before"].as_u64(), "{done}");
    assert!(model.asked()[5].body.contains("Pay most attention to this: the gate"));
    requests_agree(&stage, &session, 1..=5);
    let shown = stage.json(&["show", &session]);
    assert_eq!(shown["status"]["status"], "idle");
    let again = stage.run(&["compact", &session]);
    assert_eq!(again.code, Some(1), "{}", again.output);
    assert!(again.errors.contains("nothing to compact"), "{}", again.errors);
    stage.run(&["ask", &session, "What is left?"]).worked_quietly();
    let body = &model.asked()[6].body;
    assert!(body.contains(KEY) && !body.contains("1 1 1 1") && body.contains("3 3 3 3"));
    requests_agree(&stage, &session, [1]);
    // A redaction removes a value from summaries, too.
    let leaked = stage.stored_bytes();
    let holds = |bytes: &[u8]| bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
    assert!(holds(&leaked));
    crate::erasing::reading(&stage, KEY, &["redact", &session]).worked();
    let log = stage.run(&["log", &session, "--all", "--json"]).worked();
    assert!(!log.contains(KEY), "{log}");
    assert!(!holds(&stage.stored_bytes()));
    let cuts: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut texts = cuts.iter().filter(|record| record["data"]["slice"] == "conversation_cut");
    assert!(texts.next_back().unwrap().to_string().contains("The rows are read. The gate is "), "{log}");
}

#[test]
fn a_conversation_is_compacted_where_it_is_typed() {
    let stage = stage();
    let texts = ["One.", "Two.", "Three.", "Four."].map(|text| {
        let long = format!("{text} {}", "A seam is a line of stitches. ".repeat(40));
        Said::Text(Box::leak(long.into_boxed_str()))
    });
    let model = Model::new(
        "openai-chat",
        texts.into_iter().chain([Said::Text(SUMMARY), Said::Text("Five.")]).collect::<Vec<_>>(),
    );
    let name = format!("openai-chat:{MODEL}");
    let arguments = ["chat", "--model", &name, "--base-url", &model.url, "--tools", "none"];
    let terminal = Pty::start(&stage, &arguments, 100, 40);
    chat::enter(&terminal, "/compact", "has not begun");
    for (turn, word) in ["One.", "Two.", "Three.", "Four."].into_iter().enumerate() {
        chat::say(&terminal, "Continue, please", word, turn + 1);
    }
    chat::enter(&terminal, "/compact every seam", "2 answers have a summary in their place");
    assert!(terminal.everything().contains("The rows are read."));
    assert!(model.asked()[4].body.contains("Pay most attention to this: every seam"));
    chat::say(&terminal, "What now?", "Five.", 5);
    let body = &model.asked()[5].body;
    assert!(
        body.contains("The rows are read.") && !body.contains("One. A seam") && body.contains("Four. A seam")
    );
    assert!(terminal.screen().contains("older results not shown"), "{}", terminal.screen());
    chat::leave(terminal);
    let session = chat::sessions(&stage).remove(0);
    requests_agree(&stage, &session, [1]);
}

#[test]
fn rewinds_forks_and_resumes_render_what_they_rendered() {
    let stage = stage();
    let answers = (0..14).map(read).chain([Said::Text("Read.")]).chain((0..3).map(|_| Said::Text("Yes.")));
    let (model, session) = read_files(&stage, "openai-chat", &["--window", "16000"], answers.collect());
    requests_agree(&stage, &session, 1..=15);
    let other = text_of(&stage.path("other"));
    let forked = stage.json(&["fork", &session, "turn:12", "--workspace", &other]);
    let fork = forked["session"].as_str().unwrap();
    stage.run(&["resume", fork]).worked_quietly();
    requests_agree(&stage, fork, []);
    stage.run(&["rewind", &session, "turn:10", "--only", "conversation"]).worked_quietly();
    stage.run(&["resume", &session]).worked_quietly();
    requests_agree(&stage, &session, 1..=11);
    stage.run(&["ask", &session, "Is that all?"]).worked_quietly();
    requests_agree(&stage, &session, [1]);
    assert!(model.asked().iter().any(|asked| asked.body.contains("is not shown")));
}
