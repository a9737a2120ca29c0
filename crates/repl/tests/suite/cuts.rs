//! Cuts of conversations: requests between two cuts begin alike, and every request is complete.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::message::{OptionResult, RoleHint};
use backstitch_core::session::{Items, Slice, SlicePolicy};
use backstitch_repl::compression::Registry;
use backstitch_repl::transcript::{
    ConversationOrder, Cut, CutOptions, CutPlanner, CutRules, SummaryRules, TranscriptCompression,
    estimated_tokens, summary_text,
};
use proptest::prelude::*;
use serde_json::json;

use crate::transcripts::Writer;

fn rules() -> CutRules {
    CutOptions::default().rules()
}

fn order(writer: &Writer) -> ConversationOrder {
    ConversationOrder::new(&[], writer.messages[0].evaluation_id)
}

/// The messages of a request: the head of the latest cut, and all later messages.
fn rendered(
    messages: &[Arc<InnerMessage>],
    order: &ConversationOrder,
    cut: Option<&Cut>,
) -> Vec<Arc<InnerMessage>> {
    let Some(cut) = cut else { return messages.to_vec() };
    let head = cut.render_head(messages, order);
    head.messages.into_iter().chain(messages[head.count..].iter().cloned()).collect()
}

fn calls(messages: &[Arc<InnerMessage>]) -> Vec<CallId> {
    messages.iter().filter_map(|message| Some(message.message.option_call()?.invocation_id)).collect()
}

fn results(messages: &[Arc<InnerMessage>]) -> Vec<CallId> {
    messages.iter().filter_map(|message| message.tool_call_id()).collect()
}

/// Checks that what is shown is complete: each result after its call, each call with its result if it has one, and
/// all messages of users.
fn check_complete(shown: &[Arc<InnerMessage>], all: &[Arc<InnerMessage>]) {
    let (shown_calls, shown_results) = (calls(shown), results(shown));
    let of_calls: HashSet<_> = shown_calls.iter().collect();
    let of_results: HashSet<_> = shown_results.iter().collect();
    assert_eq!((of_calls.len(), of_results.len()), (shown_calls.len(), shown_results.len()));
    assert!(shown_results.iter().all(|result| of_calls.contains(result)), "a result without its call");
    for answered in results(all).iter().filter(|call| of_calls.contains(call)) {
        assert!(of_results.contains(answered), "a call without its result");
    }
    let users = |messages: &[Arc<InnerMessage>]| -> Vec<_> {
        let of_users = messages.iter().filter(|message| message.role() != Role::Assistant);
        of_users.filter(|message| message.role() != Role::Tool).map(|message| message.message_id).collect()
    };
    assert_eq!(users(shown), users(all));
}

/// A driver that cuts at a limit, and remembers the requests.
struct Simulated {
    writer: Writer,
    limit: u64,
    rules: CutRules,
    cuts: Vec<Cut>,
    requests: Vec<Vec<Arc<InnerMessage>>>,
    /// The number of requests whose beginning differs from the one before.
    changed: usize,
}

impl Simulated {
    fn new(limit: u64, rules: CutRules) -> Self {
        let (cuts, requests) = (Vec::new(), Vec::new());
        Self { writer: Writer::new(), limit, rules, cuts, requests, changed: 0 }
    }

    fn request(&mut self) {
        let order = order(&self.writer);
        let messages = &self.writer.messages;
        let before = self.cuts.len();
        loop {
            let last = self.cuts.last();
            let shown = rendered(messages, &order, last);
            if estimated_tokens(shown.iter()) <= self.limit {
                break;
            }
            let planner = CutPlanner::new(messages, &order, &self.rules, last).unwrap();
            let is_first = self.cuts.len() == before;
            let summary = self.rules.summary.as_ref().filter(|_| is_first);
            let summarized = summary.and_then(|_| planner.summarizing(Some(self.limit), 8, None));
            let Some(cut) = summarized.or_else(|| planner.fitting(self.limit)) else { break };
            let cut = match cut.needs_summary() {
                true => {
                    let request = cut.summary_request(messages, &shown, &order).unwrap();
                    let (asked, said) = request.split_last().unwrap();
                    assert_eq!(asked.role(), Role::User);
                    assert_eq!(calls(said).len(), results(said).len(), "no call without a result");
                    cut.with_summary("Found the seams.")
                }
                false => cut,
            };
            self.cuts.push(cut);
        }
        let shown = rendered(messages, &order, self.cuts.last());
        check_complete(&shown, messages);
        let is_cut = self.cuts.len() > before;
        if let Some(last) = self.requests.last() {
            let begins = shown.len() >= last.len() && shown[..last.len()] == last[..];
            assert!(begins || is_cut, "a request begins as the one before");
            self.changed += usize::from(!begins);
        }
        self.requests.push(shown);
    }
}

