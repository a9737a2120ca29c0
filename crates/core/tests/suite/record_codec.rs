//! Text encoding of records: every stored version stays readable, and invalid input is refused with its
//! position.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use backstitch_core::extra::Extra;
use backstitch_core::journal::{
    DecodeProblem, EncodeError, EncodedRecord, Note, Position, Record, RecordBody,
};
use backstitch_core::json::{JsonLimits, LimitExceeded};
use backstitch_core::storable::NotStorable;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::journals::time;
use super::records::record;
use super::strategies;

/// The stored lines of version 1: file name without extension, and text.
#[expect(clippy::disallowed_methods, reason = "the crate reads no files, but its tests may")]
pub(crate) fn fixtures() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records/v1");
    let mut fixtures: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, text.strip_suffix('\n').unwrap_or(&text).to_owned())
        })
        .collect();
    fixtures.sort();
    fixtures
}

#[test]
fn what_was_stored_once_is_read_for_ever() {
    for (name, text) in fixtures() {
        let record =
            Record::decode(Position::new(3), &text).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(record.encode().unwrap(), text, "{name}");
        assert_eq!(record.position, Position::new(3));
        // A kind may have several files, each named after the kind.
        assert!(name.starts_with(record.body.kind()), "{name} holds a {}", record.body.kind());
    }
}

#[test]
fn every_kind_has_a_stored_line_for_each_of_its_versions() {
    let stored: BTreeSet<_> = fixtures()
        .iter()
        .map(|(_, text)| {
            let value: Value = serde_json::from_str(text).unwrap();
            (value["kind"].as_str().unwrap().to_owned(), value["v"].as_u64().unwrap() as u32)
        })
        .collect();
    let known: BTreeSet<_> =
        RecordBody::KINDS.iter().map(|(kind, version)| ((*kind).to_owned(), *version)).collect();
    assert_eq!(stored, known);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn a_record_comes_back_as_it_was(record in record()) {
        let text = record.encode().unwrap();
        prop_assert!(!text.contains('\n'));
        let again = Record::decode(record.position, &text).unwrap();
        prop_assert_eq!(&again, &record);
        prop_assert_eq!(again.encode().unwrap(), text);
    }

    /// Serde writes the stored form and the position.
    #[test]
    fn a_record_is_serialized_as_it_is_stored_with_its_place(record in record()) {
        let mut value = serde_json::to_value(&record).unwrap();
        let position = value.as_object_mut().unwrap().remove("position");
        prop_assert_eq!(position, Some(json!(record.position)));
        let encoded = record.encode_parts().unwrap();
        let stored: Value = serde_json::from_str(&encoded.text).unwrap();
        prop_assert_eq!(&value, &stored);
        // The parts are where they are said to be.
        prop_assert_eq!((encoded.version, encoded.kind, encoded.at), (record.version(), record.body.kind(), record.at));
        prop_assert_eq!(&encoded.text[encoded.time.clone()], record.at.to_string());
        prop_assert_eq!(encoded.data.is_some(), record.extra.is_empty());
        if let Some(range) = encoded.data.clone() {
            let data: Value = serde_json::from_str(&encoded.text[range.clone()]).unwrap();
            prop_assert_eq!(&data, &stored["data"]);
            let time = record.at.to_string();
            let again = EncodedRecord::new(encoded.version, encoded.kind, (record.at, &time), &encoded.text[range]);
            prop_assert_eq!(&again, &encoded);
            prop_assert_eq!(again.decode(record.position).unwrap(), record);
        }
    }

    #[test]
    fn fields_of_a_newer_version_survive_in_their_order(
        record in record(), top in strategies::object(), inside in strategies::object(),
    ) {
        let text = record.encode().unwrap();
        let mut stored: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let unknown = |object: Map<String, Value>, mark: &str| -> Map<String, Value> {
            object.into_iter().map(|(name, value)| (format!("{mark} {name}"), value)).collect()
        };
        stored.extend(unknown(top, "top"));
        stored["data"].as_object_mut().unwrap().extend(unknown(inside, "inside"));
        let text = serde_json::to_string(&stored).unwrap();
        let again = Record::decode(record.position, &text).unwrap().encode().unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), Value::Object(stored.clone()));
        let order = |text: &str| -> Vec<String> {
            let fields: Map<String, Value> = serde_json::from_str(text).unwrap();
            fields.keys().filter(|name| name.starts_with("top")).cloned().collect()
        };
        prop_assert_eq!(order(&again), order(&text));
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in any::<Vec<u8>>()) {
        prop_assert!(Record::decode_within(Position::new(1), &bytes, JsonLimits::default()).is_err());
    }
}

