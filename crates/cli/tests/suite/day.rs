//! A day's work of a person at a pseudo-terminal.

use serde_json::json;

use crate::chat::{CTRL_C, ENTER, enter, leave, prompt, say, sessions, stage};
use crate::model::{MODEL, Model, Said};
use crate::pty::Pty;
use crate::stage::wait_until;

#[test]
fn a_person_works_for_a_day() {
    let editor = "sh -c 'sed s/asked/edited/ \"$0\" > \"$0.new\" && mv \"$0.new\" \"$0\"'";
    let stage = stage().with_variable("VISUAL", editor).with_variable("OPENAI_API_KEY", "key");
    let shell = |text: &'static str, command: &str| Said::Call(text, "shell", json!({"command": command}));
    let answers = [
        Said::Call("I write it down.", "write_file", json!({"path": "needles.txt", "text": "seven\n"})),
        Said::Text("Seven needles."),
        Said::Text("Eight pins."),
        Said::Text("Nine buttons."),
        shell("I touch it.", "touch asked"),
        Said::Text("It is touched."),
        shell("I remove it.", "rm needles.txt"),
        Said::Text("It is kept."),
        shell("I wait.", "touch begun; sleep 60"),
        Said::Text("Something else, then."),
        // The process that asks for this is killed, and the next one gets the answer after it.
        Said::Hangs(""),
        Said::Text("It is late."),
        Said::Text("Something else, then."),
    ];
    let model = Model::new("openai-chat", answers);
    let name = format!("openai-chat:{MODEL}");

    // Start, and three follow-ups.
    let arguments = ["chat", "--model", &name, "--base-url", &model.url, "--approve", "shell"];
    let mut terminal = Pty::start(&stage, &arguments, 100, 40);
    say(&terminal, "Count the needles", "Seven needles.", 1);
    say(&terminal, "And the pins?", "Eight pins.", 2);
    say(&terminal, "And the buttons?", "Nine buttons.", 3);

    // Approve with an edit.
    terminal.send(&format!("Touch it{ENTER}"));
    terminal.wait_for("  | touch asked");
    terminal.wait_for("allow it? [y/n/e/a/p/v/q/?]");
    terminal.send(&format!("e{ENTER}"));
    terminal.wait_for("  | touch edited");
    terminal.wait_for_times("allow it? [y/n/e/a/p/v/q/?]", 2);
    terminal.send(&format!("y{ENTER}"));
    terminal.wait_for("It is touched.");
    terminal.wait_for("turn 4");
    assert!(stage.file("edited").is_some() && stage.file("asked").is_none());

    // Deny.
    prompt(&terminal);
    terminal.send(&format!("Remove the needles{ENTER}"));
    terminal.wait_for_times("allow it? [y/n/e/a/p/v/q/?]", 3);
    terminal.send(&format!("n they are needed{ENTER}"));
    terminal.wait_for("It is kept.");
    terminal.wait_for("turn 5");
    assert_eq!(stage.file("needles.txt").as_deref(), Some("seven\n"));

    // Interrupt, and continue with something else.
    prompt(&terminal);
    terminal.send(&format!("Take your time{ENTER}"));
    terminal.wait_for("touch begun; sleep 60");
    terminal.wait_for("allow it? [y/n/e/a/v/q/?]");
    terminal.send(&format!("y{ENTER}"));
    wait_until("the command", || stage.path("files/begun").exists());
    terminal.send(CTRL_C);
    terminal.wait_for("interrupted. A message continues the conversation");
    say(&terminal, "Something else", "Something else, then.", 7);
    assert!(stage.file("begun").is_none(), "the interrupted call was rolled back");

    // Kill the terminal, and resume.
    terminal.send(&format!("Work late{ENTER}"));
    wait_until("the request", || model.asked().last().is_some_and(|asked| asked.body.contains("Work late")));
    terminal.kill();
    let session = sessions(&stage).remove(0);
    let terminal = Pty::start(&stage, &["chat", &session], 100, 40);
    terminal.wait_for("Resume it now? [Y/n]");
    terminal.send(ENTER);
    terminal.wait_for("It is late.");
    terminal.wait_for_times("turn 8", 2);

    // Rewind two turns, and ask again.
    enter(&terminal, "/rewind 2", "the conversation is as before: Something else");
    say(&terminal, "Again, please", "Something else, then.", 7);

    // Fork, export, delete.
    enter(&terminal, "/fork", "forked into");
    leave(terminal);
    assert_eq!(sessions(&stage).len(), 2);
    let bundle = stage.path("day.bundle");
    stage.run(&["export", &session, "--bundle", bundle.to_str().unwrap()]).worked();
    let markdown = stage.run(&["export", &session, "--markdown"]).worked();
    assert!(markdown.contains("Seven needles.") && !markdown.contains("It is late."), "{markdown}");
    stage.run(&["rm", &session, "--with-forks", "--yes"]).worked();
    assert!(sessions(&stage).is_empty());
    assert_eq!(stage.file("needles.txt").as_deref(), Some("seven\n"));
}
