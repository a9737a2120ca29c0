//! Several conversations in one directory, programs that were killed, and windows that stay open over a rewind.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::stand_in::StandIn;
use crate::stage::{Stage, scripted};

/// Reports a prompt and a call that begins, from a program that ends right after it.
fn begin_and_end(program: &StandIn<'_>) {
    let (stage, loom) = (program.stage, program.stage.path("loom"));
    let prompt = json!({"prompt": "Press it", "prompt_id": "prompt Press it"});
    let events = [("UserPromptSubmit", prompt), ("PreToolUse", open_call("sleep 9"))];
    let events = events.map(|(name, more)| {
        let path = stage.path(&format!("{name}.json"));
        fs::write(&path, program.event(name, more)).unwrap();
        path
    });
    // Under this name it is a program, and not a shell through which one starts hooks.
    fs::copy("/bin/sh", &loom).unwrap();
    let hook = stage.command(&["guard", "hook", "claude-code"]);
    let mut command = Command::new(loom);
    let script = "for event in \"$first\" \"$second\"; do \"$@\" < \"$event\" || exit 1; done; exit 0";
    command.args(["-c", script, "loom"]).arg(hook.get_program()).args(hook.get_args());
    command.env("first", &events[0]).env("second", &events[1]).current_dir(program.files());
    for (name, value) in hook.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    assert!(command.env_remove("CLAUDE_PROJECT_DIR").status().unwrap().success());
}

fn open_call(command: &str) -> Value {
    json!({"tool_use_id": "open", "tool_name": "Bash", "tool_input": {"command": command}})
}

#[test]
fn no_files_are_moved_while_another_conversation_has_an_open_call() {
    let stage = Stage::new();
    let one = StandIn::new(&stage, "one");
    one.start();
    one.prompt("Mend it");
    let first = one.shell("echo one > a");
    one.stop("Mended.");
    let (session, point) = (stage.session(), format!("before:{}", one.call(&first)));
    let other = StandIn::new(&stage, "other");
    other.start();
    other.prompt("Iron it");
    other.report("PreToolUse", open_call("sleep 9"));
    fs::write(stage.path("files/half"), "half").unwrap();
    let beside = stage.session();
    assert_ne!(beside, session);

    let commands: [&[&str]; 2] =
        [&["rewind", &session, &point], &["restore", ".", "--from", &point, "--session", &session]];
    for command in commands {
        let refused = stage.run(command).failed();
        assert!(refused.contains("guard_busy") && refused.contains(&beside[24..]), "{refused}");
        assert_eq!(
            (stage.file("a").as_deref(), stage.file("half").as_deref()),
            (Some("one\n"), Some("half"))
        );
    }
    // What is only listed, and the conversation alone, is in nobody's way.
    stage.run(&["rewind", &session, &point, "--dry-run"]).worked_quietly();

    other.after(
        "open",
        "Bash",
        json!({"tool_input": {"command": "sleep 9"}, "tool_response": {"stdout": ""}}),
    );
    stage.run(&["rewind", &session, &point]).worked_quietly();
    assert_eq!((stage.file("a"), stage.file("half").as_deref()), (None, Some("half")), "only its own file");
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(stage.file("a").as_deref(), Some("one\n"));
}

#[test]
fn no_fork_begins_in_a_directory_where_a_call_is_open() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let elsewhere = stage.path("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    stage.run(&["run", "Sew", "--model", &model, "--workspace", elsewhere]).worked_quietly();
    let session = stage.session();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Mend it");
    program.report("PreToolUse", open_call("sleep 9"));

    let inside = stage.path("files/inside");
    let fork = ["fork", &session, "--workspace", inside.to_str().unwrap()];
    assert!(stage.run(&fork).failed().contains("guard_busy"));
    assert!(!inside.exists());
    stage.run(&[&fork[..], &["--force"]].concat()).worked_quietly();
    assert!(inside.exists());
}

#[test]
fn a_call_of_a_program_that_was_killed_is_closed_by_a_rewind() {
    for is_own in [true, false] {
        let stage = Stage::new();
        let one = StandIn::new(&stage, "one");
        one.start();
        one.prompt("Mend it");
        let first = one.shell("echo one > a");
        let (session, point) = (stage.session(), format!("before:{}", one.call(&first)));
        let other = StandIn::new(&stage, "other");
        let killed = if is_own {
            &one
        } else {
            other.start();
            other.prompt("Iron it");
            &other
        };
        begin_and_end(killed);
        stage.run(&["rewind", &session, &point]).worked_quietly();
        assert_eq!(stage.file("a"), None);
        let beside = stage.run(&["ls", "--json"]).worked_quietly();
        let sessions = beside.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let logs = sessions.map(|session| {
            stage.run(&["log", session["session"].as_str().unwrap(), "--all"]).worked_quietly()
        });
        let logs: String = logs.collect();
        assert!(logs.contains("Bash has no reported end; its files are those of now"), "{is_own}: {logs}");
    }
}

#[test]
fn a_call_whose_result_is_in_the_transcript_is_closed_by_a_rewind() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Mend it");
    let first = program.shell("echo one > a");
    let (session, point) = (stage.session(), format!("before:{}", program.call(&first)));
    program.report("PreToolUse", open_call("sleep 9"));
    assert!(stage.run(&["rewind", &session, &point]).failed().contains("guard_busy"));
    // The person has pressed Esc. The program says so only in its transcript.
    let result =
        json!({"type": "tool_result", "tool_use_id": "open", "is_error": true, "content": "interrupted"});
    let record = json!({"type": "user", "uuid": "r1", "message": {"role": "user", "content": [result]}});
    fs::write(program.transcript(), format!("{record}\n")).unwrap();
    stage.run(&["rewind", &session, &point]).worked_quietly();
    assert_eq!((stage.file("a"), program.gaps()), (None, Vec::<String>::new()));
}

#[test]
fn an_open_window_learns_of_a_rewind_with_its_next_prompt() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Mend it");
    program.shell("echo one > a");
    let second = program.shell("echo two > b; echo more >> a");
    program.stop("Mended.");
    let (session, point) = (stage.session(), format!("before:{}", program.call(&second)));
    let prompt = |text: &str| {
        let ran = program.try_report("UserPromptSubmit", json!({"prompt": text, "prompt_id": text}));
        ran.worked()
    };
    // A rewind that was undone changes nothing for it.
    stage.run(&["rewind", &session, &point]).worked_quietly();
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(prompt("And now"), "");
    program.stop("Nothing to do.");

    stage.run(&["rewind", &session, &point]).worked_quietly();
    let output: Value = serde_json::from_str(&prompt("Again")).unwrap();
    let output = &output["hookSpecificOutput"];
    assert_eq!(output["hookEventName"], "UserPromptSubmit");
    let context = output["additionalContext"].as_str().unwrap();
    assert!(context.contains("before the call Bash") && context.contains(": a, b."), "{context}");
    assert_eq!(prompt("Once more"), "", "it learns of it once");
    let log = stage.run(&["log", &session]).worked_quietly();
    assert!(log.contains("was not cut by the rewind"), "{log}");
}
