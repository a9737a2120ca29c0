//! SQL of people reads the views, and does nothing else.

use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_core::ports::{RowSink, SelectError, SelectLimits, SqlValue, Store as _, StoreAdmin};
use backstitch_testkit::postgres::schema_of;
use backstitch_testkit::{block_on, sample};

use super::support::Temporary;
use crate::sqlite::support::{Writer, write};

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
    let mut rows = Rows::default();
    let limits = SelectLimits { time: Duration::from_secs(2), ..SelectLimits::default() };
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
    let long = select(&store, "SELECT pg_sleep(60)");
    assert!(matches!(long, Err(SelectError::TooLong { .. })));
    assert_eq!(select(&store, "SELECT 1").unwrap().1, [[SqlValue::Integer(1)]], "the connection still works");
}
