//! The commands about sessions, from the first run to a salvaged store: the real binary on real files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::command::{Ran, backstitch};
use crate::stage::{Stage, wait_until};

const SCRIPT: &str = r#"
[[reply]]
text = "I write."
[[reply.calls]]
name = "write_file"
arguments = { path = "a.txt", text = "one\n" }

[[reply]]
text = "I change it."
[[reply.calls]]
name = "edit_file"
arguments = { path = "a.txt", old = "one", new = "two" }

[[reply]]
text = "Done."
"#;

/// A directory with files, a script and a store.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("files")).unwrap();
        std::fs::write(directory.path().join("script.toml"), script).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let store = self.path("store/store.db");
        let mut all = vec!["--store", text(&store)];
        all.extend(arguments);
        backstitch(&all)
    }

    fn start(&self, more: &[&str]) -> Ran {
        let (script, files) = (scripted(&self.path("script.toml")), self.path("files"));
        let mut arguments = vec!["run", "Sew", "--model", &script, "--workspace", text(&files)];
        arguments.extend(more);
        self.run(&arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        // Commands that drive a session print events, and the last one says how it ended.
        let output = self.run(&all).worked();
        serde_json::from_str(output.lines().last().unwrap()).unwrap()
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path("files").join(name)).ok()
    }
}

fn scripted(path: &Path) -> String {
    format!("scripted:{}", text(path))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_session_is_run_listed_shown_and_rewound() {
    let place = Place::new(SCRIPT);
    let ran = place.start(&["--json"]).worked();
    let ended: Value = serde_json::from_str(ran.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&ended["v"], &ended["outcome"], &ended["text"]),
        (&1.into(), &"completed".into(), &"Done.".into())
    );
    let session = ended["session"].as_str().unwrap();
    assert_eq!(place.file("a.txt").unwrap(), "two\n");

    let listed = place.json(&["ls"]);
    assert_eq!(
        (&listed["session"], &listed["status"], &listed["mission"]),
        (&session.into(), &"idle".into(), &"Sew".into())
    );
    let log = place.run(&["log", session]).worked();
    assert!(log.contains("asked: Sew") && log.contains("completed"), "{log}");
    let shown = place.json(&["show", session, "--state", "--files"]);
    assert_eq!(shown["files"], serde_json::json!(["a.txt"]));
    let calls: Vec<_> =
        shown["calls"].as_array().unwrap().iter().map(|call| call["call"].as_str().unwrap()).collect();
    assert_eq!(calls.len(), 2);

    let (first, second) = (format!("after:{}", calls[0]), format!("before:{}", calls[1]));
    let diff = place.run(&["diff", session, &first, "head"]).worked();
    assert!(diff.contains("M a.txt") && diff.contains("-one") && diff.contains("+two"), "{diff}");
    let diff = place.json(&["diff", session, "start", &first]);
    assert_eq!(diff["files"][0]["change"], "added");
    assert_eq!(diff["state"], serde_json::json!({}), "logs are not state");
    assert_eq!(place.run(&["diff", session, "head", "head"]).worked(), "nothing differs\n");

    place.run(&["rewind", session, &second, "--reason", "a try"]).worked();
    assert_eq!(place.file("a.txt").unwrap(), "one\n");
    assert!(place.run(&["log", session]).worked().contains("a try"));
    place.run(&["undo", session]).worked();
    assert_eq!(place.file("a.txt").unwrap(), "two\n");

    let inside = place.path("files").join("inside");
    let refused = place.run(&["fork", session, "start", "--workspace", text(&inside)]).failed();
    assert!(refused.contains("beside"), "{refused}");
    let taken = place.path("taken");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("mine.txt"), "by hand").unwrap();
    let refused = place.run(&["fork", session, &second, "--workspace", text(&taken)]).failed();
    assert!(refused.contains("mine.txt"), "{refused}");
    assert_eq!(std::fs::read_to_string(taken.join("mine.txt")).unwrap(), "by hand");
    let fork = place.path("forked");
    let forked = place.json(&["fork", session, &second, "--workspace", text(&place.path("files/../forked"))]);
    let id = forked["session"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(fork.join("a.txt")).unwrap(), "one\n");
    assert_eq!(place.run(&["resume", id]).worked_quietly(), "Done.\n");
    assert_eq!(std::fs::read_to_string(fork.join("a.txt")).unwrap(), "two\n");
    let (of_session, of_fork) = (place.json(&["show", session]), place.json(&["show", id]));
    assert_eq!(
        of_session["messages"].as_array().unwrap().len(),
        of_fork["messages"].as_array().unwrap().len()
    );
    // Resuming a finished session returns its recorded answer.
    assert_eq!(place.json(&["resume", session])["text"], "Done.");
}

