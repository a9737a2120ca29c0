//! How much of a request repeats the one before it, in a long session at the limit of its room. Providers cache what
//! repeats, from the beginning on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::journal::Effect;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::BoxFuture;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::{
    HttpRequest, HttpResponse, ModelPolicy, ModelTarget, Provider, RequestOptions, Transport, TransportError,
};
use backstitch_repl::transcript::{CutStrategy, Elide, ElideOptions, SummaryStrategy, TranscriptCompression};
use backstitch_runtime::{Agent, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;
use serde_json::json;

use super::Failed;
use super::model::{Stitch, answer, response};
use crate::aims;
use crate::report::Report;

/// The context window of the model, in tokens.
const WINDOW: u64 = 100_000;

/// The length of each result, in bytes.
const RESULT: usize = 8_000;

/// Turns before the conversation reaches its limit.
const TURNS_BEFORE: usize = 40;

/// Turns at the limit.
const TURNS: usize = 200;

/// The least part of a request that repeats the one before, for a provider to have most of it in its cache.
const MOST: f64 = 0.9;

/// Prints the part of the bytes of a request that repeats the one before, from the beginning on: the median, and how many
/// requests repeat nine tenths, with the aim and whether it is met. Requests for summaries count like any other.
pub(super) async fn run(report: &mut Report) -> Result<(), Failed> {
    let each_anew = ElideOptions { tokens: Some(WINDOW / 4 * 3), ..ElideOptions::default() };
    let strategies: [(&str, Option<Arc<dyn TranscriptCompression>>); 4] = [
        ("default", None),
        ("cut", Some(Arc::new(CutStrategy::default()))),
        ("summary", Some(Arc::new(SummaryStrategy::default()))),
        ("elide", Some(Arc::new(Elide::new(each_anew)))),
    ];
    for (name, strategy) in strategies {
        let mut shares = session(strategy).await?;
        let requests = shares.len();
        let repeating = shares.iter().filter(|share| **share >= MOST).count() as f64 / requests as f64;
        shares.sort_by(f64::total_cmp);
        let params = json!({ "shown": name, "turns": TURNS, "requests": requests, "window": WINDOW, "result": RESULT });
        report.ratio("agent.repeated_bytes", params.clone(), shares[requests / 2]);
        aims::REPEATING_REQUESTS.judge(report, params, repeating);
    }
    Ok(())
}

/// Runs a session, and returns the repeated part of each request at the limit.
async fn session(strategy: Option<Arc<dyn TranscriptCompression>>) -> Result<Vec<f64>, Failed> {
    let transport = Arc::new(Comparing::default());
    let options = RequestOptions { stream: false, ..RequestOptions::default() };
    let target = ModelTarget::new(Provider::Anthropic, "tailor-1");
    let policy = ModelPolicy::new(PolicyName::new("tailor")?, target, None, transport.clone());
    let mut agent = Agent::new("bench/tailor")
        .policy(Arc::new(policy.with_options(options)))
        .instructions("You sew, one stitch at a time.")
        .tools(Tools::new([stitch()?])?)
        .max_repeats(None)
        .window(WINDOW);
    if let Some(strategy) = strategy {
        agent = agent.compression(strategy);
    }
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await?;
    driver.start("sew").await?.answer()?;
    driver.session().release().await?;
    let shares = transport.shares.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(shares[TURNS_BEFORE..].to_vec())
}

/// A tool with long results, no two of which are equal.
fn stitch() -> Result<Tool, Failed> {
    let builder =
        Tool::builder("stitch", "Makes a stitch.")?.effect(Effect::Pure).workspace(WorkspaceUse::None);
    Ok(builder.handler(|_, stitch: Stitch| async move {
        let text = format!("stitch {} holds. ", stitch.number);
        Ok(ToolResult::ok(text.repeat(RESULT / text.len())))
    }))
}

/// Answers in this process, and compares each request with the one before it.
#[derive(Default)]
struct Comparing {
    answered: AtomicUsize,
    last: Mutex<Option<String>>,
    /// The repeated part of each request.
    shares: Mutex<Vec<f64>>,
}

impl Transport for Comparing {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let body = request.body.text();
            let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(body.clone());
            let equal = before.map_or(0, |before| {
                before.bytes().zip(body.bytes()).take_while(|(before, now)| before == now).count()
            });
            let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
            shares.push(equal as f64 / body.len() as f64);
            drop(shares);
            // The request for a summary does not count as a turn.
            if body.contains("Write a summary of everything above") {
                return Ok(response(SUMMARY.to_vec()));
            }
            let number = self.answered.fetch_add(1, Ordering::Relaxed);
            let call = (number < TURNS_BEFORE + TURNS).then_some(number);
            Ok(response(answer(Provider::Anthropic, call).to_string().into_bytes()))
        })
    }
}

/// An answer with a summary.
const SUMMARY: &[u8] = br#"{"id": "msg", "type": "message", "role": "assistant", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "All stitches so far hold. The hem is sewn up to the left seam; next is the sleeve."}],
    "usage": {"input_tokens": 20, "output_tokens": 5}}"#;
