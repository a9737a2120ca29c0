//! `guard install`, `uninstall` and `status`.

use std::fs;

use serde_json::{Value, json};

use super::stand_in::StandIn;
use crate::stage::{Stage, text_of};

#[test]
fn install_and_uninstall_leave_the_settings_as_they_were() {
    let stage = Stage::new();
    let file = stage.path("files/.claude/settings.local.json");
    fs::write(stage.path("files/a.txt"), "a").unwrap();
    // Without settings of the project.
    let printed = stage.run(&["guard", "install", "claude-code"]).worked();
    assert!(printed.contains("Claude Code is guarded from its next start"), "{printed}");
    let settings: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(command.contains("guard hook claude-code --store "), "{command}");
    assert!(stage.run(&["guard", "install", "claude-code"]).worked().contains("guarded already"));
    let status = stage.json(&["guard", "status"]);
    assert_eq!((&status["hooks"][0]["missing"], &status["hooks"][0]["strict"]), (&json!([]), &json!(false)));
    assert!(stage.run(&["guard", "status"]).worked().contains("is guarded in this project"));
    assert!(stage.run(&["guard", "uninstall", "claude-code"]).worked().contains("are removed"));
    assert!(!stage.path("files/.claude").exists());

    // With settings of the person, to the byte.
    fs::create_dir(stage.path("files/.claude")).unwrap();
    let own =
        "{\n    \"permissions\": {\"additionalDirectories\": [\"../beside\", \"inside\"]},\n\t\"n\": 1.0 }";
    fs::write(&file, own).unwrap();
    let installed = stage.json(&["guard", "install", "claude-code", "--strict"]);
    assert_eq!((&installed["changed"], &installed["strict"]), (&json!(true), &json!(true)));
    let status = stage.run(&["guard", "status"]).worked();
    assert!(status.contains("are denied"), "{status}");
    assert!(status.contains("beside the project") && !status.contains("inside\n"), "{status}");
    assert_eq!(stage.json(&["guard", "uninstall", "claude-code"])["removed"], true);
    assert_eq!(fs::read_to_string(&file).unwrap(), own);
    assert!(stage.run(&["guard", "uninstall", "claude-code"]).worked().contains("holds no hooks"));
}

#[test]
fn settings_that_cannot_be_edited_are_left_alone_and_named() {
    let stage = Stage::new();
    let home = stage.path("home");
    fs::create_dir_all(stage.path("files/.claude")).unwrap();
    fs::create_dir(&home).unwrap();
    let stage = stage.with_variable("CODEX_HOME", &text_of(&home));
    let claude = stage.path("files/.claude/settings.local.json");
    let texts: [&[u8]; 5] =
        [b"{ // mine\n}", b"\xef\xbb\xbf{}", b"{\"a\": }", b"{\"hooks\": 7}", b"{\"a\": \"\xff\"}"];
    for text in texts {
        fs::write(&claude, text).unwrap();
        for action in ["install", "uninstall"] {
            let refused = stage.run(&["guard", action, "claude-code"]).failed();
            assert!(refused.contains("settings_invalid") && refused.contains("as it is"), "{refused}");
            assert_eq!(fs::read(&claude).unwrap(), text);
        }
        let status = stage.run(&["guard", "status"]).worked();
        assert!(status.contains("as it is"), "{status}");
    }
    let codex = home.join("config.toml");
    fs::write(&codex, "model = \n").unwrap();
    let refused = stage.run(&["guard", "install", "codex", "--user"]).failed();
    assert!(refused.contains("settings_invalid") && refused.contains("is not TOML"), "{refused}");
    assert_eq!(fs::read_to_string(&codex).unwrap(), "model = \n");
}

#[test]
fn the_first_conversation_takes_over_what_install_captured() {
    let stage = Stage::new();
    fs::write(stage.path("files/a.txt"), "a").unwrap();
    stage.run(&["guard", "install", "claude-code"]).worked();
    let prepared = stage.session();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Mend it");
    let before = program.picture();
    let call = program.shell("echo b > a.txt");
    program.stop("Done.");
    assert_eq!(stage.session(), prepared);
    program.check_point(&format!("before:{}", program.call(&call)), &before);
    let log = stage.run(&["log", &prepared]).worked_quietly();
    assert!(!log.contains("from outside") && !log.contains("gap"), "{log}");
    // The next one has a session of its own.
    StandIn::new(&stage, "two").start();
    assert_eq!(stage.run(&["ls", "--json"]).worked_quietly().lines().count(), 2);
}

#[test]
fn a_user_is_guarded_in_all_projects() {
    let stage = Stage::new();
    let home = stage.path("home");
    fs::create_dir(&home).unwrap();
    let stage = stage
        .with_variable("HOME", &text_of(&home))
        .with_variable("CODEX_HOME", &text_of(&home.join(".codex")));
    stage.run(&["guard", "install", "claude-code", "--user"]).worked();
    assert!(home.join(".claude/settings.json").exists());
    let printed = stage.run(&["guard", "install", "codex", "--user", "--no-trust"]).worked();
    assert!(printed.contains("/hooks"), "{printed}");
    let hooks: Value =
        serde_json::from_str(&fs::read_to_string(home.join(".codex/hooks.json")).unwrap()).unwrap();
    assert!(hooks["hooks"]["Interrupt"].is_array(), "{hooks}");
    let status = stage.run(&["guard", "status"]).worked();
    assert!(
        status.contains("Claude Code is guarded in all projects") && status.contains("Codex is guarded"),
        "{status}"
    );
    stage.run(&["guard", "uninstall", "claude-code", "--user"]).worked();
    stage.run(&["guard", "uninstall", "codex", "--user"]).worked();
    assert!(!home.join(".claude/settings.json").exists() && !home.join(".codex/hooks.json").exists());
}
