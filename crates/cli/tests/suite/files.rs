//! Files that a person edits while an agent works: a restore names the files, and can be undone.

use std::process::Command;

use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{Stage, interrupt, last_line, scripted, wait_until};

const CALL: &str =
    "echo call > by_call.txt; touch ../begun; [ -e ../again ] || { touch ../again; sleep 60; }; true";

fn shell(command: &str) -> Value {
    json!({"name": "shell", "arguments": {"command": command}})
}

/// Edits files as a person does while a call runs, or after it was interrupted.
fn edit(stage: &Stage) {
    std::fs::write(stage.path("files/thesis.txt"), "mine\n").unwrap();
    std::fs::write(stage.path("files/notes.txt"), "new\n").unwrap();
}

fn begun(more: &[&str]) -> (Stage, std::process::Child) {
    let stage = Stage::new();
    std::fs::write(stage.path("files/thesis.txt"), "old\n").unwrap();
    let model = scripted(&stage, &json!([{"calls": [shell(CALL)]}, {"text": "Done."}]));
    let child = stage.command(&[&["run", "Do it", "--model", &model], more].concat()).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists() && stage.path("again").exists());
    edit(&stage);
    (stage, child)
}

/// Returns the printed command that undoes a restore.
#[track_caller]
fn rescue_command(printed: &str) -> String {
    let line = printed.lines().find(|line| line.starts_with("  backstitch rewind ")).map(str::trim);
    line.unwrap_or_else(|| panic!("no command undoes the restore: {printed}")).to_owned()
}

fn execute(stage: &Stage, line: &str) {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_backstitch"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    let ran = command.args(["-c", line]).current_dir(stage.path("files")).env("PATH", path).output().unwrap();
    assert!(ran.status.success(), "{line}: {ran:?}");
}

