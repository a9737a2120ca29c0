//! Known keys are neither recorded nor sent, wherever a tool returns them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use backstitch_core::journal::Position;
use backstitch_core::message::Part;
use backstitch_core::secrets::Secrets;
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_runtime::{CallOutcome, ToolRunner, Tools, read_records};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use crate::harness::Harness;

const KEYS: [&str; 2] = ["sk-ant-0123456789-abcdefgh", "AIzaSy12"];

/// The next pseudorandom number below a limit, by xorshift.
fn random(seed: &mut u64, below: usize) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed % below as u64) as usize
}

/// A text with at least one key, sometimes large.
fn text(seed: &mut u64) -> String {
    let mut text = String::new();
    for _ in 0..1 + random(seed, 4) {
        let filler = ["é ", "\n", "key=", "\"", "sk-ant-", "", "[", "x"][random(seed, 8)];
        text.push_str(&filler.repeat(random(seed, 9)));
        text.push_str(KEYS[random(seed, 2)]);
    }
    if random(seed, 8) == 0 {
        text.push_str(&"long ".repeat(20_000));
        text.push_str(KEYS[0]);
    }
    text
}

/// A value with keys in its texts and names.
fn value(seed: &mut u64, depth: usize) -> Value {
    match random(seed, if depth > 3 { 2 } else { 4 }) {
        0 => Value::String(text(seed)),
        1 => json!(7),
        2 => (0..random(seed, 4)).map(|_| value(seed, depth + 1)).collect(),
        _ => Value::Object((0..random(seed, 4)).map(|_| (text(seed), value(seed, depth + 1))).collect()),
    }
}

fn outcome(seed: &mut u64) -> Result<ToolResult, ToolError> {
    match random(seed, 7) {
        0 => Ok(ToolResult::ok(text(seed))),
        1 => Ok(ToolResult::ok(text(seed)).with_value(value(seed, 0))?),
        2 => Ok(ToolResult::default().with_value(value(seed, 0))?.exclude_value_from_context()),
        3 => Ok(ToolResult::ok("parts").with_part(Part::text(text(seed)))),
        4 => Ok(ToolResult::failed(text(seed))),
        5 => Err(ToolError::of_kind("failed", text(seed))),
        _ => panic!("{}", text(seed)),
    }
}

/// All stored records and objects of a session, as text.
async fn stored(store: &MemoryStore, harness: &Harness) -> Vec<String> {
    harness.live.flush().await.unwrap();
    let records = read_records(store, harness.live.id(), Position::START, None).await.unwrap();
    let mut all: Vec<String> = records.iter().map(|record| record.encode().unwrap()).collect();
    for object in records.iter().flat_map(|record| record.body.object_refs()) {
        let object = harness.live.object(object).await.unwrap().unwrap();
        all.push(String::from_utf8_lossy(object.bytes()).into_owned());
    }
    all
}

async fn knowing_keys(store: &Arc<MemoryStore>, tool: Tool) -> Harness {
    let mut harness = Harness::over(store.clone(), [], None).await;
    let runner = ToolRunner::new(harness.live.clone(), Tools::new([tool]).unwrap());
    harness.runner = Arc::new(runner.with_secrets(Secrets::new(KEYS)));
    harness
}

#[tokio::test]
async fn a_known_key_is_stored_and_sent_as_its_replacement() {
    let store = Arc::new(MemoryStore::new());
    let seed = Arc::new(Mutex::new(0x9e37_79b9_7f4a_7c15_u64));
    let tool = Tool::builder("tell", "Tells.").unwrap().handler(move |context: ToolContext, (): ()| {
        let mut seed = seed.lock().unwrap();
        context.progress(text(&mut seed), None);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| outcome(&mut seed)));
        drop(seed);
        async move { outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) }
    });
    let mut harness = Harness::over(store.clone(), [], None).await;
    let mut heard = Vec::<String>::new();
    let mut events = harness.live.events();
    let runner = ToolRunner::new(harness.live.clone(), Tools::new([tool]).unwrap());
    let secrets = Secrets::new(KEYS.into_iter().chain(["none", "x"]));
    harness.runner = Arc::new(runner.with_secrets(secrets));
    let (mut succeeded, mut failed) = (0, 0);
    for _ in 0..300 {
        match harness.run("tell", json!({})).await {
            CallOutcome::Succeeded(_) => succeeded += 1,
            CallOutcome::Failed(_) => failed += 1,
            other => panic!("{other:?}"),
        }
        while let Some(event) = events.ready().await.unwrap() {
            heard.push(format!("{event:?}"));
        }
    }
    assert!(heard.iter().any(|event| event.contains("Progress")));
    assert!(succeeded > 50 && failed > 50, "{succeeded} {failed}");
    let mut all = stored(&store, &harness).await;
    all.append(&mut heard);
    for key in KEYS {
        let found = all.iter().find(|text| text.contains(key));
        assert!(found.is_none(), "{key} in {:.300}", found.unwrap());
    }
    assert!(all.iter().filter(|text| text.contains("[secret]")).count() > 200);
}

