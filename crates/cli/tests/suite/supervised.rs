//! The command as the supervisor of what its agents start.
#![cfg(target_os = "linux")]

use serde_json::json;

use crate::pty::Pty;
use crate::stage::{Stage, scripted};

/// Prints its parent, and whether it has a terminal.
const SHOWS: &str = "echo \"parent: $(tr '\\0' ' ' < /proc/$PPID/cmdline)\"; \
    if (: > /dev/tty) 2> /dev/null; then echo has-terminal; else echo has-none; fi";

#[test]
fn commands_have_a_supervisor_and_not_the_terminal() {
    for sandbox in ["workspace", "off"] {
        // With a key, the command executes itself again first.
        let stage = Stage::confined().with_variable("OPENAI_API_KEY", "sk-test-0123456789abcdef");
        let call = json!({"name": "shell", "arguments": {"command": SHOWS}});
        let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
        let arguments = ["run", "Do it", "--model", &model, "--sandbox", sandbox];
        let (code, shown) = Pty::start(&stage, &arguments, 120, 40).finish();
        assert_eq!(code, Some(0), "{shown}");
        let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
        assert!(log.contains("parent: call-supervisor") && log.contains("has-none\\n"), "{log}");
        assert!(!log.contains("has-terminal\\n"), "{log}");
    }
}

#[test]
fn arguments_do_not_make_the_command_a_supervisor() {
    let stage = Stage::new();
    for words in [&["call-supervisor"][..], &["--protocol=1-6b5c0d1e"]] {
        let ran = stage.run(words);
        assert_eq!(ran.code, Some(2), "{words:?}");
    }
}
