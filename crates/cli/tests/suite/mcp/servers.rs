//! Tools of MCP servers in agents. The server is the command itself, in another directory.

use serde_json::{Value, json};

use super::client::AGENT;
use crate::stage::{Stage, scripted, text_of, wait_until};

/// Writes an agent file with the server `inner`, and returns its path. The server works in `inner/`.
fn agent(stage: &Stage, more: &str) -> String {
    std::fs::create_dir_all(stage.path("inner")).unwrap();
    let inner = stage.write("inner.toml", AGENT);
    let (store, directory) = (text_of(&stage.path("inner-store/store.db")), text_of(&stage.path("inner")));
    let program = env!("CARGO_BIN_EXE_backstitch");
    let command = json!([
        program,
        "--store",
        store,
        "mcp",
        "serve",
        "--agent",
        inner,
        "--workspace",
        directory,
        "--sandbox",
        "off"
    ]);
    let file =
        format!("name = \"outer\"\ntools = []\n\n[[mcp]]\nname = \"inner\"\ncommand = {command}\n{more}\n");
    stage.write("outer.toml", &file)
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

/// Runs the calls one after the other, and returns the session as `show --json` prints it.
fn run(stage: &Stage, agent: &str, calls: &[Value]) -> Value {
    let mut replies = calls.to_vec();
    replies.push(json!({"text": "Done."}));
    let model = scripted(stage, &json!(replies));
    let ran = stage.run(&["run", "Sew", "--agent", agent, "--model", &model]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    stage.json(&["show", &stage.session()])
}

fn shown(session: &Value) -> String {
    session.to_string()
}

#[test]
fn a_model_calls_tools_of_a_server() {
    let stage = Stage::new();
    let agent = agent(&stage, "exclude = [\"fork\", \"shell\"]");
    let calls = [
        call("inner__write_file", json!({"path": "a.txt", "text": "one\n"})),
        call("inner__read_file", json!({"path": "a.txt"})),
        call("inner__mend", json!({"script": "echo broken > a.txt; exit 3"})),
        call("inner__read_file", json!({"wrong": 1})),
        call("inner__shell", json!({"command": "true"})),
    ];
    let session = run(&stage, &agent, &calls);
    assert_eq!(std::fs::read_to_string(stage.path("inner/a.txt")).unwrap(), "one\n");
    let shown = shown(&session);
    assert!(shown.contains("created a.txt"), "{shown}");
    assert!(shown.contains("exit code 3") || shown.contains("exit_code\\\":3"), "{shown}");
    assert!(shown.contains("there is no tool \\\"inner__shell\\\""), "{shown}");
    // The list of tools is part of the recorded session.
    let mut records = stage.run(&["log", "--all", "--json"]).worked_quietly();
    records.truncate(200_000);
    assert!(records.contains("pinned"), "{records}");
    // Both sides have recorded the calls.
    let store = text_of(&stage.path("inner-store/store.db"));
    let inner = std::process::Command::new(env!("CARGO_BIN_EXE_backstitch"))
        .args(["log", "--store", &store])
        .current_dir(stage.path("inner"))
        .output()
        .unwrap();
    let inner = String::from_utf8(inner.stdout).unwrap();
    assert!(inner.contains("write_file"), "{inner}");
}

#[test]
fn a_server_that_dies_in_a_call_is_started_again() {
    let stage = Stage::new();
    let agent = agent(&stage, "");
    let calls = [
        call(
            "inner__mend",
            json!({"script": "echo half > half.txt; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 600"}),
        ),
        call("inner__write_file", json!({"path": "b.txt", "text": "two\n"})),
    ];
    let session = shown(&run(&stage, &agent, &calls));
    assert!(session.contains("ended before it answered"), "{session}");
    assert_eq!(std::fs::read_to_string(stage.path("inner/b.txt")).unwrap(), "two\n");
    // The inner server has restored its own files when it was started again.
    assert!(!stage.path("inner/half.txt").exists());
}

#[test]
fn a_killed_run_leaves_no_server_and_resumes_with_the_same_tools() {
    let stage = Stage::new();
    let agent = agent(&stage, "effects = { mend = \"workspace\" }");
    // Beside the directory of the server, which restores its files.
    let (pid, go) = (stage.path("pid"), stage.path("go"));
    let script = format!(
        "cut -d' ' -f4 /proc/$PPID/stat > {}; while [ ! -e {} ]; do sleep 0.05; done",
        pid.display(),
        go.display()
    );
    let slow = call("inner__mend", json!({"script": script}));
    let model = scripted(&stage, &json!([slow, {"text": "Done."}]));
    let mut child = stage.command(&["run", "Sew", "--agent", &agent, "--model", &model]).spawn().unwrap();
    wait_until("the call", || std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    let server = std::fs::read_to_string(&pid).unwrap().trim().to_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    let status = format!("/proc/{server}/stat");
    wait_until("the end of the server", || {
        std::fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z "))
    });
    std::fs::write(&go, "").unwrap();
    // The agent file is not needed any more.
    std::fs::remove_file(&agent).unwrap();
    let resumed = stage.run(&["resume"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.errors);
    assert_eq!(resumed.output, "Done.\n");
    let session = shown(&stage.json(&["show", &stage.session()]));
    assert!(!session.contains("longer than"), "{session}");
}

#[test]
fn a_sub_agent_has_servers_of_its_own() {
    let stage = Stage::new().with_variable("THREAD_TOKEN", "spool-7-of-silk");
    // The file of the sub-agent has the server.
    let child = agent(&stage, "env = { TOKEN = \"THREAD_TOKEN\" }\n");
    let replies = json!([
        call("inner__mend", json!({"script": "pwd > ../where; echo $TOKEN; echo one > a.txt"})),
        {"text": "Hemmed."},
    ]);
    stage.write(
        "child.json",
        &json!({"reply": [
            {"text": "", "call": replies[0]["calls"]}, {"text": "Hemmed."},
        ]})
        .to_string(),
    );
    let text = std::fs::read_to_string(&child).unwrap();
    std::fs::write(&child, text.replace("tools = []", "model = \"scripted:child.json\"\ntools = []"))
        .unwrap();
    let top = "name = \"top\"\ntools = []\n[[sub_agent]]\nname = \"hem\"\ndescription = \"Hems.\"\nfile = \"outer.toml\"\n";
    let top = stage.write("top.toml", top);
    let calls =
        [call("hem", json!({"mission": "Hem the coat"})), call("inner__mend", json!({"script": "true"}))];
    let model = scripted(&stage, &json!([calls[0], calls[1], {"text": "Done."}]));
    let ran = stage.run(&["run", "Sew", "--agent", &top, "--model", &model]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(ran.errors.contains("MCP server inner: "), "{}", ran.errors);
    assert_eq!(std::fs::read_to_string(stage.path("inner/a.txt")).unwrap(), "one\n");
    let session = stage.json(&["ls", "--agent", "top"])["session"].as_str().unwrap().to_owned();
    let shown = shown(&stage.json(&["show", &session]));
    assert!(shown.contains("Hemmed."), "{shown}");
    assert!(
        shown.contains("there is no tool \\\"inner__mend\\\""),
        "its caller does not have the tools: {shown}"
    );
    let stored = String::from_utf8_lossy(&stage.stored_bytes()).into_owned();
    assert!(!stored.contains("spool-7-of-silk"));
}

#[test]
fn a_changed_list_of_tools_is_recorded() {
    let stage = Stage::new();
    let agent = agent(&stage, "exclude = [\"fork\"]");
    run(&stage, &agent, &[call("inner__mend", json!({"script": "true"}))]);
    let session = stage.session();
    let log = stage.run(&["log", &session]).worked_quietly();
    assert!(!log.contains("has other tools"), "{log}");
    // The program of the server is another one now: a tool is gone, one is new, and one has other parameters.
    let changed = AGENT
        .replace("\"shell\"]", "\"edit_file\"]")
        .replace("{script}", "{text}")
        .replace("script =", "text =")
        .replace("[\"script\"]", "[\"text\"]");
    stage.write("inner.toml", &changed);
    let model = scripted(
        &stage,
        &json!([
            {"text": "before"},
            {"text": "before"},
            call("inner__read_file", json!({"path": "a.txt"})),
            call("inner__mend", json!({"script": "true"})),
            call("inner__shell", json!({"command": "true"})),
            {"text": "Done."},
        ]),
    );
    let asked = stage.run(&["ask", &session, "Again", "--model", &model]);
    assert_eq!(asked.code, Some(0), "{}", asked.errors);
    let log = stage.run(&["log", &session]).worked_quietly();
    let told = "MCP server inner has other tools: added edit_file; removed shell; changed mend";
    assert_eq!(log.matches(told).count(), 1, "{log}");
    let shown = shown(&stage.json(&["show", &session]));
    assert!(shown.contains("have changed") && shown.contains("no longer has the tool"), "{shown}");
}

#[test]
fn calls_of_a_server_can_need_approval() {
    let stage = Stage::new();
    let agent = agent(&stage, "\n[approval]\ninner__write_file = \"ask\"");
    let write = call("inner__write_file", json!({"path": "a.txt", "text": "one\n"}));
    let model = scripted(&stage, &json!([write, {"text": "Done."}]));
    let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]);
    assert_eq!(ran.code, Some(3), "{}", ran.errors);
    assert!(!stage.path("inner/a.txt").exists());
    stage.run(&["approve", &stage.session(), "--all"]).worked();
    assert_eq!(stage.run(&["resume"]).code, Some(0));
    assert!(stage.path("inner/a.txt").exists());
}

#[test]
fn wrong_servers_are_explained_and_start_nothing() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    for (text, words) in [
        ("name = \"a\"\ncommand = [\"backstitch-no-such-program\"]", "no-such-program"),
        ("name = \"a\"\ncommand = []", "name the program"),
        ("name = \"a b\"\ncommand = [\"true\"]", "letters, digits"),
        ("name = \"a\"\ncommand = [\"sh\", \"-c\", \"echo I cannot >&2; exit 1\"]", "I cannot"),
        (
            "name = \"a\"\ncommand = [\"sh\", \"-c\", \"echo '{\\\"hello\\\": 1}'; cat\"]",
            "does not answer as expected",
        ),
        ("name = \"a\"\ncommand = [\"true\"]\ncolour = \"red\"", "colour"),
        ("name = \"a\"\ncommand = [\"true\"]\nenv = { KEY = \"NO_SUCH_VARIABLE\" }", "NO_SUCH_VARIABLE"),
    ] {
        let agent = stage.write("bad.toml", &format!("name = \"outer\"\ntools = []\n[[mcp]]\n{text}\n"));
        let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]);
        assert_eq!(ran.code, Some(2), "{text}\n{}", ran.errors);
        assert!(ran.errors.contains(words), "{text}\n{}", ran.errors);
        assert!(!ran.errors.contains("panicked"), "{}", ran.errors);
    }
    let nothing = agent(&stage, "include = [\"knit*\"]");
    let ran = stage.run(&["run", "Sew", "--agent", &nothing, "--model", &model]);
    assert_eq!(ran.code, Some(2), "{}", ran.errors);
    assert!(ran.errors.contains("offers none of its tools"), "{}", ran.errors);
    let wrong = agent(&stage, "effects = { knit = \"pure\" }");
    let ran = stage.run(&["run", "Sew", "--agent", &wrong, "--model", &model]);
    assert!(ran.errors.contains("knit"), "{}", ran.errors);
    assert!(!stage.path("store/store.db").exists(), "nothing was started");
}

#[test]
fn a_value_for_a_server_is_recorded_nowhere() {
    let stage = Stage::new().with_variable("THREAD_TOKEN", "spool-7-of-silk");
    let agent = agent(&stage, "env = { TOKEN = \"THREAD_TOKEN\" }");
    let calls = [call("inner__mend", json!({"script": "echo token $TOKEN; echo $TOKEN > token.txt"}))];
    let session = shown(&run(&stage, &agent, &calls));
    assert_eq!(std::fs::read_to_string(stage.path("inner/token.txt")).unwrap(), "spool-7-of-silk\n");
    assert!(!session.contains("spool-7-of-silk"), "{session}");
    let stored = String::from_utf8_lossy(&stage.stored_bytes()).into_owned();
    assert!(!stored.contains("spool-7-of-silk"));
}
