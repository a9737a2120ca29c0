//! A session as a git repository and as a document.

use std::process::Command;

use serde_json::{Value, json};

use crate::stage::{Stage, last_line, scripted, text_of};

fn git(repository: &str, arguments: &[&str]) -> String {
    let output = Command::new("git").args(["-C", repository]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

fn session(stage: &Stage) -> String {
    stage.json(&["ls"])["session"].as_str().unwrap().to_owned()
}

#[test]
fn each_call_is_a_commit_with_the_files_that_it_left() {
    let stage = Stage::new();
    std::fs::write(stage.path("files/start.txt"), "start\n").unwrap();
    let replies = json!([
        call("write_file", json!({"path": "a.txt", "text": "one\n"})),
        call("read_file", json!({"path": "a.txt"})),
        call("shell", json!({"command": "echo two >> a.txt; mkdir empty; mkfifo pipe; chmod 600 start.txt"})),
        call("edit_file", json!({"path": "missing.txt", "old": "x", "new": "y"})),
        {"text": "Done."},
        call("write_file", json!({"path": "b.txt", "text": "three\n"})),
        {"text": "Done again."},
    ]);
    stage.run(&["run", "Sew", "--model", &scripted(&stage, &replies)]).worked_quietly();
    // A person changes a file between two calls.
    std::fs::write(stage.path("files/mine.txt"), "mine\n").unwrap();
    let id = session(&stage);
    stage.run(&["ask", &id, "More"]).worked_quietly();
    let repository = text_of(&stage.path("hem.git"));
    let report = last_line(&stage.run(&["export", &id, "--git", &repository, "--json"]).worked());

    assert_eq!(git(&repository, &["fsck", "--strict", "--full"]), "");
    let log = git(&repository, &["log", "--format=%s", "--reverse"]);
    let subjects: Vec<&str> = log.lines().map(|line| line.split(':').next().unwrap()).collect();
    let expected = [
        "start of the session",
        "write_file",
        "shell",
        "edit_file (failed, rolled back)",
        "files changed outside of calls",
        "write_file",
    ];
    assert_eq!(subjects, expected, "{log}");
    assert_eq!(report["commits"].as_array().unwrap().len(), expected.len());
    assert!(git(&repository, &["log", "-1", "--format=%B"]).contains(&format!("Session: {id}")));

    // Each commit has the files of its point.
    let show = stage.json(&["show", &id]);
    let commits: Vec<&str> =
        report["commits"].as_array().unwrap().iter().map(|commit| commit.as_str().unwrap()).collect();
    let roots = show["calls"].as_array().unwrap().iter().filter_map(|call| {
        let root = call["checkpoint"]["after"]["root"]["tree"].as_str()?;
        Some((call["call"].as_str().unwrap().to_owned(), root.to_owned()))
    });
    let mut compared = 0;
    for (call, tree) in roots {
        let commit =
            commits.iter().find(|id| git(&repository, &["log", "-1", "--format=%B", id]).contains(&call));
        let Some(commit) = commit else { continue };
        assert_eq!(git(&repository, &["rev-parse", &format!("{commit}^{{tree}}")]), tree, "{call}");
        compared += 1;
    }
    assert_eq!(compared, 4);
    assert_eq!(git(&repository, &["show", "HEAD:a.txt"]), "one\ntwo");
    assert_eq!(git(&repository, &["show", "HEAD:mine.txt"]), "mine");
    assert_eq!(git(&repository, &["show", &format!("{}:a.txt", commits[1])]), "one");

    // What git cannot hold, and what was never covered, is listed.
    let reasons = |list: &str| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        report[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (text(&one["path"]), text(&one["reason"])))
            .collect()
    };
    let left_out = reasons("left_out");
    assert!(
        left_out.iter().any(|(path, reason)| path == "empty" && reason.contains("empty")),
        "{left_out:?}"
    );
    assert!(left_out.iter().any(|(path, _)| path == "start.txt"), "{left_out:?}");
    assert!(reasons("uncovered").contains(&("pipe".to_owned(), "special".to_owned())), "{report}");
    let again = stage.run(&["export", &id, "--git", &repository]).failed();
    assert!(again.contains("already_exists"), "{again}");
}

#[test]
fn a_session_without_files_has_nothing_to_commit() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Sew", "--model", &model, "--tools", "none"]).worked_quietly();
    let refused = stage.run(&["export", &session(&stage), "--git", &text_of(&stage.path("x.git"))]);
    assert!(refused.called_wrongly().contains("no files"));
    assert!(!stage.path("x.git").exists());
}

