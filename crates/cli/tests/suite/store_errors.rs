//! Paths that are not a store: each error says what the path is, and what to do.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::command::{Ran, backstitch};
use crate::stage::{Stage, text_of};

/// Runs a command that reads a store, and one that writes to it.
fn both(path: &Path) -> [Ran; 2] {
    [&["ls"][..], &["gc"]].map(|command| backstitch(&[command, &["--store", &text_of(path)]].concat()))
}

#[test]
fn a_path_that_is_no_store_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("foreign.db"), "these are notes, and no store\n".repeat(40)).unwrap();
    std::fs::create_dir(path("directory")).unwrap();
    let cases = [
        (path("directory"), "is a directory: name the file in it", "io"),
        (path("foreign.db"), "not a Backstitch store", "not_a_store"),
        (path("missing.db"), "there is no store at", "store_not_found"),
        (path("foreign.db/store.db"), "there is no store at", "store_not_found"),
        ("/dev/null".into(), "is not a regular file", "io"),
    ];
    for (path, words, code) in cases {
        for ran in both(&path) {
            let errors = ran.failed();
            assert!(errors.contains(words) && errors.contains(&format!("code: {code};")), "{errors}");
            let message = errors.lines().next().unwrap();
            assert_eq!(message.matches(&text_of(&path)).count(), 1, "{message}");
            assert!(!message.contains("Error code"), "{message}");
        }
    }
    // An empty file is a store whose creation was interrupted.
    std::fs::write(path("empty.db"), "").unwrap();
    for ran in both(&path("empty.db")) {
        ran.worked();
    }
}

#[test]
fn a_store_without_permission_is_explained() {
    // Permissions do not stop root.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    for ran in both(&path) {
        let errors = ran.failed();
        assert!(errors.contains("Permission denied") && errors.contains("code: io;"), "{errors}");
    }
}

#[test]
fn a_refused_run_leaves_no_empty_store() {
    let stage = Stage::new();
    let model = crate::stage::scripted(&stage, &serde_json::json!([{"text": "Done."}]));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_backstitch"));
    command.args(["run", "Mend", "--model", &model, "--store", "new.db"]).current_dir(stage.path("files"));
    command.env("XDG_CONFIG_HOME", stage.path("config")).env("XDG_STATE_HOME", stage.path("state"));
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("needs a directory of its own"), "{errors}");
    assert_eq!(std::fs::read_dir(stage.path("files")).unwrap().count(), 0, "nothing was created");
}

/// D9: an output that cannot be written is an error, not a panic.
#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let stage = Stage::new();
    let model = crate::stage::scripted(&stage, &serde_json::json!([{"text": "Done."}]));
    stage.run(&["run", "Mend", "--model", &model]).worked_quietly();
    let run = ["run", "Mend", "--model", &model];
    let json = ["run", "Mend", "--json", "--model", &model];
    for arguments in [&["ls"][..], &["ls", "--json"], &["log"], &["show"], &["stats"], &run, &json] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran =
            stage.command(arguments).stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(
            errors.contains("standard output cannot be written") && errors.contains("code: io"),
            "{errors}"
        );
        assert!(!errors.contains("panicked"), "{errors}");
    }
    // Those that ended in the middle of a run continue.
    stage.run(&["resume", "--all-interrupted"]).worked_quietly();
}
