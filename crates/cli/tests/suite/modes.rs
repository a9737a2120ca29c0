//! Modes: what runs without a question, what is asked about, and what is refused.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::chat;
use crate::pty::Pty;
use crate::sandbox::{self, is_unsupported, shell};
use crate::stage::{Stage, last_line, run_as_ordinary_user, scripted};

fn write_file(path: &str) -> Value {
    json!({"name": "write_file", "arguments": {"path": path, "text": "mended\n"}})
}

/// A script that makes these calls one after the other.
fn calling(stage: &Stage, calls: &[Value]) -> String {
    let replies = calls.iter().map(|call| json!({"calls": [call]}));
    let replies: Vec<_> = replies.chain([json!({"text": "Done."})]).collect();
    scripted(stage, &json!(replies))
}

/// Writes the settings of the user.
fn settings(stage: &Stage, text: &str) {
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    stage.write("config/backstitch/config.toml", text);
}

/// Writes a file of the project.
fn put(stage: &Stage, name: &str, text: &str) {
    std::fs::write(stage.path("files").join(name), text).unwrap();
}

#[test]
fn plan_changes_nothing() {
    if is_unsupported() {
        return;
    }
    let stage = Stage::confined();
    let wide = json!({"name": "shell", "arguments": {"command": "true", "needs": {"network": true}}});
    let reads = shell("echo seen; echo changed > changed.txt; echo kept > $TMPDIR/x && echo wrote");
    let model = calling(&stage, &[write_file("written.txt"), reads, wide]);
    // No rule allows what the mode refuses.
    settings(&stage, "[rules]\nallow = ['write_file', 'shell[network] true']\n");
    let arguments = ["run", "Do it", "--model", &model, "--mode", "plan"];
    assert_eq!(stage.run(&arguments).worked_quietly(), "Done.\n");
    assert_eq!((stage.file("written.txt"), stage.file("changed.txt")), (None, None));
    let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
    assert!(log.matches("in the mode plan, only tools that change nothing run").count() >= 2, "{log}");
    assert!(log.contains("seen") && log.contains("wrote"), "{log}");
}

#[test]
fn ask_shows_each_change_and_each_command_first() {
    if is_unsupported() {
        return;
    }
    for call in [write_file("written.txt"), shell("echo ran > ran.txt")] {
        let stage = Stage::confined();
        let model = calling(&stage, &[json!({"name": "list_files", "arguments": {}}), call.clone()]);
        // What a file says about all tools does not hold in a mode that a person names.
        let agent = stage.write("agent.toml", "[approval]\ndefault = 'auto'\n");
        for more in [&[][..], &["--agent", &agent][..]] {
            let arguments = [&["run", "Do it", "--model", &model, "--mode", "ask"], more].concat();
            let paused = stage.run(&arguments);
            assert_eq!(paused.code, Some(3), "{call}: {paused:?}");
            assert_eq!((stage.file("written.txt"), stage.file("ran.txt")), (None, None));
        }
    }
}

#[test]
fn auto_asks_nothing_about_what_stays_inside() {
    if is_unsupported() {
        return;
    }
    let stage = Stage::confined();
    let agent = stage.write(
        "agent.toml",
        "[[tool]]\nname = 'sew'\ndescription = 'Sews.'\ncommand = ['sh', '-c', 'echo sewn > sewn.txt']\n",
    );
    let sew = json!({"name": "sew", "arguments": {}});
    let model = calling(&stage, &[write_file("written.txt"), shell("echo ran > ran.txt"), sew]);
    let arguments = ["run", "Do it", "--model", &model, "--agent", &agent];
    assert_eq!(stage.run(&arguments).worked_quietly(), "Done.\n");
    for name in ["written.txt", "ran.txt", "sewn.txt"] {
        assert!(stage.file(name).is_some(), "{name}");
    }
}

