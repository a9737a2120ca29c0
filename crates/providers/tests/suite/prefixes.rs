//! Every prefix of every journal leads to another action than asking, or to a request that each validator
//! accepts.
//!
//! Journals are random samples of everything that may happen, made [awkward](super::support::journals). At
//! each cut, and at forks from there, the real machine is rebuilt from the real view, and the real policies
//! of all four providers render their requests: of the whole conversation, or of what a strategy leaves of
//! it.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Batch, InnerMessage, Origin, Position, SessionCreated};
use backstitch_core::machine::{
    EvaluationHistory, MachineAction, MachineFactory, ToolLoopFactory, conversation,
};
use backstitch_core::message::{MessageBuilder, PolicyName};
use backstitch_core::ports::{Policy, PolicyRequest, RequestBody, RequestMemo};
use backstitch_core::session::Session;
use backstitch_core::time::Clock;
use backstitch_core::view::{Evaluation, JournalView, Transcript};
use backstitch_providers::{
    CacheMarks, ModelPolicy, ModelTarget, OpenCalls, Provider, RequestOptions, StructuredOutput,
    ThinkingBudget, UnsupportedMediaPolicy,
};
use backstitch_repl::transcript::{
    ConversationOrder, CutOptions, CutPlanner, Elide, ElideOptions, KeepAll, TranscriptCompression, Trim,
    TrimOptions,
};
use backstitch_testkit::request_form::check_form;
use backstitch_testkit::{fold, sample};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::journals::Sampled;
use super::support::{MODEL, Nobody, tools};

fn options(variant: usize, provider: Provider) -> RequestOptions {
    // Not every provider accepts a token budget for thinking.
    let takes_budget = matches!(provider, Provider::Anthropic | Provider::Gemini);
    RequestOptions {
        open_calls: if variant % 3 == 2 { OpenCalls::Skip } else { OpenCalls::Interrupted },
        thinking: if variant % 2 == 1 && takes_budget {
            ThinkingBudget::Budget(1_024)
        } else {
            ThinkingBudget::Default
        },
        cache: if variant % 5 == 1 { CacheMarks::Auto } else { CacheMarks::None },
        unsupported: if variant % 2 == 1 {
            UnsupportedMediaPolicy::Describe
        } else {
            UnsupportedMediaPolicy::Refuse
        },
        structured: if variant % 7 == 3 { StructuredOutput::InWords } else { StructuredOutput::Native },
        without_labels: variant % 4 == 3,
        ..RequestOptions::default()
    }
}

/// The schema of answers: none, a simple one, one that some providers cannot enforce.
fn output(variant: usize) -> Option<Arc<Value>> {
    let schema = match variant % 4 {
        1 => json!({"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"]}),
        2 => json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}),
        3 => json!({"type": "object", "properties": {"next": {"$ref": "#"}}}),
        _ => return None,
    };
    Some(Arc::new(schema))
}

/// What a server refused before: nothing, or media of results.
fn refusals(variant: usize) -> Arc<[Arc<str>]> {
    (variant % 13 == 6).then(|| "this model does not support image input".into()).into_iter().collect()
}

#[derive(Debug, Default)]
struct Counted {
    asked: usize,
    replayed: usize,
    forks: usize,
    interrupted: usize,
    compressed: usize,
    followed: usize,
    /// Requests with a part that was encoded by itself.
    shared: usize,
}

/// How much of a conversation is shown: all of it, the last answers, or all but old results.
fn strategy(variant: usize) -> Box<dyn TranscriptCompression> {
    match variant % 11 {
        1 | 4 => Box::new(Trim::new(TrimOptions { turns: Some(1 + variant % 3), ..TrimOptions::default() })),
        2 | 5 => {
            let options = ElideOptions { keep_turns: variant % 2, keep_bytes: 16, ..ElideOptions::default() };
            Box::new(Elide::new(options))
        }
        7 => Box::new(Trim::new(TrimOptions { turns: None, tokens: Some(200), note: false })),
        _ => Box::new(KeepAll::default()),
    }
}

/// What a cut shows of a conversation: without old results, without old answers or with a summary; or the request for
/// the summary. `None` if this variant has no cut, or there is nothing to leave out.
fn shown_by_cut(
    variant: usize,
    said: &[Arc<InnerMessage>],
    order: &ConversationOrder,
) -> Option<Vec<Arc<InnerMessage>>> {
    let rules = CutOptions { keep_turns: 2, keep_bytes: 16, ..CutOptions::default() }.rules();
    let planner = CutPlanner::new(said, order, &rules, None)?;
    let cut = match variant % 11 {
        3 => planner.fitting(10 + variant as u64)?,
        6 => planner.summarizing(None, 1, None)?.with_summary("All seams hold."),
        8 => {
            return planner
                .summarizing(None, 1, Some("seams".to_owned()))?
                .summary_request(said, said, order);
        }
        _ => return None,
    };
    let head = cut.render_head(said, order);
    Some(head.messages.into_iter().chain(said[head.count..].iter().cloned()).collect())
}

