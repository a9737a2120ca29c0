//! Media of answers: parsed, and sent back to the model that made it or described to others.

use backstitch_core::message::{Arguments, Modality, Part};
use backstitch_core::ports::PolicyAnswer;
use backstitch_providers::{Departure, Provider, parse};
use serde_json::{Value, json};

use super::{FILES, PAINTERS, PNG, base64, drawn, holding, image, media};
use crate::support::{Talk, target};

fn answer(provider: Provider, body: &Value) -> PolicyAnswer {
    parse(&body.to_string(), &target(provider)).unwrap()
}

/// A conversation that continues after an answer.
fn continued(answer: &PolicyAnswer) -> Talk {
    Talk::new().user("Draw a seam.").answer(answer.clone()).user("Larger.")
}

#[test]
fn media_of_answers_is_kept_in_its_place() {
    for provider in PAINTERS {
        for bytes in FILES {
            let answer = answer(provider, &drawn(provider, bytes));
            let (media, object) = media(bytes);
            assert_eq!(answer.parts, [Part::text("Here it is."), media.into()], "{provider}");
            assert_eq!(answer.objects, [object], "{provider}");
        }
    }
    let parts = json!([
        {"text": "A plan.", "thought": true},
        {"inlineData": {"mimeType": "image/png", "data": base64(b"a sketch")}, "thought": true},
        image(Provider::Gemini, PNG),
        {"text": "One. "},
        {"text": "Two."},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/film"}},
    ]);
    let body = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    let answer = answer(Provider::Gemini, &body);
    let kinds: Vec<_> = answer.parts.iter().map(|part| part.as_media().map(|media| media.modality)).collect();
    assert_eq!(kinds, [Some(Modality::Image), None, Some(Modality::Video)]);
    assert_eq!(answer.parts[1], Part::text("One. Two."));
    assert_eq!(answer.objects.len(), 1, "media at an address has no bytes, and thoughts are not an answer");
}

