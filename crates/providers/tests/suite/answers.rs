//! Parsing of complete and streamed answers.

use backstitch_core::budget::Amounts;
use backstitch_core::message::Part;
use backstitch_core::ports::PolicyAnswer;
use backstitch_providers::{Delta, ErrorKind, Provider, ProviderError, SseDecoder, parse, stream_reader};
use serde_json::{Value, json};

use super::support::wire::stream_of;
use super::support::{streamed_answer, target, whole_answer};

pub(crate) fn read_stream(provider: Provider, text: &str) -> Result<(PolicyAnswer, String), ProviderError> {
    let (mut decoder, mut events) = (SseDecoder::new(), Vec::new());
    decoder.feed(text.as_bytes(), &mut events).unwrap();
    let (mut reader, mut deltas) = (stream_reader(&target(provider)), Vec::new());
    for event in &events {
        reader.feed(event, &mut deltas)?;
    }
    let said = deltas.into_iter().filter_map(|delta| match delta {
        Delta::Text(text) => Some(text),
        Delta::Reasoning(_) | Delta::Call(_) => None,
    });
    Ok((reader.finish()?, said.collect()))
}

#[test]
fn calls_arrive_in_pieces_even_if_the_stream_is_cut() {
    let chat = |function: Value| json!({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": function}]}}]});
    let streams = [
        (
            Provider::OpenAiChat,
            vec![
                chat(json!({"name": "get_weather", "arguments": ""})),
                chat(json!({"arguments": "{\"city\":"})),
            ],
        ),
        (
            Provider::OpenAiResponses,
            vec![
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "name": "get_weather"}}),
                json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"city\":"}),
            ],
        ),
        (
            Provider::Anthropic,
            vec![
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "call_a", "name": "get_weather", "input": {}}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"city\":"}}),
            ],
        ),
    ];
    for (provider, events) in streams {
        let (mut decoder, mut decoded) = (SseDecoder::new(), Vec::new());
        decoder.feed(stream_of(&events).as_bytes(), &mut decoded).unwrap();
        let (mut reader, mut deltas) = (stream_reader(&target(provider)), Vec::new());
        for event in &decoded {
            reader.feed(event, &mut deltas).unwrap();
        }
        let calls = deltas.into_iter().map(|delta| match delta {
            Delta::Call(piece) => piece,
            other => panic!("{provider}: {other:?}"),
        });
        assert_eq!(calls.collect::<String>(), "\nget_weather {\"city\":", "{provider}");
        assert!(reader.finish().is_err(), "{provider}");
    }
}

