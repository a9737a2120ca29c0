//! The limits of commands as users set them: sockets, paths that may be written, systems without a sandbox, and commands
//! that end the runtime.
#![cfg(target_os = "linux")]

use std::os::unix::fs::symlink;
use std::process::Output;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};

use crate::sandbox::{has_python, is_unsupported, shell};
use crate::stage::{Stage, scripted, wait_until};

/// Calls of the system for Landlock.
const LANDLOCK: [i64; 3] = [444, 445, 446];

/// The call that sets a filter.
const SECCOMP: i64 = if cfg!(target_arch = "x86_64") { 317 } else { 277 };

/// A stage whose commands are confined by default, and a model that makes these calls, one in each turn.
fn with_calls(commands: &[&str]) -> (Stage, String) {
    let stage = Stage::confined();
    let calls = commands.iter().map(|command| json!({"calls": [shell(command)]}));
    let replies: Vec<Value> = calls.chain([json!({"text": "Done."})]).collect();
    let model = scripted(&stage, &json!(replies));
    (stage, model)
}

/// Runs the command as on a system that lacks these calls.
fn run_without(calls: &[i64], stage: &Stage, arguments: &[&str]) -> Output {
    let rules = calls.iter().map(|number| (*number, Vec::new())).collect();
    let (allow, absent) = (SeccompAction::Allow, SeccompAction::Errno(38));
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter: BpfProgram =
        SeccompFilter::new(rules, allow, absent, architecture).unwrap().try_into().unwrap();
    let mut command = stage.command(arguments);
    // The filter applies to a thread and to what it starts.
    let started = std::thread::spawn(move || {
        seccompiler::apply_filter(&filter).unwrap();
        command.output().unwrap()
    });
    started.join().unwrap()
}

#[test]
fn a_limit_that_was_asked_for_and_cannot_be_enforced_is_refused() {
    if is_unsupported() {
        return;
    }
    let rows: [(&[i64], &str, &[&str], &str); 7] = [
        (&LANDLOCK, "", &["--sandbox", "read-only", "--network", "off"], "no Landlock"),
        (&LANDLOCK, "", &["--sandbox", "workspace"], "no Landlock"),
        (&LANDLOCK, "sandbox = 'workspace'", &[], "no Landlock"),
        (&[SECCOMP], "", &["--network", "off"], "no seccomp"),
        (&[SECCOMP], "", &["--sockets", "off"], "no seccomp"),
        (&[SECCOMP], "[sandbox]\nsockets = 'inside'", &[], "no seccomp"),
        (&[SECCOMP, 444], "[sandbox]\nnetwork = false", &[], "no Landlock"),
    ];
    for (calls, agent, flags, words) in rows {
        let (stage, model) = with_calls(&["echo ran > ran.txt"]);
        let agent = stage.write("agent.toml", agent);
        let arguments = [&["run", "Do it", "--model", &model, "--agent", &agent], flags].concat();
        let ran = run_without(calls, &stage, &arguments);
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{flags:?}: {errors}");
        assert!(errors.contains(words) && errors.contains("cannot be enforced"), "{flags:?}: {errors}");
        assert_eq!(stage.file("ran.txt"), None);
    }
    // As a setting of the user.
    let (stage, model) = with_calls(&["echo ran > ran.txt"]);
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    stage.write("config/backstitch/config.toml", "sandbox = 'read-only'");
    let ran = run_without(&LANDLOCK, &stage, &["run", "Do it", "--model", &model]);
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
}

