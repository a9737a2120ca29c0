//! Spans of `tracing`: the names of their fields, and no contents of messages by default.
//!
//! `tracing` remembers once for the whole process whether anyone listens to a span, so a test of another thread can turn
//! off the spans that these tests wait for. Each therefore runs in a process of its own, where the listener is installed first.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use backstitch_core::budget::Amounts;
use backstitch_core::journal::Effect;
use backstitch_runtime::{Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::tailor::{keep, reply, scripted};

type Fields = BTreeMap<String, String>;

/// Collects spans with their fields, in the order in which they started.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<(String, Fields)>>>);

struct Keeper<'a>(&'a mut Fields);

impl Visit for Keeper<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("backstitch")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Keeper(&mut fields));
        let mut spans = self.0.lock().unwrap();
        spans.push((span.metadata().name().to_owned(), fields));
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.0.lock().unwrap();
        values.record(&mut Keeper(&mut spans[span.into_u64() as usize - 1].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

const fn either(plain: &'static str, otel: &'static str) -> &'static str {
    if cfg!(feature = "otel") { otel } else { plain }
}

/// Set in a process that was started for one of these tests.
const ALONE: &str = "BACKSTITCH_TEST_ALONE";

/// Runs a test of this file in a process of its own. Returns false in that process, where the test has to run.
fn runs_elsewhere(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("spans::{test}"), "--test-threads=1"]).env(ALONE, "1");
    let ran = command.output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && output.contains("1 passed"), "{output}{errors}");
    true
}

fn heard(with_contents: bool) -> Vec<(String, Fields)> {
    let listener = Listener::default();
    tracing::subscriber::set_global_default(listener.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(sew(with_contents));
    std::mem::take(&mut listener.0.lock().unwrap())
}

async fn sew(with_contents: bool) {
    let mut replies = vec![
        reply("the secret is blue", &[("keep", json!({"text": "blue"})), ("keep", json!({"text": "fail"}))]),
        reply("done", &[]),
    ];
    replies[0].usage =
        Some(Amounts { input_tokens: 50, cache_read_tokens: 40, output_tokens: 10, ..Amounts::ZERO });
    let agent = scripted(replies).tools(Tools::new([keep(Effect::Workspace, Arc::default())]).unwrap());
    let agent = if with_contents { agent.contents_in_spans() } else { agent };
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap().answer().unwrap();
}

#[test]
fn evaluations_requests_and_calls_are_spans_with_the_names_of_their_fields() {
    if runs_elsewhere("evaluations_requests_and_calls_are_spans_with_the_names_of_their_fields") {
        return;
    }
    let spans = heard(false);
    let named = |name: &str| -> Vec<Fields> {
        spans.iter().filter(|(known, _)| known == name).map(|(_, fields)| fields.clone()).collect()
    };
    let evaluation = &named("invoke_agent")[0];
    assert_eq!(evaluation[either("operation", "gen_ai.operation.name")], "invoke_agent");
    assert_eq!(evaluation[either("agent", "gen_ai.agent.name")], "tests/tailor");
    assert!(evaluation.contains_key(either("session", "gen_ai.conversation.id")));

    let requests = named("chat");
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0][either("provider", "gen_ai.provider.name")], "scripted");
    assert_eq!(requests[0][either("model", "gen_ai.request.model")], "tailor");
    assert_eq!(requests[0]["turn"], "1");
    assert_eq!(requests[0][either("input_tokens", "gen_ai.usage.input_tokens")], "50");
    let read = either("cache_read_tokens", "gen_ai.usage.cache_read.input_tokens");
    assert_eq!(requests[0][read], "40");
    assert!(!requests[1].contains_key(read), "nothing was read from a cache");
    let written = either("cache_write_tokens", "gen_ai.usage.cache_creation.input_tokens");
    assert!(!requests[0].contains_key(written), "nothing was written to a cache");

    let calls = named("execute_tool");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0][either("tool", "gen_ai.tool.name")], "keep");
    assert!(calls[0].contains_key(either("call", "gen_ai.tool.call.id")));
    assert_eq!(calls[0]["attempt"], "1");
    assert_eq!(calls[1][either("error", "error.type")], "tool_failed");
    assert_eq!(calls[1].contains_key("otel.name"), cfg!(feature = "otel"));
    assert!(!named("append").is_empty());
    assert!(!format!("{spans:?}").contains("blue"), "spans have no contents by default: {spans:?}");
}

#[test]
fn spans_have_contents_if_the_agent_enables_them() {
    if runs_elsewhere("spans_have_contents_if_the_agent_enables_them") {
        return;
    }
    let spans = heard(true);
    let all = format!("{spans:?}");
    assert!(all.contains("the secret is blue") && all.contains("kept blue"), "{all}");
}
