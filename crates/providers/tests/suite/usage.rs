//! Token usage and costs of answers: the same amounts for every provider, however it reports them.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::BoxFuture;
use backstitch_providers::{
    Body, HttpRequest, HttpResponse, ModelPolicy, Provider, RequestOptions, Transport, TransportError, parse,
};
use backstitch_runtime::{Agent, Backoff, Price, Prices, Runtime, SessionOptions};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use super::answers::read_stream;
use super::support::{MODEL, target};

/// The meaning of a usage: all input, cache reads, cache writes, all output, thoughts.
type Split = [u64; 5];

fn cases() -> Vec<(Provider, &'static str, Value, Split)> {
    use Provider::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
    let chat = json!({
        "prompt_tokens": 2_006, "completion_tokens": 300, "total_tokens": 2_306,
        "prompt_tokens_details": {"cached_tokens": 1_920, "cache_write_tokens": 64, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 192, "accepted_prediction_tokens": 0},
    });
    let deepseek = json!({
        "prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109,
        "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36,
    });
    let both = json!({
        "prompt_tokens": 100, "completion_tokens": 9,
        "prompt_cache_hit_tokens": 64, "prompt_tokens_details": {"cached_tokens": 0},
    });
    let moonshot = json!({"prompt_tokens": 100, "completion_tokens": 9, "cached_tokens": 50});
    let floats = json!({"prompt_tokens": 1000.0, "completion_tokens": 12.0, "cached_tokens": 0.5});
    let nulls = json!({"prompt_tokens": 8, "completion_tokens": 3, "prompt_tokens_details": null});
    let slips = json!({
        "prompt_tokens": 10, "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 7},
        "completion_tokens_details": {"reasoning_tokens": 6},
    });
    let responses = json!({
        "input_tokens": 36_000, "input_tokens_details": {"cached_tokens": 35_000, "cache_write_tokens": 500},
        "output_tokens": 87, "output_tokens_details": {"reasoning_tokens": 64}, "total_tokens": 36_087,
    });
    let anthropic = json!({
        "input_tokens": 100, "cache_read_input_tokens": 99_900, "cache_creation_input_tokens": 248,
        "cache_creation": {"ephemeral_5m_input_tokens": 248, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 503, "output_tokens_details": {"thinking_tokens": 400}, "service_tier": "standard",
    });
    let plain = json!({"input_tokens": 20, "cache_read_input_tokens": null, "output_tokens": 5});
    let gemini = json!({
        "promptTokenCount": 1_200, "cachedContentTokenCount": 1_000, "toolUsePromptTokenCount": 30,
        "candidatesTokenCount": 40, "thoughtsTokenCount": 20, "totalTokenCount": 1_290,
    });
    let brief = json!({"promptTokenCount": 7, "totalTokenCount": 7});
    vec![
        (OpenAiChat, "OpenAI", chat, [2_006, 1_920, 64, 300, 192]),
        (OpenAiChat, "DeepSeek", deepseek, [100, 64, 0, 9, 0]),
        (OpenAiChat, "a proxy that says both", both, [100, 0, 0, 9, 0]),
        (OpenAiChat, "Moonshot", moonshot, [100, 50, 0, 9, 0]),
        (OpenAiChat, "whole numbers as floats", floats, [1_000, 0, 0, 12, 0]),
        (OpenAiChat, "a server that knows no cache", nulls, [8, 0, 0, 3, 0]),
        (OpenAiChat, "parts that are more than the whole", slips, [10, 10, 0, 5, 5]),
        (OpenAiChat, "no usage", Value::Null, [0; 5]),
        (OpenAiResponses, "OpenAI", responses, [36_000, 35_000, 500, 87, 64]),
        (Anthropic, "Anthropic", anthropic, [100_248, 99_900, 248, 503, 400]),
        (Anthropic, "a compatible server", plain, [20, 0, 0, 5, 0]),
        (Gemini, "Gemini", gemini, [1_230, 1_000, 0, 60, 20]),
        (Gemini, "an empty answer", brief, [7, 0, 0, 0, 0]),
    ]
}

fn amounts([input, read, written, output, thoughts]: Split) -> Amounts {
    Amounts {
        input_tokens: input,
        cache_read_tokens: read,
        cache_write_tokens: written,
        output_tokens: output,
        reasoning_tokens: thoughts,
        ..Amounts::ZERO
    }
}

/// An answer with this usage, without streaming.
fn whole(provider: Provider, usage: &Value) -> Value {
    match provider {
        Provider::OpenAiChat => {
            let message = json!({"role": "assistant", "content": "Hm."});
            json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})
        }
        Provider::OpenAiResponses => {
            let content = json!([{"type": "output_text", "text": "Hm.", "annotations": []}]);
            let item = json!({"type": "message", "role": "assistant", "content": content});
            json!({"status": "completed", "output": [item], "usage": usage})
        }
        Provider::Anthropic => {
            let content = json!([{"type": "text", "text": "Hm."}]);
            json!({"content": content, "stop_reason": "end_turn", "usage": usage})
        }
        Provider::Gemini => {
            let content = json!({"role": "model", "parts": [{"text": "Hm."}]});
            json!({"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage})
        }
    }
}

/// The same answer, streamed.
fn streamed(provider: Provider, usage: &Value) -> String {
    let events = match provider {
        Provider::OpenAiChat => vec![
            json!({"choices": [{"delta": {"content": "Hm."}, "finish_reason": "stop"}], "usage": null}),
            json!({"choices": [], "usage": usage}),
        ],
        Provider::OpenAiResponses => {
            vec![json!({"type": "response.completed", "response": whole(provider, usage)})]
        }
        Provider::Anthropic => {
            // The input is known when the message starts, and the output when it ends.
            let mut begun = usage.clone();
            begun["output_tokens"] = 1.into();
            begun["output_tokens_details"] = Value::Null;
            vec![
                json!({"type": "message_start", "message": {"usage": begun}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hm."}}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {
                    "output_tokens": usage["output_tokens"],
                    "output_tokens_details": usage["output_tokens_details"],
                }}),
                json!({"type": "message_stop"}),
            ]
        }
        Provider::Gemini => vec![whole(provider, usage)],
    };
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[test]
fn every_provider_reports_the_same_amounts() {
    let mut seen = Vec::new();
    for (provider, who, usage, split) in cases() {
        let answer = parse(&whole(provider, &usage).to_string(), &target(provider)).unwrap();
        assert_eq!(answer.usage, amounts(split), "{provider}, {who}");
        let (answer, _) = read_stream(provider, &streamed(provider, &usage)).unwrap();
        assert_eq!(answer.usage, amounts(split), "{provider}, {who}, streamed");
        seen.push(provider);
    }
    assert!(Provider::ALL.iter().all(|provider| seen.contains(provider)), "each provider has a case");
}

/// A server with one answer.
struct Says(String);

struct Once(Option<Vec<u8>>);

impl Transport for Says {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let body = Box::new(Once(Some(self.0.clone().into_bytes())));
        Box::pin(async { Ok(HttpResponse { status: 200, headers: Vec::new(), body }) })
    }
}

