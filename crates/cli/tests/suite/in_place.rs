//! Approvals in place: a person at a pseudo-terminal decides, and the session continues in the same process.

use serde_json::{Value, json};

use crate::pty::Pty;
use crate::stage::{Stage, last_line, scripted, wait_until};

/// The question about a call without a plain command.
const QUESTION: &str = "allow it? [y/n/e/a/v/q/?]";

/// The question about a plain command.
const PREFIX_QUESTION: &str = "allow it? [y/n/e/a/p/v/q/?]";

fn shell(command: &str) -> Value {
    json!({"name": "shell", "arguments": {"command": command}})
}

fn write(path: &str, text: &str) -> Value {
    json!({"name": "write_file", "arguments": {"path": path, "text": text}})
}

/// Starts a run that asks before everything.
fn run(stage: &Stage, replies: &Value) -> Pty {
    let model = scripted(stage, replies);
    Pty::start(stage, &["run", "Do it", "--model", &model, "--approve", "ask"], 100, 40)
}

#[test]
fn all_waiting_calls_are_asked_about_and_the_run_continues() {
    let stage = Stage::new();
    std::fs::write(stage.path("files").join("hem.txt"), "one\ntwo\n").unwrap();
    let edit = json!({"name": "edit_file", "arguments": {"path": "hem.txt", "old": "two", "new": "2"}});
    let calls = json!([shell("touch ran"), edit, shell("touch denied")]);
    let terminal = run(&stage, &json!([{"calls": calls}, {"text": "All done."}]));
    terminal.wait_for("call 1 of 3: shell needs approval");
    terminal.wait_for("  | touch ran");
    terminal.wait_for(PREFIX_QUESTION);
    terminal.send("y\r");
    terminal.wait_for("call 2 of 3: edit_file needs approval");
    terminal.wait_for("  | -two");
    terminal.wait_for("  | +2");
    terminal.wait_for(QUESTION);
    terminal.send("y\r");
    terminal.wait_for("  | touch denied");
    terminal.wait_for_times(PREFIX_QUESTION, 2);
    terminal.send("n keep it clean\r");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("approved: shell") && text.contains("denied: shell"), "{text}");
    assert!(text.contains("\nAll done.\n"), "{text}");
    assert_eq!(stage.file("hem.txt").as_deref(), Some("one\n2\n"));
    assert!(stage.file("ran").is_some() && stage.file("denied").is_none());
    let shown = stage.run(&["show", "--json"]).worked();
    assert!(shown.contains("keep it clean"), "the model gets the reason");
}

