//! The shell, through the real runner, on a real directory.

use std::time::Duration;

use backstitch::journal::{ChangeKind, Effect};
use backstitch::ports::{OutputCaps, Sandbox};
use backstitch::tools::{Shell, shell};
use serde_json::json;

use crate::place::Place;

#[tokio::test]
async fn a_command_returns_its_exit_code_and_output() {
    let place = Place::on_disk();
    place.write("sub/in.txt", "one\n");
    let harness = place.harness(vec![shell()]).await;
    let command = json!({"command": "cat in.txt; echo two >&2; echo three > out.txt", "directory": "sub"});
    assert_eq!(
        harness.succeeds("shell", command).await,
        json!({"exit_code": 0, "stdout": "one\n", "stderr": "two\n"})
    );
    assert_eq!(place.read("sub/out.txt").unwrap(), "three\n");
    assert_eq!(
        harness.succeeds("shell", json!({"command": "true"})).await,
        json!({"exit_code": 0, "stdout": "", "stderr": ""})
    );
    let read = harness.succeeds("shell", json!({"command": "tr a-z A-Z", "input": "seam"})).await;
    assert_eq!(read["stdout"], "SEAM");
}

#[tokio::test]
async fn a_nonzero_exit_code_is_a_result_and_keeps_the_files() {
    let place = Place::on_disk();
    let harness = place.harness(vec![shell()]).await;
    let result = harness.succeeds("shell", json!({"command": "echo kept > a.txt; exit 3"})).await;
    assert_eq!(result, json!({"exit_code": 3, "stdout": "", "stderr": ""}));
    assert_eq!(place.read("a.txt").unwrap(), "kept\n");
}

#[tokio::test]
async fn a_nonzero_exit_code_rolls_back_if_the_call_asks_for_it() {
    let place = Place::on_disk();
    place.write("a.txt", "before");
    let harness = place.harness(vec![shell()]).await;
    let before = place.root();
    let command = "echo after > a.txt; mkdir b; chmod 700 a.txt; echo why >&2; exit 3";
    let (kind, text) = harness.fails("shell", json!({"command": command, "rollback_on_error": true})).await;
    assert_eq!(kind, "exit_code");
    assert_eq!(text, "exit code 3; what the command changed in the workspace was rolled back\nstderr:\nwhy");
    assert_eq!(place.root(), before);
    let kept = json!({"command": "echo more >> a.txt", "rollback_on_error": true});
    harness.succeeds("shell", kept).await;
    assert_eq!(place.read("a.txt").unwrap(), "beforemore\n");
}

