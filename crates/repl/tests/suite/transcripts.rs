//! Transcripts of agents that call tools by JSON: after leaving content out, the conversation is still
//! complete.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{InnerMessage, ProviderSidecar, Role};
use backstitch_core::machine::{TurnNumbers, conversation};
use backstitch_core::message::{
    Arguments, Content, Message, OptionCall, OptionResult, Part, PolicyName, RoleHint,
};
use backstitch_core::view::Transcript;
use backstitch_repl::compression::Registry;
use backstitch_repl::transcript::{
    Elide, ElideOptions, ElidedHistory, KeepAll, RenderedTranscript, TranscriptCompression,
    TranscriptHistory, Trim, TrimOptions,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::call_id;

/// Builds a transcript.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) messages: Vec<Arc<InnerMessage>>,
    turn: u64,
    calls: usize,
    /// The number of earlier evaluations.
    evaluation: usize,
}

impl Writer {
    /// Starts the next evaluation of a conversation.
    pub(crate) fn next(&self) -> Self {
        let evaluation = self.evaluation + 1;
        let mut writer = Self { evaluation, calls: self.calls + 100 * evaluation, ..Self::default() };
        writer.words(RoleHint::System, "Be briefer.");
        writer.words(RoleHint::User, "Do more.");
        writer
    }

    /// The conversation of two evaluations, as it is shown.
    pub(crate) fn conversation(&self, own: &Self) -> Vec<Arc<InnerMessage>> {
        let all = self.messages.iter().chain(&own.messages).cloned();
        let (before, evaluation) = (self.messages[0].evaluation_id, own.messages[0].evaluation_id);
        conversation(&Transcript::new(all.collect()), &[before], evaluation)
    }

    pub(crate) fn new() -> Self {
        let mut writer = Self::default();
        writer.words(RoleHint::System, "Be brief.");
        writer.words(RoleHint::User, "Do it.");
        writer
    }

    fn push(&mut self, turn: u64, message: Message, provider: Option<ProviderSidecar>) {
        let sequence = self.messages.len() as u64;
        self.messages.push(Arc::new(InnerMessage {
            message_id: format!("01900000-0000-7000-8{:02x}1-{sequence:012x}", self.evaluation)
                .parse()
                .unwrap(),
            evaluation_id: format!("01900000-0000-7000-8002-{:012x}", 9 - self.evaluation).parse().unwrap(),
            sequence,
            turn,
            prompt_ns: "tests".into(),
            prompt_key: "sample".into(),
            created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            message,
            role: None,
            provider: provider.map(Box::new),
            extra: Default::default(),
        }));
    }

    pub(crate) fn words(&mut self, role: RoleHint, text: &str) {
        let mut message =
            Message::new(PolicyName::new("person").unwrap(), Content::Parts(vec![Part::text(text)].into()));
        message.role_hint_for_llm = Some(role);
        self.push(self.turn, message, None);
    }

    /// Turns a call into one that a program made.
    pub(crate) fn made_by_program(&mut self, call: CallId) {
        for message in &mut self.messages {
            if let Content::OptionCall(made) = &mut Arc::make_mut(message).message.content
                && made.invocation_id == call
            {
                made.path = Some("0".to_owned());
            }
        }
    }

    /// Adds an answer with this number of calls. Returns the calls.
    pub(crate) fn answer(&mut self, text: &str, calls: usize) -> Vec<CallId> {
        self.turn += 1;
        let payload = format!("{{\"signed\":{}}}", self.turn);
        let mut sidecar = Some(ProviderSidecar {
            provider: "one".into(),
            model: "m".into(),
            payload: Some(payload.into()),
            ..ProviderSidecar::default()
        });
        if !text.is_empty() {
            let message = Message::new(
                PolicyName::new("model").unwrap(),
                Content::Parts(vec![Part::text(text)].into()),
            );
            self.push(self.turn, message, sidecar.take());
        }
        let mut made = Vec::new();
        for _ in 0..calls {
            self.calls += 1;
            let id = call_id(self.calls);
            let arguments = Arguments::from_object(json!({"n": self.calls}).as_object().unwrap().clone());
            let call = Content::OptionCall(OptionCall::new(id, "look", arguments));
            self.push(self.turn, Message::new(PolicyName::new("model").unwrap(), call), sidecar.take());
            made.push(id);
        }
        made
    }

