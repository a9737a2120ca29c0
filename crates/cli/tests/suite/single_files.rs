//! `cat` and `restore`: single files at a point, and the agreement of all commands about files.

use serde_json::{Value, json};

use crate::pty::Pty;
use crate::stage::{Stage, last_line, scripted, wait_until};

fn write(path: &str, text: &str) -> Value {
    json!({"calls": [{"name": "write_file", "arguments": {"path": path, "text": text}}]})
}

/// A session that writes `a.txt` three times and another file once, and its id.
fn written(stage: &Stage) -> String {
    let model = scripted(
        stage,
        &json!([
            write("a.txt", "one\n"), write("a.txt", "two\n"), write("src/b.txt", "b\n"), write("a.txt", "three\n"),
            {"text": "Done."},
        ]),
    );
    let ran = stage.run(&["run", "Sew", "--model", &model, "--json"]);
    last_line(&ran.output)["session"].as_str().unwrap().to_owned()
}

fn calls(stage: &Stage, session: &str) -> Vec<String> {
    let shown = stage.json(&["show", session]);
    shown["calls"].as_array().unwrap().iter().map(|call| call["call"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_file_is_printed_as_it_was() {
    let stage = Stage::new();
    let session = written(&stage);
    let calls = calls(&stage, &session);
    let short = |call: &str| call[call.len() - 12..].to_owned();
    for (point, text) in [
        ("turn:1".to_owned(), "one\n"),
        ("turn:2".to_owned(), "two\n"),
        ("head".to_owned(), "three\n"),
        (format!("before:{}", short(&calls[1])), "one\n"),
        (format!("after:{}", short(&calls[1])), "two\n"),
        (short(&calls[0]), "one\n"),
    ] {
        let file = format!("{point}:a.txt");
        assert_eq!(stage.run(&["cat", &session, &file]).worked(), text, "{point}");
        assert_eq!(stage.run(&["cat", &file]).worked(), text, "the latest session");
        let report = stage.json(&["cat", &session, &file]);
        assert_eq!((&report["text"], &report["bytes"]), (&json!(text), &json!(text.len())), "{point}");
    }
    assert_eq!(stage.run(&["cat", "a.txt"]).worked(), "three\n");
    assert_eq!(stage.run(&["cat", "turn:3:./src/b.txt"]).worked(), "b\n");
    let missing = stage.run(&["cat", "start:a.txt"]).failed();
    assert!(
        missing.contains("there is no file a.txt at start") && missing.contains("file_not_found"),
        "{missing}"
    );
    assert!(stage.run(&["cat", "turn:3:src"]).failed().contains("file_not_found"));
    for wrong in ["turn:2", "turn:x:a.txt", "turn:2:", "../../outside", "nothing:a.txt", "turn:1:/etc/passwd"]
    {
        stage.run(&["cat", wrong]).called_wrongly();
    }
    stage.run(&["cat"]).called_wrongly();
    assert!(Stage::new().run(&["cat", "a.txt"]).failed().contains("store_not_found"));
}

#[test]
fn bytes_are_exact_on_a_pipe_and_escaped_on_a_terminal() {
    let stage = Stage::new();
    let command = "printf 'a\\033[2J\\000\\377b\\n' > raw.bin";
    let model = scripted(
        &stage,
        &json!([{"calls": [{"name": "shell", "arguments": {"command": command}}]}, {"text": "Done."}]),
    );
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    let output = stage.command(&["cat", "raw.bin"]).output().unwrap();
    assert_eq!(output.stdout, b"a\x1b[2J\0\xffb\n");
    let report = stage.json(&["cat", "raw.bin"]);
    assert_eq!((&report["text"], &report["hex"]), (&Value::Null, &json!("611b5b324a00ff620a")));
    let (code, screen) = Pty::start(&stage, &["cat", "raw.bin"], 40, 10).finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("a\\u001b[2J\\u0000"), "{screen}");
}

#[test]
fn a_restore_is_recorded_and_can_be_undone() {
    let stage = Stage::new();
    let session = written(&stage);
    std::fs::write(stage.path("files/mine.txt"), "by hand").unwrap();
    let done = stage.json(&["restore", "a.txt", "src", "--from", "turn:1", "--session", &session]);
    let changes =
        json!([{"path": "a.txt", "change": "modified"}, {"path": "src/b.txt", "change": "deleted"}]);
    assert_eq!(done["files"], changes);
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\n"));
    assert_eq!(stage.file("src/b.txt"), None);
    assert_eq!(stage.file("mine.txt").as_deref(), Some("by hand"));
    // The conversation is as before, and the old content can be printed.
    assert_eq!(calls(&stage, &session).len(), 4);
    let rescue = done["rescue"].as_str().unwrap();
    assert_eq!(stage.run(&["cat", &format!("{rescue}:a.txt")]).worked(), "three\n");
    assert_eq!(stage.run(&["cat", &format!("{rescue}:mine.txt")]).worked(), "by hand");
    let log = stage.run(&["log", &session]).worked();
    assert!(log.contains("only the files are changed: a.txt, src as at turn:1"), "{log}");

    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("three\n"));
    assert_eq!(stage.file("src/b.txt").as_deref(), Some("b\n"));
    stage.run(&["redo", &session]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\n"));
    assert!(stage.run(&["redo", &session]).failed().contains("nothing_to_redo"));
    stage.run(&["verify"]).worked_quietly();

    // For people.
    let ran = stage.run(&["restore", "./a.txt", "--from", "turn:2"]).worked();
    assert!(ran.contains("M a.txt") && ran.contains("restored from turn:2") && ran.contains("undo"), "{ran}");
    assert_eq!(stage.file("a.txt").as_deref(), Some("two\n"));
}

#[test]
fn one_call_is_undone_and_the_others_stay() {
    let stage = Stage::new();
    let session = written(&stage);
    let calls = calls(&stage, &session);
    let planned = stage.json(&["undo", &session, "--call", &calls[2], "--dry-run"]);
    assert!(planned["own_files"]["changes"].to_string().contains("src/b.txt"), "{planned}");
    assert_eq!(stage.file("src/b.txt").as_deref(), Some("b\n"), "nothing is changed");
    let shown = stage.run(&["undo", &session, "--call", &calls[2]]).worked_quietly();
    assert!(shown.contains("changed is undone"), "{shown}");
    assert_eq!((stage.file("src/b.txt"), stage.file("a.txt").as_deref()), (None, Some("three\n")));
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(stage.file("src/b.txt").as_deref(), Some("b\n"));

    // A later call has changed the same line.
    let refused = stage.run(&["undo", &session, "--call", &calls[1]]);
    assert!(refused.code != Some(0) && refused.errors.contains("cannot be merged: a.txt"), "{refused:?}");
    stage.run(&["undo", &session, "--call", &calls[1], "--force"]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\n"));
}

#[test]
fn a_rewind_leaves_files_of_a_person_alone_and_can_be_previewed() {
    let stage = Stage::new();
    let session = written(&stage);
    std::fs::write(stage.path("files/mine.txt"), "by hand").unwrap();
    let planned = stage.json(&["rewind", &session, "turn:1", "--dry-run"]);
    assert_eq!(planned["dry_run"], true);
    assert!(planned["own_files"]["changes"].to_string().contains("src/b.txt"), "{planned}");
    assert_eq!(stage.file("a.txt").as_deref(), Some("three\n"), "nothing is changed");

    stage.run(&["rewind", &session, "turn:1", "--only", "conversation"]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("three\n"));
    stage.run(&["undo", &session]).worked_quietly();

    stage.run(&["rewind", &session, "turn:1"]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\n"));
    assert_eq!(stage.file("mine.txt").as_deref(), Some("by hand"));
    stage.run(&["undo", &session]).worked_quietly();

    // A file that a person has changed since is left alone, unless that is forced.
    std::fs::write(stage.path("files/a.txt"), "by hand\n").unwrap();
    let shown = stage.run(&["rewind", &session, "turn:1"]).worked_quietly();
    assert!(shown.contains("since others changed it too: a.txt"), "{shown}");
    assert_eq!(stage.file("a.txt").as_deref(), Some("by hand\n"));
    stage.run(&["undo", &session]).worked_quietly();
    stage.run(&["rewind", &session, "turn:1", "--force"]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\n"));
    assert_eq!(stage.file("mine.txt").as_deref(), Some("by hand"));
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("by hand\n"));
}

#[test]
fn a_whole_tree_is_restored_and_the_conversation_stays() {
    let stage = Stage::new();
    let session = written(&stage);
    std::fs::create_dir_all(stage.path("files/mine/empty")).unwrap();
    let before = calls(&stage, &session).len();
    let restore = ["restore", ".", "--from", "turn:1", "--session", &session];
    let planned = stage.json(&[&restore[..], &["--dry-run"]].concat());
    assert_eq!(planned["dry_run"], true, "{planned}");
    assert!(planned["files"].to_string().contains("src/b.txt"), "{planned}");
    assert!(stage.path("files/src/b.txt").exists(), "nothing is changed");
    stage.json(&["restore", ".", "--from", "turn:1", "--session", &session]);
    assert!(
        !stage.path("files/src").exists() && stage.path("files/mine/empty").is_dir(),
        "a directory of a person"
    );
    stage.run(&["undo", &session]).worked_quietly();
    let done = stage.json(&["restore", ".", "--from", "turn:1", "--session", &session, "--all-files"]);
    assert!(done["files"].to_string().contains("src/b.txt"), "{done}");
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\n"));
    assert!(!stage.path("files/src").exists() && !stage.path("files/mine").exists());
    assert_eq!(calls(&stage, &session).len(), before);
    let log = stage.run(&["log", &session]).worked();
    assert!(log.contains("only the files are changed: . as at turn:1"), "{log}");
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("three\n"));
    assert!(stage.path("files/mine/empty").is_dir() && stage.path("files/src/b.txt").exists());
}

#[test]
fn wrong_restores_change_nothing() {
    let stage = Stage::new();
    assert!(stage.run(&["restore", "a.txt", "--from", "turn:1"]).failed().contains("store_not_found"));
    let session = written(&stage);
    let records = stage.json(&["show", &session])["records"].clone();
    assert!(stage.run(&["restore", "nothing.txt", "--from", "turn:1"]).failed().contains("file_not_found"));
    assert!(stage.run(&["restore", "a.txt", "--from", "turn:9"]).failed().contains("point_not_found"));
    assert!(stage.run(&["restore", "a.txt", "--from", "head"]).failed().contains("nothing_to_rewind"));
    for wrong in [
        &["restore", "a.txt"][..],
        &["restore", "--from", "turn:1"],
        &["restore", "../x", "--from", "turn:1"],
        &["restore", "..", "--from", "turn:1"],
    ] {
        stage.run(wrong).called_wrongly();
    }
    assert_eq!(stage.json(&["show", &session])["records"], records);
    assert_eq!(stage.file("a.txt").as_deref(), Some("three\n"));
}

#[test]
fn a_driven_session_is_not_restored() {
    let stage = Stage::new();
    let model = scripted(
        &stage,
        &json!([
            write("a.txt", "one\n"),
            {"calls": [{"name": "shell", "arguments": {"command": "touch begun; sleep 60"}}]},
            {"text": "Done."},
        ]),
    );
    let mut child = stage.command(&["run", "Sew", "--model", &model]).spawn().unwrap();
    wait_until("the call", || stage.file("begun").is_some());
    let errors = stage.run(&["restore", "a.txt", "--from", "start"]).failed();
    assert!(errors.contains("session_held"), "{errors}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\n"));
}

/// The names of the files that `show --files` lists.
fn listed(stage: &Stage, session: &str, point: &str) -> Vec<String> {
    let shown = stage.json(&["show", session, point, "--files"]);
    shown["files"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

fn on_disk(stage: &Stage) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![stage.path("files")];
    while let Some(directory) = open.pop() {
        let entries: Vec<_> =
            std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        for path in &entries {
            match path.is_dir() {
                true => open.push(path.clone()),
                false => {
                    found.push(path.strip_prefix(stage.path("files")).unwrap().to_str().unwrap().to_owned())
                }
            }
        }
        if entries.is_empty() && directory != stage.path("files") {
            found.push(directory.strip_prefix(stage.path("files")).unwrap().to_str().unwrap().to_owned());
        }
    }
    found.sort();
    found
}

/// For every kind of point, `show --files`, `diff`, `cat` and `rewind` agree on the files.
#[test]
fn all_commands_agree_on_the_files_of_a_point() {
    let stage = Stage::new();
    let model = scripted(
        &stage,
        &json!([
            write("a.txt", "one\n"),
            {"calls": [{"name": "shell", "arguments": {"command": "echo half > half.txt; exit 3", "rollback_on_error": true}}]},
            write("src/b.txt", "b\n"),
            {"text": "Done."},
        ]),
    );
    let ran = stage.run(&["run", "Sew", "--model", &model, "--json"]);
    let session = last_line(&ran.output)["session"].as_str().unwrap().to_owned();
    std::fs::write(stage.path("files/mine.txt"), "by hand").unwrap();
    let rewound = stage.json(&["rewind", &session, "turn:1"]);
    stage.run(&["undo", &session]).worked_quietly();
    let log = stage.run(&["log", &session, "--json", "--all"]).worked();
    let failed = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let failed =
        failed.into_iter().find(|line| line["data"]["outcome"] == "failed").unwrap()["position"].clone();
    let calls = calls(&stage, &session);
    let points = [
        "start".to_owned(),
        "head".to_owned(),
        "turn:1".to_owned(),
        "turn:3".to_owned(),
        format!("before:{}", calls[2]),
        format!("after:{}", calls[2]),
        format!("after:{}", calls[1]),
        format!("rescue:{failed}"),
        format!("rescue:{}", rewound["at"]),
        "12".to_owned(),
    ];
    for point in &points {
        let names = listed(&stage, &session, point);
        // `diff` from nothing to the point lists the same.
        let diff = stage.json(&["diff", &session, "start", point, "--names"]);
        let added: Vec<_> =
            diff["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
        assert_eq!(added, names, "{point}");
        for name in names.iter().filter(|name| name.contains('.')) {
            stage.run(&["cat", &session, &format!("{point}:{name}")]).worked();
        }
        let before = on_disk(&stage);
        let ran = stage.run(&["rewind", &session, point, "--all-files"]);
        if ran.code != Some(0) {
            assert!(ran.errors.contains("nothing_to_rewind"), "{point}: {ran:?}");
        }
        assert_eq!(on_disk(&stage), names, "{point}");
        if ran.code == Some(0) {
            stage.run(&["undo", &session]).worked_quietly();
            assert_eq!(on_disk(&stage), before, "{point}");
        }
    }
    let rescued = listed(&stage, &session, &format!("rescue:{failed}"));
    assert!(rescued.contains(&"half.txt".to_owned()), "{rescued:?}");
}

#[test]
fn a_redacted_file_is_not_restored_and_nothing_is_changed() {
    const SECRET: &str = "hunter2-hunter2";
    let stage = Stage::new();
    let replies = json!([
        write("keys/key.txt", &format!("key: {SECRET}\n")), write("keys/key.txt", "key: none\n"), write("b.txt", "b\n"),
        {"text": "Done."},
    ]);
    let model = scripted(&stage, &replies);
    let ran = stage.run(&["run", "Sew", "--model", &model, "--json"]);
    let session = last_line(&ran.output)["session"].as_str().unwrap().to_owned();
    let secret = stage.write("secret.txt", SECRET);
    let mut redact = stage.command(&["redact", &session]);
    let redacted = redact.stdin(std::fs::File::open(secret).unwrap()).output().unwrap();
    assert!(redacted.status.success(), "{}", String::from_utf8_lossy(&redacted.stderr));
    // What was removed is not there, so nothing stands in its place.
    let cat = stage.run(&["cat", &session, "turn:1:keys/key.txt"]);
    assert!(!cat.output.contains(SECRET) && cat.errors.contains("redacted"), "{}{}", cat.output, cat.errors);
    for paths in [&["keys/key.txt"][..], &["b.txt", "keys/key.txt"]] {
        let arguments = [&["restore"], paths, &["--from", "turn:1", "--session", &session]].concat();
        let refused = stage.run(&arguments).failed();
        assert!(
            refused.contains("keys/key.txt") && refused.contains("its content was redacted"),
            "{refused}"
        );
        assert_eq!(stage.file("keys/key.txt").as_deref(), Some("key: none\n"));
        assert_eq!(stage.file("b.txt").as_deref(), Some("b\n"));
    }
    // With its directory it is left as it is, and that is said.
    let restored =
        stage.run(&["restore", "keys", "--from", "turn:1", "--session", &session]).worked_quietly();
    assert!(restored.contains("left as it is: keys/key.txt") && !restored.contains("M keys"), "{restored}");
    assert_eq!(stage.file("keys/key.txt").as_deref(), Some("key: none\n"));
    stage.run(&["undo", &session]).worked_quietly();
    std::fs::write(stage.path("files/keys/key.txt"), "mine\n").unwrap();
    stage.run(&["restore", "keys/key.txt", "--from", "turn:2", "--session", &session]).worked_quietly();
    assert_eq!(stage.file("keys/key.txt").as_deref(), Some("key: none\n"));
    assert!(!stage.stored_bytes().windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
}

#[test]
fn a_terminal_offers_the_points_of_a_session() {
    let stage = Stage::new();
    let session = written(&stage);
    let refused = stage.run(&["rewind", &session]);
    assert_eq!(refused.code, Some(2), "nobody can be asked: {refused:?}");
    assert!(refused.errors.contains("name the point to return to"), "{refused:?}");

    let rewind = |answer: &str| {
        let terminal = Pty::start(&stage, &["rewind", &session], 100, 30);
        terminal.wait_for("return to which point?");
        terminal.send(answer);
        terminal.finish()
    };
    let (code, shown) = rewind("\r");
    assert!(code == Some(0) && shown.contains("nothing was changed"), "{shown}");
    let newest = shown.find("1 file: a.txt").unwrap();
    assert!(shown.contains("Sew") && newest < shown.find("1 file: src/b.txt").unwrap(), "{shown}");
    assert_eq!(stage.file("a.txt").as_deref(), Some("three\n"));
    let (code, shown) = rewind("7\r");
    assert!(code == Some(2) && shown.contains("is not a number from 1 to 4"), "{shown}");
    let (code, shown) = rewind("1\r");
    assert!(code == Some(0) && shown.contains("back at"), "{shown}");
    assert_eq!(stage.file("a.txt").as_deref(), Some("two\n"));
}

#[test]
fn a_terminal_shows_the_list_before_files_are_left_alone() {
    let stage = Stage::new();
    let session = written(&stage);
    std::fs::write(stage.path("files/a.txt"), "by hand\n").unwrap();
    let rewind = |answer: &str| {
        let terminal = Pty::start(&stage, &["rewind", &session, "turn:1"], 100, 30);
        terminal.wait_for("do it like this?");
        terminal.send(answer);
        let (code, shown) = terminal.finish();
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("left as it is, since others changed it too: a.txt"), "{shown}");
    };
    rewind("n\r");
    let terminal = Pty::start(&stage, &["restore", ".", "--from", "turn:1"], 100, 30);
    terminal.wait_for("do it like this?");
    terminal.send("\r");
    let (code, shown) = terminal.finish();
    assert!(code == Some(0) && shown.contains("nothing was changed"), "{shown}");
    assert_eq!(stage.file("src/b.txt").as_deref(), Some("b\n"));
    rewind("y\r");
    assert_eq!((stage.file("src/b.txt"), stage.file("a.txt").as_deref()), (None, Some("by hand\n")));
    // Nothing is left alone or merged, so nobody is asked.
    let (code, shown) = Pty::start(&stage, &["undo", &session], 100, 30).finish();
    assert!(code == Some(0) && !shown.contains("do it like this?"), "{shown}");
    assert_eq!(stage.file("src/b.txt").as_deref(), Some("b\n"));
    let (code, shown) = Pty::start(&stage, &["rewind", &session, "turn:1", "--no-input"], 100, 30).finish();
    assert!(code == Some(0) && !shown.contains("do it like this?"), "{shown}");
}
