//! Sessions in copies of a project, and what happens to their changes.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::stage::{Stage, ended, last_line, text_of, wait_until};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// A stage whose workspace is a repository with a few files.
fn project(stage: &Stage) {
    let files = stage.path("files");
    std::fs::write(files.join("a.txt"), LINES).unwrap();
    std::fs::write(files.join("c.txt"), "shared\n").unwrap();
    std::fs::write(files.join("run.sh"), "#!/bin/sh\n").unwrap();
    std::fs::create_dir(files.join("src")).unwrap();
    std::fs::write(files.join("src/old.rs"), "old\n").unwrap();
    git(&files, &["init", "-q", "-b", "main"]);
    git(&files, &["add", "-A"]);
    git(&files, &["commit", "-q", "-m", "first"]);
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "safe.directory=*"];
    // Maintenance would continue after the command, with a lock in the repository.
    let mut command = Command::new("git");
    command.args(identity).args(["-c", "maintenance.auto=false"]).args(arguments).current_dir(directory);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A model that executes shell commands, one per turn, and then answers.
fn model(stage: &Stage, name: &str, commands: &[&str]) -> String {
    let call = |command: &&str| json!({"calls": [{"name": "shell", "arguments": {"command": command}}]});
    let mut replies: Vec<Value> = commands.iter().map(call).collect();
    replies.push(json!({"text": "Done."}));
    format!("scripted:{}", stage.write(name, &json!({"reply": replies}).to_string()))
}

/// Starts an isolated session and returns its id and its copy.
fn run(stage: &Stage, model: &str) -> (String, PathBuf) {
    let ran = stage.run(&["run", "Sew", "--isolated", "--model", model, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = last_line(&ran.output)["session"].as_str().unwrap().to_owned();
    let copy = copy_of(stage, &session);
    (session, copy)
}

fn copy_of(stage: &Stage, session: &str) -> PathBuf {
    let listed = stage.run(&["ls", "--json"]).worked();
    let lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own = lines.into_iter().find(|line| line["session"] == session).unwrap();
    assert_eq!(own["isolated_from"], text_of(&stage.path("files").canonicalize().unwrap()));
    own["workspace"].as_str().unwrap().into()
}

/// Content and mode of each file of the project, without its repository.
fn picture(directory: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut picture = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.symlink_metadata().unwrap().permissions().mode();
            if path.is_dir() && !path.is_symlink() {
                picture.insert(path.clone(), (mode, Vec::new()));
                if !path.ends_with(".git") {
                    open.push(path);
                }
            } else {
                let content = std::fs::read(&path).unwrap();
                picture.insert(path, (mode, content));
            }
        }
    }
    picture
}

#[test]
fn an_apply_that_changes_nothing_is_not_what_is_undone() {
    let stage = Stage::new();
    project(&stage);
    let files = stage.path("files");
    let before = picture(&files);
    let (session, _) =
        run(&stage, &model(&stage, "one.json", &["echo new > c.txt; mkdir new; echo x > new/x"]));
    stage.run(&["apply", &session]).worked();
    let after = picture(&files);
    for _ in 0..2 {
        assert!(stage.run(&["apply", &session]).worked().contains("has all changes of the session already"));
        assert!(stage.run(&["apply", &session, "c.txt"]).worked().contains("has all changes"));
    }
    assert_eq!(picture(&files), after);
    assert!(stage.run(&["apply", &session, "--undo"]).worked().contains("2 files changed"));
    assert_eq!(picture(&files), before);
    assert!(stage.run(&["apply", &session, "--undo"]).failed().contains("code: nothing_to_apply"));

    // A person made the same changes by hand: there is nothing to undo, and an earlier apply is not forgotten.
    stage.run(&["apply", &session]).worked();
    assert_eq!(picture(&files), after);
    std::fs::write(files.join("c.txt"), "by hand\n").unwrap();
    std::fs::write(copy_of(&stage, &session).join("c.txt"), "by hand\n").unwrap();
    assert!(stage.run(&["apply", &session]).worked().contains("has all changes"));
    std::fs::write(files.join("c.txt"), "new\n").unwrap();
    stage.run(&["apply", &session, "--undo"]).worked();
    assert_eq!(picture(&files), before);
}

