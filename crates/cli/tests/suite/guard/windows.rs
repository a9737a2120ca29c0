//! Two windows of Claude Code, a Codex and runs of this command take turns in one directory, with the MCP server and the guard.
//!
//! `BACKSTITCH_CLAUDE` and `BACKSTITCH_CODEX` name the commands. Without them the test is skipped, and says so.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use backstitch_testkit::program::{is_call, messages_events, model, named, responses_events};
use serde_json::{Value, json};

use crate::stage::{Stage, scripted, text_of};

/// Time limit of a turn. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The agent whose tools are served.
const AGENT: &str = "name = \"tailor\"\ntools = [\"read_file\", \"write_file\", \"shell\"]\n";

/// Sets the environment of a program. It can reach only the scripted model.
fn prepare(stage: &Stage, command: &mut Command) {
    let home = stage.path("home");
    command
        .current_dir(stage.path("files"))
        .env("HOME", &home)
        .env("CODEX_HOME", &home)
        .env("XDG_STATE_HOME", stage.path("state"))
        .env("XDG_CONFIG_HOME", stage.path("config"))
        .env("ANTHROPIC_API_KEY", "sk-test")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .env_remove("CLAUDE_CONFIG_DIR");
}

/// Returns the program and the arguments of the MCP server.
fn served(stage: &Stage) -> (String, Vec<String>) {
    let agent = stage.write("tailor.toml", AGENT);
    let command = stage.command(&["mcp", "serve", "--agent", &agent, "--sandbox", "off"]);
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    (command.get_program().to_string_lossy().into_owned(), words.collect())
}

/// The prompt of a request, and the number of results since. Prompts of the test are words such as `A1`.
fn last_prompt(items: &[Value], is_result: impl Fn(&Value) -> bool) -> Option<(String, usize)> {
    let prompt = |item: &Value| {
        let texts = match &item["content"] {
            Value::String(text) => vec![text.clone()],
            content => content
                .as_array()?
                .iter()
                .filter_map(|part| Some(part["text"].as_str()?.to_owned()))
                .collect(),
        };
        let is_user = item["role"] == "user";
        texts.into_iter().find(|text| is_user && text.len() == 2 && text.ends_with(['1', '2']))
    };
    let at = items.iter().rposition(|item| prompt(item).is_some())?;
    Some((prompt(&items[at])?, items[at..].iter().filter(|item| is_result(item)).count()))
}

/// What each prompt leads to: a command, a call of the MCP server, and an answer.
fn claude_answer(request: &Value) -> String {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let is_result = |message: &Value| message["content"].to_string().contains("\"tool_use_id\"");
    let number = messages.len();
    let text = |text: &str| json!({"type": "text", "text": text});
    let has_tools = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let Some((prompt, step)) = last_prompt(&messages, is_result).filter(|_| has_tools) else {
        return messages_events(number, &request["model"], &[text("ok")]);
    };
    let call = |name: &str, input: Value| json!({"type": "tool_use", "id": format!("toolu_{prompt}_{step}"), "name": name, "input": input});
    let blocks = match step {
        0 => vec![
            text(&format!("First {prompt}.")),
            call(
                "Bash",
                json!({"command": format!("echo {prompt} >> {}", &prompt[..1]), "description": "x"}),
            ),
        ],
        1 => vec![call("mcp__tailor__write_file", json!({"path": format!("{prompt}.txt"), "text": prompt}))],
        _ => vec![text(&format!("Done {prompt}."))],
    };
    messages_events(number, &request["model"], &blocks)
}

fn codex_answer(request: &Value) -> Option<String> {
    let items = request["input"].as_array()?;
    let (prompt, step) = last_prompt(items, is_call)?;
    let call = |name: &str, namespace: Option<&str>, arguments: Value| {
        let mut call = json!({"type": "function_call", "id": format!("fc_{prompt}_{step}"), "call_id": format!("call_{prompt}_{step}"),
            "name": name, "arguments": arguments.to_string()});
        if let Some(namespace) = namespace {
            call["namespace"] = json!(namespace);
        }
        call
    };
    let item = match step {
        0 => call("exec_command", None, json!({"cmd": format!("echo {prompt} >> {}", &prompt[..1])})),
        1 => {
            call("write_file", Some("mcp__tailor"), json!({"path": format!("{prompt}.txt"), "text": prompt}))
        }
        _ => {
            json!({"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": format!("Done {prompt}.")}]})
        }
    };
    Some(responses_events(items.len(), &[item]))
}

/// A window of Claude Code, which stays open between prompts.
struct Window {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Window {
    fn open(stage: &Stage, claude: &Path, url: &str) -> Self {
        let (program, arguments) = served(stage);
        let servers = json!({"mcpServers": {"tailor": {"command": program, "args": arguments}}});
        let mut command = Command::new(claude);
        command.args(["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
        command.args(["--mcp-config", &servers.to_string(), "--strict-mcp-config"]);
        command.args(["--allowedTools", "Bash mcp__tailor__write_file"]);
        prepare(stage, &mut command);
        command.env("ANTHROPIC_BASE_URL", url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap_or_default()).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take(), child, lines }
    }

    /// Sends a prompt, and waits for the answer. The server has to be connected.
    fn ask(&mut self, prompt: &str) {
        let line = json!({"type": "user", "message": {"role": "user", "content": prompt}});
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
            if line["type"] == "system" && line["subtype"] == "init" {
                assert_eq!(line["mcp_servers"][0]["status"], "connected", "{line}");
            }
            if line["type"] == "result" {
                assert_eq!(line["result"], format!("Done {prompt}."), "{line}");
                return;
            }
        }
    }

