//! The real Claude Code, with a scripted model on loopback.
//!
//! `BACKSTITCH_CLAUDE` names its command (`npm install @anthropic-ai/claude-code`). Without it the tests are skipped, and say so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use backstitch_testkit::program::{messages_events, model, named};
use serde_json::{Value, json};

use super::stand_in::{Picture, StandIn, picture};
use crate::pty::Pty;
use crate::stage::{Stage, text_of, wait_until};

/// A request that the model got, and the files at that moment.
#[derive(Debug, Clone)]
struct SeenRequest {
    is_of_sub_agent: bool,
    /// Number of answers before it.
    turn: usize,
    /// Ids of the calls whose results it has.
    results: Vec<String>,
    last_text: String,
    files: Picture,
}

/// Claude Code on a stage, with a scripted model.
struct RealClaude<'a> {
    stage: &'a Stage,
    command: PathBuf,
    url: String,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
}

impl<'a> RealClaude<'a> {
    /// Prepares the program, and installs the hooks. A background command of the script may wait for the file `go` beside the
    /// workspace, which exists once the model has said `Done.`.
    fn new(stage: &'a Stage, command: PathBuf, script: Value) -> Self {
        stage.run(&["guard", "install", "claude-code"]).worked();
        Self::without_hooks(stage, command, script)
    }