fn problem(text: &[u8]) -> DecodeProblem {
    let error = Record::decode_within(Position::new(77), text, JsonLimits::default()).unwrap_err();
    assert_eq!(error.position, Position::new(77));
    assert!(error.to_string().contains("position 77"), "{error}");
    assert!(error.source().is_some());
    error.problem
}

fn fixture(kind: &str) -> Value {
    let (_, text) = fixtures().into_iter().find(|(name, _)| name == kind).unwrap();
    serde_json::from_str(&text).unwrap()
}

macro_rules! assert_problem {
    ($text:expr, $pattern:pat $(if $guard:expr)?) => {
        let text = $text;
        let problem = problem(text.as_ref());
        assert!(matches!(&problem, $pattern $(if $guard)?), "{problem:?} for {text:?}");
    };
}

#[test]
fn what_is_not_an_object_is_no_record() {
    for text in [
        "", " ", "null", "true", "1", "\"note\"", "[]", "[1,2]", "{", "{}x", "{\"v\":1", "not json",
        "{'v':1}",
    ] {
        assert_problem!(text, DecodeProblem::Malformed(_));
    }
    assert_problem!("{}", DecodeProblem::Missing { field: "v" });
}

#[test]
fn every_field_of_a_record_is_needed() {
    for field in ["v", "kind", "at", "data"] {
        let mut stored = fixture("note");
        stored.as_object_mut().unwrap().remove(field);
        assert_problem!(stored.to_string(), DecodeProblem::Missing { field: missing } if *missing == field);
    }
}

#[test]
fn every_field_of_data_that_has_no_default_is_needed_and_of_its_type() {
    for (kind, required) in [
        ("session_created", &["session_id", "created_at", "seed"][..]),
        ("evaluation_started", &["evaluation_id", "prompt_ns", "prompt_key"]),
        ("request_started", &["evaluation_id", "turn", "provider", "model"]),
        ("request_finished", &["evaluation_id", "turn", "attempt", "finish"]),
        ("request_failed", &["evaluation_id", "turn", "attempt", "kind", "message", "then"]),
        ("session_stopped", &["reason"]),
        ("message_appended", &["message_id", "evaluation_id", "sequence", "turn", "created_at", "message"]),
        ("call_started", &["call_id", "evaluation_id", "name", "effect", "idempotency_key", "attempt"]),
        ("slice_changed", &["slice", "version", "policy", "op"]),
        ("call_finished", &["call_id", "outcome", "elapsed_micros"]),
        ("budget_charged", &["amounts"]),
        ("rewound", &["to"]),
        ("paused", &["reason"]),
        ("resolved", &["decision"]),
        ("evaluation_finished", &["evaluation_id", "outcome"]),
        ("program_started", &["evaluation_id", "turn", "now", "seed", "interpreter"]),
        ("task_finished", &["evaluation_id", "turn", "path", "task"]),
        ("turn_finished", &["evaluation_id", "turn"]),
        ("workspace_isolated", &["project", "directory", "root"]),
        ("apply_started", &["directory", "base", "result", "before", "after", "next_base"]),
        ("apply_finished", &["started"]),
        ("note", &["topic", "text"]),
    ] {
        let stored = fixture(kind);
        assert!(Record::decode(Position::START, &stored.to_string()).is_ok(), "{kind}");
        for field in required {
            let mut without = stored.clone();
            without["data"].as_object_mut().unwrap().remove(*field).unwrap();
            assert_problem!(without.to_string(), DecodeProblem::Malformed(_));
            for wrong in [json!(null), json!([[]]), json!(-1.5)] {
                let mut typed = stored.clone();
                typed["data"][field] = wrong;
                assert_problem!(typed.to_string(), DecodeProblem::Malformed(_));
            }
        }
        for wrong in [json!(null), json!([]), json!("text"), json!(1), json!({})] {
            let mut typed = stored.clone();
            typed["data"] = wrong;
            assert_problem!(typed.to_string(), DecodeProblem::Malformed(_));
        }
    }
}

#[test]
fn kinds_and_versions_that_are_not_known_are_refused_by_name() {
    let mut stored = fixture("note");
    stored["kind"] = json!("teleported");
    assert_problem!(stored.to_string(), DecodeProblem::UnknownKind { kind } if kind == "teleported");
    for version in [0, 2, u32::MAX] {
        let mut stored = fixture("note");
        stored["v"] = json!(version);
        assert_problem!(
            stored.to_string(),
            DecodeProblem::UnknownVersion { kind, stored, known: 1 } if kind == "note" && *stored == version
        );
    }
    for version in [json!("1"), json!(-1), json!(1.0), json!(4_294_967_296u64), json!(null)] {
        let mut stored = fixture("note");
        stored["v"] = version;
        assert_problem!(stored.to_string(), DecodeProblem::Malformed(_));
    }
    for (field, wrong) in
        [("kind", json!(1)), ("at", json!(0)), ("at", json!("yesterday")), ("kind", json!(null))]
    {
        let mut stored = fixture("note");
        stored[field] = wrong;
        assert_problem!(stored.to_string(), DecodeProblem::Malformed(_));
    }
}