    pub(crate) fn result(&mut self, turn: u64, call: CallId, result: OptionResult) {
        assert_eq!(result.invocation_id, call);
        let message = Message::new(PolicyName::new("look").unwrap(), Content::OptionResult(result));
        self.push(turn, message, None);
    }

    /// Adds an answer with one call that has a result.
    pub(crate) fn step(&mut self, result: &str) {
        let call = self.answer("", 1)[0];
        self.result(self.turn, call, OptionResult::new(call, "look", json!(result)));
    }
}

fn calls(messages: &[Arc<InnerMessage>]) -> HashSet<CallId> {
    messages.iter().filter_map(|message| Some(message.message.option_call()?.invocation_id)).collect()
}

fn results(messages: &[Arc<InnerMessage>]) -> HashSet<CallId> {
    messages.iter().filter_map(|message| message.tool_call_id()).collect()
}

fn trim(turns: Option<usize>, tokens: Option<u64>) -> Trim {
    Trim::new(TrimOptions { turns, tokens, note: true })
}

fn turns(rendered: &RenderedTranscript) -> Vec<u64> {
    let mut turns: Vec<u64> = rendered.messages.iter().map(|message| message.turn).collect();
    turns.dedup();
    turns
}

#[test]
fn the_last_answers_stay_and_what_is_gone_is_said() {
    let mut writer = Writer::new();
    for _ in 0..6 {
        writer.step("found");
    }
    writer.answer("Done.", 0);
    let rendered = trim(Some(3), None).render_messages(&writer.messages);
    assert_eq!(turns(&rendered), [0, 5, 6, 7]);
    assert_eq!(rendered.messages[0], writer.messages[0]);
    let said = "Do it.\n[4 answers, 1 to 4, with their calls and results, are not shown.]";
    assert_eq!(rendered.messages[1].message.text(), said);
    assert_eq!(rendered.messages[1].message_id, writer.messages[1].message_id);
    let statistics = &rendered.statistics;
    assert_eq!((statistics.turns.total, statistics.turns.shown), (7, 3));
    assert_eq!((statistics.tool_calls.total, statistics.tool_calls.dropped()), (6, 4));
    assert_eq!((statistics.sidecars.total, statistics.sidecars.shown), (7, 3));
    assert!(statistics.bytes_after < statistics.bytes_before);

    let silent = Trim::new(TrimOptions { turns: Some(6), note: false, ..TrimOptions::default() });
    assert_eq!(silent.render_messages(&writer.messages).messages[1], writer.messages[1]);
    let all = trim(Some(7), None).render_messages(&writer.messages);
    assert_eq!(all.messages, writer.messages);
}

#[test]
fn tokens_press_as_well_and_the_last_answer_always_stays() {
    let mut writer = Writer::new();
    for _ in 0..8 {
        writer.step(&"x".repeat(4_000));
    }
    let rendered = trim(None, Some(4_200)).render_messages(&writer.messages);
    assert_eq!(turns(&rendered), [0, 5, 6, 7, 8]);
    assert!(rendered.statistics.tokens_after <= 4_200, "{:?}", rendered.statistics);
    assert_eq!(turns(&trim(None, Some(0)).render_messages(&writer.messages)), [0, 8]);
    assert_eq!(turns(&trim(Some(0), None).render_messages(&writer.messages)), [0, 8]);
}

#[test]
fn an_answer_with_an_open_call_and_the_words_of_people_stay() {
    let mut writer = Writer::new();
    let open = writer.answer("Two at once.", 2);
    writer.result(1, open[0], OptionResult::new(open[0], "look", json!("one")));
    writer.words(RoleHint::User, "Mind the gap.");
    for _ in 0..5 {
        writer.step("found");
    }
    let rendered = trim(Some(1), None).render_messages(&writer.messages);
    assert_eq!(turns(&rendered), [0, 1, 6]);
    let texts: Vec<_> = rendered.messages.iter().map(|message| message.message.text().into_owned()).collect();
    assert!(texts.contains(&"Mind the gap.".to_owned()) && texts.contains(&"Two at once.".to_owned()));
    assert!(calls(&rendered.messages).contains(&open[1]));
}

