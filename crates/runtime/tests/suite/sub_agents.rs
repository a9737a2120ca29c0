//! Agents that work for agents: sessions of their own, files that are lent, budgets that are held back, and pauses that are shared.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Decision, Effect, Origin, Outcome, PauseReason, RecordBody};
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::{Answer, WriteMode};
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_core::view::{CallStatus, Driver as Presence, SessionStatus};
use backstitch_providers::Reply;
use backstitch_runtime::{
    Agent, Contract, Driver, Ended, FunctionPolicy, PointSpec, ResumeOptions, Runtime, RuntimeError,
    SessionOptions, SubAgent, Telemetry, TelemetryEvent, Tools, read_records,
};
use backstitch_store::MemoryStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::driving::{reply, scripted};

#[derive(Deserialize, JsonSchema)]
struct Write {
    path: String,
    text: String,
}

/// A tool that writes a file, and counts how often it ran. `wait` waits until it is stopped, `fail` fails.
fn write(effect: Effect, ran: &Arc<AtomicUsize>) -> Tool {
    let ran = ran.clone();
    Tool::builder("write", "Writes a file.").unwrap().effect(effect).workspace(WorkspaceUse::Write).handler(
        move |context: ToolContext, write: Write| {
            let ran = ran.clone();
            async move {
                ran.fetch_add(1, Ordering::SeqCst);
                let path = FilePath::new(&write.path)?;
                context.filesystem()?.write_bytes(&path, write.text.as_bytes(), WriteMode::Overwrite)?;
                match write.text.as_str() {
                    "wait" => context.cancelled().await,
                    "fail" => return Err(ToolError::new("it tore")),
                    _ => {}
                }
                Ok(ToolResult::ok(format!("wrote {}", write.path)))
            }
        },
    )
}

fn writes(path: &str, text: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "text": text}))
}

fn asks(mission: &str) -> (&'static str, Value) {
    ("tailor", json!({"mission": mission}))
}

/// A caller and what it calls, over files in memory.
struct Shop {
    runtime: Runtime,
    files: Arc<MemoryFilesystem>,
    options: Box<dyn Fn() -> SessionOptions + Send + Sync>,
    ran: Arc<AtomicUsize>,
}

impl Shop {
    fn new() -> Self {
        let (store, files) = (Arc::new(MemoryStore::new()), Arc::new(MemoryFilesystem::new()));
        let workspace = Arc::new(MemoryWorkspace::new(files.clone(), store.clone()));
        let options = Box::new(move || SessionOptions::with_workspace(workspace.clone()));
        Self { runtime: Runtime::new(store), files, options, ran: Arc::default() }
    }

    /// The agent that is called.
    fn tailor(&self, effect: Effect, replies: Vec<Reply>) -> Agent {
        let mut tailor = scripted(replies).with_tools(Tools::new([write(effect, &self.ran)]).unwrap());
        tailor.key = "helper".into();
        tailor
    }

    async fn create(&self, caller: Agent) -> Driver {
        self.runtime.create(caller, (self.options)()).await.unwrap()
    }

    fn file(&self, path: &str) -> Option<String> {
        use backstitch_core::ports::Filesystem as _;
        let bytes = self.files.read_bytes(&FilePath::new(path).unwrap()).ok()?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// The sessions that work for calls of another, in the order of the calls.
    async fn children(&self, session: SessionId) -> Vec<SessionId> {
        let view = self.runtime.view(session).await.unwrap();
        view.calls().filter_map(|call| call.session()).collect()
    }

    async fn kinds(&self, session: SessionId) -> Vec<&'static str> {
        let start = backstitch_core::journal::Position::START;
        let records = read_records(&**self.runtime.store(), session, start, None).await.unwrap();
        records.iter().map(|record| record.body.kind()).collect()
    }
}

fn with_agent(caller: Vec<Reply>, agent: SubAgent) -> Agent {
    scripted(caller).with_tools(Tools::new([agent.into_tool()]).unwrap())
}

fn sub_agent(agent: Agent) -> SubAgent {
    SubAgent::new("tailor", "Mends clothes.", agent).unwrap()
}

