//! Runs to an answer: what is recorded, what can be undone.

use std::fs;

use serde_json::{Value, json};

use super::stand_in::{AGENT, Claude, run, stage};
use crate::stage::{Stage, ended, text_of};

fn records(stage: &Stage) -> Vec<Value> {
    let session = stage.session();
    let output = stage.run(&["log", &session, "--json", "--all"]).worked_quietly();
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_engine_edits_fails_and_answers_and_each_call_can_be_undone() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    assert_eq!(claude.prompt["message"]["content"], "Mend it");
    assert_eq!(claude.option("--append-system-prompt").as_deref(), Some("You mend clothes."));
    assert!(claude.option("--mcp-config").unwrap().contains("relay"), "{:?}", claude.pipes.arguments);
    claude.says("First, the sleeve.");
    let input = json!({"file_path": "a.txt", "content": "one\n"});
    claude.calls("toolu_01", "Write", &input, |files| fs::write(files.join("a.txt"), "one\n").unwrap());
    let input = json!({"command": "echo two >> a.txt; exit 3"});
    claude.answers(&[json!({"type": "tool_use", "id": "toolu_02", "name": "Bash", "input": input})]);
    let call = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": "toolu_02"});
    claude.hook("PreToolUse", call.clone());
    fs::write(stage.path("files/a.txt"), "one\ntwo\n").unwrap();
    let mut failed = call;
    failed["error"] = json!("Exit code 3");
    claude.hook("PostToolUseFailure", failed);
    claude.result_of("toolu_02", &json!("Exit code 3"), true);
    // A tool that does not exist has no hooks.
    claude.answers(&[json!({"type": "tool_use", "id": "toolu_03", "name": "Sew", "input": {}})]);
    claude.result_of("toolu_03", &json!("No such tool available: Sew"), true);
    claude.says("Mended.");
    claude.ends("Mended.");
    let ran = ended(child);
    let output = ran.worked_quietly();
    assert!(output.contains("Mended."), "{output}");

    let session = stage.session();
    let log = stage.run(&["log", &session]).worked_quietly();
    for part in
        ["asked: Mend it", "calls Write", "calls Bash", "Exit code 3", "No such tool available", "Mended."]
    {
        assert!(log.contains(part), "{part}\n{log}");
    }
    assert_eq!(log.matches("calls Write").count(), 1, "{log}");
    let charged: Vec<_> = records(&stage).into_iter().filter(|one| one["kind"] == "budget_charged").collect();
    let money: u64 = charged.iter().filter_map(|one| one["data"]["amounts"]["money_micros"].as_u64()).sum();
    let tokens: u64 = charged.iter().filter_map(|one| one["data"]["amounts"]["output_tokens"].as_u64()).sum();
    assert_eq!((money, tokens), (250_000, 25 * 5), "{charged:?}");

    // The failing command is undone, with what it changed.
    let call = |name: &str| {
        let started = records(&stage).into_iter().filter(|one| one["kind"] == "call_started");
        let mut found = started.filter(|one| one["data"]["name"] == name);
        found.next().unwrap()["data"]["call_id"].as_str().unwrap().to_owned()
    };
    let before = format!("before:{}", call("Bash"));
    stage.run(&["rewind", &session, &before]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\n"));
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\ntwo\n"));
    let before = format!("before:{}", call("Write"));
    stage.run(&["rewind", &session, &before]).worked_quietly();
    assert_eq!(stage.file("a.txt"), None);
}

#[test]
fn tools_of_the_agent_run_in_the_same_session_and_are_recorded_once() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    let mut tools = claude.tools();
    let listed = tools.ask("tools/list", &json!({}));
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["stitch"], "no history, and no tools for files");
    let kept = claude.stitches(&mut tools, "toolu_01", "echo kept > kept.txt; echo stitched");
    assert!(kept.to_string().contains("stitched"), "{kept}");
    let failed = claude.stitches(&mut tools, "toolu_02", "echo lost > lost.txt; exit 3");
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    // A failed call is rolled back; one of the engine itself is not.
    assert_eq!((stage.file("kept.txt").as_deref(), stage.file("lost.txt")), (Some("kept\n"), None));
    let again = tools.call("toolu_01", &json!({"script": "echo kept > kept.txt; echo stitched"}));
    assert_eq!(again["result"]["content"], kept["result"]["content"]);
    claude.says("Stitched.");
    claude.ends("Stitched.");
    assert!(ended(child).worked_quietly().contains("Stitched."));
    let started = records(&stage).into_iter().filter(|one| one["kind"] == "call_started");
    let names: Vec<_> = started.map(|one| one["data"]["name"].clone()).collect();
    assert_eq!(names, ["stitch", "stitch"]);
    tools.wait();
}

