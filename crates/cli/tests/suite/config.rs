//! Settings of the user: where they come from, and what they change.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::stage::{Stage, scripted};

/// Writes the file of the user.
fn configured(stage: &Stage, text: &str) {
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    std::fs::write(stage.path("config/backstitch/config.toml"), text).unwrap();
}

/// The definition that the latest session was recorded with.
fn recorded(stage: &Stage) -> Value {
    let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
    let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    first["data"]["agent"].clone()
}

fn origins(stage: &Stage) -> Value {
    let shown = stage.json(&["config", "show"]);
    let settings = shown["settings"].as_array().unwrap().iter();
    settings
        .map(|one| (one["key"].as_str().unwrap().to_owned(), one.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn the_settings_of_the_user_are_defaults_of_a_new_session_and_are_recorded() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}, {"text": "Again."}]));
    let text = format!(
        "model = {model:?}\napprove = \"ask\"\nmax_turns = 7\ndeadline = \"10m\"\ntools = [\"read_file\", \"shell\"]\n\
         [budget]\ntokens = 1000\n[prices.\"openai:x\"]\ninput = 1\noutput = 2\n"
    );
    configured(&stage, &text);
    stage.run(&["run", "Mend"]).worked_quietly();
    let definition = recorded(&stage);
    assert_eq!(definition["model"], json!(model));
    assert_eq!(definition["approval"], json!({"default": "ask"}));
    assert_eq!((&definition["max_turns"], &definition["deadline"]), (&json!(7), &json!("600s")));
    assert_eq!(definition["tools"], json!(["read_file", "shell"]));
    assert_eq!(definition["budget"], json!({"tokens": 1000}));
    assert_eq!(definition["prices"]["openai:x"], json!({"input": 1.0, "output": 2.0}));
    // The session needs the file no more.
    configured(&stage, "");
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    assert_eq!(stage.run(&["ask", &session, "Once more"]).worked_quietly(), "Again.\n");
}

#[test]
fn the_environment_overrides_the_file_an_agent_file_both_and_an_option_all() {
    let stage = Stage::new().with_variable("BACKSTITCH_MODEL", "openai:from-environment");
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    configured(
        &stage,
        "model = \"openai:from-file\"\nmax_turns = 7\napprove = [\"shell\"]\ntools = \"none\"\n",
    );
    let model_of = |stage: &Stage| origins(stage)["model"].clone();
    let shown = model_of(&stage);
    assert_eq!(
        (&shown["value"], &shown["origin"]),
        (&json!("openai:from-environment"), &json!("environment"))
    );
    assert_eq!(shown["variable"], "BACKSTITCH_MODEL");
    let shown = origins(&stage);
    assert_eq!((&shown["max_turns"]["origin"], &shown["max_turns"]["line"]), (&json!("user"), &json!(2)));
    assert_eq!(shown["color"]["origin"], "default");
    let agent = format!("model = {model:?}\nmax_turns = 3\ntools = \"all\"\n[approval]\nshell = \"auto\"\n");
    let agent = stage.write("agent.toml", &agent);
    stage.run(&["run", "Mend", "--agent", &agent]).worked_quietly();
    let definition = recorded(&stage);
    assert_eq!((&definition["max_turns"], &definition["tools"]), (&json!(3), &json!("all")));
    assert_eq!(definition["approval"], json!({"shell": "auto"}));
    stage.run(&["run", "Mend", "--model", &model, "--max-turns", "2", "--approve", "ask"]).worked_quietly();
    let definition = recorded(&stage);
    assert_eq!((&definition["max_turns"], &definition["model"]), (&json!(2), &json!(model)));
    assert_eq!(definition["approval"], json!({"default": "ask"}));
}