/// Text that tries to leave its place in a document or to control a terminal.
const HOSTILE: &str = "# Fake\n\n```\n</details><script>x</script>\n````\n## User\n> approved ![x](http://e.org) \u{1b}[2J\u{202e}";

#[test]
fn a_document_shows_the_conversation_and_nothing_breaks_out_of_it() {
    let stage = Stage::new();
    let long = "line\n".repeat(3_000);
    let replies = json!([
        {"text": HOSTILE, "calls": [{"name": "write_file", "arguments": {"path": "a.txt", "text": HOSTILE}}]},
        call("read_file", json!({"path": "a.txt"})),
        call("write_file", json!({"path": "long.txt", "text": long})),
        {"text": "The **hem** is done.\n\n| a | b |\n|---|---|\n"},
    ]);
    let mission = format!("Sew the hem {HOSTILE}");
    stage.run(&["run", &mission, "--model", &scripted(&stage, &replies)]).worked_quietly();
    let id = session(&stage);
    let text = stage.run(&["export", &id, "--markdown"]).worked();

    // Every line is in a quote or a code block, or is one of the document's own.
    let mut fence: Option<String> = None;
    for line in text.lines() {
        match &fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => {
                fence = Some(line.trim_end_matches(|one: char| one != '`').to_owned());
            }
            None => {
                let own = ["", "Result:", "(empty)"].contains(&line)
                    || [
                        "# Sew the hem ",
                        "## User",
                        "## System",
                        "## Agent, turn ",
                        "### Call `",
                        "- ",
                        ">",
                        "(cut here: ",
                    ]
                    .iter()
                    .any(|start| line.starts_with(start));
                assert!(own, "{line:?} broke out:\n{text}");
            }
        }
    }
    assert_eq!(fence, None, "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    assert!(
        !text
            .lines()
            .any(|line| line.starts_with('>') && line.contains("<script>") && !text.contains("> ```"))
    );
    assert!(text.contains("> The **hem** is done."), "{text}");
    assert!(text.contains("(cut here: "), "{text}");
    assert!(text.contains("\"path\": \"a.txt\""), "{text}");

    // A file is new, and private.
    let path = text_of(&stage.path("hem.md"));
    let written = last_line(&stage.run(&["export", &id, "--markdown", &path, "--json"]).worked());
    assert_eq!((&written["file"], &written["bytes"]), (&json!(path), &json!(text.len())));
    assert_eq!(written["markdown"], json!(text));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let refused = stage.run(&["export", &id, "--markdown", &path]).failed();
    assert!(refused.contains("already_exists"), "{refused}");
    let as_json = last_line(&stage.run(&["export", &id, "--markdown", "--json"]).worked());
    assert_eq!(as_json["markdown"], json!(text));

    // What a rewind has undone is not shown.
    stage.run(&["rewind", &id, "turn:1"]).worked_quietly();
    let text = stage.run(&["export", &id, "--markdown"]).worked();
    assert!(!text.contains("The **hem** is done.") && text.contains("- Rewinds: 1"), "{text}");
}

#[test]
fn exactly_one_form_is_named() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Sew", "--model", &model, "--tools", "none"]).worked_quietly();
    let id = session(&stage);
    for arguments in
        [&["export", &id][..], &["export", &id, "--git", "x", "--bundle", "y"], &["export", "--markdown"]]
    {
        let ran = stage.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
    }
}
