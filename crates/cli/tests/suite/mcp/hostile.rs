//! Servers that send too much, nothing, or what no client knows: the agent learns why, and memory stays bounded.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{Stage, ended, scripted};

const SERVER: &str = include_str!("hostile.py");

/// The most memory of the command, in KiB. It is a build without optimization.
const MOST_MEMORY: u64 = 200 * 1024;

/// A server over HTTP, until it is dropped.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes an agent file with the server `h`, and returns its path.
fn agent(stage: &Stage, place: &Value, more: &str) -> String {
    let key = if place.is_array() { "command" } else { "url" };
    let file = format!("name = \"outer\"\ntools = []\n\n[[mcp]]\nname = \"h\"\n{key} = {place}\n{more}\n");
    stage.write("outer.toml", &file)
}

fn program(stage: &Stage, mode: &str) -> Value {
    json!(["python3", stage.write("hostile.py", SERVER), mode])
}

fn listening(stage: &Stage, arguments: &[&str]) -> (Listening, Value) {
    let script = stage.write("hostile.py", SERVER);
    let mut command = Command::new("python3");
    command.arg(script).args(arguments).arg("http").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (Listening(child), json!(format!("http://127.0.0.1:{}/mcp", port.trim())))
}

/// Returns the place of a server in a mode: a program for no arguments, else a server over HTTP with those after the first.
fn placed(stage: &Stage, mode: &str, arguments: &[&str]) -> (Option<Listening>, Value) {
    let Some((_, more)) = arguments.split_first() else { return (None, program(stage, mode)) };
    let (server, url) = listening(stage, &[&[mode], more].concat());
    (Some(server), url)
}

/// Runs one call of the server, and asserts that the command needed little memory.
fn run(stage: &Stage, agent: &str) -> Ran {
    let call = json!({"calls": [{"name": "h__go", "arguments": {}}]});
    let model = scripted(stage, &json!([call, {"text": "Done."}]));
    let child = stage.command(&["run", "Sew", "--agent", agent, "--model", &model]).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let measuring = std::thread::spawn(move || {
        let mut peak = 0;
        // The peak never falls, so the last look is the highest.
        while let Some(now) = std::fs::read_to_string(&status).ok().as_deref().and_then(peak_of) {
            peak = now;
            std::thread::sleep(Duration::from_millis(10));
        }
        peak
    });
    let ran = ended(child);
    let peak = measuring.join().unwrap();
    assert!(peak > 0 && peak < MOST_MEMORY, "{peak} KiB\n{}", ran.errors);
    ran
}

/// Runs one call of a server whose calls end after five seconds. The limit holds for its start too, which is tried again: a busy
/// machine may take longer for it.
fn run_with_limit(stage: &Stage, place: &Value) -> Ran {
    let agent = agent(stage, place, "timeout = \"5s\"");
    let mut all = (0..10).map(|_| run(stage, &agent));
    let has_started = |ran: &Ran| ran.code != Some(2) || !ran.errors.contains("did not answer within 5 s");
    all.find(has_started).expect("the server starts within its limit")
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

fn shown(stage: &Stage) -> String {
    stage.json(&["show", &stage.session()]).to_string()
}

#[test]
fn results_that_are_too_much_are_refused_with_the_reason() {
    let modes = [
        ("large", "more than 8 MiB"),
        ("huge", "more than 8 MiB"),
        ("endless", "more than 8 MiB"),
        ("deep", "nested more than"),
        ("values", "values"),
    ];
    for (mode, words) in modes {
        let places: [&[&str]; 3] = [&[], &["http"], &["http", "events"]];
        for place in places {
            let stage = Stage::new();
            let (_server, place) = placed(&stage, mode, place);
            let ran = run(&stage, &agent(&stage, &place, "timeout = \"100s\""));
            assert_eq!(ran.code, Some(0), "{mode} {place}\n{}", ran.errors);
            let shown = shown(&stage);
            assert!(shown.contains(words), "{mode} {place}: {shown}");
        }
    }
}

#[test]
fn a_server_that_never_stops_sending_other_things_needs_no_memory() {
    let cases: [(&str, &[&str]); 4] =
        [("lines", &[]), ("notes", &[]), ("lines", &["http"]), ("notes", &["http", "events"])];
    for (mode, place) in cases {
        let stage = Stage::new();
        let (_server, place) = placed(&stage, mode, place);
        let ran = run_with_limit(&stage, &place);
        assert_eq!(ran.code, Some(0), "{mode} {place}\n{}", ran.errors);
        let shown = shown(&stage);
        assert!(shown.contains("\"is_error\":true") && shown.contains("Done."), "{mode} {place}: {shown}");
    }
}

#[test]
fn an_endless_list_of_tools_is_cut_and_the_rest_counted() {
    for (mode, words) in
        [("pages", "more than 100 pages"), ("many", "9500 tools are left out: at most 500 tools")]
    {
        let stage = Stage::new();
        let ran = run(&stage, &agent(&stage, &program(&stage, mode), ""));
        assert_eq!(ran.code, Some(0), "{}", ran.errors);
        assert!(ran.errors.contains(words), "{mode}: {}", ran.errors);
        assert!(ran.errors.contains("MCP server h: 500 tools"), "{mode}: {}", ran.errors);
        assert!(shown(&stage).contains("gone"));
    }
    let stage = Stage::new();
    let ran = run(&stage, &agent(&stage, &program(&stage, "cursor"), ""));
    assert_eq!(ran.code, Some(2), "{}", ran.errors);
    assert!(ran.errors.contains("repeats a cursor"), "{}", ran.errors);
}

#[test]
fn tools_that_providers_would_refuse_are_left_out_and_named() {
    let stage = Stage::new();
    let ran = run(&stage, &agent(&stage, &program(&stage, "tools"), ""));
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    for words in ["name is empty", "\"typo\"", "not described as the protocol requires", "xxxx", "h: 1 tools"]
    {
        assert!(ran.errors.contains(words), "{words}: {}", ran.errors);
    }
    assert!(shown(&stage).contains("gone"));
}

#[test]
fn a_server_that_says_nothing_is_named_while_it_is_waited_for() {
    let stage = Stage::new();
    let ran = run(&stage, &agent(&stage, &program(&stage, "silence"), "timeout = \"4s\""));
    assert_eq!(ran.code, Some(2), "{}", ran.errors);
    assert!(ran.errors.contains("waiting for MCP server h"), "{}", ran.errors);
    assert!(ran.errors.contains("did not answer within 4 s"), "{}", ran.errors);
}

#[test]
fn known_parts_of_a_result_are_kept() {
    let stage = Stage::new();
    run(&stage, &agent(&stage, &program(&stage, "unknown"), ""));
    let shown = shown(&stage);
    assert!(shown.contains("needle") && shown.contains("thread") && shown.contains("hologram"), "{shown}");
}

#[test]
fn a_server_gets_the_id_of_the_call_and_a_short_environment() {
    let stage = Stage::new().with_variable("SECRET_OF_THE_SHELL", "silk").with_variable("THREAD", "red");
    let stage = stage.with_variable("ANTHROPIC_API_KEY", "spool-of-keys-7");
    run(&stage, &agent(&stage, &program(&stage, "echo"), "env = { NAMED = \"THREAD\" }"));
    let shown = shown(&stage);
    assert!(shown.contains("callId"), "{shown}");
    for name in ["HOME", "PATH", "NAMED"] {
        assert!(shown.contains(name), "{name}: {shown}");
    }
    for name in ["SECRET_OF_THE_SHELL", "HANDED_KEYS", "ANTHROPIC_API_KEY", "XDG_CONFIG_HOME"] {
        assert!(!shown.contains(name), "{name}: {shown}");
    }
}

#[test]
fn the_progress_of_a_server_is_shown() {
    let stage = Stage::new();
    let place = program(&stage, "progress");
    let agent = agent(&stage, &place, "");
    let call = json!({"calls": [{"name": "h__go", "arguments": {}}]});
    let model = scripted(&stage, &json!([call, {"text": "Done."}]));
    let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(ran.output.contains("half of the hem"), "{}", ran.output);
}

/// Runs an agent whose call of the server waits for approval.
fn run_to_question(stage: &Stage, place: &Value) {
    let agent = agent(stage, place, "\n[approval]\nh__go = \"ask\"");
    let call = json!({"calls": [{"name": "h__go", "arguments": {}}]});
    let model = scripted(stage, &json!([call, {"text": "Done."}]));
    let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]);
    assert_eq!(ran.code, Some(3), "{}", ran.errors);
}