#[test]
fn auto_asks_about_tools_that_reach_outside() {
    if is_unsupported() {
        return;
    }
    let publish = "[[tool]]\nname = 'publish'\ndescription = 'Publishes.'\ncommand = ['sh', '-c', 'echo sent > sent.txt']\n";
    let open = "sandbox = { network = true }\n";
    for (text, is_asked) in [
        (format!("{open}{publish}"), true),
        (format!("{open}[approval]\npublish = 'auto'\n{publish}"), false),
        (format!("{open}mode = 'full'\n{publish}"), true),
        (publish.to_owned(), false),
    ] {
        let stage = Stage::confined();
        let agent = stage.write("agent.toml", &text);
        let model = calling(&stage, &[json!({"name": "publish", "arguments": {}})]);
        let ran = stage.run(&["run", "Do it", "--model", &model, "--agent", &agent]);
        assert_eq!(ran.code, Some(if is_asked { 3 } else { 0 }), "{text}: {ran:?}");
        assert_eq!(stage.file("sent.txt").is_none(), is_asked, "{text}");
    }
}

#[test]
fn a_change_of_the_mode_is_recorded_and_holds() {
    if is_unsupported() {
        return;
    }
    let stage = Stage::confined();
    let model = calling(&stage, &[write_file("one.txt"), write_file("two.txt")]);
    let paused = stage.run(&["run", "Do it", "--model", &model, "--mode", "ask"]);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    let ended = last_line(&stage.run(&["resume", "--mode", "auto", "--json"]).output);
    let (session, call) = (ended["session"].as_str().unwrap(), ended["call"].as_str().unwrap());
    let log = stage.run(&["log", session]).worked_quietly();
    assert!(log.contains("in the mode auto"), "{log}");
    stage.run(&["resolve", session, call, "approve"]).worked_quietly();
    // The second call is not asked about any more.
    stage.run(&["resume"]).worked_quietly();
    assert!(stage.file("one.txt").is_some() && stage.file("two.txt").is_some());
}

/// Shift-Tab.
const NEXT_MODE: &str = "\u{1b}[Z";

#[test]
fn a_key_leads_to_the_next_mode_and_keeps_what_was_typed() {
    if is_unsupported() {
        return;
    }
    let stage = Stage::confined();
    let model = calling(&stage, &[write_file("written.txt")]);
    let terminal = Pty::start(&stage, &["chat", "--model", &model], 200, 40);
    chat::prompt(&terminal);
    terminal.send(&format!("Do{NEXT_MODE}"));
    terminal.wait_for("plan> Do");
    terminal.send(NEXT_MODE);
    terminal.wait_for("ask> Do");
    // After `auto` comes `plan`, and never `full`.
    terminal.send(NEXT_MODE);
    terminal.wait_for_times("> Do", 4);
    terminal.send(NEXT_MODE);
    terminal.wait_for_times("plan> Do", 2);
    terminal.send(" it\r");
    terminal.wait_for("Done.");
    chat::prompt(&terminal);
    terminal.send("\u{4}");
    assert_eq!(terminal.finish().0, Some(0));
    assert_eq!(stage.file("written.txt"), None);
}

#[test]
fn full_is_confirmed_once_for_a_project() {
    let stage = Stage::confined();
    let model = calling(&stage, &[shell("echo out > ../outside.txt")]);
    let arguments = ["run", "Do it", "--model", &model, "--mode", "full"];
    let errors = stage.run(&arguments).called_wrongly();
    assert!(errors.contains("the mode full is not confirmed") && errors.contains("--trust"), "{errors}");
    assert!(!stage.path("outside.txt").exists());
    stage.run(&[&arguments[..], &["--trust"]].concat()).worked_quietly();
    assert!(stage.path("outside.txt").exists());
    stage.run(&arguments).called_wrongly();
    let terminal = Pty::start(&stage, &arguments, 100, 30);
    terminal.wait_for("from now on? [y/N]");
    terminal.send("y\r");
    assert_eq!(terminal.finish().0, Some(0));
    stage.run(&arguments).worked_quietly();
    let listed = stage.run(&["trust", "--list"]).worked_quietly();
    assert!(listed.contains("the mode full"), "{listed}");
    stage.run(&["trust", "--revoke"]).worked_quietly();
    stage.run(&arguments).called_wrongly();
}

