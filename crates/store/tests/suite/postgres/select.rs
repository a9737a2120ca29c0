//! SQL of people reads the views, and does nothing else.

use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_core::ports::{RowSink, SelectError, SelectLimits, SqlValue, Store as _, StoreAdmin};
use backstitch_testkit::postgres::schema_of;
use backstitch_testkit::{block_on, sample};

use super::support::Temporary;
use crate::sqlite::support::{Writer, notes, write};

#[derive(Default)]
struct Rows(Vec<String>, Vec<Vec<SqlValue>>);

impl RowSink for Rows {
    fn columns(&mut self, names: Vec<String>) {
        self.0 = names;
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.1.push(values);
        true
    }
}

fn select(store: &Temporary, sql: &str) -> Result<Rows, SelectError> {
    select_within(store, sql, Duration::from_secs(120))
}

fn select_within(store: &Temporary, sql: &str, time: Duration) -> Result<Rows, SelectError> {
    let mut rows = Rows::default();
    let limits = SelectLimits { time, ..SelectLimits::default() };
    block_on(StoreAdmin::select(&**store, sql, &[], limits, &mut rows))?;
    Ok(rows)
}

#[test]
fn all_views_can_be_read() {
    let Some(store) = Temporary::new() else { return };
    write(&*store, &sample::every_kind());
    write(&*store, &sample::journal(3, 5));
    let wanted = sample::every_kind().records().len() + sample::journal(3, 5).records().len();
    let count = select(&store, "SELECT count(*) FROM records").unwrap().1;
    assert_eq!(count, [[SqlValue::Integer(i64::try_from(wanted).unwrap())]]);
    for view in ["records", "sessions", "messages", "calls", "requests", "spending", "changes"] {
        let rows = select(&store, &format!("SELECT * FROM {view}")).unwrap();
        assert!(rows.0.contains(&"session".to_owned()), "{view}");
    }
    assert!(!select(&store, "SELECT text FROM messages").unwrap().1.is_empty());
    let values =
        select(&store, "SELECT 1.5::numeric, -12::numeric, true, 'x'::bytea, NULL, 0.25::real").unwrap().1;
    let wanted = [
        SqlValue::Real(1.5),
        SqlValue::Integer(-12),
        SqlValue::Integer(1),
        SqlValue::Blob(vec![b'x']),
        SqlValue::Null,
        SqlValue::Real(0.25),
    ];
    assert_eq!(values, [wanted]);
}

#[test]
fn a_zero_character_breaks_no_view() {
    let Some(store) = Temporary::new() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    writer.append(sample::notes(["a\0b"])).unwrap();
    let found = select(&store, "SELECT data ->> 'text' FROM records WHERE kind = 'note'").unwrap().1;
    assert_eq!(found, [[SqlValue::Text("a\u{fffd}b".to_owned())]]);
    let records =
        block_on(store.read(writer.session(), backstitch_core::journal::Position::new(1), 1)).unwrap();
    assert!(format!("{records:?}").contains("a\\0b"), "the record itself is as it was: {records:?}");
}

