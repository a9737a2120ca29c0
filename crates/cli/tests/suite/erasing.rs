//! `redact` and `rm`: what they remove is in no file of the store, and the session resumes.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::command::Ran;
use crate::model::{Model, Said};
use crate::pty::Pty;
use crate::stage::{Stage, as_slices, last_line, scripted};

const KEY: &str = "hunter2-\"leaked\"-0123456789";

/// Runs a command with a text as its standard input.
pub(crate) fn reading(stage: &Stage, input: &str, arguments: &[&str]) -> Ran {
    let mut child = stage.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that fails at once closes the pipe.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

fn holds(stage: &Stage, text: &str) -> bool {
    let stored = stage.stored_bytes();
    let escaped = Value::from(text).to_string();
    let forms = [text, escaped.trim_matches('"')];
    forms.iter().any(|form| stored.windows(form.len()).any(|bytes| bytes == form.as_bytes()))
}

fn session(stage: &Stage) -> String {
    stage.json(&["ls"])["session"].as_str().unwrap().to_owned()
}

#[test]
fn a_redacted_session_continues_with_every_provider() {
    for provider in ["openai", "openai-chat", "anthropic", "gemini"] {
        let stage = Stage::new().with_variable("NOTHING", "x");
        let content = format!("key = {KEY}\n");
        let call = Said::Call("I use the key.", "write_file", json!({"path": "key.txt", "text": content}));
        let model = Model::new(
            provider,
            [call, Said::Text("It is hunter2-\"leaked\"-0123456789."), Said::Text("Again.")],
        );
        let variables = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"];
        let stage = variables.iter().fold(stage, |stage, name| stage.with_variable(name, "sk-0000-unused"));
        stage.run(&as_slices(&Stage::asking(provider, &model, &[]))).worked_quietly();
        let session = session(&stage);
        assert!(holds(&stage, KEY), "{provider}");

        let rehearsed = reading(&stage, &format!("{KEY}\n"), &["redact", &session, "--dry-run", "--json"]);
        let rehearsed = last_line(&rehearsed.worked());
        assert!(holds(&stage, KEY), "{provider}: a dry run changes nothing");
        let printed = reading(&stage, &format!("{KEY}\n"), &["redact", &session]).worked();
        for words in ["records changed", "key.txt", "not searched: other encodings"] {
            assert!(printed.contains(words), "{provider}: {words:?} in {printed}");
        }
        assert!(!printed.contains("hunter2"), "{printed}");
        assert!(!holds(&stage, KEY), "{provider}");
        assert_eq!(rehearsed["erasure"], json!({"state": "not_started"}));
        assert_eq!(rehearsed["files"], json!(["key.txt"]));
        let again = reading(&stage, KEY, &["redact", &session, "--json"]).worked();
        assert_eq!(last_line(&again)["sessions"], json!([]), "{provider}");

        let verified = stage.json(&["verify"]);
        assert_eq!(verified["sound"], true, "{provider}: {verified}");
        assert_eq!(verified["redacted"][0]["session"], json!(session));
        assert!(stage.run(&["log", &session]).worked().contains("redacted: "), "{provider}");
        let request = stage.run(&["request", &session]);
        assert_eq!(request.code, Some(1), "{provider}");
        assert!(request.errors.contains("the digest cannot match"), "{provider}: {}", request.errors);

        std::fs::write(stage.path("files/key.txt"), "scrubbed\n").unwrap();
        let answer = stage.run(&["ask", &session, "And?"]).worked_quietly();
        assert_eq!(answer, "Again.\n", "{provider}");
        let asked = model.asked().pop().unwrap().body;
        assert!(asked.contains("[redacted]") && !asked.contains("hunter2"), "{provider}: {asked}");
        assert!(!holds(&stage, KEY), "{provider}");
    }
}

#[test]
fn values_that_cannot_be_redacted_are_refused() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Do it", "--model", &model]).worked_quietly();
    let session = session(&stage);
    for (value, code) in [("short", "value_refused"), ("[redacted]\n", "value_refused"), ("", "usage")] {
        let errors = reading(&stage, value, &["redact", &session]).called_wrongly();
        assert!(errors.contains(&format!("code: {code}")), "{errors}");
    }
    let found = reading(&stage, "a value that is nowhere", &["redact", &session]).worked();
    assert!(found.starts_with("the value was not found\n"), "{found}");
    let errors = reading(&stage, "a value of no session", &["redact", "00000000"]).failed();
    assert!(errors.contains("code: session_not_found"), "{errors}");
}