#[test]
fn the_same_answer_of_any_provider_says_the_same() {
    for provider in Provider::ALL {
        let answer = parse(&whole_answer(provider).to_string(), &target(provider)).unwrap();
        assert_eq!(answer.parts, [Part::text("Checking.")], "{provider}");
        let calls: Vec<_> = answer
            .calls
            .iter()
            .map(|call| (call.name.as_str(), call.arguments.text(), call.provider_call_id.as_deref()))
            .collect();
        let expected = [
            ("get_weather", r#"{"city":"Oslo"}"#.into(), Some("call_a")),
            ("get_weather", r#"{"city":"Rome"}"#.into(), Some("call_b")),
        ];
        assert_eq!(calls, expected, "{provider}");
        let Amounts { input_tokens, output_tokens, .. } = answer.usage;
        assert_eq!((input_tokens, output_tokens), (120, 60), "{provider}");
        let sidecar = answer.provider.unwrap();
        assert_eq!((sidecar.provider.as_str(), sidecar.model.as_str()), (provider.as_str(), "model-1"));
        assert!(sidecar.finish_reason.is_some(), "{provider}");
    }
}

#[test]
fn an_answer_in_pieces_is_the_answer_in_one_piece() {
    for provider in Provider::ALL {
        let whole = parse(&whole_answer(provider).to_string(), &target(provider)).unwrap();
        let (streamed, said) = read_stream(provider, &streamed_answer(provider)).unwrap();
        assert_eq!(said, "Checking.", "{provider}");
        assert_eq!(
            (&streamed.parts, &streamed.calls, streamed.usage),
            (&whole.parts, &whole.calls, whole.usage)
        );
        let payload = |answer: &PolicyAnswer| {
            let payload = answer.provider.as_ref().unwrap().payload.clone().unwrap();
            let mut payload: Value = serde_json::from_str(payload.inline().unwrap()).unwrap();
            if let Some(message) = payload.as_object_mut() {
                message.retain(|name, _| !matches!(name.as_str(), "refusal" | "annotations"));
            }
            payload
        };
        assert_eq!(payload(&streamed), payload(&whole), "{provider}");
    }
}

#[test]
fn a_stream_that_ends_early_is_never_an_answer() {
    for provider in Provider::ALL {
        let text = streamed_answer(provider);
        let events: Vec<&str> = text.split_inclusive("\n\n").collect();
        // Chat may omit its end mark after the finish reason, so its last two events may be missing.
        let needed = match provider {
            Provider::OpenAiChat => events.len() - 2,
            _ => events.len(),
        };
        for count in 0..needed {
            let error = read_stream(provider, &events[..count].concat()).unwrap_err();
            assert_eq!(
                (error.kind, error.retryable),
                (ErrorKind::CutStream, true),
                "{provider} after {count}"
            );
        }
    }
}

#[test]
fn payloads_are_kept_byte_for_byte() {
    let body =
        r#"{"content": [ {"type":"text",  "text":"caf\u00e9", "new": 1.50} ], "stop_reason":"end_turn"}"#;
    let answer = parse(body, &target(Provider::Anthropic)).unwrap();
    let payload = answer.provider.unwrap().payload.unwrap();
    assert_eq!(payload, r#"[ {"type":"text",  "text":"caf\u00e9", "new": 1.50} ]"#.into());
}

#[test]
fn errors_in_the_middle_of_a_stream_have_their_kind() {
    let cases = [
        (
            Provider::OpenAiChat,
            json!({"error": {"message": "m", "type": "server_error", "code": null}}),
            ErrorKind::Server,
        ),
        (
            Provider::OpenAiResponses,
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "m"}),
            ErrorKind::RateLimited,
        ),
        (
            Provider::Anthropic,
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
            ErrorKind::Overloaded,
        ),
        (
            Provider::Gemini,
            json!([{"error": {"code": 503, "status": "UNAVAILABLE", "message": "m"}}]),
            ErrorKind::Overloaded,
        ),
    ];
    for (provider, event, kind) in cases {
        let error = read_stream(provider, &format!("data: {event}\n\n")).unwrap_err();
        assert_eq!(error.kind, kind, "{provider}");
    }
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "m"}}});
    let error = read_stream(Provider::OpenAiResponses, &format!("data: {failed}\n\n")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimited);
}

#[test]
fn malformed_answers_are_errors_that_may_pass() {
    for provider in Provider::ALL {
        for body in ["", "null", "[]", "{\"choices\": 3}", "<html>"] {
            let error = parse(body, &target(provider)).unwrap_err();
            assert_eq!((error.kind, error.retryable), (ErrorKind::Malformed, true), "{provider} {body}");
        }
        let error = read_stream(provider, "data: {\"half\":\n\n").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed, "{provider}");
    }
}

#[test]
fn refusals_are_told_from_answers() {
    let cases = [
        (
            Provider::OpenAiChat,
            json!({"choices": [{"finish_reason": "stop", "message": {"content": null, "refusal": "No."}}]}),
        ),
        (
            Provider::OpenAiChat,
            json!({"choices": [{"finish_reason": "content_filter", "message": {"content": null}}]}),
        ),
        (
            Provider::OpenAiResponses,
            json!({"status": "completed", "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]}),
        ),
        (
            Provider::OpenAiResponses,
            json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}),
        ),
        (Provider::Anthropic, json!({"content": [], "stop_reason": "refusal"})),
        (Provider::Gemini, json!({"promptFeedback": {"blockReason": "SAFETY"}})),
        (Provider::Gemini, json!({"candidates": [{"finishReason": "SAFETY"}]})),
    ];
    for (provider, body) in cases {
        let error = parse(&body.to_string(), &target(provider)).unwrap_err();
        assert_eq!((error.kind, error.retryable), (ErrorKind::ContentFilter, false), "{body}");
    }
}

#[test]
fn empty_answers_are_answers() {
    let cases = [
        (
            Provider::OpenAiChat,
            json!({"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": ""}}]}),
        ),
        (Provider::OpenAiResponses, json!({"status": "completed", "output": []})),
        (Provider::Anthropic, json!({"content": [], "stop_reason": "end_turn"})),
        (Provider::Gemini, json!({"candidates": [{"finishReason": "STOP"}]})),
    ];
    for (provider, body) in cases {
        let answer = parse(&body.to_string(), &target(provider)).unwrap();
        assert!(answer.parts.is_empty() && answer.calls.is_empty(), "{provider}");
    }
}