    fn without_hooks(stage: &'a Stage, command: PathBuf, script: Value) -> Self {
        let (seen, files, go) = (Arc::default(), stage.path("files"), stage.path("go"));
        let list: Arc<Mutex<Vec<SeenRequest>>> = Arc::clone(&seen);
        let url = model(move |request| {
            if request["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
                list.lock().unwrap().push(SeenRequest::of(request, &files));
            }
            let events = claude_events(&script, request);
            if events.contains("Done.") {
                fs::write(&go, "").unwrap();
            }
            Some(events)
        });
        Self { stage, command, url, seen }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.command);
        command.current_dir(self.stage.path("files")).args(arguments);
        command.args(["--allowedTools", "Write Bash Edit Agent"]);
        self.prepare(&mut command);
        command
    }

    /// Sets the environment of the program. It can reach only the scripted model.
    fn prepare(&self, command: &mut Command) {
        command
            .env("HOME", self.stage.path("home"))
            .env("ANTHROPIC_BASE_URL", &self.url)
            .env("ANTHROPIC_API_KEY", "sk-test")
            .env("XDG_STATE_HOME", self.stage.path("state"))
            .env("XDG_CONFIG_HOME", self.stage.path("config"))
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env_remove("CLAUDE_CONFIG_DIR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Returns the files when the model was asked for this turn.
    fn files_at(&self, is_of_sub_agent: bool, turn: usize) -> Picture {
        let seen = self.seen.lock().unwrap();
        let is_it = |one: &&SeenRequest| one.is_of_sub_agent == is_of_sub_agent && one.turn == turn;
        seen.iter().find(is_it).unwrap_or_else(|| panic!("turn {turn} was not asked for")).files.clone()
    }

    /// Rewinds to before a call, and runs the printed command. The model has to see the calls before it, and nothing else.
    #[track_caller]
    fn check_continuation(&self, program: &StandIn<'_>, call: &str, known: &[&str], files: &Picture) {
        let (session, point) = (self.stage.session(), format!("before:{}", program.call(call)));
        let rewound = self.stage.json(&["rewind", &session, &point, "--all-files"]);
        assert_eq!(picture(&program.files()), *files, "{point}");
        let words: Vec<&str> = rewound["continue"].as_str().unwrap().split(' ').skip(1).collect();
        self.seen.lock().unwrap().clear();
        self.run(&[&words[..], &["-p", "continue from here"]].concat());
        self.check_seen(call, known, files);
    }

    /// The same in one step: `rewind --continue` runs the program.
    #[track_caller]
    fn check_continue(&self, program: &StandIn<'_>, call: &str, known: &[&str], files: &Picture) {
        let (session, point) = (self.stage.session(), format!("before:{}", program.call(call)));
        let place = self.stage.path("bin");
        fs::create_dir(&place).unwrap();
        std::os::unix::fs::symlink(&self.command, place.join("claude")).unwrap();
        let arguments = ["rewind", &session, &point, "--all-files", "--continue=continue from here"];
        let mut command = self.stage.command(&arguments);
        self.prepare(&mut command);
        let path = std::env::var("PATH").unwrap_or_default();
        self.seen.lock().unwrap().clear();
        let output = command.env("PATH", format!("{}:{path}", text_of(&place))).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        self.check_seen(call, known, files);
    }

    #[track_caller]
    fn check_seen(&self, call: &str, known: &[&str], files: &Picture) {
        let request = self.seen.lock().unwrap().first().cloned().unwrap();
        assert_eq!(request.results, known, "{call}");
        assert!(request.last_text.contains("continue from here"), "{request:?}");
        assert_eq!(request.files, *files, "{call}");
        // The conversation that it began belongs to the same session.
        assert_eq!(self.stage.run(&["ls", "--json"]).worked_quietly().lines().count(), 1);
    }
}

impl SeenRequest {
    fn of(request: &Value, files: &Path) -> Self {
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let results = blocks.filter_map(|block| block["tool_use_id"].as_str().map(str::to_owned));
        Self {
            is_of_sub_agent: is_of_sub_agent(request),
            turn: messages.iter().filter(|message| message["role"] == "assistant").count(),
            results: results.collect(),
            last_text: last_text(request),
            files: picture(files),
        }
    }
}

/// The prompt of the scripted sub-agent has a mark.
fn is_of_sub_agent(request: &Value) -> bool {
    request["messages"][0].to_string().contains("[sub-agent]")
}

fn last_text(request: &Value) -> String {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    last.map(|message| message["content"].to_string()).unwrap_or_default()
}

/// Answers by the number of earlier answers in the conversation.
pub(crate) fn claude_events(script: &Value, request: &Value) -> String {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    let has_tools = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let script = if is_of_sub_agent(request) { &script["sub"] } else { &script["main"] };
    let is_continued = last_text(request).contains("continue from here");
    let blocks = script.get(turn).filter(|_| has_tools && !is_continued).cloned();
    let blocks = blocks.unwrap_or_else(|| json!([text("ok")]));
    messages_events(turn, &request["model"], blocks.as_array().unwrap())
}

fn bash(id: &str, command: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command, "description": "x"}})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn the_real_claude_code_is_rewound_to_before_each_call_and_continues_there() {
    let Some(claude) = named("BACKSTITCH_CLAUDE") else { return };
    let stage = Stage::new();
    let files = stage.path("files");
    fs::write(files.join("kept.txt"), "kept\n").unwrap();
    fs::write(files.join(".gitignore"), "*.log\n").unwrap();
    let path = text_of(&files.join("a.txt"));
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let background = json!({"command": "while [ ! -e ../go ]; do sleep 0.05; done; echo late > late", "description": "x",
        "run_in_background": true});
    let agent = json!({"description": "x", "prompt": "[sub-agent] mend it", "subagent_type": "general-purpose",
        "run_in_background": false});
    let script = json!({
        "main": [
            [text("First."), call("toolu_01", "Write", json!({"file_path": path, "content": "one\n"}))],
            [call("toolu_02", "Edit", json!({"file_path": path, "old_string": "one", "new_string": "two"}))],
            [bash("toolu_03", "rm kept.txt; mkdir -p deep/empty; echo x > deep/x.log; chmod 600 a.txt; ln -s a.txt link")],
            [bash("toolu_04", "echo half > half; exit 3")],
            [bash("toolu_05", "echo three > three"), bash("toolu_06", "ls"), bash("toolu_07", "mv three four")],
            [call("toolu_08", "Agent", agent)],
            [call("toolu_09", "Bash", background)],
            [text("Done.")],
        ],
        "sub": [[bash("toolu_s1", "echo sub > sub")], [bash("toolu_s2", "rm four")], [text("Mended.")]],
    });
    let claude = RealClaude::new(&stage, claude, script);
    let start = picture(&files);
    claude.run(&["-p", "make it"]);
    let program = StandIn::new(&stage, "unused");
    assert_eq!(program.gaps(), Vec::<String>::new());
    assert_eq!(stage.file("late").as_deref(), Some("late\n"));
    assert_eq!(claude.files_at(false, 0), start);
    let mut between = claude.files_at(false, 4);
    between.insert("three".to_owned(), (between["half"].0, b"three\n".to_vec()));
    let before = [
        ("toolu_01", start.clone()),
        ("toolu_02", claude.files_at(false, 1)),
        ("toolu_03", claude.files_at(false, 2)),
        ("toolu_04", claude.files_at(false, 3)),
        ("toolu_05", claude.files_at(false, 4)),
        ("toolu_07", between.clone()),
        ("toolu_08", claude.files_at(false, 5)),
        ("toolu_s1", claude.files_at(true, 0)),
        ("toolu_s2", claude.files_at(true, 1)),
        ("toolu_09", claude.files_at(false, 6)),
    ];
    assert_eq!(before[1].1["a.txt"].1, b"one\n");
    assert_eq!(before[2].1["a.txt"].1, b"two\n");
    assert!(before[3].1.contains_key("deep/x.log") && !before[3].1.contains_key("kept.txt"));
    // `check_point` compares whole trees, and undoes the rewind.
    for (call, files) in &before {
        program.check_point(&format!("before:{}", program.call(call)), files);
    }
    let session = stage.session();
    let log = stage.run(&["log", &session]).worked_quietly();
    for words in ["asked: make it", "failed: Exit code 3", "Mended.", "Done."] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert!(program.records().iter().any(|record| record["kind"] == "budget_charged"));
    // What the program writes down after its answer belongs to that answer.
    assert!(!log.contains("cancelled"), "{log}");
    assert_eq!(stage.json(&["ls"])["outcome"], "completed");

    // From the last point to the first, since each continuation replaces what came after its point.
    let files = |call: &str| &before.iter().find(|(id, _)| *id == call).unwrap().1;
    let ids =
        ["toolu_01", "toolu_02", "toolu_03", "toolu_04", "toolu_05", "toolu_06", "toolu_07", "toolu_08"];
    claude.check_continuation(&program, "toolu_09", &ids, files("toolu_09"));
    // A point inside of a sub-agent continues before that: the sub-agent is asked again.
    claude.check_continuation(&program, "toolu_s2", &ids[..7], files("toolu_s2"));
    claude.check_continuation(&program, "toolu_04", &ids[..3], files("toolu_04"));
    claude.check_continue(&program, "toolu_03", &ids[..2], files("toolu_03"));
    claude.check_continuation(&program, "toolu_02", &ids[..1], files("toolu_02"));
    claude.check_continuation(&program, "toolu_01", &[], files("toolu_01"));
    stage.run(&["verify"]).worked_quietly();
}