#[test]
fn a_cut_stays_until_the_room_is_used_up_again() {
    let mut driver = Simulated::new(15_000, rules());
    for _ in 0..200 {
        driver.writer.step(&"x".repeat(3_000));
        driver.request();
    }
    let longest = driver.requests.iter().map(|request| estimated_tokens(request.iter())).max().unwrap();
    assert!(longest <= 15_000, "{longest}");
    assert!((10..=20).contains(&driver.cuts.len()), "{} cuts", driver.cuts.len());
    assert_eq!(driver.changed, driver.cuts.len());
    let shortest =
        driver.requests[60..].iter().map(|request| estimated_tokens(request.iter())).min().unwrap();
    assert!((6_000..=7_500).contains(&shortest), "a cut frees half of the room: {shortest}");
}

#[test]
fn what_no_cut_can_leave_out_is_shown() {
    let mut driver = Simulated::new(1_000, rules());
    driver.writer.words(RoleHint::User, &"word ".repeat(2_000));
    for _ in 0..4 {
        driver.writer.step(&"x".repeat(8_000));
        driver.request();
    }
    let last = driver.requests.last().unwrap();
    assert_eq!((calls(last).len(), results(last).len()), (1, 1));
}

#[test]
fn a_summary_stands_for_the_answers_that_it_covers() {
    let summary = Some(SummaryRules::default());
    let mut driver = Simulated::new(6_000, CutRules { summary, ..rules() });
    for _ in 0..30 {
        driver.writer.step(&"x".repeat(2_000));
        driver.request();
    }
    let summarized = driver.requests.last().unwrap();
    let text = summarized[1].message.text();
    assert!(text.starts_with("Do it.\n[You wrote the following summary of answers 1 to "), "{text}");
    assert!(text.contains("]\nFound the seams.\n[End of the summary.]"), "{text}");
    assert!(driver.cuts.iter().all(Cut::has_summary), "{:?}", driver.cuts);
}

#[test]
fn a_result_that_arrives_after_a_cut_does_not_change_what_the_cut_shows() {
    let mut writer = Writer::new();
    let open = writer.answer("Two at once.", 2);
    writer.result(1, open[0], OptionResult::new(open[0], "look", json!("y".repeat(4_000))));
    for _ in 0..12 {
        writer.step(&"x".repeat(4_000));
    }
    let (order, rules) = (order(&writer), rules());
    let planner = CutPlanner::new(&writer.messages, &order, &rules, None).unwrap();
    let cut = planner.fitting(6_000).unwrap();
    let before = rendered(&writer.messages, &order, Some(&cut));
    assert!(before.contains(&writer.messages[2]), "an answer with an open call stays");
    writer.result(1, open[1], OptionResult::new(open[1], "look", json!("late")));
    let after = rendered(&writer.messages, &order, Some(&cut));
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.len(), before.len() + 1);
    check_complete(&after, &writer.messages);
}

#[test]
fn a_follow_up_begins_with_the_cut_conversation() {
    let mut writer = Writer::new();
    for _ in 0..20 {
        writer.step(&"x".repeat(2_000));
    }
    writer.answer("Done.", 0);
    let rules = rules();
    let (own, next) = (order(&writer), writer.next());
    let cut = CutPlanner::new(&writer.messages, &own, &rules, None).unwrap().fitting(5_000).unwrap();
    let before = rendered(&writer.messages, &own, Some(&cut));
    let ids = [&writer, &next].map(|writer| writer.messages[0].evaluation_id);
    let both = ConversationOrder::new(&ids[..1], ids[1]);
    let all = writer.conversation(&next);
    let cuts: Items<Cut> = [cut.clone()].into_iter().collect();
    assert_eq!(both.latest(&cuts).shown.as_deref(), Some(&cut));
    let after = rendered(&all, &both, Some(&cut));
    assert_eq!(after[1..before.len()], before[1..], "the system message is that of the follow-up");
    let other = ConversationOrder::new(&[], ids[1]);
    assert_eq!(other.latest(&cuts).shown, None, "another conversation has other cuts");
}

#[test]
fn a_cut_without_its_summary_waits_and_the_one_before_it_is_shown() {
    let mut writer = Writer::new();
    for _ in 0..20 {
        writer.step(&"x".repeat(2_000));
    }
    let (order, rules) = (order(&writer), rules());
    let planner = CutPlanner::new(&writer.messages, &order, &rules, None).unwrap();
    let (plain, pending) = (planner.fitting(5_000).unwrap(), planner.summarizing(None, 2, None).unwrap());
    let cuts: Items<Cut> = [plain.clone(), pending.clone()].into_iter().collect();
    let latest = order.latest(&cuts);
    assert_eq!((latest.pending.as_deref(), latest.shown.as_deref()), (Some(&pending), Some(&plain)));
    let whole = Cut::whole(plain.end);
    assert_eq!(whole.renderer(), None);
    assert_eq!(rendered(&writer.messages, &order, Some(&whole)), writer.messages);
    assert!(pending.summary_renderer().starts_with("summarize/1 "), "{}", pending.summary_renderer());
    assert!(planner.summarizing(None, 30, None).is_none(), "there is nothing to cover");
}

