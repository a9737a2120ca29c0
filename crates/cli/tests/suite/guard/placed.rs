//! Where the hooks are, and what keeps them from running: settings that turn them off, commands that are gone, other
//! directories, git.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::stand_in::StandIn;
use crate::stage::{Stage, text_of};

fn git(stage: &Stage, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(stage.path("files")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn hooks_that_do_not_run_are_not_called_guarded() {
    let stage = Stage::new();
    fs::create_dir(stage.path("files/.claude")).unwrap();
    fs::write(stage.path("files/.claude/settings.json"), "{\"disableAllHooks\": true}").unwrap();
    let printed = stage.run(&["guard", "install", "claude-code"]).worked();
    assert!(printed.contains("do NOT run") && !printed.contains("is guarded"), "{printed}");
    let status = stage.run(&["guard", "status"]).worked();
    assert!(status.contains("NOT guarded") && status.contains("disableAllHooks"), "{status}");
    fs::remove_file(stage.path("files/.claude/settings.json")).unwrap();
    assert!(stage.run(&["guard", "status"]).worked().contains("is guarded in this project"));

    // The command was moved: its hooks are recognized, called dead, and replaced.
    let file = stage.path("files/.claude/settings.local.json");
    let text = fs::read_to_string(&file).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    let program = command.split(" guard hook").next().unwrap();
    fs::write(&file, text.replace(program, "/gone/stitcher")).unwrap();
    let status = stage.run(&["guard", "status"]).worked();
    assert!(status.contains("NOT guarded") && status.contains("/gone/stitcher"), "{status}");
    stage.run(&["guard", "install", "claude-code"]).worked();
    let again: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(again["hooks"]["Stop"].as_array().unwrap().len(), 1, "no second set: {again}");
    assert!(stage.run(&["guard", "status"]).worked().contains("is guarded in this project"));
}

#[test]
fn git_does_not_see_the_settings_of_the_guard() {
    let stage = Stage::new();
    git(&stage, &["init", "-q"]);
    stage.run(&["guard", "install", "claude-code"]).worked();
    assert_eq!(git(&stage, &["status", "--porcelain"]), "");
    stage.run(&["guard", "uninstall", "claude-code"]).worked();
    let excludes = fs::read_to_string(stage.path("files/.git/info/exclude")).unwrap_or_default();
    assert!(!excludes.contains("settings.local.json"), "{excludes}");
}

#[test]
fn a_program_that_is_started_in_a_part_of_a_repository_is_covered_in_all_of_it() {
    let stage = Stage::new();
    git(&stage, &["init", "-q"]);
    fs::create_dir(stage.path("files/inner")).unwrap();
    let program = StandIn::new(&stage, "one").within("inner");
    program.start();
    program.prompt("Mend it");
    let call = program.shell("echo top > top.txt; echo inner > inner/inner.txt");
    program.stop("Done.");
    let point = format!("before:{}", program.call(&call));
    stage.run(&["rewind", &stage.session(), &point]).worked();
    assert_eq!((stage.file("top.txt"), stage.file("inner/inner.txt")), (None, None));
}

#[test]
fn a_rewind_leaves_the_settings_of_the_program_as_they_are() {
    let stage = Stage::new();
    stage.run(&["guard", "install", "claude-code"]).worked();
    let granted = stage.path("files/.claude/settings.json");
    fs::write(&granted, "{\"a\": 1}").unwrap();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Mend it");
    let call = program.shell("echo a > a.txt");
    program.stop("Done.");
    // The person grants a permission, and removes the hooks.
    fs::write(&granted, "{\"a\": 2}").unwrap();
    stage.run(&["guard", "uninstall", "claude-code"]).worked();
    let session = stage.session();
    let point = format!("before:{}", program.call(&call));
    stage.run(&["rewind", &session, &point]).worked();
    assert_eq!(stage.file("a.txt"), None);
    assert_eq!(fs::read_to_string(&granted).unwrap(), "{\"a\": 2}");
    assert!(!stage.path("files/.claude/settings.local.json").exists(), "the hooks are removed");
    stage.run(&["undo", &session]).worked();
    assert_eq!(stage.file("a.txt").as_deref(), Some("a\n"));
    assert_eq!(fs::read_to_string(&granted).unwrap(), "{\"a\": 2}");
    // They are recorded, and restored on request.
    stage.run(&["restore", ".claude/settings.json", "--from", &point, "--session", &session]).worked();
    assert_eq!(fs::read_to_string(&granted).unwrap(), "{\"a\": 1}");
}

#[test]
fn points_name_prompt_call_files_and_age() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Mend the sleeve");
    let first = program.shell("echo a > a.txt; echo b > b.txt");
    let second = program.shell("true");
    program.stop("Done.");
    let points = stage.json(&["guard", "points"]);
    assert_eq!(points["session"], stage.session().as_str());
    let [one, two] = points["points"].as_array().unwrap().as_slice() else { panic!("{points}") };
    assert_eq!(one["point"], format!("before:{}", program.call(&first)));
    assert_eq!((&one["prompt"], &one["tool"]), (&json!("Mend the sleeve"), &json!("Bash")));
    assert_eq!(one["files"].as_array().unwrap().len(), 2, "{points}");
    assert!(one["age_seconds"].is_u64() && one["at"].is_string(), "{points}");
    assert_eq!((&two["call"], &two["files"]), (&json!(program.call(&second)), &json!([])));
    let printed = stage.run(&["guard", "points"]).worked();
    assert!(printed.contains("Mend the sleeve") && printed.contains("2 files: a.txt, b.txt"), "{printed}");
    let rewound = stage.run(&["guard", "rewind", one["point"].as_str().unwrap()]).worked();
    assert!(rewound.contains("back at"), "{rewound}");
    assert_eq!(stage.file("a.txt"), None);
    stage.run(&["guard", "undo"]).worked();
    assert_eq!(stage.file("a.txt").as_deref(), Some("a\n"));
}

#[test]
fn commands_that_discard_work_are_asked_about_on_request() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Clean up");
    let event = |call: &str, command: &str| {
        let more = json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": call});
        program.event("PreToolUse", more)
    };
    for (call, command, expected) in
        [("toolu_90", "cd . && git reset --hard", Some("ask")), ("toolu_91", "git status", None)]
    {
        let ran = program.run_with(&["--ask-destructive"], &event(call, command)).worked();
        match expected {
            Some(decision) => {
                let output: Value = serde_json::from_str(&ran).unwrap();
                assert_eq!(output["hookSpecificOutput"]["permissionDecision"], decision, "{output}");
            }
            None => assert_eq!(ran, ""),
        }
    }
    let ran = program.run_with(&[], &event("toolu_92", "git reset --hard")).worked();
    assert_eq!(ran, "", "only on request");
    let printed = stage.json(&["guard", "install", "claude-code", "--ask-destructive"]);
    assert!(printed["command"].as_str().unwrap().contains(" --ask-destructive"), "{printed}");
}

#[test]
fn a_conversation_continues_with_its_permissions_and_with_more_arguments() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    let prompt = json!({"prompt": "Mend it", "prompt_id": "p1", "permission_mode": "acceptEdits"});
    program.report("UserPromptSubmit", prompt);
    let call = program.shell("echo a > a.txt");
    program.stop("Done.");
    let point = format!("before:{}", program.call(&call));
    let bin = stage.path("bin");
    fs::create_dir(&bin).unwrap();
    let claude = bin.join("claude");
    fs::write(&claude, "#!/bin/sh\necho \"$@\" > ../claude.args\n").unwrap();
    fs::set_permissions(&claude, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", text_of(&bin), std::env::var("PATH").unwrap());
    let arguments = ["rewind", &stage.session(), &point, "--continue=Again", "--", "--model", "seam-1"];
    let output = stage.command(&arguments).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let words = fs::read_to_string(stage.path("claude.args")).unwrap();
    assert!(words.contains("--permission-mode acceptEdits") && words.contains("--model seam-1"), "{words}");
    assert!(words.contains("-p Again"), "{words}");
}
