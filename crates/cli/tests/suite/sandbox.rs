//! The sandbox of commands: its default, its settings, and recovery without a decision.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Stage, interrupt, last_line, scripted, wait_until};

/// True if the test has to be skipped.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn is_unsupported() -> bool {
    let support = backstitch::host::probe();
    let is_complete = support.landlock >= 3 && support.seccomp;
    if !is_complete {
        eprintln!("SKIPPED: this system cannot confine processes ({support})");
    }
    !is_complete
}

pub(crate) fn shell(command: &str) -> Value {
    json!({"name": "shell", "arguments": {"command": command}})
}

/// A stage whose commands are confined by default, and the model that runs one command.
fn with_command(command: &str) -> (Stage, String) {
    let stage = Stage::confined();
    let model = scripted(&stage, &json!([{"calls": [shell(command)]}, {"text": "Done."}]));
    (stage, model)
}

/// The request after the command, which holds its result.
fn told(stage: &Stage) -> String {
    stage.run(&["log", "--all", "--json"]).worked_quietly()
}

const WRITES: &str =
    "echo out > ../outside.txt; echo in > inside.txt; test -n \"$TMPDIR\" && echo tmp > \"$TMPDIR/x\"";

#[test]
pub(crate) fn commands_write_only_in_the_workspace_by_default() {
    if is_unsupported() {
        return;
    }
    let (stage, model) = with_command(WRITES);
    assert_eq!(stage.run(&["run", "Do it", "--model", &model]).worked_quietly(), "Done.\n");
    assert_eq!(stage.file("inside.txt").unwrap(), "in\n");
    assert!(!stage.path("outside.txt").exists());
    let told = told(&stage);
    for words in ["the sandbox refused to write", "outside.txt", "`write` in `[sandbox]`"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
pub(crate) fn commands_have_no_network_and_read_no_secrets_by_default() {
    if is_unsupported() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (secret, reach) = ("7d1e-not-for-models", format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"));
    let command = format!("cat ~/.ssh/id; cat ~/notes; {reach} && echo reached > reached");
    for (flags, is_reached, is_read) in [
        (&[][..], false, false),
        (&["--network", "on"][..], true, false),
        (&["--sandbox", "off"][..], true, true),
    ] {
        let (stage, model) = with_command(&command);
        let home = stage.path("person");
        std::fs::create_dir_all(home.join(".ssh")).unwrap();
        std::fs::write(home.join(".ssh/id"), secret).unwrap();
        std::fs::write(home.join("notes"), "a plain note").unwrap();
        let stage = stage.with_variable("HOME", home.to_str().unwrap());
        let arguments = [&["run", "Do it", "--model", &model], flags].concat();
        stage.run(&arguments);
        let told = told(&stage);
        assert_eq!(stage.file("reached").is_some(), is_reached, "{flags:?}: {told}");
        assert_eq!(told.contains(secret), is_read, "{flags:?}: {told}");
        assert!(told.contains("a plain note"), "{flags:?}: {told}");
    }
}

#[test]
fn commands_read_neither_the_store_nor_the_state_wherever_they_are() {
    if is_unsupported() {
        return;
    }
    let reads =
        "cat ../store/store.db > /dev/null && touch store; cat ../state/backstitch/history && touch state";
    let (stage, model) = with_command(&format!("{reads}; cat ../plain && touch plain"));
    std::fs::create_dir_all(stage.path("state/backstitch")).unwrap();
    stage.write("state/backstitch/history", "typed");
    stage.write("plain", "a plain note");
    assert_eq!(stage.run(&["run", "Do it", "--model", &model]).worked_quietly(), "Done.\n");
    assert_eq!((stage.file("store"), stage.file("state")), (None, None));
    assert!(stage.file("plain").is_some());
}

#[test]
pub(crate) fn a_command_that_needs_more_waits_for_a_person_and_then_has_it() {
    if is_unsupported() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command =
        format!("cat ~/.ssh/id > key; bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && touch reached");
    let stage = Stage::confined();
    let home = stage.path("person");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id"), "key").unwrap();
    let home = home.canonicalize().unwrap();
    let stage = stage.with_variable("HOME", home.to_str().unwrap());
    let needs = json!({"network": true, "read": [home.join(".ssh")], "reason": "to reach the server"});
    let call = json!({"name": "shell", "arguments": {"command": command, "needs": needs}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
    // A rule about all commands is about those inside of the sandbox.
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    stage.write("config/backstitch/config.toml", "[rules]\nallow = ['shell']\n");
    let paused = stage.run(&["run", "Do it", "--model", &model]);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    assert!(paused.errors.contains("to reach the server"), "{paused:?}");
    assert_eq!((stage.file("reached"), stage.file("key")), (None, None));
    let ended = last_line(&stage.run(&["resume", "--json"]).output);
    let (session, id) = (&ended["session"], &ended["call"]);
    let arguments = ["resolve", session.as_str().unwrap(), id.as_str().unwrap(), "approve"];
    stage.run(&arguments).worked();
    stage.run(&["resume"]).worked_quietly();
    assert!(stage.file("reached").is_some());
    assert_eq!(stage.file("key").as_deref(), Some("key"));
    // Its intent says what it was.
    let shown = stage.json(&["show", session.as_str().unwrap(), id.as_str().unwrap()]);
    assert_eq!(shown["effect"], "external", "{shown}");
}

#[test]
fn flags_and_agent_files_set_the_sandbox() {
    if is_unsupported() {
        return;
    }
    let rows: [(&str, &[&str], [bool; 2]); 5] = [
        ("", &["--sandbox", "off"], [true, true]),
        ("", &["--sandbox", "read-only"], [false, false]),
        ("sandbox = 'read-only'", &[], [false, false]),
        ("sandbox = 'read-only'", &["--sandbox", "workspace"], [false, true]),
        ("sandbox = 'off'", &[], [true, true]),
    ];
    for (text, flags, expected) in rows {
        let (stage, model) = with_command(WRITES);
        let agent = stage.write("agent.toml", text);
        let arguments = [&["run", "Do it", "--model", &model, "--agent", &agent], flags].concat();
        assert_eq!(stage.run(&arguments).worked_quietly(), "Done.\n", "{text} {flags:?}");
        let found = [stage.path("outside.txt").exists(), stage.file("inside.txt").is_some()];
        assert_eq!(found, expected, "{text} {flags:?}");
    }
}

#[test]
fn further_paths_are_relative_to_the_agent_file_and_never_hold_the_store() {
    if is_unsupported() {
        return;
    }
    let (stage, model) = with_command("echo cached > ../cache/file");
    std::fs::create_dir(stage.path("cache")).unwrap();
    let agent = stage.write("agent.toml", "[sandbox]\nwrite = ['cache']");
    let arguments = ["run", "Do it", "--model", &model, "--agent", &agent];
    stage.run(&arguments).worked_quietly();
    assert_eq!(std::fs::read_to_string(stage.path("cache/file")).unwrap(), "cached\n");
    stage.write("agent.toml", "[sandbox]\nwrite = ['.']");
    stage.run(&arguments).worked_quietly();
    assert!(told(&stage).contains("holds the store"));
}

#[test]
fn a_sandbox_that_makes_no_sense_is_refused() {
    let (stage, model) = with_command("true");
    let rows: [(&[&str], &str); 3] = [
        (&["--sandbox", "some"], "there are workspace, read-only and off"),
        (&["--sandbox", "off", "--network", "off"], "the sandbox is off"),
        (&["--network", "maybe"], "possible values: on, off"),
    ];
    for (flags, words) in rows {
        let ran = stage.run(&[&["run", "Do it", "--model", &model], flags].concat());
        assert_eq!(ran.code, Some(2), "{flags:?}: {ran:?}");
        assert!(ran.errors.contains(words), "{flags:?}: {ran:?}");
    }
    for (text, words) in [
        ("sandbox = 'some'", "agent.toml:1: sandbox: there is no sandbox \"some\""),
        ("[sandbox]\nmode = 'off'\nnetwork = false", "`network` has no effect"),
        ("[sandbox]\nwrites = []", "unknown field `writes`"),
        ("[sandbox]\nwrite = ['']", "sandbox.write[0]: the path is empty"),
    ] {
        let agent = stage.write("agent.toml", text);
        let ran = stage.run(&["run", "Do it", "--model", &model, "--agent", &agent]);
        assert_eq!(ran.code, Some(2), "{text}: {ran:?}");
        assert!(ran.errors.contains(words), "{text}: {ran:?}");
    }
}

/// Ways in which a writer leaves its command. `$WRITE` is the writer.
const ESCAPES: [&str; 3] = [
    "setsid sh -c \"$WRITE\" > /dev/null 2>&1 &",
    "setsid sh -c '(setsid sh -c \"$WRITE\" > /dev/null 2>&1 < /dev/null &)' &",
    "setsid python3 -c \"$RENAMED\" > /dev/null 2>&1 < /dev/null &",
];

/// Changes its name (`PR_SET_NAME`).
const RENAMED: &str = "import ctypes, time\nctypes.CDLL(None).prctl(15, b') 1 (')\nwhile True:\n    \
    open('beat', 'a').write('beat')\n    time.sleep(0.005)";

/// A command that leaves a writer, and half of its work. The second time it completes.
fn half(escape: &str) -> String {
    format!(
        "export WRITE='while :; do echo beat >> beat; sleep 0.005; done' RENAMED=\"{RENAMED}\"\n\
        echo half > work.txt\nif [ -e ../again ]; then echo whole > work.txt; exit 0; fi\n\
        {escape}\nsleep 1000"
    )
}

pub(crate) fn has_python() -> bool {
    std::process::Command::new("python3").arg("--version").output().is_ok_and(|ran| ran.status.success())
}

fn escapes() -> impl Iterator<Item = &'static str> {
    ESCAPES.into_iter().filter(|escape| has_python() || !escape.contains("python3"))
}

#[track_caller]
fn assert_nobody_writes(path: &Path) {
    let length = || std::fs::metadata(path).map(|found| found.len()).unwrap_or(0);
    let before = length();
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(length(), before, "a process still writes to {}", path.display());
}

#[test]
fn a_command_that_is_killed_with_the_runtime_runs_again_without_a_decision() {
    if is_unsupported() {
        return;
    }
    for escape in escapes() {
        let (stage, model) = with_command(&half(escape));
        let temporary = stage.path("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let stage = stage.with_variable("TMPDIR", temporary.to_str().unwrap());
        let mut child =
            stage.command(&["run", "Do it", "--model", &model, "--network", "off"]).spawn().unwrap();
        wait_until("the writer", || stage.file("beat").is_some_and(|text| !text.is_empty()));
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1, "{escape}");
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::write(stage.path("again"), "").unwrap();
        assert_eq!(stage.run(&["resume"]).worked_quietly(), "Done.\n", "{escape}");
        assert_eq!(stage.file("work.txt").unwrap(), "whole\n", "{escape}");
        assert_eq!(stage.file("beat"), None, "{escape}");
        assert_nobody_writes(&stage.path("files/beat"));
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{escape}");
    }
}

#[test]
fn a_command_with_a_network_waits_for_a_decision_after_a_kill() {
    if is_unsupported() {
        return;
    }
    let (stage, model) = with_command(&half(ESCAPES[0]));
    let mut child = stage.command(&["run", "Do it", "--network", "on", "--model", &model]).spawn().unwrap();
    wait_until("the writer", || stage.file("beat").is_some_and(|text| !text.is_empty()));
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = stage.run(&["resume"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.errors.contains("resolve"), "{ran:?}");
    assert_nobody_writes(&stage.path("files/beat"));
}

#[test]
fn writers_end_with_a_stop_and_with_a_time_limit() {
    if is_unsupported() {
        return;
    }
    for escape in escapes() {
        let (stage, model) = with_command(&half(escape));
        let child = stage.command(&["run", "Do it", "--model", &model]).spawn().unwrap();
        wait_until("the writer", || stage.file("beat").is_some_and(|text| !text.is_empty()));
        let ran = interrupt(child);
        assert_eq!(ran.code, Some(130), "{escape}: {ran:?}");
        assert_eq!(stage.file("beat"), None, "{escape}");
        assert_nobody_writes(&stage.path("files/beat"));

        let stage = Stage::confined();
        let call = json!({"name": "shell", "arguments": {"command": half(escape), "timeout_seconds": 2}});
        let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
        assert_eq!(stage.run(&["run", "Do it", "--model", &model]).worked_quietly(), "Done.\n", "{escape}");
        assert_eq!(stage.file("beat"), None, "{escape}");
        assert_nobody_writes(&stage.path("files/beat"));
    }
}
