//! Either side is killed in the middle of a call.

use serde_json::json;

use super::client::{AGENT, Client, failed, has_stopped_waiting, worked};
use crate::stage::{Stage, signal, text_of, wait_until};

#[test]
fn a_killed_server_leaves_files_that_the_next_one_restores() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    worked(&client.call("write_file", json!({"path": "note.txt", "text": "seven\n"})));
    let command = json!({"command": "echo half > half.txt; echo broken > note.txt; sleep 600"});
    client.post_call(Some("toolu_1"), "shell", command.clone());
    wait_until("the change", || stage.file("note.txt").as_deref() == Some("broken\n"));
    wait_until("the file", || stage.file("half.txt").is_some());
    client.kill();
    let mut client = Client::connected(&stage, &[]);
    assert_eq!(stage.file("note.txt").unwrap(), "seven\n");
    assert_eq!(stage.file("half.txt"), None);
    // The interrupted call has a result, and is not run again under its id.
    let told = failed(&client.call_as("toolu_1", "shell", command));
    assert!(told.contains("interrupted"), "{told}");
    assert_eq!(stage.file("half.txt"), None);
    worked(&client.call_as("toolu_2", "shell", json!({"command": "cat note.txt"})));
    assert_eq!(client.leave().code, Some(0));
    assert_eq!(stage.json(&["ls"])["status"], "idle");
}

#[test]
fn a_killed_server_says_what_it_cannot_know_about_effects_outside() {
    let outside = AGENT.replace("effect = \"workspace\"", "effect = \"external\"");
    for (agent, is_outside) in [(AGENT, false), (outside.as_str(), true)] {
        let stage = Stage::new();
        let connected = || {
            let mut client = Client::start_with(&stage, agent, &[]);
            assert!(client.shake_hands(&json!({})));
            client
        };
        let mut client = connected();
        let script = json!({"script": "echo half > half.txt; sleep 600"});
        client.post_call(Some("toolu_1"), "mend", script.clone());
        wait_until("the file", || stage.file("half.txt").is_some());
        client.kill();
        let mut client = connected();
        let reason = failed(&client.call_as("toolu_1", "mend", script));
        assert!(reason.contains("changes to files were rolled back"), "{reason}");
        assert_eq!(
            reason.contains("may have happened: check that before you repeat it"),
            is_outside,
            "{reason}"
        );
        assert_eq!(stage.file("half.txt"), None);
    }
}

#[test]
fn a_call_of_a_client_that_is_gone_is_finished() {
    let stage = Stage::new();
    let log = text_of(&stage.path("server.log"));
    let mut client = Client::connected(&stage, &["--log-file", &log]);
    let command = json!({"command": "echo begun > begun; while [ ! -e go ]; do sleep 0.05; done; echo done > done.txt"});
    client.post_call(Some("toolu_1"), "shell", command.clone());
    wait_until("the call", || stage.file("begun").is_some());
    let waiting = std::thread::spawn(move || client.leave());
    wait_until("the SDK to stop waiting for the handler", || has_stopped_waiting(&log));
    std::fs::write(stage.path("files/go"), "").unwrap();
    let left = waiting.join().unwrap();
    assert_eq!(left.code, Some(0), "{}", left.errors);
    assert_eq!(stage.file("done.txt").unwrap(), "done\n");
    std::fs::remove_file(stage.path("files/done.txt")).unwrap();
    let mut client = Client::connected(&stage, &[]);
    worked(&client.call_as("toolu_1", "shell", command));
    assert_eq!(stage.file("done.txt"), None, "a repeated call runs nothing");
}

#[test]
fn a_signal_rolls_running_calls_back() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    client.post_call(None, "shell", json!({"command": "echo half > half.txt; sleep 600"}));
    wait_until("the call", || stage.file("half.txt").is_some());
    signal(client.child(), "TERM");
    let left = client.leave();
    assert_eq!(left.code, Some(130), "{}", left.errors);
    assert_eq!(stage.file("half.txt"), None);
    assert_eq!(stage.json(&["ls"])["status"], "idle");
}

/// Number of servers that are killed at a random time.
fn runs() -> u64 {
    std::env::var("BACKSTITCH_KILL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(6)
}

#[test]
fn a_server_that_is_killed_at_any_time_runs_each_call_once_or_not_at_all() {
    let mut random = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let stage = Stage::new();
    let (calls, mut done) = (4, vec![None; 4]);
    let script = |number: usize| json!({"script": format!("echo {number} >> lines.txt; sleep 0.05; echo {number} >> more.txt")});
    for run in 0..=runs() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut client = Client::connected(&stage, &[]);
        if run == runs() {
            // The last server is not killed: every call has a result now.
            for (number, known) in done.iter_mut().enumerate() {
                let answer = client.call_as(&format!("call-{number}"), "mend", script(number));
                let (told, is_error) = super::client::text(&answer);
                assert!(!is_error || told.contains("interrupted"), "{told}");
                if let Some(before) = known.replace(!is_error) {
                    assert_eq!(before, !is_error, "a result does not change");
                }
            }
            assert_eq!(client.leave().code, Some(0));
            continue;
        }
        for number in 0..calls {
            client.post_call(Some(&format!("call-{number}")), "mend", script(number));
        }
        std::thread::sleep(std::time::Duration::from_micros((random >> 33) % 700_000));
        client.kill();
    }
    let lines = |name: &str| {
        let mut lines: Vec<_> = stage.file(name).unwrap_or_default().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let expected: Vec<_> = done
        .iter()
        .enumerate()
        .filter(|(_, done)| **done == Some(true))
        .map(|(number, _)| number.to_string())
        .collect();
    assert_eq!(
        lines("lines.txt"),
        expected,
        "each call that succeeded has left its line once, and no other has"
    );
    assert_eq!(lines("more.txt"), expected);
    let verified = stage.run(&["verify"]);
    assert_eq!(verified.code, Some(0), "{}{}", verified.output, verified.errors);
}
