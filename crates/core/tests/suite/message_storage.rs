//! Storage of messages: large content, random messages, and invalid input.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backstitch_core::message::{Arguments, Content, Large, Message, MessageError, OptionCall, OptionResult};
use backstitch_core::object::{INLINE_LIMIT, Object, ObjectId, ObjectRef};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::message::{call_id, ids, planner, policy, read, written};
use crate::strategies;
// Large content.

fn fetch(objects: &[Object]) -> impl Fn(ObjectRef) -> Option<Arc<[u8]>> {
    let objects: HashMap<ObjectId, Arc<[u8]>> =
        objects.iter().map(|object| (object.id(), Arc::clone(object.bytes()))).collect();
    move |reference| objects.get(&reference.object).cloned()
}

fn result_of(result: Value) -> Message {
    Message::new(policy("draw"), Content::OptionResult(OptionResult::new(call_id(), "draw", result)))
}

#[test]
fn content_moves_out_above_the_limit_and_not_at_it() {
    let text = |length: usize| planner(&ids()).add_text("t".repeat(length)).to_message().unwrap();
    // A JSON string has two quotes, and the object around arguments seven more bytes.
    let result = |length: usize| result_of(json!("r".repeat(length - 2)));
    let call = |length: usize| {
        let arguments = json!({"a": "c".repeat(length - 8)}).as_object().unwrap().clone();
        let call = OptionCall::new(call_id(), "draw", Arguments::from_object(arguments));
        Message::new(policy("planner"), Content::OptionCall(call))
    };
    for (name, make) in
        [("text", &text as &dyn Fn(usize) -> Message), ("result", &result), ("arguments", &call)]
    {
        let mut objects = Vec::new();
        let mut small = make(INLINE_LIMIT);
        small.spill(&mut objects);
        assert_eq!((&small, objects.len()), (&make(INLINE_LIMIT), 0), "{name}");

        let mut large = make(INLINE_LIMIT + 1);
        large.spill(&mut objects);
        assert_eq!(objects.len(), 1, "{name}");
        assert_eq!(objects[0].bytes().len(), INLINE_LIMIT + 1, "{name}");
        assert_eq!(large.object_refs(), [objects[0].id()], "{name}");
        let json = written(&large);
        assert!(json.to_string().len() < 1_000, "{name}");
        let field =
            json.pointer(&format!("/content/{name}_object")).or(json.pointer("/content/parts/0/text_object"));
        assert_eq!(field, Some(&json!({"object": objects[0].id(), "length": INLINE_LIMIT + 1})), "{name}");

        let mut again = read(&json).unwrap();
        assert_eq!(again, large, "{name}");
        again.hydrate(fetch(&objects)).unwrap();
        assert_eq!(again, make(INLINE_LIMIT + 1), "{name}");
    }
}

#[test]
fn damaged_or_missing_objects_are_told_apart() {
    let stored = |bytes: &[u8]| Object::blob(bytes);
    let text_at = |object: &Object| {
        let json = json!({"policy": "p", "content": {"kind": "parts", "parts": [{"kind": "text", "text_object": object.to_ref()}]}});
        read(&json).unwrap()
    };
    let result_at = |object: &Object| {
        let mut message = result_of(Value::Null);
        let Content::OptionResult(result) = &mut message.content else { panic!("a result") };
        result.result = Large::Object(object.to_ref());
        message
    };
    let good = stored(b"{}");
    assert!(matches!(
        text_at(&good).hydrate(|_| None),
        Err(MessageError::MissingObject { field: "text", .. })
    ));
    let error = text_at(&good).hydrate(|_| Some(Arc::from(*b"{ }"))).unwrap_err();
    assert!(matches!(error, MessageError::ObjectLength { expected: 2, found: 3, .. }));
    let binary = stored(&[0xff, 0xfe]);
    let error = text_at(&binary).hydrate(fetch(std::slice::from_ref(&binary))).unwrap_err();
    assert!(matches!(error, MessageError::ObjectNotText { .. }));
    for bytes in [&b"\xff\xfe"[..], b"{", b"", "[".repeat(100_000).as_bytes()] {
        let broken = stored(bytes);
        let error = result_at(&broken).hydrate(fetch(std::slice::from_ref(&broken))).unwrap_err();
        assert!(matches!(error, MessageError::ObjectNotJson { field: "result", .. }), "{error}");
    }
    let deep = stored(format!("{}{}", "[".repeat(100), "]".repeat(100)).as_bytes());
    let error = result_at(&deep).hydrate(fetch(std::slice::from_ref(&deep))).unwrap_err();
    assert!(matches!(error, MessageError::NotStorable { .. }));
}

// Hostile input.

