//! Waits that a server asks for hold for all requests with the same address and key.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::journal::PauseReason;
use backstitch_providers::{ApiKey, Http, ModelPolicy, ModelTarget, Provider};
use backstitch_runtime::{Agent, Backoff, DriveOutcome, Runtime, SessionOptions};
use backstitch_store::MemoryStore;

use super::loopback::{KEY, RUNTIME};
use super::support::MODEL;
use super::support::server::{Served, Server};
use super::support::wire::Spoken;

fn agent(provider: Provider, server: &Server, key: &str) -> Agent {
    let target = ModelTarget::new(provider, MODEL).at(server.address());
    let http = Arc::new(Http::new().unwrap());
    let name = backstitch_core::message::PolicyName::new("model").unwrap();
    let policy = ModelPolicy::new(name, target, Some(ApiKey::new(key)), http);
    Agent::new("tests/limits").policy(policy).with_backoff(Backoff::NEVER)
}

async fn run(agent: Agent) -> Result<DriveOutcome, String> {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("Sew.").await.map_err(|error| error.to_string())
}

/// Whether an outcome is that the deadline passed.
fn is_out_of_time(outcome: &Result<DriveOutcome, String>) -> bool {
    matches!(outcome, Ok(DriveOutcome::Paused { reason: PauseReason::Deadline, .. }))
}

#[test]
fn a_wait_holds_for_other_sessions_with_the_key_and_a_deadline_ends_it() {
    for provider in Provider::ALL {
        let answer = Spoken::text("Sewn.").streamed(provider);
        let server = Server::answering(move |index, _| match index {
            0 => Served::whole(429, "application/json", &[("retry-after", "100")], "{}"),
            _ => Served::stream(&answer, 64),
        });
        RUNTIME.block_on(async {
            run(agent(provider, &server, KEY)).await.unwrap_err();
            let short = || agent(provider, &server, KEY).with_deadline(Duration::from_millis(50));
            let (one, other) = tokio::join!(run(short()), run(short()));
            assert!(is_out_of_time(&one) && is_out_of_time(&other), "{provider}: {one:?} {other:?}");
            assert_eq!(server.seen().len(), 1, "{provider}: nobody else asked");
            // Another key has another limit.
            run(agent(provider, &server, "sk-another-0123456789")).await.unwrap();
            assert_eq!(server.seen().len(), 2);
        });
    }
}

#[test]
fn an_answer_that_leaves_nothing_holds_the_next_request_back() {
    let provider = Provider::Anthropic;
    for (left, reset, until) in [
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", "1m30s"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens", "100"),
    ] {
        let body = Spoken::text("Sewn.").whole(provider).to_string();
        let server = Server::answering(move |_, _| {
            Served::whole(200, "application/json", &[(left, "0"), (reset, until)], &body)
        });
        RUNTIME.block_on(async {
            run(agent(provider, &server, KEY)).await.unwrap();
            let next = run(agent(provider, &server, KEY).with_deadline(Duration::from_millis(50))).await;
            assert!(is_out_of_time(&next), "{left}: {next:?}");
            assert_eq!(server.seen().len(), 1);
        });
    }
}

#[test]
fn requests_continue_after_a_short_wait() {
    let provider = Provider::OpenAiChat;
    let answer = Spoken::text("Sewn.").streamed(provider);
    let server = Server::answering(move |index, _| match index {
        0 => Served::whole(429, "application/json", &[("retry-after-ms", "20")], "{}"),
        _ => Served::stream(&answer, 64),
    });
    RUNTIME.block_on(async {
        run(agent(provider, &server, KEY)).await.unwrap_err();
        let all = (0..8).map(|_| tokio::spawn(run(agent(provider, &server, KEY))));
        for one in all.collect::<Vec<_>>() {
            one.await.unwrap().unwrap();
        }
        assert_eq!(server.seen().len(), 9);
    });
}
