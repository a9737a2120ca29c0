//! A session that was stopped in the middle continues on another machine, with the same requests and files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::command::Ran;
use crate::model::{Model, Said};
use crate::stage::{Stage, as_slices, last_line, scripted, text_of, wait_until};

/// A machine of its own: an empty home directory, no store, and a directory to work in.
struct Machine {
    place: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("home")).unwrap();
        std::fs::create_dir(place.path().join("desk")).unwrap();
        Self { place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, directory: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstitch"));
        command.current_dir(self.path(directory)).args(arguments).env_clear();
        command.env("HOME", self.path("home")).env("PATH", std::env::var("PATH").unwrap());
        command.env("OPENAI_API_KEY", "key");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run_in(&self, directory: &str, arguments: &[&str]) -> Ran {
        crate::stage::ended(self.command(directory, arguments).spawn().unwrap())
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.run_in("desk", arguments)
    }
}

/// All files below a directory with their contents.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// The requests that a model received. Ids of calls that the session itself has chosen are numbered.
fn bodies(model: &Model) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    let mut bodies: Vec<String> = model.asked().into_iter().map(|asked| asked.body).collect();
    for body in &mut bodies {
        for (at, _) in body.clone().match_indices("call_") {
            let id: String = body[at..].chars().take(37).collect();
            if id[5..].chars().all(|one| one.is_ascii_hexdigit()) && !known.contains(&id) {
                known.push(id);
            }
        }
        for (number, id) in known.iter().enumerate() {
            *body = body.replace(id, &format!("call_{number:_>32}"));
        }
    }
    bodies
}

fn write(path: &str, text: &str) -> Value {
    json!({"path": path, "text": text})
}

/// Replies of a model that writes three files, of which the second needs approval.
fn said() -> Vec<Said> {
    vec![
        Said::Call("One.", "write_file", write("one.txt", "1\n")),
        Said::Call("Two.", "shell", json!({"command": "echo 2 > two.txt; cat one.txt"})),
        Said::Call("Three.", "write_file", write("sub/three.txt", "3\n")),
        Said::Text("Done."),
    ]
}

