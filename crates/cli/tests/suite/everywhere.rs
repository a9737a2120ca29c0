//! Commands about the stores of all projects, the size of a store, costs by tag, and the origin of lines.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::stage::{Stage, scripted};

/// Runs a session in another directory, which has a store of its own.
fn elsewhere(stage: &Stage, mission: &str) {
    std::fs::create_dir_all(stage.path("other")).unwrap();
    let model =
        format!("scripted:{}", stage.write("other.json", &json!({"reply": [{"text": "Done."}]}).to_string()));
    let ran = Command::new(env!("CARGO_BIN_EXE_backstitch"))
        .args(["run", mission, "--model", &model])
        .current_dir(stage.path("other"))
        .env("XDG_CONFIG_HOME", stage.path("config"))
        .env("XDG_STATE_HOME", stage.path("state"))
        .env_remove("BACKSTITCH_STORE")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
}

fn here(stage: &Stage, mission: &str, more: &[&str]) {
    let write = json!({"name": "write_file", "arguments": {"path": "note.txt", "text": "one\ntwo\n"}});
    let model = scripted(stage, &json!([{"text": "I write.", "calls": [write]}, {"text": "Done."}]));
    stage.run(&[&["run", mission, "--model", &model][..], more].concat()).worked_quietly();
}

fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn all_stores_are_checked_cleaned_queried_and_measured() {
    let stage = Stage::new();
    here(&stage, "Mend the coat", &[]);
    elsewhere(&stage, "Sew a hat");
    let checked = lines(&stage.run(&["verify", "--all", "--json"]).worked_quietly());
    assert_eq!(checked.len(), 2, "{checked:?}");
    assert!(checked.iter().all(|one| one["sound"] == true && one["store"].is_string()), "{checked:?}");
    assert!(stage.run(&["verify", "--all"]).worked_quietly().matches("everything is sound").count() == 2);
    assert_eq!(lines(&stage.run(&["gc", "--all", "--dry-run", "--json"]).worked_quietly()).len(), 2);
    let rows =
        lines(&stage.run(&["query", "SELECT mission FROM sessions", "--all", "--json"]).worked_quietly());
    let missions: Vec<&Value> = rows.iter().map(|row| &row["row"]["mission"]).collect();
    assert!(
        missions.contains(&&json!("Mend the coat")) && missions.contains(&&json!("Sew a hat")),
        "{rows:?}"
    );
    assert!(rows.iter().all(|row| row["store"].is_string()), "{rows:?}");
    let sizes = lines(&stage.run(&["size", "--all", "--json"]).worked_quietly());
    assert!(sizes.len() == 2 && sizes.iter().all(|one| one["file"].as_u64() > Some(0)), "{sizes:?}");
    let shown = stage.run(&["size"]).worked_quietly();
    assert!(shown.contains("records") && shown.contains("Mend the coat"), "{shown}");
    // A store that cannot be read does not hide the others.
    let known = std::fs::read_dir(stage.path("state/backstitch/stores")).unwrap().next().unwrap().unwrap();
    std::fs::write(known.path().join("store.db"), "damaged, and not a store at all").unwrap();
    let checked = stage.run(&["verify", "--all", "--json"]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    let checked = lines(&checked.output);
    assert!(
        checked.iter().any(|one| one["sound"] == true) && checked.iter().any(|one| one["error"].is_string())
    );
}

#[test]
fn a_value_is_removed_from_all_sessions_of_all_projects() {
    let stage = Stage::new();
    for number in 0..8 {
        here(&stage, &format!("My key is tailors-secret, number {number}"), &[]);
    }
    elsewhere(&stage, "My key is tailors-secret too");
    let redact = |arguments: &[&str]| {
        let mut command = stage.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A command that refuses its arguments reads nothing.
        let _ = child.stdin.take().unwrap().write_all(b"tailors-secret\n");
        crate::stage::ended(child)
    };
    let session = stage.session();
    let one = redact(&["redact", &session, "--dry-run"]);
    assert!(
        one.output.contains("also in 7 other sessions, where it would be left as it is"),
        "{}",
        one.output
    );
    assert!(one.output.contains("and 2 more"), "{}", one.output);
    let all = redact(&["redact", "--all", "--dry-run"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    assert_eq!(
        all.output.matches("would be changed").count(),
        9 + all.output.matches("entries would be changed").count()
            + all.output.matches("entry would be changed").count(),
        "{}",
        all.output
    );
    let all = redact(&["redact", "--all"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    let mut find = Command::new("grep");
    find.args(["-r", "tailors-secret"]).arg(stage.path("state")).arg(stage.path("store"));
    assert_eq!(find.output().unwrap().status.code(), Some(1), "nothing is found: {:?}", find.output());
    assert!(redact(&["redact"]).code == Some(2), "a session or `--all` is needed");
}

#[test]
fn costs_are_counted_by_tag() {
    let stage = Stage::new();
    here(&stage, "One", &["--tag", "team=a", "--tag", "level=1"]);
    here(&stage, "Two", &["--tag", "team=a"]);
    here(&stage, "Three", &[]);
    let report = stage.json(&["stats", "--by", "tag"]);
    let calls = |tag: &str| {
        let rows = report["tags"].as_array().unwrap();
        rows.iter().find(|row| row["tag"] == tag).map(|row| row["calls"].clone())
    };
    assert_eq!((calls("team=a"), calls("level=1")), (Some(json!(2)), Some(json!(1))), "{report}");
    assert_eq!(report["total"]["calls"], 3);
    assert!(stage.run(&["stats"]).worked_quietly().contains("team=a"));
}

#[test]
fn the_lines_of_a_file_name_the_calls_that_wrote_them() {
    let stage = Stage::new();
    here(&stage, "Write the note", &[]);
    std::fs::write(stage.path("files/note.txt"), "one\nmine\ntwo\n").unwrap();
    let shown = stage.run(&["blame", "note.txt"]).worked_quietly();
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].contains("Write the note") && shown[0].ends_with("1 one"), "{shown:?}");
    assert!(!shown[1].contains("Write the note") && shown[1].ends_with("2 mine"), "{shown:?}");
    let report = stage.json(&["blame", "note.txt"]);
    assert_eq!(report["lines"][1]["call"], Value::Null);
    assert_eq!(report["calls"][0]["tool"], "write_file");
    assert_eq!(stage.run(&["blame", "missing.txt"]).code, Some(1));
    assert_eq!(stage.run(&["blame", "."]).code, Some(1));
}
