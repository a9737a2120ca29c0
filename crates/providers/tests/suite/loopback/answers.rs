//! Answers over HTTP, in all ways in which they arrive.

use backstitch_core::message::Part;
use backstitch_core::ports::PolicyAnswer;
use backstitch_providers::Provider;
use serde_json::{Value, json};

use super::{ask, fails, model, streamed, whole, words};
use crate::support::server::{Served, Server};
use crate::support::wire::{Spoken, stream_of};

const TEXT: &str = "Der naïve Faden 糸 hält 🧵.";

fn spoken() -> Spoken {
    let spoken = Spoken::text(TEXT).thinking("Zwei Nähte 🪡.");
    spoken.call("call_a", "look", "{\"at\":\"left — 左\"}").call("call_b", "look", "{}")
}

#[track_caller]
fn is_spoken(answer: &PolicyAnswer, what: &str) {
    assert_eq!(answer.parts, [Part::text(TEXT)], "{what}");
    let [first, second] = answer.calls.as_slice() else { panic!("{what}: two calls") };
    assert_eq!(first.arguments.object(), json!({"at": "left — 左"}).as_object(), "{what}");
    assert_eq!(first.provider_call_id.as_deref(), Some("call_a"), "{what}");
    assert_eq!(second.arguments.object().map(serde_json::Map::len), Some(0), "{what}");
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (12, 6), "{what}");
    assert!(answer.provider.as_ref().unwrap().payload.is_some(), "{what}");
}

#[test]
fn pieces_may_be_cut_anywhere() {
    for provider in Provider::ALL {
        let text = spoken().streamed(provider);
        // One byte splits characters, `data:`, and CR from LF.
        for piece in [1, 2, 3, 7, 64 * 1024] {
            for text in [text.clone(), text.replace('\n', "\r\n")] {
                let (answer, heard) = streamed(provider, Served::stream(&text, piece));
                is_spoken(&answer.unwrap(), &format!("{provider} in pieces of {piece}"));
                assert_eq!(words(&heard), TEXT, "{provider}");
            }
        }
    }
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    for provider in Provider::ALL {
        let served = Served::json(&spoken().whole(provider));
        let (answer, heard) = streamed(provider, served.clone());
        is_spoken(&answer.unwrap(), "it was asked to stream");
        assert!(heard.is_empty());
        is_spoken(&whole(provider, served).unwrap(), "it was asked for a whole");
    }
}

#[test]
fn an_answer_is_read_under_any_content_type() {
    let kinds = [
        "text/event-stream",
        "text/plain",
        "application/json",
        "application/octet-stream",
        "application/x-ndjson",
        "x",
    ];
    for provider in Provider::ALL {
        let bodies = [
            ("a stream", spoken().streamed(provider)),
            ("a stream after a mark and a line", format!("\u{feff}\n{}", spoken().streamed(provider))),
            ("an answer in one piece", spoken().whole(provider).to_string()),
            ("an answer after lines", format!("\n \n{}", spoken().whole(provider))),
        ];
        for (what, body) in bodies {
            let served = kinds.iter().map(|kind| Served::whole(200, kind, &[], &body));
            for served in served.chain([Served::unnamed(&body)]) {
                is_spoken(&streamed(provider, served.clone()).0.unwrap(), &format!("{provider}: {what}"));
                is_spoken(&whole(provider, served).unwrap(), &format!("{provider}: {what}"));
            }
        }
    }
}

#[test]
fn what_is_not_known_is_passed_over_and_kept() {
    for provider in Provider::ALL {
        let mut events = spoken().events(provider);
        for event in &mut events {
            if event.is_object() {
                event["from_a_later_version"] = json!({"x": [1]});
            }
        }
        let news = match provider {
            Provider::Gemini => {
                json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"hologram": {"x": 1}}]}}]})
            }
            _ => json!({"type": "news", "choices": [{"index": 0, "delta": {"hologram": 1}}]}),
        };
        events.insert(1, news);
        let (answer, _) = streamed(provider, Served::stream(&stream_of(&events), 11));
        is_spoken(&answer.unwrap(), &format!("{provider}: unknown events"));

        let mut body = spoken().whole(provider);
        body["from_a_later_version"] = json!({"x": [1]});
        let hologram = json!({"type": "hologram", "hologram": {"x": 1}});
        let list = match provider {
            Provider::OpenAiChat => {
                body["choices"][0]["message"]["hologram"] = hologram.clone();
                None
            }
            Provider::OpenAiResponses => body["output"].as_array_mut(),
            Provider::Anthropic => body["content"].as_array_mut(),
            Provider::Gemini => body["candidates"][0]["content"]["parts"].as_array_mut(),
        };
        if let Some(list) = list {
            list.insert(1, hologram);
        }
        let answer = whole(provider, Served::json(&body)).unwrap();
        is_spoken(&answer, &format!("{provider}: unknown parts"));
        assert!(
            answer.provider.unwrap().payload.unwrap().inline().unwrap().contains("hologram"),
            "{provider}: it is kept"
        );
    }
}

