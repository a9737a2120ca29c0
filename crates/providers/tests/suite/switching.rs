//! Switching to another provider in the middle of an evaluation: it continues, and dropped payloads are
//! recorded.

use std::sync::Arc;

use backstitch_core::journal::{Effect, RecordBody};
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::Provider;
use backstitch_runtime::{Agent, ResumeOptions, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;

use super::loopback::{RUNTIME, model};
use super::support::server::{Served, Server};
use super::support::wire::Spoken;

fn agent(provider: Provider, server: &Server) -> Agent {
    let look = Tool::builder("look", "Looks around.").unwrap();
    let look = look.effect(Effect::Pure).workspace(WorkspaceUse::None);
    let look = look.handler(|_, (): ()| async { Ok(ToolResult::ok("a seam")) });
    Agent::new("tests/model")
        .policy(Arc::new(model(provider, server.address())))
        .instructions("You sew.")
        .tools(Tools::new([look]).unwrap())
}

#[test]
fn another_provider_continues_and_dropped_payloads_are_recorded() {
    for first in Provider::ALL {
        for second in Provider::ALL {
            let spoken = Spoken::text("I look.").thinking("Hm.").call("call_a", "look", "{}");
            let gone = Served::whole(400, "application/json", &[], "{\"error\": {\"message\": \"gone\"}}");
            let one = Server::with(vec![Served::stream(&spoken.streamed(first), 50), gone]);
            let other = Server::with(vec![Served::stream(&Spoken::text("A seam.").streamed(second), 50)]);
            let notes = RUNTIME.block_on(async {
                let runtime = Runtime::new(Arc::new(MemoryStore::new()));
                let driver = runtime.create(agent(first, &one), SessionOptions::default()).await.unwrap();
                driver.start("What is there?").await.unwrap_err();
                let session = driver.session().id();
                driver.session().release().await.unwrap();
                let agent = agent(second, &other);
                let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
                let ended = driver.resume(ResumeOptions::default()).await.unwrap();
                assert_eq!(ended.answer().unwrap().text, "A seam.", "{first} to {second}");
                let mut notes = Vec::new();
                for record in runtime.records(session).await.unwrap() {
                    if let RecordBody::Note(note) = record.body {
                        notes.push(note);
                    }
                }
                notes
            });
            // Even the same provider counts as another one at another address.
            let dropped = notes.iter().find(|note| note.topic == "request").unwrap();
            let line = dropped.data.inline().unwrap()["departures"][0].as_str().unwrap();
            assert!(line.contains("the payload of turn 1") && line.contains(first.as_str()), "{line}");
            let body = other.seen()[0].body.to_string();
            assert!(body.contains("I look.") && body.contains("a seam"), "{first} to {second}: {body}");
            assert!(!body.contains("Hm."), "{first} to {second}: its thoughts are its own");
        }
    }
}
