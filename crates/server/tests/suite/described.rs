//! The description of the API, and that nothing of it changes anything without `--write`.

use backstitch_server::description;
use serde_json::{Value, json};

use crate::stage::{Stage, StageOptions};

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

/// All operations: method, path and description.
fn operations(description: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            all.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    all
}

/// With `BACKSTITCH_UPDATE=1` it writes the page.
#[test]
fn the_kept_description_is_that_of_the_server() {
    let text = format!("{}\n", serde_json::to_string_pretty(&description()).unwrap());
    if std::env::var_os("BACKSTITCH_UPDATE").is_some() {
        std::fs::write(KEPT, &text).unwrap();
    }
    let kept = std::fs::read_to_string(KEPT).unwrap_or_default();
    assert!(
        kept == text,
        "docs/openapi.json is not what the server describes: run this test with BACKSTITCH_UPDATE=1"
    );
    let stage = Stage::new(StageOptions::default());
    assert_eq!(stage.client.get("/api/v1/openapi.json"), description());
}

#[test]
fn the_description_is_whole() {
    let description = description();
    assert_eq!(description["openapi"], "3.1.0");
    let mut ids = std::collections::BTreeSet::new();
    for (method, path, operation) in operations(&description) {
        assert!(ids.insert(operation["operationId"].to_string()), "{method} {path}");
        assert_eq!(operation.get("requestBody").is_some(), method != "GET", "{method} {path}");
        for part in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            let parameters = operation["parameters"].as_array().unwrap();
            assert!(parameters.iter().any(|parameter| parameter["name"] == part), "{method} {path}");
        }
    }
    // What a body has to have, and what an answer always has.
    let schemas = &description["components"]["schemas"];
    assert_eq!(schemas["NewSession"]["required"], json!(["mission"]));
    assert_eq!(schemas["StepBody"]["required"], Value::Null);
    assert!(schemas["CallsPage"]["required"].as_array().unwrap().contains(&json!("next")));
    // Every reference leads to a schema.
    let text = description.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(description.pointer(pointer).is_some(), "{pointer}");
    }
}

#[test]
fn without_write_every_route_that_changes_something_is_refused() {
    let stage = Stage::new(StageOptions { write: false, ..StageOptions::default() });
    let mut refused = 0;
    for (method, path, _) in operations(&description()) {
        let target = path.replace("{session}", "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d");
        let target = target.replace(['{', '}'], "");
        // Bodies that could be used, ones that could not, and none.
        for body in [json!({}).to_string(), "{".to_owned(), String::new()] {
            if method == "GET" {
                continue;
            }
            let answer =
                stage.client.send(&method, &target, &["content-type: application/json"], body.as_bytes());
            assert_eq!(answer.status, 403, "{method} {path}");
            let problem: Value = serde_json::from_str(&answer.text()).unwrap();
            assert_eq!(problem["code"], "server_read_only", "{method} {path}");
            refused += 1;
        }
    }
    assert!(refused > 3 * 10, "{refused}");
    assert_eq!(stage.client.get("/api/v1/sessions")["sessions"], json!([]));
}
