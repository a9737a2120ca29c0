//! Agents with models but without a network: a transport in this process answers, at once or after a delay.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
use crate::measure::{Samples, Scope};
use crate::report::Report;

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

/// An agent that makes one call a turn, and answers after `turns` turns.
pub(super) fn agent(provider: Provider, turns: usize, latency: Duration) -> Result<Agent, Failed> {
    let transport = Arc::new(Answering { provider, turns, latency, given: AtomicUsize::new(0) });
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
}

impl Transport for Answering {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            if !self.latency.is_zero() {
                tokio::time::sleep(self.latency).await;
            }
            let number = self.given.fetch_add(1, Ordering::Relaxed);
            let call = (number < self.turns).then_some(number);
            let body = answer(self.provider, call).to_string().into_bytes();
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
