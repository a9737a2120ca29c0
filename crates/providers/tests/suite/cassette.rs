//! Cassettes: recorded requests are played, and others are reported.

use std::path::Path;
use std::sync::Arc;

use backstitch_core::message::PolicyName;
use backstitch_core::ports::{Policy, PolicyAnswer, PolicyError};
use backstitch_providers::cassette::{CassetteError, MissReason, Player, Recorder};
use backstitch_providers::{
    ApiKey, Http, HttpRequest, ModelPolicy, ModelTarget, Provider, Transport, TransportError,
};
use serde_json::json;

use super::support::server::{Served, Server};
use super::support::wire::Spoken;
use super::support::{MODEL, Talk};

const KEY: &str = "sk-hunter2-0123456789";

fn ask(
    provider: Provider,
    address: &str,
    transport: Arc<dyn Transport>,
    mission: &str,
) -> Result<PolicyAnswer, PolicyError> {
    let target = ModelTarget::new(provider, MODEL).at(address);
    let policy =
        ModelPolicy::new(PolicyName::new("model").unwrap(), target, Some(ApiKey::new(KEY)), transport);
    let question = Talk::new().user(mission).question();
    let described = policy.describe(&question);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(policy.decide(question, described))
}

fn recorded(path: &Path) -> Arc<Recorder> {
    Arc::new(Recorder::create(path, Arc::new(Http::new().unwrap())).unwrap())
}

#[test]
fn what_was_recorded_is_played_again() {
    for provider in Provider::ALL {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("talk.jsonl");
        let spoken = Spoken::text("naïve 糸 🧵").thinking("hm").call("call_a", "look", "{\"at\":1}");
        let server = Server::with(vec![
            Served::whole(429, "application/json", &[("retry-after", "3"), ("set-cookie", "a=b")], "{}"),
            Served::stream(&spoken.streamed(provider), 1),
            Served::open_stream(&spoken.streamed(provider)[..90], 7),
            Served::nothing(),
        ]);
        let recorder = recorded(&path);
        let ask_live = |mission: &str| ask(provider, server.address(), recorder.clone(), mission);
        let live = [ask_live("Look"), ask_live("Look"), ask_live("Cut"), ask_live("Drop")];
        // The server is gone, and the cassette is played at another address.
        drop((server, recorder));
        let player = Arc::new(Player::open(&path).unwrap());
        let play = |mission: &str| ask(provider, "http://127.0.0.1:9", player.clone(), mission);
        // Equal requests are answered in the order of the recording, others in any order.
        let played = [play("Look"), play("Look")];
        let last = play("Drop");
        let played = played.into_iter().chain([play("Cut"), last]);
        for (live, played) in live.into_iter().zip(played) {
            match (live, played) {
                (Ok(live), Ok(mut played)) => {
                    assert_eq!(
                        played.provider.as_ref().unwrap().endpoint.as_deref(),
                        Some("http://127.0.0.1:9")
                    );
                    played.provider = live.provider.clone();
                    assert_eq!(live, played, "{provider}");
                }
                (Err(live), Err(played)) => {
                    assert_eq!(live.kind, played.kind, "{provider}");
                    assert_eq!((live.retryable, live.retry_after), (played.retryable, played.retry_after));
                }
                (live, played) => panic!("{provider}: {live:?}, {played:?}"),
            }
        }
        assert_eq!(player.left(), 0);
        assert!(!std::fs::read_to_string(&path).unwrap().contains("a=b"), "cookies are secrets too");
    }
}

#[test]
fn no_secret_is_written() {
    for provider in Provider::ALL {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("talk.jsonl");
        let echo = format!("your key is {KEY}");
        let body = json!({"error": {"message": echo, "code": KEY, KEY: 1}}).to_string();
        let server = Server::with(vec![
            Served::whole(401, "application/json", &[("x-request-id", KEY)], &body),
            Served::stream(&Spoken::text(&echo).streamed(provider), 1),
        ]);
        let recorder = recorded(&path);
        let asked = format!("is {KEY} mine?");
        ask(provider, server.address(), recorder.clone(), &asked).unwrap_err();
        let _ = ask(provider, server.address(), recorder.clone(), &asked);
        assert!(server.seen()[1].head.contains(KEY), "it was sent");
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written.lines().count(), 2);
        assert!(written.contains("[secret]") && !written.contains("hunter2"), "{written}");
        assert!(!format!("{recorder:?}").contains("hunter2"));
    }
}

#[test]
fn a_miss_says_what_differs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("talk.jsonl");
    let provider = Provider::Anthropic;
    let server = Server::with(vec![Served::stream(&Spoken::text("hello").streamed(provider), 9)]);
    ask(provider, server.address(), recorded(&path), "Look left").unwrap();
    let player = Arc::new(Player::open(&path).unwrap());
    let play = |provider, mission: &str| ask(provider, "http://127.0.0.1:9", player.clone(), mission);

    let error = play(provider, "Look right").unwrap_err();
    assert_eq!((error.kind.as_str(), error.retryable), ("not_recorded", false));
    let place = "/messages/0/content/0/text";
    for part in [place, "\"Look left\"", "\"Look right\"", "talk.jsonl"] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
    let error = play(Provider::Gemini, "Look left").unwrap_err();
    assert!(error.message.contains("/v1/messages") && error.message.contains("streamGenerate"), "{error}");
    play(provider, "Look left").unwrap();
    let error = play(provider, "Look left").unwrap_err();
    assert!(error.message.contains("all 1 exchanges were played"), "{error}");
}

#[test]
fn misses_are_typed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none.jsonl");
    std::fs::write(&path, "").unwrap();
    let request = HttpRequest {
        url: "http://x/y".into(),
        headers: Vec::new(),
        secret: None,
        custom: Vec::new(),
        body: "{}".into(),
    };
    let sent = backstitch_testkit::block_on(Player::open(&path).unwrap().send(request));
    let Err(TransportError::NotRecorded(miss)) = sent else { panic!("nothing was recorded") };
    assert_eq!(miss.reason, MissReason::AllPlayed { recorded: 0 });
}

#[test]
fn cassettes_that_cannot_be_used_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("talk.jsonl");
    assert!(matches!(Player::open(&path), Err(CassetteError::File { .. })));
    let line = |v: u32, chunk: &str| {
        format!(
            "{{\"v\":{v},\"request\":{{\"method\":\"POST\",\"url\":\"u\",\"digest\":\"blake3:{}\"}},\"response\":{{\"status\":200,\"chunks\":[{chunk}]}}}}\n",
            "0".repeat(64)
        )
    };
    for wrong in
        [line(9, "\"x\""), line(1, "{\"base64\":\"?\"}"), "{\"v\":1}\n".to_owned(), "nonsense\n".to_owned()]
    {
        std::fs::write(&path, line(1, "\"x\"") + "\n" + &wrong).unwrap();
        let error = Player::open(&path).unwrap_err();
        assert!(matches!(error, CassetteError::Line { line: 3, .. }), "{error}");
    }
    let error = Recorder::create(&path, Arc::new(Http::new().unwrap())).unwrap_err();
    assert!(error.to_string().contains("talk.jsonl"), "an existing file is not overwritten: {error}");
}
