//! Others work in the directory of a session that was killed in a call: what the call changed is restored, and what others
//! changed later stays.
#![cfg(target_os = "linux")]

use std::os::unix::fs::MetadataExt as _;

use serde_json::{Value, json};

use crate::command::Ran;
use crate::pty::Pty;
use crate::stage::{Stage, last_line, scripted, wait_until};

/// Nanoseconds after the end of a call in which a change is doubtful.
const MARGIN: i64 = 20_000_000;

/// Returns when the processes of the killed call were dead, and the runtime, by the clock of the files.
fn dead_since(stage: &Stage) -> Option<i64> {
    let session = std::fs::read_dir(stage.path("store/calls")).ok()?.flatten().next()?.path();
    let dead = std::fs::read_dir(session).ok()?.flatten().map(|file| {
        let times: Value = serde_json::from_slice(&std::fs::read(file.path()).ok()?).ok()?;
        times["dead"].as_i64()
    });
    let dead: Vec<i64> = dead.collect::<Option<_>>()?;
    dead.into_iter().max()
}

/// Runs a command as the call of a session, kills the runtime while it runs, and waits until everything of it is dead. Returns the
/// session, and that moment.
fn kill_in_call(stage: &Stage, command: &str, effect: &[&str]) -> (String, i64) {
    let call = json!({"name": "shell", "arguments": {"command": command}});
    let model = scripted(stage, &json!([{"calls": [call]}, {"text": "Done."}]));
    let mut child = stage.command(&[&["run", "Do it", "--model", &model], effect].concat()).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let mut dead = None;
    wait_until("the end of the call", || {
        dead = dead_since(stage);
        dead.is_some()
    });
    (stage.session(), dead.unwrap())
}

/// Writes a file so much later than a moment that it is certainly not a change before it.
fn write_after(stage: &Stage, moment: i64, name: &str, text: &str) {
    let path = stage.path("files").join(name);
    let is_later = |seconds: i64, nanoseconds: i64| seconds * 1_000_000_000 + nanoseconds > moment + MARGIN;
    wait_until("a later moment", || {
        // The directory changes each time, too.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, text).unwrap();
        let found = std::fs::metadata(&path).unwrap();
        is_later(found.ctime(), found.ctime_nsec()) && is_later(found.mtime(), found.mtime_nsec())
    });
}

