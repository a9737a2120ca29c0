//! Servers and models that take no images: the session continues with words in their place.

use std::sync::Arc;

use backstitch_core::journal::{Effect, RecordBody};
use backstitch_core::message::{MediaPart, Modality};
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::{Provider, RefusedPart};
use backstitch_runtime::{Agent, Backoff, Mission, Runtime, SessionOptions};
use backstitch_store::MemoryStore;
use serde_json::json;

use super::driven::{agent, calls, says};
use super::{PNG, base64};
use crate::loopback::{RUNTIME, model};
use crate::support::server::{Served, Server};

/// How servers refuse images: format, status and message.
const REFUSALS: [(Provider, u16, &str); 13] = [
    (Provider::OpenAiChat, 400, "Invalid content type. image_url is only supported by certain models."),
    (Provider::OpenAiChat, 400, "this model does not support image input"),
    (Provider::OpenAiChat, 400, "Model does not support images. Please use a model that does."),
    (Provider::OpenAiChat, 500, "image input is not supported - hint: you may need to provide the mmproj"),
    (Provider::OpenAiChat, 422, "messages[3]: unknown variant `image_url`, expected `text` at line 1"),
    (Provider::OpenAiChat, 400, "At most 0 image(s) may be provided in one prompt."),
    (Provider::OpenAiChat, 404, "No endpoints found that support image input"),
    (Provider::OpenAiChat, 400, "('messages.3.content' : value must be a string)"),
    (Provider::OpenAiResponses, 400, "The image data you provided does not represent a valid image."),
    (
        Provider::Anthropic,
        400,
        "messages.2.content.0.tool_result.content.1.image.source: Could not process image",
    ),
    (Provider::Anthropic, 400, "image exceeds 5 MB maximum: 8259148 bytes > 5242880 bytes"),
    (Provider::Anthropic, 400, "At least one of the image dimensions exceed max allowed size: 8000 pixels"),
    (Provider::Gemini, 400, "Image input modality is not enabled for models/gemini-nano"),
];

/// A server that refuses images, and answers other requests first with a call and then with a text.
fn refusing(provider: Provider, status: u16, message: &'static str) -> Server {
    let mut answered = 0;
    Server::answering(move |_, seen| {
        if seen.body.to_string().contains(&base64(PNG)) {
            let error = json!({"error": {"message": message, "type": "invalid_request_error"}});
            return Served::whole(status, "application/json", &[], &error.to_string());
        }
        answered += 1;
        if answered % 2 == 1 { calls(provider) } else { says(provider, "Done.") }
    })
}

#[test]
fn a_session_continues_without_the_images_that_a_server_refuses() {
    for (provider, status, message) in REFUSALS {
        assert_eq!(RefusedPart::of_refusal(message), Some(RefusedPart::Media), "{message}");
        let server = refusing(provider, status, message);
        let agent = || agent(provider, &server, PNG.to_vec()).backoff(Backoff::NEVER);
        let notes = RUNTIME.block_on(async {
            let runtime = Runtime::new(Arc::new(MemoryStore::new()));
            let driver = runtime.create(agent(), SessionOptions::default()).await.unwrap();
            let answer = driver.start("Look.").await.unwrap_or_else(|error| panic!("{message}: {error}"));
            assert_eq!(answer.answer().unwrap().text, "Done.", "{message}");
            let session = driver.session().id();
            driver.session().release().await.unwrap();
            // What was learnt holds in another process.
            let driver = runtime.open(session, agent(), SessionOptions::default()).await.unwrap();
            driver.start("Look again.").await.unwrap().answer().unwrap();
            let mut notes = Vec::new();
            for record in runtime.records(session).await.unwrap() {
                if let RecordBody::Note(note) = record.body {
                    notes.push(note.text.clone());
                }
            }
            notes
        });
        let holds: Vec<_> =
            server.seen().iter().map(|seen| seen.body.to_string().contains(&base64(PNG))).collect();
        assert_eq!(holds, [false, true, false, false, false], "{message}: one request was refused");
        let last = server.seen()[4].body.to_string();
        assert!(last.contains("[image: the cloth, at blob:"), "{message}: {last}");
        assert!(notes.iter().any(|note| note.contains("media of results")), "{message}: {notes:?}");
    }
}

#[test]
fn an_image_of_a_user_is_not_replaced_by_words() {
    for (provider, status, message) in REFUSALS {
        let server = refusing(provider, status, message);
        let agent = agent(provider, &server, Vec::new()).backoff(Backoff::NEVER);
        let error = RUNTIME.block_on(async {
            let runtime = Runtime::new(Arc::new(MemoryStore::new()));
            let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
            let mission = Mission::from("Look.").with_media(MediaPart::held(Modality::Image, PNG));
            driver.start(mission).await.unwrap_err()
        });
        assert_eq!(error.kind(), "invalid_request", "{message}: {error}");
        assert_eq!(server.seen().len(), 1, "{message}: the same request is not sent again");
    }
}

#[test]
fn a_long_conversation_with_images_is_shortened() {
    const TURNS: usize = 7;
    let provider = Provider::OpenAiChat;
    let server = Server::answering(move |index, _| match index {
        turn if turn < TURNS => calls(provider),
        TURNS => {
            let error = json!({"error": {"message": "prompt is too long", "type": "invalid_request_error"}});
            Served::whole(400, "application/json", &[], &error.to_string())
        }
        _ => says(provider, "Done."),
    });
    let read = Tool::builder("look", "Looks.").unwrap().effect(Effect::Pure).workspace(WorkspaceUse::None);
    let read = read.handler(|_, (): ()| async {
        // The bytes of an image are many more than its tokens.
        let image = MediaPart::held(Modality::Image, [PNG, &[0; 200_000]].concat());
        Ok(ToolResult::ok("a long seam ".repeat(800)).with_media(image))
    });
    let agent = Agent::new("tests/media")
        .policy(model(provider, server.address()))
        .tools([read])
        .backoff(Backoff::NEVER);
    RUNTIME.block_on(async {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        let answer = driver.start("Look.").await.unwrap().answer().unwrap();
        assert_eq!(answer.text, "Done.");
    });
    let seams: Vec<_> =
        server.seen().iter().map(|seen| seen.body.to_string().matches("seam").count()).collect();
    assert_eq!(seams.len(), TURNS + 2);
    assert!(seams[TURNS + 1] <= seams[TURNS] * 6 / 10, "{seams:?}");
}
