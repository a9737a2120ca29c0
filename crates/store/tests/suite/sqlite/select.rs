//! Read-only SQL: the views show what was recorded, and nothing but reading is executed.

use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};

use super::agent::Agent;
use super::support::Temporary;
use backstitch_core::journal::{
    Batch, CallChanges, CallFinished, CallVerdict, ChangeCounts, ChangeKind, ChangedPath, FileContent,
    Position, RecordBody,
};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    ClaimMode, Owner, RowSink, SelectError, SelectLimits, SelectedRows, SqlValue, Store as _,
};

#[derive(Default)]
struct Rows {
    names: Vec<String>,
    rows: Vec<Vec<SqlValue>>,
}

impl RowSink for Rows {
    fn columns(&mut self, names: Vec<String>) {
        self.names = names;
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.rows.push(values);
        true
    }
}

fn quick() -> SelectLimits {
    SelectLimits { rows: 1_000, time: Duration::from_secs(60), memory: 256 * 1024 * 1024 }
}

fn select(store: &SqliteStore, sql: &str) -> Result<(Rows, SelectedRows), SelectError> {
    let mut rows = Rows::default();
    let selected = store.select(sql, &[], quick(), &mut rows)?;
    Ok((rows, selected))
}

/// A store with sample journals of every kind of record.
fn filled() -> (Temporary, Vec<sample::Journal>) {
    let store = Temporary::new();
    let journals: Vec<_> =
        (10..14).map(|seed| sample::journal(seed, 12)).chain([sample::every_kind()]).collect();
    for journal in &journals {
        let claim = block_on(store.claim(journal.session, Owner::new("a test"), ClaimMode::IfFree)).unwrap();
        let mut next = Position::START;
        for batch in &journal.batches {
            block_on(store.append(journal.session, next, claim.fence, batch.clone())).unwrap();
            next = next.after(batch.len());
        }
        block_on(store.release(claim)).unwrap();
    }
    (store, journals)
}

#[test]
fn views_show_what_was_recorded() {
    let (store, journals) = filled();
    let all: Vec<_> = journals.iter().flat_map(|journal| journal.records()).collect();
    let count = |sql: &str| match select(&store, sql).unwrap().0.rows[0][0] {
        SqlValue::Integer(number) => usize::try_from(number).unwrap(),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(count("SELECT count(*) FROM records"), all.len());
    let messages = all.iter().filter(|record| matches!(record.body, RecordBody::MessageAppended(_))).count();
    assert_eq!(count("SELECT count(*) FROM messages"), messages);
    let starts = all.iter().filter(|record| matches!(record.body, RecordBody::CallStarted(_))).count();
    assert_eq!(count("SELECT sum(attempts) FROM calls"), starts);
    let requests = all.iter().filter(|record| matches!(record.body, RecordBody::RequestStarted(_))).count();
    assert_eq!(count("SELECT count(*) FROM requests WHERE provider IS NOT NULL"), requests);
    let charged: u64 = all
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::BudgetCharged(charged) => Some(charged.amounts.output_tokens),
            _ => None,
        })
        .sum();
    assert_eq!(
        count("SELECT coalesce(sum(output_tokens), 0) FROM spending"),
        usize::try_from(charged).unwrap()
    );
    // Times have the form of the records.
    let (rows, _) = select(&store, "SELECT at FROM records ORDER BY session, position").unwrap();
    let mut times: Vec<String> = all.iter().map(|record| record.at.to_string()).collect();
    let mut shown: Vec<String> = rows
        .rows
        .iter()
        .map(|row| if let SqlValue::Text(at) = &row[0] { at.clone() } else { String::new() })
        .collect();
    times.sort();
    shown.sort();
    assert_eq!(shown, times);
    // Every column of every view can be read.
    for view in ["sessions", "records", "messages", "calls", "changes", "requests", "spending"] {
        let (rows, _) = select(&store, &format!("SELECT * FROM {view}")).unwrap();
        assert!(!rows.names.is_empty(), "{view}");
    }
}

#[test]
fn an_empty_store_has_empty_views() {
    let store = Temporary::new();
    for view in ["sessions", "records", "messages", "calls", "changes", "requests", "spending"] {
        let (rows, selected) = select(&store, &format!("SELECT * FROM {view}")).unwrap();
        assert_eq!((rows.rows.len(), selected.rows, selected.is_cut), (0, 0, false), "{view}");
    }
    let (directory, _) = store.close();
    let path = directory.path().join("empty.db");
    std::fs::write(&path, b"").unwrap();
    let store = SqliteStore::open_read_only(&path).unwrap();
    assert_eq!(select(&store, "SELECT * FROM records").unwrap().0.rows, Vec::<Vec<SqlValue>>::new());
    assert_eq!(std::fs::read(&path).unwrap(), b"");
}