#[test]
fn a_conversation_of_two_evaluations_is_trimmed_and_elided_as_one() {
    let mut first = Writer::new();
    first.step("found");
    // Its evaluation was cancelled, so this call gets no result any more.
    let open = first.answer("One left open.", 1);
    let mut second = first.next();
    second.step(&"x".repeat(900));
    second.step("found");
    let given = first.conversation(&second);
    let seen = |rendered: &RenderedTranscript| -> Vec<String> {
        let texts = rendered.messages.iter().map(|message| match message.message.option_call() {
            Some(call) => format!("call {}", call.arguments.text()),
            None => message.content(),
        });
        texts.collect()
    };
    let trimmed = trim(Some(2), None).render_messages(&given);
    let note = "[2 answers, 1 to 2, with their calls and results, are not shown.]";
    let second_step = ["call {\"n\":103}".to_owned(), "x".repeat(900)];
    let shown = seen(&trimmed);
    assert_eq!(shown[..3], ["Be briefer.".to_owned(), format!("Do it.\n{note}"), "Do more.".to_owned()]);
    assert_eq!(shown[3..5], second_step, "both evaluations have a turn 1, and one of them stays");
    assert_eq!(shown[5..], ["call {\"n\":104}", "found"]);
    assert_eq!((trimmed.statistics.turns.total, trimmed.statistics.turns.shown), (4, 2));
    assert!(!calls(&trimmed.messages).contains(&open[0]));

    let elided = Elide::new(ElideOptions { keep_turns: 1, keep_bytes: 100, ..ElideOptions::default() });
    let elided = elided.render_messages(&given);
    assert_eq!(elided.statistics.results_elided, 1);
    assert!(seen(&elided).iter().any(|text| text.starts_with("[The result of look, 900 bytes")));
    assert_eq!(KeepAll::default().render_messages(&given).messages, given);
}

#[test]
fn most_requests_begin_as_the_one_before_them() {
    let mut writer = Writer::new();
    let (strategy, mut before, mut changed) = (trim(Some(8), None), Vec::new(), 0);
    for _ in 0..40 {
        writer.step("found");
        let rendered = strategy.render_messages(&writer.messages).messages;
        changed += usize::from(!rendered.starts_with(&before));
        before = rendered;
    }
    assert_eq!(changed, 16);
}

#[test]
fn old_results_become_placeholders_that_name_the_call() {
    let mut writer = Writer::new();
    writer.step(&format!("Es war einmal. {}", "ä".repeat(500)));
    writer.step("short");
    let failed = writer.answer("", 1)[0];
    let mut error = OptionResult::new(failed, "look", json!(null));
    error.is_error = true;
    error.error_message = Some("e".repeat(2_000));
    writer.result(3, failed, error);
    for _ in 0..4 {
        writer.step(&"x".repeat(2_000));
    }
    let recall = Some(backstitch_repl::recall::TOOL_NAME.to_owned());
    let strategy = Elide::new(ElideOptions { keep_turns: 2, preview: 14, recall, ..ElideOptions::default() });
    let rendered = strategy.render_messages(&writer.messages);
    assert_eq!(rendered.messages.len(), writer.messages.len());
    let first = rendered.messages.iter().find(|message| message.tool_call_id() == Some(call_id(1))).unwrap();
    assert_eq!(
        first.content(),
        "[The result of look, 1015 bytes, is not shown. Call recall with call_id \
         \"01900000-0000-7000-8000-000000000001\" to see it. It begins: Es war einmal....]"
    );
    let content = |call: usize| {
        let result = rendered.messages.iter().find(|message| message.tool_call_id() == Some(call_id(call)));
        result.unwrap().content()
    };
    assert_eq!(content(2), "short");
    assert!(content(3).starts_with("[The result of look, 2"), "{}", content(3));
    let error = rendered.messages.iter().find(|message| message.tool_call_id() == Some(failed)).unwrap();
    assert!(error.message.option_result().unwrap().is_error);
    assert!(content(5).starts_with('['));
    assert_eq!(content(6).len(), 2_000);
    assert_eq!(rendered.statistics.results_elided, 4);
    assert!(rendered.statistics.tokens_after < rendered.statistics.tokens_before / 2);

    let calm = Elide::new(ElideOptions { keep_turns: 0, tokens: Some(1_000_000), ..ElideOptions::default() });
    assert_eq!(calm.render_messages(&writer.messages).messages, writer.messages);
    let nameless = Elide::new(ElideOptions { keep_turns: 2, preview: 0, ..ElideOptions::default() });
    let rendered = nameless.render_messages(&writer.messages);
    let first = rendered.messages.iter().find(|message| message.tool_call_id() == Some(call_id(1))).unwrap();
    let expected =
        format!("[The result of look, 1015 bytes, is not shown. It is that of call {}.]", call_id(1));
    assert_eq!(first.content(), expected);
}