/// Reads all three files: thesis, notes, and that of the call.
fn files(stage: &Stage) -> [Option<String>; 3] {
    ["thesis.txt", "notes.txt", "by_call.txt"].map(|name| stage.file(name))
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[track_caller]
fn check_report_and_undo(stage: &Stage, printed: &str) {
    for line in ["  reverted  thesis.txt\n", "  removed   notes.txt\n", "rescue:"] {
        assert!(printed.contains(line), "{line:?}: {printed}");
    }
    execute(stage, &rescue_command(printed));
    assert_eq!(files(stage), [some("mine\n"), some("new\n"), some("call\n")], "exactly what was found");
}

#[test]
fn a_stop_names_the_files_that_it_restores() {
    for more in [&[][..], &["--shell-effect", "workspace"]] {
        let (stage, child) = begun(more);
        let ran = interrupt(child);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert_eq!(files(&stage), [some("old\n"), None, None]);
        check_report_and_undo(&stage, &ran.errors);
    }
}

#[test]
fn what_a_person_edits_after_a_stop_is_kept() {
    let mine = [some("mine\n"), some("new\n"), some("call\n")];
    for more in [&[][..], &["--shell-effect", "workspace"]] {
        for (flag, kept) in [(None, true), (Some("keep"), true), (Some("restore"), false)] {
            let (stage, child) = begun(more);
            assert_eq!(interrupt(child).code, Some(130));
            assert_eq!(files(&stage), [some("old\n"), None, None], "{more:?}");
            edit(&stage);
            let ran = resume(&stage, flag);
            // A call that may have had an effect outside is not made again.
            let by_call = some("call\n").filter(|_| !more.is_empty());
            let expected = if kept {
                [mine[0].clone(), mine[1].clone(), by_call]
            } else {
                [some("old\n"), None, by_call]
            };
            assert_eq!(files(&stage), expected, "{more:?}, {flag:?}: {}", ran.errors);
            assert_eq!(ran.errors.contains("rescue:"), !kept, "{more:?}, {flag:?}: {}", ran.errors);
        }
    }
}

#[test]
fn a_resume_recovers_from_a_stop_and_a_later_kill() {
    let (stage, child) = begun(&["--shell-effect", "workspace"]);
    interrupt(child);
    edit(&stage);
    // The call starts again, and this time its process is killed before it restores files.
    std::fs::remove_file(stage.path("begun")).unwrap();
    std::fs::remove_file(stage.path("again")).unwrap();
    let mut child = stage.command(&["resume"]).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists() && stage.path("again").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(files(&stage), [some("mine\n"), some("new\n"), some("call\n")]);
    let ran = resume(&stage, None);
    assert_eq!(files(&stage), [some("mine\n"), some("new\n"), some("call\n")]);
    assert!(ran.errors.contains("removed   by_call.txt\n"), "half of a call is rolled back: {}", ran.errors);
}

#[test]
fn the_event_of_a_stop_names_the_files_that_it_restores() {
    let (stage, child) = begun(&["--json"]);
    let ran = interrupt(child);
    let lines: Vec<Value> = ran.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let restored = lines.iter().find(|line| line["event"] == "restored").unwrap();
    let expected = json!([
        {"path": "by_call.txt", "change": "removed"},
        {"path": "notes.txt", "change": "removed"},
        {"path": "thesis.txt", "change": "reverted"},
    ]);
    assert_eq!(restored["files"], expected, "{restored}");
    execute(&stage, restored["command"].as_str().unwrap());
    assert_eq!(files(&stage), [some("mine\n"), some("new\n"), some("call\n")]);
}

#[test]
fn a_failed_call_names_the_files_that_it_restores() {
    let stage = Stage::new();
    std::fs::write(stage.path("files/thesis.txt"), "old\n").unwrap();
    let command =
        "echo call > by_call.txt; touch ../begun; while [ ! -e ../edited ]; do sleep 0.05; done; exit 1";
    let call = json!({"name": "shell", "arguments": {"command": command, "rollback_on_error": true}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
    let child = stage.command(&["run", "Do it", "--model", &model]).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists());
    edit(&stage);
    std::fs::write(stage.path("edited"), "").unwrap();
    let ran = crate::stage::ended(child);
    assert_eq!((ran.code, files(&stage)), (Some(0), [some("old\n"), None, None]), "{ran:?}");
    check_report_and_undo(&stage, &ran.errors);
}

#[test]
fn a_rewind_names_the_files_that_it_restores() {
    let stage = Stage::new();
    std::fs::write(stage.path("files/thesis.txt"), "old\n").unwrap();
    let model = scripted(&stage, &json!([{"calls": [shell("echo call > by_call.txt")]}, {"text": "Done."}]));
    stage.run(&["run", "Do it", "--model", &model]).worked_quietly();
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    edit(&stage);
    let ran = stage.run(&["rewind", &session, "start", "--all-files"]);
    assert_eq!(files(&stage), [some("old\n"), None, None]);
    check_report_and_undo(&stage, &ran.output);
    let restored = stage.json(&["undo", &session])["restored"][0].clone();
    assert!(restored["files"].as_array().is_some_and(|files| !files.is_empty()), "{restored}");
}

/// A session whose call was interrupted by a kill, with edits of a person while it ran.
fn with_open_call(effect: &[&str]) -> Stage {
    let (stage, mut child) = begun(effect);
    child.kill().unwrap();
    child.wait().unwrap();
    stage
}

/// A session that waits between two calls, with later edits of a person.
fn without_open_call() -> Stage {
    let stage = Stage::new();
    std::fs::write(stage.path("files/thesis.txt"), "old\n").unwrap();
    let waits = json!({"name": "make_directory", "arguments": {"path": "made"}});
    let replies =
        json!([{"calls": [shell("echo call > by_call.txt")]}, {"calls": [waits]}, {"text": "Done."}]);
    let model = scripted(&stage, &replies);
    let paused = stage.run(&["run", "Do it", "--model", &model, "--approve", "make_directory", "--json"]);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    let paused = last_line(&paused.output);
    let (session, call) = (paused["session"].as_str().unwrap(), paused["call"].as_str().unwrap());
    stage.run(&["resolve", session, call, "approve"]).worked();
    edit(&stage);
    stage
}

fn resume(stage: &Stage, files: Option<&str>) -> Ran {
    let more: &[&str] = match files {
        Some(files) => &["resume", "--files", files],
        None => &["resume"],
    };
    let ran = stage.run(more);
    assert_eq!((ran.code, ran.output.as_str()), (Some(0), "Done.\n"), "{files:?}: {ran:?}");
    ran
}

#[test]
fn keep_and_restore_do_what_they_say() {
    let mine = [some("mine\n"), some("new\n"), some("call\n")];
    let old = [some("old\n"), None, some("call\n")];
    // With an open call: it is undone and runs again, unless everything is kept.
    for (flag, kept) in [(None, false), (Some("restore"), false), (Some("keep"), true)] {
        let stage = with_open_call(&["--shell-effect", "workspace"]);
        let ran = resume(&stage, flag);
        assert_eq!(files(&stage), if kept { mine.clone() } else { old.clone() }, "open call, {flag:?}");
        let shown = stage.run(&["show"]).worked();
        assert_eq!(shown.contains("its files were kept as they were found"), kept, "{flag:?}: {shown}");
        if kept {
            assert!(!ran.errors.contains("rescue:"), "{}", ran.errors);
        } else {
            check_report_and_undo(&stage, &ran.errors);
        }
    }
    // Without an open call, the changes of the call are recorded, and only the person's edits matter.
    for (flag, kept) in [(None, true), (Some("restore"), false), (Some("keep"), true)] {
        let stage = without_open_call();
        let ran = resume(&stage, flag);
        assert_eq!(files(&stage), if kept { mine.clone() } else { old.clone() }, "no open call, {flag:?}");
        if kept {
            assert!(!ran.errors.contains("rescue:"), "{}", ran.errors);
        } else {
            check_report_and_undo(&stage, &ran.errors);
        }
    }
    // With `keep`, a call whose effect is unknown ends with an error, and the files are kept.
    let stage = with_open_call(&[]);
    resume(&stage, Some("keep"));
    assert_eq!(files(&stage), mine);
    let shown = stage.json(&["show"]).to_string();
    assert!(shown.contains("whether it had an effect outside is not known"), "{shown}");
}

#[test]
fn an_event_names_the_paths_that_are_not_covered() {
    let stage = Stage::new();
    let fifo = Command::new("mkfifo").arg(stage.path("files/pipe")).status().unwrap();
    assert!(fifo.success());
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let ran = stage.run(&["run", "Do it", "--json", "--model", &model]).worked();
    let lines: Vec<Value> = ran.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["event"], &lines[1]["event"]), (&json!("started"), &json!("uncovered")), "{ran}");
    assert_eq!(lines[1]["paths"], json!(["pipe"]));
}

