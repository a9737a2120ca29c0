//! Every kind of call of the real Codex: what the files were before it, and how the program continues from there.
//!
//! `BACKSTITCH_CODEX` names its command. Without it the tests are skipped, and say so.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use backstitch_testkit::program::{is_call, model, named, responses_events, step_after};
use serde_json::{Value, json};

use super::stand_in::{Picture, StandIn, picture};
use crate::stage::{Stage, text_of, wait_until};

/// Returns the prompts of a request, without what Codex adds itself.
fn prompts(request: &Value) -> Vec<String> {
    let items = request["input"].as_array().cloned().unwrap_or_default();
    let users = items.iter().filter(|item| item["role"] == "user");
    let texts = users.filter_map(|item| item["content"][0]["text"].as_str()).map(str::to_owned);
    texts.filter(|text| !text.starts_with('<')).collect()
}

/// The real Codex with a scripted model, guarded in a stage.
struct RealCodex {
    stage: Stage,
    program: PathBuf,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl RealCodex {
    /// Answers by the last prompt of a conversation and the number of its calls since: `script` maps the beginning of a
    /// prompt to steps.
    fn new(script: Value) -> Option<Self> {
        let program = named("BACKSTITCH_CODEX")?;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let url = model(move |request| {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            let prompts = prompts(request);
            let last = prompts.last()?;
            let items = request["input"].as_array()?;
            let since = items.iter().rposition(|item| item["content"][0]["text"] == json!(last))?;
            let made = items[since..].iter().filter(|item| is_call(item)).count();
            let steps = script.as_object()?.iter().find(|(prompt, _)| last.starts_with(prompt.as_str()))?.1;
            let done = [text("Nothing more.")];
            Some(responses_events(seen.len(), step_after(steps, made).unwrap_or(&done)))
        });
        let stage = Stage::new();
        let home = stage.path("home");
        fs::create_dir(&home).unwrap();
        let settings = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"local\"\nsandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
             [analytics]\nenabled = false\n\
             [model_providers.local]\nname = \"local\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n"
        );
        fs::write(home.join("config.toml"), settings).unwrap();
        let places = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{places}", text_of(program.parent().unwrap()));
        let stage = stage
            .with_variable("CODEX_HOME", &text_of(&home))
            .with_variable("HOME", &text_of(&home))
            .with_variable("PATH", &path);
        fs::write(stage.path("files/kept.txt"), "kept\n").unwrap();
        fs::write(stage.path("files/.gitignore"), "ignored\n").unwrap();
        let printed = stage.run(&["guard", "install", "codex"]).worked();
        assert!(printed.contains("Codex trusts them"), "{printed}");
        Some(Self { stage, program, requests })
    }

    fn files(&self) -> PathBuf {
        self.stage.path("files")
    }

    fn spawn(&self, prompt: &str) -> Child {
        let mut command = Command::new(&self.program);
        command.current_dir(self.files()).args(["exec", "--skip-git-repo-check", prompt]);
        command.env("HOME", self.stage.path("home")).env("CODEX_HOME", self.stage.path("home"));
        command
            .env("XDG_STATE_HOME", self.stage.path("state"))
            .env("XDG_CONFIG_HOME", self.stage.path("config"));
        // Its program is a script that starts another one, so a kill is one of the group.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn run(&self, prompt: &str) -> Output {
        let output = self.spawn(prompt).wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }

    fn program(&self) -> StandIn<'_> {
        StandIn::new(&self.stage, "unused")
    }

    fn before(&self, call: &str) -> String {
        format!("before:{}", self.program().call(call))
    }

    /// Returns the prompts of the latest request.
    fn latest_prompts(&self) -> Vec<String> {
        self.requests.lock().unwrap().last().map(prompts).unwrap_or_default()
    }
}

fn text(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": text}]})
}

fn function(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments.to_string()})
}

/// A call of the shell, which returns at the end of the command, and not after ten seconds.
fn shell(id: &str, command: &str) -> Value {
    function(id, "exec_command", json!({"cmd": command, "yield_time_ms": 30_000}))
}

