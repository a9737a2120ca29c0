//! The real Claude Code, with a scripted model on loopback.
//!
//! `BACKSTITCH_CLAUDE` names its command (`npm install @anthropic-ai/claude-code`). Without it the test is skipped, and says so.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::real::{model, named};
use super::stand_in::{StandIn, picture};
use crate::stage::{Stage, text_of, wait_until};

/// Answers by the number of earlier answers in the conversation.
fn claude_events(script: &Value, request: &Value) -> Option<String> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    let has_tools = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let blocks = script.get(turn).filter(|_| has_tools).cloned();
    let blocks = blocks.unwrap_or_else(|| json!([{"type": "text", "text": "ok"}]));
    let mut events = String::new();
    let mut emit = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        events.push_str(&format!("event: {kind}\ndata: {data}\n\n"));
    };
    let usage = json!({"input_tokens": 100, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "output_tokens": 1});
    emit(
        "message_start",
        json!({"message": {"id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": request["model"],
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}}),
    );
    let mut stop = "end_turn";
    for (index, block) in blocks.as_array()?.iter().enumerate() {
        if block["type"] == "text" {
            emit(
                "content_block_start",
                json!({"index": index, "content_block": {"type": "text", "text": ""}}),
            );
            emit(
                "content_block_delta",
                json!({"index": index, "delta": {"type": "text_delta", "text": block["text"]}}),
            );
        } else {
            stop = "tool_use";
            let start = json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}});
            emit("content_block_start", json!({"index": index, "content_block": start}));
            let input = block["input"].to_string();
            emit(
                "content_block_delta",
                json!({"index": index, "delta": {"type": "input_json_delta", "partial_json": input}}),
            );
        }
        emit("content_block_stop", json!({"index": index}));
    }
    emit(
        "message_delta",
        json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 25}}),
    );
    emit("message_stop", json!({}));
    Some(events)
}

fn bash(id: &str, command: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command, "description": "x"}})
}

#[test]
fn the_real_claude_code_is_rewound_and_continues() {
    let Some(claude) = named("BACKSTITCH_CLAUDE") else { return };
    let stage = Stage::new();
    let files = stage.path("files");
    fs::write(files.join("kept.txt"), "kept\n").unwrap();
    let write = json!({"type": "tool_use", "id": "toolu_01", "name": "Write",
        "input": {"file_path": text_of(&files.join("a.txt")), "content": "one\n"}});
    let url = model(
        json!([
            [{"type": "text", "text": "First."}, write],
            [bash("toolu_02", "echo two >> a.txt; rm kept.txt; exit 3")],
            [bash("toolu_03", "echo three > three"), bash("toolu_04", "ls")],
            [{"type": "tool_use", "id": "toolu_05", "name": "Bash", "input":
                {"command": "sleep 1; echo late > late", "description": "x", "run_in_background": true}}],
            [{"type": "text", "text": "Done."}],
        ]),
        claude_events,
    );
    stage.run(&["guard", "install", "claude-code"]).worked();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&claude);
        command.current_dir(&files).args(arguments).args(["--allowedTools", "Write Bash Edit"]);
        command
            .env("HOME", stage.path("home"))
            .env("ANTHROPIC_BASE_URL", &url)
            .env("ANTHROPIC_API_KEY", "sk-test");
        command.env("XDG_STATE_HOME", stage.path("state")).env("XDG_CONFIG_HOME", stage.path("config"));
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env_remove("CLAUDE_CONFIG_DIR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let start = picture(&files);
    let output = run(&["-p", "make it"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let program = StandIn::new(&stage, "unused");
    assert_eq!(program.gaps(), Vec::<String>::new());
    let call = |id: &str| program.call(id);
    program.check_point(&format!("before:{}", call("toolu_01")), &start);
    let mut after_one = start.clone();
    after_one.insert("a.txt".to_owned(), (start["kept.txt"].0, b"one\n".to_vec()));
    program.check_point(&format!("before:{}", call("toolu_02")), &after_one);
    assert!(program.records().iter().any(|record| record["kind"] == "budget_charged"));

    // Back to before the failing command; the program continues exactly there, in the same session.
    let session = stage.session();
    let rewound = stage.json(&["rewind", &session, &format!("before:{}", call("toolu_02"))]);
    let words: Vec<&str> = rewound["continue"].as_str().unwrap().split(' ').skip(1).collect();
    assert_eq!(picture(&files), after_one);
    let output = run(&[&words[..], &["-p", "continue"]].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stage.run(&["ls", "--json"]).worked_quietly().lines().count(), 1);
    assert!(stage.run(&["log", &session]).worked_quietly().contains("asked: continue"));
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\ntwo\n"));
}

#[test]
fn a_killed_claude_code_leaves_a_call_that_the_next_start_closes() {
    let Some(claude) = named("BACKSTITCH_CLAUDE") else { return };
    let stage = Stage::new();
    let files = stage.path("files");
    let url = model(
        json!([[bash("toolu_01", "echo half > half; exec sleep 600")], [{"type": "text", "text": "Done."}]]),
        claude_events,
    );
    stage.run(&["guard", "install", "claude-code"]).worked();
    let start = picture(&files);
    let mut command = Command::new(&claude);
    command.current_dir(&files).args(["-p", "make it", "--allowedTools", "Bash"]);
    command
        .env("HOME", stage.path("home"))
        .env("ANTHROPIC_BASE_URL", &url)
        .env("ANTHROPIC_API_KEY", "sk-test");
    command.env("XDG_STATE_HOME", stage.path("state")).env("XDG_CONFIG_HOME", stage.path("config"));
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env_remove("CLAUDE_CONFIG_DIR");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the command of the model", || files.join("half").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let program = StandIn::new(&stage, "unused");
    let (session, call) = (stage.session(), program.call("toolu_01"));
    // The command of the program survives it.
    let refused = stage.run(&["rewind", &session, &format!("before:{call}")]).failed();
    assert!(refused.contains("guard_busy") && refused.contains("still runs"), "{refused}");
    let number = refused.split("process ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    Command::new("kill").args(["-9", &number]).status().unwrap();
    stage.run(&["rewind", &session, &format!("before:{call}"), "--force"]).worked_quietly();
    assert_eq!(picture(&files), start);
}