#[test]
fn hooks_of_the_guard_do_nothing_inside_an_engine() {
    let stage = stage();
    let child = run(&stage, &[]);
    let claude = Claude::begin(&stage);
    let environment = fs::read_to_string(stage.path("pipes/environment")).unwrap();
    assert!(environment.contains("BACKSTITCH_ENGINE=claude-code"), "{environment}");
    claude.ends("Done.");
    ended(child).worked_quietly();
    let event = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "x", "cwd": stage.path("files")});
    let file = stage.write("event.json", &event.to_string());
    let mut command = stage.command(&["guard", "hook", "claude-code"]);
    command.env("BACKSTITCH_ENGINE", "claude-code").stdin(fs::File::open(file).unwrap());
    assert!(command.status().unwrap().success());
    assert_eq!(stage.run(&["ls", "--json"]).worked_quietly().lines().count(), 1);
}

#[test]
fn a_follow_up_continues_the_conversation_of_the_engine() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    claude.says("One.");
    let (first, transcript) = (claude.session.clone(), claude.transcript());
    claude.ends("One.");
    ended(child).worked_quietly();
    let session = stage.session();
    let child = stage.command(&["ask", &session, "And the hem?"]).spawn().unwrap();
    let mut claude = Claude::begin(&stage);
    assert_eq!(claude.option("--resume"), Some(first));
    assert_eq!(claude.option("--fork-session"), None);
    assert_eq!(claude.prompt["message"]["content"], "And the hem?");
    claude.says("Two.");
    claude.ends("Two.");
    assert!(ended(child).worked_quietly().contains("Two."));

    // Without its conversation, the engine gets the record of it.
    fs::remove_file(transcript).unwrap();
    let child = stage.command(&["ask", &session, "And the cuff?"]).spawn().unwrap();
    let claude = Claude::begin(&stage);
    assert_eq!(claude.option("--resume"), None);
    let prompt = claude.prompt["message"]["content"].as_str().unwrap().to_owned();
    for part in ["Mend it", "One.", "And the hem?", "Two.", "And the cuff?"] {
        assert!(prompt.contains(part), "{part}\n{prompt}");
    }
    claude.ends("Three.");
    assert!(ended(child).worked_quietly().contains("Three."));
}

#[test]
fn settings_that_cannot_apply_are_refused_with_their_line() {
    let stage = stage();
    for (more, key) in [
        ("answers = \"lisp\"", "answers"),
        ("compression = true", "compression"),
        ("model = \"openai:m\"", "model"),
        ("window = 5000", "window"),
        ("max_repeats = 3", "max_repeats"),
    ] {
        let text = AGENT.replace("[[tool]]", &format!("{more}\n[[tool]]"));
        let agent = stage.write("wrong.toml", &text);
        let errors = stage.run(&["run", "x", "--agent", &agent]).called_wrongly();
        assert!(errors.contains(key) && errors.contains("does not apply"), "{errors}");
    }
    let agent = stage.write("wrong.toml", "engine = \"claude-cod\"");
    let errors = stage.run(&["run", "x", "--agent", &agent]).called_wrongly();
    assert!(errors.contains("claude-code") && errors.contains("did you mean"), "{errors}");
    let agent = text_of(&stage.path("tailor.toml"));
    let errors = stage.run(&["run", "x", "--agent", &agent, "--model", "openai:m"]).called_wrongly();
    assert!(errors.contains("driven by claude-code"), "{errors}");
}