#[test]
fn two_sessions_and_a_person_work_on_one_project_at_once() {
    let stage = Stage::new();
    project(&stage);
    let files = stage.path("files");
    let one = model(
        &stage,
        "one.json",
        &[
            "sed -i s/2/two/ a.txt && echo one > c.txt && chmod 750 run.sh && git -c user.name=t -c user.email=t@example.org commit -qam one",
            "mkdir -p new/deep && echo new > new/deep/file && rm src/old.rs",
        ],
    );
    let other = model(&stage, "other.json", &["sed -i s/8/eight/ a.txt && echo other > c.txt"]);
    let start = |model: &str| {
        stage.command(&["run", "Sew", "--isolated", "--model", model, "--json"]).spawn().unwrap()
    };
    let (one, other) = (start(&one), start(&other));
    std::fs::write(files.join("mine.txt"), "by hand\n").unwrap();
    let (one, other) = (ended(one), ended(other));
    let session = |ran: &crate::command::Ran| {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        last_line(&ran.output)["session"].as_str().unwrap().to_owned()
    };
    let (one, other) = (session(&one), session(&other));
    assert_ne!(copy_of(&stage, &one), copy_of(&stage, &other));
    assert_eq!(git(&files, &["status", "--short"]), "?? mine.txt\n", "the project is as the person left it");
    std::fs::write(files.join("a.txt"), LINES.replace('5', "five")).unwrap();
    let before = picture(&files);

    let planned = stage.json(&["apply", &one, "--dry-run"]);
    assert_eq!((&planned["at"], &planned["conflicts"]), (&Value::Null, &json!([])));
    assert_eq!(picture(&files), before, "a dry run changes nothing");
    let applied = stage.run(&["apply", &one]).worked();
    for words in
        ["M a.txt", "M c.txt", "D src/old.rs", "A new/deep/file", "applied to", "git fetch", "--undo"]
    {
        assert!(applied.contains(words), "{words}: {applied}");
    }
    assert_eq!(stage.file("a.txt").unwrap(), "1\ntwo\n3\n4\nfive\n6\n7\n8\n9\n");
    assert_eq!(std::fs::metadata(files.join("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    let between = picture(&files);

    let refused = stage.run(&["apply", &other]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.output.contains("conflict: c.txt (both changed the same lines)"), "{refused:?}");
    assert!(refused.errors.contains("code: apply_conflict"), "{refused:?}");
    let listed = stage.run(&["apply", &other, "--json"]);
    assert_eq!(last_line(&listed.output)["conflicts"], json!([{"path": "c.txt", "kind": "both_changed"}]));
    assert_eq!(picture(&files), between, "a conflict changes nothing");
    let applied = stage.run(&["apply", &other, "--theirs"]).worked();
    assert!(applied.contains("decided: c.txt"), "{applied}");
    assert_eq!(stage.file("a.txt").unwrap(), "1\ntwo\n3\n4\nfive\n6\n7\neight\n9\n");
    assert_eq!(stage.file("c.txt").unwrap(), "other\n");

    stage.run(&["apply", &other, "--undo"]).worked();
    assert_eq!(picture(&files), between, "byte for byte, modes too");
    stage.run(&["apply", &one, "--undo"]).worked();
    assert_eq!(picture(&files), before);
    let nothing = stage.run(&["apply", &one, "--undo"]).failed();
    assert!(nothing.contains("code: nothing_to_apply"), "{nothing}");

    let marked = stage.run(&["apply", &one, "c.txt"]).worked();
    assert!(marked.contains("1 file changed"), "{marked}");
    stage.run(&["apply", &other, "--markers"]).worked();
    assert_eq!(stage.file("c.txt").unwrap(), "<<<<<<< ours\none\n=======\nother\n>>>>>>> theirs\n");
    assert!(stage.run(&["ls"]).worked().contains("(isolated) Sew"));
}

#[test]
fn a_copy_is_resumed_restored_and_removed_with_its_session() {
    let stage = Stage::new();
    project(&stage);
    // One script for the first mission and both follow-ups.
    let call = |command: &str| json!({"calls": [{"name": "shell", "arguments": {"command": command}}]});
    let done = json!({"text": "Done."});
    let commands = ["echo two >> c.txt", "cat c.txt >> src/old.rs", "cat c.txt"];
    let replies: Vec<Value> = commands.iter().flat_map(|command| [call(command), done.clone()]).collect();
    let script = stage.write("all.json", &json!({"reply": replies}).to_string());
    let (session, copy) = run(&stage, &format!("scripted:{script}"));
    assert!(copy.starts_with(stage.path("state")), "{}", copy.display());
    // The session continues in its copy.
    let again = stage.run(&["ask", &session, "Again"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(std::fs::read_to_string(copy.join("src/old.rs")).unwrap(), "old\nshared\ntwo\n");
    assert_eq!(stage.file("src/old.rs").unwrap(), "old\n");

    // A deleted copy is restored from the store, with a repository.
    std::fs::remove_dir_all(&copy).unwrap();
    let asked = stage.run(&["ask", &session, "More"]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(asked.errors.contains("was gone"), "{asked:?}");
    assert_eq!(std::fs::read_to_string(copy.join("c.txt")).unwrap(), "shared\ntwo\n");
    assert_eq!(git(&copy, &["log", "--format=%s"]), "first\n");

    // A session is applied without its copy, too.
    std::fs::remove_dir_all(&copy).unwrap();
    stage.run(&["apply", &session]).worked();
    assert_eq!(stage.file("c.txt").unwrap(), "shared\ntwo\n");
    assert!(stage.run(&["apply", &session]).worked().contains("has all changes"));

    let (other, other_copy) = run(&stage, &model(&stage, "one.json", &["echo three >> c.txt"]));
    assert!(other_copy.exists());
    let removed = stage.run(&["rm", &other, "--yes"]).worked();
    assert!(removed.contains("1 isolated workspace removed"), "{removed}");
    assert!(!other_copy.exists() && !other_copy.parent().unwrap().exists());
}

#[test]
fn an_isolated_session_can_continue_in_its_project() {
    let stage = Stage::new();
    project(&stage);
    let call = |command: &str| json!({"calls": [{"name": "shell", "arguments": {"command": command}}]});
    let done = json!({"text": "Done."});
    let commands = ["echo one >> c.txt", "echo two >> c.txt", "echo three >> c.txt"];
    let replies: Vec<Value> = commands.iter().flat_map(|command| [call(command), done.clone()]).collect();
    let script = stage.write("all.json", &json!({"reply": replies}).to_string());
    let (session, copy) = run(&stage, &format!("scripted:{script}"));
    let files = text_of(&stage.path("files"));
    for more in [&["--workspace", &files][..], &[]] {
        let asked = stage.run(&[&["ask", &session, "More"], more].concat());
        assert_eq!(asked.code, Some(0), "{asked:?}");
    }
    assert_eq!(stage.file("c.txt").unwrap(), "shared\ntwo\nthree\n");
    assert_eq!(std::fs::read_to_string(copy.join("c.txt")).unwrap(), "shared\none\n");
}

#[test]
fn agent_files_isolate_and_set_up_copies() {
    let stage = Stage::new();
    project(&stage);
    let model = model(&stage, "one.json", &["cat ready.txt"]);
    let agent = |setup: &str| {
        stage.write("agent.toml", &format!("[workspace]\nisolated = true\nsetup = [{setup}]\n"))
    };
    let file = agent(r#""echo made > ready.txt", "printf 'in \\033[31mred\\n'""#);
    let ran = stage.run(&["run", "Sew", "--agent", &file, "--trust", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.errors.contains("setup: echo made > ready.txt") && ran.errors.contains("in "), "{ran:?}");
    assert!(!ran.errors.contains('\u{1b}'), "{ran:?}");
    assert_eq!(stage.file("ready.txt"), None);
    // What the setup made is not a change of the session.
    let session = stage.session();
    let applied = stage.json(&["apply", &session]);
    assert_eq!(applied["files"], json!([]));

    let copies =
        || std::fs::read_dir(copy_of(&stage, &session).parent().unwrap().parent().unwrap()).unwrap().count();
    let known = copies();
    let file = agent(r#""exit 7""#);
    let failed = stage.run(&["run", "Sew", "--agent", &file, "--trust", "--model", &model]).failed();
    assert!(failed.contains("code: setup_failed") && failed.contains("exit status: 7"), "{failed}");
    assert_eq!(copies(), known, "the copy is removed");
}

#[test]
fn what_cannot_be_applied_is_said() {
    let stage = Stage::new();
    project(&stage);
    let model = model(&stage, "one.json", &["echo two >> c.txt"]);
    assert_eq!(stage.run(&["run", "Sew", "--model", &model]).code, Some(0));
    let plain = stage.session();
    let refused = stage.run(&["apply", &plain]).failed();
    assert!(refused.contains("code: not_isolated"), "{refused}");
    let (session, _) = run(&stage, &model);
    stage.run(&["apply", &session, "../outside"]).called_wrongly();
    stage.run(&["apply", &session, "--undo", "c.txt"]).called_wrongly();
    let elsewhere = text_of(&stage.path("nowhere"));
    let gone = stage.run(&["apply", &session, "--to", &elsewhere]).failed();
    assert!(gone.contains("code: workspace_gone"), "{gone}");
    assert!(!stage.path("nowhere").exists());
    // Another directory gets the changes only.
    std::fs::create_dir(stage.path("other")).unwrap();
    std::fs::write(stage.path("other/c.txt"), "shared\ntwo\n").unwrap();
    stage.run(&["apply", &session, "--to", &text_of(&stage.path("other"))]).worked();
    assert_eq!(std::fs::read_to_string(stage.path("other/c.txt")).unwrap(), "shared\ntwo\ntwo\n");
}

#[test]
fn unfinished_copies_are_removed_by_the_next_session() {
    let stage = Stage::new();
    project(&stage);
    let model = model(&stage, "one.json", &["echo two >> c.txt"]);
    let (_, copy) = run(&stage, &model);
    let place = copy.parent().unwrap().parent().unwrap().to_owned();
    // As a killed process leaves them: while it copied, and before the session was recorded.
    std::fs::create_dir_all(place.join("killed.new/files")).unwrap();
    std::fs::create_dir_all(place.join("01a1e414-0000-7000-8000-000000000000/files")).unwrap();
    let (_, other) = run(&stage, &model);
    let mut left: Vec<_> = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.sort();
    let mut expected = [copy.parent().unwrap().to_owned(), other.parent().unwrap().to_owned()];
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn a_killed_apply_is_completed_by_the_next_command() {
    let stage = Stage::new();
    project(&stage);
    let many = "mkdir many && for i in $(seq 1500); do echo $i > many/$i; done && rm c.txt";
    let (session, _) = run(&stage, &model(&stage, "many.json", &[many]));
    let files = stage.path("files");
    let before = picture(&files);
    for _ in 0..3 {
        let mut child = stage.command(&["apply", &session]).spawn().unwrap();
        // The deletion is the first change.
        wait_until("the apply", || !files.join("c.txt").exists() || child.try_wait().unwrap().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        let listed = stage.run(&["ls"]);
        assert_eq!(listed.code, Some(0), "{listed:?}");
        assert!(!files.join("c.txt").exists());
        assert_eq!(std::fs::read_dir(files.join("many")).unwrap().count(), 1500, "{listed:?}");
        assert_eq!(stage.file("many/777").unwrap(), "777\n");
        assert_eq!(stage.run(&["ls"]).errors, "", "it is completed once");
        stage.run(&["apply", &session, "--undo"]).worked();
        assert_eq!(picture(&files), before);
    }
}

#[test]
fn copies_expire_with_their_sessions() {
    let stage = Stage::new();
    project(&stage);
    let (session, copy) = run(&stage, &model(&stage, "one.json", &["echo one > c.txt"]));
    assert_eq!(stage.json(&["gc", "--expire-days", "1"])["expired"], json!([]), "it is of today");
    assert!(copy.exists());
    assert_eq!(stage.json(&["gc", "--expire-days", "0", "--dry-run"])["expired"], json!([session]));
    assert!(copy.exists(), "a dry run removes nothing");
    assert_eq!(stage.json(&["gc", "--expire-days", "0"])["expired"], json!([session]));
    assert!(!copy.exists());
    assert_eq!(stage.file("c.txt").unwrap(), "shared\n");
}

#[test]
fn a_conversation_can_be_isolated() {
    let stage = crate::chat::stage();
    project(&stage);
    let model = model(&stage, "one.json", &["echo one > c.txt"]);
    let terminal = crate::pty::Pty::start(&stage, &["chat", "--isolated", "--model", &model], 80, 30);
    crate::chat::say(&terminal, "Sew", "Done.", 1);
    crate::chat::leave(terminal);
    assert_eq!(stage.file("c.txt").unwrap(), "shared\n");
    let listed = stage.run(&["ls", "--json"]).worked();
    let session = last_line(&listed)["session"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(copy_of(&stage, &session).join("c.txt")).unwrap(), "one\n");
    stage.run(&["apply", &session]).worked();
    assert_eq!(stage.file("c.txt").unwrap(), "one\n");
}

#[test]
fn commands_that_set_up_a_copy_run_in_the_sandbox() {
    if backstitch::host::probe().landlock < 3 {
        return;
    }
    let stage = Stage::confined();
    project(&stage);
    let model = model(&stage, "one.json", &["true"]);
    let agent = |sandbox: &str| {
        let setup = "setup = ['touch inside; touch ../outside']";
        stage.write("agent.toml", &format!("{sandbox}\n[workspace]\nisolated = true\n{setup}\n"))
    };
    for sandbox in ["", "sandbox = 'read-only'"] {
        let file = agent(sandbox);
        let failed = stage.run(&["run", "Sew", "--agent", &file, "--model", &model]).failed();
        assert!(failed.contains("setup_failed") && failed.contains("sandbox of the agent"), "{failed}");
        assert!(!failed.contains("'inside'"), "the copy can be written: {failed}");
    }
    let file = agent("sandbox = 'off'");
    let ran = stage.run(&["run", "Sew", "--agent", &file, "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
