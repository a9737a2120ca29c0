//! Media of results in requests.

use std::sync::Arc;

use backstitch_core::message::{Arguments, MediaPart, MediaUrl, Modality, Part, RoleHint};
use backstitch_core::object::Object;
use backstitch_core::ports::{Policy as _, PolicyAnswer};
use backstitch_providers::{
    Departure, ModelPolicy, ModelTarget, Provider, RefusedPart, RenderError, RequestOptions, Thread, render,
};
use serde_json::{Value, json};

use super::{FILES, PNG, base64, holding, media};
use crate::support::{MODEL, Nobody, Talk, target, tools};

/// A conversation whose last result has these parts.
fn looked(parts: Vec<Part>) -> Talk {
    let call = PolicyAnswer::default().call("look", Arguments::none());
    Talk::new().user("Look").answer(call).result_with(json!({"media": "image/png"}), parts)
}

/// The place in a request where its provider takes media of results.
fn place(provider: Provider, body: &Value) -> Value {
    let after = |list: &str, is_result: fn(&Value) -> bool| {
        let items = body[list].as_array().unwrap();
        let result = items.iter().position(is_result).unwrap();
        items[result + 1].clone()
    };
    match provider {
        Provider::OpenAiChat => {
            let next = after("messages", |message| message["role"] == "tool");
            assert_eq!(next["role"], "user");
            next
        }
        Provider::Gemini => {
            let next = after("contents", |content| content["parts"][0].get("functionResponse").is_some());
            assert_eq!(next["role"], "user");
            next
        }
        Provider::OpenAiResponses => {
            let mut items = body["input"].as_array().unwrap().iter();
            items.rfind(|item| item["type"] == "function_call_output").unwrap()["output"].clone()
        }
        Provider::Anthropic => {
            let messages = body["messages"].as_array().unwrap();
            let result = &messages.last().unwrap()["content"][0];
            assert_eq!(result["type"], "tool_result");
            result["content"].clone()
        }
    }
}

#[test]
fn media_of_results_stands_where_each_provider_takes_it() {
    for bytes in FILES {
        let (media, object) = media(bytes);
        let talk = looked(vec![media.clone().with_hint("drawings/seam").into()]);
        for provider in Provider::ALL {
            let rendered = talk.render(provider, &holding([&object]));
            let place = place(provider, &rendered.body).to_string();
            assert!(place.contains(&base64(bytes)), "{provider}: {place}");
            assert!(place.contains(media.mime.as_deref().unwrap()), "{provider}: {place}");
            assert!(place.contains("Media 1: drawings/seam"), "{provider}: {place}");
            assert!(rendered.report.departures.is_empty(), "{provider}: {:?}", rendered.report);
            assert_eq!((rendered.report.media, rendered.report.media_bytes), (1, base64(bytes).len()));
        }
    }
}

#[test]
fn media_that_a_provider_does_not_take_is_described_in_results_and_refused_in_messages() {
    use Provider::{Anthropic, OpenAiChat, OpenAiResponses};
    let at = |modality, address: &str| MediaPart::new(modality, MediaUrl::new(address).unwrap());
    let film = at(Modality::Video, "https://example.org/film.mp4");
    let sound = at(Modality::Audio, "https://example.org/song.ogg");
    let missing = MediaPart::new(Modality::Image, MediaUrl::blob(Object::blob(*b"gone").id()));
    let (large, object) = media(&[PNG, &vec![0; 6 * 1024 * 1024]].concat());
    let rows: [(MediaPart, &[Provider]); 4] = [
        (film, &[OpenAiChat, OpenAiResponses, Anthropic]),
        (sound, &[OpenAiChat, OpenAiResponses, Anthropic]),
        (missing, &Provider::ALL),
        (large, &[Anthropic]),
    ];
    for (media, providers) in rows {
        let media = media.with_hint("the cloth");
        for provider in providers {
            let options = holding([&object]);
            let rendered = looked(vec![media.clone().into()]).render(*provider, &options);
            let place = place(*provider, &rendered.body).to_string();
            assert!(place.contains(&media.in_words()), "{provider}: {place}");
            let described = Departure::Described { url: media.url.to_string() };
            assert_eq!(rendered.report.departures, [described], "{provider}");
            // A user who sends it gets an error.
            let messages = Talk::new().say(RoleHint::User, vec![media.clone().into()]).messages();
            let error = render(&Thread::of(&messages), &tools(), &target(*provider), &options).unwrap_err();
            assert!(matches!(error, RenderError::Media(_)), "{provider}: {error}");
        }
    }
}

#[test]
fn media_of_results_that_a_server_refused_is_described() {
    let (media, object) = media(PNG);
    let talk = looked(vec![media.clone().into(), media.clone().into()]);
    for provider in Provider::ALL {
        let options = RequestOptions { refused: [RefusedPart::Media].into(), ..holding([&object]) };
        let rendered = talk.render(provider, &options);
        let text = rendered.body.to_string();
        assert!(!text.contains(&base64(PNG)) && text.matches(&media.in_words()).count() == 2, "{text}");
        let described = || Departure::Described { url: media.url.to_string() };
        let expected = [Departure::Refused(RefusedPart::Media), described(), described()];
        assert_eq!(rendered.report.departures, expected, "{provider}");
        // Media of users is still sent.
        let said = Talk::new().say(RoleHint::User, vec![media.clone().into()]);
        assert!(said.render(provider, &options).body.to_string().contains(&base64(PNG)), "{provider}");
    }
}

#[test]
fn the_estimate_of_a_request_does_not_count_the_bytes_of_media() {
    let (media, object) = media(&[PNG, &vec![0; 2 * 1024 * 1024]].concat());
    let mut question = looked(vec![media.into()]).question();
    question.media = Arc::new([(object.id(), object.bytes().clone())].into());
    for provider in Provider::ALL {
        let name = backstitch_core::message::PolicyName::new("model").unwrap();
        let policy = ModelPolicy::new(name, ModelTarget::new(provider, MODEL), None, Arc::new(Nobody));
        let described = policy.describe(&question);
        assert!(described.length > 2 * 1024 * 1024, "{provider}: {}", described.length);
        let tokens = described.estimate.input_tokens;
        assert!((1_000..5_000).contains(&tokens), "{provider}: {tokens}");
    }
}