#[test]
fn a_message_at_a_rewound_point_takes_the_place_of_the_call() {
    let stage = Stage::new();
    std::fs::write(stage.path("files/thesis.txt"), "old\n").unwrap();
    let replies = json!([{"calls": [shell("rm thesis.txt")]}, {"text": "Done."}]);
    let model = scripted(&stage, &replies);
    stage.run(&["run", "Tidy up", "--model", &model]).worked_quietly();
    let session = stage.session();
    let call = stage.run(&["log", &session, "--json", "--all"]).worked_quietly();
    let started = call.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut started = started.filter(|record| record["kind"] == "call_started");
    let call = started.next().unwrap()["data"]["call_id"].as_str().unwrap().to_owned();
    stage.run(&["rewind", &session, &format!("before:{call}")]).worked_quietly();
    assert_eq!(stage.file("thesis.txt").as_deref(), Some("old\n"));
    let answer = stage.run(&["resume", &session, "--message", "Keep the thesis"]).worked_quietly();
    assert!(answer.contains("Done."), "{answer}");
    assert_eq!(stage.file("thesis.txt").as_deref(), Some("old\n"), "the call does not run again");
    let log = stage.run(&["log", &session]).worked_quietly();
    assert!(log.contains("Keep the thesis") && log.contains("the user gave another instruction"), "{log}");
    let refused = stage.run(&["resume", &session, "--message", " "]);
    assert_ne!(refused.code, Some(0), "{}", refused.output);
}
