//! The last line of an announced run is the event `ended`, however the run ends.

use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{Stage, ended, scripted, signal, wait_until};

#[track_caller]
fn check(ran: &Ran, code: i32, outcome: &str, kind: Value) {
    let lines: Vec<Value> = ran.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (first, last) = (lines.first().unwrap(), lines.last().unwrap());
    assert!(first["event"] == "started" || first["event"] == "resumed", "{}", ran.output);
    assert_eq!(
        (ran.code, &last["event"], &last["outcome"], &last["kind"]),
        (Some(code), &json!("ended"), &json!(outcome), &kind),
        "{}\n{}",
        ran.output,
        ran.errors
    );
    assert_eq!(last["session"], first["session"]);
    assert!(last.as_object().unwrap().contains_key("message"), "{last}");
    assert_eq!(last["message"].is_string(), outcome != "completed", "{last}");
    assert_eq!(lines.iter().filter(|line| line["event"] == "ended").count(), 1, "{}", ran.output);
}

#[test]
fn every_failure_of_a_provider_ends_with_ended() {
    let kinds = [
        "auth",
        "context_too_long",
        "rate_limited",
        "overloaded",
        "server",
        "network",
        "cut_stream",
        "malformed",
    ];
    for kind in kinds {
        let stage = Stage::new();
        let fail = json!({"kind": kind, "times": 9, "retry_after_ms": 1});
        let model = scripted(&stage, &json!([{"text": "Done.", "fail": [fail]}]));
        let ran = stage.run(&["run", "Do it", "--json", "--retries", "3", "--model", &model]);
        check(&ran, 1, "stopped", json!(kind));
        check(&stage.run(&["resume", "--json"]), 1, "stopped", json!(kind));
    }
}

#[test]
fn answers_pauses_cancels_and_failures_end_with_ended() {
    let call = json!({"calls": [{"name": "shell", "arguments": {"command": "true"}}]});
    let cases: [(&Value, &[&str], i32, &str, Value); 5] = [
        (&json!([{"text": "Done."}]), &[], 0, "completed", Value::Null),
        (&json!([call]), &["--approve", "ask"], 3, "paused", json!("approval")),
        (&json!([call, call]), &["--budget", "turns=1"], 3, "paused", json!("budget")),
        (&json!([call]), &[], 1, "stopped", json!("script_ended")),
        (&json!([{"text": "(fail {:why 1})"}]), &["--answers", "lisp"], 1, "failed", Value::Null),
    ];
    for (replies, more, code, outcome, kind) in cases {
        let stage = Stage::new();
        let model = scripted(&stage, replies);
        let ran = stage.run(&[&["run", "Do it", "--json", "--model", &model], more].concat());
        let last: Value = serde_json::from_str(ran.output.lines().last().unwrap()).unwrap();
        // The kind of a failure is set by the agent.
        let kind = if outcome == "failed" { last["kind"].clone() } else { kind };
        check(&ran, code, outcome, kind);
    }
}

#[test]
fn signals_end_with_ended() {
    for name in ["INT", "TERM", "HUP", "QUIT", "USR1", "ALRM"] {
        let stage = Stage::new();
        let command = "echo half > half.txt; touch ../begun; sleep 60";
        let replies = json!([
            {"calls": [{"name": "shell", "arguments": {"command": command}}]}, {"text": "Never mind."},
        ]);
        let model = scripted(&stage, &replies);
        let child = stage.command(&["run", "Do it", "--json", "--model", &model]).spawn().unwrap();
        wait_until("the call", || stage.path("begun").exists());
        signal(&child, name);
        check(&ended(child), 130, "paused", json!("asked"));
        assert_eq!(stage.file("half.txt"), None, "SIG{name}: what ran is rolled back");
        assert_eq!(stage.json(&["ls"])["status"], "paused", "SIG{name}");
        check(&stage.run(&["resume", "--json"]), 0, "completed", Value::Null);
    }
}

#[test]
fn a_signal_at_any_moment_ends_with_ended_or_before_the_announcement() {
    for millis in [0, 20, 40, 60, 80, 120, 200, 300] {
        let stage = Stage::new();
        let model = scripted(&stage, &json!([{"text": "Done.", "delay_ms": 60_000}]));
        let child = stage.command(&["run", "Do it", "--json", "--model", &model]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(millis));
        signal(&child, "TERM");
        signal(&child, "TERM");
        let ran = ended(child);
        if ran.output.is_empty() {
            assert_ne!(ran.code, Some(0));
        } else {
            let last: Value = serde_json::from_str(ran.output.lines().last().unwrap()).unwrap();
            assert_eq!((ran.code, &last["event"]), (Some(130), &json!("ended")), "{}", ran.output);
        }
    }
}