#[tokio::test]
async fn a_command_that_did_not_end_by_itself_fails_and_is_rolled_back() {
    let place = Place::on_disk();
    place.write("a.txt", "before");
    place.write("file", "");
    std::os::unix::fs::symlink("/tmp", place.host_path("out")).unwrap();
    let harness = place.harness(vec![shell()]).await;
    let before = place.root();
    let rows = [
        (json!({"command": "echo half > a.txt; kill -9 $$"}), "killed", "signal 9"),
        (json!({"command": "true", "directory": "nowhere"}), "could_not_start", "nowhere"),
        (json!({"command": "true", "directory": "file"}), "could_not_start", "file"),
        (json!({"command": "true", "directory": "out"}), "could_not_start", "out of the workspace"),
        (json!({"command": "true", "directory": "/tmp"}), "invalid_path", "relative to the workspace"),
        (json!({"command": "echo \0"}), "could_not_start", "NUL"),
        (json!({"command": "  "}), "validation", "empty"),
        (json!({"command": "true", "timeout_seconds": 0}), "validation", "at least 1"),
        (json!({"command": "true", "cwd": "."}), "invalid_arguments", "cwd"),
    ];
    for (arguments, kind, words) in rows {
        let (found, text) = harness.fails("shell", arguments.clone()).await;
        assert_eq!(found, kind, "{arguments}: {text}");
        assert!(text.contains(words), "{arguments}: {text}");
        assert_eq!(place.root(), before, "{arguments}");
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_fails_and_is_rolled_back() {
    let place = Place::on_disk();
    place.write("a.txt", "before");
    let harness = place.harness(vec![shell()]).await;
    let before = place.root();
    // On a busy machine, the command may not have begun within the first limits.
    for seconds in [1, 2, 4, 8, 16, 32] {
        let command = "echo half > a.txt; echo so far; sleep 600";
        let arguments = json!({"command": command, "timeout_seconds": seconds});
        let (kind, text) = harness.fails("shell", arguments).await;
        assert_eq!(kind, "timed_out", "{text}");
        assert!(text.contains(&format!("longer than {seconds} s")), "{text}");
        assert_eq!(place.root(), before, "{seconds}");
        if text.ends_with("stdout:\nso far") {
            return;
        }
    }
    panic!("the output of the command is not shown");
}

#[tokio::test]
async fn background_processes_end_with_the_command() {
    let place = Place::on_disk();
    let harness = place.harness(vec![shell()]).await;
    let command = "(while true; do echo x >> late.txt; sleep 0.01; done) & \
        until [ -s late.txt ]; do sleep 0.01; done; echo started";
    assert_eq!(harness.succeeds("shell", json!({"command": command})).await["stdout"], "started\n");
    let size = || place.read("late.txt").unwrap().len();
    let then = size();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(size(), then);
}

#[tokio::test]
async fn the_middle_of_long_output_is_left_out() {
    let place = Place::on_disk();
    let caps = OutputCaps { head: 10, tail: 10 };
    let harness = place.harness(vec![Shell { caps, ..Shell::default() }.tool()]).await;
    let result = harness.succeeds("shell", json!({"command": "seq 1 100000"})).await;
    let text = result["stdout"].as_str().unwrap();
    assert!(text.starts_with("1\n2\n3\n4\n5\n\n[") && text.ends_with("\n100000\n"), "{text}");
    assert!(text.contains("588875 bytes left out"), "{text}");
}

#[tokio::test]
async fn a_shell_can_be_configured() {
    let hidden = vec!["PATH".to_owned()];
    let tool = Shell { effect: Effect::Workspace, hidden, ..Shell::default() }.tool();
    assert_eq!(tool.spec.effect, Effect::Workspace);
    let place = Place::on_disk();
    let harness = place.harness(vec![tool]).await;
    let ran = harness.succeeds("shell", json!({"command": "/usr/bin/env | /usr/bin/grep -c ^HOME="})).await;
    assert_eq!(ran["stdout"], "1\n");
    let (timeout, longest_timeout) = (Duration::from_secs(60), Duration::from_millis(200));
    let limited = Shell { timeout, longest_timeout, ..Shell::default() }.tool();
    let place = Place::on_disk();
    let harness = place.harness(vec![limited]).await;
    let (kind, _) = harness.fails("shell", json!({"command": "sleep 60", "timeout_seconds": 60})).await;
    assert_eq!(kind, "timed_out");
}

#[tokio::test]
async fn a_workspace_in_memory_cannot_run_commands() {
    let harness = Place::in_memory().harness(vec![shell()]).await;
    let (kind, text) = harness.fails("shell", json!({"command": "true"})).await;
    assert_eq!(kind, "could_not_start");
    assert!(text.contains("not on the disk"), "{text}");
}

#[tokio::test]
async fn paths_that_are_not_rolled_back_are_named() {
    let place = Place::on_disk();
    place.write("a.txt", "before");
    let harness = place.harness(vec![shell()]).await;
    let fails = |command: &str| {
        let arguments = json!({"command": command, "rollback_on_error": true});
        harness.fails("shell", arguments)
    };
    harness.succeeds("shell", json!({"command": "mkfifo fifo"})).await;
    let (_, text) = fails("chmod 600 fifo; echo after > a.txt; exit 3").await;
    assert!(text.ends_with("\nnot rolled back: fifo (a socket, a pipe or a device)"), "{text}");
    assert_eq!(place.read("a.txt").unwrap(), "before");
    // They are named even if nothing else was changed.
    let (_, text) = fails("chmod 644 fifo; exit 3").await;
    assert!(text.contains("not rolled back: fifo"), "{text}");
    harness.succeeds("shell", json!({"command": "rm fifo"})).await;
    let (_, text) = fails("echo after > a.txt; exit 3").await;
    assert!(!text.contains("not rolled back"), "{text}");

    // A file that another process is writing is not rolled back, and named.
    let log = place.host_path("run.log");
    let mut tee = std::process::Command::new("tee");
    let tee = tee.arg(&log).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut tee = tee.spawn().unwrap();
    let mut input = tee.stdin.take().unwrap();
    let mut say = |text: &str| {
        std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
        while !std::fs::read_to_string(&log).is_ok_and(|found| found.ends_with(text)) {
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    say("one\n");
    let (_, text) = fails("echo two >> run.log; echo after > a.txt; exit 3").await;
    assert!(text.ends_with("\nnot rolled back: run.log (in use by another process)"), "{text}");
    assert_eq!(place.read("a.txt").unwrap(), "before");
    drop(input);
    tee.wait().unwrap();
    assert_eq!(place.read("run.log").unwrap(), "one\ntwo\n");
}

#[tokio::test]
async fn a_confined_command_writes_only_in_the_workspace_and_reports_what_was_refused() {
    let sandbox = Sandbox::workspace().without_network();
    let tool = Shell { sandbox: sandbox.clone(), ..Shell::default() }.tool();
    if !backstitch::host::probe().enforces(&sandbox) {
        // Nothing is promised that the system does not enforce.
        assert_eq!(tool.spec.effect, Effect::External);
        return;
    }
    assert_eq!(tool.spec.effect, Effect::Workspace);
    assert!(tool.spec.description.contains("It has no network."), "{}", tool.spec.description);
    let place = Place::on_disk();
    let harness = place.harness(vec![tool]).await;
    let result =
        harness.succeeds("shell", json!({"command": "echo in > in.txt; echo out > ../out.txt"})).await;
    assert_eq!(place.read("in.txt").unwrap(), "in\n");
    assert!(!place.host_path("../out.txt").exists());
    let refused = result["sandbox"].as_str().unwrap();
    assert!(refused.contains("/out.txt") && refused.contains("`write` in `[sandbox]`"), "{result}");
    let arguments = json!({"command": "echo out > ../out.txt", "rollback_on_error": true});
    let (_, text) = harness.fails("shell", arguments).await;
    assert!(text.contains("\nsandbox:\nthe sandbox refused to write "), "{text}");
    let fine = harness.succeeds("shell", json!({"command": "true"})).await;
    assert_eq!(fine, json!({"exit_code": 0, "stdout": "", "stderr": ""}));
}

#[tokio::test]
async fn a_command_records_the_paths_that_it_changed() {
    let place = Place::on_disk();
    place.write("a.txt", "one\n");
    place.write("stays.txt", "the same\n");
    let harness = place.harness(vec![shell()]).await;
    harness.succeeds("shell", json!({"command": "echo more >> a.txt; echo three > b.txt"})).await;
    let state = harness.live.state().await;
    let call = state.view.calls().next_back().unwrap();
    let changes = call.finished.as_ref().unwrap().record.changes.clone().unwrap();
    let listed: Vec<_> = changes
        .paths()
        .unwrap()
        .iter()
        .map(|changed| {
            let bytes = [changed.before, changed.after].map(|content| content.and_then(|one| one.bytes));
            (changed.path.as_str(), changed.change, bytes)
        })
        .collect();
    let expected =
        [("a.txt", ChangeKind::Modified, [Some(4), Some(9)]), ("b.txt", ChangeKind::Added, [None, Some(6)])];
    assert_eq!(listed, expected);
}