#[test]
fn a_history_knows_each_message_once_and_by_its_place() {
    let mut writer = Writer::new();
    let made = writer.answer("Three at once.", 3);
    for call in &made {
        writer.result(1, *call, OptionResult::new(*call, "look", json!("found")));
    }
    writer.step("found");
    // Out of order, and with duplicates.
    let mut told = writer.messages.clone();
    told[5..8].reverse();
    told.extend(writer.messages[3..6].iter().cloned());
    for strategy in [trim(Some(1), None), trim(Some(2), None), trim(None, Some(30))] {
        assert_eq!(strategy.render_messages(&told), strategy.render_messages(&writer.messages));
    }
    // A push to a clone does not affect the original.
    let history: TranscriptHistory = writer.messages.iter().cloned().collect();
    let before = trim(Some(1), None).render(&history);
    let mut longer = history.clone();
    writer.step("found");
    longer.extend(writer.messages.iter().cloned());
    assert_eq!(longer.len(), writer.messages.len());
    assert_eq!(trim(Some(1), None).render(&history), before);
    assert_eq!(turns(&trim(Some(1), None).render(&longer)), [0, 3]);
}

#[test]
fn strategies_are_chosen_by_name() {
    let registry = Registry::<dyn TranscriptCompression>::standard();
    assert_eq!(registry.normalize(&json!(true)).unwrap().name(), "trim");
    assert_eq!(registry.normalize(&json!(null)).unwrap().name(), "none");
    assert_eq!(registry.normalize(&json!(["elide", {"keep_turns": 3}])).unwrap().name(), "elide");
    let error = registry.normalize(&json!({"strategy": "elide", "keep": 3})).unwrap_err().to_string();
    let expected = "the compression strategy elide has no option \"keep\"; it has keep_turns, tokens, keep_bytes, preview, recall";
    assert_eq!(error, expected);
    assert!(registry.normalize(&json!({"strategy": "none", "x": 1})).is_err());
    for name in registry.names() {
        let strategy = registry.normalize(&json!(name)).unwrap();
        let again = registry.normalize(&strategy.configuration()).unwrap();
        assert_eq!(again.renderer(), strategy.renderer());
        assert!(strategy.renderer().starts_with(&format!("{name}/1 ")), "{}", strategy.renderer());
    }
}

/// A step of a random conversation.
#[derive(Debug, Clone)]
enum Step {
    Answer { words: bool, calls: usize, answered: usize, size: usize, late: bool },
    User,
    System,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let answer = (any::<bool>(), 0usize..4, 0usize..5, 0usize..1_500, any::<bool>()).prop_map(
        |(words, calls, answered, size, late)| Step::Answer {
            words: words || calls == 0,
            calls,
            // Most answers have all of their results.
            answered: if answered == 0 { calls.saturating_sub(1) } else { calls },
            size,
            late,
        },
    );
    prop::collection::vec(prop_oneof![8 => answer, 1 => Just(Step::User), 1 => Just(Step::System)], 0..24)
}

fn written(steps: &[Step]) -> Vec<Arc<InnerMessage>> {
    written_with(Writer::new(), steps).messages
}

