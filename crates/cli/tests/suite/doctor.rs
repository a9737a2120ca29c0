//! `doctor` and `init`.

use serde_json::{Value, json};

use crate::stage::{Stage, scripted};

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn a_machine_without_problems_is_fine_and_no_key_is_printed() {
    let key = "sk-hunter2-0123456789";
    let stage =
        Stage::new().with_variable("OPENAI_API_KEY", key).with_variable("BACKSTITCH_MODEL", "openai:x");
    let ran = stage.run(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.output, ran.errors);
    assert!(
        ran.output.contains("openai:x") && ran.output.contains("OPENAI_API_KEY is set"),
        "{}",
        ran.output
    );
    assert!(!ran.output.contains(key) && !ran.errors.contains(key));
    let report = stage.json(&["doctor"]);
    assert_eq!((&report["ok"], &check(&report, "shell")["status"]), (&json!(true), &json!("ok")));
    assert!(!stage.path("store").exists() && !stage.path("state").exists(), "nothing is created");
}

#[test]
fn each_problem_says_what_to_do() {
    let stage = Stage::new().with_variable("BACKSTITCH_MODEL", "openai:x");
    let report = |arguments: &[&str]| {
        let ran = stage.run(&[&["doctor", "--json"][..], arguments].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.output);
        let report: Value = serde_json::from_str(ran.output.trim()).unwrap();
        let broken = report["checks"].as_array().unwrap().iter().filter(|check| check["status"] == "broken");
        assert!(
            broken.clone().all(|check| check["advice"].as_str().is_some_and(|advice| !advice.is_empty()))
        );
        report
    };
    assert_eq!(check(&report(&[]), "key")["status"], "broken");
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    std::fs::write(stage.path("config/backstitch/config.toml"), "modle = 1\n").unwrap();
    let settings = report(&[]);
    assert!(check(&settings, "settings")["text"].as_str().unwrap().contains("config.toml:1: modle"));
    std::fs::create_dir_all(stage.path("store")).unwrap();
    stage.write("store/store.db", "no store at all");
    assert_eq!(check(&report(&[]), "store")["status"], "broken");
    std::fs::write(stage.path("files/backstitch.toml"), "max_turns = \"\u{1b}[2J\"\n").unwrap();
    let ran = stage.run(&["doctor"]);
    assert!(!ran.output.contains('\u{1b}') && ran.output.contains("backstitch.toml:1"), "{:?}", ran.output);
    std::fs::write(stage.path("files/backstitch.toml"), "max_turns = 3\n").unwrap();
    assert_eq!(check(&report(&[]), "project")["status"], "note");
}

#[test]
fn init_writes_files_that_work_and_overwrites_nothing() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let wrote = stage.run(&["init"]).worked();
    assert!(wrote.contains("agent.toml"), "{wrote}");
    let text = stage.file("agent.toml").unwrap();
    // The file is of the user, who asked for it, so it is trusted as it is.
    stage.run(&["run", "Mend", "--agent", "agent.toml", "--model", &model]).worked_quietly();
    let errors = stage.run(&["init"]).failed();
    assert!(errors.contains("exists already") && errors.contains("already_exists"), "{errors}");
    assert_eq!(stage.file("agent.toml").unwrap(), text);
    stage.run(&["init", "--project"]).worked();
    stage.run(&["init", "--user"]).worked();
    stage.run(&["run", "Mend", "--model", &model]).worked_quietly();
    stage.run(&["init", "--user"]).failed();
    stage.run(&["init", "other.toml", "--user"]).called_wrongly();
    assert_eq!(stage.run(&["init", "no/such/directory/agent.toml"]).code, Some(1));
}
