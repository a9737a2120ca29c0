//! A client that others' generator makes from `docs/openapi.json` drives a whole life of a session.
//!
//! The generator is openapi-python-client, in the virtual environment that `BACKSTITCH_API_PACKAGES` names. Without it the test says so and passes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use crate::serve::agent;
use crate::stage::{Stage, text_of};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/life.py");
const DESCRIPTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

fn worked(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}\n{output}\n{errors}");
    output.into_owned()
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_generated_client_drives_a_whole_life() {
    let packages = std::env::var_os("BACKSTITCH_API_PACKAGES").map(PathBuf::from);
    let Some(programs) =
        packages.map(|packages| packages.join("venv/bin")).filter(|programs| programs.is_dir())
    else {
        eprintln!(
            "SKIPPED: openapi-python-client is not installed, so the API is NOT tried with a foreign client"
        );
        return;
    };
    let stage = Stage::new();
    // Nothing may be left out of the client, so a warning is an error. Its code is not formatted.
    let settings = stage.write("generator.yml", "post_hooks: []\n");
    let client = stage.path("client/backstitch_client");
    let generator = programs.join("openapi-python-client");
    let mut generate = Command::new(generator);
    generate.args(["generate", "--meta", "none", "--fail-on-warning", "--path", DESCRIPTION]);
    worked(generate.args(["--config", &settings, "--output-path"]).arg(&client));

    let (go, directory) = (stage.path("go"), stage.path("files"));
    let command = format!(
        "echo half > hem.txt; while [ ! -e {} ]; do sleep 0.05; done; echo whole > hem.txt",
        go.display()
    );
    let agent = agent(&stage, &[&command], "ask");
    // A fork works in a directory beside that of its parent.
    let root = text_of(&stage.path(""));
    let serve = stage.command(&["serve", "--listen", "0", "--write", "--root", &root, "--agent", &agent]);
    let words: Vec<&str> = [serve.get_program()].into_iter().chain(serve.get_args()).map(text).collect();
    let work =
        json!({ "serve": words, "directory": directory, "go": go, "written": directory.join("hem.txt") });
    let work = stage.write("work.json", &work.to_string());
    let mut life = Command::new(programs.join("python"));
    life.args([SCRIPT, &work]).env("PYTHONPATH", client.parent().unwrap_or(Path::new("/")));
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => life.env(name, value),
            None => life.env_remove(name),
        };
    }
    assert_eq!(worked(&mut life), "lived\n");
    assert!(stage.run(&["ls", "--json"]).output.is_empty(), "everything was deleted");
}

fn text(word: &std::ffi::OsStr) -> &str {
    word.to_str().unwrap()
}