/// Where the model that made an image finds it in the next request.
fn shown(provider: Provider, body: &Value) -> Value {
    match provider {
        Provider::OpenAiChat => {
            let messages = body["messages"].as_array().unwrap();
            let [.., said, asked] = &messages[..] else { panic!("{body}") };
            assert_eq!(said["content"], "Here it is.");
            assert!(said.get("images").is_none(), "answers cannot hold images");
            let texts = asked["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
            assert_eq!(texts.collect::<Vec<_>>(), ["Media 1:", "Larger."]);
            asked["content"][1].clone()
        }
        Provider::OpenAiResponses => {
            let item = &body["input"][2];
            let mut fields: Vec<_> = item.as_object().unwrap().keys().map(String::as_str).collect();
            fields.sort_unstable();
            assert_eq!(fields, ["id", "result", "status", "type"]);
            item.clone()
        }
        _ => {
            let part = body["contents"][1]["parts"].as_array().unwrap().last().unwrap();
            assert_eq!(*part, image(provider, PNG), "with its signature");
            part.clone()
        }
    }
}

#[test]
fn a_model_gets_its_image_back_and_others_get_words() {
    for maker in PAINTERS {
        let answer = answer(maker, &drawn(maker, PNG));
        let words = answer.parts[1].as_media().unwrap().in_words();
        for provider in Provider::ALL {
            let rendered = continued(&answer).render(provider, &holding(&answer.objects));
            let text = rendered.body.to_string();
            let data = base64(PNG);
            if provider == maker {
                assert!(shown(provider, &rendered.body).to_string().contains(&data), "{maker}: {text}");
                assert!(!text.contains(&words), "{maker}: {text}");
                assert_eq!((rendered.report.media, rendered.report.media_bytes), (1, data.len()), "{maker}");
            } else {
                assert!(text.contains(&words) && !text.contains(&data), "{maker} to {provider}: {text}");
                let departures = &rendered.report.departures;
                assert!(matches!(departures[1], Departure::Described { .. }), "{departures:?}");
            }
        }
    }
}

#[test]
fn an_answer_of_an_image_alone_can_be_continued_by_all() {
    let of_list = json!({"role": "assistant", "content": [image(Provider::OpenAiChat, PNG)]});
    let beside = json!({"role": "assistant", "content": "", "images": [image(Provider::OpenAiChat, PNG)]});
    let chat = |message: &Value| json!({"choices": [{"finish_reason": "stop", "message": message}]});
    let responses = json!({"status": "completed", "output": [image(Provider::OpenAiResponses, PNG)]});
    let gemini = json!({"candidates": [{"content": {"parts": [image(Provider::Gemini, PNG)]}, "finishReason": "STOP"}]});
    for (maker, body) in [
        (Provider::OpenAiChat, chat(&of_list)),
        (Provider::OpenAiChat, chat(&beside)),
        (Provider::OpenAiResponses, responses),
        (Provider::Gemini, gemini),
    ] {
        let answer = answer(maker, &body);
        assert!(matches!(&answer.parts[..], [Part::Media(_)]), "{maker}: {:?}", answer.parts);
        for provider in Provider::ALL {
            let rendered = continued(&answer).render(provider, &holding(&answer.objects));
            let holds = rendered.body.to_string().contains(&base64(PNG));
            assert_eq!(holds, provider == maker, "{maker} to {provider}: {}", rendered.body);
        }
    }
}

#[test]
fn an_image_beside_calls_is_shown_after_their_results() {
    let call = json!({"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": "", "images": [image(Provider::OpenAiChat, PNG)], "tool_calls": [call]});
    let body = json!({"choices": [{"finish_reason": "tool_calls", "message": message}]});
    let answer = answer(Provider::OpenAiChat, &body);
    let (seen, object) = media(FILES[2]);
    let talk = Talk::new().user("Draw").answer(answer.clone()).result_with(json!(null), vec![seen.into()]);
    let body = talk.render(Provider::OpenAiChat, &holding(answer.objects.iter().chain([&object]))).body;
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|said| said["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    let last = body["messages"][3].to_string();
    let [own, seen] = [PNG, FILES[2]].map(|bytes| last.find(&base64(bytes)).unwrap());
    assert!(own < seen, "{last}");
}

#[test]
fn spoken_words_are_kept_with_their_text() {
    let audio = json!({"id": "audio_1", "expires_at": 1, "data": base64(b"RIFF\x04\0\0\0WAVE la"), "transcript": "La la."});
    let message = json!({"role": "assistant", "content": null, "audio": audio});
    let body = json!({"choices": [{"finish_reason": "stop", "message": message}]});
    let answer = answer(Provider::OpenAiChat, &body);
    let [Part::Text(_), Part::Media(media)] = &answer.parts[..] else { panic!("{:?}", answer.parts) };
    assert_eq!(answer.parts[0], Part::text("La la."));
    assert_eq!((media.modality, media.mime.as_deref()), (Modality::Audio, Some("audio/wav")));
    for provider in Provider::ALL {
        let text = continued(&answer).render(provider, &holding(&answer.objects)).body.to_string();
        assert!(text.contains("La la.") && text.contains("Larger."), "{provider}: {text}");
    }
}

#[test]
fn answers_that_older_versions_described_are_sent_back_as_they_were_received() {
    // The text is what versions before media was kept have recorded.
    let mut old = answer(Provider::Gemini, &drawn(Provider::Gemini, PNG));
    let bytes = PNG.len();
    old.parts = vec![Part::text(format!("Here it is.[media: image/png, {bytes} bytes]"))];
    old.objects.clear();
    for provider in Provider::ALL {
        let text = continued(&old).render(provider, &holding([])).body.to_string();
        let holds = text.contains(&base64(PNG));
        assert_eq!(holds, provider == Provider::Gemini, "{provider}: {text}");
        assert_eq!(text.contains("[media: image/png"), provider != Provider::Gemini, "{provider}: {text}");
    }
}

#[test]
fn media_that_is_lost_is_described_to_the_model_that_made_it() {
    // Where the payload cannot be replayed, as after a redaction.
    let mut answer = answer(Provider::Gemini, &drawn(Provider::Gemini, PNG));
    let sidecar = answer.provider.as_mut().unwrap();
    (sidecar.payload, sidecar.payload_redacted) = (None, true);
    let words = answer.parts[1].as_media().unwrap().in_words();
    let text = continued(&answer).render(Provider::Gemini, &holding([])).body.to_string();
    assert!(text.contains(&words), "{text}");
    // An answer of calls and media.
    let (media, object) = media(PNG);
    let made = PolicyAnswer::text("Both.").with_media((media, object)).call("look", Arguments::none());
    for provider in Provider::ALL {
        Talk::new().user("Draw").answer(made.clone()).render(provider, &holding(&made.objects));
    }
}
