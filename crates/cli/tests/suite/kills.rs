//! A run that is killed at its beginning leaves a store and a session that every command accepts.

use std::io::BufRead as _;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::model::{Model, Said};
use crate::stage::{Stage, as_slices, scripted, wait_until};

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
    eprintln!("seed: {random}");
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

#[test]
fn what_arrived_of_an_answer_survives_the_end_of_the_process() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "key");
    // The server sends the first line, and then nothing.
    let never = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let begins = Said::Lines("The first seam is red.\nThe second is blue.\n".into(), never);
    let model = Model::new("openai-chat", [begins, Said::Text("Both are red.")]);
    let mut child = stage.command(&as_slices(&Stage::asking("openai-chat", &model, &[]))).spawn().unwrap();
    wait_until("the save", || {
        let log = stage.run(&["log", "--all"]).output;
        log.contains("bytes of attempt 1 are kept: The first seam is red.")
    });
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));

    let shown = stage.run(&["show"]).worked();
    assert!(shown.contains("turn 1, attempt 1, not finished: The first seam is red."), "{shown}");
    let kept = |shown: &Value| shown["evaluations"][0]["requests"][0]["kept"].clone();
    let expected = json!([{"turn": 1, "attempt": 1, "text": "The first seam is red.\n"}]);
    let before = stage.json(&["show"]);
    assert_eq!(kept(&before), expected);
    assert!(!before["messages"].to_string().contains("first seam"), "it is not an answer");

    assert_eq!(stage.run(&["resume"]).worked_quietly(), "Both are red.\n");
    let asked = model.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].body, asked[1].body, "the request is repeated unchanged");
    let after = stage.json(&["show"]);
    assert_eq!(kept(&after), expected);
    assert!(stage.run(&["log"]).worked().contains("are kept: The first seam is red."));
    // What arrived is charged: 23 bytes are about six tokens. The server did not count the answer.
    assert_eq!(after["spent"]["output_tokens"], 6, "{}", after["spent"]);
    assert!(after["spent"]["input_tokens"].as_u64() > Some(0), "{}", after["spent"]);
    assert!(stage.run(&["verify"]).worked_quietly().contains("sound"));
}