#[test]
fn json_that_is_no_message_is_an_error() {
    let message = |content: Value| json!({"policy": "p", "content": content});
    let text = |part: Value| message(json!({"kind": "parts", "parts": [part]}));
    let media = |url: &str| text(json!({"kind": "media", "modality": "image", "url": url}));
    let call = |fields: Value| {
        let mut content = json!({"kind": "option_call", "invocation_id": call_id(), "option_name": "o"});
        content.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        message(content)
    };
    let result = |fields: Value| {
        let mut content = json!({"kind": "option_result", "invocation_id": call_id(), "option_name": "o"});
        content.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        message(content)
    };
    let object = Object::blob(*b"x").to_ref();
    let good = json!({"kind": "parts", "parts": []});
    for (json, says) in [
        (json!(null), "invalid type"),
        (json!([]), "invalid type"),
        (json!({}), "policy"),
        (json!({"policy": "p"}), "content"),
        (json!({"content": good}), "policy"),
        (json!({"policy": "", "content": good}), "empty"),
        (json!({"policy": 1, "content": good}), "invalid type"),
        (json!({"policy": "p", "content": good, "step_num": -1}), "invalid value"),
        (json!({"policy": "p", "content": good, "step_num": "1"}), "invalid type"),
        (json!({"policy": "p", "content": good, "role_hint_for_llm": "developer"}), "unknown role hint"),
        (message(json!({})), "kind"),
        (message(json!({"kind": "action_call"})), "unknown message kind"),
        (message(json!({"kind": 0, "parts": []})), "invalid type"),
        (message(json!(["parts", []])), "invalid type"),
        (message(json!({"kind": "parts"})), "parts"),
        (message(json!({"kind": "parts", "parts": {}})), "invalid type"),
        (text(json!({"kind": "sound"})), "unknown kind of part"),
        (text(json!({"text": "no kind"})), "kind"),
        (text(json!({"kind": 0, "text": "a"})), "invalid type"),
        (text(json!(["text", {"text": "a"}])), "invalid type"),
        (text(json!({"kind": "text"})), "`text` is missing"),
        (text(json!({"kind": "text", "text": null})), "`text` is missing"),
        (text(json!({"kind": "text", "text": ["a"]})), "invalid type"),
        (text(json!({"kind": "text", "text": "a", "text_object": object})), "both"),
        (text(json!({"kind": "text", "text_object": "a"})), "invalid type"),
        (text(json!({"kind": "text", "text_object": {"object": "xyz", "length": 1}})), "not an object id"),
        (
            text(json!({"kind": "text", "text_object": {"object": object.object, "length": -1}})),
            "invalid value",
        ),
        (
            text(json!({"kind": "media", "modality": "smell", "url": "https://example.org"})),
            "unknown modality",
        ),
        (text(json!({"kind": "media", "url": "https://example.org"})), "modality"),
        (text(json!({"kind": "media", "modality": "image"})), "url"),
        (media("data:image/png;base64,AA=="), "scheme `data`"),
        (media("https://ada:secret@example.org"), "credentials"),
        (media("hat.png"), "does not parse"),
        (call(json!({})), "`arguments` is missing"),
        (call(json!({"arguments": [1]})), "invalid type"),
        (call(json!({"arguments": "{}"})), "invalid type"),
        (call(json!({"arguments": {}, "arguments_object": object})), "both"),
        (call(json!({"arguments_text": "", "arguments_object": object})), "both"),
        (call(json!({"arguments": {}, "invocation_id": "call_1"})), "UUID"),
        (call(json!({"arguments": {}, "option_name": null})), "invalid type"),
        (result(json!({"result": 1, "result_object": object})), "both"),
        (result(json!({"result": null, "result_object": object})), "both"),
        (result(json!({"is_error": "yes"})), "invalid type"),
        (result(json!({"retryable": 1})), "invalid type"),
        (result(json!({"result": {"$serde_json::private::RawValue": "["}})), "EOF"),
    ] {
        let error = read(&json).expect_err(&json.to_string());
        assert!(error.to_string().contains(says), "{json}\n gave: {error}\n wanted: {says}");
    }
}

#[test]
fn absent_results_are_null_and_absent_flags_are_false() {
    let json = json!({"policy": "o", "content": {
        "kind": "option_result", "invocation_id": call_id(), "option_name": "o", "retryable": null,
    }});
    let message = read(&json).unwrap();
    let result = message.option_result().unwrap();
    assert_eq!(
        (&result.result, result.is_error, result.retryable),
        (&Large::Inline(Value::Null), false, None)
    );
}

#[test]
fn duplicate_fields_are_refused() {
    for text in [
        r#"{"policy":"a","policy":"b","content":{"kind":"parts","parts":[]}}"#,
        r#"{"policy":"a","content":{"kind":"parts","kind":"parts","parts":[]}}"#,
        r#"{"policy":"a","content":{"kind":"parts","parts":[],"kind":"parts"}}"#,
        r#"{"policy":"a","content":{"parts":[],"kind":"parts","kind":"parts"}}"#,
        r#"{"policy":"a","content":{"parts":[],"kind":"parts","parts":[]}}"#,
        r#"{"policy":"a","content":{"kind":"parts","parts":[{"kind":"text","text":"a","text":"b"}]}}"#,
    ] {
        assert!(serde_json::from_str::<Message>(text).is_err(), "{text}");
    }
}

