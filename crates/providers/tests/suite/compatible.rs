//! Peculiarities of servers that are compatible with Chat Completions: thoughts in the text, and fields that only
//! the server understands.

use backstitch_core::message::Part;
use backstitch_core::ports::{Delta, Finish, PolicyAnswer};
use backstitch_providers::{Provider, RequestOptions, SseDecoder, Thread, parse, render, stream_reader};
use serde_json::{Value, json};

use super::support::{Talk, target, tools};

const CHAT: Provider = Provider::OpenAiChat;

fn whole(message: &Value, reason: &str) -> PolicyAnswer {
    let body = json!({"choices": [{"index": 0, "finish_reason": reason, "message": message}]});
    parse(&body.to_string(), &target(CHAT)).unwrap()
}

/// Reads deltas of a message, and returns the pieces of text and of thoughts too.
fn streamed(deltas: &[Value], reason: &str) -> (PolicyAnswer, String, String) {
    let mut text = String::new();
    for delta in deltas {
        text.push_str(&format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]})));
    }
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    text.push_str(&format!("data: {end}\n\ndata: [DONE]\n\n"));
    let (mut decoder, mut events) = (SseDecoder::new(), Vec::new());
    decoder.feed(text.as_bytes(), &mut events).unwrap();
    let (mut reader, mut deltas) = (stream_reader(&target(CHAT)), Vec::new());
    for event in &events {
        reader.feed(event, &mut deltas).unwrap();
    }
    let (mut said, mut thought) = (String::new(), String::new());
    for delta in deltas {
        match delta {
            Delta::Text(text) => said.push_str(&text),
            Delta::Reasoning(text) => thought.push_str(&text),
            Delta::Call(_) => {}
        }
    }
    (reader.finish().unwrap(), said, thought)
}

fn payload(answer: &PolicyAnswer) -> Value {
    let payload = answer.provider.as_ref().unwrap().payload.clone().unwrap();
    serde_json::from_str(payload.inline().unwrap()).unwrap()
}

/// The message of the last answer in the next request to the same model.
fn replayed(answer: PolicyAnswer) -> Value {
    let has_calls = !answer.calls.is_empty();
    let talk = Talk::new().user("Hello").answer(answer);
    let talk = if has_calls { talk.result(0, Ok(json!("a seam"))) } else { talk.follow_up().user("And?") };
    let messages = talk.messages();
    let rendered =
        render(&Thread::of(&messages), &tools(), &target(CHAT), &RequestOptions::default()).unwrap();
    backstitch_providers::validate::validate(CHAT, &rendered.body).unwrap();
    assert_eq!(rendered.report.dropped().count(), 0, "it is replayed");
    rendered.body["messages"][1].clone()
}

#[test]
fn fields_that_only_the_server_understands_are_the_same_streamed_and_not() {
    // OpenRouter.
    let thought = |text: &str| json!([{"type": "reasoning.text", "text": text, "format": "google-gemini-v1", "index": 0}]);
    let sealed = json!([{"type": "reasoning.encrypted", "data": "RXFR", "id": "call_a", "format": "google-gemini-v1", "index": 0}]);
    // Google's own compatible address.
    let signed = json!({"google": {"thought_signature": "RXFS"}});
    let call = |arguments: &str| json!({"index": 0, "id": "call_a", "type": "function", "function": {"name": "look", "arguments": arguments}});
    let mut first = call("{}");
    first["extra_content"] = signed.clone();
    let deltas = [
        json!({"role": "assistant", "content": "", "reasoning": "Hm", "reasoning_details": thought("Hm"), "refusal": null}),
        json!({"content": null, "reasoning": ".", "reasoning_details": thought(".")}),
        json!({"reasoning_details": sealed, "provider_specific_fields": {"trace": "t-1"}}),
        json!({"tool_calls": [first]}),
    ];
    let details = json!([
        {"type": "reasoning.text", "text": "Hm.", "format": "google-gemini-v1", "index": 0},
        sealed[0],
    ]);
    let mut complete = call("{}");
    complete.as_object_mut().unwrap().remove("index");
    complete["extra_content"] = signed;
    let message = json!({
        "role": "assistant", "content": "", "reasoning": "Hm.", "reasoning_details": details,
        "provider_specific_fields": {"trace": "t-1"}, "tool_calls": [complete],
    });
    let (answer, said, thoughts) = streamed(&deltas, "tool_calls");
    assert_eq!((said.as_str(), thoughts.as_str()), ("", "Hm."));
    assert_eq!(payload(&answer), message);
    assert_eq!(replayed(answer), message, "and is sent back");
    assert_eq!(replayed(whole(&message, "tool_calls")), message);
}

#[test]
fn thoughts_in_the_text_are_not_a_part_of_the_answer() {
    let cases = [
        ("<think>maybe {\"count\": 1}</think>\n\n{\"count\": 2}", "{\"count\": 2}"),
        (
            "<think>maybe\n```json\n{\"count\": 1}\n```\n</think>\n```json\n{\"count\": 2}\n```",
            "```json\n{\"count\": 2}\n```",
        ),
        ("\n<thinking>Hm.</thinking>Yes.", "Yes."),
        ("Hm, the prompt opened it.\n</think>\n\nYes.", "Yes."),
        ("Yes, <think> is a tag.", "Yes, <think> is a tag."),
    ];
    for (text, answer) in cases {
        let message = json!({"role": "assistant", "content": text});
        let made = whole(&message, "stop");
        assert_eq!(made.parts, [Part::text(answer)], "{text}");
        assert_eq!(payload(&made), message, "{text}: it is kept");
        assert_eq!(replayed(made)["content"], answer, "{text}");
        let pieces: Vec<Value> = text.chars().map(|piece| json!({"content": piece.to_string()})).collect();
        let (made, said, thoughts) = streamed(&pieces, "stop");
        assert_eq!(made.parts, [Part::text(answer)], "{text}");
        if text.trim_start().starts_with("<think") {
            assert_eq!(said, answer, "{text}");
            assert!(!thoughts.is_empty() && text.contains(&thoughts), "{text}: {thoughts}");
        }
    }
}

#[test]
fn thoughts_before_calls_are_sent_back_and_cut_off_thoughts_are_not_an_answer() {
    let call = json!({"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": "<think>Hm.</think>I look.", "tool_calls": [call]});
    let made = whole(&message, "tool_calls");
    assert_eq!(made.parts, [Part::text("I look.")]);
    assert_eq!(
        replayed(made)["content"],
        "<think>Hm.</think>I look.",
        "some models need them in a tool loop"
    );
    let cut = whole(&json!({"role": "assistant", "content": "<think>Hm, and"}), "length");
    assert_eq!((cut.parts.len(), cut.finish), (0, Finish::Length));
    let open = whole(&json!({"role": "assistant", "content": "<think> is a tag"}), "stop");
    assert_eq!(open.parts, [Part::text("<think> is a tag")]);
}

#[test]
fn parts_of_a_streamed_text_are_joined() {
    let deltas = [
        json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}),
        json!({"content": [{"type": "text", "text": "It "}]}),
        json!({"content": "rains."}),
    ];
    let (answer, said, thoughts) = streamed(&deltas, "stop");
    assert_eq!((said.as_str(), thoughts.as_str()), ("It rains.", "Hm."));
    assert_eq!(answer.parts, [Part::text("It rains.")]);
}
