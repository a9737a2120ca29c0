//! Awkward sample journals: answers of every provider, illegal ids and names, media of every kind.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{InnerMessage, Record, RecordBody, Role};
use backstitch_core::message::{Content, Large, MediaPart, MediaUrl, Modality, Part};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::rng::{Rng, Seed};
use backstitch_core::view::Transcript;
use backstitch_providers::Provider;
use backstitch_testkit::sample;
use serde_json::{Value, json};

use super::MODEL;

/// A journal with the content of its objects.
pub(crate) struct Sampled {
    pub(crate) records: Vec<Record>,
    objects: HashMap<ObjectId, Arc<[u8]>>,
    /// The bytes of media: real images and documents, which the objects of samples are not.
    pub(crate) media: Arc<HashMap<ObjectId, Arc<[u8]>>>,
}

impl Sampled {
    /// A sample journal in which everything is as awkward as possible. With `any_media` there is also media
    /// that not every provider accepts.
    pub(crate) fn of(journal: &sample::Journal, seed: u64, any_media: bool) -> Self {
        let objects: HashMap<_, _> =
            journal.objects().map(|object| (object.id(), object.bytes().clone())).collect();
        let document = Object::blob(*b"%PDF-1.7 a pattern");
        let picture: Arc<[u8]> = Arc::from(*b"\x89PNG\r\n\x1a\n");
        let mut media: HashMap<_, _> = objects.keys().map(|id| (*id, picture.clone())).collect();
        media.insert(document.id(), document.bytes().clone());

        let mut rng = Seed::new(seed).rng();
        let mut records = journal.records();
        let mut names: HashMap<CallId, String> = HashMap::new();
        for record in &mut records {
            let RecordBody::MessageAppended(message) = &mut record.body else { continue };
            let mut made = InnerMessage::clone(message);
            let role = made.role();
            match &mut made.message.content {
                Content::OptionCall(call) => {
                    call.option_name = awkward_name(&mut rng, &call.option_name);
                    call.provider_call_id = awkward_id(&mut rng, call.provider_call_id.take());
                    names.insert(call.invocation_id, call.option_name.clone());
                }
                Content::OptionResult(result) => {
                    if let Some(name) = names.get(&result.invocation_id) {
                        result.option_name = name.as_str().into();
                    }
                    // Long enough that eliding it saves something.
                    if !result.is_error && result.result.inline().is_some() && rng.below(2) == 0 {
                        result.result = Large::Inline(Value::from("a long seam ".repeat(60)));
                    }
                }
                Content::Parts(content) if role == Role::User && rng.below(3) == 0 => {
                    content.parts.push(Part::Media(some_media(&mut rng, document.id(), any_media)));
                }
                Content::Parts(_) => {}
            }
            *message = Arc::new(made);
        }
        with_payloads(&mut records, &mut rng);
        Self { records, objects, media: Arc::new(media) }
    }

    /// A transcript with all of its content.
    pub(crate) fn hydrated(&self, transcript: &Transcript) -> Transcript {
        let whole = transcript.all().iter().map(|message| {
            let mut message = InnerMessage::clone(message);
            message.hydrate(|reference| self.objects.get(&reference.object).cloned()).unwrap();
            message
        });
        Transcript::new(whole.collect())
    }
}

fn awkward_name(rng: &mut Rng, name: &str) -> String {
    match rng.below(16) {
        0 => "shell me!".to_owned(),
        1 => "9lives".to_owned(),
        2 => "糸".repeat(90),
        3 => String::new(),
        _ => name.to_owned(),
    }
}

fn awkward_id(rng: &mut Rng, id: Option<String>) -> Option<String> {
    match rng.below(12) {
        0 => None,
        1 => Some("call_again".to_owned()),
        2 => Some("call:ü/1".to_owned()),
        3 => Some("x".repeat(100)),
        4 => Some(String::new()),
        _ => id,
    }
}

