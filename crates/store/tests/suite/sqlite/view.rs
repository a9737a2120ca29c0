//! The view `journal`: what plain SQLite shows of records.

use std::process::Command;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Position, Record, RecordBody};
use backstitch_core::ports::{ClaimMode, Store as _};
use backstitch_testkit::{block_on, sample};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::support::{Temporary, claim, read, write};

/// A row of the view.
#[derive(Debug)]
struct Shown {
    at: String,
    kind: String,
    data: String,
    record: Option<String>,
}

fn shown(raw: &Connection, session: SessionId) -> Vec<Shown> {
    let sql = "SELECT position, at, kind, data, record FROM journal WHERE session = ?1 ORDER BY position";
    let mut sql = raw.prepare(sql).unwrap();
    let rows = sql.query_map([session.to_string()], |row| {
        let shown = Shown { at: row.get(1)?, kind: row.get(2)?, data: row.get(3)?, record: row.get(4)? };
        Ok((row.get::<_, u32>(0)?, shown))
    });
    let rows = rows.unwrap().enumerate().map(|(index, row)| {
        let (position, shown) = row.unwrap();
        assert_eq!(position as usize, index);
        shown
    });
    rows.collect()
}

/// Checks that the view shows each record, and returns how many are shown without what follows from others.
fn check(raw: &Connection, session: SessionId, records: &[Record]) -> usize {
    let rows = shown(raw, session);
    assert_eq!(rows.len(), records.len());
    let mut shorter = 0;
    for (row, record) in rows.iter().zip(records) {
        let whole = record.encode().unwrap();
        let stored: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!((json!(row.at), json!(row.kind)), (stored["at"].clone(), stored["kind"].clone()));
        let data: Value = serde_json::from_str(&row.data).unwrap();
        match &row.record {
            Some(record) => {
                assert_eq!(*record, whole);
                assert_eq!(data, stored["data"]);
            }
            None => {
                shorter += 1;
                assert!(row.data.len() < whole.len());
                // Texts, arguments and results are always there.
                if let RecordBody::MessageAppended(_) = &record.body {
                    assert_eq!(data["message"]["content"], stored["data"]["message"]["content"]);
                }
            }
        }
    }
    shorter
}

#[test]
fn the_view_shows_every_kind_of_record() {
    for journal in [sample::every_kind(), sample::conversation(4), sample::journal(5, 30)] {
        let store = Temporary::new();
        write(&*store, &journal);
        let records = read(&*store, journal.session).unwrap();
        let raw = Connection::open(store.path()).unwrap();
        let shorter = check(&raw, journal.session, &records);
        assert!(shorter < records.len());

        // Rows that hold the whole text, as those of older versions do.
        for record in &records {
            let key = 1_i64 << 32 | record.position.number().cast_signed();
            let sql = "UPDATE records SET kind = NULL, at = NULL, record = ?2 WHERE id = ?1";
            assert_eq!(raw.execute(sql, params![key, record.encode().unwrap()]).unwrap(), 1);
        }
        assert_eq!(check(&raw, journal.session, &records), 0);
        assert_eq!(read(&*store, journal.session).unwrap(), records);
    }
}

/// The program that people have, without extensions.
#[test]
fn the_command_of_sqlite_shows_texts_arguments_and_results() {
    let store = Temporary::new();
    let session = sample::session(3);
    let held = claim(&*store, session, ClaimMode::IfFree).unwrap();
    let created = sample::created(session);
    let message = |content: Value, sequence: u64| -> RecordBody {
        let text = json!({
            "message_id": "01890a5d-ac96-774b-bcce-000000000009",
            "evaluation_id": "01890a5d-ac96-774b-bcce-000000000002",
            "sequence": sequence, "turn": 1, "prompt_ns": "shop", "prompt_key": "tailor",
            "created_at": created.created_at,
            "message": {"policy": "tailor", "role_hint_for_llm": "assistant", "step_num": 1, "content": content},
        });
        let text = json!({"v": 1, "kind": "message_appended", "at": created.created_at, "data": text});
        Record::decode(Position::START, &text.to_string()).unwrap().body
    };
    let call = "01890a5d-ac96-774b-bcce-000000000003";
    let batch = Batch::at(created.created_at)
        .with(created.clone())
        .with(message(json!({"kind": "parts", "parts": [{"kind": "text", "text": "I sew."}]}), 0))
        .with(message(
            json!({"kind": "option_call", "invocation_id": call, "option_name": "sew", "arguments": {"hem": "left"}}),
            1,
        ))
        .with(message(
            json!({"kind": "option_result", "invocation_id": call, "option_name": "sew", "result": {"stitches": 7}}),
            2,
        ));
    block_on(store.append(session, Position::START, held.fence, batch)).unwrap();
    let sql = "SELECT at, kind, json_extract(data, '$.message.content.parts[0].text'),
        json_extract(data, '$.message.content.arguments'), json_extract(data, '$.message.content.result')
        FROM journal WHERE position > 0 ORDER BY position";
    let path = store.path();
    let Ok(output) = Command::new("sqlite3").arg("-readonly").arg(path).arg(sql).output() else { return };
    let expected = "2026-01-01T08:00:00.000000Z|message_appended|I sew.||\n\
        2026-01-01T08:00:00.000000Z|message_appended||{\"hem\":\"left\"}|\n\
        2026-01-01T08:00:00.000000Z|message_appended|||{\"stitches\":7}\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
}
