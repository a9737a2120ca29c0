//! Waits that a server asks for hold for all requests with the same address and key.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::journal::PauseReason;
use backstitch_core::message::PolicyName;
use backstitch_providers::{
    ApiKey, Http, ModelPolicy, ModelTarget, Provider, Script, ScriptedCall, ScriptedPolicy, ScriptedReply,
};
use backstitch_runtime::{Agent, Backoff, DriveOutcome, Runtime, SessionOptions, SubAgent};
use backstitch_store::MemoryStore;
use serde_json::{Map, json};

use super::loopback::{KEY, RUNTIME};
use super::support::MODEL;
use super::support::server::{Served, Server};
use super::support::wire::Spoken;

fn agent(provider: Provider, server: &Server, key: &str) -> Agent {
    let target = ModelTarget::new(provider, MODEL).at(server.address());
    let http = Arc::new(Http::new().unwrap());
    let name = PolicyName::new("model").unwrap();
    let policy = ModelPolicy::new(name, target, Some(ApiKey::new(key)), http);
    Agent::new("tests/limits").policy(policy).backoff(Backoff::NEVER)
}

/// A scripted agent that asks a sub-agent, whose model is at the server.
fn caller(provider: Provider, server: &Server, key: &str) -> Agent {
    let helper = SubAgent::new("helper", "Sews.", agent(provider, server, key)).unwrap();
    let mission = Map::from_iter([("mission".to_owned(), json!("Sew."))]);
    let asks = ScriptedReply::default().call(ScriptedCall::new("helper", mission));
    let script = Script { replies: vec![asks, ScriptedReply::text("Done.")] };
    let policy = ScriptedPolicy::new(PolicyName::new("caller").unwrap(), script);
    Agent::new("tests/caller").policy(policy).tools([helper])
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
            let short = || agent(provider, &server, KEY).deadline(Duration::from_millis(50));
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
            let next = run(agent(provider, &server, KEY).deadline(Duration::from_millis(50))).await;
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

#[test]
fn sub_agents_share_the_wait_of_their_key() {
    for provider in Provider::ALL {
        let answer = Spoken::text("Sewn.").streamed(provider);
        let server = Server::answering(move |index, _| match index {
            0 => Served::whole(429, "application/json", &[("retry-after", "100")], "{}"),
            _ => Served::stream(&answer, 64),
        });
        RUNTIME.block_on(async {
            // The wait that a sub-agent is asked for holds for sessions and for other sub-agents.
            run(caller(provider, &server, KEY)).await.unwrap_err();
            let short = Duration::from_millis(50);
            let session = run(agent(provider, &server, KEY).deadline(short)).await;
            assert!(is_out_of_time(&session), "{provider}: {session:?}");
            let _ = run(caller(provider, &server, KEY).deadline(short)).await;
            assert_eq!(server.seen().len(), 1, "{provider}: nobody else asked");
            // Another key has another limit.
            let other = run(caller(provider, &server, "sk-another-0123456789")).await.unwrap();
            assert_eq!(other.answer().unwrap().text, "Done.", "{provider}");
            assert_eq!(server.seen().len(), 2);
        });
    }
}

#[test]
fn a_cancelled_request_ends_its_wait_and_is_never_sent() {
    let provider = Provider::Anthropic;
    let answer = Spoken::text("Sewn.").streamed(provider);
    let server = Server::answering(move |index, _| match index {
        0 => Served::whole(429, "application/json", &[("retry-after", "100")], "{}"),
        _ => Served::stream(&answer, 64),
    });
    RUNTIME.block_on(async {
        run(agent(provider, &server, KEY)).await.unwrap_err();
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let waiting = agent(provider, &server, KEY);
        let driver = Arc::new(runtime.create(waiting, SessionOptions::default()).await.unwrap());
        let session = driver.session().id();
        let running = tokio::spawn(async move { driver.start("Sew.").await });
        // The request is recorded before it waits.
        let has_request = async || {
            let view = runtime.view(session).await.unwrap();
            view.evaluations().any(|evaluation| !evaluation.requests.is_empty())
        };
        while !has_request().await {
            tokio::task::yield_now().await;
        }
        runtime.cancel(session).await.unwrap();
        let ended = running.await.unwrap().unwrap();
        assert!(matches!(ended, DriveOutcome::Cancelled { .. }), "{ended:?}");
        assert_eq!(server.seen().len(), 1);
        run(agent(provider, &server, "sk-another-0123456789")).await.unwrap();
        assert_eq!(server.seen().len(), 2);
    });
}
