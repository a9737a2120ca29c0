//! Calls that change what git executes, or make commits.
#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::{Value, json};

use crate::stage::{Stage, scripted, wait_until};

/// A stage whose workspace is a repository. Commands have an identity for commits.
fn project() -> Stage {
    let stage = ["AUTHOR", "COMMITTER"].iter().fold(Stage::confined(), |stage, who| {
        let stage = stage.with_variable(&format!("GIT_{who}_NAME"), "t");
        stage.with_variable(&format!("GIT_{who}_EMAIL"), "t@example.org")
    });
    std::fs::write(stage.path("files/a.txt"), "a\n").unwrap();
    git(&stage, &["init", "-q", "-b", "main"]);
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "-q", "-m", "first"]);
    stage
}

fn git(stage: &Stage, arguments: &[&str]) -> String {
    // Maintenance would continue after the command, with a lock in the repository.
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "maintenance.auto=false"];
    let run = Command::new("git").args(identity).args(arguments).current_dir(stage.path("files")).output();
    let output = run.unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn shell(command: &str) -> Value {
    json!({"name": "shell", "arguments": {"command": command}})
}

fn log(stage: &Stage) -> String {
    stage.run(&["log", "--all"]).worked_quietly()
}

#[test]
fn an_allowed_git_command_runs_nothing_that_the_agent_chose() {
    let stage = project();
    let evil = "[core]\n\tfsmonitor = \"touch EXECUTED; false\"\n";
    let write =
        json!({"name": "write_file", "arguments": {"path": ".git/config", "text": evil, "mode": "append"}});
    let config = "git config core.fsmonitor 'touch EXECUTED; false'";
    let model = scripted(
        &stage,
        &json!([
            {"calls": [write]}, {"calls": [shell(config)]}, {"calls": [shell("git status")]}, {"text": "Done."}
        ]),
    );
    let ran = stage.run(&["run", "Do it", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    git(&stage, &["status"]);
    assert_eq!(stage.file("EXECUTED"), None);
    assert!(!stage.file(".git/config").unwrap().contains("fsmonitor"));
    // It is named at once, in the log, and to the model.
    assert!(ran.errors.contains(".git/config (core.fsmonitor)"), "{ran:?}");
    assert!(log(&stage).contains(".git/config (core.fsmonitor)"), "{}", log(&stage));
    let records = stage.run(&["log", "--all", "--json"]).worked_quietly();
    let results: String = records.lines().filter(|line| line.contains("\"option_result\"")).collect();
    for words in ["it belongs to git", "git would run programs for the user: .git/config (core.fsmonitor)"] {
        assert!(results.contains(words), "{words}: {results}");
    }
}

#[test]
fn a_change_that_a_person_approved_is_kept_and_named() {
    let stage = project();
    let model =
        scripted(&stage, &json!([{"calls": [shell("git config core.hooksPath hooks")]}, {"text": "Done."}]));
    stage.run(&["run", "Do it", "--model", &model, "--approve", "shell"]);
    let session = stage.session();
    stage.run(&["approve", &session]).worked_quietly();
    stage.run(&["resume", &session]).worked_quietly();
    assert!(stage.file(".git/config").unwrap().contains("hooksPath"));
    assert!(log(&stage).contains("git: changed: .git/config (core.hookspath)"), "{}", log(&stage));
}

#[test]
fn a_call_that_made_commits_is_not_repeated_without_a_question() {
    if !backstitch::host::probe().enforces(&backstitch::ports::Sandbox::workspace().without_network()) {
        return;
    }
    let stage = project();
    let command = "echo e >> CHANGES; git add -A; git commit -qm release; git commit -q --allow-empty -m tag; \
         touch ready; sleep 300";
    let model = scripted(&stage, &json!([{"calls": [shell(command)]}, {"text": "Done."}]));
    let run = ["run", "Release", "--model", &model, "--network", "off"];
    let mut child = stage.command(&run).spawn().unwrap();
    wait_until("the commits", || stage.file("ready").is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let session = stage.session();
    let resumed = stage.run(&["resume", &session]);
    assert_ne!(resumed.code, Some(0), "{resumed:?}");
    let said = format!("{}{}", resumed.output, resumed.errors);
    assert!(said.contains("the repository has changed since, and is not rolled back"), "{said}");
    let commits = || git(&stage, &["log", "--format=%s"]);
    assert_eq!(commits(), "tag\nrelease\nfirst\n");
    let call = stage.json(&["show", &session])["pauses"][0]["call_id"].as_str().unwrap().to_owned();
    stage.run(&["resolve", &session, &call, "happened", "--result", "done"]).worked_quietly();
    assert_eq!(stage.run(&["resume", &session]).worked_quietly(), "Done.\n");
    assert_eq!(commits(), "tag\nrelease\nfirst\n");
}

#[test]
fn a_call_that_only_looked_at_the_repository_is_repeated() {
    if !backstitch::host::probe().enforces(&backstitch::ports::Sandbox::workspace().without_network()) {
        return;
    }
    let stage = project();
    let command = "touch a.txt; git status; [ -e ../again ] || { touch ready; sleep 300; }";
    let model = scripted(&stage, &json!([{"calls": [shell(command)]}, {"text": "Done."}]));
    let mut child = stage.command(&["run", "Look", "--model", &model, "--network", "off"]).spawn().unwrap();
    wait_until("the command", || stage.file("ready").is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(stage.path("again"), "").unwrap();
    assert_eq!(stage.run(&["resume"]).worked_quietly(), "Done.\n");
}

#[test]
fn settings_in_the_workspace_are_refused_like_a_home_directory() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    std::fs::create_dir_all(stage.path("dotfiles/backstitch")).unwrap();
    std::fs::create_dir_all(stage.path("config")).unwrap();
    std::os::unix::fs::symlink("../dotfiles/backstitch", stage.path("config/backstitch")).unwrap();
    for place in ["config", "dotfiles", "dotfiles/backstitch", "state"] {
        std::fs::create_dir_all(stage.path("state/backstitch")).unwrap();
        let directory = stage.path(place);
        let ran = stage.run(&["run", "Mend", "--model", &model, "--workspace", directory.to_str().unwrap()]);
        assert!(
            ran.errors.contains("own files of Backstitch") && ran.errors.contains("workspace_refused"),
            "{place}: {ran:?}"
        );
    }
}
