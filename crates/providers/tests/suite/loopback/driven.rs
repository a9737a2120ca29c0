//! Through the driver: failed attempts are not recorded as answers, and retries send the same request.

use std::sync::Arc;

use backstitch_core::journal::{RecordBody, Role};
use backstitch_core::view::JournalView;
use backstitch_providers::Provider;
use backstitch_runtime::{Agent, Driver, Runtime, SessionOptions};
use backstitch_store::MemoryStore;

use super::{RUNTIME, model};
use crate::support::server::{Served, Server};
use crate::support::wire::{Spoken, overloaded_event, stream_of};

async fn driver(provider: Provider, server: &Server) -> (Runtime, Driver) {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let agent = Agent::new("tests/model").policy(Arc::new(model(provider, server.address())));
    let driver = runtime.create(agent.instructions("Be brief."), SessionOptions::default()).await.unwrap();
    (runtime, driver)
}

fn said(view: &JournalView) -> Vec<(Role, String)> {
    let transcript = view.transcript().unwrap();
    transcript.all().iter().map(|message| (message.role(), message.content())).collect()
}

#[test]
fn broken_answers_are_retried_and_leave_nothing() {
    for provider in Provider::ALL {
        let spoken = Spoken::text("It rains.").thinking("hm");
        let events = spoken.events(provider);
        let mut failing = events[..events.len() - 2].to_vec();
        failing.push(overloaded_event(provider));
        let cut = stream_of(&events[..events.len() - 2]);
        let now = [("retry-after", "0")];
        let server = Server::with(vec![
            Served::whole(429, "application/json", &now, "{}"),
            Served::open_stream(&cut, 5),
            Served::whole(529, "application/json", &now, "{}"),
            Served::stream(&spoken.streamed(provider), 3),
        ]);
        RUNTIME.block_on(async {
            let (runtime, driver) = driver(provider, &server).await;
            let mut events = driver.events();
            let answered = driver.start("How is the weather?").await.unwrap().answer().unwrap();
            assert_eq!(answered.text, "It rains.", "{provider}");
            let view = runtime.view(driver.session().id()).await.unwrap();
            let expected = [
                (Role::System, "Be brief.".to_owned()),
                (Role::User, "How is the weather?".to_owned()),
                (Role::Assistant, "It rains.".to_owned()),
            ];
            assert_eq!(said(&view), expected, "{provider}: one answer is recorded");
            let mut texts = 0;
            while let Some(event) = events.ready().await.unwrap() {
                texts += usize::from(event.text().is_some());
            }
            assert!(texts >= 4, "{provider}: deltas of the cut answers were emitted too");
        });
        let seen = server.seen();
        assert_eq!(seen.len(), 4, "{provider}");
        assert!(seen.iter().all(|request| request.body == seen[0].body), "{provider}: the same request");
    }
}

#[test]
fn what_cannot_be_answered_ends_without_an_answer() {
    for provider in Provider::ALL {
        for served in [
            Served::whole(400, "application/json", &[], "{\"error\": {\"message\": \"no\"}}"),
            Served::whole(401, "text/html", &[], "<html>no</html>"),
        ] {
            let server = Server::with(vec![served]);
            RUNTIME.block_on(async {
                let (runtime, driver) = driver(provider, &server).await;
                let ended = driver.start("How is the weather?").await;
                assert!(ended.is_err() || ended.unwrap().answer().is_err(), "{provider}");
                let session = driver.session().id();
                let view = runtime.view(session).await.unwrap();
                assert!(said(&view).iter().all(|(role, _)| *role != Role::Assistant), "{provider}");
                let mut answers = 0;
                for record in runtime.records(session).await.unwrap() {
                    answers += usize::from(matches!(record.body, RecordBody::MessageAppended(_)));
                }
                assert_eq!(answers, 2, "{provider}: the system message and the mission");
            });
            assert_eq!(server.seen().len(), 1, "{provider}: there is no retry");
        }
    }
}