#[test]
fn removed_sessions_are_gone() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "All of it is only-said-here."}]));
    stage.run(&["run", "Say it", "--model", &model]).worked_quietly();
    let first = session(&stage);
    let forked = stage.json(&["fork", &first, "--workspace", stage.path("other").to_str().unwrap()]);
    let fork = forked["session"].as_str().unwrap().to_owned();

    let errors = stage.run(&["rm", &first, "--yes"]).failed();
    assert!(errors.contains("code: session_shared") && errors.contains(&fork), "{errors}");
    assert!(errors.contains("--with-forks"), "{errors}");
    let errors = stage.run(&["rm", &first, "--with-forks"]).called_wrongly();
    assert!(errors.contains("--yes"), "nobody can be asked: {errors}");
    let rehearsed = stage.json(&["rm", &first, "--with-forks", "--dry-run"]);
    assert_eq!(rehearsed["sessions"].as_array().unwrap().len(), 2);
    assert!(holds(&stage, "only-said-here"));

    let removed = stage.json(&["rm", &first, "--with-forks", "--yes"]);
    assert_eq!(removed["sessions"], rehearsed["sessions"]);
    assert_eq!(removed["erasure"], json!({"state": "complete"}));
    assert!(!holds(&stage, "only-said-here"));
    let verified = stage.json(&["verify"]);
    assert_eq!((&verified["sound"], &verified["sessions"]), (&json!(true), &json!(0)));
    assert_eq!(verified["removed"].as_array().unwrap().len(), 2);
    // What was interrupted can be repeated.
    let again = stage.json(&["rm", &first, "--yes"]);
    assert_eq!(again["sessions"], json!([]));
    let errors = stage.run(&["rm", "00000000", "--yes"]).failed();
    assert!(errors.contains("code: session_not_found"), "{errors}");
}

#[test]
fn old_sessions_expire() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "All of it is only-said-here."}]));
    stage.run(&["run", "Say it", "--model", &model]).worked_quietly();
    let session = session(&stage);
    let kept = stage.json(&["gc", "--expire-days", "1"]);
    assert_eq!(kept["expired"], json!([]), "it is of today");
    let rehearsed = stage.json(&["gc", "--expire-days", "0", "--dry-run"]);
    assert_eq!(rehearsed["expired"], json!([session]));
    // D23: the records of a session are something that is freed.
    let said = stage.run(&["gc", "--expire-days", "0", "--dry-run"]).worked_quietly();
    let freed = said.lines().find(|line| line.contains("would be freed")).unwrap_or_else(|| panic!("{said}"));
    assert!(!freed.starts_with("0 bytes"), "{said}");
    let paused = stage.json(&["gc", "--expire-days", "0", "--expire-status", "paused"]);
    assert_eq!(paused["expired"], json!([]));
    assert!(holds(&stage, "only-said-here"));
    // What a server of the session has left beside the store.
    let lock = stage.path("store").join("mcp").join(format!("{session}.lock"));
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "").unwrap();
    let expired = stage.json(&["gc", "--expire-days", "0"]);
    assert_eq!(expired["expired"], json!([session]));
    assert_eq!(expired["side_files"][0]["kind"], "server locks", "{expired}");
    assert!(!lock.exists());
    assert!(!holds(&stage, "only-said-here"));
    assert_eq!(stage.json(&["verify"])["removed"][0]["session"], json!(session));
}

#[test]
fn the_input_history_is_redacted_and_removed_with_its_session() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Noted."}, {"text": "Again."}]));
    let terminal = Pty::start(&stage, &["chat", "--model", &model], 100, 40);
    terminal.wait_for("/help lists commands");
    terminal.send(&format!("my key is {KEY}\r"));
    terminal.wait_for("Noted.");
    terminal.send("a second message\r");
    terminal.wait_for("Again.");
    terminal.send("/exit\r");
    assert_eq!(terminal.finish().0, Some(0));
    let history = || std::fs::read_to_string(stage.path("state/backstitch/history")).unwrap();
    assert!(history().contains(KEY) && history().contains("a second message"), "{}", history());
    assert!(stage.run(&["doctor"]).output.contains("input history in "));

    let session = session(&stage);
    for (more, is_kept) in [(&["--dry-run"][..], true), (&[], false)] {
        let arguments = [&["redact", &session, "--json"], more].concat();
        let report = last_line(&reading(&stage, KEY, &arguments).worked());
        assert_eq!(report["side_files"][0]["kind"], "input history", "{report}");
        assert_eq!(report["side_files"][0]["entries"], 1, "{report}");
        assert_eq!(history().contains(KEY), is_kept);
    }
    assert!(history().contains("my key is [redacted]") && history().contains("a second message"));

    let removed = stage.json(&["rm", &session, "--yes"]);
    assert_eq!(removed["side_files"][0]["entries"], 2, "{removed}");
    assert!(!history().contains("my key is") && !history().contains("a second message"), "{}", history());
    assert!(history().contains("/exit"), "what belongs to no session stays");
}
