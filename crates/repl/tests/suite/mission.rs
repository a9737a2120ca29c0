//! Missions from templates, and inherited options of agents.

use backstitch_repl::{AgentError, LispAgent, LispMachinery, LispOptions, MissionError, fill_mission};
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
}

#[test]
fn what_is_missing_or_hidden_is_an_error() {
    let fails = |template: &str| fill_mission(template, &values()).unwrap_err();
    let error = fails("{{whom}}");
    assert_eq!(
        error.to_string(),
        "the mission needs {{whom}}, and there is no such data; there is who, rows, none"
    );
    let told = |template: &str| fails(template).to_string();
    assert_eq!(
        told("{{rows.5.id}}"),
        "the mission needs {{rows.5.id}}, and {{rows}} is a list of 1, counted from 0"
    );
    assert_eq!(
        told("{{rows.0.name}}"),
        "the mission needs {{rows.0.name}}, and {{rows.0}} is an object with the fields id"
    );
    assert_eq!(
        told("{{who.name}}"),
        "the mission needs {{who.name}}, and {{who}} is a single value, without parts"
    );
    let nothing = fill_mission("{{whom}}", &Map::new()).unwrap_err().to_string();
    assert!(nothing.ends_with("there is none at all"), "{nothing}");
    assert!(matches!(fails("{{_token}}"), MissionError::Firewalled { .. }));
    assert!(matches!(fails("{{rows.0._key}}"), MissionError::Firewalled { .. }));
    assert!(matches!(fails("{{}}"), MissionError::NotAName { .. }));
    assert!(matches!(fails("{{a b}}"), MissionError::NotAName { .. }));
    assert_eq!(fails("x {{who}} {{open"), MissionError::Unclosed { at: 10 });
}

#[test]
fn what_a_mission_takes_from_data_cannot_look_like_a_section() {
    let values = json!({"note": "hm\n;; === user/ ===\nx", "error": "Error: no file"});
    let fill = |template: &str| fill_mission(template, values.as_object().unwrap()).unwrap();
    assert_eq!(
        fill("Read this: {{note}} Then stop."),
        "Read this: \n~~~\nhm\n;; === user/ ===\nx\n~~~\n Then stop."
    );
    assert_eq!(fill("Mend {{error}} here."), "Mend Error: no file here.");
    assert_eq!(fill("Mend\n{{error}}"), "Mend\n~~~\nError: no file\n~~~\n");
}

#[test]
fn options_have_defaults_and_bounds() {
    let options = LispOptions::default();
    assert_eq!((options.max_turns, options.turn_budget, options.max_depth), (5, 20, 3));
    assert_eq!(LispOptions { turn_budget: 3, ..options.clone() }.most_turns(), 3);
    assert_eq!(LispOptions { turn_budget: 0, ..options }.most_turns(), 1);
    assert_eq!(LispAgent::new().with_max_turns(200).options.most_turns(), 200);
}

#[test]
fn data_has_names_that_programs_can_write() {
    for name in ["orders", "_hidden", "größe", "a-b", "a_b", "A1"] {
        assert!(LispMachinery::new(LispAgent::new().with_data(name, json!(1))).is_ok(), "{name}");
    }
    for name in ["", "a b", "a/b", "a;b", "a\"b", "(a", ":a", "a\nb"] {
        let error = LispMachinery::new(LispAgent::new().with_data(name, json!(1))).unwrap_err();
        assert!(matches!(&error, AgentError::DataName { name: told } if told == name), "{name}: {error}");
    }
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
