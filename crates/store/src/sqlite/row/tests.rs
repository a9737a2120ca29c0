use backstitch_core::budget::Amounts;
use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{InnerMessage, Position, Record, RecordBody};
use backstitch_core::message::{Content, Message, OptionResult, PolicyName, RoleHint};
use backstitch_core::session::{Slice as _, StoredChange, StoredOp};
use backstitch_core::slices::{RunContext, ToolInvoked, excerpt};
use backstitch_testkit::sample;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::schema::{self, SchemaState, VERSION};
use super::*;

const ALONE: RowContext<'_> = RowContext { session: "s", before: None };

/// Restores the text of each record in a journal from its row, and returns the forms of the rows.
fn restored(session: &str, texts: &[String]) -> Vec<Form> {
    let mut before = None;
    let mut forms = Vec::new();
    for text in texts {
        let context = RowContext { session, before };
        let row = RecordRow::of(text, context);
        assert!(row.record.len() <= text.len(), "{text} became {}", row.record);
        forms.push(row.form());
        assert_eq!(text_of(row, context).as_deref(), Some(text.as_str()));
        before = Some(text);
    }
    forms
}

fn text_of(row: RecordRow<'_>, context: RowContext<'_>) -> Option<String> {
    row.text(context).map(|text| text.into_text().into_owned())
}

fn encode(record: &Record) -> String {
    record.encode().unwrap()
}

#[test]
fn kinds_have_numbers() {
    for (kind, version) in RecordBody::KINDS {
        assert!(
            number_of(*version, kind, Form::Data).is_some(),
            "a migration gives {kind} version {version} a number"
        );
    }
    let connection = Connection::open_in_memory().unwrap();
    schema::migrate(&connection, SchemaState::Empty, VERSION, Timestamp::UNIX_EPOCH).unwrap();
    let mut sql =
        connection.prepare("SELECT number, version, kind, is_whole FROM kinds ORDER BY number").unwrap();
    let stored = sql.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    let stored: Vec<(i64, u32, String, bool)> = stored.collect::<Result<_, _>>().unwrap();
    let known = KINDS.iter().zip(1..);
    let known = known.map(|(row, number)| (number, row.version, row.kind.to_owned(), row.form == Form::Data));
    assert_eq!(stored, known.collect::<Vec<_>>(), "the table `kinds` says the same");
}

#[test]
fn texts_are_restored_byte_for_byte() {
    let split = [
        r#"{"v":1,"kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{"text":"a \"}\" b"}}"#,
        r#"{"v":1,"kind":"rewound","at":"1970-01-01T00:00:00.000000Z","data":{}}"#,
        r#"{"v":1,"kind":"message_appended","at":"1970-01-01T00:00:00.000000Z","data":{}}"#,
    ];
    let whole = [
        r#"{"v":2,"kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{}}"#,
        r#"{"v":01,"kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{}}"#,
        r#"{"v":1,"kind":"nota","at":"2026-01-02T03:04:05.000006Z","data":{}}"#,
        r#"{"v":1,"kind":"note","at":"2026-01-02T03:04:05Z","data":{}}"#,
        r#"{"v":1,"kind":"note","at":"1969-01-02T03:04:05.000006Z","data":{}}"#,
        r#"{"v":1,"kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{},"more":1}"#,
        r#"{"v":1, "kind":"note","at":"2026-01-02T03:04:05.000006Z","data":{}}"#,
        r#"{"at":"x"}"#,
        "",
    ];
    for (texts, is_split) in [(&split[..], true), (&whole[..], false)] {
        for text in texts {
            let row = RecordRow::of(text, ALONE);
            assert_eq!(row.head.is_some(), is_split, "{text}");
            assert_eq!(text_of(row, ALONE).as_deref(), Some(*text));
        }
    }
}

#[test]
fn texts_of_sample_journals_are_restored() {
    let journals = [sample::every_kind(), sample::conversation(5)];
    for journal in journals.into_iter().chain((1..40).map(|seed| sample::journal(seed, 20))) {
        let (records, session) = (journal.records(), journal.session.to_string());
        let texts: Vec<String> = records.iter().map(encode).collect();
        restored(&session, &texts);
        // What is prepared while a record is encoded is the same.
        for (index, (record, text)) in records.iter().zip(&texts).enumerate() {
            let before = index.checked_sub(1).map(|before| texts[before].as_str());
            let context = RowContext { session: &session, before };
            let prepared = PreparedRecord::new(record.encode_parts().unwrap(), context);
            assert_eq!((prepared.text(), prepared.row()), (text.as_str(), RecordRow::of(text, context)));
        }
    }
}

