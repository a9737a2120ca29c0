//! Generators of random data for properties.
//!
//! All generated data is valid; hostile input is written out where it is tested. Values are small, so that a
//! failing case is readable.

use std::sync::Arc;

use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::CallId;
use backstitch_core::message::{
    Arguments, Content, Large, MediaPart, MediaUrl, Message, Modality, OptionCall, OptionResult, Part, Parts,
    PolicyName, RoleHint, TextPart,
};
use backstitch_core::object::{INLINE_LIMIT, ObjectId, ObjectRef};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Number, Value};
use uuid::Uuid;

/// Short text with any characters: controls, quotes, right-to-left, emoji.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<String>().prop_map(|text| text.chars().take(12).collect()),
        1 => select(vec!["", "{}", "null", "\u{0}", "\"", "\\", "\u{202e}abc", "🧵", "a\r\nb"]).prop_map(String::from),
    ]
}

/// Text that is sometimes too large for a record.
pub(crate) fn long_text() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => text(),
        1 => (text(), 0..3usize).prop_map(|(text, more)| format!("{text}{}", "ä".repeat(INLINE_LIMIT / 2 + more - 1))),
    ]
}

/// A number that JSON can hold.
pub(crate) fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_filter_map("is finite", Number::from_f64),
    ]
}

/// Any JSON value of a few levels.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((text(), inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A JSON object.
pub(crate) fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), value()), 0..4).prop_map(|fields| fields.into_iter().collect())
}

/// Unknown fields.
pub(crate) fn extra() -> impl Strategy<Value = Extra> {
    let field = (text().prop_map(|name| format!("x-{name}")), value());
    prop_oneof![
        2 => Just(Extra::default()),
        1 => vec(field, 1..3).prop_map(|fields| {
            Extra::try_from(fields.into_iter().collect::<Map<_, _>>()).expect("a few levels can be stored")
        }),
    ]
}

/// A policy's name, including reserved ones.
pub(crate) fn policy_name() -> impl Strategy<Value = PolicyName> {
    prop_oneof![
        8 => "[^\\p{Cc}]{1,12}".prop_filter_map("is not reserved", |name| PolicyName::new(name).ok()),
        1 => Just(PolicyName::runtime()),
        1 => Just(PolicyName::executor()),
    ]
}

/// A reference to an object.
pub(crate) fn object_ref() -> impl Strategy<Value = ObjectRef> {
    (object_id(), any::<u64>()).prop_map(|(object, length)| ObjectRef { object, length })
}

/// The id of an object.
pub(crate) fn object_id() -> impl Strategy<Value = ObjectId> {
    any::<[u8; 20]>().prop_map(ObjectId::from_bytes)
}

/// A call's id.
pub(crate) fn call_id() -> impl Strategy<Value = CallId> {
    any::<u128>().prop_map(|number| CallId::from_uuid(Uuid::from_u128(number)))
}

/// An address of media.
pub(crate) fn media_url() -> impl Strategy<Value = MediaUrl> {
    prop_oneof![
        "https?://[a-z]{1,8}\\.example(:[1-9][0-9]{0,3})?(/[a-zA-Z0-9._~%2f-]{0,8}){0,3}(\\?[a-z]=[a-zA-Z0-9@/:]{0,8})?"
            .prop_map(|text| MediaUrl::new(text).expect("the pattern gives addresses")),
        object_id().prop_map(MediaUrl::blob),
    ]
}

/// A media part.
pub(crate) fn media_part() -> impl Strategy<Value = MediaPart> {
    let digest = any::<[u8; 32]>().prop_map(Digest::from_bytes);
    (
        select(Modality::ALL.to_vec()),
        media_url(),
        option::of(text()),
        option::of(text()),
        option::of(text()),
        option::of(digest),
        extra(),
    )
        .prop_map(|(modality, url, mime, prompt_hint, id, digest, extra)| MediaPart {
            modality,
            url,
            mime,
            prompt_hint,
            id,
            digest,
            extra,
        })
}

/// A text part whose text is in the message itself.
pub(crate) fn text_part() -> impl Strategy<Value = TextPart> {
    (long_text(), extra()).prop_map(|(text, extra)| TextPart { text: Large::Inline(Arc::from(text)), extra })
}

/// A part with no objects other than its media.
pub(crate) fn part() -> impl Strategy<Value = Part> {
    prop_oneof![text_part().prop_map(Part::Text), media_part().prop_map(Part::Media)]
}

/// Arguments: from an object, from other text, or unparsable.
pub(crate) fn arguments() -> impl Strategy<Value = Arguments> {
    prop_oneof![
        object().prop_map(Arguments::from_object),
        object().prop_map(|object| {
            Arguments::from_text(serde_json::to_string_pretty(&object).expect("an object can be written"))
        }),
        long_text().prop_map(Arguments::from_text),
    ]
}

/// A call of an option.
pub(crate) fn option_call() -> impl Strategy<Value = OptionCall> {
    (call_id(), text(), arguments(), option::of(text()), option::of(text()), any::<bool>(), extra()).prop_map(
        |(invocation_id, option_name, arguments, provider_call_id, path, cut_off, extra)| OptionCall {
            invocation_id,
            option_name,
            arguments,
            provider_call_id,
            path,
            cut_off,
            extra,
        },
    )
}

/// A result of an option.
pub(crate) fn option_result() -> impl Strategy<Value = OptionResult> {
    let result = prop_oneof![4 => value(), 1 => long_text().prop_map(Value::String)];
    let error = (any::<bool>(), option::of(text()), option::of(text()), option::of(any::<bool>()));
    (call_id(), text(), result, vec(part(), 0..3), error, extra()).prop_map(
        |(invocation_id, option_name, result, parts, error, extra)| {
            let (is_error, error_type, error_message, retryable) = error;
            OptionResult {
                invocation_id,
                option_name,
                result: Large::Inline(result),
                parts,
                is_error,
                error_type,
                error_message,
                retryable,
                extra,
            }
        },
    )
}

/// The content of a message.
pub(crate) fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        (vec(part(), 0..4), extra()).prop_map(|(parts, extra)| Content::Parts(Parts { parts, extra })),
        option_call().prop_map(Content::OptionCall),
        option_result().prop_map(Content::OptionResult),
    ]
}

/// A message of any kind, with all content inline.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    (policy_name(), option::of(select(RoleHint::ALL.to_vec())), option::of(any::<u64>()), content(), extra())
        .prop_map(|(policy, role_hint_for_llm, step_num, content, extra)| Message {
            policy,
            role_hint_for_llm,
            step_num,
            content,
            extra,
        })
}