fn some_media(rng: &mut Rng, document: ObjectId, any_media: bool) -> MediaPart {
    let web = |text: &str| MediaUrl::new(text).unwrap();
    match rng.below(if any_media { 6 } else { 2 }) {
        0 => MediaPart::new(Modality::Image, web("https://example.org/seam.webp")),
        1 => MediaPart::new(Modality::Document, MediaUrl::blob(document)),
        2 => MediaPart::new(Modality::Document, web("https://example.org/pattern.pdf")),
        3 => MediaPart::new(Modality::Audio, web("https://example.org/hum.mp3")),
        4 => MediaPart::new(Modality::Video, web("https://example.org/sewing")),
        _ => MediaPart::new(Modality::Audio, MediaUrl::blob(document)),
    }
}

/// Turns each answer of a journal into an answer of one of the providers.
fn with_payloads(records: &mut [Record], rng: &mut Rng) {
    for index in 0..records.len() {
        let RecordBody::MessageAppended(head) = &records[index].body else { continue };
        if head.provider.is_none() {
            continue;
        }
        let head = head.clone();
        let run = records[index..].iter().map_while(|record| match &record.body {
            RecordBody::MessageAppended(message)
                if message.turn == head.turn && message.role() == Role::Assistant =>
            {
                Some(message.clone())
            }
            _ => None,
        });
        let answer: Vec<_> = run.collect();
        let provider = Provider::ALL[rng.below(4) as usize];
        let mut made = InnerMessage::clone(&head);
        if let Some(sidecar) = &mut made.provider {
            sidecar.provider = provider.to_string();
            sidecar.model = if rng.below(5) == 0 { "another".into() } else { MODEL.into() };
            sidecar.endpoint = (rng.below(8) == 0).then(|| "http://elsewhere.example/v1".to_owned());
            // Some answers ended in thoughts, and some payloads have an unknown form.
            sidecar.payload = match rng.below(12) {
                0 => Some("{\"torn\": ".into()),
                1 => {
                    Some(json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]).to_string().into())
                }
                _ => Some(payload(provider, &answer).to_string().into()),
            };
        }
        records[index].body = RecordBody::MessageAppended(Arc::new(made));
    }
}

/// The raw payload that a provider would have sent for these messages.
fn payload(provider: Provider, answer: &[Arc<InnerMessage>]) -> Value {
    let text = answer.iter().map(|message| message.message.text().into_owned()).collect::<String>();
    let calls = answer.iter().filter_map(|message| message.message.option_call());
    let calls = calls.map(|call| {
        let id = call.provider_call_id.clone().unwrap_or_default();
        let object = call.arguments.object().cloned().unwrap_or_default();
        (id, call.option_name.clone(), call.arguments.text().into_owned(), object)
    });
    match provider {
        Provider::OpenAiChat => {
            let calls: Vec<Value> = calls
                .map(|(id, name, text, _)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": text}}))
                .collect();
            json!({"role": "assistant", "content": text, "tool_calls": calls, "reasoning_content": "hm"})
        }
        Provider::OpenAiResponses => {
            let mut items =
                vec![json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "hm"})];
            if !text.is_empty() {
                // Compatible servers leave out fields of the published form.
                let mut message = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
                if text.len().is_multiple_of(2) {
                    message["id"] = "msg_1".into();
                    message["status"] = "completed".into();
                    message["content"][0]["annotations"] = json!([]);
                }
                items.push(message);
            }
            items.extend(calls.map(|(id, name, text, _)| json!({"type": "function_call", "call_id": id, "name": name, "arguments": text})));
            items.into()
        }
        Provider::Anthropic => {
            let mut blocks = vec![
                json!({"type": "thinking", "thinking": "hm", "signature": "signed"}),
                json!({"type": "redacted_thinking", "data": "EmwK"}),
                json!({"type": "text", "text": text}),
            ];
            blocks.extend(calls.map(
                |(id, name, _, object)| json!({"type": "tool_use", "id": id, "name": name, "input": object}),
            ));
            blocks.into()
        }
        Provider::Gemini => {
            let mut parts = vec![json!({"text": "hm", "thought": true}), json!({"text": text})];
            for (index, (id, name, _, object)) in calls.enumerate() {
                let mut part = json!({"functionCall": {"id": id, "name": name, "args": object}});
                if index == 0 {
                    part["thoughtSignature"] = "signed".into();
                }
                parts.push(part);
            }
            parts.into()
        }
    }
}