#[test]
fn a_paused_session_continues_elsewhere_with_the_same_requests() {
    let provider = "openai";
    let (model, whole) = (Model::new(provider, said()), Model::new(provider, said()));

    // What a session that is not interrupted sends.
    let straight = Machine::new();
    let arguments = Stage::asking(provider, &whole, &["--system", "You mend."]);
    straight.run(&as_slices(&arguments)).worked_quietly();
    let expected = bodies(&whole);
    assert_eq!(expected.len(), 4);

    let home = Machine::new();
    let arguments =
        Stage::asking(provider, &model, &["--approve", "shell", "--json", "--system", "You mend."]);
    let paused = home.run(&as_slices(&arguments));
    assert_eq!(paused.code, Some(3), "{paused:?}");
    let paused = last_line(&paused.output);
    let (session, call) = (paused["session"].as_str().unwrap(), paused["call"].as_str().unwrap());
    let bundle = text_of(&home.path("hem.bundle"));
    let exported = home.run(&["export", session, "--bundle", &bundle, "--json"]);
    let exported = last_line(&exported.worked());
    assert_eq!((&exported["session"], &exported["outcome"]), (&paused["session"], &json!("created")));

    // On the other machine there is nothing but the bundle.
    let away = Machine::new();
    std::fs::copy(&bundle, away.path("hem.bundle")).unwrap();
    drop(home);
    let imported = away.run(&["import", "../hem.bundle", "--workspace", "../project"]).worked();
    assert!(imported.contains("`backstitch resume"), "{imported}");
    assert_eq!(files(&away.path("project")), BTreeMap::from([("one.txt".to_owned(), "1\n".to_owned())]));
    let listed = last_line(&away.run_in("project", &["ls", "--json"]).worked());
    assert_eq!((&listed["session"], &listed["mission"]), (&paused["session"], &json!("Mend it")));
    away.run_in("project", &["resolve", session, call, "approve"]).worked_quietly();
    // The key of this user is not sent to an address that another user chose.
    let refused = away.run_in("project", &["resume"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let resumed = away.run_in("project", &["resume", "--base-url", &model.url]);
    assert_eq!(resumed.worked_quietly(), "Done.\n");

    assert_eq!(bodies(&model), expected, "the requests are those of a session that was not interrupted");
    assert_eq!(files(&away.path("project")), files(&straight.path("desk")));
    for turn in ["1", "2", "3", "4"] {
        let request = away.run_in("project", &["request", session, turn]);
        assert_eq!(request.code, Some(0), "turn {turn}: {request:?}");
    }
    let sound = away.run_in("project", &["verify"]).worked();
    assert!(sound.contains("everything is sound"), "{sound}");
    // The same bundle again changes nothing.
    let again = away.run(&["import", "../hem.bundle", "--workspace", "../project"]).worked();
    assert!(again.contains("already there"), "{again}");
    assert_eq!(away.run_in("project", &["resume"]).worked_quietly(), "Done.\n");
}

#[test]
fn a_session_that_was_killed_in_a_call_continues_elsewhere() {
    let slow = "echo half > two.txt; touch ../begun; [ -e ../again ] || sleep 60; echo whole > two.txt";
    let replies = json!([
        {"calls": [{"name": "write_file", "arguments": {"path": "one.txt", "text": "1\n"}}]},
        {"calls": [{"name": "shell", "arguments": {"command": slow}}]},
        {"text": "Done."},
    ]);
    let stage = Stage::new();
    let model = scripted(&stage, &replies);
    let arguments = ["run", "Sew", "--model", &model, "--shell-effect", "workspace"];
    let mut child = stage.command(&arguments).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let bundle = text_of(&stage.path("hem.bundle"));
    stage.run(&["export", &session, "--bundle", &bundle]).worked();

    // Here it continues where it was.
    std::fs::write(stage.path("again"), "").unwrap();
    assert_eq!(stage.run(&["resume"]).worked_quietly(), "Done.\n");
    let request = |ran: Ran| {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.output
    };
    let here: Vec<String> = ["1", "2", "3"]
        .iter()
        .map(|turn| request(stage.run(&["request", &session, turn, "--raw"])))
        .collect();
    // There, first without a directory: the command that gives it one is printed.
    let away = Machine::new();
    std::fs::copy(&bundle, away.path("hem.bundle")).unwrap();
    std::fs::rename(stage.path("files"), stage.path("moved")).unwrap();
    let imported = away.run(&["import", "../hem.bundle"]).worked();
    assert!(imported.contains("--workspace DIR`"), "{imported}");
    assert!(imported.contains("which does not exist here"), "{imported}");
    std::fs::write(away.path("again"), "").unwrap();
    // With the sandbox of the session, which is not that of this user.
    let resume = ["resume", &session, "--workspace", "../project", "--sandbox", "off"];
    let answer = away.run(&resume).worked_quietly();
    assert_eq!(answer, "Done.\n");
    assert_eq!(files(&away.path("project")), files(&stage.path("moved")));
    for (turn, here) in ["1", "2", "3"].iter().zip(&here) {
        let there = request(away.run(&["request", &session, turn, "--raw"]));
        assert_eq!(there, *here, "turn {turn}");
    }
}

#[test]
fn a_directory_with_other_files_is_not_touched() {
    let stage = Stage::new();
    let replies = json!([
        {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "text": "one\n"}}]}, {"text": "Done."},
    ]);
    stage.run(&["run", "Sew", "--model", &scripted(&stage, &replies)]).worked_quietly();
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let bundle = text_of(&stage.path("a.bundle"));
    stage.run(&["export", &session, "--bundle", &bundle]).worked();
    for (name, text) in [("a.txt", "mine\n"), ("b.txt", "mine\n")] {
        let away = Machine::new();
        std::fs::write(away.path("desk").join(name), text).unwrap();
        let refused = away.run(&["import", &bundle, "--workspace", "."]).failed();
        assert!(refused.contains(name) && refused.contains("workspace_refused"), "{refused}");
        assert_eq!(files(&away.path("desk")), BTreeMap::from([(name.to_owned(), text.to_owned())]));
        // Another directory can be named, and nothing was lost.
        away.run(&["import", &bundle, "--workspace", "../project"]).worked();
        assert_eq!(std::fs::read_to_string(away.path("project/a.txt")).unwrap(), "one\n");
    }
    // A directory with a part of the files, as an interrupted import leaves it, is completed.
    let away = Machine::new();
    std::fs::write(away.path("desk/a.txt"), "one\n").unwrap();
    away.run(&["import", &bundle, "--workspace", "."]).worked();
    assert_eq!(last_line(&away.run(&["show", "--json"]).worked())["session"], json!(session));
}

