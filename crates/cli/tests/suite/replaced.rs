//! A run whose store is removed or replaced stops, and names the store and the saved copy.

use std::path::Path;

use serde_json::{Value, json};

use crate::command::{Ran, backstitch};
use crate::stage::{Stage, ended, last_line, scripted, text_of, wait_until};

type Remove = fn(&Path);

const WAYS: &[(&str, Remove)] = &[
    ("the directory is removed", |path| std::fs::remove_dir_all(path.parent().unwrap()).unwrap()),
    ("the directory is renamed", |path| {
        let directory = path.parent().unwrap();
        std::fs::rename(directory, directory.with_extension("old")).unwrap();
    }),
    ("the database is replaced", |path| {
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, "").unwrap();
    }),
    ("the log is removed", |path| std::fs::remove_file(format!("{}-wal", path.display())).unwrap()),
];

/// Starts a run, removes its store in the middle of a call, and lets the call end.
fn run_without_store(stage: &Stage, remove: Remove, more: &[&str]) -> Ran {
    let command = "touch ../begun; while [ ! -e ../gone ]; do sleep 0.05; done";
    let call = json!({"name": "shell", "arguments": {"command": command}});
    let model = scripted(stage, &json!([{"calls": [call]}, {"text": "Done."}]));
    let arguments = [&["run", "Do it", "--model", &model], more].concat();
    let child = stage.command(&arguments).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists());
    remove(&stage.path("store/store.db"));
    stage.write("gone", "");
    ended(child)
}

#[test]
fn a_run_whose_store_is_removed_stops_and_names_the_copy() {
    for (way, remove) in WAYS {
        let stage = Stage::new();
        let ran = run_without_store(&stage, *remove, &["--json"]);
        assert_eq!(ran.code, Some(1), "{way}: {ran:?}");
        let last = last_line(&ran.output);
        let seen = [&last["event"], &last["outcome"], &last["kind"]];
        assert_eq!(seen, [&json!("ended"), &json!("stopped"), &json!("store_replaced")], "{way}: {last}");
        let message = last["message"].as_str().unwrap();
        let path = text_of(&stage.path("store/store.db"));
        assert!(message.contains(&path) && ran.errors.contains(message), "{way}: {ran:?}");
        let copy = message.split("saved to ").nth(1).unwrap();
        assert!(copy != path && Path::new(copy).exists(), "{way}: {message}");

        // Everything that was acknowledged is in the copy, which is a store like any other.
        let listed = backstitch(&["--store", copy, "ls", "--json"]);
        assert_eq!(listed.code, Some(0), "{way}: {listed:?}");
        let listed: Value = last_line(&listed.output);
        assert_eq!((&listed["session"], &listed["mission"]), (&last["session"], &json!("Do it")), "{way}");
        let verified = backstitch(&["--store", copy, "verify"]);
        assert_eq!(verified.code, Some(0), "{way}: {verified:?}");
    }
}

#[test]
fn the_error_names_the_store_and_the_copy() {
    let stage = Stage::new();
    let ran = run_without_store(&stage, WAYS[0].1, &[]);
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), ""), "{ran:?}");
    let path = text_of(&stage.path("store/store.db"));
    let text =
        format!("the store {path} was removed or replaced while it was open; its content was saved to ");
    assert!(ran.errors.contains(&text), "{}", ran.errors);
    assert!(ran.errors.contains("stopped"), "{}", ran.errors);
}