fn written_with(mut writer: Writer, steps: &[Step]) -> Writer {
    let mut late_results = Vec::new();
    for step in steps {
        match step {
            Step::User => writer.words(RoleHint::User, "And another thing."),
            Step::System => writer.words(RoleHint::System, "Budget is low."),
            Step::Answer { words, calls, answered, size, late } => {
                let made = writer.answer(if *words { "Let me see." } else { "" }, *calls);
                let turn = writer.turn;
                for (turn, call, result) in late_results.drain(..) {
                    writer.result(turn, call, result);
                }
                for call in made.into_iter().take(*answered) {
                    let result = OptionResult::new(call, "look", json!({"text": "y".repeat(*size)}));
                    if *late {
                        late_results.push((turn, call, result));
                    } else {
                        writer.result(turn, call, result);
                    }
                }
            }
        }
    }
    for (turn, call, result) in late_results {
        writer.result(turn, call, result);
    }
    writer
}

/// The same messages, as those of one evaluation.
fn as_one(given: &[Arc<InnerMessage>]) -> Vec<Arc<InnerMessage>> {
    let mut numbers = TurnNumbers::default();
    let renumbered = given.iter().enumerate().map(|(place, message)| {
        let turn = numbers.number(message);
        let (evaluation_id, sequence) = (given[0].evaluation_id, place as u64);
        Arc::new(InnerMessage { evaluation_id, sequence, turn, ..InnerMessage::clone(message) })
    });
    renumbered.collect()
}

