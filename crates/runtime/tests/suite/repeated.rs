//! How much of a request repeats the one before it, in a long session at the limit of its room. `bench` prints the same for each
//! strategy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use backstitch_core::journal::Effect;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::BoxFuture;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::{
    Body, HttpRequest, HttpResponse, ModelPolicy, ModelTarget, Provider, RequestOptions, Transport,
    TransportError,
};
use backstitch_repl::transcript::{CutStrategy, Elide, ElideOptions, SummaryStrategy, TranscriptCompression};
use backstitch_runtime::{Agent, Runtime};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

/// The context window of the model, in tokens.
const WINDOW: u64 = 40_000;

/// The length of each result, in bytes.
const RESULT: usize = 3_000;

/// Turns before the conversation is at its limit, and turns at it.
const TURNS: (usize, usize) = (45, 200);

/// Answers in this process, and compares each request with the one before it.
#[derive(Default)]
struct Comparing {
    answered: AtomicUsize,
    last: Mutex<Option<String>>,
    shares: Mutex<Vec<f64>>,
}

impl Transport for Comparing {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let body = request.body.text();
        let before = self.last.lock().unwrap().replace(body.clone()).unwrap_or_default();
        let equal = before.bytes().zip(body.bytes()).take_while(|(before, now)| before == now).count();
        self.shares.lock().unwrap().push(equal as f64 / body.len() as f64);
        let answer = match body.contains("Write a summary of everything above") {
            true => answer("All stitches so far hold.", None),
            false => {
                let number = self.answered.fetch_add(1, Ordering::SeqCst);
                let call = (number < TURNS.0 + TURNS.1).then_some(number);
                answer(if call.is_some() { "On we go." } else { "Done." }, call)
            }
        };
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let body = Box::new(Whole(Some(answer.to_string().into_bytes())));
        Box::pin(async { Ok(HttpResponse { status: 200, headers, body }) })
    }
}

fn answer(text: &str, call: Option<usize>) -> Value {
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(call.map(|number| {
        json!({"type": "tool_use", "id": format!("call_{number}"), "name": "stitch", "input": {"number": number}})
    }));
    let reason = if call.is_some() { "tool_use" } else { "end_turn" };
    json!({"id": "msg", "type": "message", "role": "assistant", "content": content, "stop_reason": reason,
        "usage": {"input_tokens": 20, "output_tokens": 5}})
}

struct Whole(Option<Vec<u8>>);

impl Body for Whole {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        let chunk = self.0.take();
        Box::pin(async move { Ok(chunk) })
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Stitch {
    number: u64,
}

fn stitch() -> Tool {
    let builder = Tool::builder("stitch", "Makes a stitch.").unwrap();
    builder.effect(Effect::Pure).workspace(WorkspaceUse::None).handler(|_, stitch: Stitch| async move {
        let text = format!("stitch {} holds. ", stitch.number);
        Ok(ToolResult::ok(text.repeat(RESULT / text.len())))
    })
}

/// Returns the part of the requests at the limit that repeat nine tenths of the one before.
async fn repeating(strategy: Option<Arc<dyn TranscriptCompression>>) -> f64 {
    let transport = Arc::new(Comparing::default());
    let options = RequestOptions { stream: false, ..RequestOptions::default() };
    let target = ModelTarget::new(Provider::Anthropic, "tailor-1");
    let policy = ModelPolicy::new(PolicyName::new("tailor").unwrap(), target, None, transport.clone());
    let mut agent = Agent::new("tests/tailor")
        .policy(policy.with_options(options))
        .instructions("You sew, one stitch at a time.")
        .tools([stitch()])
        .max_repeats(None)
        .window(WINDOW);
    if let Some(strategy) = strategy {
        agent = agent.compression(strategy);
    }
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let run = runtime.start(&agent, "sew").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
    let shares = transport.shares.lock().unwrap().split_off(TURNS.0);
    shares.iter().filter(|share| **share >= 0.9).count() as f64 / shares.len() as f64
}

#[tokio::test]
async fn nine_requests_in_ten_repeat_nine_tenths_of_the_one_before() {
    let summary: Arc<dyn TranscriptCompression> = Arc::new(SummaryStrategy::default());
    let cut: Arc<dyn TranscriptCompression> = Arc::new(CutStrategy::default());
    for strategy in [None, Some(cut), Some(summary)] {
        let name = strategy.as_ref().map_or("none", |strategy| strategy.name());
        let share = repeating(strategy).await;
        assert!(share >= 0.9, "{name}: {share}");
    }
    let each_anew = ElideOptions { tokens: Some(WINDOW / 4 * 3), ..ElideOptions::default() };
    assert!(repeating(Some(Arc::new(Elide::new(each_anew)))).await < 0.6, "a choice for each request anew");
}