    fn close(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn ask_codex(stage: &Stage, codex: &Path, words: &[&str]) {
    let mut command = Command::new(codex);
    command.arg("exec").args(words);
    prepare(stage, &mut command);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("Done "), "{output:?}");
}

fn run_natively(stage: &Stage, prompt: &str) {
    let call = json!({"calls": [{"name": "write_file", "arguments": {"path": format!("{prompt}.txt"), "text": prompt}}]});
    let model = scripted(stage, &json!([call, {"text": format!("Done {prompt}.")}]));
    let ran = stage.run(&["run", prompt, "--model", &model]);
    assert_eq!(ran.code, Some(0), "{prompt}: {}", ran.errors);
}

#[test]
fn windows_of_two_programs_and_runs_take_turns_in_one_directory() {
    let (Some(claude), Some(codex)) = (named("BACKSTITCH_CLAUDE"), named("BACKSTITCH_CODEX")) else { return };
    let stage = Stage::new();
    let home = stage.path("home");
    fs::create_dir(&home).unwrap();
    let claude_url = model(|request| Some(claude_answer(request)));
    let codex_url = model(codex_answer);
    let (program, arguments) = served(&stage);
    let settings = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"local\"\nsandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
         [analytics]\nenabled = false\n\
         [model_providers.local]\nname = \"local\"\nbase_url = \"{codex_url}/v1\"\nwire_api = \"responses\"\n\
         [mcp_servers.tailor]\ncommand = {}\nargs = {}\n",
        json!(program),
        json!(arguments)
    );
    fs::write(home.join("config.toml"), settings).unwrap();
    let path = format!("{}:{}", text_of(codex.parent().unwrap()), std::env::var("PATH").unwrap_or_default());
    let stage = stage
        .with_variable("CODEX_HOME", &text_of(&home))
        .with_variable("HOME", &text_of(&home))
        .with_variable("PATH", &path);
    stage.run(&["guard", "install", "claude-code"]).worked();
    let printed = stage.run(&["guard", "install", "codex"]).worked();
    assert!(printed.contains("Codex trusts them"), "{printed}");

    let mut first = Window::open(&stage, &claude, &claude_url);
    let mut second = Window::open(&stage, &claude, &claude_url);
    first.ask("A1");
    second.ask("B1");
    ask_codex(&stage, &codex, &["--skip-git-repo-check", "C1"]);
    run_natively(&stage, "N1");
    second.ask("B2");
    first.ask("A2");
    ask_codex(&stage, &codex, &["resume", "--skip-git-repo-check", "--last", "C2"]);
    run_natively(&stage, "N2");
    // The servers of open windows wait for calls, and are not a reason to refuse a rewind.
    let sessions = || -> Vec<String> {
        let listed = stage.run(&["ls", "--json"]).worked_quietly();
        let lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["session"].as_str().unwrap().to_owned()).collect()
    };
    let log = |id: &String| stage.run(&["log", id]).worked_quietly();
    let codex_session = sessions().into_iter().find(|id| log(id).contains("asked: C1")).unwrap();
    stage.run(&["rewind", &codex_session, "turn:1"]).worked_quietly();
    assert_eq!(stage.file("C2.txt"), None);
    stage.run(&["undo", &codex_session]).worked_quietly();
    first.close();
    second.close();

    for name in ["A", "B", "C"] {
        assert_eq!(stage.file(name), Some(format!("{name}1\n{name}2\n")));
    }
    let names = ["A1", "A2", "B1", "B2", "C1", "C2", "N1", "N2"];
    for name in names {
        assert_eq!(stage.file(&format!("{name}.txt")).as_deref(), Some(name));
    }
    // Each conversation has a session, each window another one for its server, and each run its own.
    let logs: Vec<String> = sessions().iter().map(log).collect();
    let all = logs.join("\n----\n");
    let with = |words: &str| logs.iter().filter(|log| log.contains(words)).collect::<Vec<_>>();
    for name in ["A", "B", "C"] {
        let asked = with(&format!("asked: {name}1"));
        assert_eq!(asked.len(), 1, "{name}: {all}");
        let others = ["A", "B", "C"].iter().filter(|other| **other != name);
        for words in [format!("asked: {name}2"), format!("Done {name}1."), format!("(added {name}1.txt)")] {
            assert!(asked[0].contains(&words), "{words}: {}", asked[0]);
        }
        for other in others {
            assert!(!asked[0].contains(&format!("asked: {other}")), "{name}: {}", asked[0]);
        }
        assert!(!asked[0].contains("gap"), "{name}: {}", asked[0]);
    }
    // One for each window of a client, and both runs of Codex shared one, since no other server had it then.
    let servers: Vec<&String> =
        logs.iter().filter(|log| log.contains("calls write_file") && !log.contains("asked: N")).collect();
    assert_eq!(servers.len(), 3, "{all}");
    for name in ["A", "B", "C"] {
        let own: Vec<&&String> = servers.iter().filter(|log| log.contains(&format!("{name}1.txt"))).collect();
        assert!(own.len() == 1 && own[0].contains(&format!("{name}2.txt")), "{name}: {all}");
    }
    assert_eq!(logs.len(), 8, "{all}");
    stage.run(&["verify"]).worked_quietly();
}
