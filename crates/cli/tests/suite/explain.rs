//! Error codes: printed with each error, and explained by `backstitch explain`.

use serde_json::{Value, json};

use crate::command::backstitch;
use crate::stage::{Stage, last_line, scripted};

#[test]
fn a_code_is_explained_by_its_page() {
    let page = backstitch(&["explain", "store_full"]).worked();
    assert!(page.starts_with("# store_full\n\nThe store has no room left.\n"), "{page}");
    assert!(page.contains("backstitch gc"), "{page}");
    assert_eq!(backstitch(&["explain", "Store-Full"]).worked(), page, "also in another spelling");
    let found: Value =
        serde_json::from_str(&backstitch(&["explain", "store_full", "--json"]).worked()).unwrap();
    let expected =
        json!({"v": 1, "code": "store_full", "summary": "The store has no room left.", "page": page});
    assert_eq!(found, expected);
}

#[test]
fn all_codes_are_listed() {
    let listed = backstitch(&["explain"]).worked();
    for word in ["usage", "session_held", "workspace_gone", "rate_limited", "effect_unknown"] {
        assert!(listed.lines().any(|line| line.starts_with(&format!("{word} "))), "{word}: {listed}");
    }
    let as_json = backstitch(&["explain", "--json"]).worked();
    assert!(listed.starts_with("code "), "{listed}");
    assert_eq!(as_json.lines().count() + 1, listed.lines().count());
    for line in as_json.lines() {
        let code: Value = serde_json::from_str(line).unwrap();
        let word = code["code"].as_str().unwrap();
        assert!(backstitch(&["explain", word]).worked().starts_with(&format!("# {word}\n")), "{word}");
        assert!(code["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{word}");
    }
}

#[test]
fn an_unknown_code_names_near_ones() {
    let refused = backstitch(&["explain", "store_ful"]).called_wrongly();
    assert!(refused.contains("did you mean `store_full`?"), "{refused}");
    assert!(refused.contains("`backstitch explain` lists all codes"), "{refused}");
}

#[test]
fn errors_name_their_code() {
    let stage = Stage::new();
    let codes = |arguments: &[&str]| {
        let text = stage.run(arguments).errors;
        let as_json = stage.run(&[arguments, &["--json"]].concat());
        let event = last_line(&as_json.output);
        assert_eq!((&event["v"], &event["event"]), (&json!(1), &json!("error")), "{as_json:?}");
        let code = event["code"].as_str().unwrap().to_owned();
        let line = format!("code: {code}; `backstitch explain {code}` says more");
        assert_eq!(text.lines().last(), Some(&*line), "{text}");
        let message = event["message"].as_str().unwrap();
        assert!(text.starts_with(&format!("error: {message}\n")), "{text}");
        backstitch(&["explain", &code]).worked();
        code
    };
    assert_eq!(codes(&["ls"]), "store_not_found");
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Do it", "--model", &model]).worked_quietly();
    assert_eq!(codes(&["show", "00000000"]), "session_not_found");
    assert_eq!(codes(&["show", "0"]), "usage");
    assert_eq!(codes(&["undo"]), "nothing_to_undo");
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    assert_eq!(codes(&["cancel", &session]), "nothing_to_cancel");
    assert_eq!(codes(&["pause", &session]), "nothing_to_pause");
    assert_eq!(codes(&["rewind", &session, "9999"]), "point_not_found");
    assert_eq!(codes(&["request", &session, "9"]), "request_not_found");
    assert_eq!(codes(&["resolve", &session, "-", "continue"]), "decision_refused");
    assert_eq!(codes(&["run", "Do it", "--model", "scripted:missing.toml"]), "script");
}

#[test]
fn a_failed_evaluation_names_its_code() {
    let stage = Stage::new();
    let call = json!({"calls": [{"name": "shell", "arguments": {"command": "true"}}]});
    let model = scripted(&stage, &json!([call, call]));
    let ran = stage.run(&["run", "Do it", "--model", &model, "--max-turns", "1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let last = ran.errors.lines().last();
    assert_eq!(last, Some("code: max_turns; `backstitch explain max_turns` says more"), "{ran:?}");
}

#[test]
fn a_stopped_run_reports_its_error_once() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done.", "fail": [{"kind": "auth"}]}]));
    let ran = stage.run(&["run", "Do it", "--json", "--model", &model]);
    let lines: Vec<Value> = ran.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["event"] != "error"), "{ran:?}");
    assert_eq!(lines.last().unwrap()["kind"], "auth");
    let last = ran.errors.lines().last();
    assert_eq!(last, Some("code: auth; `backstitch explain auth` says more"), "{ran:?}");
}

#[test]
fn hints_name_commands_that_can_be_run() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Do it", "--model", &model]).worked_quietly();
    let refused = stage.run(&["show", "00000000"]).failed();
    let store = stage.path("store/store.db");
    let hint = format!("hint: `backstitch ls --store {}` lists the sessions", store.display());
    assert!(refused.lines().any(|line| line == hint), "{refused}");
}
