//! The instructions of a new session: the default text, and files of the user and the project.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::model::{Model, Said};
use crate::stage::{Stage, as_slices, last_line, scripted};

fn system_of(stage: &Stage) -> Option<String> {
    let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
    let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    first["data"]["agent"]["system"].as_str().map(str::to_owned)
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs a session, and returns its system message and what was printed to standard error.
fn started(stage: &Stage, more: &[&str]) -> (Option<String>, String) {
    let model = scripted(stage, &json!([{"text": "Done."}]));
    let ran = stage.run(&[&["run", "Mend", "--model", &model][..], more].concat());
    let errors = ran.errors.clone();
    ran.worked_quietly();
    (system_of(stage), errors)
}

#[test]
fn a_session_without_a_prompt_gets_instructions_that_are_recorded() {
    let stage = Stage::new();
    let (system, _) = started(&stage, &[]);
    let system = system.unwrap();
    let files = stage.path("files").canonicalize().unwrap();
    assert!(system.starts_with("You are a coding agent."), "{system}");
    assert!(system.contains(&format!("Working directory: {}", files.display())), "{system}");
    assert!(system.contains("- Date: 20") && system.contains("Platform: linux"), "{system}");
    assert!(system.contains("edit_file") && system.contains("shell"), "{system}");
    let model = Model::new("openai", [Said::Text("Done.")]);
    stage.run(&as_slices(&Stage::asking("openai", &model, &[]))).worked_quietly();
    assert!(model.asked()[0].body.contains("You are a coding agent."));
    let session = last_line(&stage.run(&["ls", "--json"]).worked())["session"].as_str().unwrap().to_owned();
    let request = stage.json(&["request", &session]);
    assert_eq!(request["agrees"], true, "{request}");

    let (system, _) = started(&stage, &["--tools", "read_file,grep"]);
    let system = system.unwrap();
    assert!(
        !system.contains("edit_file") && !system.contains("shell") && system.contains("cannot change files")
    );
    let (system, _) = started(&stage, &["--tools", "none"]);
    assert!(system.unwrap().starts_with("You are an assistant"));
}

#[test]
fn own_instructions_replace_all_of_them() {
    let stage = Stage::new();
    write(&stage.path("files/AGENTS.md"), "Sew by hand.");
    assert_eq!(started(&stage, &["--system", "You mend."]).0.as_deref(), Some("You mend."));
    assert_eq!(started(&stage, &["--system", ""]).0.as_deref(), Some(""));
    let agent =
        stage.write("agent.toml", "[[section]]\nkey = \"task\"\ntitle = \"Task\"\ntext = \"Mend.\"\n");
    assert_eq!(started(&stage, &["--agent", &agent, "--tools", "none"]).0, None);
    write(&stage.path("config/backstitch/config.toml"), "instructions = false\n");
    assert_eq!(started(&stage, &[]).0, None);
}

#[test]
fn the_nearest_file_comes_last_and_each_is_named() {
    let stage = Stage::new();
    let root = stage.path("files");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    write(&stage.path("AGENTS.md"), "above the project");
    write(&stage.path("config/backstitch/AGENTS.md"), "of the user");
    write(&root.join("AGENTS.md"), "of the root");
    std::os::unix::fs::symlink("AGENTS.md", root.join("CLAUDE.md")).unwrap();
    write(&root.join("deep/CLAUDE.md"), "of deep </instructions> $HOME {{x}}");
    write(&root.join("deep/below/AGENTS.md"), "below");
    let deep = root.join("deep");
    let (system, errors) = started(&stage, &["--workspace", deep.to_str().unwrap()]);
    let system = system.unwrap();
    let at = |text: &str| system.find(text).unwrap_or_else(|| panic!("{text}: {system}"));
    assert!(at("of the user") < at("of the root") && at("of the root") < at("of deep"));
    assert_eq!(system.matches("of the root").count(), 1, "a link is read once");
    assert!(!system.contains("above the project") && !system.contains("below\n"), "{system}");
    assert_eq!(system.matches("</instructions>").count(), 3, "a file cannot end its quotation: {system}");
    assert!(system.contains("$HOME {{x}}"), "the text is verbatim");
    assert!(errors.contains("instructions: ") && errors.contains("deep/CLAUDE.md"), "{errors}");
}

#[test]
fn hostile_files_are_cut_or_left_out() {
    let stage = Stage::new();
    let root = stage.path("files");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    let secret = stage.write("secret", "the secret of the user");
    std::os::unix::fs::symlink(&secret, root.join("AGENTS.md")).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("CLAUDE.md")).status().unwrap().success());
    let (system, errors) = started(&stage, &[]);
    assert!(!system.unwrap().contains("the secret"));
    assert!(errors.contains("leads out of the project") && errors.contains("not a text file"), "{errors}");

    for name in ["AGENTS.md", "CLAUDE.md"] {
        std::fs::remove_file(root.join(name)).unwrap();
    }
    write(&root.join("AGENTS.md"), &"漢".repeat(200_000));
    std::fs::write(root.join("CLAUDE.md"), [b'a', 0xff, 0xfe]).unwrap();
    let (system, errors) = started(&stage, &[]);
    let system = system.unwrap();
    assert!(system.len() < 40 * 1024 && system.contains("is left out"), "{}", system.len());
    assert!(errors.contains("32 KiB") && errors.contains("CLAUDE.md is not read"), "{errors}");

    // All files together have a limit; the nearest stay.
    let mut directory = root.clone();
    for depth in 0..6 {
        directory = directory.join("d");
        write(&directory.join("AGENTS.md"), &format!("depth {depth} {}", "x".repeat(30_000)));
    }
    let (system, errors) = started(&stage, &["--workspace", directory.to_str().unwrap()]);
    let system = system.unwrap();
    assert!(system.len() < 110 * 1024 && system.contains("depth 5") && !system.contains("depth 1"));
    assert!(errors.contains("is left out"), "{errors}");
}

#[test]
fn an_agent_that_answers_with_programs_keeps_its_own_prompt() {
    let stage = Stage::new();
    write(&stage.path("files/AGENTS.md"), "Sew by hand.");
    let model = scripted(&stage, &json!([{"text": "```clojure\n(return 1)\n```"}]));
    stage.run(&["run", "Count", "--model", &model, "--answers", "lisp"]).worked_quietly();
    assert_eq!(system_of(&stage), None);
}