fn patch(id: &str, lines: &str) -> Value {
    let patch = format!("*** Begin Patch\n{lines}\n*** End Patch");
    json!({"type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": id, "name": "apply_patch", "input": patch})
}

/// Adds a file to a picture.
fn with(picture: &Picture, name: &str, content: &str) -> Picture {
    let mut picture = picture.clone();
    let mode = picture["kept.txt"].0;
    picture.insert(name.to_owned(), (mode, content.as_bytes().to_vec()));
    picture
}

fn mark(path: &Path) -> String {
    text_of(path)
}

#[test]
fn each_call_of_the_real_codex_can_be_rewound_and_it_continues_before_the_turn() {
    // The two parallel commands leave marks beside the project, so that neither writes before both have begun.
    let directory = tempfile::tempdir().unwrap();
    let marks = ["four", "five"].map(|name| mark(&directory.path().join(name)));
    let command = |own: &str, other: &str, name: &str| {
        format!("touch {own}; while [ ! -e {other} ]; do sleep 0.05; done; echo {name} > {name}")
    };
    let first = command(&marks[0], &marks[1], "four");
    let second = command(&marks[1], &marks[0], "five");
    let script = json!({
        "first": [
            [patch("call_01", "*** Add File: one.txt\n+one\n*** Update File: kept.txt\n@@\n-kept\n+changed")],
            [shell("call_02", "echo two > two; echo secret > ignored")],
            [shell("call_03", "echo three >> two; rm kept.txt; exit 3")],
            [shell("call_04", &first), shell("call_05", &second)],
            [text("Done.")],
        ],
        "second": [[shell("call_06", "echo six > six")], [text("Done again.")]],
        "other": [[shell("call_07", "echo seven > seven")], [text("Done otherwise.")]],
    });
    let Some(codex) = RealCodex::new(script) else { return };
    let start = picture(&codex.files());
    codex.run("first");
    let session = codex.stage.session();

    let mut one = with(&start, "one.txt", "one\n");
    one.insert("kept.txt".to_owned(), (start["kept.txt"].0, b"changed\n".to_vec()));
    let two = with(&with(&one, "two", "two\n"), "ignored", "secret\n");
    let mut three = with(&two, "two", "two\nthree\n");
    three.remove("kept.txt");
    let program = codex.program();
    assert_eq!(program.gaps(), Vec::<String>::new());
    let trees =
        [("call_01", &start), ("call_02", &one), ("call_03", &two), ("call_04", &three), ("call_05", &three)];
    for (call, tree) in trees {
        program.check_point(&codex.before(call), tree);
    }
    let log = codex.stage.run(&["log", &session]).worked_quietly();
    assert!(log.contains("failed: Exit code 3") && log.matches("failed:").count() == 1, "{log}");
    let status = codex.stage.run(&["guard", "status"]).worked();
    assert!(status.contains("Codex trusts these hooks"), "{status}");

    // A second turn of the same conversation, which is cut off again.
    let thread = codex
        .program()
        .records()
        .iter()
        .find_map(|record| record["data"]["outside"]["conversation"].as_str().map(str::to_owned));
    let mut resumed = Command::new(&codex.program);
    resumed.current_dir(codex.files()).args([
        "exec",
        "resume",
        "--skip-git-repo-check",
        &thread.unwrap(),
        "second",
    ]);
    resumed.env("HOME", codex.stage.path("home")).env("CODEX_HOME", codex.stage.path("home"));
    resumed
        .env("XDG_STATE_HOME", codex.stage.path("state"))
        .env("XDG_CONFIG_HOME", codex.stage.path("config"));
    assert!(resumed.stdin(Stdio::null()).output().unwrap().status.success());
    assert_eq!(codex.latest_prompts(), ["first", "second"]);
    let whole = picture(&codex.files());
    let six = codex.before("call_06");
    let printed = codex.stage.run(&["rewind", &session, &six, "--continue=other"]).worked_quietly();
    assert!(printed.contains("inside of a turn") && printed.contains("codex exec resume "), "{printed}");
    assert_eq!(codex.latest_prompts(), ["first", "other"]);
    assert!(codex.files().join("seven").exists() && !codex.files().join("six").exists());
    // It is the same session, and everything comes back.
    assert_eq!(codex.stage.run(&["ls", "--json"]).worked_quietly().lines().count(), 1);
    codex.stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(picture(&codex.files()), whole);
    // Before the first prompt it continues with an empty conversation.
    let one = codex.before("call_01");
    codex.stage.run(&["rewind", &session, &one, "--continue=other"]).worked_quietly();
    assert_eq!(codex.latest_prompts(), ["other"]);
    assert_eq!(picture(&codex.files()), with(&start, "seven", "seven\n"));
}