struct Checker {
    sampled: Sampled,
    variant: usize,
    policies: Vec<(Provider, ModelPolicy)>,
    /// What the requests of each conversation left, and those of all of them.
    memos: HashMap<(Provider, EvaluationId, usize), RequestMemo>,
    memo: RequestMemo,
    counted: Counted,
}

impl Checker {
    fn new(journal: &sample::Journal, seed: u64, variant: usize) -> Self {
        let policies = Provider::ALL.into_iter().map(|provider| {
            let name = PolicyName::new("model").unwrap();
            let policy = ModelPolicy::new(name, ModelTarget::new(provider, MODEL), None, Arc::new(Nobody));
            (provider, policy.with_options(options(variant, provider)))
        });
        let sampled = Sampled::of(journal, seed, variant % 2 == 1);
        let policies = policies.collect();
        Self {
            sampled,
            variant,
            policies,
            memos: HashMap::new(),
            memo: RequestMemo::default(),
            counted: Counted::default(),
        }
    }

    /// Checks every cut of the journal, and forks at some of them.
    fn check(mut self) -> Counted {
        let views = fold::every_cut(&self.sampled.records).unwrap();
        for (index, view) in views.iter().enumerate() {
            self.check_view(view, "the journal");
            if index % 9 == self.variant % 9 {
                self.check_fork(view, index);
            }
        }
        self.counted
    }

    fn check_view(&mut self, view: &JournalView, what: &str) {
        let transcript = self.sampled.hydrated(&view.transcript().unwrap());
        let mut before: Vec<EvaluationId> = Vec::new();
        for evaluation in view.evaluations() {
            let id = evaluation.evaluation_id;
            let past = EvaluationHistory::of(view, id).unwrap();
            let action = ToolLoopFactory::default().rebuild(&past).unwrap().next();
            let followed = view.followed(id);
            assert_eq!(past.conversation(), conversation(&view.transcript().unwrap(), &followed, id));
            self.counted.asked += usize::from(action == MachineAction::Ask);
            self.check_evaluation(view, &transcript, evaluation, &[], what);
            // Also as one that follows all earlier ones, whatever those left open.
            if !before.is_empty() {
                self.counted.followed += 1;
                self.check_evaluation(view, &transcript, evaluation, &before, what);
            }
            before.push(id);
        }
    }

    fn check_evaluation(
        &mut self,
        view: &JournalView,
        transcript: &Transcript,
        evaluation: &Evaluation,
        followed: &[EvaluationId],
        what: &str,
    ) {
        let id = evaluation.evaluation_id;
        let said = conversation(transcript, followed, id);
        let strategy = strategy(self.variant);
        let order = ConversationOrder::new(followed, id);
        let cut = shown_by_cut(self.variant, &said, &order);
        let is_cut = cut.is_some();
        let shown = cut.unwrap_or_else(|| strategy.render_messages(&said).messages);
        self.counted.compressed += usize::from(shown != said);
        let question = PolicyRequest {
            session_id: view.created().session_id,
            evaluation_id: id,
            turn: evaluation.turns + 1,
            shown: shown.into_iter().collect(),
            renderer: Some(strategy.renderer()),
            transcript: transcript.clone(),
            media: self.sampled.media.clone(),
            options: tools().into_iter().map(Arc::new).collect(),
            output: output(self.variant),
            refusals: refusals(self.variant),
            deltas: Default::default(),
            session: Session::new(view.created().session_id, sample::clock()),
            memo: RequestMemo::default(),
        };
        let open = transcript.pending_tool_calls(id).len();
        let answered: Vec<_> = said.iter().filter_map(|message| message.tool_call_id()).collect();
        let calls = said.iter().filter_map(|message| message.message.option_call());
        // A strategy may leave out what an ended evaluation left open.
        let most = calls.filter(|call| !answered.contains(&call.invocation_id)).count();
        let least = match () {
            () if is_cut && self.variant % 11 == 8 => 0,
            () if is_cut || strategy.name() != KeepAll::NAME => open,
            () => most,
        };
        // Also where the machine would take another action: a request can be inspected anywhere.
        for (provider, policy) in &self.policies {
            let rendered = policy.request(&question);
            let rendered =
                rendered.unwrap_or_else(|error| panic!("{what} at {:?}, {provider}: {error}", view.head()));
            check_form(provider.as_str(), &rendered.body)
                .unwrap_or_else(|error| panic!("{what} at {:?}: {error}", view.head()));
            let text = rendered.body.to_string();
            // As a driver does, with what the requests before left: of this conversation, and of all of them.
            for memo in [self.memos.entry((*provider, id, followed.len())).or_default(), &mut self.memo] {
                let info = policy.describe(&PolicyRequest { memo: memo.clone(), ..question.clone() });
                assert_eq!(
                    info.body.as_ref().map(RequestBody::text),
                    Some(text.clone()),
                    "{what}, {provider}"
                );
                assert_eq!(info.digest, Some(Digest::of(text.as_bytes())), "{what}, {provider}");
                let departures = rendered.report.departures.iter().map(ToString::to_string);
                assert_eq!(info.departures, departures.collect::<Vec<_>>(), "{what}, {provider}");
                self.counted.shared += info.body.map_or(0, |body| body.pieces().count().saturating_sub(2));
            }
            self.counted.replayed += usize::from(text.contains("\"hm\""));
            let shown = text.matches("interrupted: the call was cut off").count();
            let expected = if self.variant % 3 == 2 { 0..=0 } else { least..=most };
            assert!(
                expected.contains(&shown),
                "{what}, {provider}: each open call is shown as interrupted: {shown} of {expected:?}"
            );
            self.counted.interrupted += shown;
        }
    }