#[test]
fn a_file_that_is_replaced_while_the_question_stands_is_asked_about_again() {
    let stage = Stage::new();
    let script = stage.write("mend.sh", "echo one > mended.txt\n");
    let tool = "[[tool]]\nname = \"mend\"\ndescription = \"Mends.\"\napproval = \"ask\"";
    let command = json!(["sh", script]);
    let agent = stage.write("agent.toml", &format!("name = \"tailor\"\n{tool}\ncommand = {command}\n"));
    let call = json!({"name": "mend", "arguments": {}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
    let terminal = Pty::start(&stage, &["run", "Do it", "--agent", &agent, "--model", &model], 200, 40);
    terminal.wait_for(QUESTION);
    stage.write("mend.sh", "echo two > mended.txt\n");
    terminal.send("y\r");
    terminal.wait_for_times(QUESTION, 2);
    assert_eq!(stage.file("mended.txt"), None);
    terminal.send("y\r");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("mend needs approval again, because this has changed since: the file"), "{text}");
    assert_eq!(stage.file("mended.txt").as_deref(), Some("two\n"));
}

#[test]
fn always_holds_for_the_session_and_its_follow_ups() {
    let stage = Stage::new();
    let replies = json!([
        {"calls": [shell("touch one"), shell("touch two"), shell("touch three; ls")]},
        {"text": "First."},
        {"calls": [shell("touch five"), shell("rm one")]},
        {"text": "Second."},
    ]);
    let terminal = run(&stage, &replies);
    terminal.wait_for(PREFIX_QUESTION);
    terminal.send("p\r");
    terminal.wait_for("  2  shell touch one");
    terminal.wait_for("how many words?");
    terminal.send("1\r");
    // The second call matches the prefix; of the third, only a part does.
    terminal.wait_for("approved by the rule allow `shell touch`: shell");
    terminal.wait_for("  | touch three; ls");
    terminal.wait_for(QUESTION);
    terminal.send("p\r");
    terminal.wait_for("a prefix needs one plain command");
    terminal.wait_for_times(QUESTION, 2);
    terminal.send("n\r");
    terminal.wait_for("reason, for the model");
    terminal.send("\r");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(stage.file("two").is_some() && stage.file("three").is_none());
    let log = stage.run(&["log"]).worked();
    assert!(log.contains("for this session: allow `shell touch`"), "{log}");
    let shown = stage.run(&["show"]).worked();
    assert!(shown.contains("rule of this session: allow `shell touch`"), "{shown}");

    let session = stage.json(&["show"])["session"].as_str().unwrap().to_owned();
    let terminal = Pty::start(&stage, &["ask", &session, "More"], 100, 40);
    terminal.wait_for("  | rm one");
    terminal.wait_for(PREFIX_QUESTION);
    assert!(stage.file("five").is_some(), "the rule holds");
    terminal.send("a\r");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("from now on in this session: allow `shell`"), "{text}");
    assert!(stage.file("one").is_none());

    // For another person they hold no more.
    let bundle = crate::stage::text_of(&stage.path("it.bundle"));
    stage.run(&["export", &session, "--bundle", &bundle]).worked_quietly();
    let other = Stage::new();
    let imported = other.run(&["import", &bundle]).worked_quietly();
    for rule in ["allow `shell touch`", "allow `shell`"] {
        let line = format!("its rule about approvals does not hold here: {rule}\n");
        assert!(imported.contains(&line), "{imported}");
    }
    assert!(!other.run(&["import", &bundle]).worked_quietly().contains("its rule"), "they are gone");
    let shown = other.run(&["show", &session]).worked();
    assert!(!shown.contains("rule of this session"), "{shown}");
    other.run(&["verify"]).worked_quietly();
}

#[test]
fn a_question_that_is_left_open_leaves_the_session_waiting() {
    for key in ["q\r", "\u{3}", "\u{4}"] {
        let stage = Stage::new();
        let terminal = run(&stage, &json!([{"calls": [shell("touch ran")]}, {"text": "Done."}]));
        terminal.wait_for(PREFIX_QUESTION);
        terminal.send(key);
        let (code, text) = terminal.finish();
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("backstitch approve"), "{text}");
        assert_eq!(stage.file("ran"), None);
        let terminal = Pty::start(&stage, &["resume"], 100, 40);
        terminal.wait_for(PREFIX_QUESTION);
        terminal.send("y\r");
        let (code, text) = terminal.finish();
        assert_eq!(code, Some(0), "{text}");
        assert!(stage.file("ran").is_some());
    }
}

#[test]
fn a_kill_at_the_question_loses_no_answer() {
    let stage = Stage::new();
    let calls = json!([shell("touch one"), shell("touch two")]);
    let mut terminal = run(&stage, &json!([{"calls": calls}, {"text": "Done."}]));
    terminal.wait_for(PREFIX_QUESTION);
    terminal.send("y\r");
    terminal.wait_for("  | touch two");
    terminal.wait_for_times(PREFIX_QUESTION, 2);
    terminal.kill();
    let waiting = stage.json(&["show"])["waiting"].clone();
    assert_eq!(waiting.as_array().unwrap().len(), 1, "{waiting}");
    assert_eq!(waiting[0]["arguments"]["command"], "touch two");
    let terminal = Pty::start(&stage, &["resume"], 100, 40);
    terminal.wait_for("  | touch two");
    terminal.wait_for(PREFIX_QUESTION);
    terminal.send("y\r");
    assert_eq!(terminal.finish().0, Some(0));
    assert!(stage.file("one").is_some() && stage.file("two").is_some());
}

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let stage = Stage::new();
    // The first command lasts until everything is typed.
    let lasting = "touch runs; while [ ! -e typed ]; do sleep 0.02; done";
    let replies = json!([{"calls": [shell(lasting)]}, {"calls": [shell("touch ran")]}, {"text": "Done."}]);
    let terminal = run(&stage, &replies);
    terminal.wait_for(QUESTION);
    terminal.send("y\r");
    wait_until("the first command", || stage.file("runs").is_some());
    terminal.send("y\ry\ry\r");
    std::fs::write(stage.path("files/typed"), "").unwrap();
    terminal.wait_for(PREFIX_QUESTION);
    // An answer by what was typed would have run the command, and the session would have ended well.
    terminal.send("q\r");
    assert_eq!(terminal.finish().0, Some(3));
    assert_eq!(stage.file("ran"), None);
}

