//! Missions made of templates, and what an agent hands down.

use backstitch_repl::{LispAgent, LispOptions, MissionError, fill_mission, placeholders};
use serde_json::{Map, Value as Json, json};

fn values() -> Map<String, Json> {
    let values =
        json!({"who": "Ada", "rows": [{"id": 7, "_key": "s3cret"}], "_token": "t0ken", "none": null});
    values.as_object().cloned().unwrap()
}

#[test]
fn placeholders_are_filled() {
    let fill = |template: &str| fill_mission(template, &values()).unwrap();
    assert_eq!(fill("Greet {{who}}, twice: {{ who }}."), "Greet Ada, twice: Ada.");
    assert_eq!(fill("First: {{rows.0.id}} of {{rows}} {{none}}"), "First: 7 of [{\"id\":7}] null");
    assert_eq!(fill("a \\{{template}} and {one} }}"), "a {{template}} and {one} }}");
    assert_eq!(placeholders("{{a}} {{ b.c }} \\{{no}} {{a}} {{"), ["a", "b"]);
}

#[test]
fn what_is_missing_or_hidden_is_an_error() {
    let fails = |template: &str| fill_mission(template, &values()).unwrap_err();
    let error = fails("{{whom}}");
    assert_eq!(
        error.to_string(),
        "the mission needs {{whom}}, and there is no such value; there are: who, rows, none"
    );
    assert!(matches!(fails("{{rows.5}}"), MissionError::Missing { .. }));
    assert!(matches!(fails("{{_token}}"), MissionError::Firewalled { .. }));
    assert!(matches!(fails("{{rows.0._key}}"), MissionError::Firewalled { .. }));
    assert!(matches!(fails("{{}}"), MissionError::NotAName { .. }));
    assert!(matches!(fails("{{a b}}"), MissionError::NotAName { .. }));
    assert_eq!(fails("x {{who}} {{open"), MissionError::Unclosed { at: 10 });
}

#[test]
fn options_have_defaults_and_bounds() {
    let options = LispOptions::default();
    assert_eq!((options.max_turns, options.turn_budget, options.max_depth), (5, 20, 3));
    assert_eq!(LispOptions { turn_budget: 3, ..options.clone() }.most_turns(), 3);
    assert_eq!(LispOptions { turn_budget: 0, ..options }.most_turns(), 1);
}

#[test]
fn the_system_message_says_how_to_answer() {
    let agent =
        LispAgent::new().with_signature("{count :int}".parse().unwrap()).with_instructions("You count.");
    let system = agent.system();
    assert!(system.starts_with("You count.\n\n"));
    assert!(system.contains("The answer has to fit `{count :int}`. For example: `(return {:count 42})`."));
    assert!(system.contains("*1"));
    let single = agent.with_max_turns(1).system();
    assert!(single.contains("The value of its last expression is the answer"));
    assert!(!single.contains("*1"));
    assert!(single.len() < 4_000, "{}", single.len());
}
