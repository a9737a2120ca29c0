//! Agents with models but without a network: a transport in this process answers, at once or after a delay.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::journal::Effect;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::BoxFuture;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::{
    Body, HttpRequest, HttpResponse, ModelPolicy, ModelTarget, Provider, RequestOptions, Transport,
    TransportError,
};
use backstitch_runtime::{Agent, Runtime, SessionOptions, Tools};
use backstitch_store::SqliteStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Failed;
use crate::aims;
use crate::measure::{Samples, Scope, Stopwatch};
use crate::report::{Report, ratio};

/// Measures a turn with one call and a model without latency: rendering, validation, decoding of the answer,
/// the call, and durable records of all of it. Requests grow with the conversation, so two lengths are
/// measured.
pub(super) async fn turns(report: &mut Report) -> Result<(), Failed> {
    for provider in Provider::ALL {
        for turns in [10, 100] {
            let directory = tempfile::tempdir()?;
            let store = Arc::new(SqliteStore::open(directory.path().join("store.db"))?);
            let runtime = Runtime::new(store);
            let mut samples = Samples::default();
            for _ in 0..7 {
                let agent = agent(provider, turns, Duration::ZERO)?;
                let driver = runtime.create(agent, SessionOptions::default()).await?;
                let clock = Scope::Process.start();
                driver.start("sew").await?.answer()?;
                samples.add(clock.elapsed());
                driver.session().release().await?;
            }
            let params = json!({ "provider": provider.as_str(), "turns": turns, "calls": 1 });
            report.time("agent.model_turn", params, &samples.timing().divided(turns));
        }
    }
    Ok(())
}

/// Compares late turns of a session with early ones, in processor time from one answer of the model to the next request. What
/// the transport does, and a body that it would have to send, do not count.
pub(super) async fn late_turns(report: &mut Report) -> Result<(), Failed> {
    for provider in Provider::ALL {
        let mut around: [Vec<Duration>; 2] = Default::default();
        for _ in 0..SESSIONS {
            let costs = costs_of_turns(provider).await?;
            for (around, turn) in around.iter_mut().zip([EARLY, LATE]) {
                around.extend(&costs[turn - AROUND..turn + AROUND]);
            }
        }
        let [early, late] = around.map(|mut around| {
            around.sort();
            around[around.len() / 2].as_secs_f64() * 1e3
        });
        let params = json!({
            "provider": provider.as_str(), "early_ms": ratio(early), "late_ms": ratio(late), "sessions": SESSIONS,
        });
        aims::LATE_TURN.judge(report, params, late / early);
    }
    Ok(())
}

/// Drives a session until after the late turn, and returns what each turn cost.
async fn costs_of_turns(provider: Provider) -> Result<Vec<Duration>, Failed> {
    let directory = tempfile::tempdir()?;
    let runtime = Runtime::new(Arc::new(SqliteStore::open(directory.path().join("store.db"))?));
    let (turns, given, costs) = (LATE + AROUND, AtomicUsize::new(0), Some(Mutex::default()));
    let transport = Arc::new(Answering { provider, turns, latency: Duration::ZERO, given, costs });
    let agent = agent_over(transport.clone())?.window(WINDOW);
    let driver = runtime.create(agent, SessionOptions::default()).await?;
    driver.start("sew").await?.answer()?;
    driver.session().release().await?;
    let costs = transport.with_costs(|costs| std::mem::take(&mut costs.turns)).unwrap_or_default();
    match costs.len() < turns {
        true => Err(format!("{provider}: {} of {turns} turns were measured", costs.len()).into()),
        false => Ok(costs),
    }
}

/// The turns that are compared, and how many before and after each of them are taken into account.
const EARLY: usize = 10;
const LATE: usize = 1_000;
const AROUND: usize = 8;

/// The sessions of each provider.
const SESSIONS: usize = 5;

/// A context window in which all turns fit, in tokens.
const WINDOW: u64 = 100_000_000;

/// An agent that makes one call a turn, and answers after `turns` turns.
pub(super) fn agent(provider: Provider, turns: usize, latency: Duration) -> Result<Agent, Failed> {
    agent_over(Arc::new(Answering { provider, turns, latency, given: AtomicUsize::new(0), costs: None }))
}