#[test]
fn what_is_too_long_or_too_deep_is_refused_before_it_is_parsed() {
    let deep = format!(r#"{{"v":1,"kind":"note","at":"2026-01-02T03:04:05Z","data":{}"#, "[".repeat(100_000));
    assert_problem!(deep, DecodeProblem::Limit(LimitExceeded::Depth { limit: 96 }));
    let mut stored = fixture("note");
    stored["data"]["data"] = (0..120).fold(json!(1), |inner, _| json!([inner]));
    assert_problem!(stored.to_string(), DecodeProblem::Limit(LimitExceeded::Depth { .. }));
    let text = fixture("note").to_string();
    let limits = JsonLimits { bytes: text.len() - 1, depth: 96 };
    let error = Record::decode_within(Position::START, text.as_bytes(), limits).unwrap_err();
    assert!(matches!(error.problem, DecodeProblem::Limit(LimitExceeded::Bytes { .. })));
    // Unknown fields may nest less deeply than known free-form values.
    let mut stored = fixture("note");
    stored["unknown"] = (0..70).fold(json!(1), |inner, _| json!([inner]));
    assert_problem!(stored.to_string(), DecodeProblem::NotStorable(NotStorable::TooDeep { .. }));
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    for (kind, field, number) in [
        ("rewound", "to", "18446744073709551616"),
        ("rewound", "to", "1e3"),
        ("rewound", "to", "-1"),
        ("call_started", "attempt", "4294967296"),
        ("call_finished", "elapsed_micros", "1e999"),
        ("note", "data", "1e999"),
    ] {
        let mut stored = fixture(kind);
        stored["data"][field] = json!("here");
        let text = stored.to_string().replace("\"here\"", number);
        assert_problem!(text, DecodeProblem::Malformed(_));
    }
}

#[test]
fn a_field_that_stands_twice_is_refused() {
    let text = fixture("note").to_string();
    for (field, value) in
        [("v", "1"), ("kind", "\"note\""), ("at", "\"2026-01-02T03:04:05Z\""), ("data", "{}")]
    {
        let twice = format!(r#"{},"{field}":{value}}}"#, &text[..text.len() - 1]);
        assert_problem!(twice, DecodeProblem::Duplicate { field: found } if found == field);
    }
    let unknown = format!(r#"{},"more":1,"more":2}}"#, &text[..text.len() - 1]);
    assert_problem!(unknown, DecodeProblem::Duplicate { field } if field == "more");
    let inside = text.replacen("\"data\":{", "\"data\":{\"topic\":\"again\",", 1);
    assert_problem!(inside, DecodeProblem::Malformed(_));
}

#[test]
fn text_that_is_not_unicode_is_refused() {
    let text = fixture("note").to_string();
    for bytes in [&[0xff][..], &[0xc0, 0x80], &[0xed, 0xa0, 0x80]] {
        for place in ["\"topic\":\"", "\"kind\":\"", "{\""] {
            let at = text.find(place).unwrap() + place.len();
            let broken = [&text.as_bytes()[..at], bytes, &text.as_bytes()[at..]].concat();
            assert_problem!(broken, DecodeProblem::Malformed(_));
        }
    }
    assert_problem!(text.replace("\"topic\":\"", "\"topic\":\"\\ud800"), DecodeProblem::Malformed(_));
}

fn note(data: Value) -> Record {
    let (topic, text) = ("a topic".to_owned(), "a line".to_owned());
    let body = Note::new(topic, text).with_data(data).into();
    Record { position: Position::new(1), at: time(0), body, extra: Extra::default() }
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert!(note(nested(90)).encode().is_ok());
    let deep = note(nested(100)).encode().unwrap_err();
    assert!(matches!(deep, EncodeError::Limit(LimitExceeded::Depth { .. })), "{deep:?}");
    let key = note(json!({"$serde_json::private::RawValue": "[1]"})).encode().unwrap_err();
    assert!(matches!(key, EncodeError::NotStorable(NotStorable::PrivateKey)), "{key:?}");
    // Such a key inside of a text is allowed.
    let spoken = note(json!("$serde_json::private::RawValue"));
    assert_eq!(Record::decode(Position::new(1), &spoken.encode().unwrap()).unwrap(), spoken);
    for field in ["v", "kind", "at", "data"] {
        let mut record = note(Value::Null);
        let fields: Map<String, Value> = [(field.to_owned(), json!(1))].into_iter().collect();
        record.extra = fields.try_into().unwrap();
        let error = record.encode().unwrap_err();
        assert!(matches!(error, EncodeError::Ambiguous { field: found } if found == field), "{error:?}");
    }
}
