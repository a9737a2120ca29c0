//! Views of snapshotable resources.

use backstitch_core::journal::{Batch, CallVerdict, Position, RecordBody, ResourceChanged};
use backstitch_core::object::INLINE_LIMIT;
use serde_json::{Value, json};

use super::journals::{Writer, time};

fn change(writer: &mut Writer, name: &str, state: Value) -> Position {
    writer.push(ResourceChanged::new(name, state))
}

/// The states, by name.
fn states(writer: &Writer) -> Vec<(String, Value)> {
    let view = writer.view();
    view.resources().map(|changed| (changed.name.clone(), changed.state.inline().unwrap().clone())).collect()
}

fn state(name: &str, state: Value) -> (String, Value) {
    (name.to_owned(), state)
}

#[test]
fn states_follow_the_records_and_go_back_with_the_session() {
    let mut writer = Writer::new(1);
    change(&mut writer, "counter", json!(0));
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "two calls", &["{}", "{}"]);
    writer.start_call(evaluation, calls[0]);
    change(&mut writer, "counter", json!(1));
    let after_first = writer.finish_call(evaluation, calls[0], CallVerdict::Succeeded).next();
    writer.start_call(evaluation, calls[1]);
    change(&mut writer, "counter", json!(2));
    let head = writer.finish_call(evaluation, calls[1], CallVerdict::Succeeded).next();
    assert_eq!(states(&writer), [state("counter", json!(2))]);
    writer.rewind(after_first);
    assert_eq!(states(&writer), [state("counter", json!(1))]);
    writer.rewind(head);
    assert_eq!(states(&writer), [state("counter", json!(2))], "undoing the rewind restores it");
    writer.rewind(Position::new(2));
    assert_eq!(states(&writer), [state("counter", json!(0))]);
}

#[test]
fn a_resource_that_was_registered_later_goes_back_to_the_first_that_is_known_of_it() {
    let mut writer = Writer::new(1);
    writer.start();
    let early = writer.note("before it was registered").next();
    change(&mut writer, "counter", json!(5));
    change(&mut writer, "counter", json!(6));
    writer.rewind(early);
    assert_eq!(states(&writer), [state("counter", json!(5))]);
    change(&mut writer, "counter", json!(7));
    writer.rewind(early);
    assert_eq!(states(&writer), [state("counter", json!(5))]);
}

#[test]
fn a_large_state_is_an_object_of_its_batch() {
    let large = json!("x".repeat(INLINE_LIMIT));
    let batch = Batch::at(time(0)).with(ResourceChanged::new("index", large.clone()));
    let [RecordBody::ResourceChanged(changed)] = batch.bodies() else { panic!("{batch:?}") };
    let reference = changed.state.object().unwrap();
    assert_eq!(changed.state.inline(), None);
    assert_eq!(batch.bodies()[0].object_refs(), [reference.object]);
    assert_eq!(serde_json::from_slice::<Value>(batch.objects()[0].bytes()).unwrap(), large);
}
