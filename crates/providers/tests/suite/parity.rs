//! The same tools and calls result in the same session with every provider.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backstitch_core::journal::Effect;
use backstitch_core::ports::Store;
use backstitch_core::session::Slice;
use backstitch_core::tool::{Tool, ToolError, ToolResult, WorkspaceUse};
use backstitch_providers::Provider;
use backstitch_runtime::{Agent, Runtime, SessionOptions, Tools};
use backstitch_store::{MemoryStore, SqliteStore};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::loopback::{RUNTIME, model};
use super::support::server::{Served, Server};
use super::support::wire::Spoken;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Finding(String);

impl Slice for Finding {
    const NAME: &'static str = "finding";
}

/// Keeps a finding. Concurrent calls of one turn run in a fixed order.
fn keep() -> Tool {
    #[derive(Deserialize, schemars::JsonSchema)]
    struct Kept {
        text: String,
        place: u64,
    }
    let next = Arc::new(AtomicU64::new(0));
    let builder = Tool::builder("keep", "Keeps a finding.").unwrap();
    builder.effect(Effect::Idempotent).workspace(WorkspaceUse::None).handler(move |context, kept: Kept| {
        let next = next.clone();
        async move {
            while next.load(Ordering::SeqCst) != kept.place {
                tokio::task::yield_now().await;
            }
            next.fetch_add(1, Ordering::SeqCst);
            if kept.text == "a tear" {
                return Err(ToolError::new("it tore"));
            }
            context.session(|draft| draft.append(Finding(kept.text.clone())).map(|_| ()))??;
            Ok(ToolResult::ok(format!("kept {}", kept.text)))
        }
    })
}

/// The answers of a model: concurrent calls of which one fails, a call of an unknown tool, a call with
/// invalid arguments, and a final answer.
fn conversation() -> Vec<Spoken> {
    vec![
        Spoken::text("I look.")
            .thinking("Two places.")
            .call("call_a", "keep", "{\"text\":\"a seam\",\"place\":0}")
            .call("call_b", "keep", "{\"text\":\"a tear\",\"place\":1}"),
        Spoken::default().thinking("What else?").call("call_c", "iron", "{}"),
        Spoken::text("So.").call("call_d", "keep", "{\"text\":7}"),
        Spoken::text("Once more.").call("call_e", "keep", "{\"text\":\"a hem 糸\",\"place\":2}"),
        Spoken::text("A seam and a hem."),
    ]
}

/// A snapshot of the resulting session.
async fn driven(provider: Provider, store: Arc<dyn Store>, streams: bool) -> Value {
    let server = Server::answering(move |index, _| {
        let spoken = &conversation()[index];
        if streams {
            Served::stream(&spoken.streamed(provider), 17)
        } else {
            Served::json(&spoken.whole(provider))
        }
    });
    let agent = Agent::new("tests/model")
        .policy(Arc::new(model(provider, server.address())))
        .instructions("You sew.")
        .tools(Tools::new([keep()]).unwrap());
    let runtime = Runtime::new(store);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let answered = driver.start("What is there?").await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "A seam and a hem.", "{provider}");
    let view = runtime.view(driver.session().id()).await.unwrap();
    let snapshot = view.session(driver.session().clock().clone()).snapshot();
    assert_eq!(server.seen().len(), 5, "{provider}");
    normal(serde_json::from_str(&snapshot.to_json().unwrap()).unwrap())
}

/// Sorts the results of a turn by its calls: results of concurrent calls are recorded as they end.
fn in_call_order(snapshot: &mut Value) {
    let slices = snapshot["slices"].as_array_mut().unwrap();
    let messages = slices.iter_mut().find(|slice| slice["name"] == "inner_message").unwrap();
    let messages = messages["items"].as_array_mut().unwrap();
    let content = |message: &Value| message["message"]["content"].clone();
    let calls: Vec<Value> =
        messages.iter().map(content).filter(|content| content["kind"] == "option_call").collect();
    messages.sort_by_cached_key(|message| {
        let content = content(message);
        let is_answered = |call: &Value| call["invocation_id"] == content["invocation_id"];
        let is_result = content["kind"] == "option_result";
        let place = if is_result { calls.iter().position(is_answered) } else { None };
        (message["turn"].as_u64(), place)
    });
    for (sequence, message) in messages.iter_mut().enumerate() {
        message["sequence"] = sequence.into();
    }
}

/// The snapshot without ids, times and provider data.
fn normal(mut snapshot: Value) -> Value {
    in_call_order(&mut snapshot);
    fn walk(value: &mut Value, known: &mut HashMap<String, usize>) {
        match value {
            Value::String(text) => {
                let is_id = text.len() == 36 && text.bytes().filter(|byte| *byte == b'-').count() == 4;
                if is_id {
                    let number = known.len();
                    *text = format!("id {}", known.entry(text.clone()).or_insert(number));
                } else if text.len() == 27 && text.ends_with('Z') {
                    *text = "a time".to_owned();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, known)),
            Value::Object(fields) => {
                fields.shift_remove("provider");
                fields.values_mut().for_each(|value| walk(value, known));
            }
            _ => {}
        }
    }
    walk(&mut snapshot, &mut HashMap::new());
    snapshot
}

#[test]
fn every_provider_leaves_the_same_session_behind() {
    RUNTIME.block_on(async {
        let first = driven(Provider::OpenAiChat, Arc::new(MemoryStore::new()), true).await;
        let text = first.to_string();
        for part in ["a hem 糸", "it tore", "iron", "call_e", "kept a seam"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("kept a tear"), "{text}");
        let directory = tempfile::tempdir().unwrap();
        for provider in Provider::ALL {
            let path = directory.path().join(format!("{provider}.db"));
            let durable = driven(provider, Arc::new(SqliteStore::open(path).unwrap()), true).await;
            assert_eq!(durable, first, "{provider}, durable");
            let whole = driven(provider, Arc::new(MemoryStore::new()), false).await;
            assert_eq!(whole, first, "{provider}, not streamed");
        }
    });
}
