//! What a hook does when it cannot do its work.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::stand_in::StandIn;
use crate::stage::{Stage, ended, wait_until};

#[test]
fn a_hook_that_cannot_work_says_so_and_stops_nobody() {
    let stage = Stage::new();
    // The directory of the store is a file.
    fs::write(stage.path("store"), "").unwrap();
    let call = || json!({"tool_use_id": "t1", "tool_name": "Bash", "tool_input": {"command": "ls"}});
    let ran = StandIn::new(&stage, "one").try_report("PreToolUse", call());
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), ""), "{}", ran.errors);
    assert!(ran.errors.contains("Backstitch could not record this step"), "{}", ran.errors);

    let strict = StandIn::new(&stage, "one").strict();
    let ran = strict.try_report("PreToolUse", call());
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""));
    let decision: Value = serde_json::from_str(&ran.output).unwrap();
    assert_eq!(decision["hookSpecificOutput"]["permissionDecision"], "deny");
    // Only a call can be denied.
    let ran = strict.try_report("Stop", json!({}));
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), ""));
}

#[test]
fn a_directory_that_is_never_guarded_is_named_once() {
    let stage = Stage::new();
    let home = crate::stage::text_of(&stage.path("files"));
    let stage = stage.with_variable("HOME", &home);
    let program = StandIn::new(&stage, "one");
    let started = program.try_report("SessionStart", json!({}));
    assert_eq!(started.code, Some(1), "{}", started.errors);
    assert!(started.errors.contains("cannot be a workspace"), "{}", started.errors);
    program.prompt("Mend it");
    let call = json!({"tool_use_id": "t1", "tool_name": "Bash", "tool_input": {}});
    assert_eq!(program.try_report("PreToolUse", call.clone()).worked(), "");
    assert!(program.strict().try_report("PreToolUse", call).worked().contains("deny"));
    assert!(stage.run(&["guard", "install", "claude-code"]).failed().contains("nothing was changed"));
    assert!(!stage.path("files/.claude").exists());
}

#[test]
fn wrong_usage_and_settings_stop_nobody_either() {
    let stage = Stage::new();
    fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    fs::write(stage.path("config/backstitch/config.toml"), "nonsense = [").unwrap();
    // Exit code 2 would stop the program.
    assert_eq!(
        StandIn::new(&stage, "one").try_report("UserPromptSubmit", json!({"prompt": "x"})).code,
        Some(1)
    );
    assert_eq!(stage.run(&["guard", "hook", "claude-code", "--of-a-later-version"]).code, Some(1));
    assert_eq!(stage.run(&["guard", "hook", "emacs"]).code, Some(1));
    assert_eq!(stage.run(&["guard", "hook", "claude-code", "--strict", "--nope"]).code, Some(2));
}

#[test]
fn hostile_events_are_refused_or_recorded_as_text() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "\u{1b}[31m../../one");
    for input in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{\"hook_event_name\":\"PreToolUse\"}",
        &[b'['; 100_000],
    ] {
        let ran = ended(program.spawn(input));
        assert_eq!((ran.code, ran.output.as_str()), (Some(1), ""), "{}", ran.errors);
    }
    // An event that nobody needs is ignored.
    assert_eq!(program.try_report("Later\u{7}Event", json!({})).worked(), "");
    program.start();
    program.prompt("\u{1b}]0;title\u{7}prompt\r\nsecond");
    let call = program.new_call();
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let more = json!({"tool_input": {"deep": deep, "\u{1b}[2J": "\u{0}"}, "duration_ms": u64::MAX, "tool_response": "x".repeat(300_000)});
    program.before(&call, "Ba\u{1b}[2Jsh", more.clone());
    program.after(&call, "Ba\u{1b}[2Jsh", more);
    program.report("PostToolUse", json!({"tool_use_id": "never seen", "tool_name": "Edit", "tool_input": 7}));
    program.stop("\u{1b}[31mDone.");
    let session = stage.session();
    for command in [&["log", &session, "--all"][..], &["show", &session], &["ls"], &["guard", "status"]] {
        let text = stage.run(command).worked_quietly();
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{command:?}: {text}");
    }
    assert_eq!(program.gaps(), ["Edit was not seen before it ran, so there is no state before it"]);
    stage.run(&["verify"]).worked_quietly();
}

#[test]
fn a_lost_report_is_named_by_the_next_one() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Mend it");
    // Another process holds the directory for longer than a hook waits.
    let model = crate::stage::scripted(&stage, &json!([{"text": "Done.", "delay_ms": 600_000}]));
    let mut holder = stage.command(&["run", "Hold", "--json", "--model", &model]).spawn().unwrap();
    let mut line = String::new();
    let output = holder.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    let ran =
        program.try_report("PreToolUse", json!({"tool_use_id": "t1", "tool_name": "Bash", "tool_input": {}}));
    assert_eq!(ran.code, Some(1), "{}", ran.errors);
    assert!(ran.errors.contains("held by"), "{}", ran.errors);
    holder.kill().unwrap();
    holder.wait().unwrap();
    fs::write(stage.path("files/a"), "1").unwrap();
    program.after("t1", "Bash", json!({"tool_input": {}, "tool_response": {"stdout": "ok"}}));
    let sessions = stage.run(&["ls", "--json", "--tag", "guard=claude-code"]).worked_quietly();
    let session: Value = serde_json::from_str(sessions.lines().next().unwrap()).unwrap();
    let log = stage.run(&["log", session["session"].as_str().unwrap()]).worked_quietly();
    assert!(log.contains("gap: PreToolUse of Bash was not recorded:"), "{log}");
    assert!(log.contains("gap: Bash was not seen before it ran"), "{log}");
}

