//! A panic at any point ends a run with the event `ended`, and the session can be resumed.
#![cfg(feature = "crash-points")]

use serde_json::{Value, json};

use crate::stage::{Stage, scripted};

#[test]
fn a_panic_at_any_point_ends_with_ended() {
    let command = |command: &str| json!({"calls": [{"name": "shell", "arguments": {"command": command}}]});
    let fails =
        json!({"name": "shell", "arguments": {"command": "touch half; exit 1", "rollback_on_error": true}});
    let replies = json!([command("echo one > a.txt"), {"calls": [fails]}, {"text": "Done."}]);
    let mut panicked = Vec::new();
    for point in backstitch_core::crash::POINTS {
        let stage = Stage::new().with_variable("BACKSTITCH_PANIC_AT", point);
        let model = scripted(&stage, &replies);
        let ran = stage.run(&["run", "Do it", "--json", "--model", &model, "--shell-effect", "workspace"]);
        if !ran.errors.contains(&format!("a test wanted a panic at {point}")) {
            assert_eq!(ran.code, Some(0), "{point}: {ran:?}");
            continue;
        }
        let Some(last) = ran.output.lines().last() else {
            assert_ne!(ran.code, Some(0), "{point}: nothing was announced: {ran:?}");
            continue;
        };
        let last: Value = serde_json::from_str(last).unwrap();
        if last["event"] == "error" {
            let nothing_announced = ran.output.lines().count() == 1 && ran.code != Some(0);
            assert!(nothing_announced && last["code"] == "panic", "{point}: {ran:?}");
            continue;
        }
        assert_eq!(last["event"], "ended", "{point}: {ran:?}");
        assert!(last["kind"].is_string() || last["outcome"] == "completed", "{point}: {ran:?}");
        assert_eq!(ran.code == Some(0), last["outcome"] == "completed", "{point}: {ran:?}");
        let lines = ran.output.lines().filter(|line| line.contains("\"event\":\"ended\"")).count();
        assert_eq!(lines, 1, "{point}: {}", ran.output);
        let resumed = stage.command(&["resume"]).env_remove("BACKSTITCH_PANIC_AT").output().unwrap();
        assert!(resumed.status.success() && resumed.stdout == b"Done.\n", "{point}: {resumed:?}");
        panicked.push((*point, last["kind"].clone()));
    }
    // Points in the driver itself, where only the drop of the announcement reports the end.
    for point in ["ask.before", "ask.after", "call.after_intent", "call.finished"] {
        assert!(panicked.contains(&(point, json!("panic"))), "{point}: {panicked:?}");
    }
}