#[test]
fn the_plugin_records_the_real_claude_code_and_adds_commands_to_it() {
    let Some(claude) = named("BACKSTITCH_CLAUDE") else { return };
    let stage = Stage::new();
    let script = json!({"main": [[bash("toolu_01", "echo one > one")], [text("Done.")]], "sub": []});
    let claude = RealClaude::without_hooks(&stage, claude, script);
    let written = stage.json(&["guard", "install", "claude-code", "--plugin"]);
    let plugin = format!("{}/backstitch", written["plugin"].as_str().unwrap());
    let start = picture(&stage.path("files"));
    claude.run(&["--plugin-dir", &plugin, "-p", "make it"]);
    assert!(!stage.path("files/.claude").exists(), "no settings are needed");
    let program = StandIn::new(&stage, "unused");
    assert_eq!(program.gaps(), Vec::<String>::new());
    let point = format!("before:{}", program.call("toolu_01"));
    program.check_point(&point, &start);
    claude.run(&["--plugin-dir", &plugin, "--continue", "-p", "/backstitch:points"]);
    let seen = claude.seen.lock().unwrap().last().cloned().unwrap();
    assert!(seen.last_text.contains("before:") && seen.last_text.contains("1 file: one"), "{seen:?}");
    claude.run(&["--plugin-dir", &plugin, "--continue", "-p", &format!("/backstitch:rewind {point}")]);
    assert_eq!(stage.file("one"), None, "{}", stage.run(&["log"]).output);
    claude.run(&["--plugin-dir", &plugin, "--continue", "-p", "/backstitch:undo"]);
    assert_eq!(stage.file("one").as_deref(), Some("one\n"));
}