#[test]
fn statements_that_do_something_else_are_refused() {
    let Some(store) = Temporary::new() else { return };
    let schema = schema_of(&store.address).to_owned();
    for sql in [
        "DELETE FROM sessions".to_owned(),
        format!("DELETE FROM {schema}.sessions RETURNING 1"),
        format!("WITH gone AS (DELETE FROM {schema}.sessions RETURNING 1) SELECT * FROM gone"),
        format!("SELECT * FROM {schema}.records"),
        format!("SELECT {schema}.reap_1(0)"),
        "SELECT pg_read_file('/etc/passwd')".to_owned(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'backstitch' LIMIT 1".to_owned(),
        "COPY (SELECT 1) TO PROGRAM 'true'".to_owned(),
        "SET ROLE tailor".to_owned(),
        "COMMIT".to_owned(),
        "SELECT 1; DROP SCHEMA public".to_owned(),
        "SELECT nextval('x')".to_owned(),
        "VACUUM".to_owned(),
    ] {
        let refused = select(&store, &sql).err().unwrap_or_else(|| panic!("{sql} was executed"));
        assert_eq!(refused.code(), ErrorCode::QueryInvalid, "{sql}: {refused:?}");
    }
    let long = select_within(&store, "SELECT pg_sleep(60)", Duration::from_secs(2));
    assert!(matches!(long, Err(SelectError::TooLong { .. })));
    assert_eq!(select(&store, "SELECT 1").unwrap().1, [[SqlValue::Integer(1)]], "the connection still works");
}

/// A query that could leave its role would read the tables, and as a superuser the files of the server.
#[test]
fn a_query_cannot_leave_its_role() {
    let Some(store) = Temporary::new() else { return };
    let schema = schema_of(&store.address).to_owned();
    let hidden = format!("query_to_xml('SELECT * FROM {schema}.workers', true, false, '')");
    for sql in [
        format!("SELECT set_config('role', 'none', true), {hidden}"),
        format!("SELECT pg_catalog.\"set_config\"('role', 'none', true), {hidden}"),
        "SELECT SET_CONFIG('role', 'none', true)".to_owned(),
        r#"SELECT U&"set\005fconfig"('role', 'none', true)"#.to_owned(),
        "SELECT query_to_xml('SELECT set_' || 'config(''role'', ''none'', true)', true, false, '')"
            .to_owned(),
        "SELECT * FROM ts_stat('SELECT set_' || 'config(''role'', ''none'', true)::tsvector')".to_owned(),
    ] {
        let refused = select(&store, &sql).err().unwrap_or_else(|| panic!("{sql} was executed"));
        assert!(matches!(&refused, SelectError::Refused { .. }), "{sql}: {refused:?}");
    }
    let found = select(&store, "SELECT 1 AS requests_state, current_user::text").unwrap().1;
    assert_eq!(found[0][1], SqlValue::Text(format!("{schema}_reader")));
}

/// The next append on the connection of a query would not be durable, or would wait for a lock of it for ever.
#[test]
fn a_role_without_rights_is_not_used() {
    let Some(store) = Temporary::new() else { return };
    store.sql("REVOKE ALL ON SCHEMA {schema}_views FROM {schema}_reader");
    select(&store, "SELECT count(*) FROM sessions").expect("the user of the store reads");
}

#[test]
fn a_query_leaves_nothing_on_its_connection() {
    let Some(store) = Temporary::with(super::support::options().with_connections(1)) else { return };
    // The role may be another one: what matters is the end of the transaction.
    for sql in
        ["SELECT pg_advisory_lock(1)", "SELECT pg_try_advisory_lock(1)", "SELECT pg_advisory_lock_shared(1)"]
    {
        assert!(matches!(select(&store, sql), Err(SelectError::Refused { .. })), "{sql}");
    }
    let before =
        select(&store, "SELECT pg_backend_pid(), current_setting('search_path'), current_user::text")
            .unwrap()
            .1;
    let writer = Writer::create(&*store, sample::session(1));
    assert_eq!(notes(&*store, writer.session()), Vec::<String>::new());
    let after = select(&store, "SELECT pg_backend_pid(), current_setting('search_path'), current_user::text")
        .unwrap()
        .1;
    assert_eq!(before, after, "the same connection, in the state of its beginning");
}

#[test]
fn rows_of_any_size_do_not_fill_the_memory() {
    let Some(store) = Temporary::new() else { return };
    struct Sizes(u64);
    impl RowSink for Sizes {
        fn columns(&mut self, _: Vec<String>) {}
        fn row(&mut self, values: Vec<SqlValue>) -> bool {
            if let [SqlValue::Text(text)] = &values[..] {
                self.0 += text.len() as u64;
            }
            true
        }
    }
    let sql = "SELECT repeat('x', 1000000) FROM generate_series(1, 50)";
    let run = |memory: u64, sink: &mut Sizes| {
        let limits = SelectLimits { memory, time: Duration::from_secs(30), ..SelectLimits::default() };
        block_on(StoreAdmin::select(&*store, sql, &[], limits, sink))
    };
    let mut sizes = Sizes(0);
    run(2_000_000, &mut sizes).expect("each row fits");
    assert_eq!(sizes.0, 50_000_000);
    assert!(matches!(run(500_000, &mut Sizes(0)), Err(SelectError::TooLarge { .. })));
    assert_eq!(select(&store, "SELECT 1").unwrap().1, [[SqlValue::Integer(1)]], "the connection still works");
}
