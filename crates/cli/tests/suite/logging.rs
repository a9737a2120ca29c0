//! The log of the command: where it goes, and what is not in it.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::model::{Model, Said};
use crate::stage::{Stage, as_slices, scripted, text_of};

fn model(stage: &Stage) -> String {
    let call = json!({"name": "shell", "arguments": {"command": "true"}});
    scripted(stage, &json!([{"calls": [call]}, {"text": "Done."}]))
}

#[test]
fn a_log_file_is_private_and_grows() {
    let stage = Stage::new();
    let model = model(&stage);
    let log = text_of(&stage.path("command.log"));
    let run = ["run", "Sew", "--model", &model, "--log-file", &log];
    assert_eq!(stage.run(&run).worked_quietly(), "Done.\n");
    let first = std::fs::read_to_string(&log).unwrap();
    assert!(first.contains("INFO") && first.contains("backstitch"), "{first}");
    assert!(!first.contains('\u{1b}'), "{first}");
    let mode = std::fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(stage.run(&run).worked_quietly(), "Done.\n");
    assert!(std::fs::read_to_string(&log).unwrap().len() > first.len());
}

#[test]
fn the_log_goes_to_standard_error_and_never_to_standard_output() {
    let stage = Stage::new();
    let model = model(&stage);
    let quiet = stage.run(&["run", "Sew", "--model", &model]);
    assert!(!quiet.errors.contains("INFO"), "nothing is logged by default: {}", quiet.errors);
    let ran = stage.run(&["run", "Sew", "--model", &model, "--verbose"]);
    assert!(ran.errors.contains("INFO"), "{}", ran.errors);
    assert_eq!(ran.worked_quietly(), "Done.\n");
    let stage = stage.with_variable("RUST_LOG", "trace");
    let ran = stage.run(&["run", "Sew", "--model", &model, "--json"]);
    assert!(ran.errors.contains("DEBUG"), "{}", ran.errors);
    for line in ran.worked_quietly().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn the_environment_names_a_log_file() {
    let stage = Stage::new();
    let log = text_of(&stage.path("command.log"));
    let model = model(&stage);
    let stage = stage.with_variable("BACKSTITCH_LOG", &log);
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    assert!(std::fs::read_to_string(&log).unwrap().contains("INFO"));
}

#[test]
fn a_key_is_never_logged() {
    const KEY: &str = "sk-very-secret-0123456789";
    for (provider, variable) in [("openai", "OPENAI_API_KEY"), ("gemini", "GOOGLE_API_KEY")] {
        let stage = Stage::new().with_variable(variable, KEY).with_variable("RUST_LOG", "trace");
        let model = Model::new(provider, [Said::Text("Looked.")]);
        let log = text_of(&stage.path("command.log"));
        let more = ["--log-file", &log, "-vv", "--system", KEY];
        stage.run(&as_slices(&Stage::asking(provider, &model, &more))).worked_quietly();
        let logged = std::fs::read_to_string(&log).unwrap();
        assert!(logged.contains("127.0.0.1") || logged.contains("DEBUG"), "{logged}");
        assert!(!logged.contains(KEY), "{logged}");
    }
}

#[test]
fn a_log_that_cannot_be_written_is_an_error() {
    let stage = Stage::new();
    let directory = text_of(&stage.path("files"));
    let refused = stage.run(&["ls", "--log-file", &directory]).failed();
    assert!(refused.contains("the log file") && refused.contains("code: io"), "{refused}");
    let stage = stage.with_variable("RUST_LOG", "backstitch=loud");
    assert!(stage.run(&["ls"]).called_wrongly().contains("RUST_LOG"));
    assert!(stage.run(&["ls", "--quiet", "--verbose"]).called_wrongly().contains("--quiet"));
}

#[test]
fn quiet_leaves_results_and_errors() {
    let stage = Stage::new();
    let model = model(&stage);
    let ran = stage.run(&["run", "Sew", "--model", &model, "--quiet"]);
    assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("Done.\n", ""));
    let paused = stage.run(&["run", "Ask", "--model", &model, "--approve", "ask", "-q"]);
    assert_eq!(paused.code, Some(3));
    assert!(paused.errors.starts_with("paused") && paused.errors.contains("resume"), "{}", paused.errors);
    let failed = stage.run(&["run", "Fail", "--model", &model, "--max-turns", "1", "-q"]);
    assert!(failed.errors.contains("code: max_turns"), "{}", failed.errors);
}