#[test]
fn an_edited_call_is_shown_again_and_runs_as_shown() {
    let editor = "sh -c 'sed s/asked/edited/ \"$0\" > \"$0.new\" && mv \"$0.new\" \"$0\"'";
    let stage = Stage::new().with_variable("VISUAL", editor);
    let calls = json!([shell("touch asked"), write("asked.txt", "x")]);
    let terminal = run(&stage, &json!([{"calls": calls}, {"text": "Done."}]));
    terminal.wait_for(PREFIX_QUESTION);
    terminal.send("e\r");
    terminal.wait_for("  | touch edited");
    terminal.wait_for_times(PREFIX_QUESTION, 2);
    terminal.send("y\r");
    terminal.wait_for("approved as edited: shell");
    terminal.wait_for("creates asked.txt");
    terminal.wait_for(QUESTION);
    terminal.send("e\r");
    terminal.wait_for("creates edited.txt");
    terminal.wait_for_times(QUESTION, 2);
    terminal.send("y\r");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(stage.file("edited").is_some() && stage.file("asked").is_none());
    assert!(stage.file("edited.txt").is_some() && stage.file("asked.txt").is_none());
    // D19: the pause shows what the person saw, and the decision what was made of it.
    let log = stage.run(&["log"]).worked();
    let paused: Vec<&str> = log.split("* paused").skip(1).collect();
    assert!(
        paused[0]
            .trim_start_matches(|one| one != '\n')
            .trim_start()
            .starts_with("shell {\"command\":\"touch asked\"}"),
        "{log}"
    );
    assert!(log.contains("with other arguments: {\"command\":\"touch edited\"}"), "{log}");
}