#[test]
fn a_session_moves_there_and_back_and_differences_are_refused() {
    let stage = Stage::new();
    let replies = json!([{"text": "One."}, {"text": "Two."}, {"text": "Three."}]);
    let model = scripted(&stage, &replies);
    stage.run(&["run", "Sew", "--model", &model, "--tools", "none"]).worked_quietly();
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let other = text_of(&stage.path("other/store.db"));
    let copied = stage.run(&["copy", &session, "--to", &other]).worked();
    assert!(copied.contains("copied session") && copied.contains("--store"), "{copied}");
    let there = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_backstitch"))
            .args(arguments)
            .args(["--store", &other])
            .current_dir(stage.path("files"))
            .output()
            .unwrap();
        Ran {
            code: output.status.code(),
            output: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    };
    assert_eq!(there(&["ask", &session, "And?"]).worked_quietly(), "Two.\n");
    let back = text_of(&stage.path("back.bundle"));
    there(&["export", &session, "--bundle", &back]).worked();
    let imported = stage.run(&["import", &back]).worked();
    assert!(imported.contains("was there up to position"), "{imported}");
    assert_eq!(stage.run(&["ask", &session, "And here?"]).worked_quietly(), "Three.\n");
    assert_eq!(there(&["ask", &session, "And there?"]).worked_quietly(), "Three.\n");
    let differs = text_of(&stage.path("differs.bundle"));
    there(&["export", &session, "--bundle", &differs]).worked();
    let before = stage.run(&["log", &session, "--all", "--json"]).worked();
    let refused = stage.run(&["import", &differs]).failed();
    assert!(refused.contains("session_conflict"), "{refused}");
    assert_eq!(stage.run(&["log", &session, "--all", "--json"]).worked(), before);
}

#[test]
fn a_store_is_backed_up_while_a_session_runs() {
    let stage = Stage::new();
    let replies = json!([
        {"calls": [{"name": "shell", "arguments": {"command": "touch ../begun; while [ ! -e ../go ]; do sleep 0.05; done"}}]},
        {"text": "Done."},
    ]);
    let model = scripted(&stage, &replies);
    let child = stage.command(&["run", "Sew", "--model", &model]).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists());
    let backup = text_of(&stage.path("backup.db"));
    let said = stage.run(&["backup", &backup]).worked();
    assert!(said.contains("written to"), "{said}");
    let refused = stage.run(&["backup", &backup]).failed();
    assert!(refused.contains("already_exists"), "{refused}");
    // A bundle of a running session says so.
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let exported = stage.run(&["export", &session, "--bundle", &text_of(&stage.path("running.bundle"))]);
    assert!(exported.code == Some(0) && exported.errors.contains("is driven by"), "{exported:?}");
    std::fs::write(stage.path("go"), "").unwrap();
    crate::stage::ended(child).worked_quietly();
    let output = Command::new(env!("CARGO_BIN_EXE_backstitch"))
        .args(["verify", "--json", "--store", &backup])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["sound"], &report["sessions"]), (&json!(true), &json!(1)));
}

#[test]
fn a_file_that_is_no_bundle_changes_nothing() {
    let away = Machine::new();
    std::fs::write(away.path("text"), "hello").unwrap();
    for (name, code) in [("text", "not_a_store"), ("missing", "store_not_found")] {
        let refused = away.run(&["import", &format!("../{name}")]).failed();
        assert!(refused.contains(code), "{refused}");
        let refused = away.run(&["import", &format!("../{name}"), "--json"]);
        assert_eq!((refused.code, &last_line(&refused.output)["code"]), (Some(1), &json!(code)));
    }
    assert!(!away.path("home/.local").exists(), "no store was created");
}
