//! Sessions that another process drives: the error names it, and the session can be taken over.

use std::process::Child;

use serde_json::json;

use crate::stage::{Stage, scripted, signal, wait_until};

/// Starts a session, and stops its process with SIGSTOP inside a call.
fn stopped_driver(stage: &Stage) -> (Child, String) {
    let command = "echo half > half.txt; if [ -e ../again ]; then echo whole > half.txt; else touch ../again; sleep 60; fi";
    let replies = json!([
        {"calls": [{"name": "shell", "arguments": {"command": command}}]}, {"text": "Done."},
    ]);
    let model = scripted(stage, &replies);
    let arguments = ["run", "Do it", "--model", &model, "--shell-effect", "workspace"];
    let child = stage.command(&arguments).spawn().unwrap();
    wait_until("the call", || stage.path("again").exists());
    signal(&child, "STOP");
    (child, stage.session())
}

#[test]
fn no_files_are_moved_where_another_session_is_driven() {
    let stage = Stage::new();
    let write = json!({"name": "write_file", "arguments": {"path": "a.txt", "text": "one\n"}});
    let model = scripted(&stage, &json!([{"calls": [write]}, {"text": "Done."}]));
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    let session = stage.session();
    let (mut child, other) = stopped_driver(&stage);
    let refused = stage.run(&["rewind", &session, "start"]).failed();
    let process = format!("process {}", child.id());
    for words in ["workspace_held", &other[24..], &process] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\n"));
    // What is dead does not stand in the way, and keeps its files.
    child.kill().unwrap();
    child.wait().unwrap();
    stage.run(&["rewind", &session, "start"]).worked_quietly();
    assert_eq!((stage.file("a.txt"), stage.file("half.txt").as_deref()), (None, Some("half\n")));
}

#[test]
fn a_session_is_taken_from_a_process_on_this_machine() {
    let stage = Stage::new();
    let (mut child, session) = stopped_driver(&stage);
    let commands: [&[&str]; 4] =
        [&["resume"], &["resume", &session], &["rewind", &session, "start"], &["undo", &session]];
    for arguments in commands {
        let refused = stage.run(arguments).failed();
        let process = format!("process {}", child.id());
        for words in ["driven by", &process, "backstitch log", "-f", "--take-over"] {
            assert!(refused.contains(words), "{arguments:?}: {refused}");
        }
    }
    assert!(child.try_wait().unwrap().is_none());
    assert_eq!(stage.run(&["resume", "--take-over"]).worked_quietly(), "Done.\n");
    assert_eq!(stage.file("half.txt").unwrap(), "whole\n");
    assert!(!child.wait().unwrap().success(), "the process that drove it was ended");
    // `--take-over` also works if no process drives the session.
    assert_eq!(stage.run(&["resume", "--take-over"]).worked_quietly(), "Done.\n");
}
