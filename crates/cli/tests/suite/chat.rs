//! Conversations on a pseudo-terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::model::{MODEL, Model, PROVIDERS, Said};
use crate::pty::Pty;
use crate::stage::{Stage, last_line, scripted, text_of, wait_until};

pub(crate) const ENTER: &str = "\r";
pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";

/// Returns a stage whose history is in its own directory.
pub(crate) fn stage() -> Stage {
    let stage = Stage::new();
    let state = text_of(&stage.path("state"));
    stage.with_variable("XDG_STATE_HOME", &state)
}

fn replies() -> Value {
    json!([
        {"text": "I write it down.", "call": [{"name": "write_file", "arguments": {"path": "note.txt", "text": "seven\n"}}]},
        {"text": "Seven needles."},
        {"text": "Eight pins."},
        {"text": "Nine buttons."},
        {"text": "Ten threads."},
    ])
}

/// Waits for an empty prompt. It may name a mode.
pub(crate) fn prompt(terminal: &Pty) {
    let is_prompt = |line: &str| matches!(line, ">" | "plan>" | "ask>" | "full>");
    wait_until("the prompt", || terminal.screen().trim_end().lines().last().is_some_and(is_prompt));
}

/// Types a line at the prompt, and waits for its effect and the next prompt.
pub(crate) fn enter(terminal: &Pty, line: &str, effect: &str) {
    prompt(terminal);
    let shown = terminal.everything().matches(effect).count();
    terminal.send(&format!("{line}{ENTER}"));
    terminal.wait_for_times(effect, shown + 1);
    prompt(terminal);
}

/// Sends a message, and waits for the answer and the next prompt.
pub(crate) fn say(terminal: &Pty, text: &str, answer: &str, turn: usize) {
    enter(terminal, text, answer);
    terminal.wait_for(&format!("turn {turn}"));
    prompt(terminal);
}

/// Leaves the conversation at the prompt.
pub(crate) fn leave(terminal: Pty) {
    prompt(&terminal);
    terminal.send(CTRL_D);
    assert_eq!(terminal.finish().0, Some(0));
}

pub(crate) fn started(stage: &Stage, replies: &Value, columns: u16) -> Pty {
    let model = scripted(stage, replies);
    let terminal = Pty::start(stage, &["chat", "--model", &model], columns, 30);
    terminal.wait_for("/help lists commands");
    terminal
}

/// Starts a conversation with a model of the API `openai-chat`.
pub(crate) fn asking(stage: &Stage, model: &Model, columns: u16) -> Pty {
    let name = format!("openai-chat:{MODEL}");
    let arguments = ["chat", "--model", &name, "--base-url", &model.url];
    let terminal = Pty::start(stage, &arguments, columns, 30);
    terminal.wait_for("/help lists commands");
    terminal
}

/// Returns the ids of the sessions.
pub(crate) fn sessions(stage: &Stage) -> Vec<String> {
    let listed = stage.run(&["ls", "--json"]);
    let lines = listed.output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["session"].as_str().unwrap().to_owned()).collect()
}

/// Returns the messages of the user.
pub(crate) fn missions(stage: &Stage) -> Vec<String> {
    let log = stage.run(&["log", "--all", "--json"]).worked();
    let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said = records.filter(|record| record["kind"] == "message_appended" && record["visible"] == true);
    let said = said
        .map(|record| record["data"].clone())
        .filter(|data| data["message"]["role_hint_for_llm"] == "user");
    said.map(|data| data["message"]["content"].to_string()).collect()
}

#[test]
fn a_conversation_has_follow_ups_and_can_be_left_and_continued() {
    let stage = stage();
    let mut terminal = started(&stage, &replies(), 80);
    say(&terminal, "Count the needles", "Seven needles.", 1);
    assert_eq!(stage.file("note.txt").as_deref(), Some("seven\n"));
    say(&terminal, "And the pins?", "Eight pins.", 2);
    prompt(&terminal);
    terminal.send(CTRL_D);
    terminal.wait_for("continues this conversation");
    assert_eq!(terminal.exit_code(), Some(0));
    let all = sessions(&stage);
    assert_eq!(all.len(), 1);
    let terminal = Pty::start(&stage, &["chat", &all[0]], 80, 30);
    terminal.wait_for("> And the pins?");
    terminal.wait_for("Eight pins.");
    say(&terminal, "And the buttons?", "Nine buttons.", 3);
    terminal.send(&format!("/exit{ENTER}"));
    assert_eq!(terminal.finish().0, Some(0));
    assert_eq!(sessions(&stage).len(), 1);
    let history = std::fs::metadata(stage.path("state/backstitch/history")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&history.permissions()) & 0o777, 0o600);
}

