//! Structured answers: their schema, their extraction, and their reducers.

use backstitch_core::prompt::{Output, Prompt, Section};
use backstitch_core::session::{Event, SliceOp};
use backstitch_macros::Slice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::samples::{items, session};

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Slice)]
#[slice(name = "tear", crate = backstitch_core::__private)]
struct Tear {
    /// Where it is.
    place: String,
    /// How long it is.
    length: Option<u8>,
}

#[test]
fn what_is_no_object_may_come_as_the_one_field_of_one() {
    let (list, one) = (Output::list_of::<Tear>(), Output::of::<Tear>());
    let tears = json!([{"place": "hem", "length": 3}]);
    assert_eq!(list.unwrapped(&json!({"items": tears})), Some(&tears));
    assert_eq!(list.unwrapped(&tears), None);
    assert_eq!(list.unwrapped(&json!({"items": [], "more": 1})), None, "the field has to be alone");
    assert_eq!(one.unwrapped(&json!({"items": 1})), None, "an object is not wrapped");
    let number = Output::schema_only(json!({"type": "integer"}));
    assert_eq!(number.unwrapped(&json!({"value": 7})), Some(&json!(7)));
    assert_eq!(number.wire_schema()["properties"]["value"], json!({"type": "integer"}));
}

#[test]
fn a_provider_is_asked_for_an_object() {
    let list = Output::list_of::<Tear>().wire_schema();
    assert_eq!(list["type"], "object");
    assert_eq!(list["properties"]["items"]["type"], "array");
    assert_eq!(list["required"], json!(["items"]));
    let reference = list["properties"]["items"]["items"]["$ref"].as_str().unwrap();
    let definition = list.pointer(reference.trim_start_matches('#')).unwrap();
    assert_eq!(definition["additionalProperties"], json!(false), "references still lead somewhere: {list}");
    let one = Output::of::<Tear>();
    assert_eq!(one.wire_schema(), *one.schema());
    assert_eq!(one.schema()["additionalProperties"], json!(false));
}

#[test]
fn a_value_goes_to_the_reducers_of_its_type() {
    let session = session();
    let mut draft = session.draft();
    let hem = json!({"place": "hem", "length": null});
    Output::of::<Tear>().dispatch(&hem, &mut draft).unwrap();
    Output::list_of::<Tear>().dispatch(&json!([hem, hem]), &mut draft).unwrap();
    Output::value::<Tear>().dispatch(&hem, &mut draft).unwrap();
    Output::schema_only(json!(true)).dispatch(&hem, &mut draft).unwrap();
    assert_eq!(items::<Tear>(&draft).len(), 3);
}

#[test]
fn an_event_that_is_no_slice_goes_where_its_reducer_says() {
    #[derive(Deserialize, JsonSchema)]
    struct Found {
        places: Vec<String>,
    }
    impl Event for Found {}

    let mut session = session();
    let output = Output::of::<Found>();
    let found = json!({"places": ["hem", "seam"]});
    let refused = output.dispatch(&found, &mut session.draft()).unwrap_err();
    assert!(refused.to_string().contains("no reducer"), "{refused}");
    session.register::<Tear, Found>(|_, found, _| {
        Ok(SliceOp::extend(found.places.iter().map(|place| Tear { place: place.clone(), length: None })))
    });
    let mut draft = session.draft();
    output.dispatch(&found, &mut draft).unwrap();
    assert_eq!(items::<Tear>(&draft).len(), 2);
}

#[test]
fn what_the_type_does_not_take_is_found_before_it_is_dispatched() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(try_from = "u8")]
    struct Even(#[allow(dead_code, reason = "only that it parses counts")] u8);
    impl TryFrom<u8> for Even {
        type Error = String;
        fn try_from(number: u8) -> Result<Self, String> {
            if number.is_multiple_of(2) { Ok(Self(number)) } else { Err(format!("{number} is odd")) }
        }
    }
    let output = Output::value::<Even>();
    assert!(output.check(&json!(2)).is_ok());
    assert!(output.check(&json!(3)).unwrap_err().to_string().contains("3 is odd"));
}

#[test]
fn what_could_not_be_stored_is_no_answer() {
    let output = Output::schema_only(json!(true));
    let deep = format!("{}1{}", "[".repeat(80), "]".repeat(80));
    assert!(output.read(&deep).is_err());
    assert!(output.read(r#"{"$serde_json::private::Number": "1"}"#).is_err());
}

#[test]
fn the_prompt_says_what_the_answer_looks_like() {
    let prompt = |output| {
        let task = Section::new("task", "Task").body("Find tears.");
        Prompt::builder("tests", "finder").section(task).output(output).build().unwrap()
    };
    let text = |prompt: Prompt| prompt.bind(&()).unwrap().render(&session()).unwrap().text;
    let described = text(prompt(Output::of::<Tear>()));
    assert!(described.contains("## 2. Answer") && described.contains("How long it is."), "{described}");
    assert_eq!(text(prompt(Output::of::<Tear>().undescribed())), "## 1. Task\n\nFind tears.");
}