/// The stored form is a promise.
#[test]
fn cuts_are_stored_like_this() {
    let point = |sequence: u64| json!({"evaluation_id": "01900000-0000-7000-8002-000000000009", "sequence": sequence});
    let stored = json!({
        "end": point(40), "results_from": point(30), "answers_from": point(20), "keep_bytes": 512, "preview": 120,
        "recall": "recall", "limit": 15000,
        "summary": {"before": point(20), "focus": "seams", "text": "Found the seams.", "later": true},
        "unknown": 1,
    });
    let cut: Cut = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(serde_json::to_value(&cut).unwrap(), stored);
    assert_eq!((Cut::NAME, Cut::VERSION, Cut::POLICY), ("conversation_cut", 1, SlicePolicy::Journal));
    let least = json!({"end": point(3), "keep_bytes": 0, "preview": 0});
    let cut: Cut = serde_json::from_value(least.clone()).unwrap();
    assert_eq!(serde_json::to_value(&cut).unwrap(), least);
}

#[test]
fn summaries_are_kept_as_texts_of_a_limited_length() {
    assert_eq!(summary_text(" \n"), None);
    assert_eq!(summary_text(" Found.\n").as_deref(), Some("Found."));
    let long = summary_text(&"é".repeat(40_000)).unwrap();
    assert!(long.len() <= 32 * 1024 + 3 && long.ends_with('…'), "{}", long.len());
}

#[test]
fn strategies_with_cuts_are_configured_by_name() {
    let known = Registry::<dyn TranscriptCompression>::standard();
    let summary = known.normalize(&json!({"strategy": "summary", "focus": "seams", "tokens": 9000})).unwrap();
    let rules = summary.cut_rules().unwrap();
    assert_eq!(rules.tokens, Some(9_000));
    assert_eq!(rules.summary, Some(SummaryRules { focus: Some("seams".to_owned()) }));
    assert_eq!(known.normalize(&json!("cut")).unwrap().cut_rules(), Some(CutOptions::default().rules()));
    assert_eq!(known.normalize(&json!("elide")).unwrap().cut_rules(), None);
    known.normalize(&json!({"strategy": "cut", "focus": "seams"})).unwrap_err();
}

/// A step of a conversation.
#[derive(Debug, Clone)]
enum Step {
    Answer { calls: usize, answered: usize, size: usize },
    Text(usize),
    User(usize),
    Late(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..4, 0usize..4, 0usize..6_000).prop_map(|(calls, answered, size)| Step::Answer { calls, answered, size }),
        1 => (1usize..2_000).prop_map(Step::Text),
        1 => (1usize..800).prop_map(Step::User),
        1 => (0usize..3_000).prop_map(Step::Late),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens in a conversation, with and without summaries: requests between two cuts begin alike, each of
    /// them is complete, and each can be rendered again from the whole conversation.
    #[test]
    fn requests_are_stable_complete_and_repeatable(
        steps in prop::collection::vec(step(), 1..60), limit in 200u64..6_000, summarizes in any::<bool>(),
    ) {
        let summary = summarizes.then(SummaryRules::default);
        let mut driver = Simulated::new(limit, CutRules { summary, ..rules() });
        let mut answers = 0;
        let mut open: Vec<(u64, CallId)> = Vec::new();
        let mut made = Vec::new();
        for step in steps {
            match step {
                Step::Answer { calls, answered, size } => {
                    let made = driver.writer.answer("Looking.", calls);
                    answers += 1;
                    for (place, call) in made.into_iter().enumerate() {
                        if place < answered {
                            let result = OptionResult::new(call, "look", json!("x".repeat(size)));
                            driver.writer.result(answers, call, result);
                        } else {
                            open.push((answers, call));
                        }
                    }
                }
                Step::Text(size) => {
                    driver.writer.answer(&"y".repeat(size), 0);
                    answers += 1;
                }
                Step::User(size) => driver.writer.words(RoleHint::User, &"z".repeat(size)),
                Step::Late(size) => {
                    if let Some((turn, call)) = open.pop() {
                        let result = OptionResult::new(call, "look", json!("l".repeat(size)));
                        driver.writer.result(turn, call, result);
                    }
                }
            }
            driver.request();
            made.push((driver.writer.messages.len(), driver.cuts.len()));
        }
        let order = order(&driver.writer);
        for (request, (messages, cuts)) in driver.requests.iter().zip(made) {
            let cut = cuts.checked_sub(1).map(|last| &driver.cuts[last]);
            prop_assert_eq!(request, &rendered(&driver.writer.messages[..messages], &order, cut));
        }
    }
}
