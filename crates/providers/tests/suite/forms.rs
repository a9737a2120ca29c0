//! The published form of requests: rendered requests have it, and departures from it are refused.

use std::sync::Arc;

use backstitch_core::message::{MediaPart, MediaUrl, Modality, Part, RoleHint};
use backstitch_core::ports::PolicyAnswer;
use backstitch_providers::{CacheMarks, Provider, RequestOptions, ThinkingBudget, parse};
use backstitch_testkit::request_form::check_form;
use serde_json::{Value, json};

use super::support::{Talk, target, whole_answer};

/// A request with everything that is ever sent.
fn rich(provider: Provider, maker: Provider) -> Value {
    let image = || MediaPart::new(Modality::Image, MediaUrl::new("https://example.org/a.png").unwrap());
    let bytes: Arc<[u8]> = Arc::from(*b"%PDF-1.7");
    let document = backstitch_core::object::Object::blob(bytes.clone());
    let document = MediaPart::new(Modality::Document, MediaUrl::blob(document.id()));
    let answer = parse(&whole_answer(maker).to_string(), &target(maker)).unwrap();
    let talk = Talk::new()
        .system("Be brief.")
        .say(RoleHint::User, vec![Part::text("Compare."), image().into(), document.into()])
        .answer(answer)
        .result_with(json!("seen"), vec![image().into()])
        .result(0, Err("upstream timeout"))
        .say(RoleHint::System, vec![Part::text("Hurry.")])
        .answer(PolicyAnswer::text("Nearly."))
        .user("And?");
    let thinking = match provider {
        Provider::Anthropic => ThinkingBudget::Budget(2_000),
        Provider::Gemini => ThinkingBudget::Adaptive,
        _ => ThinkingBudget::Default,
    };
    let schema = json!({"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"], "additionalProperties": false});
    let options = RequestOptions {
        max_output_tokens: Some(9_000),
        thinking,
        effort: Some("low".into()),
        cache: CacheMarks::Auto,
        cache_key: Some("conv-7".into()),
        output_schema: Some(Arc::new(schema)),
        stream: true,
        bytes: Some(Arc::new(move |_| Some(bytes.clone()))),
        ..RequestOptions::default()
    };
    talk.render(provider, &options).body
}

/// Fields that the provider does not check: schemas, arguments, results that are data.
const OPEN: [&str; 8] = [
    "parameters",
    "schema",
    "input_schema",
    "parametersJsonSchema",
    "responseJsonSchema",
    "args",
    "response",
    "annotations",
];

/// The places of all objects with a form.
fn closed_objects(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(place.to_owned());
            for (name, value) in fields {
                // The input of a call of Anthropic is its arguments; the input of Responses is the
                // conversation.
                let is_arguments = name == "input" && value.is_object();
                if !OPEN.contains(&name.as_str()) && !is_arguments {
                    closed_objects(value, &format!("{place}/{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                closed_objects(item, &format!("{place}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_field_that_is_not_known_is_refused_wherever_it_stands() {
    for provider in Provider::ALL {
        let request = rich(provider, provider);
        let mut places = Vec::new();
        closed_objects(&request, "", &mut places);
        assert!(places.len() > 15, "{provider}: {places:?}");
        for place in places {
            let mut odd = request.clone();
            odd.pointer_mut(&place).unwrap()["news"] = 1.into();
            assert!(check_form(provider.as_str(), &odd).is_err(), "{provider}: {place}");
        }
    }
}

#[test]
fn nothing_is_null_and_nothing_has_another_type() {
    for provider in Provider::ALL {
        let request = rich(provider, provider);
        let mut places = Vec::new();
        closed_objects(&request, "", &mut places);
        for place in places {
            let names: Vec<String> =
                request.pointer(&place).unwrap().as_object().unwrap().keys().cloned().collect();
            for name in names {
                for odd_value in [Value::Null, json!([[[]]])] {
                    let mut odd = request.clone();
                    odd.pointer_mut(&place).unwrap()[&name] = odd_value.clone();
                    let refused = check_form(provider.as_str(), &odd);
                    assert!(refused.is_err(), "{provider}: {odd_value} at {place}/{name}");
                }
            }
        }
    }
}

type Change = fn(&mut Value);

#[test]
fn what_goes_together_goes_together() {
    let cases: [(Provider, Change); 10] = [
        (Provider::OpenAiChat, |request| drop(request.as_object_mut().unwrap().remove("stream"))),
        (Provider::OpenAiChat, |request| request["max_tokens"] = 5.into()),
        (Provider::OpenAiChat, |request| {
            drop(request["messages"][0].as_object_mut().unwrap().remove("role"))
        }),
        (Provider::OpenAiResponses, |request| {
            request["input"][0]["content"][0] = json!({"type": "input_image", "detail": "auto"});
        }),
        (Provider::OpenAiResponses, |request| {
            request["input"][0]["content"][0] = json!({"type": "input_file", "file_data": "data:"});
        }),
        (Provider::OpenAiResponses, |request| {
            request["input"][0] = json!({"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}]});
        }),
        (Provider::Anthropic, |request| drop(request.as_object_mut().unwrap().remove("max_tokens"))),
        (Provider::Anthropic, |request| request["temperature"] = 1.into()),
        (Provider::Gemini, |request| {
            request["contents"][0]["parts"][0]["functionCall"] = json!({"name": "x"})
        }),
        (Provider::Gemini, |request| {
            request["generationConfig"]["thinkingConfig"] =
                json!({"thinkingBudget": 1, "thinkingLevel": "LOW"});
        }),
    ];
    for (index, (provider, change)) in cases.into_iter().enumerate() {
        let mut request = rich(provider, provider);
        check_form(provider.as_str(), &request).unwrap();
        change(&mut request);
        assert!(check_form(provider.as_str(), &request).is_err(), "case {index}");
    }
}

/// `Talk::render` checks the form, so rendering is enough.
#[test]
fn every_ordered_pair_of_providers_renders_in_the_published_form() {
    for maker in Provider::ALL {
        for provider in Provider::ALL {
            rich(provider, maker);
            // And back again, after each of them has answered.
            let answer = |maker| parse(&whole_answer(maker).to_string(), &target(maker)).unwrap();
            let mut talk = Talk::new().system("Be brief.").user("Compare.");
            for by in [maker, provider, maker] {
                talk = talk.answer(answer(by)).result(1, Ok(json!("4 C"))).result(0, Err("late"));
                for asked in [maker, provider] {
                    talk.render(asked, &RequestOptions::default());
                }
            }
        }
    }
}
