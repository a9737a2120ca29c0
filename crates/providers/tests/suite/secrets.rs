//! A key is sent, and appears nowhere else: not in journals, notes, logs, errors, `Debug` or deltas, even
//! where the server repeats it.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use backstitch_core::ports::Store;
use backstitch_providers::{ModelTarget, Provider, ProviderError, RequestOptions, ThinkingBudget};
use backstitch_runtime::{Agent, LiveKind, Runtime, SessionOptions};
use backstitch_store::SqliteStore;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::loopback::{KEY, ask, model};
use super::support::server::{Served, Server};
use super::support::wire::{Spoken, stream_of};
use super::support::{MODEL, Talk};

/// Collects all log output.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Written<'a>(&'a mut String);

impl Visit for Written<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Written(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Written(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Written(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An answer that contains the key everywhere.
fn telltale() -> Spoken {
    Spoken::text(&format!("Your key is {KEY}, isn't it? {KEY}"))
        .thinking(&format!("They gave me {KEY}."))
        .call(&format!("call_{KEY}"), "look", &format!("{{\"at\":\"{KEY}\",\"{KEY}\":1}}"))
}

fn files_below(directory: &Path) -> Vec<Vec<u8>> {
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: &Path| vec![std::fs::read(path).unwrap()];
    let files = paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { read(&path) });
    files.collect()
}

#[track_caller]
fn is_clean(text: &str, what: &str) {
    assert!(!text.contains("hunter2"), "{what}: {text}");
}

#[test]
fn errors_do_not_repeat_the_key() {
    let body = json!({"error": {"message": format!("Incorrect API key: {KEY}"), "type": KEY, "code": KEY, "status": KEY}});
    let event = json!({"type": "error", "error": {"message": KEY, "type": KEY, "code": KEY, "status": KEY}});
    for provider in Provider::ALL {
        for served in [
            Served::whole(401, "application/json", &[("x-request-id", KEY)], &body.to_string()),
            Served::whole(500, "text/html", &[], &format!("<html>{KEY}</html>")),
            Served::stream(&stream_of(std::slice::from_ref(&event)), 3),
            Served::stream(&format!("data: {{\"{KEY}\n\n"), 3),
            Served::json(&json!(KEY)),
        ] {
            let server = Server::with(vec![served]);
            let policy = model(provider, server.address());
            let error = ask(&policy).0.unwrap_err();
            let source = error.source.as_ref().unwrap().downcast_ref::<ProviderError>().unwrap();
            is_clean(&format!("{error} {error:?} {source} {source:?} {policy:?}"), provider.as_str());
            assert!(server.seen()[0].head.contains(KEY), "{provider}: it was sent");
        }
    }
}

#[test]
fn answers_do_not_bring_the_key_into_the_journal() {
    for provider in Provider::ALL {
        let log = Log::default();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let error = format!("{{\"error\": {{\"message\": \"{KEY}\"}}}}");
        let server = Server::with(vec![
            Served::whole(429, "application/json", &[("retry-after", "0")], &error),
            Served::stream(&telltale().streamed(provider), 1),
            Served::json(&telltale().whole(provider)),
            Served::whole(400, "application/json", &[], &error),
        ]);
        // On one thread, so that the subscriber receives all log output.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (failed, debug) = tracing::subscriber::with_default(log.clone(), || {
            tracing::info!(policy = ?model(provider, server.address()), "it can be logged");
            runtime.block_on(async {
                let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).unwrap());
                let agent = Agent::new("tests/model").policy(Arc::new(model(provider, server.address())));
                let runtime = Runtime::new(store);
                let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
                let mut events = driver.events();
                let ended = driver.start("Who am I?").await;
                while let Some(event) = events.ready().await.unwrap() {
                    if let Some(LiveKind::Text { text, .. } | LiveKind::Reasoning { text, .. }) =
                        event.live().map(|event| &event.kind)
                    {
                        heard.lock().unwrap().push(text.clone());
                    }
                }
                let mut records = String::new();
                for record in runtime.records(driver.session().id()).await.unwrap() {
                    let _ = writeln!(records, "{record:?}");
                }
                (format!("{ended:?}"), records)
            })
        });
        assert_eq!(server.seen().len(), 4, "{provider}: {failed}");
        is_clean(&failed, "how it ended");
        is_clean(&debug, "the journal");
        assert!(debug.contains("[secret]"), "{provider}: {debug}");
        let logged = log.0.lock().unwrap().clone();
        assert!(logged.contains("it can be logged"), "{logged}");
        is_clean(&logged, "the log");
        let told = heard.lock().unwrap().concat();
        assert!(told.contains("Your key is [secret], isn't it? [secret]"), "{provider}: {told}");
        is_clean(&told, "pieces");
        for bytes in files_below(directory.path()) {
            is_clean(&String::from_utf8_lossy(&bytes), "a file of the store");
        }
    }
}

