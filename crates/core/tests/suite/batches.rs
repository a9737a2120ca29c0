//! Batches: records in order, and objects for what is too large for them.

use backstitch_core::extra::Extra;
use backstitch_core::journal::{
    Batch, CallStarted, Decision, Effect, EvaluationFinished, IdempotencyKey, Note, Origin, Outcome,
    Position, RecordBody, Resolved, Rewound,
};
use backstitch_core::message::{Content, Large, OptionResult, Part, RoleHint};
use backstitch_core::object::{INLINE_LIMIT, Object};
use backstitch_core::session::Session;
use serde_json::{Value, json};

use super::journal::message;
use super::journals::{Standing, Writer, clock, parts, result, root, session_id, time};

#[test]
fn a_batch_moves_out_what_exceeds_a_record_and_nothing_that_just_fits() {
    let evaluation = Writer::new(1).id();
    // Two bytes go to the quotes of a JSON text.
    for (length, moved) in [(INLINE_LIMIT - 2, 0), (INLINE_LIMIT - 1, 1)] {
        let (text, batch) = (json!("x".repeat(length)), Batch::at(time(0)));
        let (error, extra) = (None, Extra::default());
        let finished = EvaluationFinished {
            evaluation_id: evaluation,
            outcome: Outcome::Completed,
            output: Some(text.clone()),
            output_object: None,
            error,
            extra,
        };
        let batch = batch.with(finished);
        assert_eq!(batch.objects().len(), moved);
        let RecordBody::EvaluationFinished(finished) = &batch.bodies()[0] else { panic!() };
        assert_eq!(finished.output.is_none(), moved == 1);
        assert_eq!(finished.output_object, batch.objects().first().map(Object::to_ref));
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
        arguments: Some(object),
        arguments_object: None,
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
    batch.push(Resolved { call_id: Some(id), ..Resolved::new(decision) });
    let (topic, text) = ("a topic".to_owned(), "a line".to_owned());
    batch.push(Note { data: large.clone(), ..Note::new(topic, text) });
    // The content is the same three times; a store keeps it once.
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

fn rewound(to: u64) -> Rewound {
    let rescue = Some(root("rescue"));
    Rewound { rescue, ..Rewound::new(Position::new(to)) }
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