impl Body for Once {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        Box::pin(async { Ok(self.0.take()) })
    }
}

/// The charge of a session that gets one answer with this usage.
async fn charged(provider: Provider, usage: &Value, price: Price) -> Amounts {
    let transport = Arc::new(Says(whole(provider, usage).to_string()));
    let policy = ModelPolicy::new(PolicyName::new("model").unwrap(), target(provider), None, transport);
    let policy = policy.with_options(RequestOptions::default());
    let prices = Prices(BTreeMap::from([(format!("{provider}:{MODEL}"), price)]));
    let limits = Limits { money_micros: Some(10_000_000), ..Limits::default() };
    let agent = Agent::new("tests/model").policy(policy).budget(limits).prices(prices);
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("Hm?").await.unwrap().answer().unwrap();
    runtime.view(driver.session().id()).await.unwrap().ledger().charged()
}

#[tokio::test]
async fn each_kind_of_token_costs_its_own_price() {
    let price = Price {
        input: 3_000_000,
        cache_read: Some(300_000),
        cache_write: Some(3_750_000),
        output: 15_000_000,
    };
    for (provider, who, usage, split) in cases() {
        let [input, read, written, output, thoughts] = split;
        let spent = charged(provider, &usage, price).await;
        // In ten-thousandths of a millionth, so that nothing is rounded before the end.
        let parts = (input - read - written) * 30_000 + read * 3_000 + written * 37_500 + output * 150_000;
        assert_eq!(spent.money_micros, parts.div_ceil(10_000), "{provider}, {who}");
        let ledger = [spent.cache_read_tokens, spent.cache_write_tokens, spent.reasoning_tokens];
        assert_eq!(ledger, [read, written, thoughts], "{provider}, {who}: the ledger keeps the parts");
    }
    // 100 at 3, 99,900 at 0.3, 248 at 3.75 and 503 at 15 for a million.
    let (provider, _, usage, _) = cases().remove(9);
    assert_eq!(
        (provider, charged(provider, &usage, price).await.money_micros),
        (Provider::Anthropic, 38_745)
    );
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_is_charged_with_each_attempt() {
    let price = Price { input: 1_000_000, output: 2_000_000, ..Price::default() };
    let chat = json!({"prompt_tokens": 20, "completion_tokens": 5});
    let gemini = json!({"promptTokenCount": 20, "candidatesTokenCount": 5});
    for (provider, usage, path, word, attempts) in [
        (Provider::OpenAiChat, chat, "/choices/0/finish_reason", "content_filter", 1),
        (Provider::Gemini, gemini, "/candidates/0/finishReason", "MALFORMED_FUNCTION_CALL", 3),
    ] {
        let mut body = whole(provider, &usage);
        *body.pointer_mut(path).unwrap() = word.into();
        let transport = Arc::new(Says(body.to_string()));
        let policy = ModelPolicy::new(PolicyName::new("model").unwrap(), target(provider), None, transport);
        let prices = Prices(BTreeMap::from([(format!("{provider}:{MODEL}"), price)]));
        let agent = Agent::new("tests/model").policy(policy.with_options(RequestOptions::default()));
        let agent = agent.prices(prices).backoff(Backoff { retries: 2, ..Backoff::NEVER });
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        let ended = driver.start("Hm?").await;
        assert!(ended.is_err() || ended.unwrap().answer().is_err(), "{provider}");
        let spent = runtime.view(driver.session().id()).await.unwrap().ledger().charged();
        let expected = (20 * attempts, 5 * attempts, 30 * attempts);
        assert_eq!((spent.input_tokens, spent.output_tokens, spent.money_micros), expected, "{provider}");
    }
}
