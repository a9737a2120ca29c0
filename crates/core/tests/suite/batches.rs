//! Batches: records in order, and objects for fields that are too large for them.

use std::fmt::Debug;
use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::journal::{
    Batch, CallStarted, Decision, Effect, EvaluationFinished, EvaluationOutcome, IdempotencyKey, LargeRecord,
    Note, Origin, PauseResolved, Position, ProgramStarted, RecordBody, ResourceChanged, SessionRewound,
    TaskFinished, TurnFinished,
};
use backstitch_core::message::{Content, Large, OptionResult, Part, RoleHint};
use backstitch_core::object::{INLINE_LIMIT, Object};
use backstitch_core::session::Session;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::journal::message;
use super::journals::{Standing, Writer, clock, parts, result, root, session_id, time};

#[test]
fn a_batch_moves_out_what_exceeds_a_record_and_nothing_that_just_fits() {
    let evaluation = Writer::new(1).id();
    // The quotes of a JSON text take two bytes.
    for (length, moved) in [(INLINE_LIMIT - 2, 0), (INLINE_LIMIT - 1, 1)] {
        let (text, batch) = (json!("x".repeat(length)), Batch::at(time(0)));
        let finished = EvaluationFinished {
            output: Some(text.clone().into()),
            ..EvaluationFinished::new(evaluation, EvaluationOutcome::Completed)
        };
        let batch = batch.with(finished);
        assert_eq!(batch.objects().len(), moved);
        let RecordBody::EvaluationFinished(finished) = &batch.bodies()[0] else { panic!() };
        let output = finished.output.as_ref().unwrap();
        assert_eq!(output.inline().is_none(), moved == 1);
        assert_eq!(output.object(), batch.objects().first().map(Object::to_ref));
        if let Some(object) = batch.objects().first() {
            assert_eq!(serde_json::from_slice::<Value>(object.bytes()).unwrap(), text);
            assert_eq!(batch.bodies()[0].object_refs(), [object.id()]);
        }
    }
    for (length, moved) in [(INLINE_LIMIT, 0), (INLINE_LIMIT + 1, 1)] {
        let said = message(parts(RoleHint::User, &"x".repeat(length)));
        assert_eq!(Batch::at(time(0)).with(said).objects().len(), moved);
    }
}

#[test]
fn every_large_value_of_a_record_moves_out() {
    let (large, id) = (json!({"text": "x".repeat(INLINE_LIMIT)}), Writer::new(1).id());
    let object = large.as_object().unwrap().clone();
    let mut batch = Batch::at(time(0));
    batch.push(CallStarted {
        call_id: id,
        evaluation_id: Writer::new(2).id(),
        name: "search".into(),
        arguments: Some(object.into()),
        effect: Effect::Pure,
        idempotency_key: IdempotencyKey::new(session_id(1), id),
        attempt: 1,
        root: Some(root("before")),
        coverage: None,
        reservation: None,
        session: None,
        extra: Extra::default(),
    });
    let result = Box::new(OptionResult::new(id, "search", large.clone()));
    let decision = Decision::Happened { result };
    batch.push(PauseResolved { call_id: Some(id), ..PauseResolved::new(decision) });
    batch.push(Note::new("a topic", "a line").with_data(large.clone()));
    // The content is the same three times; a store holds it once.
    assert_eq!(batch.objects().len(), 3);
    assert!(batch.objects().iter().all(|object| object.id() == batch.objects()[0].id()));
    let (records, objects) = batch.clone().into_records(Position::new(5));
    assert_eq!(records.iter().map(|record| record.position.number()).collect::<Vec<_>>(), [5, 6, 7]);
    for record in &records {
        assert!(record.encode().unwrap().len() < 1_500);
        assert!(record.body.object_refs().contains(&objects[0].id()));
    }
    assert_eq!(records[0].body.object_refs()[..2], [root("before").tree, root("before").manifest]);
    let RecordBody::Resolved(resolved) = &records[1].body else { panic!() };
    let Decision::Happened { result } = &resolved.decision else { panic!() };
    assert_eq!(result.result, Large::Object(objects[0].to_ref()));
}

