//! Sessions with media over HTTP: a tool shows an image, the model draws one, and another process continues.

use std::path::Path;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::Effect;
use backstitch_core::message::{MediaPart, Modality};
use backstitch_core::object::INLINE_LIMIT;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::Provider;
use backstitch_runtime::{Agent, FinalAnswer, Runtime, SessionOptions};
use backstitch_store::SqliteStore;

use super::{FILES, PAINTERS, PNG, base64, streamed};
use crate::loopback::{RUNTIME, model};
use crate::support::server::{Served, Server};
use crate::support::wire::Spoken;

/// A tool that returns an image with these bytes.
pub(super) fn look(bytes: Vec<u8>) -> Tool {
    let look = Tool::builder("look", "Looks at the cloth.").unwrap();
    look.effect(Effect::Pure).workspace(WorkspaceUse::None).handler(move |_, (): ()| {
        let (media, object) = MediaPart::held(Modality::Image, bytes.clone());
        async move { Ok(ToolResult::default().with_media((media.with_hint("the cloth"), object))) }
    })
}

pub(super) fn agent(provider: Provider, server: &Server, bytes: Vec<u8>) -> Agent {
    let model = model(provider, server.address());
    Agent::new("tests/media").policy(model).instructions("You sew.").tools([look(bytes)])
}

pub(super) fn calls(provider: Provider) -> Served {
    Served::stream(&Spoken::text("I look.").call("call_a", "look", "{}").streamed(provider), 4_000)
}

pub(super) fn says(provider: Provider, text: &str) -> Served {
    Served::stream(&Spoken::text(text).streamed(provider), 4_000)
}

/// Bytes that are too large for a record.
fn large(beginning: &[u8], filling: u8) -> Vec<u8> {
    let mut bytes = beginning.to_vec();
    bytes.resize(INLINE_LIMIT * 2, filling);
    bytes
}

/// Starts a session, or asks the next question of an existing one, in a runtime of its own. Returns the bytes of the
/// answer's media too.
async fn asked(
    store: &Path,
    agent: Agent,
    session: Option<SessionId>,
) -> (SessionId, FinalAnswer, Vec<Vec<u8>>) {
    let runtime = Runtime::new(Arc::new(SqliteStore::open(store).unwrap()));
    let driver = match session {
        None => runtime.create(agent, SessionOptions::default()).await.unwrap(),
        Some(session) => runtime.open(session, agent, SessionOptions::default()).await.unwrap(),
    };
    let answer = driver.start("Draw what you see.").await.unwrap().answer().unwrap();
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let mut bytes = Vec::new();
    for media in &answer.media {
        bytes.push(runtime.media(media).await.unwrap().unwrap().to_vec());
    }
    (session, answer, bytes)
}

#[test]
fn images_of_tools_and_models_survive_a_resume() {
    for provider in Provider::ALL {
        let (seen, drawn) = (large(PNG, 1), large(FILES[1], 2));
        let paints = PAINTERS.contains(&provider);
        let image = paints.then(|| streamed(provider, &drawn));
        let server = Server::answering(move |index, _| match (index, &image) {
            (0, _) => calls(provider),
            (1, Some(image)) => Served::stream(image, 4_000),
            _ => says(provider, "Here it is."),
        });
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store.db");
        RUNTIME.block_on(async {
            let (session, answer, media) = asked(&store, agent(provider, &server, seen.clone()), None).await;
            assert_eq!(answer.text, "Here it is.", "{provider}");
            let expected = if paints { vec![drawn.clone()] } else { Vec::new() };
            assert_eq!(media, expected, "{provider}: the image is stored");
            // Another process has nothing but the store.
            let (_, answer, media) = asked(&store, agent(provider, &server, Vec::new()), Some(session)).await;
            assert_eq!((answer.text.as_str(), media.len()), ("Here it is.", 0), "{provider}");
        });
        // The strict server has accepted all of them.
        let bodies: Vec<_> = server.seen().iter().map(|seen| seen.body.to_string()).collect();
        assert_eq!(bodies.len(), 3, "{provider}");
        assert!(!bodies[0].contains(&base64(&seen)));
        for body in &bodies[1..] {
            assert!(body.contains(&base64(&seen)) && body.contains("Media 1: the cloth"), "{provider}");
        }
        assert_eq!(bodies[2].contains(&base64(&drawn)), paints, "{provider}: the model sees its image");
    }
}

#[test]
fn an_answer_of_an_image_alone_has_a_name() {
    let provider = Provider::Gemini;
    let body = serde_json::json!({"candidates": [{
        "content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": base64(PNG)}}]},
        "finishReason": "STOP",
    }]});
    let server = Server::answering(move |_, _| Served::json(&body));
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store.db");
    RUNTIME.block_on(async {
        let (_, answer, media) = asked(&store, agent(provider, &server, Vec::new()), None).await;
        assert_eq!(media, [PNG]);
        assert_eq!(answer.text, answer.media[0].in_words());
    });
}