/// What the caller was told by its calls.
async fn results(driver: &Driver) -> Vec<String> {
    let transcript = driver.session().state().await.view.transcript().unwrap();
    let results = transcript.all().iter().filter(|message| message.tool_call_id().is_some());
    results.map(|message| message.content()).collect()
}

#[tokio::test]
async fn an_agent_works_in_a_session_of_its_own_with_the_files_of_its_caller() {
    let shop = Shop::new();
    let tailor = shop.tailor(
        Effect::Workspace,
        vec![reply("first", &[writes("coat", "mended")]), reply("the coat is mended", &[])],
    );
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let telemetry = Telemetry::default();
    let heard = Arc::new(Mutex::new(Vec::new()));
    telemetry.subscribe({
        let heard = heard.clone();
        move |event| {
            if let TelemetryEvent::ToolInvoked(invoked) = event {
                heard.lock().unwrap().push((invoked.name.clone(), invoked.run.session_id));
            }
        }
    });
    let runtime = shop.runtime.clone().with_telemetry(telemetry);
    let driver = runtime.create(caller, (shop.options)()).await.unwrap();
    assert_eq!(driver.start("sew").await.unwrap().answer().unwrap().text, "done");
    assert_eq!(results(&driver).await, ["the coat is mended"]);
    assert_eq!(shop.file("coat").as_deref(), Some("mended"));

    let session = driver.session().id();
    let view = runtime.view(session).await.unwrap();
    let call = view.calls().next().unwrap();
    let child = runtime.view(call.session().unwrap()).await.unwrap();
    assert_eq!(child.created().origin, Origin::Call { session, call: call.call_id });
    assert_eq!(child.status(Presence::Absent), SessionStatus::Idle);
    assert_eq!(child.files(), view.files(), "the files after the call are those that the agent left");
    let mission = child.transcript().unwrap().all().get(1).unwrap().content();
    assert_eq!(mission, "mend it");
    assert_eq!(runtime.store().holder(child.session_id()).await.unwrap(), None, "it was given back");
    assert_eq!(
        *heard.lock().unwrap(),
        [("write".to_owned(), child.session_id()), ("tailor".to_owned(), session)]
    );
}

#[derive(Deserialize, serde::Serialize, JsonSchema)]
struct Job {
    cloth: String,
    stitches: u32,
}