#[test]
fn a_rewind_waits_for_the_end_of_calls_and_processes() {
    let stage = Stage::new();
    // Another run of the tests on this machine has other conversations.
    let conversation = format!("5e55-{}", std::process::id());
    let program = StandIn::new(&stage, &conversation);
    program.start();
    program.prompt("Mend it");
    let first = program.shell("echo one > a");
    let first = program.call(&first);
    let open = program.new_call();
    program.before(&open, "Bash", json!({"tool_input": {"command": "sleep 9"}}));
    fs::write(stage.path("files/half"), "half").unwrap();
    let session = stage.session();
    let point = format!("before:{first}");
    let refused = stage.run(&["rewind", &session, &point]).failed();
    assert!(
        refused.contains("has not reported the end of Bash") && refused.contains("guard_busy"),
        "{refused}"
    );
    assert_eq!(stage.file("half").as_deref(), Some("half"));

    // The program is killed. Its next start closes the call.
    program.report("SessionStart", json!({"source": "resume"}));
    assert_eq!(program.gaps(), ["Bash has no reported end; its files are those of now"]);
    let started = |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).env("CLAUDE_CODE_SESSION_ID", &conversation).spawn().unwrap()
    };
    // A command has an operating system session of its own, and a server of the program does not.
    let mut server = started(&["sleep", "601"]);
    let mut process = started(&["setsid", "sleep", "600"]);
    let command = format!("/proc/{}/cmdline", process.id());
    wait_until("the command", || fs::read_to_string(&command).is_ok_and(|words| words.starts_with("sleep")));
    let refused = stage.run(&["rewind", &session, &point]).failed();
    assert!(refused.contains("still runs") && refused.contains("sleep 600"), "{refused}");
    stage.run(&["rewind", &session, &point, "--force"]).worked_quietly();
    assert_eq!((stage.file("a"), stage.file("half")), (None, None));
    assert!(stage.run(&["undo", &session]).failed().contains("guard_busy"));
    stage.run(&["undo", &session, "--force"]).worked_quietly();
    // Another conversation in the same directory may not be rewound then either.
    let neighbour = StandIn::new(&stage, "0the-r");
    neighbour.start();
    neighbour.prompt("Iron it");
    let other = neighbour.shell("echo two > b");
    neighbour.stop("Ironed.");
    let (beside, before) = (stage.session(), format!("before:{}", neighbour.call(&other)));
    assert_ne!(beside, session);
    let refused = stage.run(&["rewind", &beside, &before]).failed();
    assert!(refused.contains("guard_busy") && refused.contains("sleep 600"), "{refused}");
    assert_eq!(stage.file("b").as_deref(), Some("two\n"));
    process.kill().unwrap();
    process.wait().unwrap();
    stage.run(&["rewind", &beside, &before]).worked_quietly();
    stage.run(&["rewind", &session, &point]).worked_quietly();
    assert_eq!((stage.file("a"), stage.file("half")), (None, None));
    server.kill().unwrap();
    server.wait().unwrap();
    let wrong = stage.run(&["rewind", &session, "start", "--continue"]);
    assert_ne!(wrong.code, Some(0), "there is no `claude` in an empty PATH: {wrong:?}");
}

#[test]
fn a_failed_call_of_the_program_counts_as_failed() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Mend it");
    program.shell("echo one > one");
    program.shell("echo two > two; exit 3");
    program.stop("Done.");
    let total = &stage.json(&["stats"])["total"];
    assert_eq!((&total["calls"], &total["failed_calls"]), (&json!(2), &json!(1)), "{total}");
    // It keeps its changes.
    assert_eq!(stage.file("two").unwrap(), "two\n");
}

#[test]
fn directories_of_deleted_sessions_are_removed_at_a_later_start() {
    let stage = Stage::new();
    let age = |path: &std::path::Path| {
        let old = std::time::SystemTime::now() - std::time::Duration::from_hours(48);
        fs::File::open(path).unwrap().set_modified(old).unwrap();
    };
    let bindings = || fs::read_dir(stage.path("store/guard/claude-code")).unwrap();
    let (deleted, kept) = (StandIn::new(&stage, "deleted"), StandIn::new(&stage, "kept"));
    deleted.start();
    stage.run(&["rm", &stage.session(), "--yes"]).worked_quietly();
    kept.start();
    kept.prompt("Stay");
    bindings().for_each(|entry| age(&entry.unwrap().path()));
    age(&stage.path("store/guard/collected"));
    StandIn::new(&stage, "other").start();
    let left: Vec<String> = bindings()
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path().join("session.json")).ok())
        .collect();
    assert!(left.iter().any(|text| text.contains("\"kept\"")), "{left:?}");
    assert!(left.iter().all(|text| !text.contains("\"deleted\"")), "{left:?}");
    // Its conversation continues in its session.
    kept.prompt("Again");
    assert_eq!(stage.run(&["ls", "--json"]).worked_quietly().lines().count(), 2);
}
