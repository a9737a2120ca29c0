//! The transcript: evaluations in the order of the journal, calls with derived status, transitions.

use backstitch_core::journal::{CallVerdict, InnerMessage, inner_message_append};
use backstitch_core::message::{Message, RoleHint};
use backstitch_core::session::{Session, Snapshot};
use backstitch_core::storable::{self, MAX_DEPTH};
use backstitch_core::view::{CallStatus, Transcript};
use serde_json::json;

use super::journals::{Writer, call, clock, failure, parts, result, session_id, time};

#[test]
fn messages_of_evaluations_are_kept_apart() {
    let mut writer = Writer::new(1);
    let (one, other) = (writer.start(), writer.start());
    let said = [
        writer.say(one, parts(RoleHint::System, "be brief")),
        writer.say(other, parts(RoleHint::System, "be kind")),
        writer.say(one, parts(RoleHint::User, "hello")),
    ];
    let transcript = writer.view().transcript().unwrap();
    let of = |evaluation| -> Vec<InnerMessage> {
        transcript.inner_messages(evaluation).iter().map(|message| InnerMessage::clone(message)).collect()
    };
    assert_eq!(of(one), [said[0].clone(), said[2].clone()]);
    assert_eq!(of(other), [said[1].clone()]);
    assert_eq!(of(writer.id()), []);
    assert_eq!(transcript.all().len(), 3);
    assert_eq!(transcript.evaluations(), [one, other]);
    assert_eq!(transcript.latest_evaluation_id(), Some(other));
}

#[test]
fn the_latest_evaluation_is_so_by_the_journal_and_not_by_clock_or_id() {
    let mut writer = Writer::new(1);
    let (first, second) = (writer.start(), writer.start());
    // The evaluation with the first message has the larger id, and its clock is ahead.
    let mut earlier = writer.next_message(second, 0, parts(RoleHint::System, "first"));
    earlier.created_at = time(1_000_000);
    writer.record(earlier);
    let mut later = writer.next_message(first, 0, parts(RoleHint::System, "second"));
    later.created_at = time(-1_000_000);
    writer.record(later);
    let transcript = writer.view().transcript().unwrap();
    assert!(second > first);
    assert_eq!(transcript.latest_evaluation_id(), Some(first));
    // Continuing an older evaluation does not make it the latest.
    writer.say(second, parts(RoleHint::User, "more"));
    assert_eq!(writer.view().transcript().unwrap().latest_evaluation_id(), Some(first));
    assert_eq!(Transcript::default().latest_evaluation_id(), None);
}

#[test]
fn the_status_of_a_call_follows_from_its_result() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "let me see", &[r#"{ "q": 1 }"#, "not json", "{}"]);
    let statuses = |writer: &Writer| -> Vec<CallStatus> {
        let transcript = writer.view().transcript().unwrap();
        transcript.evaluation_calls(evaluation).iter().map(|call| call.status).collect()
    };
    let pending = |writer: &Writer| -> Vec<_> {
        let transcript = writer.view().transcript().unwrap();
        transcript.pending_tool_calls(evaluation).iter().map(|call| call.call_id).collect()
    };
    use CallStatus::{Completed, Failed, Pending};
    assert_eq!(statuses(&writer), [Pending; 3]);
    assert_eq!(pending(&writer), calls);
    // Results arrive in any order; calls are shown in the order in which they were made.
    writer.say(evaluation, result(calls[2], json!(3)));
    assert_eq!(statuses(&writer), [Pending, Pending, Completed]);
    writer.say(evaluation, failure(calls[0], "it broke"));
    assert_eq!(statuses(&writer), [Failed, Pending, Completed]);
    assert_eq!(pending(&writer), [calls[1]]);
    writer.say(evaluation, failure(calls[1], "no arguments"));
    assert_eq!(statuses(&writer), [Failed, Failed, Completed]);
    assert_eq!(pending(&writer), []);
}

#[test]
fn an_intent_alone_does_not_complete_a_call() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "", &["{}"]);
    writer.start_call(evaluation, calls[0]);
    let transcript = writer.view().transcript().unwrap();
    assert_eq!(transcript.pending_tool_calls(evaluation).len(), 1);
    writer.finish_call(evaluation, calls[0], CallVerdict::Succeeded);
    let after = writer.view().transcript().unwrap();
    assert_eq!(after.pending_tool_calls(evaluation), []);
    // A transcript is a value: later changes do not affect it.
    assert_eq!(transcript.pending_tool_calls(evaluation).len(), 1);
}

#[test]
fn a_call_shows_its_name_and_its_arguments_as_received() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let texts = [r#"{ "q" :  1 }"#, "not json", r#"{"a":1,"a":2}"#, ""];
    let calls = writer.answer(evaluation, "", &texts);
    let transcript = writer.view().transcript().unwrap();
    for (index, message) in transcript.inner_messages(evaluation).iter().enumerate() {
        let records = transcript.tool_calls(message);
        let [record] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!((record.call_id, record.name.as_str()), (calls[index], "search"));
        assert_eq!(record.arguments, texts[index]);
    }
    let said = writer.say(evaluation, parts(RoleHint::User, "hm"));
    assert_eq!(transcript.tool_calls(&said), []);
}