#[test]
fn unknown_numbers_are_no_text() {
    for head in [(0, 0), (-1, 0), (1_000, 0), (i64::MAX, 0), (1, i64::MAX), (26, 0), (27, 0), (28, 0)] {
        let row = RecordRow { head: Some(head), record: Cow::Borrowed("{}") };
        assert_eq!(text_of(row, RowContext { session: "s", before: Some("{}") }), None, "{head:?}");
    }
}

fn time(micros: i64) -> Timestamp {
    Timestamp::from_unix_micros(1_767_225_600_000_000 + micros).unwrap()
}

/// The result of a call.
fn result(content: OptionResult) -> InnerMessage {
    let mut message = Message::new(PolicyName::new("sew").unwrap(), Content::OptionResult(content));
    message.role_hint_for_llm = Some(RoleHint::Tool);
    message.step_num = Some(3);
    let evaluation: EvaluationId = sample::ids(7).next();
    let message =
        InnerMessage::new(evaluation, message, &sample::ids(8)).of_prompt("shop", "tailor").at(4, 3);
    InnerMessage { created_at: time(0), ..message }
}

fn invoked(message: &InnerMessage, rendered_output: String) -> ToolInvoked {
    let result = message.message.option_result().unwrap();
    ToolInvoked {
        call_id: result.invocation_id,
        prompt_name: "shop/tailor".into(),
        adapter: "scripted".into(),
        name: result.option_name.clone(),
        params: Some(json!({"hem": "left"})),
        success: !result.is_error,
        rendered_output,
        usage: None,
        run: RunContext::new(sample::session(1), message.evaluation_id),
        created_at: message.created_at,
        extra: Extra::default(),
    }
}

fn change(item: &ToolInvoked) -> StoredChange {
    StoredChange {
        slice: ToolInvoked::NAME.to_owned(),
        version: ToolInvoked::VERSION,
        policy: ToolInvoked::POLICY,
        op: StoredOp::Append(serde_json::to_value(item).unwrap()),
        extra: Extra::default(),
    }
}

fn pair(message: &InnerMessage, item: &ToolInvoked) -> Vec<String> {
    let bodies: [RecordBody; 2] = [message.clone().into(), change(item).into()];
    let records = bodies.into_iter().zip(0..).map(|(body, at)| Record::new(Position::new(at), time(0), body));
    records.map(|record| encode(&record)).collect()
}