#[test]
fn a_rule_allows_a_command_with_the_rights_that_it_names() {
    if is_unsupported() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for (rule, is_asked) in [("shell[network] ./reach", false), ("shell ./reach", true)] {
        let stage = Stage::confined();
        let reach = format!("#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/{port} && echo yes > reached.txt\n");
        put(&stage, "reach", &reach);
        std::fs::set_permissions(stage.path("files/reach"), Permissions::from_mode(0o755)).unwrap();
        settings(&stage, &format!("[rules]\nallow = ['{rule}']\n"));
        let arguments = json!({"command": "./reach", "needs": {"network": true, "reason": "to fetch"}});
        let model = calling(&stage, &[json!({"name": "shell", "arguments": arguments})]);
        let ran = stage.run(&["run", "Do it", "--model", &model]);
        assert_eq!(ran.code, Some(if is_asked { 3 } else { 0 }), "{rule}: {ran:?}");
        assert_eq!(stage.file("reached.txt").is_none(), is_asked, "{rule}");
    }
}

#[test]
fn a_project_widens_no_right() {
    if is_unsupported() {
        return;
    }
    let stage = Stage::confined();
    let model = calling(&stage, &[shell("echo out > ../outside.txt; echo in > inside.txt")]);
    put(&stage, "backstitch.toml", "agent = \"agent.toml\"\napprove = \"auto\"\n");
    let text = "mode = 'full'\n[sandbox]\nwrite = ['..']\nnetwork = true\n[approval]\nshell = 'auto'\n";
    put(&stage, "agent.toml", text);
    // The user asks about everything, so the project cannot do without.
    settings(&stage, "mode = 'ask'\n");
    let arguments = ["run", "Do it", "--model", &model, "--trust"];
    let paused = stage.run(&arguments);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    settings(&stage, "");
    stage.run(&arguments).worked_quietly();
    assert!(stage.file("inside.txt").is_some() && !stage.path("outside.txt").exists());
    // A mode of the project does not replace a single right of the user.
    std::fs::remove_file(stage.path("files/inside.txt")).unwrap();
    settings(&stage, "sandbox = 'read-only'\n");
    put(&stage, "agent.toml", "mode = 'full'\n");
    stage.run(&arguments).worked_quietly();
    assert_eq!(stage.file("inside.txt"), None);
    put(&stage, "backstitch.toml", "mode = \"full\"\n");
    let errors = stage.run(&arguments).called_wrongly();
    assert!(errors.contains("set this in the config of the user"), "{errors}");
}

#[test]
fn the_first_line_of_a_run_says_what_is_protected() {
    if is_unsupported() {
        return;
    }
    let stage = Stage::confined();
    let model = calling(&stage, &[]);
    let line = "mode auto: commands write only in the workspace, without a network";
    let arguments = ["run", "Do it", "--model", &model];
    assert!(!stage.run(&arguments).errors.contains("mode auto"));
    let verbose = stage.run(&[&arguments[..], &["--verbose"]].concat());
    assert!(verbose.errors.contains(line), "{verbose:?}");
    let terminal = Pty::start(&stage, &arguments, 200, 30);
    terminal.wait_for(line);
    assert_eq!(terminal.finish().0, Some(0));
    let doctor = stage.run(&["doctor"]);
    assert!(doctor.output.contains(line), "{doctor:?}");
}

/// The other defaults of the page do not depend on the user, or are tried for an ordinary one with every kind of process.
#[test]
fn the_defaults_hold_for_an_ordinary_user() {
    run_as_ordinary_user(&[
        sandbox::commands_write_only_in_the_workspace_by_default,
        sandbox::commands_have_no_network_and_read_no_secrets_by_default,
        sandbox::a_command_that_needs_more_waits_for_a_person_and_then_has_it,
        auto_asks_nothing_about_what_stays_inside,
        auto_asks_about_tools_that_reach_outside,
        a_rule_allows_a_command_with_the_rights_that_it_names,
        a_project_widens_no_right,
        plan_changes_nothing,
        ask_shows_each_change_and_each_command_first,
    ]);
}