#[test]
fn the_default_says_what_is_missing_before_anything_runs() {
    if is_unsupported() {
        return;
    }
    for (calls, words) in [(&LANDLOCK[..], "no Landlock"), (&[SECCOMP], "no seccomp")] {
        let (stage, model) = with_calls(&["echo ran > ran.txt"]);
        let ran = run_without(calls, &stage, &["run", "Do it", "--model", &model, "--approve", "auto"]);
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{errors}");
        let first = errors.lines().next().unwrap();
        assert!(first.starts_with("the sandbox is not complete") && first.contains(words), "{errors}");
        assert_eq!(stage.file("ran.txt").unwrap(), "ran\n");
        let ran = run_without(calls, &stage, &["doctor"]);
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn where_files_cannot_be_limited_a_person_is_asked_by_default() {
    if is_unsupported() {
        return;
    }
    let asked = |more: &[&str], agent: &str, settings: &str| {
        let (stage, model) = with_calls(&["echo ran > ran.txt"]);
        let file = stage.write("agent.toml", agent);
        std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
        stage.write("config/backstitch/config.toml", settings);
        let arguments = ["run", "Do it", "--model", &model, "--agent", &file];
        let ran = run_without(&LANDLOCK, &stage, &[&arguments[..], more].concat());
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        let is_asked = ran.status.code() == Some(3);
        assert_eq!(stage.file("ran.txt").is_none(), is_asked, "{errors}");
        (is_asked, errors)
    };
    let (is_asked, errors) = asked(&[], "", "");
    assert!(
        is_asked && errors.contains("no Landlock") && errors.contains("you are asked before"),
        "{errors}"
    );
    let (is_asked, errors) = asked(&["--verbose"], "", "");
    let line =
        "mode ask: commands can read and write every file of this user, because the system has no Landlock";
    assert!(is_asked && errors.contains(line), "the first line does not promise what is not there: {errors}");
    // Without seccomp, nothing refuses the network.
    let (stage, model) = with_calls(&["echo ran > ran.txt"]);
    let ran = run_without(&[SECCOMP], &stage, &["run", "Do it", "--model", &model]);
    assert_eq!((ran.status.code(), stage.file("ran.txt")), (Some(3), None), "{ran:?}");
    // What was chosen holds.
    for (more, agent, settings) in [
        (&["--approve", "auto"][..], "", ""),
        (&["--sandbox", "off"], "", ""),
        (&[], "[approval]\ndefault = 'auto'", ""),
        (&[], "", "approve = 'auto'"),
    ] {
        let (is_asked, errors) = asked(more, agent, settings);
        assert!(!is_asked, "{more:?} {agent} {settings}: {errors}");
    }
}

/// `clone3`, with which namespaces are made.
const NAMESPACES: i64 = 435;

#[test]
fn namespaces_are_reported_and_not_needed() {
    if is_unsupported() {
        return;
    }
    let (stage, model) = with_calls(&["echo $$ > ran.txt"]);
    let ran = run_without(&[NAMESPACES], &stage, &["run", "Do it", "--model", &model]);
    assert!(ran.status.success(), "{ran:?}");
    assert!(stage.file("ran.txt").is_some());
    let ran = run_without(&[NAMESPACES], &stage, &["doctor"]);
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(text.contains("commands have no PID, IPC and mount namespaces"), "{text}");
    let text = stage.run(&["doctor"]).output;
    let has_own = text.contains("commands in the sandbox have PID, IPC and mount namespaces of their own");
    // In them, numbers are small.
    stage.run(&["run", "Do it", "--model", &model]).worked_quietly();
    let number: u32 = stage.file("ran.txt").unwrap().trim().parse().unwrap();
    assert_eq!(number < 10, has_own, "{number}: {text}");
}

const CONNECT: &str = "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); \
    s.connect('../server.sock'); print('reached')\" > out.txt 2> error.txt; cat error.txt; true";

#[test]
fn sockets_are_refused_until_they_are_allowed() {
    if is_unsupported() || !has_python() {
        return;
    }
    let rows: [(&str, &[&str], bool); 6] = [
        ("", &[], false),
        ("", &["--sockets", "off"], false),
        ("", &["--sockets", "inside"], false),
        ("", &["--sockets", "on"], true),
        ("[sandbox]\nsockets = 'on'", &["--network", "off"], true),
        ("[sandbox]\nsockets = 'on'", &["--sockets", "off"], false),
    ];
    for (agent, flags, reaches) in rows {
        let (stage, model) = with_calls(&[CONNECT]);
        let _server = std::os::unix::net::UnixListener::bind(stage.path("server.sock")).unwrap();
        let agent = stage.write("agent.toml", agent);
        let arguments = [&["run", "Do it", "--model", &model, "--agent", &agent], flags].concat();
        stage.run(&arguments).worked_quietly();
        assert_eq!(stage.file("out.txt").unwrap() == "reached\n", reaches, "{flags:?}");
        let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
        // Without a network either, the output does not show which of the two it was.
        assert_eq!(log.contains("the sandbox refuses "), !reaches, "{flags:?}: {log}");
    }
    let (stage, model) = with_calls(&["true"]);
    let refused = stage.run(&["run", "Do it", "--model", &model, "--sandbox", "off", "--sockets", "off"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("`sockets` has no effect"), "{refused:?}");
}

const REPLACE: &str = "rm -rf cache; ln -s ../secret cache";
const WRITE: &str = "echo PWNED >> ../secret/keys; echo PWNED > cache/keys";

fn with_secret(commands: &[&str]) -> (Stage, String) {
    let (stage, model) = with_calls(commands);
    std::fs::create_dir(stage.path("secret")).unwrap();
    std::fs::write(stage.path("secret/keys"), "mine").unwrap();
    (stage, model)
}

#[test]
fn a_path_that_a_command_replaced_by_a_link_is_not_written() {
    if is_unsupported() {
        return;
    }
    for exists in [true, false] {
        let (stage, model) = with_secret(&[REPLACE, WRITE]);
        if exists {
            std::fs::create_dir(stage.path("files/cache")).unwrap();
        }
        let agent = stage.write("agent.toml", "[sandbox]\nwrite = ['files/cache']\nnetwork = false");
        let ran = stage.run(&["run", "Do it", "--model", &model, "--agent", &agent]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.errors.contains("files/cache does not exist"), !exists, "{ran:?}");
        assert_eq!(std::fs::read_to_string(stage.path("secret/keys")).unwrap(), "mine", "{exists}");
        let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
        assert_eq!(log.contains("was not a link when the session started"), exists, "{log}");
    }
}

/// The paths are recorded, so that the next process of the session does not follow the link either.
#[test]
fn a_link_is_not_followed_when_the_session_is_resumed() {
    if is_unsupported() {
        return;
    }
    let (stage, _) = with_secret(&[]);
    let replies =
        json!([{"calls": [shell(REPLACE)]}, {"text": "Done."}, {"calls": [shell(WRITE)]}, {"text": "Done."}]);
    let model = scripted(&stage, &replies);
    std::fs::create_dir(stage.path("files/cache")).unwrap();
    let agent = stage.write("agent.toml", "[sandbox]\nwrite = ['files/cache']\nnetwork = false");
    stage.run(&["run", "Do it", "--model", &model, "--agent", &agent]).worked_quietly();
    stage.run(&["ask", &stage.session(), "Again"]).worked_quietly();
    assert_eq!(std::fs::read_to_string(stage.path("secret/keys")).unwrap(), "mine");
    let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
    assert!(log.contains("was not a link when the session started"), "{log}");
}

#[test]
fn a_workspace_that_became_a_link_is_not_opened() {
    if is_unsupported() {
        return;
    }
    let (stage, model) = with_secret(&["true"]);
    stage.run(&["run", "Do it", "--model", &model]).worked_quietly();
    let session = stage.session();
    std::fs::rename(stage.path("files"), stage.path("moved")).unwrap();
    symlink(stage.path("secret"), stage.path("files")).unwrap();
    let mut command = stage.command(&["ask", &session, "Again"]);
    let ran = command.current_dir(stage.path("moved")).output().unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(!ran.status.success(), "{errors}");
    assert!(errors.contains("is a link now") && errors.contains("--workspace DIR"), "{errors}");
}

/// A command that kills the runtime would do so again after each `resume`.
#[test]
fn a_command_in_which_the_runtime_ended_three_times_waits_for_a_decision() {
    if is_unsupported() {
        return;
    }
    let (stage, model) = with_calls(&["mktemp ./started.XXXXXX; sleep 1000"]);
    let started = || {
        let names = std::fs::read_dir(stage.path("files")).unwrap().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with("started.")).collect::<Vec<_>>()
    };
    let mut known = Vec::new();
    for attempt in 0..3 {
        let arguments: &[&str] = match attempt {
            0 => &["run", "Do it", "--model", &model, "--network", "off"],
            _ => &["resume"],
        };
        let mut child = stage.command(arguments).spawn().unwrap();
        wait_until("the command", || started().iter().any(|name| !known.contains(name)));
        known = started();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ran = stage.run(&["resume"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.errors.contains("resolve"), "{ran:?}");
}