#[test]
fn commands_are_not_sent_to_the_model() {
    let stage = stage();
    std::fs::write(stage.path("files/noise"), [0, 159, 146, 150]).unwrap();
    let mut terminal = started(&stage, &replies(), 80);
    for (line, answer) in [
        ("/rewnid", "did you mean `/rewind`?"),
        ("/help", "/rewind [N | POINT]"),
        ("/cost", "has not begun"),
        ("/resume", "nothing to resume"),
        ("/model", "/model PROVIDER:MODEL"),
        ("/model nonsense", "names no model"),
        ("/mode", "mode full: commands are not confined; nothing is asked"),
        ("/mode nonsense", "there is no mode \"nonsense\""),
        ("/mode plan", "mode plan: commands write nothing"),
        ("@noise", "@noise cannot be attached: it is not UTF-8 text"),
    ] {
        enter(&terminal, line, answer);
    }
    assert!(!stage.path("store/store.db").exists());
    terminal.send(CTRL_C);
    terminal.wait_for("(Ctrl-C again, Ctrl-D or /exit leaves)");
    prompt(&terminal);
    terminal.send(CTRL_C);
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn rewinds_and_undos_include_the_files() {
    let stage = stage();
    let terminal = started(&stage, &replies(), 80);
    say(&terminal, "Count the needles", "Seven needles.", 1);
    say(&terminal, "And the pins?", "Eight pins.", 2);
    enter(&terminal, "/diff", "+seven");
    enter(&terminal, "/rewind 2", "the conversation is as before: Count the needles");
    terminal.wait_for("`/undo` undoes this");
    assert_eq!(stage.file("note.txt"), None);
    assert!(terminal.everything().contains("files were restored:"), "{}", terminal.everything());
    enter(&terminal, "/undo", "the latest rewind is undone");
    assert_eq!(stage.file("note.txt").as_deref(), Some("seven\n"));
    enter(&terminal, "/redo", "the rewind is repeated");
    assert_eq!(stage.file("note.txt"), None);
    enter(&terminal, "/undo", "`/redo` repeats it");
    terminal.wait_for_times("the latest rewind is undone", 2);
    assert_eq!(stage.file("note.txt").as_deref(), Some("seven\n"));
    enter(&terminal, "/rewind", "as before: And the pins?");
    enter(&terminal, "/fork", "forked into");
    prompt(&terminal);
    terminal.send(&format!("And the threads?{ENTER}"));
    terminal.wait_for_times("Eight pins.", 2);
    leave(terminal);
    assert_eq!(sessions(&stage).len(), 2);
}

#[test]
fn a_rewind_leaves_the_files_of_a_person_and_asks_if_one_is_in_its_way() {
    let stage = stage();
    let terminal = started(&stage, &replies(), 80);
    say(&terminal, "Count the needles", "Seven needles.", 1);
    for (name, text) in [("my.txt", "mine\n"), ("note.txt", "by hand\n")] {
        std::fs::write(stage.path("files").join(name), text).unwrap();
    }
    prompt(&terminal);
    terminal.send(&format!("/rewind{ENTER}"));
    terminal.wait_for("do it like this? [y/N]");
    terminal.send(&format!("n{ENTER}"));
    terminal.wait_for("nothing was changed");
    enter(&terminal, "/rewind --only conversation", "the conversation is as before: Count the needles");
    enter(&terminal, "/undo", "the latest rewind is undone");
    prompt(&terminal);
    terminal.send(&format!("/rewind{ENTER}"));
    terminal.wait_for_times("do it like this? [y/N]", 2);
    terminal.send(&format!("y{ENTER}"));
    terminal.wait_for_times("the conversation is as before: Count the needles", 2);
    leave(terminal);
    assert_eq!(
        (stage.file("my.txt").as_deref(), stage.file("note.txt").as_deref()),
        (Some("mine\n"), Some("by hand\n"))
    );
}

#[test]
fn an_interrupted_turn_keeps_the_conversation() {
    let stage = stage();
    let slow = json!([
        {"text": "Wait.", "call": [{"name": "shell", "arguments": {"command": "touch begun; sleep 60"}}]},
        {"text": "First."},
        {"text": "Second."},
    ]);
    let terminal = started(&stage, &slow, 80);
    prompt(&terminal);
    terminal.send(&format!("Take your time{ENTER}"));
    wait_until("the command", || stage.path("files/begun").exists());
    terminal.send(CTRL_C);
    terminal.wait_for("interrupted. A message continues the conversation");
    enter(&terminal, "Something else", "turn 2");
    leave(terminal);
    let missions = missions(&stage);
    assert_eq!(missions.len(), 2, "{missions:?}");
}

#[test]
fn a_killed_terminal_loses_nothing() {
    let stage = stage().with_variable("OPENAI_API_KEY", "key");
    let answers = [
        Said::Text("One."),
        Said::Call("Wait.", "write_file", json!({"path": "note.txt", "text": "x"})),
        Said::Hangs(""),
        Said::Text("Answered late."),
    ];
    let model = Model::new("openai-chat", answers);
    let mut terminal = asking(&stage, &model, 80);
    say(&terminal, "Count", "One.", 1);
    prompt(&terminal);
    terminal.send(&format!("Take your time{ENTER}"));
    terminal.wait_for("+ write_file");
    wait_until("the last request", || model.asked().len() >= 3);
    terminal.kill();
    let session = sessions(&stage).remove(0);
    let terminal = Pty::start(&stage, &["chat", &session], 80, 30);
    terminal.wait_for("Resume it now? [Y/n]");
    terminal.send(ENTER);
    terminal.wait_for("Answered late.");
    terminal.wait_for_times("turn 2", 2);
    leave(terminal);
}

#[test]
fn a_closed_terminal_pauses_the_turn() {
    let stage = stage();
    let slow = json!([
        {"text": "Wait.", "call": [{"name": "shell", "arguments": {"command": "touch begun; sleep 60"}}]},
        {"text": "Done."},
    ]);
    let terminal = started(&stage, &slow, 80);
    prompt(&terminal);
    terminal.send(&format!("Take your time{ENTER}"));
    wait_until("the command", || stage.path("files/begun").exists());
    assert_eq!(terminal.hang_up(), Some(130));
    let session = sessions(&stage).remove(0);
    assert_eq!(stage.json(&["resume", &session])["text"], "Done.");
}

#[test]
fn lines_that_are_typed_ahead_are_answered() {
    let stage = stage().with_variable("OPENAI_API_KEY", "key");
    let gate = Arc::new(AtomicBool::new(false));
    let answers = [Said::Lines("First.\nThat is all.\n".into(), gate.clone()), Said::Text("Second.")];
    let model = Model::new("openai-chat", answers);
    let terminal = asking(&stage, &model, 80);
    terminal.send(&format!("One{ENTER}"));
    terminal.wait_for("session ");
    terminal.send(&format!("Two{ENTER}"));
    terminal.wait_for("queued: Two");
    gate.store(true, Ordering::SeqCst);
    terminal.wait_for("Second.");
    leave(terminal);
    let missions = missions(&stage);
    assert!(missions[1].contains("Two"), "{missions:?}");
}

#[test]
fn a_message_may_have_several_lines() {
    let stage = stage();
    let three = json!([{"text": "First."}, {"text": "Second."}, {"text": "Third."}]);
    let terminal = started(&stage, &three, 40);
    say(&terminal, "one\\\rtwo", "First.", 1);
    say(&terminal, "three\u{1b}\rfour", "Second.", 2);
    say(&terminal, "\u{1b}[200~five \\\nsix\u{1b}[201~", "Third.", 3);
    leave(terminal);
    let missions = missions(&stage);
    for (mission, lines) in missions.iter().zip([r"one\ntwo", r"three\nfour", r"five \\\nsix"]) {
        assert!(mission.contains(lines), "{mission}");
    }
}

#[test]
fn files_are_attached() {
    let stage = stage();
    std::fs::write(stage.path("files/pins.txt"), "silver\n").unwrap();
    let terminal = started(&stage, &replies(), 80);
    say(&terminal, "Read @pins.txt, please", "Seven needles.", 1);
    leave(terminal);
    let missions = missions(&stage);
    assert!(missions[0].contains("silver") && missions[0].contains("Read @pins.txt, please"), "{missions:?}");
}

#[test]
fn what_a_model_says_cannot_control_the_terminal() {
    let stage = stage();
    let hostile = json!([{"text": "a\u{1b}]0;title\u{7}b\u{202e}c\u{1b}[2J"}]);
    let terminal = started(&stage, &hostile, 40);
    terminal.send(&format!("Speak{ENTER}"));
    terminal.wait_for("turn 1");
    assert!(terminal.everything().contains(r"a\u001b]0;title\u0007b\u202ec\u001b[2J"));
}

#[test]
fn a_conversation_needs_a_terminal_and_a_model() {
    let stage = stage();
    let piped = stage.run(&["chat", "--model", "scripted:none"]);
    assert_eq!(piped.code, Some(2));
    assert!(piped.errors.contains("`chat` needs a terminal"), "{}", piped.errors);
    assert!(piped.errors.contains("run MISSION"), "{}", piped.errors);
    let terminal = Pty::start(&stage, &["chat"], 80, 30);
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(2));
    assert!(text.contains("--model"), "{text}");
    let terminal = Pty::start(&stage, &["chat", "4f2a4f2a"], 80, 30);
    assert_ne!(terminal.finish().0, Some(0));
}

