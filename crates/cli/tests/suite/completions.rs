//! Completion in shells: scripts, and the candidates that the command offers them.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::command::backstitch;
use crate::stage::{Stage, scripted, text_of};

/// A stage with a session whose mission would control a terminal.
fn stage() -> Stage {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Sew \u{1b}[2J\u{202e}it", "--model", &model]).worked_quietly();
    stage
}

/// The candidates for the last word of a command line.
fn candidates(stage: &Stage, shell: &str, words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_backstitch"))
        .current_dir(stage.path("files"))
        .env("BACKSTITCH_COMPLETE", shell)
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .env("_CLAP_IFS", "\n")
        .arg("--")
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = backstitch(&["completions", shell]).worked();
        assert!(script.contains("BACKSTITCH_COMPLETE") && script.contains("backstitch"), "{script}");
    }
    assert!(backstitch(&["completions", "tcsh"]).called_wrongly().contains("bash"));
}

#[test]
fn commands_options_and_sessions_are_completed() {
    let stage = stage();
    let session = stage.session();
    let short = session.rsplit('-').next().unwrap();
    let store = text_of(&stage.path("store/store.db"));
    assert!(candidates(&stage, "bash", &["backstitch", "sho"]).contains("show"));
    assert!(candidates(&stage, "bash", &["backstitch", "show", "--st"]).contains("--state"));
    assert!(candidates(&stage, "bash", &["backstitch", "explain", "store_f"]).contains("store_full"));
    for command in ["show", "log", "rm", "resume", "fork"] {
        let found = candidates(&stage, "bash", &["backstitch", "--store", &store, command, ""]);
        assert!(found.contains(short), "{command}: {found}");
    }
    // Without a store there is nothing to offer, and no error.
    let found = candidates(&stage, "bash", &["backstitch", "--store", "/nowhere", "show", ""]);
    assert!(!found.contains(short), "{found}");
}

#[test]
fn descriptions_of_sessions_do_not_steer_the_terminal() {
    let stage = stage();
    let store = text_of(&stage.path("store/store.db"));
    for shell in ["zsh", "fish"] {
        let found = candidates(&stage, shell, &["backstitch", "--store", &store, "show", ""]);
        assert!(found.contains("idle"), "{found}");
        assert!(!found.contains(['\u{1b}', '\u{202e}']), "{found:?}");
    }
}

#[test]
fn bash_completes_sessions_with_the_script() {
    if Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let stage = stage();
    let session = stage.session();
    let short = session.rsplit('-').next().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_backstitch"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let script = "source <(backstitch completions bash); COMP_WORDS=(backstitch show ''); COMP_CWORD=2; \
        _clap_complete_backstitch backstitch '' show 2>/dev/null; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(stage.path("files"))
        .env("PATH", path)
        .env("BACKSTITCH_STORE", stage.path("store/store.db"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(short), "{text} {:?}", output.stderr);
}