/// Checks the guarantees of all strategies.
fn check(given: &[Arc<InnerMessage>], rendered: &RenderedTranscript) {
    let kept = &rendered.messages;
    // In order, without duplicates.
    assert!(kept.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
    let of = |message: &InnerMessage| &given[message.sequence as usize];
    // Pairs are complete, and open calls are still open.
    let (all_results, kept_calls, kept_results) = (results(given), calls(kept), results(kept));
    assert!(kept_results.is_subset(&kept_calls));
    assert!(kept_calls.iter().all(|call| kept_results.contains(call) == all_results.contains(call)));
    let open = calls(given).into_iter().filter(|call| !all_results.contains(call));
    assert!(open.into_iter().all(|call| kept_calls.contains(&call)));
    // The beginning, user messages and system messages stay.
    assert_eq!(kept[0], given[0]);
    assert!(kept[1].message.text().starts_with(&*given[1].message.text()));
    let spoken = |messages: &[Arc<InnerMessage>]| -> Vec<u64> {
        let said = messages.iter().filter(|message| matches!(message.role(), Role::System | Role::User));
        said.map(|message| message.sequence).collect()
    };
    assert_eq!(spoken(kept), spoken(given));
    // Each answer stays or goes as a whole, and unchanged.
    for message in kept.iter().filter(|message| message.role() == Role::Assistant) {
        assert!(Arc::ptr_eq(message, of(message)));
        let whole =
            given.iter().filter(|other| other.turn == message.turn && other.role() == Role::Assistant);
        assert!(whole.into_iter().all(|other| kept.iter().any(|message| message.sequence == other.sequence)));
    }
    // The last answer stays.
    let last = |messages: &[Arc<InnerMessage>]| messages.iter().map(|message| message.turn).max();
    assert_eq!(last(kept), last(given));
    // A result that stays answers its call as before.
    for message in kept.iter().filter(|message| message.role() == Role::Tool) {
        let (new, old) =
            (message.message.option_result().unwrap(), of(message).message.option_result().unwrap());
        assert_eq!(
            (new.invocation_id, &new.option_name, new.is_error),
            (old.invocation_id, &old.option_name, old.is_error)
        );
    }
    assert!(
        rendered.statistics.messages.shown == kept.len() && rendered.statistics.messages.total == given.len()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_is_left_out_leaves_a_whole_conversation(
        steps in steps(),
        turns in prop::option::of(0usize..8),
        tokens in prop::option::of(0u64..3_000),
        keep_turns in 0usize..8,
        keep_bytes in 0u64..800,
    ) {
        let given = written(&steps);
        let elide = ElideOptions { keep_turns, tokens, keep_bytes, ..ElideOptions::default() };
        let strategies: [Box<dyn TranscriptCompression>; 3] =
            [Box::new(trim(turns, tokens)), Box::new(Elide::new(elide)), Box::new(KeepAll::default())];
        for strategy in &strategies {
            let rendered = strategy.render_messages(&given);
            check(&given, &rendered);
            prop_assert_eq!(strategy.render_messages(&given), rendered.clone());
            // A rendered transcript can be rendered again.
            check_twice(&given, &rendered);
        }
        prop_assert_eq!(KeepAll::default().render_messages(&given).messages, given.clone());
    }

    #[test]
    fn two_evaluations_are_shown_as_one_with_the_same_messages_would_be(
        first in steps(),
        second in steps(),
        turns in prop::option::of(0usize..8),
        tokens in prop::option::of(0u64..3_000),
        keep_turns in 0usize..8,
    ) {
        // Open calls of an ended evaluation may be dropped, unlike those of the current one.
        let first: Vec<Step> = first.into_iter().map(|step| match step {
            Step::Answer { words, calls, size, late, .. } => {
                Step::Answer { words, calls, answered: calls, size, late }
            }
            other => other,
        }).collect();
        let first = written_with(Writer::new(), &first);
        let given = first.conversation(&written_with(first.next(), &second));
        let elide = ElideOptions { keep_turns, tokens, keep_bytes: 64, ..ElideOptions::default() };
        let strategies: [Box<dyn TranscriptCompression>; 3] =
            [Box::new(trim(turns, tokens)), Box::new(Elide::new(elide)), Box::new(KeepAll::default())];
        for strategy in &strategies {
            let (two, one) = (strategy.render_messages(&given), strategy.render_messages(&as_one(&given)));
            prop_assert_eq!(&two.statistics, &one.statistics);
            let seen = |messages: &[Arc<InnerMessage>]| -> Vec<_> {
                messages.iter().map(|message| (message.message_id, message.message.clone())).collect()
            };
            prop_assert_eq!(seen(&two.messages), seen(&one.messages));
        }
    }

    #[test]
    fn eliding_what_has_become_old_equals_eliding_everything_anew(
        first in steps(),
        second in prop::option::of(steps()),
        tokens in prop::option::of(0u64..3_000),
        keep_turns in 0usize..8,
        keep_bytes in 0u64..800,
        requests in prop::collection::vec(any::<bool>(), 1..8),
    ) {
        let first = written_with(Writer::new(), &first);
        let given = match second {
            Some(second) => first.conversation(&written_with(first.next(), &second)),
            None => first.messages.clone(),
        };
        let options = ElideOptions { keep_turns, tokens, keep_bytes, ..ElideOptions::default() };
        let mut grown = ElidedHistory::new(options.clone());
        let mut shown: Vec<Arc<InnerMessage>> = Vec::new();
        for (message, is_asked) in given.iter().zip(requests.iter().cycle()) {
            grown.push(message, Some(shown.len()));
            shown.push(message.clone());
            if *is_asked {
                for (place, placeholder) in grown.elide() {
                    shown[place] = placeholder;
                }
                let anew = Elide::new(options.clone()).render_messages(&given[..shown.len()]);
                prop_assert_eq!(&shown, &anew.messages);
                prop_assert_eq!(grown.count(), anew.statistics.results_elided);
            }
        }
    }

    #[test]
    fn what_is_not_shown_does_not_matter(steps in steps(), turns in 1usize..4) {
        let given = written(&steps);
        let strategy = trim(Some(turns), None);
        let rendered = strategy.render_messages(&given);
        let kept: HashSet<u64> = rendered.messages.iter().map(|message| message.sequence).collect();
        let mut other = given.clone();
        for message in other.iter_mut().filter(|message| !kept.contains(&message.sequence)) {
            let mut changed = InnerMessage::clone(message);
            changed.provider = None;
            if let Content::OptionResult(result) = &mut changed.message.content {
                *result = OptionResult::new(result.invocation_id, "another", json!("z".repeat(9_999)));
            }
            *message = Arc::new(changed);
        }
        prop_assert_eq!(strategy.render_messages(&other).messages, rendered.messages);
    }
}

/// Checks that a rendered transcript is a transcript: rendering it again keeps it complete.
fn check_twice(given: &[Arc<InnerMessage>], rendered: &RenderedTranscript) {
    let again = Elide::new(ElideOptions { keep_turns: 1, ..ElideOptions::default() })
        .render_messages(&rendered.messages);
    let (kept_calls, all_results) = (calls(&again.messages), results(given));
    let kept_results = results(&again.messages);
    assert!(kept_calls.iter().all(|call| kept_results.contains(call) == all_results.contains(call)));
}
