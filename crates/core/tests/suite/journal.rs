//! Messages with their place, and the records of changes.

use std::sync::Arc;

use backstitch_core::journal::{InnerMessage, RecordBody, Role, SequenceError, inner_message_append};
use backstitch_core::message::{Message, MessageError, RoleHint};
use backstitch_core::object::{INLINE_LIMIT, Object, ObjectRef};
use backstitch_core::session::{Session, SessionError, Slice, SliceOp, SlicePolicy};
use serde_json::json;

use super::journals::{Tally, Writer, call, clock, failure, parts, result, session_id, sidecar};

pub(crate) fn message(content: Message) -> InnerMessage {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.next_message(evaluation, 0, content)
}

fn recording() -> Session {
    let mut session = Session::new(session_id(1), clock());
    session.register::<InnerMessage, InnerMessage>(inner_message_append);
    session
}

/// A source of spilled content.
fn stored(objects: &[Object]) -> impl Fn(ObjectRef) -> Option<Arc<[u8]>> + '_ {
    |reference| {
        objects.iter().find(|object| object.to_ref() == reference).map(|object| object.bytes().clone())
    }
}

#[test]
fn a_message_says_who_speaks_and_what() {
    let mut writer = Writer::new(1);
    let id = writer.id();
    for (hint, role) in [
        (RoleHint::System, Role::System),
        (RoleHint::User, Role::User),
        (RoleHint::Assistant, Role::Assistant),
        (RoleHint::Tool, Role::Tool),
    ] {
        let said = message(parts(hint, "hello"));
        assert_eq!((said.role(), said.content().as_str()), (role, "hello"));
        assert_eq!((said.tool_call_id(), said.tool_name()), (None, None));
    }
    // A message without a hint is of a policy.
    let mut plain = parts(RoleHint::User, "hm");
    plain.role_hint_for_llm = None;
    assert_eq!(message(plain).role(), Role::Assistant);
    // The kind takes precedence over the hint, which has no meaning.
    let mut asked = call(id, "{}");
    asked.role_hint_for_llm = Some(RoleHint::User);
    let asked = message(asked);
    assert_eq!((asked.role(), asked.content().as_str(), asked.tool_call_id()), (Role::Assistant, "", None));
    let answered = message(result(id, json!("found")));
    assert_eq!((answered.role(), answered.content().as_str()), (Role::Tool, "found"));
    assert_eq!((answered.tool_call_id(), answered.tool_name()), (Some(id), Some("search")));
    assert_eq!(message(result(id, json!({"b": 1, "a": [2]}))).content(), r#"{"b":1,"a":[2]}"#);
    assert_eq!(message(failure(id, "it broke")).content(), "it broke");
}

#[test]
fn large_texts_results_and_payloads_move_out_and_back() {
    let id = Writer::new(1).id();
    let large = "x".repeat(INLINE_LIMIT + 1);
    for said in [parts(RoleHint::User, &large), result(id, json!(large)), call(id, &large)] {
        let mut original = message(said);
        original.provider = Some(sidecar(&large).into());
        let (mut spilled, mut objects) = (original.clone(), Vec::new());
        spilled.spill(&mut objects);
        assert_eq!(objects.len(), 2);
        assert!(serde_json::to_string(&spilled).unwrap().len() < 2_000);
        assert_eq!(spilled.object_refs(), objects.iter().map(Object::id).collect::<Vec<_>>());
        assert!(spilled.provider.as_ref().unwrap().payload.as_ref().unwrap().inline().is_none());

        let missing = spilled.clone().hydrate(|_| None).unwrap_err();
        assert!(matches!(missing, MessageError::MissingObject { .. }), "{missing}");
        let mut again: InnerMessage =
            serde_json::from_str(&serde_json::to_string(&spilled).unwrap()).unwrap();
        again.hydrate(stored(&objects)).unwrap();
        assert_eq!(again, original);
    }
}

#[test]
fn a_damaged_payload_is_refused() {
    let mut said = message(parts(RoleHint::Assistant, "hello"));
    said.provider = Some(sidecar(&"x".repeat(INLINE_LIMIT + 1)).into());
    let mut objects = Vec::new();
    said.spill(&mut objects);
    let short = said.clone().hydrate(|_| Some(Arc::from(*b"short"))).unwrap_err();
    assert!(matches!(short, MessageError::ObjectLength { field: "payload", found: 5, .. }), "{short}");
    let bytes = vec![0xff; INLINE_LIMIT + 1];
    let binary = said.hydrate(|_| Some(bytes.clone().into())).unwrap_err();
    assert!(matches!(binary, MessageError::ObjectNotText { field: "payload", .. }), "{binary}");
}

#[test]
fn messages_are_appended_densely_and_once() {
    let (mut writer, mut session) = (Writer::new(1), recording());
    let (one, other) = (writer.start(), writer.start());
    let first = writer.say(one, parts(RoleHint::System, "be brief"));
    let second = writer.say(one, parts(RoleHint::User, "hello"));
    let elsewhere = writer.say(other, parts(RoleHint::User, "and you?"));
    let third = writer.say(one, parts(RoleHint::User, "still there?"));

    assert_eq!(session.append(first.clone()).unwrap().len(), 1);
    let refused = session.append(third.clone()).unwrap_err();
    let gap = SequenceError::Gap { evaluation: one, expected: 1, found: 2 };
    assert_eq!(refusal(&refused), gap, "{refused}");
    session.append(second.clone()).unwrap();
    session.append(elsewhere.clone()).unwrap();
    session.append(third.clone()).unwrap();
    for again in [&first, &second, &third, &elsewhere] {
        assert!(session.append(again.clone()).unwrap().is_empty(), "{}", again.sequence);
    }
    let mut changed = second.clone();
    changed.message = parts(RoleHint::User, "goodbye");
    let refused = session.append(changed).unwrap_err();
    assert_eq!(refusal(&refused), SequenceError::Differs { evaluation: one, sequence: 1 });
    let refused = session.append(InnerMessage { sequence: 1, ..first.clone() }).unwrap_err();
    assert_eq!(refusal(&refused), SequenceError::Differs { evaluation: one, sequence: 1 });
    let all = session.all::<InnerMessage>().unwrap();
    let all: Vec<_> = all.iter().map(|message| InnerMessage::clone(message)).collect();
    assert_eq!(all, [first, second, elsewhere, third]);
}

fn refusal(error: &SessionError) -> SequenceError {
    let SessionError::Reducer { source, .. } = error else { panic!("{error}") };
    source.downcast_ref::<SequenceError>().unwrap().clone()
}

#[test]
fn a_message_is_the_same_wherever_its_text_lies() {
    let (mut writer, mut session) = (Writer::new(1), recording());
    let evaluation = writer.start();
    let said = writer.say(evaluation, parts(RoleHint::User, &"x".repeat(INLINE_LIMIT + 1)));
    let mut spilled = said.clone();
    spilled.spill(&mut Vec::new());
    assert_ne!(spilled, said);
    session.append(spilled.clone()).unwrap();
    assert!(session.append(said.clone()).unwrap().is_empty());
    writer.records.pop();
    writer.push(spilled);
    writer.push(said);
    assert_eq!(writer.view().transcript().unwrap().all().len(), 1);
}

#[test]
fn evaluations_that_interleave_are_found_again() {
    // A later message of an older evaluation comes after newer ones, so skipping evaluations must not miss
    // it.
    let (mut writer, mut session) = (Writer::new(1), recording());
    let evaluations: Vec<_> = (0..5).map(|_| writer.start()).collect();
    for pick in [0, 0, 1, 0, 1, 2, 2, 0, 3, 4, 4, 4, 1, 0, 4, 2] {
        let said = writer.say(evaluations[pick], parts(RoleHint::User, "hm"));
        session.append(said).unwrap();
    }
    assert_eq!(session.all::<InnerMessage>().unwrap().len(), 16);
    assert_eq!(writer.view().transcript().unwrap().all().len(), 16);
}

#[test]
fn changes_are_journaled_as_messages_as_themselves_or_not_at_all() {
    let (mut writer, mut session) = (Writer::new(1), recording());
    let evaluation = writer.start();
    let said = writer.say(evaluation, parts(RoleHint::User, "hello"));
    let changes = session.append(said.clone()).unwrap();
    assert_eq!(RecordBody::of_change(&changes[0]).unwrap(), [RecordBody::from(said)]);

    let changes = session.append(Tally(7)).unwrap();
    let bodies = RecordBody::of_change(&changes[0]).unwrap();
    let [RecordBody::SliceChanged(change)] = bodies.as_slice() else { panic!("{bodies:?}") };
    assert_eq!((change.slice.as_str(), change.policy), (Tally::NAME, SlicePolicy::State));

    session.set_policy::<Tally>(SlicePolicy::Cache);
    let changes = session.append(Tally(8)).unwrap();
    assert!(RecordBody::of_change(&changes[0]).unwrap().is_empty());
}

#[test]
fn a_transcript_is_journaled_only_by_what_it_grows() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let said: Vec<_> = (0..2).map(|_| writer.say(evaluation, parts(RoleHint::User, "hm"))).collect();
    let mut session = Session::new(session_id(1), clock());
    let extended = said.clone();
    session.register::<InnerMessage, Tally>(move |_, _, _| Ok(SliceOp::extend(extended.clone())));
    let changes = session.dispatch(Tally(0)).unwrap();
    assert_eq!(RecordBody::of_change(&changes[0]).unwrap().len(), 2);

    // A patch that removes nothing only grows the slice as well.
    let mut session = Session::new(session_id(1), clock());
    let patched: Vec<_> = said.iter().cloned().map(Arc::new).collect();
    session.register::<InnerMessage, Tally>(move |_, _, _| {
        Ok(SliceOp::Patch { remove: Vec::new(), append: patched.clone() })
    });
    let changes = session.dispatch(Tally(0)).unwrap();
    let bodies = RecordBody::of_change(&changes[0]).unwrap();
    assert!(bodies.iter().all(|body| matches!(body, RecordBody::MessageAppended(_))), "{bodies:?}");

    // If a session lifts the policy, the change is possible but no journal could hold it.
    session.set_policy::<InnerMessage>(SlicePolicy::State);
    let changes = session.clear::<InnerMessage>().unwrap();
    let error = RecordBody::of_change(&changes[0]).unwrap_err();
    assert!(matches!(error, SessionError::JournalOnlyGrows { .. }), "{error}");
}