#[test]
fn a_key_that_is_cut_in_a_quoted_page_does_not_stand_in_the_error() {
    for provider in Provider::ALL {
        for before in 260..310 {
            let page = format!("<{}>{KEY} and more", "x".repeat(before));
            for status in [200, 500] {
                let server = Server::with(vec![Served::whole(status, "text/html", &[], &page)]);
                let error = ask(&model(provider, server.address())).0.unwrap_err();
                let text = format!("{error} {error:?}");
                assert!(!text.contains("sk-h"), "{provider} {before}: {text}");
            }
        }
    }
}

/// The thoughts of such an answer cannot be sent back: without the key, their signatures are wrong.
#[test]
fn an_answer_that_repeated_the_key_is_replayed_by_its_words_and_calls() {
    for provider in Provider::ALL {
        let answers = [
            telltale(),
            Spoken::text("I look.").thinking(&format!("With {KEY}.")).call("call_a", "look", "{}"),
        ];
        for spoken in answers {
            for served in
                [Served::stream(&spoken.streamed(provider), 9), Served::json(&spoken.whole(provider))]
            {
                let server = Server::with(vec![served]);
                let policy = model(provider, server.address());
                let answer = ask(&policy).0.unwrap();
                let sidecar = answer.provider.clone().unwrap();
                assert!(sidecar.payload.is_none() && sidecar.payload_redacted, "{provider}");
                let talk = Talk::new().user("Look").answer(answer).result(0, Ok(json!("a seam")));
                let target = ModelTarget::new(provider, MODEL).at(server.address());
                for thinking in
                    [ThinkingBudget::Default, ThinkingBudget::Adaptive, ThinkingBudget::Budget(2_000)]
                {
                    let options = RequestOptions { thinking, ..RequestOptions::default() };
                    if options.check(provider).is_err() {
                        continue;
                    }
                    let rendered = talk.render_for(&target, &options);
                    let text = rendered.body.to_string();
                    assert!(!text.contains("EqQB") && !text.contains("gAAAAB"), "{provider}: {text}");
                    assert!(text.contains("a seam") && text.contains("look"), "{provider}: {text}");
                    let dropped: Vec<String> = rendered.report.dropped().map(ToString::to_string).collect();
                    assert!(dropped.len() == 1 && dropped[0].contains("contained the key"), "{dropped:?}");
                }
            }
        }
    }
}

#[test]
fn words_that_are_too_short_to_be_keys_are_not_taken_out_of_answers() {
    use backstitch_core::message::{Part, PolicyName};
    use backstitch_providers::{ApiKey, Http, ModelPolicy};
    let provider = Provider::OpenAiChat;
    let server = Server::with(vec![Served::stream(&Spoken::text("none of it").streamed(provider), 1)]);
    let target = ModelTarget::new(provider, "m").at(server.address());
    let name = PolicyName::new("model").unwrap();
    let policy = ModelPolicy::new(name, target, Some(ApiKey::new("none")), Arc::new(Http::new().unwrap()));
    let (answer, _) = ask(&policy);
    assert_eq!(answer.unwrap().parts, [Part::text("none of it")]);
}