#[test]
fn missions_come_from_files_and_standard_input() {
    use std::io::Write as _;
    let stage = stage();
    let model = scripted(&stage, &json!([{"text": "Read."}, {"text": "Again."}]));
    let long = format!("Read this: {}", "word ".repeat(2_000_000));
    let file = stage.write("mission.txt", &long);
    let answer = stage.json(&["run", "--mission-file", &file, "--model", &model]);
    assert_eq!(answer["text"], "Read.");
    let session = answer["session"].as_str().unwrap().to_owned();
    let piped = |arguments: &[&str], text: &str| {
        let mut command = stage.command(arguments);
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        drop(input);
        crate::stage::ended(child)
    };
    let asked = piped(&["ask", &session, "-", "--json"], "And this?");
    assert_eq!(last_line(&asked.output)["text"], "Again.");
    let run = piped(&["run", "-", "--model", &model, "--json"], &long);
    assert_eq!(last_line(&run.output)["text"], "Read.");
    let before = sessions(&stage).len();
    let empty = stage.write("empty.txt", " \n");
    for refused in [
        stage.run(&["run", "", "--model", &model]),
        stage.run(&["run", " \n", "--model", &model]),
        stage.run(&["run", "--mission-file", &empty, "--model", &model]),
        stage.run(&["run", "--mission-file", "missing", "--model", &model]),
        stage.run(&["run", "--model", &model]),
        piped(&["run", "-", "--model", &model], ""),
        piped(&["ask", &session, "-"], "\n"),
    ] {
        assert_eq!(refused.code, Some(2), "{}", refused.errors);
    }
    assert_eq!(sessions(&stage).len(), before);
}

