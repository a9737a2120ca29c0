//! A thread depends only on messages, and groups them like the view of the conversation.

use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::InnerMessage;
use backstitch_core::message::{Arguments, Large, Part, PolicyName, RoleHint};
use backstitch_core::ports::{AnsweredCall, PolicyAnswer};
use backstitch_core::rng::{Rng, Seed};
use backstitch_core::view::{ConversationMessage, ConversationState, Transcript};
use backstitch_providers::{ModelPolicy, Provider, RequestOptions, Thread, ThreadEntry, render};
use backstitch_testkit::{fold, sample};
use proptest::prelude::*;
use serde_json::json;

use super::support::journals::Sampled;
use super::support::{Nobody, Talk, target, tools};

/// A conversation with only the fields that other programs write.
fn plain(mut state: ConversationState) -> ConversationState {
    let strip = |message: &mut ConversationMessage| message.inner.clear();
    state.system_message.iter_mut().for_each(strip);
    state.unanswered.iter_mut().for_each(strip);
    for turn in &mut state.turns {
        turn.user_messages.iter_mut().chain(&mut turn.tool_messages).for_each(strip);
        strip(&mut turn.assistant_message);
    }
    ConversationState { provenance: None, ..state }
}

fn talk() -> Talk {
    let call = |city: &str| {
        let mut arguments = serde_json::Map::new();
        arguments.insert("city".to_owned(), city.into());
        AnsweredCall::new("get_weather", Arguments::from_object(arguments))
    };
    let looked = PolicyAnswer {
        parts: vec![Part::text("I look.")],
        calls: vec![call("Oslo"), call("Rome")],
        ..PolicyAnswer::default()
    };
    let said = PolicyAnswer { parts: vec![Part::text("12 and 30.")], ..PolicyAnswer::default() };
    Talk::new()
        .system("You know the weather.")
        .user("Oslo and Rome?")
        .answer(looked)
        .result(1, Ok(json!({"degrees": 30})))
        .result(0, Ok(json!("12 degrees")))
        .answer(said)
        .user("And tomorrow?")
}

#[test]
fn a_plain_conversation_renders_as_the_messages_that_it_was_made_from() {
    let talk = talk();
    let state = plain(talk.transcript().conversation(talk.evaluation).unwrap());
    // Other programs write no hints and no policies: only roles.
    let state: ConversationState = serde_json::from_value(serde_json::to_value(&state).unwrap()).unwrap();
    let messages = state.inner_messages();
    let options = RequestOptions::default();
    for provider in Provider::ALL {
        let rendered = render(&Thread::of(&messages), &tools(), &target(provider), &options).unwrap();
        assert_eq!(rendered.report.departures, [], "{provider}");
        assert_eq!(rendered.body, talk.render(provider, &options).body, "{provider}");
    }
}

#[test]
fn a_request_holds_the_evaluation_that_is_asked_about_after_those_that_it_follows() {
    let followed = talk().follow_up().say(RoleHint::User, vec![Part::text("Something else")]);
    let question = followed.question();
    let name = PolicyName::new("model").unwrap();
    for provider in Provider::ALL {
        let policy = ModelPolicy::new(name.clone(), target(provider), None, Arc::new(Nobody));
        let policy = policy.with_options(RequestOptions::default());
        let body = policy.request(&question).unwrap().body;
        assert_eq!(body, followed.render(provider, &RequestOptions::default()).body, "{provider}");
        let text = body.to_string();
        assert!(text.contains("I look.") && text.contains("Something else"), "{provider}: {body}");
    }
}

/// One step of a conversation, reduced to what distinguishes it.
#[derive(Debug, PartialEq)]
enum Step {
    Said(Vec<Part>),
    Turn { number: u64, parts: Vec<Part>, calls: Vec<CallId>, payload: Option<Large<Arc<str>>> },
}

/// The steps in the view of a conversation.
fn viewed(state: &ConversationState) -> Vec<Step> {
    let parts = |message: &ConversationMessage| -> Vec<Part> {
        let contents = message.inner.iter().filter_map(|inner| inner.message.parts());
        contents.flatten().cloned().collect()
    };
    let mut steps = Vec::new();
    let mut called = Vec::new();
    for turn in &state.turns {
        steps.extend(turn.user_messages.iter().map(|message| Step::Said(parts(message))));
        let mut calls: Vec<CallId> =
            turn.assistant_message.tool_calls.iter().map(|call| call.call_id).collect();
        calls.retain(|call| !called.contains(call));
        called.extend(calls.iter().copied());
        let payload = turn.provider_payload.as_ref().and_then(|sidecar| sidecar.payload.clone());
        steps.push(Step::Turn {
            number: turn.turn_number,
            parts: parts(&turn.assistant_message),
            calls,
            payload,
        });
        steps.extend(turn.tool_messages.iter().map(|message| Step::Said(parts(message))));
    }
    steps.extend(state.unanswered.iter().map(|message| Step::Said(parts(message))));
    steps.retain(|step| !matches!(step, Step::Said(parts) if parts.is_empty()));
    steps
}

fn threaded(thread: &Thread<'_>) -> Vec<Step> {
    let owned = |parts: &[&Part]| parts.iter().copied().cloned().collect();
    let steps = thread.entries.iter().map(|entry| match entry {
        ThreadEntry::Input(said) => Step::Said(owned(&said.parts)),
        ThreadEntry::Turn(turn) => Step::Turn {
            number: turn.number,
            parts: owned(&turn.parts),
            calls: turn.calls.iter().map(|call| call.call.invocation_id).collect(),
            payload: turn.sidecar.and_then(|sidecar| sidecar.payload.clone()),
        },
    });
    steps.collect()
}

/// Asserts that each call of the thread has its first recorded result.
fn check_results(thread: &Thread<'_>, messages: &[Arc<InnerMessage>]) {
    for entry in &thread.entries {
        let ThreadEntry::Turn(turn) = entry else { continue };
        for call in &turn.calls {
            let mut results = messages.iter().filter_map(|message| message.message.option_result());
            let first = results.find(|result| result.invocation_id == call.call.invocation_id);
            assert_eq!(call.result, first);
        }
    }
}

/// The same messages, some of them missing and some moved.
fn disturbed(transcript: &Transcript, rng: &mut Rng) -> Transcript {
    let mut messages: Vec<Arc<InnerMessage>> = transcript.all().iter().cloned().collect();
    messages.retain(|_| rng.below(8) != 0);
    for place in 1..messages.len() {
        if rng.below(4) == 0 {
            messages.swap(place - 1, place);
        }
    }
    Transcript::new(messages.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_thread_groups_messages_as_the_view_does(seed in any::<u64>(), turns in 1usize..10) {
        let sampled = Sampled::of(&sample::journal(seed, turns), seed, true);
        let mut rng = Seed::new(seed).rng();
        for view in fold::every_cut(&sampled.records).unwrap().iter().step_by(3) {
            let whole = sampled.hydrated(&view.transcript().unwrap());
            for transcript in [disturbed(&whole, &mut rng), whole] {
                for evaluation in view.evaluations() {
                    let messages = transcript.inner_messages(evaluation.evaluation_id);
                    let Some(state) = transcript.conversation(evaluation.evaluation_id) else { continue };
                    let thread = Thread::of(&messages);
                    prop_assert_eq!(threaded(&thread), viewed(&state));
                    check_results(&thread, &messages);
                }
            }
        }
    }
}
