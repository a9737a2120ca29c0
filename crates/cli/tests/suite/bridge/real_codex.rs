//! The real Codex as an engine, with a scripted model on loopback.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_testkit::program::{is_call, model, named, responses_events, step_after};
use serde_json::{Value, json};

use super::codex_stand_in::CODEX_AGENT;
use crate::stage::{Stage, ended, interrupt, text_of, wait_until};

/// Answers by the last prompt of a conversation, and by the number of its calls since.
fn events(script: &Value, request: &Value) -> Option<String> {
    let items = request["input"].as_array()?;
    let prompt = |item: &Value| {
        let text = item["content"][0]["text"].as_str().filter(|_| item["role"] == "user")?;
        script.as_object()?.keys().find(|key| text.contains(key.as_str())).cloned()
    };
    let since = items.iter().rposition(|item| prompt(item).is_some())?;
    let steps = &script[&prompt(&items[since])?];
    let made = items[since..].iter().filter(|item| is_call(item)).count();
    Some(responses_events(made, step_after(steps, made)?))
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments.to_string()})
}

fn says(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": text}]})
}

/// A stage with the agent of the tests, Codex and a scripted model.
fn prepared(codex: &Path, script: Value) -> Stage {
    prepared_counting(codex, script, Arc::default())
}

/// The same, with a count of the requests to the model.
fn prepared_counting(codex: &Path, script: Value, requests: Arc<AtomicUsize>) -> Stage {
    let url = model(move |request| {
        requests.fetch_add(1, Ordering::SeqCst);
        events(&script, request)
    });
    let stage = Stage::new();
    let home = stage.path("home");
    fs::create_dir(&home).unwrap();
    stage.write("tailor.toml", CODEX_AGENT);
    let settings = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"local\"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n\
         [model_providers.local]\nname = \"local\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n"
    );
    fs::write(home.join("config.toml"), settings).unwrap();
    let path = format!("{}:{}", text_of(codex.parent().unwrap()), std::env::var("PATH").unwrap());
    stage
        .with_variable("PATH", &path)
        .with_variable("HOME", &text_of(&home))
        .with_variable("CODEX_HOME", &text_of(&home))
}

#[test]
fn the_real_codex_works_for_an_agent() {
    let Some(codex) = named("BACKSTITCH_CODEX") else { return };
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch";
    let mut own = call("call_03", "stitch", json!({"script": "echo s > s"}));
    own["namespace"] = json!("mcp__backstitch");
    let script = json!({
        "Mend it": [
            [{"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_01", "name": "apply_patch", "input": patch}],
            [call("call_02", "exec_command", json!({"cmd": "echo two >> a.txt; exit 3"}))],
            [own],
            [says("Mended.")],
        ],
        "Wear it": [[call("call_05", "exec_command", json!({"cmd": "echo half > half; exec sleep 600"}))], [says("Worn.")]],
        "half": [[says("Late.")]],
        "Fold it": [[says("Folded.")]],
    });
    let stage = prepared(&codex, script);
    let agent = text_of(&stage.path("tailor.toml"));
    let output = stage.run(&["run", "Mend it", "--agent", &agent]).worked_quietly();
    assert!(output.contains("Mended."), "{output}");
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\ntwo\n"));
    assert_eq!(stage.file("s").as_deref(), Some("s\n"));
    let session = stage.session();
    let log = stage.run(&["log", &session]).worked_quietly();
    for part in ["calls apply_patch", "calls Bash", "calls stitch", "failed: Exit code 3"] {
        assert_eq!(log.matches(part).count(), 1, "{part}\n{log}");
    }
    let tokens = stage.json(&["stats"]).to_string();
    assert!(tokens.contains("200"), "four requests of 50 tokens: {tokens}");

    let fork = stage.json(&["fork", &session]);
    // A follow-up in the same thread is interrupted in a command, which is rolled back, and continues.
    let child = stage.command(&["ask", &session, "Wear it"]).spawn().unwrap();
    wait_until("the command of the model", || stage.file("half").is_some());
    let ran = interrupt(child);
    assert!(ran.output.contains("paused") || ran.errors.contains("paused"), "{}\n{}", ran.output, ran.errors);
    assert_eq!(stage.file("half"), None);
    let child = stage.command(&["resume", &session]).spawn().unwrap();
    assert!(ended(child).worked_quietly().contains("Late."));
    let log = stage.run(&["log", &session]).worked_quietly();
    assert!(!log.contains("does not have the conversation"), "{log}");
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\ntwo\n"));

    // A fork continues with a copy of the thread.
    let fork = fork["session"].as_str().unwrap().to_owned();
    let output = stage.run(&["ask", &fork, "Fold it"]).worked_quietly();
    assert!(output.contains("Folded."), "{output}");
    let log = stage.run(&["log", &fork]).worked_quietly();
    assert!(!log.contains("does not have the conversation"), "{log}");
}

