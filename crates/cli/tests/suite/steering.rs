//! What a person types while the agent works, and commands of the person.

use serde_json::{Value, json};

use crate::chat::{CTRL_D, ENTER, enter, leave, prompt, say, stage};
use crate::pty::Pty;
use crate::stage::{Stage, scripted, wait_until};

const ESCAPE: &str = "\u{1b}";

/// Replies with a command that waits until a file exists.
fn slow() -> Value {
    let command = "touch begun; while ! test -e go; do sleep 0.05; done";
    json!([
        {"text": "Wait.", "call": [{"name": "shell", "arguments": {"command": command}}]},
        {"text": "First."},
        {"text": "Second."},
    ])
}

/// Starts a conversation, and sends a message whose command waits.
fn working(stage: &Stage, columns: u16) -> Pty {
    let model = scripted(stage, &slow());
    let terminal = Pty::start(stage, &["chat", "--model", &model], columns, 30);
    terminal.wait_for("/help lists commands");
    prompt(&terminal);
    terminal.send(&format!("Take your time{ENTER}"));
    wait_until("the command", || stage.path("files/begun").exists());
    terminal
}

fn go(stage: &Stage) {
    std::fs::write(stage.path("files/go"), "").unwrap();
}

/// Returns the messages of the user, with the number of their evaluation.
fn messages(stage: &Stage) -> Vec<(usize, String)> {
    let shown = stage.json(&["show"]);
    let evaluations: Vec<&Value> = shown["evaluations"].as_array().unwrap().iter().collect();
    let place = |message: &Value| {
        evaluations.iter().position(|one| one["evaluation"] == message["evaluation_id"]).unwrap_or(99)
    };
    let messages = shown["messages"].as_array().unwrap().iter();
    let of_user = messages.filter(|message| message["message"]["role_hint_for_llm"] == "user");
    of_user.map(|message| (place(message), message["message"]["content"].to_string())).collect()
}

#[test]
fn a_line_that_is_typed_while_the_agent_works_is_read_at_its_next_step() {
    for columns in [40, 100] {
        let stage = stage();
        let terminal = working(&stage, columns);
        terminal.send("Skip the slow tetss");
        terminal.wait_for_screen("next> Skip the slow tetss");
        terminal.send("\u{7f}\u{7f}\u{7f}sts");
        terminal.wait_for_screen("next> Skip the slow tests");
        terminal.send(ENTER);
        terminal.wait_for("queued: Skip the slow tests");
        go(&stage);
        terminal.wait_for("First.");
        prompt(&terminal);
        assert!(!terminal.screen().contains("next> "), "{}", terminal.screen());
        leave(terminal);
        let messages = messages(&stage);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[1].1.contains("Skip the slow tests"), "{messages:?}");
        assert_eq!(messages[0].0, messages[1].0, "it is part of the same turn: {messages:?}");
    }
}

#[test]
fn a_line_that_is_not_complete_begins_the_next_message() {
    let stage = stage();
    let terminal = working(&stage, 80);
    terminal.send("and the");
    terminal.wait_for_screen("next> and the");
    go(&stage);
    terminal.wait_for("First.");
    wait_until("the prompt", || terminal.screen().trim_end().ends_with("> and the"));
    terminal.send(&format!(" pins?{ENTER}"));
    terminal.wait_for("Second.");
    terminal.wait_for("turn 2");
    leave(terminal);
    assert!(messages(&stage)[1].1.contains("and the pins?"));
}

#[test]
fn escape_interrupts_the_turn_and_a_command_that_waits_is_not_run() {
    let stage = stage();
    let terminal = working(&stage, 80);
    terminal.send(&format!("/cost{ENTER}"));
    terminal.wait_for("queued: /cost (after this turn)");
    terminal.send(ESCAPE);
    terminal.wait_for("interrupted. A message continues the conversation");
    wait_until("the draft", || terminal.screen().trim_end().ends_with("> /cost"));
    assert!(!terminal.everything().contains("answers of the model"), "{}", terminal.everything());
    terminal.send(ENTER);
    terminal.wait_for("answers of the model");
    say(&terminal, "Something else", "First.", 2);
    leave(terminal);
    assert_eq!(stage.file("begun"), None, "the command is rolled back");
}

#[test]
fn what_is_typed_before_a_question_does_not_answer_it() {
    let stage = stage();
    let call = json!([{"name": "write_file", "arguments": {"path": "approved", "text": "yes\n"}}]);
    let mut replies = slow();
    replies[1] = json!({"text": "I ask.", "call": call});
    replies[2] = json!({"text": "Not done."});
    let model = scripted(&stage, &replies);
    let terminal = Pty::start(&stage, &["chat", "--model", &model, "--approve", "write_file"], 80, 30);
    terminal.wait_for("/help lists commands");
    prompt(&terminal);
    terminal.send(&format!("Do it{ENTER}"));
    wait_until("the command", || stage.path("files/begun").exists());
    terminal.send("y");
    terminal.wait_for_screen("next> y");
    go(&stage);
    terminal.wait_for("allow it? [y/n");
    terminal.send(&format!("n no{ENTER}"));
    terminal.wait_for("Not done.");
    assert_eq!(stage.file("approved"), None);
    wait_until("the prompt", || terminal.screen().trim_end().ends_with("> y"));
    terminal.send("\u{15}");
    leave(terminal);
}

