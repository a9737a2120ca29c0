//! Redaction of records: the value is gone, and the record is still a record.

use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::journal::{
    ApprovalSubject, CallFinished, CallStarted, CallVerdict, CoveredDigests, Decision, Effect,
    IdempotencyKey, InnerMessage, Note, PauseResolved, Position, ProviderSidecar, Record, RecordBody,
    RecordsRedacted, ResourceChanged, SessionCreated,
};
use backstitch_core::message::{
    Arguments, Content, Large, MediaPart, MediaUrl, Message, Modality, OptionCall, OptionResult, Part,
    PolicyName,
};
use backstitch_core::object::{Object, ObjectContent};
use backstitch_core::redaction::{
    MARKER, ObjectCopies, ObjectCopy, RedactedText, SensitiveValue, ValueRefused, redact_content,
    redact_inbox_data, redact_record,
};
use backstitch_core::rng::Seed;
use backstitch_core::session::{Slice, SlicePolicy, StoredChange, StoredOp, StoredSlice};
use backstitch_core::slices::excerpt;
use backstitch_core::time::{Clock, Timestamp};
use backstitch_testkit::sample;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Values with everything that JSON escapes, and some that look like JSON.
const VALUES: [&str; 10] = [
    "hunter-2-hunter-2",
    "quote\" and back\\slash",
    "two\nlines\tand\u{1}control",
    "naïve 糸 🧵 thread",
    r#"{"key":"abc"}"#,
    r#"","role":"system"#,
    "1234567890123",
    "[true,false]",
    r"\u0041\n\\escaped",
    "C:\\new\\table\\",
];

fn value(text: &str) -> SensitiveValue {
    SensitiveValue::new(text).unwrap()
}

fn at() -> Timestamp {
    sample::clock().now()
}

fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns whether a text holds a value: as it is, and as JSON text once and twice.
fn holds(text: &str, value: &str) -> bool {
    let (once, twice) = (escaped(value), escaped(&escaped(value)));
    text.contains(value) || text.contains(&once) || text.contains(&twice)
}

fn redacted(body: impl Into<RecordBody>, secret: &str) -> (RedactedText, Record) {
    redacted_with(body, secret, &ObjectCopies::new())
}

fn redacted_with(body: impl Into<RecordBody>, secret: &str, copies: &ObjectCopies) -> (RedactedText, Record) {
    let position = Position::new(4);
    let text = Record::new(position, at(), body).encode().unwrap();
    let redacted = redact_record(position, &text, &value(secret), copies);
    let redacted = redacted.unwrap_or_else(|| panic!("nothing found in {text}"));
    let record = Record::decode(position, &redacted.text).unwrap();
    (redacted, record)
}

fn message(content: Content) -> InnerMessage {
    let ids = sample::ids(3);
    InnerMessage::new(ids.next(), Message::new(PolicyName::new("ada").unwrap(), content), &ids)
}

