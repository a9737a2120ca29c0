//! Continuing what was interrupted, names of sessions, and the inbox.

use serde_json::{Value, json};

use crate::chat::{CTRL_C, ENTER, asking, leave, prompt, say, sessions, stage};
use crate::model::{Model, Said};
use crate::pty::Pty;
use crate::stage::{Stage, last_line, scripted, text_of, wait_until};

const CTRL_O: &str = "\u{f}";
const ESCAPE: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";

/// Starts a session, and kills its process inside of a command, which ends at once when it runs again.
fn killed(stage: &Stage, mission: &str) {
    // Beside the workspace, whose files the next process restores.
    let again = stage.path("again");
    let _ = std::fs::remove_file(&again);
    let command = "test -e ../again && exit; touch begun; sleep 60";
    let slow = json!([
        {"text": "Wait.", "call": [{"name": "shell", "arguments": {"command": command}}]},
        {"text": "Done late."},
    ]);
    let model = scripted(stage, &slow);
    let mut child = stage
        .command(&["run", mission, "--model", &model, "--shell-effect", "workspace"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command", || stage.path("files/begun").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(again, "").unwrap();
}

/// Runs a session that answers.
fn finished(stage: &Stage, mission: &str, more: &[&str]) -> String {
    let file =
        stage.write("quick.json", &json!({"reply": [{"text": "Done."}, {"text": "More."}]}).to_string());
    let model = format!("scripted:{file}");
    let arguments = ["run", mission, "--model", &model, "--json"];
    let ran = stage.run(&[&arguments[..], more].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    last_line(&ran.output)["session"].as_str().unwrap().to_owned()
}

/// Runs a session that waits for approval.
fn waiting(stage: &Stage, mission: &str) {
    let call = json!({"name": "shell", "arguments": {"command": "touch hem"}});
    let replies = json!({"reply": [{"text": "I ask.", "calls": [call]}, {"text": "Sewn."}]});
    let model = format!("scripted:{}", stage.write("asks.json", &replies.to_string()));
    let ran = stage.run(&["run", mission, "--model", &model, "--approve", "ask"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn a_name_leads_to_its_session_wherever_an_id_does() {
    let stage = Stage::new();
    let first = finished(&stage, "Mend the coat", &["--name", "coat"]);
    let second = finished(&stage, "Sew a hat", &[]);
    assert_eq!(stage.json(&["show", "coat"])["session"], first.as_str());
    assert!(stage.run(&["ls"]).worked().contains("coat  Mend the coat"));
    assert!(stage.run(&["log", "coat"]).worked().contains("named coat"));
    // Another session cannot take it, and nothing is stored for one that tries.
    let taken = stage.run(&["name", &second, "coat"]).failed();
    assert!(taken.contains("has the name coat") && taken.contains("--remove"), "{taken}");
    let model = scripted(&stage, &json!([{"text": "No."}]));
    assert_eq!(stage.run(&["run", "More", "--model", &model, "--name", "coat"]).code, Some(1));
    assert_eq!(sessions(&stage).len(), 2);
    let tagged = stage.json(&["tag", &second, "team=a", "customer=ada"]);
    assert_eq!(tagged["tags"], json!({"team": "a", "customer": "ada"}));
    let tagged = stage.json(&["tag", &second, "team=b", "--remove", "customer", "--remove", "odd"]);
    assert_eq!(tagged["tags"], json!({"team": "b"}));
    assert!(stage.run(&["ls", "--json", "--tag", "team=b"]).worked().contains(&second));
    assert!(!stage.run(&["ls", "--json", "--tag", "team=a"]).worked().contains(&second));
    assert!(stage.run(&["log", &second]).worked().contains("tagged team=b"));
    assert!(stage.run(&["tag", &second, "guard=codex"]).called_wrongly().contains("guard"));
    assert!(stage.run(&["tag", &second, "team"]).called_wrongly().contains("KEY=VALUE"));
    let named = stage.json(&["name", &second, "hat"]);
    assert_eq!((&named["session"], &named["name"]), (&json!(second), &json!("hat")));
    assert_eq!(stage.json(&["ask", "hat", "And?"])["text"], "More.");
    assert!(stage.run(&["name", "hat", "--remove"]).worked().contains("has no name"));
    assert!(stage.run(&["show", "hat"]).failed().contains("there is no session with the name hat"));
    for (wrong, reason) in
        [("4f2a", "after f"), ("two words", "write `-`"), ("--x", "--x"), ("head", "points")]
    {
        let refused = stage.run(&["name", "coat", wrong]).called_wrongly();
        assert!(refused.contains(reason), "{wrong}: {refused}");
    }
    assert_eq!(stage.run(&["rm", "coat", "--yes"]).code, Some(0));
    assert_eq!(sessions(&stage), [second]);
}

#[test]
fn resume_continues_the_interrupted_session_and_not_the_finished_one() {
    let stage = Stage::new();
    killed(&stage, "Take your time");
    finished(&stage, "Sew a hat", &[]);
    assert_eq!(stage.run(&["resume"]).worked_quietly(), "Done late.\n");
    // Nothing is open any more, so the answer of the latest session is printed.
    assert_eq!(stage.run(&["resume"]).worked_quietly(), "Done.\n");
}

#[test]
fn all_interrupted_sessions_are_resumed_and_no_other() {
    let stage = Stage::new();
    let none = stage.run(&["resume", "--all-interrupted"]);
    assert_eq!(none.code, Some(1), "there is no store yet: {none:?}");
    killed(&stage, "One");
    std::fs::remove_file(stage.path("files/begun")).unwrap();
    killed(&stage, "Two");
    waiting(&stage, "Three");
    let first = stage.run(&["resume", "--all-interrupted", "--limit", "1", "--json"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let report = last_line(&first.output);
    let counts = |report: &Value| {
        ["interrupted", "answered", "waiting", "failed", "left"].map(|name| report[name].clone())
    };
    assert_eq!(counts(&report), [2, 1, 0, 0, 1].map(|count| json!(count)));
    let ended = first.output.lines().filter(|line| line.contains("\"event\":\"ended\"")).count();
    assert_eq!(ended, 1, "{}", first.output);
    let second = stage.run(&["resume", "--all-interrupted"]);
    assert!(second.output.contains("1 of 1 answered, 0 wait, 0 failed"), "{second:?}");
    assert!(stage.run(&["resume", "--all-interrupted"]).output.contains("nothing was interrupted"));
}

#[test]
fn a_new_conversation_says_what_was_interrupted_here_and_continues_it_at_a_key() {
    let stage = stage().with_variable("OPENAI_API_KEY", "key");
    let answers = [
        Said::Call("Wait.", "write_file", json!({"path": "note.txt", "text": "x"})),
        Said::Hangs(""),
        Said::Text("Answered late."),
    ];
    let model = Model::new("openai-chat", answers);
    let mut terminal = asking(&stage, &model, 80);
    assert!(!terminal.everything().contains("Ctrl-O continues:"));
    prompt(&terminal);
    terminal.send(&format!("Count the needles{ENTER}"));
    terminal.wait_for("+ write_file");
    wait_until("the last request", || model.asked().len() >= 2);
    terminal.kill();
    for columns in [40, 120] {
        let terminal = asking(&stage, &model, columns);
        terminal.wait_for("Ctrl-O continues: Count the needles (interrupted, now)");
        leave(terminal);
    }
    let terminal = asking(&stage, &model, 80);
    terminal.wait_for("Ctrl-O continues:");
    prompt(&terminal);
    terminal.send(&format!("half a line{CTRL_O}"));
    terminal.wait_for("Answered late.");
    terminal.wait_for("turn 1");
    // What was typed before the key is still there.
    wait_until("the prompt", || terminal.screen().trim_end().ends_with("> half a line"));
    terminal.send("\u{15}");
    leave(terminal);
    assert_eq!(sessions(&stage).len(), 1);
    let terminal = asking(&stage, &model, 80);
    prompt(&terminal);
    terminal.send(CTRL_O);
    terminal.wait_for("nothing here waits to be continued");
    leave(terminal);
}

#[test]
fn the_latest_conversation_of_the_directory_is_continued() {
    let stage = stage();
    let model = scripted(&stage, &json!([{"text": "One."}, {"text": "Two."}]));
    let terminal = Pty::start(&stage, &["-c", "--model", &model], 80, 30);
    terminal.wait_for("there is no conversation here yet");
    say(&terminal, "Count", "One.", 1);
    leave(terminal);
    // A newer session of another directory is not continued.
    let elsewhere = text_of(&stage.path("elsewhere"));
    finished(&stage, "Elsewhere", &["--workspace", &elsewhere]);
    let terminal = Pty::start(&stage, &["-c"], 80, 30);
    terminal.wait_for("> Count");
    say(&terminal, "Again", "Two.", 2);
    leave(terminal);
    assert_eq!(sessions(&stage).len(), 2);
    let piped = stage.run(&["-c"]);
    assert_eq!(piped.code, Some(2));
    assert!(piped.errors.contains("`chat` needs a terminal"), "{}", piped.errors);
}

#[test]
fn a_conversation_is_chosen_from_a_list() {
    for columns in [40, 100] {
        let stage = stage();
        finished(&stage, "Mend the coat", &["--name", "coat"]);
        finished(&stage, "Sew a \u{1b}[2Jhat", &[]);
        finished(&stage, "Hem the trousers", &[]);
        let start = || {
            let terminal = Pty::start(&stage, &["chat", "--pick"], columns, 30);
            terminal.wait_for_screen("1 of 3");
            terminal
        };
        let terminal = start();
        assert!(!terminal.raw().contains("\u{1b}[2Jhat"), "{}", terminal.raw());
        terminal.send(ESCAPE);
        let (code, text) = terminal.finish();
        assert_eq!(code, Some(0));
        assert!(!text.contains("trousers"), "the list is removed: {text}");
        // The one that was used last is first.
        let terminal = start();
        terminal.send(DOWN);
        terminal.wait_for_screen("2 of 3");
        terminal.send(ENTER);
        terminal.wait_for("> Sew a");
        leave(terminal);
        let terminal = start();
        terminal.send("coa");
        terminal.wait_for_screen("1 of 1");
        terminal.send(ENTER);
        terminal.wait_for("> Mend the coat");
        leave(terminal);
    }
}

#[test]
fn resume_asks_which_of_several_sessions() {
    let stage = stage();
    waiting(&stage, "Mend the coat");
    waiting(&stage, "Sew a hat");
    let terminal = Pty::start(&stage, &["resume"], 80, 30);
    terminal.wait_for_screen("Resume which session?");
    terminal.send("coat");
    terminal.wait_for_screen("1 of 1");
    terminal.send(ENTER);
    terminal.wait_for("touch hem");
    terminal.wait_for("[y");
    terminal.send(&format!("y{ENTER}"));
    terminal.wait_for("Sewn.");
    assert_eq!(terminal.finish().0, Some(0));
    let terminal = Pty::start(&stage, &["resume"], 80, 30);
    // What is typed before a question does not answer it.
    terminal.wait_for("[y");
    terminal.send(CTRL_C);
    terminal.finish();
    // A terminal without control sequences gets numbers.
    waiting(&stage, "Hem the trousers");
    let dumb = stage.with_variable("TERM", "dumb");
    let terminal = Pty::start(&dumb, &["resume"], 80, 30);
    terminal.wait_for("Resume which session? [1-2, or Enter for none]");
    terminal.send(ENTER);
    terminal.wait_for("nothing was resumed");
    assert_eq!(terminal.finish().0, Some(0));
}

#[test]
fn the_inbox_has_everything_that_waits_in_all_projects() {
    let stage = Stage::new();
    assert!(stage.run(&["inbox"]).worked().contains("nothing waits for you"));
    finished(&stage, "Sew a hat", &[]);
    assert!(stage.run(&["inbox"]).worked().contains("nothing waits for you"));
    waiting(&stage, "Mend the coat");
    killed(&stage, "Take your time");
    // A project with a store of its own.
    std::fs::create_dir(stage.path("other")).unwrap();
    let call = json!({"name": "shell", "arguments": {"command": "touch elsewhere"}});
    let replies = json!({"reply": [{"text": "I ask.", "calls": [call]}]}).to_string();
    let model = format!("scripted:{}", stage.write("other.json", &replies));
    let binary = env!("CARGO_BIN_EXE_backstitch");
    let other = std::process::Command::new(binary)
        .args(["run", "Elsewhere", "--model", &model, "--approve", "ask"])
        .current_dir(stage.path("other"))
        .env("XDG_CONFIG_HOME", stage.path("config"))
        .env("XDG_STATE_HOME", stage.path("state"))
        .env_remove("BACKSTITCH_STORE")
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(3), "{other:?}");

    let shown = stage.run(&["inbox"]).worked();
    for text in
        ["Mend the coat", "touch hem", "Take your time", "interrupted", "Elsewhere", "touch elsewhere"]
    {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!stage.run(&["inbox", "--here"]).worked().contains("Elsewhere"));
    // Prose is broken between words, commands are whole.
    let (_, narrow) = Pty::start(&stage, &["inbox"], 60, 60).finish();
    let is_prose = |line: &&str| !line.starts_with("      ") && !line.contains("backstitch");
    assert!(narrow.lines().filter(is_prose).all(|line| line.chars().count() <= 60), "{narrow}");
    let lines = stage.run(&["inbox", "--json"]).worked();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let of = |mission: &str| lines.iter().find(|line| line["mission"] == mission).unwrap();
    let coat = of("Mend the coat");
    assert_eq!(coat["decisions"][0]["arguments"]["command"], "touch hem");
    assert_eq!(coat["reason"], "approval");
    let commands =
        |line: &Value| -> Vec<String> { serde_json::from_value(line["commands"].clone()).unwrap() };
    assert_eq!(commands(coat).len(), 3, "approve, deny, resume: {coat}");
    assert_eq!(commands(of("Take your time")).len(), 1);
    let elsewhere = of("Elsewhere");
    assert!(elsewhere["project"].as_str().unwrap().ends_with("/other"), "{elsewhere}");
    // A printed command can be executed unchanged, from anywhere.
    let approve = commands(elsewhere).remove(0).replacen("backstitch", binary, 1);
    let done = std::process::Command::new("sh").args(["-c", &approve]).output().unwrap();
    assert!(done.status.success(), "{approve}: {done:?}");
}

#[test]
fn commands_take_the_latest_session() {
    let stage = Stage::new();
    let write = json!({"name": "write_file", "arguments": {"path": "note.txt", "text": "seven\n"}});
    let model = scripted(&stage, &json!([{"text": "I write.", "calls": [write]}, {"text": "Done."}]));
    stage.run(&["run", "Count", "--model", &model]).worked_quietly();
    assert!(stage.run(&["diff"]).worked().contains("+seven"));
    assert!(stage.run(&["diff", "start", "head", "--names"]).worked().contains("A note.txt"));
    assert!(stage.run(&["diff", "head"]).worked().contains("nothing differs"));
    assert!(stage.run(&["diff", "turn:1", "head", "start"]).called_wrongly().contains("two points"));
    assert_eq!(stage.run(&["request", "--json"]).code, Some(0));
    assert_eq!(stage.run(&["request", "1", "--json"]).code, Some(0));
    assert_eq!(stage.run(&["fork"]).code, Some(0));
    assert_eq!(stage.run(&["fork", &sessions(&stage)[0], "turn:1"]).code, Some(0));
    // What changes something without a question needs a name where nobody is there.
    for arguments in
        [&["approve"][..], &["deny", "--all"], &["rewind"], &["rewind", "turn:1"], &["fork", "turn:1"]]
    {
        let refused = stage.run(arguments).called_wrongly();
        assert!(refused.contains("only on a terminal"), "{arguments:?}: {refused}");
    }
    waiting(&stage, "Mend the coat");
    let mut terminal = Pty::start(&stage, &["approve"], 80, 30);
    assert_eq!(terminal.exit_code(), Some(0), "{}", terminal.everything());
    assert!(terminal.everything().contains("touch hem"), "{}", terminal.everything());
}

/// D29: nothing has interrupted a fork that nobody has driven.
#[test]
fn a_new_fork_is_new_until_it_is_driven() {
    let stage = stage();
    let write = json!({"name": "write_file", "arguments": {"path": "note.txt", "text": "seven\n"}});
    let model = scripted(&stage, &json!([{"text": "I write.", "calls": [write]}, {"text": "Done."}]));
    stage.run(&["run", "Count", "--model", &model]).worked_quietly();
    let first = stage.session();
    let forked = stage.run(&["fork", &first, "turn:1", "--json"]).worked_quietly();
    let fork = last_line(&forked)["session"].as_str().unwrap().to_owned();
    let entry = || {
        let listed = stage.run(&["ls", "--json"]).worked_quietly();
        let mut lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.find(|line| line["session"] == fork.as_str()).unwrap()
    };
    let listed = || entry()["status"].clone();
    assert_eq!(listed(), "new");
    // A name is not work.
    stage.run(&["name", &fork, "copy"]).worked_quietly();
    assert_eq!(listed(), "new");
    assert!(stage.run(&["ls"]).worked().contains("  new  "));
    assert!(stage.run(&["ls", "--status", "new"]).worked().contains("copy"));
    assert!(stage.run(&["ls", "--status", "interrupted"]).worked().contains("no session matches"));
    assert_eq!(stage.json(&["show", &fork])["status"]["status"], "new");
    assert!(stage.run(&["show", &fork]).worked().contains("(new)"));
    let inbox = stage.run(&["inbox"]).worked();
    assert!(inbox.contains(" new ") && !inbox.contains("interrupted"), "{inbox}");
    let resumed = stage.run(&["resume", "--all-interrupted"]);
    let said = format!("{}{}", resumed.output, resumed.errors);
    assert!(said.contains("nothing was interrupted"), "{said}");
    let terminal = Pty::start(&stage, &["chat", "--pick"], 100, 30);
    terminal.wait_for("Continue which conversation?");
    terminal.wait_for("new           copy");
    terminal.send(ESCAPE);
    assert!(!terminal.finish().1.contains("interrupted"));
    // In its own directory, a new conversation offers it.
    let directory = entry()["workspace"].as_str().unwrap().to_owned();
    let (program, store) = (env!("CARGO_BIN_EXE_backstitch"), stage.path("store/store.db"));
    let script =
        format!("cd {directory:?} && {program:?} --store {store:?} chat --sandbox off --model {model:?}");
    let terminal = Pty::start_shell(&stage, &script, 100, 30);
    terminal.wait_for("Ctrl-O continues: copy");
    terminal.wait_for("(new, ");
    leave(terminal);
    stage.run(&["resume", &fork]).worked_quietly();
    assert_eq!(listed(), "idle");
}

#[test]
fn before_the_first_session_there_is_nothing_to_list() {
    let stage = Stage::new();
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_backstitch"))
        .arg("ls")
        .current_dir(stage.path("files"))
        .env("XDG_CONFIG_HOME", stage.path("config"))
        .env("XDG_STATE_HOME", stage.path("state"))
        .env_remove("BACKSTITCH_STORE")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("there are no sessions yet"));
}