#[tokio::test]
async fn parameters_and_answers_may_be_data() {
    let shop = Shop::new();
    let output = backstitch_core::prompt::Output::value::<Job>();
    let tailor = shop
        .tailor(Effect::Workspace, vec![reply(r#"{"cloth": "coat", "stitches": 7}"#, &[])])
        .with_output(Contract::new(output).unwrap());
    let agent =
        sub_agent(tailor).asking(|job: Job| format!("{} stitches for the {}", job.stitches, job.cloth));
    let caller = with_agent(
        vec![
            reply("", &[("tailor", json!({"cloth": "coat", "stitches": "many"}))]),
            reply("", &[("tailor", json!({"cloth": "coat", "stitches": 3}))]),
            reply("done", &[]),
        ],
        agent,
    );
    let driver = shop.create(caller).await;
    driver.start("sew").await.unwrap().answer().unwrap();
    let results = results(&driver).await;
    assert!(results[0].contains("/stitches"), "{results:?}");
    assert_eq!(results[1], r#"{"cloth":"coat","stitches":7}"#);
    let children = shop.children(driver.session().id()).await;
    assert_eq!(children.len(), 1, "what is refused starts nobody");
    let child = shop.runtime.view(children[0]).await.unwrap();
    assert_eq!(child.transcript().unwrap().all().get(1).unwrap().content(), "3 stitches for the coat");
}

/// An agent that calls itself for ever.
fn matryoshka(max_depth: u32) -> Agent {
    let policy = FunctionPolicy::new(PolicyName::new("doll").unwrap(), |question| async move {
        let told = question.transcript.all().iter().rev().find(|message| message.tool_call_id().is_some());
        Ok(match told {
            Some(told) => Answer::text(told.content()),
            None => Answer::text("deeper").call("doll", Arguments::from_text(r#"{"mission": "open"}"#)),
        })
    });
    let inner = || {
        SubAgent::inheriting("doll", "Opens.", |caller: &Agent| caller.clone())
            .unwrap()
            .described(|tool| tool.effect(Effect::Workspace).workspace(WorkspaceUse::None))
    };
    Agent::new("tests", "doll", Arc::new(policy))
        .with_tools(Tools::new([inner().into_tool()]).unwrap())
        .with_max_depth(max_depth)
}

#[tokio::test]
async fn agents_are_nested_only_so_deep() {
    for (limit, sessions) in [(0, 1), (2, 3), (3, 4)] {
        let shop = Shop::new();
        let driver = shop.create(matryoshka(limit)).await;
        let answered = driver.start("open").await.unwrap().answer().unwrap();
        assert!(answered.text.contains(&format!("nested {limit} deep")), "{}", answered.text);
        assert_eq!(shop.runtime.store().sessions().await.unwrap().len(), sessions);
    }
}

#[tokio::test]
async fn an_agent_that_fails_leaves_no_trace_in_the_files_and_goes_back_itself() {
    let shop = Shop::new();
    let tailor = shop
        .tailor(
            Effect::Workspace,
            vec![
                reply("", &[writes("coat", "torn")]),
                reply("", &[writes("hem", "torn")]),
                reply("", &[writes("more", "x")]),
            ],
        )
        .with_max_turns(2);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller).await;
    driver.start("sew").await.unwrap().answer().unwrap();
    assert_eq!(results(&driver).await, ["there was no answer after 2 turns"]);
    assert_eq!((shop.file("coat"), shop.file("hem")), (None, None));
    let view = shop.runtime.view(driver.session().id()).await.unwrap();
    let call = view.calls().next().unwrap();
    assert_eq!(call.status(), CallStatus::Failed);
    assert!(call.finished.as_ref().unwrap().record.rescue.is_some(), "as it left them they are kept");
    let child = shop.runtime.view(call.session().unwrap()).await.unwrap();
    assert!(child.latest_evaluation().is_none(), "it went back to before it was asked");
    assert_eq!(shop.kinds(child.session_id()).await.last(), Some(&"rewound"));
}

#[tokio::test]
async fn a_pause_of_the_agent_pauses_its_caller_and_a_decision_there_lets_both_go_on() {
    for (decision, expected) in [
        (Decision::Approve, Some("mended")),
        (Decision::Deny { reason: Some("not now".into()) }, None),
        (
            Decision::Edit {
                arguments: json!({"path": "coat", "text": "darned"}).as_object().cloned().unwrap(),
            },
            Some("darned"),
        ),
    ] {
        let shop = Shop::new();
        let mut tool = write(Effect::External, &shop.ran);
        let mut spec = (*tool.spec).clone();
        spec.approval = backstitch_core::tool::Approval::Needed;
        tool.spec = Arc::new(spec);
        let replies = vec![reply("", &[writes("coat", "mended")]), reply("as you like", &[])];
        let mut tailor = scripted(replies).with_tools(Tools::new([tool]).unwrap());
        tailor.key = "helper".into();
        let caller = with_agent(vec![reply("help", &[asks("mend")]), reply("done", &[])], sub_agent(tailor));
        let driver = shop.create(caller.clone()).await;
        let (session, ended) = (driver.session().id(), driver.start("sew").await.unwrap());
        let children = shop.children(session).await;
        let Ended::Paused { reason: PauseReason::Approval, session: Some(waiting), detail, call, .. } =
            &ended
        else {
            panic!("{ended:?}")
        };
        assert_eq!((*waiting, children.len()), (children[0], 1));
        assert!(detail.contains(&waiting.to_string()), "{detail}");
        // It goes on waiting, and nothing is recorded, however often it is resumed.
        let before = shop.kinds(session).await.len();
        assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap(), ended);
        assert_eq!(shop.kinds(session).await.len(), before);
        // The caller does not decide for it.
        let own = shop.runtime.view(session).await.unwrap().calls().next().unwrap().call_id;
        let refused = driver.session().resolve(Some(own), Decision::Approve, None).await.unwrap_err();
        assert!(refused.to_string().contains(&waiting.to_string()), "{refused}");
        driver.session().release().await.unwrap();

        shop.runtime.decide(*waiting, *call, decision, Some("ada".into())).await.unwrap();
        let driver = shop.runtime.open(session, caller, (shop.options)()).await.unwrap();
        driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert_eq!(results(&driver).await, ["as you like"]);
        assert_eq!(shop.file("coat").as_deref(), expected);
        assert_eq!(shop.ran.load(Ordering::SeqCst), usize::from(expected.is_some()));
        assert_eq!(shop.children(session).await, children, "the same session went on");
    }
}

#[tokio::test]
async fn an_agent_spends_what_is_held_back_for_it_and_its_caller_pays() {
    let usage = |tokens| Some(Amounts { input_tokens: tokens, ..Amounts::ZERO });
    let shop = Shop::new();
    let mut replies = vec![reply("", &[writes("coat", "mended")]), reply("mended", &[])];
    replies.iter_mut().for_each(|reply| reply.usage = usage(40));
    let tailor = shop.tailor(Effect::Workspace, replies);
    let mut replies = vec![reply("help", &[asks("mend it")]), reply("done", &[])];
    replies.iter_mut().for_each(|reply| reply.usage = usage(10));
    let limits = |tokens| Limits { total_tokens: Some(tokens), ..Limits::default() };
    let caller = with_agent(replies, sub_agent(tailor)).with_budget(limits(50));
    let driver = shop.create(caller).await;
    let ended = driver.start("sew").await.unwrap();
    let Ended::Paused { reason: PauseReason::Budget, session: Some(child), .. } = ended else {
        panic!("{ended:?}")
    };
    let view = shop.runtime.view(child).await.unwrap();
    assert_eq!(view.latest_evaluation().unwrap().budget, Some(limits(40)), "what the caller had left");
    let held = driver.session().state().await.view.ledger().reserved();
    assert_eq!((held.total_tokens(), held.calls), (40, 1));

    let again = driver.resume(ResumeOptions::default()).await.unwrap();
    assert!(matches!(again, Ended::Paused { reason: PauseReason::Budget, .. }), "{again:?}");
    let more = ResumeOptions { budget: Some(limits(100)), ..ResumeOptions::default() };
    let ended = driver.resume(more).await.unwrap();
    assert_eq!(ended.answer().unwrap().text, "done");
    assert_eq!(shop.ran.load(Ordering::SeqCst), 1);
    let state = driver.session().state().await;
    let (charged, reserved) = (state.view.ledger().charged(), state.view.ledger().reserved());
    assert_eq!((charged.total_tokens(), charged.calls, reserved), (100, 2, Amounts::ZERO));
}

#[tokio::test]
async fn agents_side_by_side_share_what_is_left() {
    let shop = Shop::new();
    let tailor = scripted(vec![reply("looked", &[])]);
    let caller =
        with_agent(vec![reply("", &[asks("look"), asks("look too")]), reply("done", &[])], sub_agent(tailor));
    let limits = Limits { total_tokens: Some(100), ..Limits::default() };
    let driver = shop.create(caller.with_budget(limits)).await;
    driver.start("sew").await.unwrap().answer().unwrap();
    for child in shop.children(driver.session().id()).await {
        let view = shop.runtime.view(child).await.unwrap();
        let budget = view.latest_evaluation().unwrap().budget.unwrap();
        assert!(budget.total_tokens.unwrap() <= 50, "{budget:?}");
    }
}

#[tokio::test]
async fn an_agent_has_no_more_time_than_its_caller() {
    let shop = Shop::new();
    let mut slow = reply("late", &[]);
    slow.delay_ms = Some(60_000);
    let tailor = shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "half")]), slow]);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller.with_deadline(Duration::from_millis(300))).await;
    let ended = driver.start("sew").await.unwrap();
    let is_late = matches!(&ended, Ended::Failed { failure, .. } if failure.kind == "deadline_exceeded");
    assert!(is_late, "{ended:?}");
    assert_eq!(shop.file("coat"), None);
    // On a slow machine the time may be over before the agent begins.
    for child in shop.children(driver.session().id()).await {
        assert!(shop.runtime.view(child).await.unwrap().latest_evaluation().is_none());
    }
}