#[test]
fn a_killed_claude_code_leaves_a_call_that_the_next_start_closes() {
    let Some(claude) = named("BACKSTITCH_CLAUDE") else { return };
    let stage = Stage::new();
    let files = stage.path("files");
    let script =
        json!({"main": [[bash("toolu_01", "echo half > half; exec sleep 600")], [text("Done.")]], "sub": []});
    let claude = RealClaude::new(&stage, claude, script);
    let start = picture(&files);
    let mut command = claude.command(&["-p", "make it"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the command of the model", || stage.file("half").is_some_and(|text| text == "half\n"));
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = picture(&files);
    let program = StandIn::new(&stage, "unused");
    let (session, point) = (stage.session(), format!("before:{}", program.call("toolu_01")));
    // The command of the program survives it.
    let refused = stage.run(&["rewind", &session, &point]).failed();
    assert!(refused.contains("guard_busy") && refused.contains("still runs"), "{refused}");
    let number = refused.split("process ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    Command::new("kill").args(["-9", &number]).status().unwrap();
    stage.run(&["rewind", &session, &point, "--force"]).worked_quietly();
    assert_eq!(picture(&files), start);
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(picture(&files), killed);
    // The next start of the conversation closes the call.
    claude.run(&["--continue", "-p", "continue from here"]);
    assert_eq!(program.gaps(), ["Bash has no reported end; its files are those of now"]);
    program.check_point(&point, &start);
    claude.check_continuation(&program, "toolu_01", &[], &start);
}

/// The person works in the terminal of the program, which is guarded by its hooks and as a command at the same time.
#[test]
fn the_real_claude_code_is_guarded_on_a_terminal() {
    let Some(claude) = named("BACKSTITCH_CLAUDE") else { return };
    let stage = Stage::new();
    let files = stage.path("files").canonicalize().unwrap();
    let script = json!({"main": [
        [bash("toolu_01", "echo one > ../x; mv ../x one; sleep 600")],
        [bash("toolu_02", "echo two > two")],
        [text("All is done.")],
    ]});
    let url = model(move |request| Some(claude_events(&script, request)));
    let home = stage.path("home");
    fs::create_dir(&home).unwrap();
    // A person has answered the questions of the first start.
    let answered = json!({"hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-test"], "rejected": []},
        "projects": {text_of(&files): {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}}});
    fs::write(home.join(".claude.json"), answered.to_string()).unwrap();
    let stage = stage
        .with_variable("HOME", &text_of(&home))
        .with_variable("ANTHROPIC_BASE_URL", &url)
        .with_variable("ANTHROPIC_API_KEY", "sk-test")
        .with_variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .with_variable("DISABLE_AUTOUPDATER", "1");
    stage.run(&["guard", "install", "claude-code"]).worked();
    let start = picture(&files);
    let words = ["guard", "--quiet-for", "500ms", "--", &text_of(&claude), "--allowedTools", "Bash"];
    let mut pty = Pty::start(&stage, &words, 100, 40);
    let ask = |pty: &Pty, text: &str| {
        pty.send(text);
        pty.wait_for_screen(text);
        pty.send("\r");
    };
    pty.wait_for_screen("? for shortcuts");
    ask(&pty, "make it");
    wait_until("the first call", || stage.file("one").is_some());
    // Escape interrupts the call.
    wait_until("the boundary", || stage.run(&["log", "--json"]).output.contains("added one"));
    pty.send("\u{1b}");
    pty.wait_for_screen("Interrupted");
    // The program writes its transcript a moment later. A person is not as fast as that.
    wait_until("the result in the transcript", || {
        let conversations = fs::read_dir(home.join(".claude/projects")).into_iter().flatten().flatten();
        let files =
            conversations.flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten());
        let texts = files.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        texts.into_iter().any(|text| text.contains("\"tool_use_id\":\"toolu_01\""))
    });
    ask(&pty, "another way");
    pty.wait_for_screen("All is done.");
    ask(&pty, "/exit");
    assert_eq!(pty.exit_code(), Some(0));
    assert!(pty.everything().contains("changes recorded"), "{}", pty.everything());
    let session = |tag: &str| stage.json(&["ls", "--tag", tag])["session"].as_str().unwrap().to_owned();
    let hooks = session("guard=claude-code");
    let log = stage.run(&["log", &hooks]).worked_quietly();
    for words in ["asked: make it", "asked: another way", "All is done."] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert!(!log.contains("gap"), "{log}");
    let end = picture(&files);
    for session in [hooks, session("guard=command")] {
        stage.run(&["rewind", &session, "start"]).worked_quietly();
        assert_eq!(picture(&files), start);
        stage.run(&["undo", &session]).worked_quietly();
        assert_eq!(picture(&files), end);
    }
}
