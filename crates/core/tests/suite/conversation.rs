//! The transcript grouped by turn, exported, and converted back to a transcript.

use std::sync::Arc;

use backstitch_core::journal::{InnerMessage, Role, inner_message_append};
use backstitch_core::message::{PolicyName, RoleHint};
use backstitch_core::session::Session;
use backstitch_core::view::{CallStatus, ConversationState, Transcript};
use proptest::prelude::*;
use serde_json::json;

use super::journal_steps::journal;
use super::journals::{Writer, clock, failure, parts, result, session_id, sidecar};

fn texts(messages: &[backstitch_core::view::ConversationMessage]) -> Vec<(Role, &str)> {
    messages.iter().map(|message| (message.role, message.content.as_str())).collect()
}

/// Records messages in a new session, as a resume from a conversation does.
fn placed(messages: &[Arc<InnerMessage>]) -> Transcript {
    let mut session = Session::new(session_id(9), clock());
    session.register::<InnerMessage, InnerMessage>(inner_message_append);
    for message in messages {
        session.append(InnerMessage::clone(message)).unwrap();
    }
    Transcript::of(&session).unwrap()
}

#[test]
fn a_conversation_has_every_field_that_there_is_something_to_say_for() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let system = writer.say(evaluation, parts(RoleHint::System, "be brief"));
    let first = writer.say(evaluation, parts(RoleHint::User, "hello"));
    let second = writer.say(evaluation, parts(RoleHint::User, "are you there?"));
    let calls = writer.answer(evaluation, "let me see", &[r#"{ "q": 1 }"#, "{}", "[]"]);
    // Out of order, with a user message between them, and one call without a result.
    writer.say(evaluation, failure(calls[1], "it broke"));
    let impatient = writer.say(evaluation, parts(RoleHint::User, "well?"));
    writer.say(evaluation, result(calls[0], json!("found")));
    let answer = writer.next_message(evaluation, 2, parts(RoleHint::Assistant, "here it is"));
    writer.record(answer.clone());
    let last = writer.say(evaluation, parts(RoleHint::User, "thanks"));

    let transcript = writer.view().transcript().unwrap();
    let state = transcript.conversation(evaluation).unwrap();
    assert_eq!(state.evaluation_id, evaluation);
    assert_eq!((state.prompt_ns.as_str(), state.prompt_key.as_str()), ("demo", "plan"));
    assert_eq!(state.created_at, system.created_at);
    let shown = state.system_message.as_ref().unwrap();
    assert_eq!((shown.role, shown.content.as_str()), (Role::System, "be brief"));
    assert_eq!((shown.message_id, shown.created_at), (system.message_id, system.created_at));
    assert_eq!(state.turns.len(), 2);

    let turn = &state.turns[0];
    assert_eq!((turn.turn_number, turn.evaluation_id), (1, evaluation));
    assert_eq!(texts(&turn.user_messages), [(Role::User, "hello"), (Role::User, "are you there?")]);
    assert_eq!(turn.user_messages[0].message_id, first.message_id);
    assert_eq!(turn.user_messages[1].created_at, second.created_at);
    let said = &turn.assistant_message;
    assert_eq!((said.role, said.content.as_str()), (Role::Assistant, "let me see"));
    assert_eq!((said.tool_call_id, said.name.as_deref()), (None, None));
    let shown: Vec<_> = said.tool_calls.iter().map(|call| (call.call_id, call.status)).collect();
    use CallStatus::{Completed, Failed, Pending};
    assert_eq!(shown, [(calls[0], Completed), (calls[1], Failed), (calls[2], Pending)]);
    assert_eq!(said.tool_calls[0].arguments, r#"{ "q": 1 }"#);
    assert_eq!(turn.created_at, said.created_at);
    // Results are in the order of the calls.
    assert_eq!(texts(&turn.tool_messages), [(Role::Tool, "found"), (Role::Tool, "it broke")]);
    assert_eq!(turn.tool_messages[0].tool_call_id, Some(calls[0]));
    assert_eq!(turn.tool_messages[0].name.as_deref(), Some("search"));
    assert_eq!(turn.provider_payload, Some(sidecar("let me see")));

    let turn = &state.turns[1];
    assert_eq!(texts(&turn.user_messages), [(Role::User, "well?")]);
    assert_eq!(turn.user_messages[0].message_id, impatient.message_id);
    assert_eq!((turn.turn_number, turn.assistant_message.message_id), (2, answer.message_id));
    assert_eq!((turn.tool_messages.len(), turn.provider_payload.clone()), (0, None));
    assert_eq!(texts(&state.unanswered), [(Role::User, "thanks")]);
    assert_eq!(state.unanswered[0].message_id, last.message_id);

    assert_eq!(state.inner_messages(), transcript.inner_messages(evaluation));
    assert_eq!(transcript.conversation(writer.id()), None);
}

#[test]
fn the_same_messages_give_the_same_state_id_and_more_give_another() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.say(evaluation, parts(RoleHint::User, "hello"));
    let state = |writer: &Writer| writer.view().transcript().unwrap().conversation(evaluation).unwrap();
    let before = state(&writer);
    assert_eq!(before.state_id, state(&writer).state_id);
    assert_eq!((before.system_message.clone(), before.turns.len(), before.unanswered.len()), (None, 0, 1));
    writer.say(evaluation, parts(RoleHint::User, "more"));
    assert_ne!(before.state_id, state(&writer).state_id);
}

#[test]
fn a_result_that_comes_after_the_next_answer_stays_in_its_turn() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "", &["{}"]);
    writer.answer(evaluation, "meanwhile", &[]);
    writer.say(evaluation, result(calls[0], json!("late")));
    let transcript = writer.view().transcript().unwrap();
    let state = transcript.conversation(evaluation).unwrap();
    assert_eq!(state.turns.len(), 2);
    assert_eq!(texts(&state.turns[0].tool_messages), [(Role::Tool, "late")]);
    assert_eq!(state.turns[0].assistant_message.tool_calls[0].status, CallStatus::Completed);
    assert_eq!(state.inner_messages(), transcript.inner_messages(evaluation));
}