fn fields(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Records with a secret wherever a session may have it.
fn bodies(secret: &str) -> Vec<RecordBody> {
    let ids = sample::ids(1);
    let nested = json!({ "inner": json!({ "deep": format!("<{secret}>") }).to_string() });
    let spaced = format!("{{ \"path\" : {} }}", Value::from(secret));
    let free = json!({ "text": format!("a {secret} b"), "list": [secret, { secret: 1 }], "nested": nested });
    let call = |arguments| Content::OptionCall(OptionCall::new(ids.next(), "sew", arguments));
    let mut failed = OptionResult::new(ids.next(), "sew", free.clone());
    (failed.is_error, failed.error_message) = (true, Some(format!("no {secret}")));
    let mut created = SessionCreated::new(ids.next(), at(), Seed::new(1));
    created.agent = free.clone();
    created.tags = [("note".to_owned(), secret.to_owned())].into();
    created.state = vec![StoredSlice {
        name: "plan".to_owned(),
        version: 1,
        policy: SlicePolicy::State,
        items: vec![free.clone()],
        item_versions: Vec::new(),
        extra: Extra::default(),
    }];
    let changed = |op| StoredChange {
        slice: "plan".to_owned(),
        version: 1,
        policy: SlicePolicy::State,
        op,
        extra: Extra::default(),
    };
    let (call_id, evaluation_id) = (ids.next(), ids.next());
    let covered = CoveredDigests::from([(format!("the file {secret}"), Digest::of(b"seam"))]);
    let subject = ApprovalSubject::new(&fields(json!({})), covered);
    vec![
        created.into(),
        message(Content::Parts(vec![Part::text(format!("it is {secret}.")), Part::text(secret)].into()))
            .into(),
        message(call(Arguments::from_object(fields(free.clone())))).into(),
        message(call(Arguments::from_text(spaced))).into(),
        message(call(Arguments::from_text(format!("{{ \"cut\": {}", Value::from(secret))))).into(),
        message(Content::OptionResult(OptionResult::new(ids.next(), "sew", free.clone()))).into(),
        message(Content::OptionResult(failed)).into(),
        changed(StoredOp::Append(free.clone())).into(),
        changed(StoredOp::Patch { remove: vec![0, 1], append: vec![free.clone(), json!(secret)] }).into(),
        ResourceChanged::new("spool", free.clone()).into(),
        PauseResolved::new(Decision::Edit { arguments: fields(free.clone()) }).into(),
        PauseResolved::new(Decision::Deny { reason: Some(format!("not {secret}")) }).into(),
        PauseResolved { subject: Some(subject), ..PauseResolved::new(Decision::Approve) }.into(),
        Note::new("note", format!("noted {secret}")).with_data(free.clone()).into(),
        CallStarted {
            call_id,
            evaluation_id,
            name: "sew".to_owned(),
            arguments: Some(fields(free).into()),
            effect: Effect::External,
            idempotency_key: IdempotencyKey::new(ids.next(), call_id),
            attempt: 1,
            root: None,
            coverage: None,
            reservation: None,
            session: None,
            extra: Extra::default(),
        }
        .into(),
    ]
}

#[test]
fn a_value_is_replaced_wherever_a_record_holds_it() {
    for secret in VALUES {
        for body in bodies(secret) {
            let kind = body.kind();
            let (redacted, record) = redacted(body, secret);
            assert!(!holds(&redacted.text, secret), "{secret:?} in {kind}: {}", redacted.text);
            assert!(redacted.replacements > 0 && redacted.kept == 0, "{secret:?} in {kind}: {redacted:?}");
            assert_eq!(record.body.kind(), kind);
            assert!(redacted.text.contains("redacted") || redacted.text.contains(":0"), "{}", redacted.text);
            // Once is enough.
            let again = redact_record(record.position, &redacted.text, &value(secret), &ObjectCopies::new());
            assert_eq!(again, None, "{secret:?} in {kind}");
        }
    }
}

#[test]
fn arguments_stay_readable() {
    let secret = "a \"secret\"\n";
    let spaced = format!("{{ \"path\" : {}, \"n\": 1.50 }}", Value::from(secret));
    let call = OptionCall::new(sample::ids(1).next(), "sew", Arguments::from_text(spaced));
    let (_, record) = redacted(message(Content::OptionCall(call)), secret);
    let RecordBody::MessageAppended(message) = &record.body else { panic!("{record:?}") };
    let arguments = &message.message.option_call().unwrap().arguments;
    assert_eq!(arguments.object(), Some(&fields(json!({ "path": MARKER, "n": 1.50 }))));
    assert_eq!(arguments.text(), format!("{{ \"path\" : \"{MARKER}\", \"n\": 1.50 }}"));
}

#[test]
fn numbers_become_zero_only_in_free_data() {
    let (redacted_note, record) = redacted(
        Note::new("note", "pin").with_data(json!({ "pin": 1234567890123u64, "list": [-1234567890123i64] })),
        "1234567890123",
    );
    let RecordBody::Note(note) = &record.body else { panic!("{record:?}") };
    assert_eq!(note.data.inline(), Some(&json!({ "pin": 0, "list": [0] })));
    assert_eq!(redacted_note.replacements, 2);

    // The position of a rewind is not data.
    let rewound = backstitch_core::journal::SessionRewound::new(Position::new(1234567890));
    let (redacted, record) = redacted(rewound, "1234567890");
    assert_eq!((redacted.replacements, redacted.kept), (0, 1));
    let RecordBody::Rewound(rewound) = &record.body else { panic!("{record:?}") };
    assert_eq!(rewound.to, Position::new(1234567890));
}

#[test]
fn what_gives_a_record_its_structure_stays_and_is_counted() {
    let ids = sample::ids(1);
    let call_id = ids.next();
    let result = OptionResult::new(call_id, "secret_tool", json!("used secret_tool"));
    let (redacted_name, record) = redacted(message(Content::OptionResult(result)), "secret_tool");
    let RecordBody::MessageAppended(said) = &record.body else { panic!("{record:?}") };
    let result = said.message.option_result().unwrap();
    assert_eq!(result.option_name, "secret_tool");
    assert_eq!(result.result.inline(), Some(&json!(format!("used {MARKER}"))));
    assert_eq!((redacted_name.replacements, redacted_name.kept), (1, 1));

    // A field name, a part of an id, a time, a word with a fixed meaning.
    for secret in ["message_id", "01890a5d", "2026-01-01", "option_result", "message_appended"] {
        let text = Note::new("note", format!("about {secret}"));
        let (redacted_note, _) = redacted(text, secret);
        assert!(!redacted_note.text.contains(&format!("about {secret}")));
        let result = OptionResult::new(call_id, "sew", json!(secret));
        let body = message(Content::OptionResult(result));
        let (redacted, record) = redacted(body.clone(), secret);
        let RecordBody::MessageAppended(said) = &record.body else { panic!("{record:?}") };
        assert_eq!((said.message_id, said.created_at), (body.message_id, body.created_at));
        assert_eq!(said.message.option_result().unwrap().result.inline(), Some(&json!(MARKER)));
        assert!(redacted.kept > 0 || secret == "01890a5d", "{secret}: {redacted:?}");
    }
}

#[test]
fn the_address_of_media_stays_an_address() {
    let url = MediaUrl::new("https://example.org/hat.png?token=hunter-2-hunter-2").unwrap();
    let parts = vec![Part::from(MediaPart::new(Modality::Image, url))];
    let (redacted, record) = redacted(message(Content::Parts(parts.into())), "hunter-2-hunter-2");
    let RecordBody::MessageAppended(said) = &record.body else { panic!("{record:?}") };
    let media = said.message.parts().unwrap()[0].as_media().unwrap();
    assert!(media.url.as_str().starts_with("https://example.org/hat.png?token="), "{redacted:?}");
    assert_eq!(redacted.kept, 0);
}

#[test]
fn a_payload_with_the_value_is_dropped() {
    let secret = "hunter-2-hunter-2";
    let mut said = message(Content::Parts(vec![Part::text("hello")].into()));
    let payload = json!({ "signature": "abc", "text": secret }).to_string();
    said.provider = Some(Box::new(ProviderSidecar {
        provider: "sample".to_owned(),
        model: "sample-1".to_owned(),
        payload: Some(payload.into()),
        ..ProviderSidecar::default()
    }));
    let (_, record) = redacted(said.clone(), secret);
    let sidecar = sidecar_of(&record);
    assert!(sidecar.payload.is_none() && sidecar.payload_redacted);

    // A large one is an object, and has no copy that could be right.
    let large = Object::blob(*b"large");
    said.provider.as_mut().unwrap().payload = Some(Large::Object(large.to_ref()));
    let copies = ObjectCopies::from([(large.id(), ObjectCopy::from(&Object::blob(*b"copy")))]);
    let (_, record) = redacted_with(said.clone(), secret, &copies);
    let sidecar = sidecar_of(&record);
    assert!(sidecar.payload.is_none() && sidecar.payload_redacted);

    // One that a redaction of another session removed.
    let mut read = said;
    read.hydrate_content(|_| Some(ObjectContent::Redacted)).unwrap();
    let sidecar = read.provider.unwrap();
    assert!(sidecar.payload.is_none() && sidecar.payload_redacted);
}

fn sidecar_of(record: &Record) -> ProviderSidecar {
    let RecordBody::MessageAppended(said) = &record.body else { panic!("{record:?}") };
    said.provider.as_deref().cloned().unwrap()
}

#[test]
fn records_name_the_copies_of_objects() {
    let (large, copy) = (Object::blob(vec![b'x'; 70_000]), Object::blob(*b"short"));
    let copies = ObjectCopies::from([(large.id(), ObjectCopy::from(&copy))]);
    let mut result = OptionResult::new(sample::ids(1).next(), "sew", Value::Null);
    result.result = Large::Object(large.to_ref());
    let (media, _) = MediaPart::held(Modality::Document, large.bytes().clone());
    result.parts = vec![media.into()];
    let body = message(Content::OptionResult(result));
    let (redacted, record) = redacted_with(body, "hunter-2-hunter-2", &copies);
    let RecordBody::MessageAppended(said) = &record.body else { panic!("{record:?}") };
    let result = said.message.option_result().unwrap();
    assert_eq!(result.result, Large::Object(copy.to_ref()));
    let media = result.parts[0].as_media().unwrap();
    assert_eq!(media.url, MediaUrl::blob(copy.id()));
    assert_eq!(media.digest, Some(Digest::of(copy.bytes())));
    assert!(!redacted.text.contains(&large.id().to_string()));

    // The record of the redaction keeps the names of both.
    let done = RecordsRedacted {
        objects: vec![backstitch_core::journal::ObjectRedacted {
            object: large.id(),
            replacement: Some(copy.id()),
        }],
        ..RecordsRedacted::default()
    };
    let record = Record::new(Position::new(1), at(), done);
    let text = record.encode().unwrap();
    assert_eq!(redact_record(record.position, &text, &value("hunter-2-hunter-2"), &copies), None);
}

#[test]
fn content_without_the_value_is_of_the_same_form() {
    for secret in VALUES {
        let json = json!({ "a": format!("x{secret}y"), secret: [1, true], "n": 1.5 }).to_string();
        let redacted = String::from_utf8(redact_content(json.as_bytes(), &value(secret))).unwrap();
        assert!(!holds(&redacted, secret), "{redacted}");
        let read: Value = serde_json::from_str(&redacted).unwrap();
        assert_eq!(read["n"], 1.5);

        let text = format!("a line\nkey = {secret}\n{}", escaped(secret));
        let redacted = String::from_utf8(redact_content(text.as_bytes(), &value(secret))).unwrap();
        assert!(!holds(&redacted, secret) && redacted.starts_with("a line\nkey = "), "{redacted}");

        let bytes = [b"\xff\x00", secret.as_bytes(), b"\xfe"].concat();
        let redacted = redact_content(&bytes, &value(secret));
        assert_eq!(redacted, [b"\xff\x00", MARKER.as_bytes(), b"\xfe"].concat());
    }
    // What would come together again is replaced whole.
    let overlapping = "ed]ed]ed]";
    let redacted = redact_content(format!("{overlapping}ed]ed]").as_bytes(), &value(overlapping));
    assert!(!holds(&String::from_utf8(redacted).unwrap(), overlapping));
}

#[test]
fn a_text_that_was_cut_inside_of_the_value_keeps_nothing_of_it() {
    let finished = |summary: &str| CallFinished {
        summary: Some(summary.to_owned()),
        ..CallFinished::new(sample::ids(1).next(), CallVerdict::Succeeded)
    };
    for (secret, summary, expected) in [
        ("hunter-2-hunter-2", "the password is hunter-2-hu...", "the password is [redacted]..."),
        ("first line\nsecond", "it says first line", "it says [redacted]"),
    ] {
        let (redacted, record) = redacted(finished(summary), secret);
        assert_eq!((redacted.replacements, redacted.kept), (1, 0));
        let RecordBody::CallFinished(finished) = &record.body else { panic!("{record:?}") };
        assert_eq!(finished.summary.as_deref(), Some(expected));
    }
    let shown = excerpt(&format!("{}{}", "x".repeat(990), r#"quote" and back\slash"#));
    let (redacted, _) = redacted(Note::new("log", shown), r#"quote" and back\slash"#);
    assert!(redacted.text.contains("x[redacted]…"), "{}", redacted.text);

    let position = Position::new(4);
    let text = Record::new(position, at(), finished("the password is hunter...")).encode().unwrap();
    assert_eq!(redact_record(position, &text, &value("another-value"), &ObjectCopies::new()), None);
}

#[test]
fn inbox_items_are_redacted() {
    let secret = "say \"it\" again";
    let data = json!({ "text": format!("<{secret}>"), "evaluation_id": "x" }).to_string();
    let redacted = redact_inbox_data(&data, &value(secret)).unwrap();
    assert_eq!(redacted.text, json!({ "text": format!("<{MARKER}>"), "evaluation_id": "x" }).to_string());
    assert_eq!(redact_inbox_data(&redacted.text, &value(secret)), None);
}

#[test]
fn values_that_cannot_be_redacted_are_refused() {
    assert_eq!(SensitiveValue::new("1234567").unwrap_err(), ValueRefused::TooShort { characters: 7 });
    assert_eq!(SensitiveValue::new("äöüßäöü").unwrap_err(), ValueRefused::TooShort { characters: 7 });
    assert!(SensitiveValue::new("äöüßäöüß").is_ok());
    for part in ["redacted", "[redacted", MARKER] {
        assert_eq!(SensitiveValue::new(part).unwrap_err(), ValueRefused::Marker);
    }
    assert_eq!(format!("{:?}", value("hunter-2-hunter-2")), "SensitiveValue");
}

#[test]
fn a_conversation_that_a_session_starts_from_can_still_be_loaded() {
    let said = message(Content::Parts(vec![Part::text("the message_id is secret")].into()));
    let mut created = SessionCreated::new(sample::ids(1).next(), at(), Seed::new(1));
    created.state = vec![StoredSlice::of::<InnerMessage>(&[said.into()]).unwrap()];
    let text = Record::new(Position::START, at(), created).encode().unwrap();
    let redacted = redact_record(Position::START, &text, &value("message_id"), &ObjectCopies::new()).unwrap();
    assert!(redacted.kept > 0 && redacted.text.contains(&format!("the {MARKER} is secret")), "{redacted:?}");
    let record = Record::decode(Position::START, &redacted.text).unwrap();
    let view = backstitch_core::view::JournalView::fold(&[record]).unwrap();
    assert_eq!(view.transcript().unwrap().all().len(), 1);
    assert_eq!(InnerMessage::NAME, "inner_message");
}

/// Texts of ordinary and of troublesome characters.
fn secrets() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "a", "Z", "7", "-", " ", "\"", "\\", "\n", "\t", "\u{1}", "/", "{", "}", "[", "]", ":", ",", "é",
        "🧵", "n", "u0041", "\\\"", "key", "null", "redact",
    ]);
    prop::collection::vec(parts, 6..14).prop_map(|parts| parts.concat()).prop_filter(
        "a value that is a part of the structure",
        |value| {
            let plain = Record::new(Position::START, at(), bodies("x").remove(0)).encode().unwrap();
            SensitiveValue::new(value).is_ok() && !plain.contains(value.as_str())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_value_is_replaced_in_any_place(secret in secrets(), before in "[a-z\\\\\"]{0,3}", after in "[a-z\\\\\"]{0,3}") {
        let around = format!("{before}{secret}{after}");
        for body in bodies(&around) {
            let kind = body.kind();
            let (redacted, record) = redacted(body, &secret);
            prop_assert!(!holds(&redacted.text, &secret), "{:?} in {}: {}", secret, kind, redacted.text);
            prop_assert_eq!(record.body.kind(), kind);
            prop_assert_eq!(redacted.kept, 0);
        }
        let content = redact_content(around.as_bytes(), &value(&secret));
        prop_assert!(!holds(&String::from_utf8_lossy(&content), &secret));
    }
}