#[test]
fn without_a_command_it_is_a_conversation_with_the_same_options() {
    let stage = stage();
    let model = scripted(&stage, &replies());
    for options in
        [&["--model", &model][..], &["--model", &model, "--quiet"], &["--quiet", "--model", &model]]
    {
        let terminal = Pty::start(&stage, options, 80, 30);
        terminal.wait_for("/help lists commands");
        leave(terminal);
    }
    // Options that no conversation has are refused as before.
    let terminal = Pty::start(&stage, &["--modle", &model], 80, 30);
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(2), "{screen}");
    assert!(screen.contains("--modle"), "{screen}");
    let ran = stage.run(&["--model", &model]);
    assert_eq!(ran.code, Some(2), "nobody is there to talk: {}", ran.errors);
}

#[test]
fn the_model_knows_what_it_said_before_it_was_interrupted() {
    for (provider, key) in PROVIDERS {
        let stage = stage().with_variable(key, "key");
        let model = Model::new(provider, [Said::Hangs("The seam is"), Said::Text("12 cm long.")]);
        let name = format!("{provider}:{MODEL}");
        let arguments = ["chat", "--model", &name, "--base-url", &model.url];
        let terminal = Pty::start(&stage, &arguments, 100, 40);
        terminal.wait_for("/help lists commands");
        terminal.send("Measure\r");
        // The last word is shown once it has ended.
        terminal.wait_for("The seam");
        terminal.send(CTRL_C);
        terminal.wait_for("A message continues the conversation");
        // D11: what the provider bills is charged at its estimate.
        enter(&terminal, "/cost", "input tokens");
        let text = terminal.everything();
        let charged = text.lines().rev().find_map(|line| line.strip_prefix("input tokens")).unwrap();
        assert_ne!(charged.trim(), "0", "{text}");
        // D29: one message is not "1 messages".
        enter(&terminal, "/rewind 9", "the conversation has 1 message;");
        terminal.send("And?\r");
        terminal.wait_for("12 cm long.");
        terminal.send("/exit\r");
        assert_eq!(terminal.finish().0, Some(0), "{provider}");
        let asked = model.asked();
        let again = &asked.last().unwrap().body;
        assert!(again.contains("The seam is") && again.contains("interrupted this answer"), "{again}");
        let shown = stage.run(&["show"]).worked();
        assert!(shown.contains("agent: The seam is [interrupted]"), "{shown}");
    }
}
