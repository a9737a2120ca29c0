//! Requests that a server refuses are corrected where that is possible: shortened, or without the refused part. What was learnt
//! holds for the session, also in another process.

use std::sync::Arc;

use backstitch_core::journal::{Effect, RecordBody, RequestFailed};
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::{ModelTarget, Provider, RequestOptions};
use backstitch_runtime::{Agent, Backoff, ResumeOptions, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use super::{RUNTIME, model};
use crate::lengths::{Refusal, refusals};
use crate::support::server::{Seen, Served, Server};
use crate::support::wire::Spoken;

/// The number of turns with calls before the refusal.
const TURNS: usize = 7;

/// An agent with a tool whose results are long.
fn agent(provider: Provider, server: &Server, options: RequestOptions) -> Agent {
    let read = Tool::builder("read", "Reads a page.").unwrap();
    let read = read.effect(Effect::Pure).workspace(WorkspaceUse::None);
    let read = read.handler(|_, (): ()| async { Ok(ToolResult::ok("a long seam ".repeat(800))) });
    let options = RequestOptions { stream: true, ..options };
    Agent::new("tests/model")
        .policy(Arc::new(model(provider, server.address()).with_options(options)))
        .instructions("You read.")
        .tools(Tools::new([read]).unwrap())
        .backoff(Backoff::NEVER)
}

/// The result of a mission: its answer or the kind of its error, and the records of failed requests.
struct Ended {
    answer: Result<String, String>,
    failed: Vec<RequestFailed>,
    notes: Vec<String>,
}

fn drive(agents: Vec<Agent>) -> Ended {
    RUNTIME.block_on(async {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let mut agents = agents.into_iter();
        let driver = runtime.create(agents.next().unwrap(), SessionOptions::default()).await.unwrap();
        let session = driver.session().id();
        let mut ended = driver.start("What do the pages say?").await;
        for agent in agents {
            driver.session().release().await.unwrap();
            let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
            ended = match ended {
                Ok(_) => driver.start("And what else?").await,
                Err(_) => driver.resume(ResumeOptions::default()).await,
            };
            driver.session().release().await.unwrap();
        }
        let answer = match ended {
            Ok(ended) => ended.answer().map(|answer| answer.text).map_err(|error| error.to_string()),
            Err(error) => Err(error.kind().to_owned()),
        };
        let (mut failed, mut notes) = (Vec::new(), Vec::new());
        for record in runtime.records(session).await.unwrap() {
            match record.body {
                RecordBody::RequestFailed(record) => failed.push((*record).clone()),
                RecordBody::Note(note) => notes.push(note.text.clone()),
                _ => {}
            }
        }
        Ended { answer, failed, notes }
    })
}

fn calls(provider: Provider, turn: usize) -> Served {
    let spoken = Spoken::text("I read.").call(&format!("call_{turn}"), "read", "{}");
    Served::stream(&spoken.streamed(provider), 4_000)
}

fn says(provider: Provider, text: &str) -> Served {
    Served::stream(&Spoken::text(text).streamed(provider), 4_000)
}

fn refused(status: u16, body: &Value) -> Served {
    Served::whole(status, "application/json", &[], &body.to_string())
}

fn length(seen: &Seen) -> usize {
    seen.body.to_string().len()
}

#[test]
fn a_conversation_that_is_too_long_for_any_server_is_shortened() {
    for Refusal { server: name, provider, status, body, window } in refusals() {
        let server = Server::answering(move |index, _| match index {
            turn if turn < TURNS => calls(provider, turn),
            TURNS => refused(status, &body),
            _ => says(provider, "All pages are alike."),
        });
        let ended = drive(vec![agent(provider, &server, RequestOptions::default())]);
        assert_eq!(ended.answer.as_deref(), Ok("All pages are alike."), "{name}");
        let seen = server.seen();
        assert_eq!(seen.len(), TURNS + 2, "{name}: one request in place of the refused one");
        assert!(length(&seen[TURNS + 1]) <= length(&seen[TURNS]) * 6 / 10, "{name}");
        let kinds: Vec<_> = ended.failed.iter().map(|failed| (failed.kind.as_str(), failed.window)).collect();
        assert_eq!(kinds, [("context_too_long", window)], "{name}: the window is recorded");
    }
}

#[test]
fn a_long_request_that_is_refused_without_a_known_reason_is_tried_at_half_its_length() {
    let vague = || refused(400, &json!({"error": {"message": "Bad Request"}}));
    let provider = Provider::OpenAiChat;
    // The server accepts 50,000 bytes, and does not say so.
    let server = Server::answering(move |index, seen| match index {
        turn if turn < TURNS => calls(provider, turn),
        _ if length(seen) > 50_000 => vague(),
        _ => says(provider, "All pages are alike."),
    });
    let again = agent(provider, &server, RequestOptions::default());
    let ended = drive(vec![agent(provider, &server, RequestOptions::default()), again]);
    assert_eq!(ended.answer.as_deref(), Ok("All pages are alike."));
    assert_eq!(ended.failed.len(), 1, "the next mission keeps to the limit");
    assert!(ended.failed[0].unexplained && ended.failed[0].kind == "invalid_request");

    // A reason that is not the length: one try, and the next mission is not shortened.
    let server = Server::answering(move |index, _| match index {
        turn if turn < TURNS => calls(provider, turn),
        _ => vague(),
    });
    let again = agent(provider, &server, RequestOptions::default());
    let ended = drive(vec![agent(provider, &server, RequestOptions::default()), again]);
    assert_eq!(ended.answer.unwrap_err(), "invalid_request");
    let lengths: Vec<_> = server.seen()[TURNS..].iter().map(length).collect();
    assert_eq!(lengths.len(), 3, "a refusal, a try, and the refusal of the next mission");
    assert!(lengths[1] * 10 <= lengths[0] * 6 && lengths[2] >= lengths[0], "{lengths:?}");

    // A short request is not tried again.
    let server = Server::answering(move |_, _| vague());
    let ended = drive(vec![agent(provider, &server, RequestOptions::default())]);
    assert_eq!((ended.answer.unwrap_err().as_str(), server.seen().len()), ("invalid_request", 1));
}

/// A server that refuses requests with a field, and answers the others: first with a call.
fn refusing(provider: Provider, message: &'static str, has: fn(&Value) -> bool) -> Server {
    let mut answered = 0;
    Server::answering(move |_, seen| {
        if has(&seen.body) {
            return refused(400, &json!({"error": {"message": message, "type": "invalid_request_error"}}));
        }
        answered += 1;
        if answered % 2 == 1 { calls(provider, answered) } else { says(provider, "Done.") }
    })
}

#[test]
fn a_part_that_a_server_refuses_is_left_out_for_the_rest_of_the_session() {
    let effort = || RequestOptions {
        effort: Some("low".into()),
        max_output_tokens: Some(500),
        ..RequestOptions::default()
    };
    type Has = fn(&Value) -> bool;
    let cases: [(Provider, &'static str, Has, &str); 5] = [
        (
            Provider::OpenAiResponses,
            "Encrypted content is not supported with this model.",
            |body| body.get("include").is_some(),
            "encrypted reasoning",
        ),
        (
            Provider::OpenAiResponses,
            "Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.",
            |body| body["reasoning"].get("summary").is_some(),
            "the summary of reasoning",
        ),
        (
            Provider::OpenAiChat,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            |body| body.get("max_tokens").is_some(),
            "the name of the token limit",
        ),
        (
            Provider::OpenAiChat,
            "Extra inputs are not permitted: stream_options",
            |body| body.get("stream_options").is_some(),
            "the usage at the end of the stream",
        ),
        (
            Provider::OpenAiChat,
            "Unknown field: reasoning_effort",
            |body| body.get("reasoning_effort").is_some(),
            "",
        ),
    ];
    for (provider, message, has, part) in cases {
        let server = refusing(provider, message, has);
        let again = agent(provider, &server, effort());
        let ended = drive(vec![agent(provider, &server, effort()), again]);
        let with: Vec<bool> = server.seen().iter().map(|seen| has(&seen.body)).collect();
        if part.is_empty() {
            // What the user asked for is not left out.
            assert_eq!(ended.answer.unwrap_err(), "invalid_request", "{message}");
            assert!(with.iter().all(|has| *has), "{message}");
            continue;
        }
        assert_eq!(ended.answer.as_deref(), Ok("Done."), "{message}");
        assert_eq!(with, [true, false, false, false, false], "{message}: refused once");
        assert!(ended.notes.iter().any(|note| note.contains(part)), "{message}: {:?}", ended.notes);
    }
}

#[test]
fn models_that_do_not_reason_are_not_asked_for_reasoning() {
    let talk = crate::support::Talk::new().user("Hello");
    let included = |name: &str| {
        let target = ModelTarget::new(Provider::OpenAiResponses, name);
        talk.render_for(&target, &RequestOptions::default()).body.get("include").is_some()
    };
    for plain in [
        "gpt-4o",
        "gpt-4o-mini-2024-07-18",
        "gpt-4.1",
        "gpt-4.1-nano",
        "gpt-3.5-turbo",
        "openai/gpt-4o",
        "ft:gpt-4o:acme",
        "chatgpt-4o-latest",
    ] {
        assert!(!included(plain), "{plain}");
    }
    for reasons in ["gpt-5", "gpt-5-mini", "gpt-5.2-codex", "o3", "o4-mini", "gpt-oss-120b", "a-later-model"]
    {
        assert!(included(reasons), "{reasons}");
    }
}