async fn until_it_runs(shop: &Shop) {
    while shop.ran.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn cancelling_the_caller_cancels_the_agent() {
    let shop = Shop::new();
    let tailor = shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "wait")]), reply("x", &[])]);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = Arc::new(shop.create(caller).await);
    let session = driver.session().id();
    let running = tokio::spawn({
        let driver = driver.clone();
        async move { driver.start("sew").await }
    });
    until_it_runs(&shop).await;
    shop.runtime.cancel(session).await.unwrap();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, Ended::Cancelled { .. }), "{ended:?}");
    assert_eq!(shop.file("coat"), None);
    let start = backstitch_core::journal::Position::START;
    let child = shop.children(session).await[0];
    let records = read_records(&**shop.runtime.store(), child, start, None).await.unwrap();
    let outcomes = records.iter().filter_map(|record| match &record.body {
        RecordBody::EvaluationFinished(finished) => Some(finished.outcome),
        _ => None,
    });
    assert_eq!(outcomes.collect::<Vec<_>>(), [Outcome::Cancelled]);
}

#[tokio::test]
async fn stopping_the_caller_pauses_both_and_the_agent_goes_on_where_it_was() {
    let shop = Shop::new();
    let replies =
        vec![reply("", &[writes("hem", "done")]), reply("", &[writes("coat", "wait")]), reply("mended", &[])];
    let tailor = shop.tailor(Effect::Workspace, replies);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = Arc::new(shop.create(caller.clone()).await);
    let session = driver.session().id();
    let running = tokio::spawn({
        let driver = driver.clone();
        async move { driver.start("sew").await }
    });
    while shop.ran.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    driver.stop();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, Ended::Paused { reason: PauseReason::Asked, session: Some(_), .. }), "{ended:?}");
    assert_eq!(shop.file("hem").as_deref(), Some("done"), "what was done is not undone");
    assert_eq!(shop.file("coat"), None, "what was cut off is");
    driver.session().release().await.unwrap();
    let driver = shop.runtime.open(session, caller, (shop.options)()).await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    assert_eq!(shop.ran.load(Ordering::SeqCst), 2, "what was done is not done again");
    assert_eq!(shop.children(session).await.len(), 1);
}

