//! The real Claude Code as an engine, with a scripted model on loopback.

use std::fs;

use backstitch_testkit::program::{model, named};
use serde_json::json;

use super::stand_in::AGENT;
use crate::guard::real_claude::claude_events;
use crate::stage::{Stage, ended, interrupt, text_of, wait_until};

#[test]
fn the_real_claude_code_works_for_an_agent() {
    let Some(claude) = named("BACKSTITCH_CLAUDE") else { return };
    let stage = Stage::new();
    let files = stage.path("files");
    fs::create_dir(stage.path("home")).unwrap();
    fs::create_dir(stage.path("programs")).unwrap();
    std::os::unix::fs::symlink(claude, stage.path("programs/claude")).unwrap();
    let agent = stage.write("tailor.toml", AGENT);
    let write = json!({"type": "tool_use", "id": "toolu_01", "name": "Write",
        "input": {"file_path": text_of(&files.join("a.txt")), "content": "one\n"}});
    let bash = |id: &str, command: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command, "description": "x"}});
    let script = json!({"main": [
        [{"type": "text", "text": "First."}, write],
        [bash("toolu_02", "echo two >> a.txt; exit 3")],
        [{"type": "tool_use", "id": "toolu_03", "name": "mcp__backstitch__stitch", "input": {"script": "echo s > s"}}],
        [{"type": "text", "text": "Mended."}],
        [bash("toolu_05", "test -e ../go || { echo half > half; exec sleep 600; }")],
        [{"type": "text", "text": "Late."}],
    ]});
    let url = model(move |request| Some(claude_events(&script, request)));
    let path = format!("{}:{}", stage.path("programs").display(), std::env::var("PATH").unwrap());
    let home = text_of(&stage.path("home"));
    let stage = stage
        .with_variable("PATH", &path)
        .with_variable("HOME", &home)
        .with_variable("ANTHROPIC_BASE_URL", &url)
        .with_variable("ANTHROPIC_AUTH_TOKEN", "sk-test")
        .with_variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    let output = stage.run(&["run", "Mend it", "--agent", &agent]).worked_quietly();
    assert!(output.contains("Mended."), "{output}");
    assert_eq!(stage.file("a.txt").as_deref(), Some("one\ntwo\n"));
    assert_eq!(stage.file("s").as_deref(), Some("s\n"));
    let session = stage.session();
    let log = stage.run(&["log", &session]).worked_quietly();
    for part in ["calls Write", "calls Bash", "calls stitch"] {
        assert_eq!(log.matches(part).count(), 1, "{part}\n{log}");
    }
    let fork = stage.json(&["fork", &session]);
    // Interrupted inside of a command, it is rolled back, and the program does not learn that a person rejected it.
    let child = stage.command(&["ask", &session, "More"]).spawn().unwrap();
    wait_until("the command of the model", || files.join("half").exists());
    let ran = interrupt(child);
    assert!(ran.output.contains("paused") || ran.errors.contains("paused"), "{}\n{}", ran.output, ran.errors);
    assert_eq!(stage.file("half"), None);
    let log = stage.run(&["log", &session]).worked_quietly();
    assert!(log.contains("was interrupted") && !log.contains("want to proceed"), "{log}");
    // Killed inside of a command, it takes the command with it, and continues.
    let mut child = stage.command(&["resume", &session]).spawn().unwrap();
    wait_until("the command of the model", || files.join("half").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    stage.write("go", "");
    let child = stage.command(&["resume", &session]).spawn().unwrap();
    let output = ended(child).worked_quietly();
    assert!(!output.is_empty());
    assert_eq!(stage.file("half"), None);
    // The fork knows the conversation up to where it began, and works in its own directory.
    let fork = fork["session"].as_str().unwrap().to_owned();
    let output = stage.run(&["ask", &fork, "More"]).worked_quietly();
    assert!(output.contains("Late."), "{output}");
    let log = stage.run(&["log", &fork]).worked_quietly();
    assert!(!log.contains("does not have the conversation"), "{log}");
}