fn agent_over(transport: Arc<Answering>) -> Result<Agent, Failed> {
    let provider = transport.provider;
    let options = RequestOptions { stream: false, ..RequestOptions::default() };
    let target = ModelTarget::new(provider, "tailor-1");
    let policy = ModelPolicy::new(PolicyName::new("tailor")?, target, None, transport).with_options(options);
    let agent =
        Agent::new("bench/tailor").policy(Arc::new(policy)).instructions("You sew, one stitch at a time.");
    Ok(agent.tools(Tools::new([stitch()?])?))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Stitch {
    /// Which stitch it is.
    pub(super) number: u64,
}

/// A tool with a trivial handler.
pub(super) fn stitch() -> Result<Tool, Failed> {
    let builder =
        Tool::builder("stitch", "Makes a stitch.")?.effect(Effect::External).workspace(WorkspaceUse::None);
    Ok(builder.handler(|_, stitch: Stitch| async move {
        Ok(ToolResult::ok(format!("stitch {} holds", stitch.number)))
    }))
}

/// Answers in this process: with a call for each of the first `turns` requests, then with text.
struct Answering {
    provider: Provider,
    turns: usize,
    latency: Duration,
    given: AtomicUsize,
    /// The cost of each turn, if it is measured.
    costs: Option<Mutex<TurnCosts>>,
}

/// Processor time from each answer to the next request.
#[derive(Default)]
struct TurnCosts {
    answered: Option<Stopwatch>,
    turns: Vec<Duration>,
}

impl Answering {
    /// Runs a function on the costs, if they are measured.
    fn with_costs<T>(&self, run: impl FnOnce(&mut TurnCosts) -> T) -> Option<T> {
        self.costs.as_ref().map(|costs| run(&mut costs.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Transport for Answering {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            self.with_costs(|costs| {
                let elapsed = costs.answered.take().map(|clock| clock.elapsed());
                costs.turns.extend(elapsed.map(|elapsed| elapsed.cpu));
            });
            if !self.latency.is_zero() {
                tokio::time::sleep(self.latency).await;
            }
            let number = self.given.fetch_add(1, Ordering::Relaxed);
            let call = (number < self.turns).then_some(number);
            let body = answer(self.provider, call).to_string().into_bytes();
            self.with_costs(|costs| costs.answered = Some(Scope::Process.start()));
            Ok(response(body))
        })
    }
}

/// Fails every request.
pub(super) struct Silent;

impl Transport for Silent {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async { Err(TransportError::broken("this transport answers no requests")) })
    }
}

struct Whole(Option<Vec<u8>>);

impl Body for Whole {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        let chunk = self.0.take();
        Box::pin(async move { Ok(chunk) })
    }
}

/// A response with this body.
pub(super) fn response(body: Vec<u8>) -> HttpResponse {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    HttpResponse { status: 200, headers, body: Box::new(Whole(Some(body))) }
}

/// An answer of a provider, with a call or at the end.
pub(super) fn answer(provider: Provider, call: Option<usize>) -> Value {
    let text = if call.is_some() { "On we go." } else { "Done." };
    let arguments = json!({ "number": call });
    let id = format!("call_{}", call.unwrap_or_default());
    match provider {
        Provider::OpenAiChat => {
            let function = json!({"name": "stitch", "arguments": arguments.to_string()});
            let calls: Vec<_> =
                call.iter().map(|_| json!({"id": id, "type": "function", "function": function})).collect();
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            let reason = if call.is_some() { "tool_calls" } else { "stop" };
            json!({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": 20, "completion_tokens": 5}})
        }
        Provider::OpenAiResponses => {
            let mut output = vec![json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant",
                "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]})];
            output.extend(call.map(|_| {
                json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "stitch",
                    "arguments": arguments.to_string(), "status": "completed"})
            }));
            json!({"id": "resp", "status": "completed", "output": output,
                "usage": {"input_tokens": 20, "output_tokens": 5}})
        }
        Provider::Anthropic => {
            let mut content = vec![json!({"type": "text", "text": text})];
            content.extend(
                call.map(|_| json!({"type": "tool_use", "id": id, "name": "stitch", "input": arguments})),
            );
            let reason = if call.is_some() { "tool_use" } else { "end_turn" };
            json!({"id": "msg", "type": "message", "role": "assistant", "content": content, "stop_reason": reason,
                "usage": {"input_tokens": 20, "output_tokens": 5}})
        }
        Provider::Gemini => {
            let mut parts = vec![json!({"text": text})];
            parts.extend(call.map(|_| json!({"functionCall": {"name": "stitch", "args": arguments}})));
            json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 5}})
        }
    }
}