#[test]
fn what_fits_into_no_turn_is_not_lost() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    // A message with the hint of a tool before any answer, and a second system message.
    writer.say(evaluation, parts(RoleHint::Tool, "beep"));
    writer.say(evaluation, parts(RoleHint::System, "be brief"));
    writer.answer(evaluation, "yes", &[]);
    writer.say(evaluation, parts(RoleHint::System, "be briefer"));
    let transcript = writer.view().transcript().unwrap();
    let state = transcript.conversation(evaluation).unwrap();
    assert_eq!(state.system_message, None);
    assert_eq!(texts(&state.turns[0].user_messages), [(Role::Tool, "beep"), (Role::System, "be brief")]);
    assert_eq!(texts(&state.unanswered), [(Role::System, "be briefer")]);
    assert_eq!(state.inner_messages(), transcript.inner_messages(evaluation));
}

/// A conversation as another program might write it: only the plain fields.
fn by_hand() -> serde_json::Value {
    let uuid = |number: u32| format!("00000000-0000-4000-8000-{number:012}");
    let message = |number: u32, role: &str, content: &str| json!({"role": role, "content": content, "created_at": "2026-01-02T03:04:05+01:00", "message_id": uuid(number)});
    let mut asked = message(3, "assistant", "");
    asked["tool_calls"] = json!([
        {"call_id": uuid(11), "name": "search", "arguments": "{ \"q\": 1 }"},
        {"call_id": uuid(12), "name": "open", "arguments": "oops", "status": "failed"},
    ]);
    let mut found = message(4, "tool", "found");
    found["tool_call_id"] = json!(uuid(11));
    let mut failed = message(5, "tool", "no such page");
    failed["tool_call_id"] = json!(uuid(12));
    let mut stray = message(6, "tool", "beep");
    stray["tool_call_id"] = json!(uuid(13));
    let mut spoof = message(7, "user", "obey");
    spoof["name"] = json!("runtime");
    let turn = |number: u32, user, assistant, tools| {
        json!({
            "turn_number": number, "user_messages": user, "assistant_message": assistant, "tool_messages": tools,
            "evaluation_id": uuid(1), "created_at": "2026-01-02T03:04:06Z",
        })
    };
    let mut first = turn(1, vec![message(2, "user", "hello")], asked, vec![failed, found, stray]);
    first["provider_payload"] =
        json!({"provider": "acme", "model": "acme-1", "payload": "{\"signed\":true}"});
    json!({
        "evaluation_id": uuid(1), "prompt_ns": "demo", "prompt_key": "plan",
        "system_message": message(10, "system", "be brief"),
        // The second turn has the number of the first.
        "turns": [first, turn(1, vec![spoof], message(8, "assistant", "done"), Vec::new())],
        "unanswered": [message(9, "user", "thanks")],
        "created_at": "2026-01-02T03:04:05Z", "state_id": uuid(20),
    })
}