/// D25: the time of a call is not that of the person who was asked about it.
#[test]
fn a_denied_call_has_no_time() {
    let stage = Stage::new();
    let terminal = run(&stage, &json!([{"calls": [shell("touch ran")]}, {"text": "Done."}]));
    terminal.wait_for(PREFIX_QUESTION);
    // The question has stood for a moment.
    std::thread::sleep(std::time::Duration::from_millis(1000));
    terminal.send("n not now\r");
    let (_, text) = terminal.finish();
    let denied = text.lines().find(|line| line.starts_with("x shell")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(denied.trim_end(), "x shell: not now");
}

#[test]
fn invalid_json_is_asked_about_again_and_a_broken_editor_is_named() {
    let stage =
        Stage::new().with_variable("VISUAL", "").with_variable("EDITOR", "sh -c 'echo broken > \"$0\"'");
    let terminal = run(&stage, &json!([{"calls": [write("a.txt", "x")]}, {"text": "Done."}]));
    terminal.wait_for(QUESTION);
    terminal.send("e\r");
    terminal.wait_for("this is not a JSON object");
    terminal.wait_for("edit it again? [y/n]");
    terminal.send("n\r");
    terminal.wait_for_times(QUESTION, 2);
    terminal.send("y\r");
    assert_eq!(terminal.finish().0, Some(0));
    assert_eq!(stage.file("a.txt").as_deref(), Some("x"));

    let stage = Stage::new().with_variable("VISUAL", "/nowhere/editor");
    let terminal = run(&stage, &json!([{"calls": [shell("touch a")]}, {"text": "Done."}]));
    terminal.wait_for(PREFIX_QUESTION);
    terminal.send("e\r");
    terminal.wait_for("the editor `/nowhere/editor` ended with");
    terminal.wait_for("the new command, in one line");
    terminal.send("touch b\r");
    terminal.wait_for("  | touch b");
    terminal.wait_for_times(PREFIX_QUESTION, 2);
    terminal.send("y\r");
    assert_eq!(terminal.finish().0, Some(0));
    assert!(stage.file("b").is_some() && stage.file("a").is_none());
}

#[test]
fn edited_arguments_that_do_not_fit_the_tool_are_asked_about_again() {
    let wrong = r#"{"path": "b.txt", "txet": 7}"#;
    let right = r#"{"path": "b.txt", "text": "y"}"#;
    // The first edit is wrong, the second one is right.
    let editor = format!(
        "sh -c 'if grep -q txet \"$0\"; then echo '\\''{right}'\\''; else echo '\\''{wrong}'\\''; fi > \"$0.new\"; mv \"$0.new\" \"$0\"'"
    );
    let stage = Stage::new().with_variable("VISUAL", &editor);
    let terminal = run(&stage, &json!([{"calls": [write("a.txt", "x")]}, {"text": "Done."}]));
    terminal.wait_for(QUESTION);
    terminal.send("e\r");
    terminal.wait_for("the arguments of write_file do not fit:");
    terminal.wait_for("txet");
    terminal.wait_for("edit it again? [y/n]");
    terminal.send("y\r");
    terminal.wait_for("creates b.txt");
    terminal.wait_for_times(QUESTION, 2);
    terminal.send("y\r");
    assert_eq!(terminal.finish().0, Some(0));
    assert_eq!((stage.file("a.txt"), stage.file("b.txt").as_deref()), (None, Some("y")));
}

#[test]
fn nobody_is_asked_without_a_terminal_or_with_no_input() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"calls": [shell("touch ran")]}, {"text": "Done."}]));
    let arguments = ["run", "Do it", "--model", &model, "--approve", "ask"];
    let piped = stage.run(&arguments);
    assert_eq!(piped.code, Some(3), "{piped:?}");
    assert!(!piped.errors.contains("allow it?"), "{piped:?}");
    for more in [&["--no-input"][..], &["--json"]] {
        let terminal = Pty::start(&stage, &[&["resume"], more].concat(), 100, 40);
        let (code, text) = terminal.finish();
        assert_eq!(code, Some(3), "{text}");
        assert!(!text.contains("allow it?"), "{text}");
    }
    let (code, text) = Pty::start_without_input(&stage, &["resume"], 100, 40).finish();
    assert_eq!((code, text.contains("allow it?")), (Some(3), false), "{text}");
}

#[test]
fn hostile_commands_are_shown_whole_and_cannot_imitate_the_question() {
    let long = format!("echo {}; touch HIDDEN", "harmless ".repeat(400));
    let commands = [
        long.as_str(),
        "echo one\n  echo two\r\n\techo three\n\n; touch HIDDEN",
        "echo \u{1b}[2K\u{1b}[1A\u{9b}2J\u{7}\u{8}\u{7f}\u{85} \u{202e}neddih\u{2066}",
        "echo a\u{200b}b\u{feff}c \\u001b \\\\u001b",
        "true\nallow it? [y/n/e/a/v/q/?] y\napproved: shell",
    ];
    for columns in [40, 100] {
        for command in commands {
            let stage = Stage::new();
            let model = scripted(&stage, &json!([{"calls": [shell(command)]}, {"text": "Done."}]));
            let arguments = ["run", "Do it", "--model", &model, "--approve", "ask"];
            let terminal = Pty::start(&stage, &arguments, columns, 30);
            terminal.wait_for("\nallow it? [y/n/e/a/v/q/?]");
            terminal.send("q\r");
            let raw = terminal.raw();
            let (code, _) = terminal.finish();
            assert_eq!(code, Some(3));
            assert_eq!(undone(&raw), command);
        }
    }
}

#[test]
fn a_command_of_a_megabyte_is_shown_whole() {
    let command = format!("true {}; touch HIDDEN", "x".repeat(1_000_000));
    let stage = Stage::new();
    let terminal = run(&stage, &json!([{"calls": [shell(&command)]}, {"text": "Done."}]));
    terminal.wait_for_screen("allow it?");
    let raw = terminal.raw();
    terminal.send("q\r");
    assert_eq!(terminal.finish().0, Some(3));
    assert_eq!(undone(&raw), command);
}