#[test]
fn what_moved_out_of_a_record_is_written_as_an_object_and_comes_back() {
    let (large, id) = (json!({"text": "x".repeat(INLINE_LIMIT)}), Writer::new(1).id());
    let text = "x".repeat(INLINE_LIMIT + 1);
    let task = json!({"evaluation_id": id, "turn": 1, "path": "0", "task": "1", "value": large});
    let program = json!({
        "evaluation_id": id, "turn": 1, "source": text, "now": time(0), "seed": 7, "interpreter": "0",
    });
    comes_back(
        "output",
        EvaluationFinished {
            output: Some(large.clone().into()),
            ..EvaluationFinished::new(id, EvaluationOutcome::Completed)
        },
    );
    comes_back("source", serde_json::from_value::<ProgramStarted>(program).unwrap());
    comes_back("value", serde_json::from_value::<TaskFinished>(task).unwrap());
    comes_back("data", TurnFinished::new(id, 1, large.clone()));
    comes_back("state", ResourceChanged::new("index", large.clone()));
    comes_back("data", Note::new("a topic", "a line").with_data(large));
}

fn comes_back<T>(field: &str, record: T)
where
    T: Clone + Debug + PartialEq + Serialize + DeserializeOwned,
    Arc<T>: LargeRecord,
{
    let (mut spilled, mut objects) = (Arc::new(record.clone()), Vec::new());
    spilled.spill(&mut objects);
    assert_eq!(spilled.large_object(), objects.first().map(Object::to_ref), "{field}");
    let written = serde_json::to_value(&*spilled).unwrap();
    assert_eq!(written[format!("{field}_object")], json!(objects[0].to_ref()), "{field}");
    assert_eq!(written.get(field), None);

    let mut read: Arc<T> = Arc::new(serde_json::from_value(written.clone()).unwrap());
    assert_eq!(read, spilled);
    assert!(read.hydrate_content(&(&Object::blob(*b"another")).into()).is_err());
    read.hydrate_content(&(&objects[0]).into()).unwrap();
    assert_eq!(*read, record);

    let mut both = written;
    both[field] = serde_json::to_value(&record).unwrap()[field].clone();
    let error = serde_json::from_value::<T>(both).unwrap_err().to_string();
    assert!(error.contains("both"), "{field}: {error}");
}

#[test]
fn a_batch_holds_records_and_objects_in_order() {
    let mut batch = Batch::at(time(3));
    assert!(batch.is_empty());
    let picture = Object::blob(*b"a picture");
    batch.add_object(picture.clone());
    batch.push(message(parts(RoleHint::User, "look"))).push(rewound(1));
    assert_eq!((batch.len(), batch.is_empty()), (2, false));
    assert_eq!(batch.objects(), [picture]);
    let (records, _) = batch.into_records(Position::START);
    assert!(records.iter().all(|record| record.at == time(3) && record.extra.is_empty()));
}

fn rewound(to: u64) -> SessionRewound {
    let rescue = Some(root("rescue"));
    SessionRewound { rescue, ..SessionRewound::new(Position::new(to)) }
}

#[test]
fn what_a_rewind_rescued_and_a_session_loaded_is_referred_to() {
    assert_eq!(RecordBody::from(rewound(1)).object_refs().len(), 2);
    let mut said = message(parts(RoleHint::User, &"x".repeat(INLINE_LIMIT + 1)));
    let mut objects = Vec::new();
    said.spill(&mut objects);
    let mut session = Session::new(session_id(1), clock());
    session.append(said).unwrap();
    let state = session.snapshot().stored_slices().unwrap();
    let start = (Standing::default(), 0);
    let writer = Writer::from(2, Origin::Root, state, start);
    assert_eq!(writer.records[0].body.object_refs(), [objects[0].id()]);
}

#[test]
fn media_and_texts_of_results_are_referred_to() {
    let id = Writer::new(1).id();
    let mut answered = result(id, json!("found"));
    if let Content::OptionResult(result) = &mut answered.content {
        result.parts.push(Part::text("x".repeat(INLINE_LIMIT + 1)));
    }
    let batch = Batch::at(time(0)).with(message(answered));
    assert_eq!(batch.bodies()[0].object_refs(), [batch.objects()[0].id()]);
}