fn approve_and_resume(stage: &Stage) -> Ran {
    stage.run(&["approve", &stage.session(), "--all"]).worked();
    stage.run(&["resume"])
}

#[test]
fn a_definition_that_changes_after_the_question_is_asked_about_again() {
    for arguments in [&[][..], &["http"]] {
        let stage = Stage::new();
        stage.write("description", "Goes.");
        let (_server, place) = placed(&stage, "changes", arguments);
        run_to_question(&stage, &place);
        stage.write("description", "Sends everything away.");
        let again = approve_and_resume(&stage);
        assert_eq!(again.code, Some(3), "{}", again.errors);
        assert!(!shown(&stage).contains("gone"), "it was not called");
        let log = stage.run(&["log", &stage.session()]).worked_quietly();
        let why = "h__go needs approval again, because this has changed since: the definition of \"go\" at the MCP server \"h\"";
        assert!(log.contains(why), "{log}");

        // Now the new definition is what is approved.
        let ended = approve_and_resume(&stage);
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        assert!(shown(&stage).contains("gone"));
    }
}

#[test]
fn a_definition_that_was_approved_is_not_asked_about_again_with_the_next_call() {
    let stage = Stage::new();
    stage.write("description", "Goes.");
    let agent = agent(&stage, &program(&stage, "changes"), "\n[approval]\nh__go = \"ask\"");
    let call = json!({"calls": [{"name": "h__go", "arguments": {}}]});
    let model = scripted(&stage, &json!([call, call, {"text": "Done."}]));
    assert_eq!(stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]).code, Some(3));
    stage.write("description", "Goes further.");
    // The first call is asked about twice, and the second one once.
    for code in [3, 3, 0] {
        let ran = approve_and_resume(&stage);
        assert_eq!(ran.code, Some(code), "{}", ran.errors);
    }
}

#[test]
fn a_tool_with_other_parameters_is_not_called_and_not_asked_about_again() {
    let stage = Stage::new();
    stage.write("description", "Goes.");
    run_to_question(&stage, &program(&stage, "changes"));
    stage.write("schema", r#"{"type": "object", "properties": {"to": {"type": "string"}}}"#);
    let ended = approve_and_resume(&stage);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let shown = shown(&stage);
    assert!(shown.contains("a new session has the new ones") && !shown.contains("gone"), "{shown}");
}

#[test]
fn a_definition_that_changes_right_before_the_call_is_not_called() {
    let stage = Stage::new();
    // The list that is read last differs: those before it are that of the start and that of the comparison.
    run_to_question(&stage, &program(&stage, "third"));
    let ended = approve_and_resume(&stage);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let shown = shown(&stage);
    assert!(shown.contains("since a person approved the call; it was not sent"), "{shown}");
    assert!(!shown.contains("gone"), "{shown}");
}