/// Undoes colours, gutters and escapes of the first question.
fn undone(raw: &str) -> String {
    let mut plain = String::new();
    let mut characters = raw.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    let from = plain.find("needs approval").unwrap();
    let mut text: Option<String> = None;
    for line in plain[from..].lines().skip(1) {
        if let Some(start) = line.strip_prefix("  | ") {
            text = Some(text.map_or(start.to_owned(), |text| format!("{text}\n{start}")));
        } else if let Some(more) = line.strip_prefix("  : ") {
            text.as_mut().unwrap().push_str(more);
        } else {
            break;
        }
    }
    let quoted = text.unwrap().replace('"', "\\\"");
    // Only `\u` starts an escape. Other backslashes are themselves.
    let quoted = quoted.replace('\\', "\\\\").replace("\\\\u", "\\u").replace("\\\\\"", "\\\"");
    let quoted = quoted.replace('\n', "\\n").replace('\t', "\\t");
    serde_json::from_str(&format!("\"{quoted}\"")).unwrap()
}

#[test]
fn an_unknown_effect_is_decided_in_place() {
    let command = "[ -e ../begun ] || { touch ../begun; sleep 60; }";
    for (answer, expected) in [("r\r", "ok"), ("h it is done\r", "ok"), ("f broken\r", "failed")] {
        let stage = Stage::new();
        let model = scripted(&stage, &json!([{"calls": [shell(command)]}, {"text": "Done."}]));
        let mut child = stage.command(&["run", "Do it", "--model", &model]).spawn().unwrap();
        crate::stage::wait_until("the call", || stage.path("begun").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        let terminal = Pty::start(&stage, &["resume"], 100, 40);
        terminal.wait_for("it is unknown whether this call has happened");
        terminal.wait_for("did it happen? [h/r/f/v/q/?]");
        terminal.send(answer);
        let (code, text) = terminal.finish();
        assert_eq!(code, Some(0), "{text}");
        let calls = stage.json(&["show"])["calls"].clone();
        let status = if expected == "ok" { "completed" } else { "failed" };
        assert_eq!(calls[0]["status"], status, "{calls}");
    }
}

#[test]
fn approve_and_deny_decide_about_named_calls_or_all() {
    let stage = Stage::new();
    let calls = json!([shell("touch one"), shell("touch two"), shell("touch three")]);
    let model = scripted(&stage, &json!([{"calls": calls}, {"text": "Done."}]));
    let paused = stage.run(&["run", "Do it", "--model", &model, "--approve", "ask", "--json"]);
    let paused = last_line(&paused.output);
    let session = paused["session"].as_str().unwrap();
    let call = |index: usize| paused["waiting"][index]["call"].as_str().unwrap();

    let unclear = stage.run(&["approve", session]);
    assert_eq!(unclear.code, Some(2), "{unclear:?}");
    assert!(unclear.errors.contains("3 calls wait"), "{unclear:?}");
    // All or nothing: one of the two does not wait.
    let wrong = stage.run(&["approve", session, call(0), "ffff0000"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.errors.contains("decision_refused"), "{wrong:?}");
    assert_eq!(stage.json(&["show"])["waiting"].as_array().unwrap().len(), 3);

    let approved = stage.run(&["approve", session, call(0)]).worked();
    assert!(approved.contains("touch one") && approved.contains("2 more wait"), "{approved}");
    let again = stage.run(&["approve", session, call(0)]);
    assert_eq!(again.code, Some(1), "{again:?}");
    let denied = stage.json(&["deny", session, "--all", "--reason", "enough"]);
    assert_eq!(denied["decided"].as_array().unwrap().len(), 2, "{denied}");
    let none = stage.run(&["deny", session, "--all"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.errors.contains("decision_refused"), "{none:?}");
    stage.run(&["resume"]).worked_quietly();
    assert!(stage.file("one").is_some() && stage.file("two").is_none() && stage.file("three").is_none());
    assert!(stage.run(&["show", "--json"]).worked().contains("enough"));
}