#[test]
fn an_interrupted_external_command_waits_for_a_decision() {
    let script = r#"
[[reply]]
text = "I send it."
[[reply.calls]]
name = "shell"
arguments = { command = "echo sent >> sent.txt; sleep 30" }
[[reply]]
text = "Sent."
"#;
    let place = Place::new(script);
    let (store, files) = (place.path("store/store.db"), place.path("files"));
    let script = scripted(&place.path("script.toml"));
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_backstitch"))
        .args(["--store", text(&store), "run", "Send", "--model", &script, "--workspace", text(&files)])
        .args(["--network", "on"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The shell creates the file before it writes.
    wait_until("the command", || place.file("sent.txt").as_deref() == Some("sent\n"));
    child.kill().unwrap();
    child.wait().unwrap();

    let paused = place.run(&["resume", "--json"]);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    let paused: Value = serde_json::from_str(paused.output.lines().last().unwrap()).unwrap();
    assert_eq!((&paused["outcome"], &paused["reason"]), (&"paused".into(), &"effect_unknown".into()));
    assert_eq!(place.file("sent.txt").unwrap(), "sent\n", "files stay as found");
    let (session, call) = (paused["session"].as_str().unwrap(), paused["call"].as_str().unwrap());
    let refused = place.run(&["resolve", session, call, "approve"]);
    assert!(refused.failed().contains("approval"));
    place.run(&["resolve", session, call, "happened", "--result", r#"{"exit_code":0}"#]).worked();
    let ended = place.json(&["resume", session]);
    assert_eq!(ended["text"], "Sent.");
    assert_eq!(place.file("sent.txt").unwrap(), "sent\n", "and it was not sent twice");
}

#[test]
fn a_store_is_verified_collected_and_salvaged() {
    let place = Place::new(SCRIPT);
    place.start(&["--json"]).worked();
    let report = place.json(&["verify"]);
    assert_eq!((&report["sound"], &report["findings"]), (&true.into(), &serde_json::json!([])));
    let dry = place.json(&["gc", "--dry-run", "--keep-boundaries", "1"]);
    assert_eq!(dry["dry_run"], true);
    place.run(&["gc", "--keep-boundaries", "1"]).worked();
    assert_eq!(place.json(&["verify"])["sound"], true);
    let to = place.path("new.db");
    let salvaged = place.json(&["salvage", text(&to)]);
    assert_eq!(salvaged["complete"], true);
    assert!(to.is_file());
    assert!(
        place.run(&["salvage", text(&to)]).failed().contains("new.db"),
        "an existing store is not overwritten"
    );
}

#[test]
fn errors_about_arguments_and_scripts_name_what_is_wrong() {
    let place = Place::new(SCRIPT);
    place.start(&["--json"]).worked();
    assert!(place.run(&["show", "ffff"]).failed().contains("backstitch ls"));
    assert_eq!(place.run(&["rewind", "ffff", "sideways"]).code, Some(2));
    let broken = Place::new("[[reply]]\ntxt = 'x'");
    let said = broken.start(&[]).called_wrongly();
    assert!(said.contains("script.toml:2: ") && said.contains("reply[0].txt: unknown field `txt`"), "{said}");
    let empty = Place::new("");
    let stopped = empty.start(&[]);
    assert_eq!((stopped.code, stopped.output.as_str()), (Some(1), ""), "{}", stopped.errors);
    assert!(stopped.errors.contains("backstitch resume"), "{}", stopped.errors);
}

#[test]
fn the_quickstart_holds() {
    let directory = tempfile::tempdir().unwrap();
    let output = backstitch(&["quickstart", "--directory", text(directory.path())]).worked();
    for words in ["killed", "resume", "failed, rolled back", "runs again", "fork", "Nothing was lost"] {
        assert!(output.contains(words), "{words}: {output}");
    }
    // The printed commands work: the steps in any directory, the suggestions in that of the quickstart.
    let program = Path::new(env!("CARGO_BIN_EXE_backstitch"));
    let path = format!("{}:{}", text(program.parent().unwrap()), std::env::var("PATH").unwrap());
    let steps = output.lines().filter_map(|line| line.strip_prefix("   $ "));
    let steps =
        steps.filter(|line| !line.starts_with("backstitch run") && !line.starts_with("backstitch fork"));
    let suggested = output
        .lines()
        .filter_map(|line| line.strip_prefix("  ").filter(|line| line.starts_with("backstitch ")));
    let typed: Vec<_> = steps
        .map(|line| (line, Path::new("/")))
        .chain(suggested.map(|line| (line, directory.path())))
        .collect();
    assert!(typed.len() >= 9, "{typed:?}");
    for (line, directory) in typed {
        let mut command = std::process::Command::new("sh");
        let ran = command.args(["-c", line]).current_dir(directory).env("PATH", &path).output().unwrap();
        assert!(ran.status.success(), "{line}: {ran:?}");
    }
    let again = backstitch(&["quickstart", "--directory", text(directory.path())]);
    assert!(again.errors.contains("not empty"), "{again:?}");
}

#[test]
fn what_a_rewind_and_a_fork_leave_done_outside_is_named() {
    let script = "[[reply]]\ncall = [{ name = 'shell', arguments = { command = 'echo paid 12' } }]\n[[reply]]\ntext = 'Done.'\n";
    let place = Place::new(script);
    let ended = place.start(&["--json", "--network", "on"]).worked();
    let ended: Value = serde_json::from_str(ended.lines().last().unwrap()).unwrap();
    let session = ended["session"].as_str().unwrap();
    let names_it = |printed: String| {
        let line =
            printed.lines().find(|line| line.starts_with("not undone outside: shell")).unwrap_or_default();
        assert!(line.contains("echo paid 12") && line.contains("paid 12\\n"), "{printed}");
    };
    let elsewhere = place.path("forked");
    names_it(place.run(&["fork", session, "start", "--workspace", text(&elsewhere)]).worked());
    names_it(place.run(&["rewind", session, "start"]).worked());
    let undone = place.run(&["undo", session]).worked();
    assert!(!undone.contains("not undone outside"), "{undone}");
    let redone = place.json(&["rewind", session, "start"]);
    assert_eq!(redone["effects"][0]["name"], "shell", "{redone}");
}

#[test]
fn a_finished_session_takes_follow_ups() {
    let script =
        ["First.", "Second.", "Third.", "Fourth."].map(|text| format!("[[reply]]\ntext = {text:?}\n"));
    let place = Place::new(&script.concat());
    let ended: Value =
        serde_json::from_str(place.start(&["--json"]).worked().lines().last().unwrap()).unwrap();
    let session = ended["session"].as_str().unwrap();
    // Nothing runs, so there is nothing to cancel or to pause.
    for wish in ["cancel", "pause"] {
        let refused = place.run(&[wish, session]).failed();
        assert!(refused.contains(&format!("there is nothing to {wish}")), "{refused}");
    }
    assert_eq!(place.run(&["ask", session, "And now?"]).worked_quietly(), "Second.\n");
    let sent = place.run(&["send", session, "And then?"]).worked();
    assert!(sent.contains("backstitch resume"), "{sent}");
    assert_eq!(place.run(&["resume", session]).worked_quietly(), "Third.\n");
    assert_eq!(place.run(&["resume", session]).worked_quietly(), "Third.\n", "it is recorded now");
    let shown = place.json(&["show", session]);
    let said: Vec<_> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] != "system")
        .filter_map(|message| message["message"]["content"]["parts"][0]["text"].as_str())
        .collect();
    assert_eq!(said, ["Sew", "First.", "And now?", "Second.", "And then?", "Third."], "{shown}");
    // People read the system message once.
    let text = place.run(&["show", session]).worked();
    let systems: Vec<_> = text.lines().filter(|line| line.starts_with("system:")).collect();
    assert_eq!(systems.len(), 3, "{text}");
    assert_eq!(systems[1..], ["system: as before"; 2], "{text}");

    let back = place.run(&["rewind", session, "start"]).worked();
    assert!(back.contains("backstitch ask"), "{back}");
    let unasked = place.run(&["resume", session]).failed();
    assert!(unasked.contains("backstitch ask"), "{unasked}");
    assert_eq!(place.run(&["ask", session, " "]).code, Some(2));
    assert_eq!(place.run(&["ask", session, "Once more"]).worked_quietly(), "First.\n");
}

#[test]
fn a_follow_up_to_an_open_evaluation_is_refused() {
    let place = Place::new(
        "[[reply]]\ntext = 'I ask.'\n[[reply.calls]]\nname = 'write_file'\narguments = { path = 'a', text = 'b' }\n",
    );
    let paused = place.start(&["--approve", "ask", "--json"]);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    let ended: Value = serde_json::from_str(paused.output.lines().last().unwrap()).unwrap();
    let session = ended["session"].as_str().unwrap();
    let refused = place.run(&["ask", session, "More?"]).failed();
    assert!(refused.contains("has not answered yet") && refused.contains("--message TEXT"), "{refused}");
    place.run(&["cancel", session]).worked();
    assert_eq!(place.run(&["resume", session]).code, Some(1));
}

#[test]
fn show_prints_the_number_of_tokens_read_from_a_cache() {
    let usage = |read: u64| json!({"input_tokens": 100, "cache_read_tokens": read, "output_tokens": 10});
    for (read, expected) in
        [(90, "110 tokens spent, 90 of them read from a cache\n"), (0, "110 tokens spent\n")]
    {
        let stage = Stage::new();
        let model = crate::stage::scripted(&stage, &json!([{"text": "Done.", "usage": usage(read)}]));
        stage.run(&["run", "Do it", "--model", &model]).worked_quietly();
        let shown = stage.run(&["show"]).worked();
        assert!(shown.contains(expected), "{shown}");
        let spent = &stage.json(&["show"])["spent"];
        assert_eq!(spent["cache_read_tokens"].as_u64().unwrap_or_default(), read, "{spent}");
    }
}