#[test]
fn a_killed_codex_leaves_a_call_that_can_be_rewound() {
    let script = json!({
        "first": [[shell("call_01", "echo half > half; exec sleep 600")], [text("Done.")]],
        "second": [[text("Done again.")]],
    });
    let Some(codex) = RealCodex::new(script) else { return };
    let start = picture(&codex.files());
    let mut child = codex.spawn("first");
    wait_until("the command of the model", || codex.files().join("half").exists());
    let killed = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status().unwrap();
    assert!(killed.success());
    child.wait().unwrap();
    let session = codex.stage.session();
    let point = codex.before("call_01");
    // The program is gone, so its call is closed.
    codex.stage.run(&["rewind", &session, &point, "--continue=second"]).worked_quietly();
    assert_eq!(picture(&codex.files()), start);
    assert_eq!(codex.latest_prompts(), ["second"]);
}

#[test]
fn a_command_in_the_background_ends_with_its_own_files() {
    let directory = tempfile::tempdir().unwrap();
    let go = mark(&directory.path().join("go"));
    let waits = format!("while [ ! -e {go} ]; do sleep 0.05; done; echo late > late");
    let script = json!({"first": [
        [function("call_01", "exec_command", json!({"cmd": waits, "yield_time_ms": 250}))],
        [shell("call_02", "echo two > two")],
        [shell("call_03", &format!("touch {go}; while [ ! -e late ]; do sleep 0.05; done; sleep 2"))],
        [text("Done.")],
    ]});
    let Some(codex) = RealCodex::new(script) else { return };
    let start = picture(&codex.files());
    codex.run("first");
    let program = codex.program();
    program.check_point(&codex.before("call_01"), &start);
    program.check_point(&codex.before("call_02"), &start);
    let two = with(&start, "two", "two\n");
    program.check_point(&codex.before("call_03"), &two);
    assert_eq!(picture(&codex.files()), with(&two, "late", "late\n"));
    let log = codex.stage.run(&["log", &codex.stage.session()]).worked_quietly();
    assert!(log.contains("ran at the same time"), "{log}");
}

#[test]
fn calls_of_a_sub_agent_are_recorded_in_the_same_session() {
    let spawn = json!({"type": "function_call", "id": "fc_call_01", "call_id": "call_01", "name": "spawn_agent",
        "namespace": "multi_agent_v1", "arguments": json!({"message": "child task"}).to_string()});
    let script = json!({
        "first": [
            [spawn],
            [shell("call_02", "while [ ! -e child ]; do sleep 0.05; done; sleep 1; echo parent > parent")],
            [text("Done.")],
        ],
        "child task": [[shell("call_03", "echo child > child")], [text("The child is done.")]],
    });
    let Some(codex) = RealCodex::new(script) else { return };
    let start = picture(&codex.files());
    codex.run("first");
    assert!(codex.files().join("child").exists() && codex.files().join("parent").exists());
    let program = codex.program();
    program.check_point(&codex.before("call_01"), &start);
    program.check_point(&codex.before("call_03"), &start);
    let records = program.records();
    let agents = records.iter().filter(|record| record["data"]["outside"]["agent"].is_string()).count();
    assert_eq!(agents, 1, "the call of the child names it");
    assert_eq!(codex.stage.run(&["ls", "--json"]).worked_quietly().lines().count(), 1);
}