#[test]
fn a_transcript_is_read_from_journal_session_and_snapshot_alike() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.say(evaluation, parts(RoleHint::System, "be brief"));
    writer.answer(evaluation, "", &["{}", "[]"]);
    let view = writer.view();
    let session = view.session(clock());
    let stored = Snapshot::from_json(&session.snapshot().to_json().unwrap()).unwrap();
    let mut fresh = Session::new(session_id(9), clock());
    fresh.register::<InnerMessage, InnerMessage>(inner_message_append);
    fresh.rollback(&stored).unwrap();
    for transcript in [
        view.transcript().unwrap(),
        Transcript::of(&session).unwrap(),
        Transcript::new(stored.all().unwrap()),
        Transcript::of(&fresh).unwrap(),
    ] {
        assert_eq!(transcript.all(), view.transcript().unwrap().all());
        assert_eq!(transcript.latest_evaluation_id(), Some(evaluation));
        assert_eq!(transcript.pending_tool_calls(evaluation).len(), 2);
    }
}

#[test]
fn a_transcript_that_grows_answers_as_one_that_is_read_at_once() {
    let mut writer = Writer::new(1);
    let (one, other) = (writer.start(), writer.start());
    writer.say(one, parts(RoleHint::System, "be brief"));
    let calls = writer.answer(one, "let me see", &["{}", "[]"]);
    writer.say(one, result(calls[1], json!("found")));
    writer.answer(other, "and here", &["{}"]);
    writer.say(one, failure(calls[0], "torn"));
    let whole = writer.view().transcript().unwrap();
    // Queries before a message is added make no difference.
    for asked_after in 0..=whole.all().len() {
        let mut grown = Transcript::default();
        for (place, message) in whole.all().iter().enumerate() {
            if place >= asked_after {
                let before = grown.clone();
                assert_eq!(before.inner_messages(one).len() + before.inner_messages(other).len(), place);
                grown.push(message.clone());
                assert_eq!(before.all().len(), place, "what was there is not changed");
            } else {
                grown.push(message.clone());
            }
        }
        for evaluation in [one, other] {
            assert_eq!(grown.inner_messages(evaluation), whole.inner_messages(evaluation));
            assert_eq!(grown.of_evaluation(evaluation), whole.of_evaluation(evaluation));
            assert_eq!(grown.evaluation_calls(evaluation), whole.evaluation_calls(evaluation));
        }
        assert_eq!((grown.answers(), whole.answers()), (2, 2));
        assert_eq!(grown.all(), whole.all());
    }
}

fn at_step(step: impl Into<Option<u64>>, message: Message) -> Message {
    Message { step_num: step.into(), ..message }
}

#[test]
fn transitions_are_what_was_seen_chosen_and_given_back_in_a_step() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let ids: Vec<_> = (0..2).map(|_| writer.id()).collect();
    let said = [
        at_step(None, parts(RoleHint::System, "be brief")),
        at_step(1, parts(RoleHint::User, "hello")),
        at_step(1, parts(RoleHint::Assistant, "let me see")),
        at_step(1, call(ids[0], "{}")),
        at_step(2, parts(RoleHint::User, "and?")),
        // A late result belongs to the step of its call.
        at_step(1, result(ids[0], json!(1))),
        at_step(2, call(ids[1], "{}")),
        at_step(2, failure(ids[1], "no")),
        at_step(None, parts(RoleHint::Assistant, "done")),
    ];
    for message in said {
        writer.say(evaluation, message);
    }
    let transitions = writer.view().transcript().unwrap().transitions(evaluation);
    let shape: Vec<_> = transitions
        .iter()
        .map(|one| (one.step_num, one.observed.len(), one.chosen.len(), one.results.len()))
        .collect();
    assert_eq!(shape, [(None, 1, 0, 0), (Some(1), 1, 2, 1), (Some(2), 1, 1, 1), (None, 0, 1, 0)]);
    assert_eq!(transitions[1].results[0].tool_call_id(), Some(ids[0]));
    assert_eq!(writer.view().transcript().unwrap().transitions(writer.id()), []);
}

/// A value may nest as deeply as is allowed, and a snapshot can still hold its message.
#[test]
fn a_result_of_the_greatest_depth_survives_a_snapshot() {
    let deepest = (1..MAX_DEPTH).fold(json!([]), |inner, _| json!([inner]));
    assert_eq!(storable::check(&deepest), Ok(()));
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "let me see", &["{}"]);
    writer.say(evaluation, result(calls[0], deepest.clone()));
    let text = writer.view().session(clock()).snapshot().to_json().unwrap();
    let snapshot = Snapshot::from_json(&text).unwrap();
    let messages = snapshot.all::<InnerMessage>().unwrap();
    let kept = messages.latest().unwrap().message.option_result().unwrap();
    assert_eq!(kept.result.inline(), Some(&deepest));
}
