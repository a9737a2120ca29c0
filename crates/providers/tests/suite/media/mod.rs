//! Media of results and of answers: each provider gets it where it takes it, and words stand in where it does not.

mod answers;
#[cfg(feature = "http")]
mod driven;
mod mixed;
#[cfg(feature = "http")]
mod refused;
mod results;

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::message::{MediaPart, MediaType};
use backstitch_core::object::{Object, ObjectId};
use backstitch_providers::{Provider, RequestOptions};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

#[cfg(feature = "http")]
use super::support::wire::stream_of;

/// The beginnings of files of every type that all providers accept.
pub(crate) const FILES: [&[u8]; 5] = [
    b"\x89PNG\r\n\x1a\n a picture",
    b"\xff\xd8\xff\xe0 a picture",
    b"GIF89a a picture",
    b"RIFF\x04\0\0\0WEBP a picture",
    b"%PDF-1.7 a document",
];

pub(crate) const PNG: &[u8] = FILES[0];

/// The providers whose models answer with images.
pub(crate) const PAINTERS: [Provider; 3] =
    [Provider::OpenAiChat, Provider::OpenAiResponses, Provider::Gemini];

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Media with these bytes, as a tool or a model gives it.
fn media(bytes: &[u8]) -> (MediaPart, Object) {
    let kind = MediaType::of_bytes(bytes).unwrap();
    let (media, object) = MediaPart::held(kind.modality, bytes);
    (media.with_mime(kind.mime), object)
}

/// Options with the bytes of these objects.
fn holding<'a>(objects: impl IntoIterator<Item = &'a Object>) -> RequestOptions {
    let held: HashMap<ObjectId, Arc<[u8]>> =
        objects.into_iter().map(|object| (object.id(), object.bytes().clone())).collect();
    let bytes = move |media: &MediaPart| held.get(&media.url.object_id()?).cloned();
    RequestOptions { bytes: Some(Arc::new(bytes)), ..RequestOptions::default() }
}

/// The image in the form of a painter's answer.
fn image(provider: Provider, bytes: &[u8]) -> Value {
    let data = base64(bytes);
    match provider {
        Provider::OpenAiChat => {
            json!({"type": "image_url", "index": 0, "image_url": {"url": format!("data:image/png;base64,{data}")}})
        }
        Provider::OpenAiResponses => json!({
            "type": "image_generation_call", "id": "ig_1", "status": "completed", "result": data,
            "revised_prompt": "A seam.", "size": "1024x1024", "output_format": "png",
        }),
        _ => json!({"inlineData": {"mimeType": "image/png", "data": data}, "thoughtSignature": "RXFR"}),
    }
}

/// An answer of a text and an image, without streaming.
pub(crate) fn drawn(provider: Provider, bytes: &[u8]) -> Value {
    let image = image(provider, bytes);
    match provider {
        Provider::OpenAiChat => {
            let message = json!({"role": "assistant", "content": "Here it is.", "images": [image]});
            json!({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
        }
        Provider::OpenAiResponses => {
            let text = json!({"type": "output_text", "text": "Here it is.", "annotations": []});
            let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]});
            json!({"id": "resp_1", "status": "completed", "error": null, "output": [message, image]})
        }
        _ => {
            let parts = json!([{"text": "Here "}, {"text": "it is."}, image]);
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
        }
    }
}

/// The same answer, streamed.
#[cfg(feature = "http")]
pub(crate) fn streamed(provider: Provider, bytes: &[u8]) -> String {
    let image = image(provider, bytes);
    let whole = drawn(provider, bytes);
    let events = match provider {
        Provider::OpenAiChat => {
            let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
            vec![
                chunk(json!({"role": "assistant", "content": "Here "})),
                chunk(json!({"content": "it is."})),
                chunk(json!({"content": "", "images": [image]})),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
                json!("[DONE]"),
            ]
        }
        Provider::OpenAiResponses => vec![
            json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Here it is."}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]}),
            json!({"type": "response.image_generation_call.partial_image", "output_index": 1, "partial_image_b64": "AAAA"}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": image}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
        ],
        _ => {
            let part = |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
            vec![
                part(json!({"text": "Here "})),
                part(json!({"text": "it is."})),
                part(image),
                json!({"candidates": [{"finishReason": "STOP"}]}),
            ]
        }
    };
    stream_of(&events)
}