fn resume(stage: &Stage, session: &str) -> Ran {
    let ran = stage.run(&["resume", session]);
    assert_eq!((ran.code, ran.output.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    ran
}

#[test]
fn the_work_of_another_session_and_later_edits_survive_a_resume() {
    // The call runs again by itself, or a person decides about it.
    for decision in [None, Some("retry"), Some("fail")] {
        let stage = Stage::new();
        for (name, text) in [("thesis.txt", "old\n"), ("draft.txt", "old\n")] {
            std::fs::write(stage.path("files").join(name), text).unwrap();
        }
        let command = "echo call > by_call.txt; echo call > draft.txt; \
            [ -e ../begun ] || { touch ../begun; sleep 60; }; true";
        let effect: &[&str] = if decision.is_none() { &["--shell-effect", "workspace"] } else { &[] };
        let (session, dead) = kill_in_call(&stage, command, effect);

        let write = json!({"name": "write_file", "arguments": {"path": "important.txt", "text": "work\n"}});
        let script = json!({"reply": [{"calls": [write]}, {"text": "Written."}]});
        let other = format!("scripted:{}", stage.write("other.json", &script.to_string()));
        assert_eq!(stage.run(&["run", "Write it", "--model", &other]).worked_quietly(), "Written.\n");
        write_after(&stage, dead, "thesis.txt", "mine\n");
        write_after(&stage, dead, "notes.txt", "new\n");

        let mut printed = String::new();
        if let Some(decision) = decision {
            let paused = stage.run(&["resume", &session, "--json"]);
            assert_eq!(paused.code, Some(3), "{paused:?}");
            let call = last_line(&paused.output)["call"].as_str().unwrap().to_owned();
            let decided = stage.run(&["resolve", &session, &call, decision]);
            assert_eq!(decided.code, Some(0), "{decided:?}");
            printed = decided.output + &decided.errors;
        }
        printed += &resume(&stage, &session).errors;

        let of_others = ["thesis.txt", "notes.txt", "important.txt"].map(|name| stage.file(name));
        let expected = ["mine\n", "new\n", "work\n"].map(|text| Some(text.to_owned()));
        assert_eq!(of_others, expected, "{decision:?}: {printed}");
        for name in ["thesis.txt", "notes.txt", "important.txt"] {
            let line = format!("left as it is: {name} (changed by others)");
            assert!(printed.contains(&line), "{decision:?}: {line}: {printed}");
        }
        assert!(printed.contains("removed   by_call.txt"), "{decision:?}: {printed}");
        let runs_again = decision != Some("fail");
        assert_eq!(stage.file("by_call.txt").is_some(), runs_again, "{decision:?}");
        assert_eq!(stage.file("draft.txt").as_deref(), Some(if runs_again { "call\n" } else { "old\n" }));

        // What others did does not become the session's by that.
        stage.run(&["rewind", &session, "start"]).worked_quietly();
        assert_eq!(["thesis.txt", "notes.txt", "important.txt"].map(|name| stage.file(name)), expected);
        assert_eq!((stage.file("by_call.txt"), stage.file("draft.txt").as_deref()), (None, Some("old\n")));
    }
}

/// A session that was killed after its call had removed a file, in a directory that others changed later: nothing shows who
/// removed the file.
fn with_doubtful_file() -> (Stage, String) {
    let stage = Stage::new();
    std::fs::write(stage.path("files/gone.txt"), "old\n").unwrap();
    let command = "[ -e ../begun ] || { rm gone.txt; touch ../begun; sleep 60; }";
    let (session, dead) = kill_in_call(&stage, command, &["--shell-effect", "workspace"]);
    write_after(&stage, dead, "other.txt", "new\n");
    (stage, session)
}

#[test]
fn a_session_waits_if_nothing_shows_who_changed_a_file() {
    for (choice, gone) in [("restore", Some("old\n")), ("keep", None)] {
        let (stage, session) = with_doubtful_file();
        for _ in 0..2 {
            let paused = stage.run(&["resume", &session, "--json"]);
            assert_eq!(paused.code, Some(3), "{paused:?}");
            let paused = last_line(&paused.output);
            assert_eq!(paused["outcome"], "paused", "{paused}");
            assert_eq!(paused["reason"], "files", "{paused}");
            assert_eq!(paused["waiting"][0]["files"], json!(["gone.txt"]), "{paused}");
        }
        assert_eq!((stage.file("gone.txt"), stage.file("other.txt").as_deref()), (None, Some("new\n")));
        let said = stage.run(&["resume", &session]).errors;
        assert!(said.contains("gone.txt") && said.contains("--files restore"), "{said}");

        let ran = stage.run(&["resume", &session, "--files", choice]);
        assert_eq!((ran.code, ran.output.as_str()), (Some(0), "Done.\n"), "{choice}: {ran:?}");
        assert_eq!(stage.file("gone.txt").as_deref(), gone, "{choice}: {ran:?}");
        assert_eq!(stage.file("other.txt").as_deref(), Some("new\n"), "{choice}: {ran:?}");
        let shown = stage.run(&["show", &session]).worked_quietly();
        let is_kept = shown.contains("its files were kept as they were found");
        assert_eq!(is_kept, choice == "keep", "{shown}");
    }
}

#[test]
fn a_terminal_asks_about_files_with_their_names() {
    let (stage, session) = with_doubtful_file();
    let terminal = Pty::start(&stage, &["resume", &session], 100, 40);
    terminal.wait_for("it is unknown whether the interrupted call or others changed these files");
    terminal.wait_for("gone.txt");
    terminal.wait_for("keep them as they are? [k/r/q/?]");
    terminal.send("r\r");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(stage.file("gone.txt").as_deref(), Some("old\n"), "{text}");
    assert_eq!(stage.file("other.txt").as_deref(), Some("new\n"), "{text}");
}

#[test]
fn a_hook_that_a_person_installs_after_a_kill_stays() {
    let stage = Stage::new();
    let files = stage.path("files");
    let created = std::process::Command::new("git").args(["init", "-q"]).current_dir(&files).status();
    assert!(created.unwrap().success());
    std::fs::create_dir_all(files.join(".git/hooks")).unwrap();
    let command = "[ -e ../begun ] || { printf '[core]\\n\\tfsmonitor = x\\n' >> .git/config; \
        touch ../begun; sleep 60; }";
    let (session, dead) = kill_in_call(&stage, command, &["--shell-effect", "workspace"]);
    write_after(&stage, dead, ".git/hooks/pre-commit", "exit 0\n");
    let ran = resume(&stage, &session);
    assert_eq!(stage.file(".git/hooks/pre-commit").as_deref(), Some("exit 0\n"), "{ran:?}");
    let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
    assert!(log.contains("git: changed: .git/hooks/pre-commit"), "{log}");
    assert!(!stage.file(".git/config").unwrap().contains("fsmonitor"), "{ran:?}");
}

#[test]
fn the_times_of_calls_do_not_stay() {
    let stage = Stage::new();
    let command = "[ -e ../begun ] || { touch ../begun; sleep 60; }";
    let (session, _) = kill_in_call(&stage, command, &["--shell-effect", "workspace"]);
    assert!(stage.path("store/calls").join(&session).exists());
    resume(&stage, &session);
    assert!(!stage.path("store/calls").join(&session).exists(), "the call has ended");
}

#[test]
fn what_a_cancelled_call_left_does_not_come_back() {
    let stage = Stage::new();
    let command = "echo half > half.txt; touch ../begun; sleep 60";
    let (session, _) = kill_in_call(&stage, command, &["--shell-effect", "workspace"]);
    assert_eq!(stage.file("half.txt").as_deref(), Some("half\n"));
    stage.run(&["cancel", &session]).worked();
    let cancelled = stage.run(&["resume", &session]);
    assert!(cancelled.errors.contains("removed   half.txt"), "{cancelled:?}");
    assert_eq!(stage.file("half.txt"), None);
    // The directory is empty now, as it was before the call. That is not what a lost directory looks like.
    assert_eq!(stage.run(&["ask", &session, "And now?"]).worked_quietly(), "Done.\n");
    assert_eq!(stage.file("half.txt"), None);
}
