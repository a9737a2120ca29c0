//! Long conversations at the limit of their room: cuts that stay, summaries, and compaction.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Effect, InnerMessage, RecordBody};
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::{PolicyAnswer, PolicyRequest};
use backstitch_core::session::Items;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_core::view::JournalView;
use backstitch_repl::transcript::{Cut, SummaryOptions, SummaryStrategy, estimated_tokens};
use backstitch_runtime::{
    Agent, CompactOptions, FunctionPolicy, PointSpec, ResumeOptions, Runtime, RuntimeError, SessionOptions,
};
use backstitch_store::MemoryStore;
use serde_json::json;
use tokio::sync::Notify;

/// The limit is three quarters of it.
const WINDOW: u64 = 8_000;

const SUMMARY: &str = "The seams of rows 1 to 9 hold.";

/// What a model does when it is asked for a summary.
#[derive(Clone)]
enum OnSummary {
    Writes,
    Fails,
    /// Reports that it was asked, and never answers.
    Hangs(Arc<Notify>),
    Calls,
}

struct Shop {
    agent: Agent,
    asked: Arc<Mutex<Vec<PolicyRequest>>>,
    summaries: Arc<AtomicUsize>,
}

impl Shop {
    /// An agent that looks at `turns` rows for each message, and then answers.
    fn new(turns: u64, on_summary: OnSummary) -> Self {
        let (asked, summaries) = (Arc::<Mutex<Vec<PolicyRequest>>>::default(), Arc::<AtomicUsize>::default());
        let (heard, counted) = (asked.clone(), summaries.clone());
        let name = PolicyName::new("tailor").unwrap();
        let policy = FunctionPolicy::new(name, move |question: PolicyRequest| {
            let is_summary = question.renderer.as_deref().is_some_and(|name| name.starts_with("summarize/"));
            let (turn, on_summary) = (question.turn, on_summary.clone());
            heard.lock().unwrap().push(question);
            if is_summary {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            async move {
                let row = || Arguments::from_object(json!({"row": turn}).as_object().unwrap().clone());
                let usage = Amounts { input_tokens: 100, output_tokens: 10, ..Amounts::ZERO };
                let answer = match (is_summary, on_summary) {
                    (false, _) if turn > turns => PolicyAnswer::text("They hold."),
                    (false, _) => PolicyAnswer::text("Next.").call("look", row()),
                    (true, OnSummary::Writes) => PolicyAnswer::text(SUMMARY),
                    (true, OnSummary::Calls) => PolicyAnswer::default().call("look", row()),
                    (true, OnSummary::Fails) => {
                        return Err("no summary today".into());
                    }
                    (true, OnSummary::Hangs(hangs)) => {
                        hangs.notify_one();
                        std::future::pending().await
                    }
                };
                Ok(PolicyAnswer { usage, ..answer })
            }
        });
        let look = Tool::builder("look", "Looks at a row.").unwrap();
        let look = look.effect(Effect::Pure).workspace(WorkspaceUse::None);
        let look = look.handler(|_, row: Row| async move { Ok(ToolResult::ok(row.text())) });
        let agent = Agent::new("tests/tailor").policy(policy).instructions("You sew.").tools([look]);
        let agent = agent.window(WINDOW).max_repeats(None);
        Self { agent, asked, summaries }
    }

    fn summarizing(mut self) -> Self {
        self.agent = self.agent.compression(Arc::new(SummaryStrategy::default()));
        self
    }

    fn shown(&self) -> Vec<Items<InnerMessage>> {
        self.asked.lock().unwrap().iter().map(|question| question.shown.clone()).collect()
    }

    fn summaries(&self) -> usize {
        self.summaries.load(Ordering::SeqCst)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Row {
    row: u64,
}

impl Row {
    fn text(&self) -> String {
        format!("row {} holds. ", self.row).repeat(100)
    }
}

fn runtime() -> Runtime {
    Runtime::new(Arc::new(MemoryStore::new()))
}

async fn started(runtime: &Runtime, agent: &Agent) -> SessionId {
    let run = runtime.start(agent, "Look at the rows.").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "They hold.");
    run.session()
}

async fn asked(runtime: &Runtime, session: SessionId, agent: &Agent, text: &str) {
    runtime.ask(session, agent, text).await.unwrap().answer::<String>().await.unwrap();
}

fn text(messages: &Items<InnerMessage>) -> String {
    messages.iter().map(|message| message.content()).collect::<Vec<_>>().join("\n")
}

fn begins(earlier: &Items<InnerMessage>, later: &Items<InnerMessage>) -> bool {
    earlier.len() <= later.len() && earlier.iter().zip(later.iter()).all(|(one, two)| one == two)
}

async fn cuts(runtime: &Runtime, session: SessionId) -> Vec<Arc<Cut>> {
    runtime.state(session).await.unwrap().all::<Cut>().unwrap().iter().cloned().collect()
}

fn requests(view: &JournalView, name: &str) -> usize {
    let all = view.evaluations().flat_map(|evaluation| &evaluation.requests);
    let renderers = all.filter_map(|request| request.started.record.renderer.as_deref());
    renderers.filter(|renderer| renderer.starts_with(name)).count()
}

#[tokio::test]
async fn requests_between_two_cuts_begin_alike() {
    let (runtime, shop) = (runtime(), Shop::new(150, OnSummary::Writes));
    let session = started(&runtime, &shop.agent).await;
    let shown = shop.shown();
    assert_eq!((shown.len(), shop.summaries()), (151, 0));
    let changed = shown.windows(2).filter(|pair| !begins(&pair[0], &pair[1])).count();
    let cuts = cuts(&runtime, session).await;
    assert!(changed == cuts.len() && (5..=16).contains(&changed), "{changed} of {} cuts", cuts.len());
    assert!(shown.iter().all(|shown| estimated_tokens(shown.iter()) <= WINDOW / 4 * 3));
    let view = runtime.view(session).await.unwrap();
    assert!(requests(&view, "cut/1 ") > 100);
    // A follow-up begins with the same conversation, and so does one in a fork. Both ask with nothing but the store.
    asked(&runtime, session, &shop.agent, "And now?").await;
    let fork = runtime.fork(session, PointSpec::Head).await.unwrap().session;
    asked(&runtime, fork, &shop.agent, "And in the fork?").await;
    let later = shop.shown();
    assert!(text(&later[151]).starts_with(&text(&shown[150])));
    let last = later.iter().rev().find(|shown| text(shown).contains("And in the fork?")).unwrap();
    assert!(text(last).contains("is not shown"));
}

#[tokio::test]
async fn a_rewind_shows_what_was_shown_then() {
    let (runtime, shop) = (runtime(), Shop::new(60, OnSummary::Writes));
    let session = started(&runtime, &shop.agent).await;
    let before = cuts(&runtime, session).await.len();
    asked(&runtime, session, &shop.agent, "Again.").await;
    assert!(cuts(&runtime, session).await.len() > before);
    let first = shop.shown()[61].clone();
    let view = runtime.view(session).await.unwrap();
    let second = view.evaluations().nth(1).unwrap().started.position;
    runtime.rewind(session, PointSpec::Position(second)).await.unwrap();
    assert_eq!(cuts(&runtime, session).await.len(), before, "cuts are rewound with the conversation");
    let count = shop.shown().len();
    asked(&runtime, session, &shop.agent, "Again.").await;
    assert_eq!(text(&shop.shown()[count]), text(&first));
}

#[tokio::test]
async fn a_model_with_more_room_sees_everything_again() {
    let (runtime, shop) = (runtime(), Shop::new(40, OnSummary::Writes));
    let session = started(&runtime, &shop.agent).await;
    assert!(text(shop.shown().last().unwrap()).contains("is not shown"));
    let large = shop.agent.clone().window(1_000_000);
    asked(&runtime, session, &large, "All of it?").await;
    let all = shop.shown();
    let seen = all.iter().find(|shown| text(shown).contains("All of it?")).unwrap();
    assert!(!text(seen).contains("is not shown"));
    let count = all.len();
    asked(&runtime, session, &shop.agent, "And the small one?").await;
    assert!(text(&shop.shown()[count]).contains("is not shown"));
}

#[tokio::test]
async fn a_summary_is_asked_for_once_recorded_and_charged() {
    let (runtime, shop) = (runtime(), Shop::new(30, OnSummary::Writes).summarizing());
    let session = started(&runtime, &shop.agent).await;
    let view = runtime.view(session).await.unwrap();
    let summaries = shop.summaries();
    assert!((1..=6).contains(&summaries), "{summaries}");
    assert_eq!(requests(&view, "summarize/1 "), summaries);
    let spent = view.ledger().charged();
    assert_eq!(spent.input_tokens, 100 * (31 + summaries as u64), "each request is charged");
    assert_eq!(view.evaluations().next().unwrap().turns, 31, "a summary is not a turn");
    let last = text(shop.shown().last().unwrap());
    assert!(last.contains(SUMMARY) && last.contains("Look at the rows."), "{last}");
    assert!(!last.contains("row 1 holds"), "what it covers is not shown");
    assert!(shop.shown().iter().all(|shown| estimated_tokens(shown.iter()) <= WINDOW));
    // It is data: another process, a fork and a follow-up ask nobody for it.
    let fork = runtime.fork(session, PointSpec::Head).await.unwrap().session;
    let quiet = Shop::new(0, OnSummary::Fails).summarizing();
    for session in [session, fork] {
        asked(&runtime, session, &quiet.agent, "And now?").await;
        assert!(text(quiet.shown().last().unwrap()).contains(SUMMARY));
    }
    assert_eq!(quiet.summaries(), 0);
}

#[tokio::test]
async fn without_a_summary_older_results_are_left_out() {
    for on_summary in [OnSummary::Fails, OnSummary::Calls] {
        let (runtime, shop) = (runtime(), Shop::new(40, on_summary).summarizing());
        let session = started(&runtime, &shop.agent).await;
        assert!(shop.summaries() > 0);
        let last = text(shop.shown().last().unwrap());
        assert!(last.contains("is not shown") && !last.contains(SUMMARY), "{last}");
        let cuts = cuts(&runtime, session).await;
        assert!(!cuts.last().unwrap().needs_summary());
        let ran = runtime.view(session).await.unwrap().calls().count();
        assert_eq!(ran, 40, "a call in the place of a summary does not run");
    }
}

#[tokio::test]
async fn a_budget_that_covers_no_summary_is_kept() {
    let (runtime, shop) = (runtime(), Shop::new(20, OnSummary::Writes).summarizing());
    let budget = Limits { total_tokens: Some(110 * 13), ..Limits::default() };
    let run = runtime.start(&shop.agent.clone().budget(budget), "Look at the rows.").await.unwrap();
    run.answer::<String>().await.unwrap_err();
    let spent = runtime.view(run.session()).await.unwrap().ledger().charged();
    assert!(spent.total_tokens() <= 110 * 13, "{spent:?}");
}

#[tokio::test]
async fn a_summary_that_was_interrupted_is_asked_for_again() {
    let runtime = runtime();
    let hangs = Arc::new(Notify::new());
    let shop = Shop::new(30, OnSummary::Hangs(hangs.clone())).summarizing();
    let run = runtime.start(&shop.agent, "Look at the rows.").await.unwrap();
    hangs.notified().await;
    let session = run.session();
    // The process ends here: what was held is gone, and another one takes the session over.
    let records = runtime.records(session).await.unwrap();
    assert!(records.iter().any(|record| matches!(&record.body, RecordBody::SliceChanged(change) if change.slice == "conversation_cut")));
    let again = Shop::new(30, OnSummary::Writes).summarizing();
    let options = SessionOptions { take_over: true, ..SessionOptions::default() };
    let other = Runtime::new(runtime.store().clone());
    let resumed = other.resume_with(session, &again.agent, ResumeOptions::default(), options).await.unwrap();
    assert_eq!(resumed.answer::<String>().await.unwrap(), "They hold.");
    let first = again.asked.lock().unwrap()[0].clone();
    assert!(first.renderer.unwrap().starts_with("summarize/1 "));
    let pending = shop.asked.lock().unwrap().last().unwrap().clone();
    assert_eq!(first.shown, pending.shown, "it is the same request");
    drop(run);
}

#[tokio::test]
async fn a_person_compacts_a_conversation() {
    let (runtime, shop) = (runtime(), Shop::new(6, OnSummary::Writes));
    let session = started(&runtime, &shop.agent).await;
    let head = runtime.view(session).await.unwrap().head();
    let options = CompactOptions { focus: Some(" the sleeves ".to_owned()) };
    let done = runtime.compact(session, &shop.agent, options).await.unwrap();
    assert_eq!((done.answers, done.summary.as_str()), (5, SUMMARY));
    assert!(done.tokens_after < done.tokens_before, "{done:?}");
    let question = shop.asked.lock().unwrap().last().unwrap().clone();
    let instruction = question.shown.latest().unwrap().content();
    assert!(instruction.ends_with("Pay most attention to this: the sleeves"), "{instruction}");
    assert_eq!(question.options.len(), 1, "providers refuse calls of tools that are not offered");
    asked(&runtime, session, &shop.agent, "And now?").await;
    let shown = text(&shop.shown()[8]);
    assert!(
        shown.contains(SUMMARY) && !shown.contains("row 1 holds") && shown.contains("row 6 holds"),
        "{shown}"
    );
    // A rewind to before it shows the answers again, and nothing is asked for.
    runtime.rewind(session, PointSpec::Position(head)).await.unwrap();
    let before = shop.summaries();
    asked(&runtime, session, &shop.agent, "And before?").await;
    let shown = shop.shown();
    let shown = shown.iter().find(|shown| text(shown).contains("And before?")).unwrap();
    assert!(text(shown).contains("row 1 holds") && !text(shown).contains(SUMMARY));
    assert_eq!(shop.summaries(), before);
}

#[tokio::test]
async fn nothing_changes_if_a_conversation_cannot_be_compacted() {
    let (runtime, short) = (runtime(), Shop::new(1, OnSummary::Writes));
    let session = started(&runtime, &short.agent).await;
    let options = CompactOptions::default;
    let refused = runtime.compact(session, &short.agent, options()).await.unwrap_err();
    assert!(matches!(refused, RuntimeError::NothingToCompact { .. }), "{refused}");
    let failing = Shop::new(6, OnSummary::Fails);
    asked(&runtime, session, &failing.agent, "More.").await;
    let failed = runtime.compact(session, &failing.agent, options()).await.unwrap_err();
    assert_eq!(failed.code(), ErrorCode::FunctionFailed);
    asked(&runtime, session, &short.agent, "And now?").await;
    assert!(text(short.shown().last().unwrap()).contains("row 1 holds"));
    assert_eq!(short.summaries(), 0, "the failed one is not asked for again");
    // One that is dropped stops, and leaves nothing behind either.
    let hangs = Arc::new(Notify::new());
    let hanging = Shop::new(6, OnSummary::Hangs(hangs.clone()));
    {
        let compacting = runtime.compact(session, &hanging.agent, options());
        tokio::select! {
            done = compacting => panic!("{done:?}"),
            () = hangs.notified() => {}
        }
    }
    asked(&runtime, session, &short.agent, "Really?").await;
    assert_eq!(short.summaries(), 0);
    let open = runtime.start(&hanging.agent.clone().policy(waiting()), "Wait.").await.unwrap();
    let refused = runtime.compact(open.session(), &hanging.agent, options()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::SessionHeld);
}

/// A policy that never answers.
fn waiting() -> FunctionPolicy {
    FunctionPolicy::new(PolicyName::new("tailor").unwrap(), |_| std::future::pending())
}

#[tokio::test]
async fn a_limit_of_the_strategy_counts_like_that_of_the_window() {
    let (runtime, shop) = (runtime(), Shop::new(20, OnSummary::Writes));
    let options = SummaryOptions { tokens: Some(2_000), ..SummaryOptions::default() };
    let agent = shop.agent.clone().window(None).compression(Arc::new(SummaryStrategy::new(options)));
    started(&runtime, &agent).await;
    assert!(shop.summaries() > 1);
    assert!(shop.shown().iter().all(|shown| estimated_tokens(shown.iter()) <= 2_600));
}