#[test]
fn the_agent_file_and_the_store_may_be_settings() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    configured(&stage, "agent = \"tailor.toml\"\nstore = \"kept/store.db\"\n");
    let beside = stage.path("config/backstitch");
    std::fs::write(beside.join("tailor.toml"), format!("name = \"tailor\"\nmodel = {model:?}\n")).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_backstitch"));
    command
        .args(["run", "Mend"])
        .current_dir(stage.path("files"))
        .env("XDG_CONFIG_HOME", stage.path("config"));
    command.env("XDG_STATE_HOME", stage.path("state")).env_remove("BACKSTITCH_STORE");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(beside.join("kept/store.db").exists() && !stage.path("state/backstitch/stores").exists());
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_nothing_is_started() {
    let stage = Stage::new();
    for (text, expected) in [
        ("\nmodle = \"openai:x\"\n", "config.toml:2: modle: unknown field `modle`"),
        ("model = \"opnai:x\"\n", "config.toml:1: model: there is no provider"),
        ("base_url = \"http://me:secret@a/\"\n", "config.toml:1: base_url: "),
        ("[rules]\nalow = []\n", "did you mean `allow`"),
        ("max_turns = 0\n", "config.toml:1: max_turns: "),
        ("pager = true\n", "config.toml:1: pager: "),
        ("model = \"\u{1b}]0;x\u{7}\"\n", "config.toml:1"),
        ("[prices.\"openai:x\"]\ninput = 1\n", "missing field `output`"),
    ] {
        configured(&stage, text);
        for arguments in [&["run", "Mend"][..], &["ls"], &["config", "show"]] {
            let errors = stage.run(arguments).called_wrongly();
            assert!(errors.contains(expected) && errors.contains("code: config_file"), "{errors}");
            assert!(!errors.contains('\u{1b}'), "{errors:?}");
        }
    }
    assert!(!stage.path("store").exists());
    let large = format!("# {}\n", "x".repeat(300 * 1024));
    configured(&stage, &large);
    assert!(stage.run(&["ls"]).called_wrongly().contains("larger than"));
    // A file that is not text, and a directory in its place.
    std::fs::write(stage.path("config/backstitch/config.toml"), [0xff, 0xfe, 0]).unwrap();
    assert!(stage.run(&["ls"]).called_wrongly().contains("UTF-8"));
    std::fs::remove_file(stage.path("config/backstitch/config.toml")).unwrap();
    std::fs::create_dir(stage.path("config/backstitch/config.toml")).unwrap();
    stage.run(&["ls"]).called_wrongly();
    // Commands without settings work.
    stage.run(&["explain", "config_file"]).worked();
    let stage = Stage::new().with_variable("BACKSTITCH_MODEL", "nothing");
    assert!(stage.run(&["run", "Mend"]).called_wrongly().contains("BACKSTITCH_MODEL: "));
}

#[test]
fn set_keeps_comments_and_writes_a_private_file() {
    let stage = Stage::new();
    let path = stage.path("config/backstitch/config.toml");
    assert_eq!(stage.run(&["config", "path"]).worked().trim_end(), path.to_str().unwrap());
    stage.run(&["config", "set", "model", "openai:x"]).worked();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("# my settings\n{text}")).unwrap();
    stage.run(&["config", "set", "budget.tokens", "5000"]).worked();
    stage.run(&["config", "set", "rules.allow", "[\"read_file\"]"]).worked();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# my settings\nmodel = \"openai:x\"\n"), "{text}");
    let shown = stage.run(&["config", "show", "--origin"]).worked();
    assert!(shown.contains("budget.tokens = 5000") && shown.contains("config.toml:5"), "{shown}");
    assert!(toml::from_str::<toml::Table>(&shown).is_ok(), "{shown}");
    let errors = stage.run(&["config", "set", "colour", "always"]).called_wrongly();
    assert!(errors.contains("did you mean `color`"), "{errors}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "a refused value changes nothing");
    stage.run(&["config", "unset", "budget.tokens"]).worked();
    assert!(!std::fs::read_to_string(&path).unwrap().contains("tokens"));
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn without_a_home_there_are_no_settings_and_set_says_so() {
    let stage = Stage::new();
    let run = |arguments: &[&str]| {
        let mut command = stage.command(arguments);
        command.env_remove("HOME").env_remove("XDG_CONFIG_HOME").output().unwrap()
    };
    assert!(run(&["config", "show"]).status.success());
    let refused = run(&["config", "set", "model", "openai:x"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("neither XDG_CONFIG_HOME nor HOME"));
}
