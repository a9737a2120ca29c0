//! Backups of stores, damaged ones among them, and what `salvage` saves of a store without its end.

use std::fs;

use serde_json::json;

use crate::stage::{Stage, last_line, scripted, text_of};

/// A store with some sessions, each with a file.
fn played() -> Stage {
    let stage = Stage::new();
    for number in 0..3 {
        let text = format!("thread {number} ").repeat(2_000);
        let write =
            json!({"name": "write_file", "arguments": {"path": format!("{number}.txt"), "text": text}});
        let model = scripted(&stage, &json!([{"calls": [write]}, {"text": "Done."}]));
        stage.run(&["run", "Sew a scarlet hem", "--model", &model]).worked_quietly();
    }
    stage
}

#[test]
fn a_backup_of_a_damaged_store_is_written_and_says_so() {
    let stage = played();
    let sound = text_of(&stage.path("sound.db"));
    assert!(stage.run(&["backup", &sound]).worked_quietly().contains("written to"));
    assert_eq!(stage.json(&["backup", &text_of(&stage.path("sound-too.db"))])["sound"], true);

    let path = stage.path("store/store.db");
    let mut bytes = fs::read(&path).unwrap();
    let at: Vec<_> = (0..bytes.len() - 7).filter(|at| bytes[*at..].starts_with(b"scarlet")).collect();
    at.iter().for_each(|at| bytes[*at] = b'S');
    fs::write(&path, bytes).unwrap();
    let damaged = stage.path("damaged.db");
    let ran = stage.run(&["backup", &text_of(&damaged)]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.output.contains("written to") && damaged.exists(), "{ran:?}");
    for words in ["so is its backup", "salvage", "code: store_damaged"] {
        assert!(ran.errors.contains(words), "{words}: {ran:?}");
    }
    let ran = stage.run(&["backup", &text_of(&stage.path("damaged-too.db")), "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.output.contains("\"sound\":false"), "{ran:?}");
}

#[test]
fn what_is_left_of_a_store_without_its_end_is_salvaged() {
    let stage = played();
    let path = stage.path("store/store.db");
    let bytes = fs::read(&path).unwrap();
    for cut in [1, 2, 8] {
        fs::write(&path, &bytes[..bytes.len() - cut * 8192]).unwrap();
        let to = text_of(&stage.path(&format!("saved-{cut}/store.db")));
        let saved = stage.run(&["salvage", &to, "--json"]).worked_quietly();
        let saved = last_line(&saved);
        let records: u64 =
            saved["sessions"].as_array().unwrap().iter().map(|one| one["records"].as_u64().unwrap()).sum();
        assert!(records > 0, "{cut}: {saved}");
        stage.run(&["verify", "--store", &to]);
    }
}