#[test]
fn the_kind_may_stand_anywhere() {
    let first =
        r#"{"policy":"a","content":{"kind":"parts","parts":[{"kind":"text","text":"t","x":1}],"y":2}}"#;
    let last =
        r#"{"content":{"parts":[{"x":1,"text":"t","kind":"text"}],"y":2,"kind":"parts"},"policy":"a"}"#;
    let (first, last): (Message, Message) =
        (serde_json::from_str(first).unwrap(), serde_json::from_str(last).unwrap());
    assert_eq!(first, last);
}

#[test]
fn deep_nesting_is_an_error_wherever_it_stands() {
    let holders = [
        r#"{"policy":"p","content":{"kind":"parts","parts":[]},"x":@}"#,
        r#"{"policy":"p","content":{"kind":"parts","parts":[],"x":@}}"#,
        r#"{"policy":"p","content":{"kind":"parts","parts":[{"kind":"text","text":"","x":@}]}}"#,
        r#"{"policy":"p","content":{"kind":"option_result","invocation_id":"0190a0b0-0000-7000-8000-000000000001","option_name":"o","result":@}}"#,
        r#"{"policy":"p","content":{"kind":"option_call","invocation_id":"0190a0b0-0000-7000-8000-000000000001","option_name":"o","arguments":{"a":@}}}"#,
        r#"{"policy":"p","content":@}"#,
    ];
    for holder in holders {
        for levels in [65, 100, 127, 100_000] {
            let text = holder.replace('@', &format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
            assert!(serde_json::from_str::<Message>(&text).is_err(), "{levels} levels in {holder}");
            let unclosed = holder.replace('@', &"{\"a\":".repeat(levels));
            assert!(serde_json::from_str::<Message>(&unclosed).is_err(), "{levels} levels in {holder}");
        }
    }
}

/// The JSON parser parses the string under this key as JSON again, with a depth of its own.
#[test]
fn depth_that_hides_in_strings_is_found() {
    let mut text = String::from("1");
    for _ in 0..8 {
        let hidden = json!({"$serde_json::private::RawValue": text});
        text = format!("{}{hidden}{}", "[".repeat(120), "]".repeat(120));
    }
    assert!(!Arguments::from_text(format!(r#"{{"a":{text}}}"#)).is_parsable());
    let message = format!(r#"{{"policy":"p","content":{{"kind":"parts","parts":[]}},"x":{text}}}"#);
    let error = serde_json::from_str::<Message>(&message).unwrap_err();
    assert!(error.to_string().contains("nests deeper"), "{error}");
}

proptest! {
    #[test]
    fn messages_come_back_as_they_were(message in strategies::message()) {
        let text = serde_json::to_string(&message)?;
        let again: Message = serde_json::from_str(&text)?;
        prop_assert_eq!(&again, &message);
        prop_assert_eq!(serde_json::to_string(&again)?, text);
        // The same through a value, as an upcaster would read it.
        prop_assert_eq!(serde_json::from_value::<Message>(serde_json::to_value(&message)?)?, message);
    }

    #[test]
    fn moving_content_out_and_back_changes_nothing(message in strategies::message()) {
        let (mut moved, mut objects) = (message.clone(), Vec::new());
        moved.spill(&mut objects);
        let before: HashSet<_> = message.object_refs().into_iter().collect();
        let after: HashSet<_> = moved.object_refs().into_iter().collect();
        let expected: HashSet<_> = before.into_iter().chain(objects.iter().map(Object::id)).collect();
        prop_assert_eq!(after, expected);

        let mut again: Message = serde_json::from_str(&serde_json::to_string(&moved)?)?;
        prop_assert_eq!(&again, &moved);
        again.hydrate(fetch(&objects)).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(again, message);
    }

    #[test]
    fn received_arguments_keep_their_text(text in strategies::long_text()) {
        let arguments = Arguments::from_text(text.as_str());
        prop_assert_eq!(arguments.text(), text);
    }

    #[test]
    fn references_survive_as_well(reference in strategies::object_ref(), message in strategies::message()) {
        let mut message = message;
        if let Content::OptionResult(result) = &mut message.content {
            result.result = Large::Object(reference);
        }
        let again: Message = serde_json::from_str(&serde_json::to_string(&message)?)?;
        prop_assert_eq!(again, message);
    }

    /// Cut, changed and doubled bytes of real messages result in a message or an error, never in a panic.
    #[test]
    fn mangled_json_never_panics(
        message in strategies::message(),
        cut in any::<proptest::sample::Index>(),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = serde_json::to_vec(&message)?;
        let position = at.index(bytes.len());
        bytes[position] = byte;
        let _ = serde_json::from_slice::<Message>(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        let _ = serde_json::from_slice::<Message>(&bytes);
    }
}
