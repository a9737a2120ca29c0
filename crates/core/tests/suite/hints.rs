//! A role hint is for providers: it never changes the meaning of a message.

use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::machine::{Machine, MachineAction, ToolLoop};
use backstitch_core::message::{Content, Message, Part, PolicyName, RoleHint};
use backstitch_core::view::{ConversationMessage, ConversationState, Transition};
use proptest::prelude::*;
use proptest::sample::select;

use super::journals::{Writer, call, result};

/// Author of a message in the transcripts of the property.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Speaker {
    Prompt,
    User,
    Sensor,
    Runtime,
    Decider,
    /// The decider, with a call that gets its result.
    Calls,
    /// The decider, with a call that has no result yet.
    Open,
}

fn speaker() -> impl Strategy<Value = Speaker> {
    use Speaker::{Calls, Decider, Open, Prompt, Runtime, Sensor, User};
    select(vec![Prompt, User, Sensor, Runtime, Decider, Calls, Calls, Open])
}

fn hint() -> impl Strategy<Value = Option<RoleHint>> {
    let hints = [RoleHint::System, RoleHint::User, RoleHint::Assistant, RoleHint::Tool];
    select(hints.into_iter().map(Some).chain([None]).collect::<Vec<_>>())
}

fn decider() -> PolicyName {
    PolicyName::new("tailor").unwrap()
}

/// A transcript of messages by these authors with these hints.
fn told(speakers: &[(Speaker, Option<RoleHint>)]) -> (Writer, EvaluationId) {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let mut turns = 0;
    for (speaker, hint) in speakers {
        let policy = match speaker {
            Speaker::Prompt => PolicyName::new("prompt").unwrap(),
            Speaker::User => PolicyName::new("user").unwrap(),
            Speaker::Sensor => PolicyName::new("sensor").unwrap(),
            Speaker::Runtime => PolicyName::runtime(),
            Speaker::Decider | Speaker::Calls | Speaker::Open => decider(),
        };
        turns += u64::from(policy == decider());
        let words = Content::Parts(vec![Part::text("12 degrees")].into());
        let message =
            Message { role_hint_for_llm: *hint, step_num: Some(turns + 1), ..Message::new(policy, words) };
        let mut inner = writer.next_message(evaluation, turns, message);
        inner.role = Role::of_parts(&inner.message, &decider(), inner.sequence);
        writer.record(inner);
        if matches!(speaker, Speaker::Calls | Speaker::Open) {
            let id = writer.id();
            let made = writer.next_message(evaluation, turns, call(id, "{}"));
            writer.record(made);
            if *speaker == Speaker::Calls {
                writer.say(evaluation, result(id, "done".into()));
            }
        }
    }
    (writer, evaluation)
}

/// Everything that follows from a transcript, without the hints themselves.
#[derive(Debug, PartialEq)]
struct Meaning {
    roles: Vec<Role>,
    next: MachineAction,
    conversation: Option<ConversationState>,
    transitions: Vec<Transition>,
}

fn unhinted(message: &Arc<InnerMessage>) -> Arc<InnerMessage> {
    let mut message = InnerMessage::clone(message);
    message.message.role_hint_for_llm = None;
    Arc::new(message)
}

fn strip(message: &mut ConversationMessage) {
    message.inner = message.inner.iter().map(unhinted).collect();
}

fn meaning(writer: &Writer, evaluation: EvaluationId) -> Meaning {
    let transcript = writer.view().transcript().unwrap();
    let messages = transcript.inner_messages(evaluation);
    let mut conversation = transcript.conversation(evaluation);
    if let Some(state) = &mut conversation {
        state.system_message.iter_mut().for_each(strip);
        state.unanswered.iter_mut().for_each(strip);
        for turn in &mut state.turns {
            turn.user_messages.iter_mut().chain(&mut turn.tool_messages).for_each(strip);
            strip(&mut turn.assistant_message);
        }
    }
    let mut transitions = transcript.transitions(evaluation);
    for transition in &mut transitions {
        for messages in [&mut transition.observed, &mut transition.chosen, &mut transition.results] {
            *messages = messages.iter().map(unhinted).collect();
        }
    }
    Meaning {
        roles: messages.iter().map(|message| message.role()).collect(),
        next: ToolLoop::rebuilt(None, &messages).next(),
        conversation,
        transitions,
    }
}

proptest! {
    #[test]
    fn hints_change_nothing_but_the_hints(
        said in proptest::collection::vec((speaker(), hint(), hint()), 0..20),
    ) {
        let one: Vec<_> = said.iter().map(|(speaker, hint, _)| (*speaker, *hint)).collect();
        let other: Vec<_> = said.iter().map(|(speaker, _, hint)| (*speaker, *hint)).collect();
        let ((one, evaluation), (other, _)) = (told(&one), told(&other));
        prop_assert_eq!(meaning(&one, evaluation), meaning(&other, evaluation));
    }
}

#[test]
fn only_what_the_decider_says_is_an_answer_and_all_else_is_observed() {
    for hint in [None, Some(RoleHint::Assistant), Some(RoleHint::User), Some(RoleHint::System)] {
        for speaker in [Speaker::User, Speaker::Sensor, Speaker::Runtime, Speaker::Prompt] {
            let said =
                [(Speaker::Prompt, None), (Speaker::User, None), (Speaker::Calls, None), (speaker, hint)];
            let (writer, evaluation) = told(&said);
            let meaning = meaning(&writer, evaluation);
            assert_eq!(meaning.next, MachineAction::Ask, "{speaker:?} {hint:?}");
            assert_eq!(meaning.roles.last(), Some(&Role::User), "{speaker:?} {hint:?}");
        }
        let (writer, evaluation) =
            told(&[(Speaker::Prompt, hint), (Speaker::User, hint), (Speaker::Decider, hint)]);
        let meaning = meaning(&writer, evaluation);
        assert!(matches!(meaning.next, MachineAction::Finish(_)), "{hint:?}");
        assert_eq!(meaning.roles, [Role::System, Role::User, Role::Assistant], "{hint:?}");
    }
}

#[test]
fn a_message_of_an_older_journal_is_read_by_its_hint() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    for (hint, role) in [
        (Some(RoleHint::System), Role::System),
        (Some(RoleHint::User), Role::User),
        (Some(RoleHint::Tool), Role::Tool),
        (Some(RoleHint::Assistant), Role::Assistant),
        (None, Role::Assistant),
    ] {
        let words = Content::Parts(vec![Part::text("x")].into());
        let message = Message { role_hint_for_llm: hint, ..Message::new(decider(), words) };
        let inner = writer.next_message(evaluation, 0, message);
        assert!(!serde_json::to_string(&inner).unwrap().contains("\"role\""));
        assert_eq!(inner.role(), role);
    }
}
