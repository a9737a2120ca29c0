//! The real Codex, with a scripted model on loopback.
//!
//! `BACKSTITCH_CODEX` names its command (`npm install @openai/codex`). Without it the test is skipped, and says so.

use std::fs;
use std::process::{Command, Stdio};

use backstitch_testkit::program::{is_call, model, named, responses_events, step_after};
use serde_json::{Value, json};

use super::stand_in::{StandIn, picture};
use crate::stage::{Stage, text_of};

/// Answers by the number of earlier calls in the conversation.
fn codex_events(script: &Value, request: &Value) -> Option<String> {
    let calls = request["input"].as_array()?.iter().filter(|item| is_call(item)).count();
    Some(responses_events(calls, step_after(script, calls)?))
}

fn shell(id: &str, command: &str) -> Value {
    let arguments = json!({"cmd": command}).to_string();
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "exec_command", "arguments": arguments})
}

#[test]
fn the_real_codex_is_rewound() {
    let Some(codex) = named("BACKSTITCH_CODEX") else { return };
    let stage = Stage::new();
    let (files, home) = (stage.path("files"), stage.path("home"));
    fs::write(files.join("kept.txt"), "kept\n").unwrap();
    fs::create_dir(&home).unwrap();
    let done = json!({"type": "message", "role": "assistant", "id": "m1", "content": [{"type": "output_text", "text": "Done."}]});
    let script = json!([
        [shell("call_01", "echo one > a.txt")],
        [shell("call_02", "echo two >> a.txt; rm kept.txt; exit 3"), shell("call_03", "echo three > c.txt")],
        [done],
    ]);
    let url = model(move |request| codex_events(&script, request));
    let settings = format!(
        "model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n"
    );
    fs::write(home.join("config.toml"), settings).unwrap();
    let stage = stage.with_variable("CODEX_HOME", &text_of(&home));
    // The hooks of the user name no store, so it is that of the project.
    stage.run(&["guard", "install", "codex"]).worked();
    let hooks = fs::read_to_string(files.join(".codex/hooks.json")).unwrap();
    fs::write(home.join("hooks.json"), hooks).unwrap();
    stage.run(&["guard", "uninstall", "codex"]).worked();
    let _ = fs::remove_dir(files.join(".codex"));
    let start = picture(&files);
    let output = Command::new(codex)
        .current_dir(&files)
        .args([
            "exec",
            "--dangerously-bypass-hook-trust",
            "--skip-git-repo-check",
            "-s",
            "danger-full-access",
            "make it",
        ])
        .env("HOME", &home)
        .env("CODEX_HOME", &home)
        .env("XDG_STATE_HOME", stage.path("state"))
        .env("XDG_CONFIG_HOME", stage.path("config"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let program = StandIn::new(&stage, "unused");
    assert_eq!(program.gaps(), Vec::<String>::new());
    let mut after_one = start.clone();
    after_one.insert("a.txt".to_owned(), (start["kept.txt"].0, b"one\n".to_vec()));
    program.check_point(&format!("before:{}", program.call("call_01")), &start);
    program.check_point(&format!("after:{}", program.call("call_01")), &after_one);
    let tokens = stage.json(&["stats"]);
    assert!(tokens.to_string().contains("150"), "three requests of 50 tokens: {tokens}");
    let rewound = stage.json(&["rewind", &stage.session(), &format!("after:{}", program.call("call_01"))]);
    assert!(rewound["continue"].as_str().unwrap().contains("guard continue "), "{rewound}");
    assert_eq!(picture(&files), after_one);
}