#[test]
fn what_a_log_item_repeats_is_stored_once() {
    let session = sample::session(1).to_string();
    let call: CallId = sample::ids(9).next();
    let long = "ä\"\\\n".repeat(400);
    let ok = |value: Value| OptionResult::new(call, "sew", value);
    let failed = OptionResult {
        is_error: true,
        error_message: Some(long.clone()),
        ..OptionResult::new(call, "sew", Value::Null)
    };
    let cases = [
        (ok(json!({"text": long})), excerpt(&json!({"text": long}).to_string())),
        (ok(json!({"text": "short", "number": 1.50})), json!({"text": "short", "number": 1.50}).to_string()),
        (ok(json!("in words")), "in words".to_owned()),
        (ok(json!("as JSON")), "\"as JSON\"".to_owned()),
        (ok(json!({"message": "in \"words\"", "value": 1})), "in \"words\"".to_owned()),
        (failed, excerpt(&long)),
    ];
    for (content, shown) in cases {
        let message = result(content);
        let item = invoked(&message, shown);
        let texts = pair(&message, &item);
        assert_eq!(restored(&session, &texts), [Form::Message, Form::Invocation], "{texts:?}");
        let row = RecordRow::of(&texts[1], RowContext { session: &session, before: Some(&texts[0]) });
        assert!(row.record.len() < 80, "{}", row.record);
        // Without the record before it, it is stored with all of its data.
        assert_eq!(
            RecordRow::of(&texts[1], RowContext { session: &session, before: None }).form(),
            Form::Data
        );

        // A null in the row would be read as a missing name.
        let unnamed = texts[1].replace(r#""prompt_name":"shop/tailor""#, r#""prompt_name":null"#);
        assert_ne!(unnamed, texts[1]);
        assert_eq!(restored(&session, &[texts[0].clone(), unnamed]), [Form::Message, Form::Data]);

        let others = [
            ToolInvoked { rendered_output: "another".into(), ..item.clone() },
            ToolInvoked { success: !item.success, ..item.clone() },
            ToolInvoked { name: "another".into(), ..item.clone() },
            ToolInvoked { usage: Some(Amounts::default()), ..item.clone() },
            ToolInvoked { run: RunContext { attempt: 2, ..item.run.clone() }, ..item.clone() },
            ToolInvoked { run: RunContext::new(sample::session(2), message.evaluation_id), ..item.clone() },
        ];
        for item in others {
            assert_eq!(restored(&session, &pair(&message, &item)), [Form::Message, Form::Data], "{item:?}");
        }
        let variants = [
            ToolInvoked { params: None, ..item.clone() },
            ToolInvoked { prompt_name: "The \"tailor\"".into(), ..item.clone() },
            ToolInvoked { created_at: time(5), ..item.clone() },
        ];
        for item in variants {
            assert_eq!(
                restored(&session, &pair(&message, &item)),
                [Form::Message, Form::Invocation],
                "{item:?}"
            );
        }
    }
}

#[test]
fn a_row_can_be_made_independent_of_the_one_before() {
    let session = sample::session(1).to_string();
    let call: CallId = sample::ids(9).next();
    let message = result(OptionResult::new(call, "sew", json!("a secret")));
    let texts = pair(&message, &invoked(&message, "a secret".to_owned()));
    let connection = Connection::open_in_memory().unwrap();
    schema::migrate(&connection, SchemaState::Empty, VERSION, Timestamp::UNIX_EPOCH).unwrap();
    let checksum = Checksum::start(sample::session(1));
    let before = RowContext { session: &session, before: None };
    RecordRow::of(&texts[0], before).insert(&connection, 7, checksum).unwrap();
    let after = RowContext { session: &session, before: Some(&texts[0]) };
    RecordRow::of(&texts[1], after).insert(&connection, 8, checksum).unwrap();

    detach_next(&connection, &session, 8).unwrap();
    for _ in 0..2 {
        detach_next(&connection, &session, 7).unwrap();
        RecordRow::of(r#"{"replaced":true}"#, before).replace(&connection, 7).unwrap();
    }
    let text: String = connection
        .query_row(&format!("SELECT {TEXT_COLUMNS} FROM records WHERE id = 8"), [], |row| {
            Ok(text_in(row, 0, before).unwrap().unwrap().into_text().into_owned())
        })
        .unwrap();
    assert_eq!(text, texts[1]);
}

/// Texts that look like the fields that rows leave out.
fn tricky() -> impl Strategy<Value = String> {
    let parts = [
        r#","created_at":""#,
        r#","message":{"#,
        r#","role_hint_for_llm":"tool""#,
        r#","step_num":3"#,
        r#","content":{"kind":"option_result""#,
        r#","turn":9,"#,
        r#","idempotency_key":"a/b""#,
        r#","attempt":1"#,
        "plain",
        "\\",
        "\"",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..4).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn messages_are_restored(
        (text, ns, key) in (tricky(), tricky(), tricky()),
        hint in prop::option::of(prop::sample::select(vec![RoleHint::Assistant, RoleHint::Tool, RoleHint::User])),
        step in prop::option::of(2_u64..5),
        (turn, sequence, late) in (2_u64..5, 0_u64..3, 0_i64..2),
        form in 0..4,
    ) {
        let call: CallId = sample::ids(9).next();
        let object = json!({"step_num": 3, "content": {"kind": text}, "message": {"attempt": 1}, "x": text});
        let content = match form {
            0 => Content::OptionResult(OptionResult::new(call, text.clone(), object)),
            1 => Content::OptionResult(OptionResult::new(call, "sew", json!(text))),
            2 => serde_json::from_value(
                json!({"kind": "option_call", "invocation_id": call, "option_name": text, "arguments": object}),
            ).unwrap(),
            _ => serde_json::from_value(json!({"kind": "parts", "parts": [{"kind": "text", "text": text}]})).unwrap(),
        };
        let mut message = Message::new(PolicyName::new("sew").unwrap(), content);
        (message.role_hint_for_llm, message.step_num) = (hint, step);
        let message = InnerMessage::new(sample::ids(7).next(), message, &sample::ids(8));
        let message = message.of_prompt(ns, key).at(sequence, turn);
        let message = InnerMessage { created_at: time(late), ..message };
        let text = encode(&Record::new(Position::new(1), time(0), message));
        let forms = restored("session", std::slice::from_ref(&text));
        // What the runtime writes is stored without what follows.
        if hint.is_some() && step.is_some() {
            prop_assert_eq!(forms, [Form::Message]);
        }
    }

    #[test]
    fn any_text_is_restored(text in any::<String>(), data in tricky(), name in tricky(), before in tricky()) {
        let texts = [
            text.clone(),
            format!(r#"{{"v":1,"kind":"message_appended","at":"2026-01-02T03:04:05.000006Z","data":{{{data}}}}}"#),
            format!(r#"{{"v":1,"kind":"call_started","at":"2026-01-02T03:04:05.000006Z","data":{{"call_id":"b"{data}}}}}"#),
            format!(r#"{{"v":1,"kind":"slice_changed","at":"2026-01-02T03:04:05.000006Z","data":{data}}}"#),
        ];
        for text in &texts {
            let context = RowContext { session: &name, before: Some(&before) };
            let row = RecordRow::of(text, context);
            let restored = text_of(row, context);
            prop_assert_eq!(restored.as_deref(), Some(text.as_str()));
        }
    }
}