    /// A fork at this position, and a user message in it.
    fn check_fork(&mut self, base: &JournalView, index: usize) {
        let ids = sample::ids(90_000 + index as u64);
        let position = base.head();
        let created = SessionCreated {
            origin: Origin::Fork { session: base.created().session_id, position },
            ..sample::created(ids.next())
        };
        let mut batch = Batch::at(sample::clock().now());
        batch.push(created);
        let records = batch.clone().into_records(Position::START).0;
        self.check_view(&JournalView::fold_fork(base, &records).unwrap(), "a fork");
        let running = base.evaluations().find(|evaluation| evaluation.outcome().is_none()).cloned();
        if let Some(Evaluation { evaluation_id, turns, .. }) = running {
            batch.push(said(base, evaluation_id, turns, &ids));
            let records = batch.into_records(Position::START).0;
            self.check_view(&JournalView::fold_fork(base, &records).unwrap(), "a continued fork");
        }
        self.counted.forks += 1;
    }
}

fn said(
    base: &JournalView,
    evaluation: EvaluationId,
    turn: u64,
    ids: &backstitch_core::id::IdStream,
) -> InnerMessage {
    let mut builder = MessageBuilder::continue_step(turn, ids);
    builder.person(PolicyName::new("ada").unwrap()).add_text("In another way, please.");
    InnerMessage {
        message_id: ids.next(),
        evaluation_id: evaluation,
        sequence: base.transcript().unwrap().inner_messages(evaluation).len() as u64,
        turn,
        prompt_ns: "samples".into(),
        prompt_key: "tailor".into(),
        created_at: sample::clock().now(),
        message: builder.to_message().unwrap(),
        role: None,
        provider: None,
        extra: Extra::default(),
    }
}

#[test]
fn sample_journals_ask_replay_fork_and_interrupt() {
    let counted = Checker::new(&sample::journal(3, 25), 1, 0).check();
    let Counted { asked, replayed, forks, interrupted, followed, shared, .. } = counted;
    assert!(asked > 20 && replayed > 20 && forks > 5 && interrupted > 20 && followed > 20, "{counted:?}");
    assert!(shared > 20, "{counted:?}");
    Checker::new(&sample::every_kind(), 2, 1).check();
    Checker::new(&sample::every_kind(), 2, 19).check();
    for variant in [1, 2, 3, 6, 7, 8] {
        let counted = Checker::new(&sample::journal(4, 12), 1, variant).check();
        assert!(counted.compressed > 20, "variant {variant}: {counted:?}");
    }
}

/// The number of journals. `BACKSTITCH_PREFIX_CASES` overrides it.
fn cases() -> u32 {
    let configured = std::env::var("BACKSTITCH_PREFIX_CASES").ok().and_then(|text| text.parse().ok());
    configured.unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_prefix_of_any_journal_gives_another_action_or_a_valid_request(
        seed in any::<u64>(), turns in 1usize..10, variant in 0usize..840,
    ) {
        Checker::new(&sample::journal(seed, turns), seed, variant).check();
    }
}