#[tokio::test]
async fn an_agent_whose_policy_fails_is_gone_on_with_and_not_started_again() {
    let shop = Shop::new();
    let short = shop.tailor(Effect::External, vec![reply("", &[writes("coat", "mended")])]);
    let replies = vec![reply("help", &[asks("mend it")]), reply("done", &[])];
    let driver = shop.create(with_agent(replies.clone(), sub_agent(short))).await;
    let session = driver.session().id();
    let error = driver.start("sew").await.unwrap_err();
    assert!(matches!(&error, RuntimeError::Policy(error) if error.kind == "script_ended"), "{error}");
    driver.session().release().await.unwrap();
    assert_eq!(shop.file("coat").as_deref(), Some("mended"));

    let long = vec![reply("", &[writes("coat", "mended")]), reply("mended", &[])];
    let caller = with_agent(replies, sub_agent(shop.tailor(Effect::External, long)));
    let driver = shop.runtime.open(session, caller, (shop.options)()).await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    assert_eq!(shop.ran.load(Ordering::SeqCst), 1, "an effect outside happens once");
    assert_eq!(results(&driver).await, ["mended"]);
}

#[tokio::test]
async fn going_back_before_the_call_starts_another_session() {
    let shop = Shop::new();
    let tailor =
        shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "mended")]), reply("mended", &[])]);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller).await;
    let session = driver.session().id();
    driver.start("sew").await.unwrap().answer().unwrap();
    let first = shop.children(session).await;
    let call = shop.runtime.view(session).await.unwrap().calls().next().unwrap().call_id;
    driver.session().rewind(&PointSpec::Before(call.to_string()), None).await.unwrap();
    assert_eq!(shop.file("coat"), None);
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(shop.file("coat").as_deref(), Some("mended"));
    assert_eq!(shop.ran.load(Ordering::SeqCst), 2);
    assert_ne!(shop.children(session).await, first);
}

