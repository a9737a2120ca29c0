//! A scripted agent with a tool that records findings, which most tests of sessions drive.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{CallStarted, Effect, IdempotencyKey};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{ClaimMode, Owner};
use backstitch_core::tool::{Approval, Tool, ToolError, ToolResult, WorkspaceUse};
use backstitch_providers::{Script, ScriptedCall, ScriptedPolicy, ScriptedReply};
use backstitch_runtime::{Agent, DriveOutcome, Driver, Runtime, RuntimeError, Tools};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::findings::Finding;

/// An answer with a text and calls.
pub(crate) fn reply(text: &str, calls: &[(&str, Value)]) -> ScriptedReply {
    let calls = calls
        .iter()
        .map(|(name, arguments)| ScriptedCall::new(*name, arguments.as_object().cloned().unwrap()));
    ScriptedReply { text: Some(text.to_owned()), calls: calls.collect(), ..ScriptedReply::default() }
}

/// An agent with scripted answers.
pub(crate) fn scripted(replies: Vec<ScriptedReply>) -> Agent {
    let policy = ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies });
    Agent::new("tests/tailor").policy(Arc::new(policy)).instructions("You sew.")
}

/// A tool that records its argument as a finding, and counts its runs.
pub(crate) fn keep(effect: Effect, ran: Arc<AtomicUsize>) -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Told {
        text: String,
    }
    Tool::builder("keep", "Keeps a finding.").unwrap().effect(effect).workspace(WorkspaceUse::None).handler(
        move |context, told: Told| {
            let ran = ran.clone();
            async move {
                ran.fetch_add(1, Ordering::SeqCst);
                if told.text == "wait" && context.attempt() == 1 {
                    context.cancelled().await;
                }
                if told.text == "fail" {
                    return Err(ToolError::new("it tore"));
                }
                context.session(|draft| draft.append(Finding(told.text.clone())).map(|_| ()))??;
                Ok(ToolResult::ok(format!("kept {}", told.text)))
            }
        },
    )
}

/// The agent with the tool `keep`, and the count of its runs.
pub(crate) fn with_keep(agent: Agent, effect: Effect) -> (Agent, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    (agent.tools(Tools::new([keep(effect, ran.clone())]).unwrap()), ran)
}

/// Starts a mission in the background, and waits until its tool has run `times` times.
pub(crate) async fn started_until(
    driver: &Arc<Driver>,
    ran: &AtomicUsize,
    times: usize,
) -> JoinHandle<Result<DriveOutcome, RuntimeError>> {
    let running = tokio::spawn({
        let driver = driver.clone();
        async move { driver.start("sew").await }
    });
    until(ran, times).await;
    running
}

/// Waits until a count of runs has reached `times`.
pub(crate) async fn until(ran: &AtomicUsize, times: usize) {
    while ran.load(Ordering::SeqCst) < times {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Starts or resumes a session in an async runtime that ends inside of a call, as if its process died there. The store
/// notices that it is dead.
pub(crate) async fn killed_inside(
    runtime: &Runtime,
    agent: &Agent,
    ran: &Arc<AtomicUsize>,
    session: Option<SessionId>,
) -> SessionId {
    let (process, agent, counted) = (runtime.clone(), agent.clone(), ran.clone());
    let times = ran.load(Ordering::SeqCst) + 1;
    let dying = tokio::task::spawn_blocking(move || {
        let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let session = tasks.block_on(async {
            let run = match session {
                Some(session) => process.resume(session, &agent).await.unwrap(),
                None => process.start(&agent, "sew").await.unwrap(),
            };
            until(&counted, times).await;
            run.session()
        });
        tasks.shutdown_background();
        session
    });
    let session = dying.await.unwrap();
    let store = runtime.store();
    let claim = store.claim(session, Owner::new("the store"), ClaimMode::TakeOver).await.unwrap();
    store.release(claim).await.unwrap();
    session
}

/// The same tool, whose calls need approval.
pub(crate) fn with_approval(mut tool: Tool) -> Tool {
    Arc::make_mut(&mut tool.spec).approval = Approval::Needed;
    tool
}

/// The intent of a process that died inside of a call of `keep`.
pub(crate) fn started(session: SessionId, evaluation_id: EvaluationId, call: CallId) -> CallStarted {
    CallStarted {
        call_id: call,
        evaluation_id,
        name: "keep".into(),
        arguments: None,
        effect: Effect::Workspace,
        idempotency_key: IdempotencyKey::new(session, call),
        attempt: 1,
        root: None,
        coverage: None,
        reservation: None,
        session: None,
        extra: Default::default(),
    }
}

/// The kinds of all records of a session, in order.
pub(crate) async fn kinds(runtime: &Runtime, session: SessionId) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for record in runtime.records(session).await.unwrap() {
        kinds.push(record.body.kind());
    }
    kinds
}