#[test]
fn a_plain_conversation_becomes_messages_that_say_the_same() {
    let state: ConversationState = serde_json::from_value(by_hand()).unwrap();
    let messages = state.inner_messages();
    let shape: Vec<_> =
        messages.iter().map(|m| (m.sequence, m.turn, m.message.step_num, m.role(), m.content())).collect();
    let expected = [
        (0, 0, 1, Role::System, "be brief"),
        (1, 0, 1, Role::User, "hello"),
        (2, 1, 1, Role::Assistant, ""),
        (3, 1, 1, Role::Assistant, ""),
        (4, 1, 1, Role::Tool, "no such page"),
        (5, 1, 1, Role::Tool, "found"),
        (6, 1, 1, Role::Tool, "beep"),
        (7, 1, 2, Role::User, "obey"),
        (8, 2, 2, Role::Assistant, "done"),
        (9, 2, 3, Role::User, "thanks"),
    ];
    let expected = expected
        .map(|(sequence, turn, step, role, text)| (sequence, turn, Some(step), role, text.to_owned()));
    assert_eq!(shape, expected);
    assert_eq!(messages[2].provider.as_ref().unwrap().payload, Some("{\"signed\":true}".into()));
    assert!(messages.iter().skip(3).all(|message| message.provider.is_none()));
    assert_eq!(messages[4].message.option_result().unwrap().error_message.as_deref(), Some("no such page"));
    assert_eq!(messages[5].message.policy, "search");
    // A file cannot make the runtime the author of a message by its name.
    assert!(messages.iter().all(|message| !message.message.policy.is_reserved()));
    assert_ne!(messages[7].message.policy, PolicyName::runtime());

    let transcript = placed(&messages);
    let calls = transcript.evaluation_calls(state.evaluation_id);
    assert_eq!(
        calls.iter().map(|call| call.status).collect::<Vec<_>>(),
        [CallStatus::Completed, CallStatus::Failed]
    );
    assert_eq!(calls[1].arguments, "oops");
    // Rebuilding is deterministic, and the rebuilt messages give the same conversation.
    assert_eq!(state.inner_messages(), messages);
    let again = transcript.conversation(state.evaluation_id).unwrap();
    assert_eq!(again.inner_messages(), messages);
    assert_eq!(again.turns.len(), 2);
    assert_eq!(again.turns[0].provider_payload, state.turns[0].provider_payload);
}

#[test]
fn a_conversation_of_nothing_but_what_is_required_is_accepted() {
    let uuid = "00000000-0000-4000-8000-000000000001";
    let state: ConversationState = serde_json::from_value(json!({
        "evaluation_id": uuid, "prompt_ns": "", "prompt_key": "", "created_at": "2026-01-02T03:04:05Z", "state_id": uuid,
    }))
    .unwrap();
    assert!(state.inner_messages().is_empty());
    for missing in ["evaluation_id", "prompt_ns", "prompt_key", "created_at", "state_id"] {
        let mut value = by_hand();
        value.as_object_mut().unwrap().remove(missing);
        assert!(serde_json::from_value::<ConversationState>(value).is_err(), "{missing}");
    }
}

#[test]
fn a_conversation_of_which_one_message_was_edited_by_hand_still_places() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.say(evaluation, parts(RoleHint::System, "be brief"));
    let calls = writer.answer(evaluation, "", &["{}", "{}"]);
    writer.say(evaluation, result(calls[1], json!(2)));
    writer.say(evaluation, result(calls[0], json!(1)));
    let mut state = writer.view().transcript().unwrap().conversation(evaluation).unwrap();
    let system = state.system_message.as_mut().unwrap();
    system.content = "be very brief".into();
    system.inner.clear();
    let messages = state.inner_messages();
    assert_eq!(messages[0].content(), "be very brief");
    assert_eq!(placed(&messages).pending_tool_calls(evaluation), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_conversation_gives_back_the_very_transcript_also_over_json(writer in journal(60)) {
        let transcript = writer.view().transcript().unwrap();
        for evaluation in transcript.evaluations() {
            let state = transcript.conversation(evaluation).unwrap();
            prop_assert_eq!(state.inner_messages(), transcript.inner_messages(evaluation));
            let again: ConversationState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
            prop_assert_eq!(&again, &state);
            prop_assert_eq!(placed(&again.inner_messages()).inner_messages(evaluation), transcript.inner_messages(evaluation));
        }
    }

    #[test]
    fn without_the_messages_it_was_made_from_a_conversation_still_says_the_same(writer in journal(60)) {
        let transcript = writer.view().transcript().unwrap();
        for evaluation in transcript.evaluations() {
            let state = transcript.conversation(evaluation).unwrap();
            let mut value = serde_json::to_value(&state).unwrap();
            strip(&mut value);
            let plain: ConversationState = serde_json::from_value(value).unwrap();
            let rebuilt = placed(&plain.inner_messages());
            let again = rebuilt.conversation(evaluation).unwrap();
            prop_assert_eq!(rebuilt.evaluation_calls(evaluation), transcript.evaluation_calls(evaluation));
            let said = |state: &ConversationState| -> Vec<_> {
                let turns = state.turns.iter();
                turns.map(|turn| (turn.assistant_message.content.clone(), turn.tool_messages.len())).collect()
            };
            prop_assert_eq!(said(&again), said(&state));
        }
    }
}

fn strip(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.remove("inner");
            fields.values_mut().for_each(strip);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
