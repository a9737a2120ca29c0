//! Stores as version 1 of the SQLite format has them, for tests of migrations.

use std::path::Path;

use backstitch::id::SessionId;
use backstitch::journal::{
    Batch, EvaluationFailure, EvaluationFinished, EvaluationOutcome, EvaluationStarted, InnerMessage,
    Position,
};
use backstitch::message::{MessageBuilder, PolicyName, RoleHint};
use backstitch_testkit::sample;
use rusqlite::{Connection, params};

/// The tables of version 1.
const SCHEMA: &str = include_str!("../../../store/src/sqlite/schema/0001_journals.sql");

/// Identifies a store in SQLite's header: "BSTC".
const APPLICATION_ID: i32 = 0x4253_5443;

/// Writes a new store of version 1 with so many sessions and returns them, oldest first. Each was asked `Mission N`; every tenth
/// failed, the others were answered.
pub(crate) fn write_store(path: &Path, sessions: u64) -> Vec<SessionId> {
    let store = Connection::open(path).expect("a new file can be created");
    let configure = |name: &str, value: &str| {
        store.pragma_update(None, name, value).expect("a setting of a new database can be changed");
    };
    configure("auto_vacuum", "INCREMENTAL");
    configure("journal_mode", "WAL");
    configure("synchronous", "OFF");
    store.execute_batch("BEGIN").expect("a transaction can begin");
    store.execute_batch(MIGRATIONS).expect("a table can be created");
    store.execute_batch(SCHEMA).expect("the tables of version 1 can be created");
    let checksum = blake3::hash(SCHEMA.as_bytes()).to_hex().to_string();
    let sql = "INSERT INTO migrations (number, name, checksum, applied_at)
        VALUES (1, 'journals', ?1, '2026-01-01T08:00:00.000000Z')";
    store.execute(sql, [checksum]).expect("a row can be written");
    configure("application_id", &APPLICATION_ID.to_string());
    configure("user_version", "1");
    let written = (1..=sessions).map(|number| write_session(&store, number)).collect();
    store.execute_batch("COMMIT").expect("the transaction can be committed");
    written
}

const MIGRATIONS: &str = "CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL
) STRICT;";

fn write_session(store: &Connection, number: u64) -> SessionId {
    let session = sample::session(number);
    let row = number.cast_signed();
    let mut sql = store
        .prepare_cached("INSERT INTO sessions (id, session) VALUES (?1, ?2)")
        .expect("the table is there");
    sql.execute(params![row, session.to_string()]).expect("a row can be written");
    let mut checksum = checksum(&[b"backstitch session ", session.as_uuid().as_bytes()]);
    let (records, _) = journal(session, number).into_records(Position::START);
    for record in records {
        let text = record.encode().expect("a record of a sample can be stored");
        checksum = self::checksum(&[&checksum, text.as_bytes()]);
        let key = (row << 32) + record.position.number().cast_signed();
        let sql = "INSERT INTO records (id, checksum, record) VALUES (?1, ?2, ?3)";
        let mut sql = store.prepare_cached(sql).expect("the table is there");
        sql.execute(params![key, checksum, text]).expect("a row can be written");
    }
    session
}

/// The first 16 bytes of BLAKE3.
fn checksum(parts: &[&[u8]]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().as_bytes()[..16].to_vec()
}

/// A journal with the records that version 1 knows.
fn journal(session: SessionId, number: u64) -> Batch {
    let ids = sample::ids(number ^ (1 << 40));
    let created = sample::created(session);
    let evaluation = ids.next();
    let say = |policy: &str, hint: RoleHint, text: String, sequence: u64, turn: u64| {
        let mut builder = MessageBuilder::continue_step(1, &ids);
        builder.policy(PolicyName::new(policy).expect("this is a name")).role_hint(hint).add_text(text);
        let message = builder.to_message().expect("a message with a text is complete");
        InnerMessage::new(evaluation, message, &ids).of_prompt("samples", "tailor").at(sequence, turn)
    };
    let is_failed = number.is_multiple_of(10);
    let outcome = if is_failed { EvaluationOutcome::Failed } else { EvaluationOutcome::Completed };
    let mut finished = EvaluationFinished::new(evaluation, outcome);
    finished.error = is_failed.then(|| EvaluationFailure::new("max_turns", "there were too many turns"));
    Batch::at(created.created_at)
        .with(created)
        .with(EvaluationStarted::new(evaluation, "samples", "tailor"))
        .with(say("user", RoleHint::User, format!("Mission {number}"), 0, 0))
        .with(say("tailor", RoleHint::Assistant, format!("Answer {number}"), 1, 1))
        .with(finished)
}