#[test]
fn there_may_be_many_calls() {
    for provider in Provider::ALL {
        let mut spoken = Spoken::default();
        for index in 0..40 {
            spoken = spoken.call(&format!("call_{index}"), "look", &format!("{{\"at\":{index}}}"));
        }
        for answer in [
            streamed(provider, Served::stream(&spoken.streamed(provider), 100)).0.unwrap(),
            whole(provider, Served::json(&spoken.whole(provider))).unwrap(),
        ] {
            assert!(answer.parts.is_empty(), "{provider}");
            let places = answer.calls.iter().map(|call| call.arguments.object().unwrap()["at"].as_u64());
            assert!(places.eq((0..40).map(Some)), "{provider}: all of them, in order");
        }
    }
}

#[test]
fn an_empty_answer_is_an_answer() {
    for provider in Provider::ALL {
        let nothing = Spoken::default();
        for answer in [
            streamed(provider, Served::stream(&nothing.streamed(provider), 9)).0.unwrap(),
            whole(provider, Served::json(&nothing.whole(provider))).unwrap(),
        ] {
            assert!(answer.parts.is_empty() && answer.calls.is_empty(), "{provider}");
            assert_eq!(answer.usage.output_tokens, 6, "{provider}: it was paid for");
        }
    }
}

#[test]
fn huge_answers_are_taken_up_to_a_limit() {
    let text = "naïve 糸 🧵 ".repeat(200_000);
    for provider in Provider::ALL {
        let spoken = Spoken::text(&text);
        let (answer, heard) = streamed(provider, Served::stream(&spoken.streamed(provider), 64 * 1024));
        assert_eq!(answer.unwrap().parts, [Part::text(text.as_str())], "{provider}");
        assert_eq!(words(&heard).len(), text.len(), "{provider}");

        for served in
            [Served::stream(&spoken.streamed(provider), 64 * 1024), Served::json(&spoken.whole(provider))]
        {
            let server = Server::with(vec![served]);
            let (answer, _) = ask(&model(provider, server.address()).with_answer_limit(1_000_000));
            let error = fails(answer, "malformed", true, "an answer above the limit");
            assert!(error.message.contains("more than 1000000 bytes"), "{error}");
        }
    }
}

#[test]
fn one_huge_event_without_an_end_is_bounded_too() {
    let endless = format!("data: {}", "x".repeat(3_000_000));
    for provider in Provider::ALL {
        let server = Server::with(vec![Served::open_stream(&endless, 64 * 1024)]);
        let (answer, _) = ask(&model(provider, server.address()).with_answer_limit(1_000_000));
        fails(answer, "malformed", true, "an endless event");
    }
}

#[test]
fn arguments_that_do_not_parse_arrive_as_they_are() {
    for provider in [Provider::OpenAiChat, Provider::OpenAiResponses, Provider::Anthropic] {
        let spoken = Spoken::default().call("call_a", "look", "{\"at\": ");
        let (answer, _) = streamed(provider, Served::stream(&spoken.streamed(provider), 5));
        let call = answer.unwrap().calls.remove(0);
        assert!(!call.arguments.is_parsable(), "{provider}");
        assert_eq!(call.arguments.text(), "{\"at\": ", "{provider}");
    }
}

#[test]
fn what_is_sent_is_valid_json_at_the_right_place() {
    for provider in Provider::ALL {
        let server = Server::with(vec![Served::stream(&spoken().streamed(provider), 99)]);
        ask(&model(provider, server.address())).0.unwrap();
        let seen = &server.seen()[0];
        let place = match provider {
            Provider::OpenAiChat => "post /chat/completions ",
            Provider::OpenAiResponses => "post /responses ",
            Provider::Anthropic => "post /v1/messages ",
            Provider::Gemini => "post /v1beta/models/model-1:streamgeneratecontent?alt=sse ",
        };
        assert!(seen.head.starts_with(place), "{}", seen.head);
        backstitch_providers::validate::validate(provider, &seen.body).unwrap();
        let key_header = match provider {
            Provider::OpenAiChat | Provider::OpenAiResponses => "authorization: bearer sk-",
            Provider::Anthropic => "x-api-key: sk-",
            Provider::Gemini => "x-goog-api-key: sk-",
        };
        assert!(seen.head.contains(key_header), "{}", seen.head);
        assert!(!Value::to_string(&seen.body).contains("hunter2"));
    }
}