#[tokio::test]
async fn a_person_may_fail_a_call_that_waits_and_its_session_goes_back() {
    let shop = Shop::new();
    let mut tool = write(Effect::Workspace, &shop.ran);
    let mut spec = (*tool.spec).clone();
    spec.approval = backstitch_core::tool::Approval::Needed;
    spec.name = backstitch_core::tool::ToolName::new("finish").unwrap();
    tool.spec = Arc::new(spec);
    let replies = vec![
        reply("", &[writes("coat", "half")]),
        reply("", &[("finish", json!({"path": "coat", "text": "whole"}))]),
        reply("mended", &[]),
    ];
    let tailor =
        scripted(replies).with_tools(Tools::new([write(Effect::Workspace, &shop.ran), tool]).unwrap());
    let caller = with_agent(vec![reply("help", &[asks("mend")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller).await;
    let Ended::Paused { session: Some(child), .. } = driver.start("sew").await.unwrap() else {
        panic!("it waits")
    };
    assert_eq!(shop.file("coat").as_deref(), Some("half"));
    let call = shop.runtime.view(driver.session().id()).await.unwrap().calls().next().unwrap().call_id;
    let fail = Decision::Fail { reason: Some("enough".into()) };
    driver.session().resolve(Some(call), fail, None).await.unwrap();
    assert_eq!(shop.file("coat"), None);
    assert!(shop.runtime.view(child).await.unwrap().latest_evaluation().is_none());
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(results(&driver).await, ["enough"]);
}

/// A caller whose agent waits for approval after it has written half of a file, with a call beside it that writes as well.
fn waiting(shop: &Shop) -> Agent {
    let mut tool = write(Effect::Workspace, &shop.ran);
    let mut spec = (*tool.spec).clone();
    spec.approval = backstitch_core::tool::Approval::Needed;
    spec.name = backstitch_core::tool::ToolName::new("finish").unwrap();
    tool.spec = Arc::new(spec);
    let replies = vec![
        reply("", &[writes("coat", "half")]),
        reply("", &[("finish", json!({"path": "coat", "text": "whole"}))]),
        reply("mended", &[]),
    ];
    let tailor =
        scripted(replies).with_tools(Tools::new([write(Effect::Workspace, &shop.ran), tool]).unwrap());
    let tools = [sub_agent(tailor).into_tool(), write(Effect::Workspace, &shop.ran)];
    let replies = vec![reply("help", &[asks("mend"), writes("beside", "x")]), reply("done", &[])];
    scripted(replies).with_tools(Tools::new(tools).unwrap())
}

#[tokio::test]
async fn nobody_else_has_the_files_while_an_agent_waits_in_the_middle_of_its_work() {
    let shop = Shop::new();
    let driver = shop.create(waiting(&shop)).await;
    let ended = driver.start("sew").await.unwrap();
    let Ended::Paused { session: Some(child), .. } = ended else { panic!("{ended:?}") };
    assert_eq!((shop.file("coat").as_deref(), shop.file("beside")), (Some("half"), None));
    let pause = shop.runtime.view(child).await.unwrap().pause().cloned().unwrap();
    shop.runtime.decide(child, pause.call_id, Decision::Approve, None).await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!((shop.file("coat").as_deref(), shop.file("beside").as_deref()), (Some("whole"), Some("x")));
}

#[tokio::test]
async fn an_evaluation_that_is_cancelled_while_an_agent_waits_puts_back_what_it_did() {
    let shop = Shop::new();
    let driver = shop.create(waiting(&shop)).await;
    let session = driver.session().id();
    let ended = driver.start("sew").await.unwrap();
    let Ended::Paused { session: Some(child), .. } = ended else { panic!("{ended:?}") };
    let pause = shop.runtime.view(child).await.unwrap().pause().cloned().unwrap();
    shop.runtime.decide(child, pause.call_id, Decision::Approve, None).await.unwrap();
    shop.runtime.cancel(session).await.unwrap();
    let ended = driver.resume(ResumeOptions::default()).await.unwrap();
    assert!(matches!(ended, Ended::Cancelled { .. }), "{ended:?}");
    assert_eq!((shop.file("coat"), shop.file("beside")), (None, None));
    assert!(shop.runtime.view(child).await.unwrap().latest_evaluation().is_none());
}
