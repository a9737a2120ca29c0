//! The JSON form of messages.

use std::sync::Arc;

use backstitch_core::id::{CallId, IdStream};
use backstitch_core::message::{
    Anchor, Arguments, Content, Message, MessageBuilder, MessageKind, OptionCall, OptionResultBuilder,
    PolicyName, Retry,
};
use backstitch_core::time::FixedClock;
use serde_json::{Value, json};

pub(crate) fn ids() -> IdStream {
    IdStream::from_seed([7; 32], Arc::new(FixedClock::default()))
}

pub(crate) fn policy(name: &str) -> PolicyName {
    PolicyName::new(name).expect("the name is legal")
}

pub(crate) fn call_id() -> CallId {
    "0190a0b0-0000-7000-8000-000000000001".parse().expect("the text is an id")
}

pub(crate) fn planner(ids: &IdStream) -> MessageBuilder {
    let mut builder = MessageBuilder::next_step(Anchor::start(), ids);
    builder.policy(policy("planner"));
    builder
}

pub(crate) fn call_of(option: &str) -> Message {
    let mut builder = planner(&ids());
    builder.add_option_call(option, json!({"query": "thread"})).expect("the call is legal");
    builder.last_option_call().expect("a call was added").clone()
}

pub(crate) fn written(message: &Message) -> Value {
    serde_json::to_value(message).expect("a message can be written")
}

pub(crate) fn read(json: &Value) -> Result<Message, serde_json::Error> {
    serde_json::from_str(&json.to_string())
}

#[test]
fn parts_are_written_in_the_order_in_which_they_were_added() {
    let mut builder = MessageBuilder::next_step(4, &ids());
    builder.person(policy("ada")).add_text("Mend this:");
    builder.add_image("the coat", "https://example.org/coat.png").unwrap().add_text("by Friday");
    let message = builder.to_message().unwrap();
    let expected = json!({
        "policy": "ada",
        "role_hint_for_llm": "user",
        "step_num": 5,
        "content": {"kind": "parts", "parts": [
            {"kind": "text", "text": "Mend this:"},
            {
                "kind": "media", "modality": "image", "url": "https://example.org/coat.png",
                "prompt_hint": "the coat", "id": "media-a9123817fd1f",
            },
            {"kind": "text", "text": "by Friday"},
        ]},
    });
    assert_eq!(written(&message), expected);
    assert_eq!(read(&expected).unwrap(), message);
    assert_eq!(message.text(), "Mend this:\nby Friday");
}

#[test]
fn a_call_and_its_result_are_written_with_the_same_id() {
    let mut call = Message::new(
        policy("planner"),
        Content::OptionCall(OptionCall::new(
            call_id(),
            "search_web",
            Arguments::from_text(r#"{"query": "linen"}"#),
        )),
    );
    call.step_num = Some(3);
    let expected = json!({
        "policy": "planner",
        "step_num": 3,
        "content": {
            "kind": "option_call", "invocation_id": call_id(), "option_name": "search_web",
            "arguments": {"query": "linen"}, "arguments_text": "{\"query\": \"linen\"}",
        },
    });
    assert_eq!(written(&call), expected);
    assert_eq!(read(&expected).unwrap(), call);

    let builder = OptionResultBuilder::response_to(&call).unwrap();
    let expected = json!({
        "policy": "search_web", "role_hint_for_llm": "tool", "step_num": 3,
        "content": {
            "kind": "option_result", "invocation_id": call_id(), "option_name": "search_web",
            "result": ["a", 1], "is_error": false,
        },
    });
    assert_eq!(written(&builder.success(json!(["a", 1]))), expected);
    let expected = json!({
        "policy": "search_web", "role_hint_for_llm": "tool", "step_num": 3,
        "content": {
            "kind": "option_result", "invocation_id": call_id(), "option_name": "search_web",
            "result": null, "is_error": true,
            "error_type": "timeout", "error_message": "no answer in 10 s", "retryable": true,
        },
    });
    let failed = builder.error("timeout", "no answer in 10 s", Retry::Allowed);
    assert_eq!(written(&failed), expected);
    assert_eq!(read(&expected).unwrap(), failed);
}

#[test]
fn there_are_exactly_three_kinds() {
    let names: Vec<_> = MessageKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(names, ["parts", "option_call", "option_result"]);
    let call = call_of("search_web");
    let result = OptionResultBuilder::response_to(&call).unwrap().success(1);
    let parts = planner(&ids()).add_text("hello").to_message().unwrap();
    for (message, kind) in
        [(&parts, MessageKind::Parts), (&call, MessageKind::OptionCall), (&result, MessageKind::OptionResult)]
    {
        assert_eq!(message.kind(), kind);
        assert_eq!(written(message)["content"]["kind"], kind.as_str());
        assert_eq!(message.parts().is_some(), kind == MessageKind::Parts);
        assert_eq!(message.option_call().is_some(), kind == MessageKind::OptionCall);
        assert_eq!(message.option_result().is_some(), kind == MessageKind::OptionResult);
    }
}

#[test]
fn unknown_fields_survive_at_every_level() {
    let json = json!({
        "policy": "planner",
        "content": {
            "kind": "option_result", "invocation_id": call_id(), "option_name": "draw",
            "result": {"kind": "own"},
            "parts": [
                {"kind": "text", "text": "look", "x-lang": "en"},
                {"kind": "media", "modality": "image", "url": "https://example.org/a", "x-width": 18446744073709551615u64},
            ],
            "is_error": false, "x-cost": {"cents": [1, 2.5]},
        },
        "x-origin": null,
        "kind": "not the tag, which is the content's",
    });
    let message = read(&json).unwrap();
    assert_eq!(message.extra.get("x-origin"), Some(&Value::Null));
    assert_eq!(written(&message), json);
}
