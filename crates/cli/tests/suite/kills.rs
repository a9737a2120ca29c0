//! A run that is killed at its beginning leaves a store and a session that every command accepts.

use std::io::BufRead as _;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Stage, scripted};

/// Number of runs that are killed at a random time.
fn runs() -> u64 {
    std::env::var("BACKSTITCH_KILL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(6)
}

fn write() -> Value {
    json!({"name": "write_file", "arguments": {"path": "a.txt", "text": "one\n"}})
}

fn model(stage: &Stage) -> String {
    scripted(stage, &json!([{"calls": [write()]}, {"text": "Done."}]))
}

#[test]
fn a_session_that_was_announced_is_resumed_with_its_mission() {
    let stage = Stage::new();
    for number in 0..3_000 {
        std::fs::write(stage.path(&format!("files/{number}.txt")), number.to_string()).unwrap();
    }
    let model = model(&stage);
    let mut child = stage.command(&["run", "Sew the hem", "--json", "--model", &model]).spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(started["event"], "started");
    assert_eq!(stage.json(&["ls"])["mission"], "Sew the hem");
    assert_eq!(stage.run(&["resume"]).worked_quietly(), "Done.\n");
    let session = started["session"].as_str().unwrap();
    assert_eq!(stage.json(&["show", session])["session"], started["session"]);
}

#[test]
#[expect(clippy::print_stderr, reason = "long runs report how many processes really died")]
fn a_run_that_is_killed_at_its_beginning_leaves_what_every_command_accepts() {
    let mut random = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (mut died, mut announced) = (0, 0);
    for run in 0..runs() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let delay = Duration::from_micros((random >> 33) % 200_000);
        let stage = Stage::new();
        // The model answers slowly, so that the process still runs when it is killed.
        let slow = scripted(&stage, &json!([{"calls": [write()]}, {"text": "Done.", "delay_ms": 250}]));
        let mut child = stage.command(&["run", "Sew", "--json", "--model", &slow]).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        let killed = child.wait_with_output().unwrap();
        let was_announced = !killed.stdout.is_empty();
        if killed.status.signal() == Some(9) {
            died += 1;
            announced += u64::from(was_announced);
        }
        let what = format!("run {run}, killed after {delay:?}, announced: {was_announced}");

        if stage.path("store/store.db").exists() {
            let listed = stage.run(&["ls", "--json"]).worked_quietly();
            let sessions = listed.lines().count();
            assert!(sessions <= 1 && (sessions == 1 || !was_announced), "{what}: {listed}");
            stage.run(&["verify"]).worked_quietly();
            stage.run(&["gc", "--dry-run"]).worked_quietly();
            if sessions == 1 {
                assert!(listed.contains("\"mission\":\"Sew\""), "{what}: {listed}");
                for arguments in [&["log", "--all"][..], &["show", "--state", "--files"]] {
                    stage.run(arguments).worked_quietly();
                }
                assert_eq!(stage.run(&["resume"]).worked_quietly(), "Done.\n", "{what}");
                assert_eq!(stage.file("a.txt").unwrap(), "one\n", "{what}");
            } else {
                for arguments in [&["log"][..], &["show"], &["resume"], &["undo"]] {
                    let refused = stage.run(arguments).failed();
                    assert!(refused.contains("there is no session yet"), "{what}: {arguments:?}: {refused}");
                }
            }
        } else {
            assert!(!was_announced, "{what}");
        }
        let again = stage.run(&["run", "Again", "--model", &model(&stage)]);
        assert_eq!((again.code, again.output.as_str()), (Some(0), "Done.\n"), "{what}: {again:?}");
        assert!(stage.run(&["verify"]).worked_quietly().contains("sound"), "{what}");
    }
    eprintln!("{died} of {} runs were killed, {announced} of them after they were announced", runs());
    assert!(died > 0, "no run was killed, so nothing was tried");
}