#[tokio::test]
async fn a_step_returns_the_recorded_value_to_every_attempt() {
    let store = Arc::new(MemoryStore::new());
    let done = Arc::new(AtomicUsize::new(0));
    let given = Arc::new(Mutex::new(Vec::<Value>::new()));
    let (works, gives) = (done.clone(), given.clone());
    let tool = Tool::builder("log_in", "Logs in.").unwrap().workspace(WorkspaceUse::None).handler(
        move |context: ToolContext, (): ()| {
            let (works, gives) = (works.clone(), gives.clone());
            async move {
                for name in ["with a key", "without"] {
                    for _ in 0..2 {
                        let work = async {
                            works.fetch_add(1, Ordering::SeqCst);
                            let key = if name == "without" { "none" } else { KEYS[0] };
                            Ok(json!({"token": format!("Bearer {key}"), "account": 7}))
                        };
                        let value: Value = context.step(name, work).await?;
                        gives.lock().unwrap().push(value);
                    }
                }
                Ok(ToolResult::ok("logged in"))
            }
        },
    );
    let harness = knowing_keys(&store, tool).await;
    let end = harness.run("log_in", json!({})).await;
    assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
    // The first of each pair did the work; the second is the value for a call that runs again.
    let clean = json!({"token": "Bearer [secret]", "account": 7});
    let plain = json!({"token": "Bearer none", "account": 7});
    assert_eq!(*given.lock().unwrap(), [clean.clone(), clean, plain.clone(), plain]);
    assert_eq!(done.load(Ordering::SeqCst), 2);
    let all = stored(&store, &harness).await;
    assert!(all.iter().any(|text| text.contains("Bearer [secret]")));
    assert!(!all.iter().any(|text| text.contains(KEYS[0])));
}

#[tokio::test]
async fn a_step_whose_value_is_invalid_without_its_key_runs_once_and_is_refused() {
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(try_from = "String", into = "String")]
    #[derive(Clone)]
    struct Key(String);
    impl From<Key> for String {
        fn from(key: Key) -> Self {
            key.0
        }
    }
    impl TryFrom<String> for Key {
        type Error = String;
        fn try_from(text: String) -> Result<Self, String> {
            if text.starts_with("sk-") { Ok(Self(text)) } else { Err("this is not a key".to_owned()) }
        }
    }
    let store = Arc::new(MemoryStore::new());
    let done = Arc::new(AtomicUsize::new(0));
    let works = done.clone();
    let tool = Tool::builder("log_in", "Logs in.").unwrap().workspace(WorkspaceUse::None).handler(
        move |context: ToolContext, (): ()| {
            let works = works.clone();
            async move {
                let mut refused = Vec::new();
                for name in ["key", "key", KEYS[1]] {
                    let work = async {
                        works.fetch_add(1, Ordering::SeqCst);
                        Ok(Key(KEYS[0].to_owned()))
                    };
                    refused
                        .push(context.step(name, work).await.map(|key: Key| key.0).unwrap_err().to_string());
                }
                Ok(ToolResult::ok(refused.join("; ")))
            }
        },
    );
    let harness = knowing_keys(&store, tool).await;
    let told = harness.run("log_in", json!({})).await.message().unwrap().content();
    assert_eq!(
        done.load(Ordering::SeqCst),
        1,
        "a name with a key is refused before anything is done: {told}"
    );
    assert!(told.contains("the name of step \"[secret]\" holds a key"), "{told}");
    assert_eq!(told.matches("does not fit").count(), 2, "{told}");
    let all = stored(&store, &harness).await;
    assert!(KEYS.iter().all(|key| !all.iter().any(|text| text.contains(key))));
}