#[test]
fn a_question_that_is_left_open_says_how_to_return_to_it() {
    let stage = stage();
    let call = json!([{"name": "shell", "arguments": {"command": "touch approved"}}]);
    let model = scripted(&stage, &json!([{"text": "I ask.", "call": call}, {"text": "Done."}]));
    let terminal = Pty::start(&stage, &["chat", "--model", &model, "--approve", "ask"], 80, 30);
    terminal.wait_for("/help lists commands");
    prompt(&terminal);
    terminal.send(&format!("Do it{ENTER}"));
    terminal.wait_for("allow it? [y/n");
    terminal.send(&format!("q{ENTER}"));
    terminal.wait_for("left waiting; `/resume` asks again");
    assert!(!terminal.everything().contains("backstitch approve"), "{}", terminal.everything());
    prompt(&terminal);
    terminal.send(&format!("/resume{ENTER}"));
    terminal.wait_for_times("allow it? [y/n", 2);
    terminal.send(&format!("y{ENTER}"));
    terminal.wait_for("Done.");
    leave(terminal);
    assert!(stage.file("approved").is_some());
}

#[test]
fn a_command_of_the_person_is_recorded_and_its_output_goes_with_the_next_message() {
    let stage = stage().with_variable("OPENAI_API_KEY", "sk-secret-of-the-person");
    let replies = json!([{"text": "One."}, {"text": "Two."}, {"text": "Three."}]);
    let model = scripted(&stage, &replies);
    let terminal = Pty::start(&stage, &["chat", "--model", &model], 80, 30);
    terminal.wait_for("/help lists commands");
    // Before the session exists, and while it does.
    enter(&terminal, "!echo seven; echo $OPENAI_API_KEY; printf '\\033[2J'", "exit code 0");
    assert!(!terminal.raw().contains("\u{1b}[2J"), "{}", terminal.raw());
    say(&terminal, "What is that?", "One.", 1);
    enter(&terminal, "!echo made > made.txt; echo wrong >&2; exit 3", "exit code 3");
    assert_eq!(stage.file("made.txt").as_deref(), Some("made\n"), "it runs in the directory of the agent");
    say(&terminal, "And that?", "Two.", 2);
    say(&terminal, "Thanks", "Three.", 3);
    enter(&terminal, "!", "type a command after the `!`");
    // It does not wait for a process in the background.
    enter(&terminal, "!sleep 120 < /dev/null & exit 4", "exit code 4");
    leave(terminal);
    let messages = messages(&stage);
    assert!(messages[0].1.contains("seven") && messages[0].1.contains("echo seven"), "{messages:?}");
    assert!(messages[1].1.contains("wrong") && messages[1].1.contains("exit code 3"), "{messages:?}");
    assert!(!messages[2].1.contains("exit code"), "an output is sent once: {messages:?}");
    let log = stage.run(&["log"]).worked();
    assert!(log.contains("person command: echo seven") && log.contains("exit code 3"), "{log}");
    assert!(!String::from_utf8_lossy(&stage.stored_bytes()).contains("sk-secret"), "keys are not recorded");
}

#[test]
fn the_prompt_is_drawn_again_after_the_process_was_stopped() {
    let stage = stage();
    let model = scripted(&stage, &json!([{"text": "One."}]));
    let chat = stage.command(&["chat", "--model", &model]);
    // A shell with job control, as on a terminal.
    let words: Vec<String> = std::iter::once(chat.get_program())
        .chain(chat.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let script = format!("set -m; {}; echo STOPPED; read go; fg > /dev/null; echo LEFT", words.join(" "));
    let terminal = Pty::start_shell(&stage, &script, 80, 30);
    terminal.wait_for("/help lists commands");
    prompt(&terminal);
    terminal.send("Cou");
    wait_until("the draft", || terminal.screen().trim_end().ends_with("> Cou"));
    terminal.send("\u{1a}");
    terminal.wait_for_screen("STOPPED");
    terminal.send(ENTER);
    wait_until("the prompt", || terminal.screen().trim_end().ends_with("> Cou"));
    terminal.send(&format!("nt{ENTER}"));
    terminal.wait_for("One.");
    prompt(&terminal);
    assert_eq!(terminal.everything().matches("> Count").count(), 1, "{}", terminal.everything());
    terminal.send(CTRL_D);
    terminal.wait_for("LEFT");
    assert_eq!(terminal.finish().0, Some(0));
}

#[test]
fn an_answer_that_reached_its_limit_is_continued_in_a_conversation() {
    let stage = stage();
    let replies = json!([{"text": "The seam is ", "finish_reason": "length"}, {"text": "12 cm long."}]);
    let model = scripted(&stage, &replies);
    let terminal = Pty::start(&stage, &["chat", "--model", &model], 80, 30);
    terminal.wait_for("/help lists commands");
    say(&terminal, "Measure", "12 cm long.", 1);
    terminal.wait_for("the answer reached its limit; the model continues it");
    assert!(!terminal.everything().contains("--accept"), "{}", terminal.everything());
    leave(terminal);
}

#[test]
fn a_conversation_in_the_home_directory_is_refused_at_the_start() {
    let stage = stage();
    let home = crate::stage::text_of(&stage.path("files"));
    let stage = stage.with_variable("HOME", &home);
    let model = scripted(&stage, &json!([{"text": "One."}]));
    let (code, text) = Pty::start(&stage, &["chat", "--model", &model], 80, 30).finish();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("it is a home directory"), "{text}");
    assert!(!text.contains("/help lists commands"), "{text}");
}