#[test]
fn everything_but_reading_is_refused() {
    let (store, _) = filled();
    let before = std::fs::read(store.path()).unwrap();
    for sql in [
        "DELETE FROM main.records",
        "UPDATE main.sessions SET session = ''",
        "INSERT INTO main.tags VALUES ('a', 'b', 1)",
        "DROP TABLE main.records",
        "CREATE TABLE extra (a)",
        "CREATE TEMP TABLE extra AS SELECT 1",
        "CREATE TEMP TRIGGER t INSTEAD OF DELETE ON records BEGIN SELECT 1; END",
        "ATTACH DATABASE '/tmp/backstitch-attached.db' AS other",
        "DETACH DATABASE temp",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA query_only = OFF",
        "PRAGMA hard_heap_limit = 0",
        "PRAGMA table_info(records)",
        "VACUUM",
        "VACUUM INTO '/tmp/backstitch-vacuum.db'",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "SAVEPOINT a",
        "SELECT load_extension('/tmp/x')",
        "WITH a AS (SELECT 1) DELETE FROM main.records",
        "EXPLAIN DELETE FROM main.records",
    ] {
        let error = select(&store, sql).map(|_| ()).expect_err(sql);
        assert_eq!(error.code(), ErrorCode::QueryInvalid, "{sql}: {error}");
    }
    for sql in [
        "",
        "  ",
        "SELEC 1",
        "SELECT * FROM nothing",
        "SELECT missing FROM records",
        "SELECT 1; DELETE FROM main.records",
        "SELECT ?1 ?2",
    ] {
        let error = select(&store, sql).map(|_| ()).expect_err(sql);
        assert_eq!(error.code(), ErrorCode::QueryInvalid, "{sql}: {error}");
    }
    assert_eq!(std::fs::read(store.path()).unwrap(), before);
    assert!(!std::path::Path::new("/tmp/backstitch-attached.db").exists());
    assert!(!std::path::Path::new("/tmp/backstitch-vacuum.db").exists());
}

#[test]
fn endless_queries_are_stopped() {
    let store = Temporary::new();
    let short = SelectLimits { time: Duration::from_millis(50), ..quick() };
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let error = store.select(endless, &[], short, &mut Rows::default()).unwrap_err();
    assert!(matches!(error, SelectError::TooLong { .. }), "{error}");
    assert_eq!(error.code(), ErrorCode::QueryStopped);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let mut rows = Rows::default();
    let selected = store.select(endless, &[], quick(), &mut rows).unwrap();
    assert_eq!((selected.rows, selected.is_cut, rows.rows.len()), (1_000, true, 1_000));
    // The store can be used afterwards.
    assert!(block_on(store.sessions()).unwrap().is_empty());
}

#[test]
fn huge_queries_are_stopped() {
    let store = Temporary::new();
    // The memory ends each of them, after a few steps; the time is only there in case it does not.
    let limits = SelectLimits { memory: 8 * 1024 * 1024, ..quick() };
    for huge in [
        "SELECT length(randomblob(900000000))",
        "SELECT length(group_concat(zeroblob(50000000)))",
        "WITH RECURSIVE n(i, t) AS (SELECT 1, 'x' UNION ALL SELECT i + 1, t || t FROM n) SELECT max(length(t)) FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT hex(zeroblob(10000)) || i FROM n ORDER BY 1",
    ] {
        let error = store.select(huge, &[], limits, &mut Rows::default()).unwrap_err();
        assert!(matches!(error, SelectError::TooLarge { .. }), "{huge}: {error}");
        assert_eq!(error.code(), ErrorCode::QueryStopped);
    }
    // The store can be used afterwards.
    assert!(block_on(store.sessions()).unwrap().is_empty());
}

#[test]
fn parameters_are_values() {
    let store = Temporary::new();
    let mut rows = Rows::default();
    let given =
        [SqlValue::Text("'; DROP".to_owned()), SqlValue::Integer(7), SqlValue::Null, SqlValue::Real(1.5)];
    store.select("SELECT ?1 AS a, ?2, ?3, ?4, x'00ff'", &given, quick(), &mut rows).unwrap();
    assert_eq!(rows.names[0], "a");
    assert_eq!(rows.rows[0][..4], given);
    assert_eq!(rows.rows[0][4], SqlValue::Blob(vec![0, 0xff]));
}

#[test]
fn changed_paths_are_rows_and_too_many_are_one_row() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    let content = |text: &str| {
        let object = Object::blob(text.as_bytes().to_vec()).id();
        Some(FileContent { object, bytes: Some(text.len() as u64) })
    };
    let listed = CallChanges::new(vec![
        ChangedPath { after: content("hem"), ..ChangedPath::new("a/hem.txt", ChangeKind::Added) },
        ChangedPath { before: content("old"), ..ChangedPath::new("b.txt", ChangeKind::Deleted) },
    ]);
    let counted = CallChanges::Counts(ChangeCounts { added: 300, deleted: 2, ..ChangeCounts::default() });
    let ends = [
        (CallVerdict::Succeeded, Some(listed.clone())),
        (CallVerdict::Failed, Some(listed)),
        (CallVerdict::Succeeded, Some(counted)),
        (CallVerdict::Succeeded, None),
    ];
    for (verdict, changes) in ends {
        let call = agent.start();
        let finished = CallFinished { changes, ..CallFinished::new(call, verdict) };
        agent.append(Batch::at(agent.at).with(finished)).unwrap();
    }
    let sql =
        "SELECT is_kept, path, change, bytes_before, bytes_after, paths FROM changes ORDER BY position, path";
    let (rows, _) = select(&store, sql).unwrap();
    let (text, number) = (|text: &str| SqlValue::Text(text.to_owned()), SqlValue::Integer);
    let row = |is_kept: i64| {
        let added =
            vec![number(is_kept), text("a/hem.txt"), text("added"), SqlValue::Null, number(3), number(1)];
        let deleted =
            vec![number(is_kept), text("b.txt"), text("deleted"), number(3), SqlValue::Null, number(1)];
        [added, deleted]
    };
    let mut counts = vec![SqlValue::Null; 6];
    (counts[0], counts[5]) = (number(1), number(302));
    let expected: Vec<_> = row(1).into_iter().chain(row(0)).chain([counts]).collect();
    assert_eq!(rows.rows, expected);
}