#[test]
fn the_real_codex_makes_as_many_requests_as_its_budget_has_turns() {
    let Some(codex) = named("BACKSTITCH_CODEX") else { return };
    let numbers = 1..=5;
    let steps: Vec<Value> = numbers
        .map(|number| {
            let command = format!("echo {number} > {number}");
            json!([call(&format!("call_{number}"), "exec_command", json!({"cmd": command}))])
        })
        .chain([json!([says("Mended.")])])
        .collect();
    let requests = Arc::new(AtomicUsize::new(0));
    let script = json!({"Mend it": steps, "were not run": [[says("Late.")]]});
    let stage = prepared_counting(&codex, script, requests.clone());
    let agent = text_of(&stage.path("tailor.toml"));
    let ran = stage.run(&["run", "Mend it", "--agent", &agent, "--budget", "turns=3", "--json"]);
    assert!(ran.output.contains("the budget of 3 turns"), "{}\n{}", ran.output, ran.errors);
    assert_eq!(requests.load(Ordering::SeqCst), 3);
    assert_eq!((stage.file("2").as_deref(), stage.file("3")), (Some("2\n"), None));
    let session = stage.session();
    let records = stage.run(&["log", &session, "--json", "--all"]).worked_quietly();
    assert_eq!(records.matches("\"kind\":\"request_finished\"").count(), 3, "{records}");
    assert!(!records.contains("\"topic\":\"gap\""), "{records}");
    let output = stage.run(&["resume", &session, "--budget", "turns=9"]).worked_quietly();
    assert!(output.contains("Late."), "{output}");
}

#[test]
fn calls_of_a_sub_agent_of_the_real_codex_are_recorded() {
    let Some(codex) = named("BACKSTITCH_CODEX") else { return };
    let mut spawn = call("call_01", "spawn_agent", json!({"message": "Sew the child"}));
    spawn["namespace"] = json!("multi_agent_v1");
    // It would return before the end of a command that takes longer than ten seconds.
    let shell =
        |id: &str, command: &str| call(id, "exec_command", json!({"cmd": command, "yield_time_ms": 30_000}));
    let script = json!({
        "Mend it": [
            [spawn],
            [shell("call_02", "while [ ! -e child ]; do sleep 0.05; done; sleep 1; echo parent > parent")],
            [says("Mended.")],
        ],
        "Sew the child": [[shell("call_03", "echo child > child")], [says("The child is sewn.")]],
    });
    let stage = prepared(&codex, script);
    let agent = text_of(&stage.path("tailor.toml"));
    let output = stage.run(&["run", "Mend it", "--agent", &agent]).worked_quietly();
    assert!(output.contains("Mended."), "{output}");
    assert_eq!(stage.file("child").as_deref(), Some("child\n"));
    assert_eq!(stage.file("parent").as_deref(), Some("parent\n"));
    let session = stage.session();
    let log = stage.run(&["log", &session]).worked_quietly();
    assert_eq!(log.matches("calls Bash").count(), 2, "{log}");
    assert_eq!(stage.run(&["ls", "--json"]).worked_quietly().lines().count(), 1, "it is one session");
    stage.run(&["rewind", &session, "start"]).worked_quietly();
    assert_eq!((stage.file("child"), stage.file("parent")), (None, None));
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(stage.file("child").as_deref(), Some("child\n"));
}
