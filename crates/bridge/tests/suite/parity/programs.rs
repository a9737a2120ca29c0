//! Claude Code and Codex, driven by the bridge. They are the real programs, with a scripted model on loopback.
//!
//! The session runs in a process of its own, which is this test program: the programs find their settings by environment
//! variables. It also is the relay that they start to reach the tools.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use backstitch_bridge::InstalledEngines;
use backstitch_runtime::DriveOutcome;
use backstitch_testkit::program::{is_call, messages_events, model, named, responses_events, step_after};
use serde_json::{Value, json};

use super::engines::start;
use super::place::{Place, threads};
use super::server::{Pipes, place_of_variables, variables};
use super::{Case, Trouble};

/// Environment variable with the name of the engine.
const ENGINE: &str = "BACKSTITCH_PARITY_ENGINE";

/// Environment variable with the path of the socket.
const SOCKET: &str = "BACKSTITCH_PARITY_SOCKET";

/// Starts the relay. Programs may have sockets as its input and output, which cannot be opened by a path as pipes can.
const RELAY: &str = r#"cat | BACKSTITCH_PARITY_SOCKET="$1" "$0" parity::programs::relay --exact --ignored --nocapture 3<&0 4>&1 </dev/null >/dev/null | cat"#;

/// Printed by the process of a session that was cancelled.
const CANCELLED: &str = "the session was cancelled";

pub(super) fn claude_code(place: &Place, case: &Case) {
    let Some(program) = named("BACKSTITCH_CLAUDE") else { return };
    let calls = case.calls().into_iter().enumerate().map(|(number, call)| {
        let name = format!("mcp__backstitch__{}", call.name);
        json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": call.arguments})
    });
    let steps: Vec<Value> = calls.chain([json!({"type": "text", "text": "Sewn."})]).collect();
    let url = model(move |request| {
        let is_answer = |message: &&Value| message["role"] == "assistant";
        let made = request["messages"].as_array()?.iter().filter(is_answer).count();
        Some(messages_events(made, &request["model"], &[steps.get(made)?.clone()]))
    });
    let mut command = prepared(place, "claude-code", "claude", program);
    command
        .env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_AUTH_TOKEN", "sk-test")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .env_remove("CLAUDE_CONFIG_DIR");
    run(command, place, case);
}

pub(super) fn codex(place: &Place, case: &Case) {
    let Some(program) = named("BACKSTITCH_CODEX") else { return };
    let calls = case.calls().into_iter().enumerate().map(|(number, call)| {
        json!([{"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
            "namespace": "mcp__backstitch", "name": call.name, "arguments": call.arguments.to_string()}])
    });
    let text = json!([{"type": "output_text", "text": "Sewn."}]);
    let last = json!([{"type": "message", "role": "assistant", "id": "m", "content": text}]);
    let steps: Value = calls.chain([last]).collect();
    let url = model(move |request| {
        let made = request["input"].as_array()?.iter().filter(|item| is_call(item)).count();
        Some(responses_events(made, step_after(&steps, made)?))
    });
    let mut command = prepared(place, "codex", "codex", program);
    let home = place.directory.join("home");
    let settings = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"local\"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n\
         [model_providers.local]\nname = \"local\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n"
    );
    fs::write(home.join("config.toml"), settings).unwrap();
    command.env("CODEX_HOME", home);
    run(command, place, case);
}

/// Returns the command of a process that runs the session, with a home directory and a program on its path.
fn prepared(place: &Place, engine: &str, name: &str, program: PathBuf) -> Command {
    let (home, programs) = (place.directory.join("home"), place.directory.join("programs"));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(program, programs.join(name)).unwrap();
    let mut places = vec![programs];
    places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["parity::programs::process", "--exact", "--ignored", "--nocapture"]);
    command.envs(variables(place)).env(ENGINE, engine);
    command.env("HOME", home).env("PATH", std::env::join_paths(places).unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(mut command: Command, place: &Place, case: &Case) {
    let running = command.spawn().unwrap();
    match case.trouble {
        Trouble::Cancelled => {
            place.wait_for_begin();
            threads().block_on(place.runtime().cancel(Place::session())).unwrap();
        }
        Trouble::Denied => place.deny(),
        Trouble::None | Trouble::Budget => {}
    }
    let ran = running.wait_with_output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{}: {output}\n{errors}", case.name);
    let is_cancelled = output.contains(CANCELLED);
    assert_eq!(is_cancelled, case.trouble == Trouble::Cancelled, "{}: {output}\n{errors}", case.name);
}

#[test]
#[ignore = "it is the process of a session, which the other tests start"]
#[expect(clippy::print_stdout, reason = "the other process reads it")]
fn process() {
    let Some((place, engine)) = place_of_variables().zip(std::env::var(ENGINE).ok()) else { return };
    let relay = || {
        let own = std::env::current_exe()?.to_string_lossy().into_owned();
        Ok(vec!["sh".to_owned(), "-c".to_owned(), RELAY.to_owned(), own])
    };
    let engines = Arc::new(InstalledEngines { key: |_| None, relay });
    let threads = threads();
    let run = start(&threads, &place, &engine, engines);
    match threads.block_on(run.outcome()).unwrap() {
        DriveOutcome::Completed(_) => {}
        DriveOutcome::Cancelled { .. } => println!("{CANCELLED}"),
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "it is the relay, which the programs start"]
fn relay() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    threads().block_on(async {
        let Pipes { input, output } = Pipes::open();
        backstitch_bridge::relay(socket.as_ref(), input, output).await.unwrap();
    });
}
