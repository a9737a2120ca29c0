//! Creating, migrating and opening stores.

use backstitch_core::code::ErrorCode;
use backstitch_core::ports::{
    ClaimMode, GcMode, OpenError, Owner, Retention, RowSink, SelectLimits, SqlValue, Store, StoreAdmin,
    StoreError,
};
use backstitch_store::PostgresStore;
use backstitch_testkit::postgres;
use backstitch_testkit::{block_on, sample};

use super::support::{Temporary, parsed};
use crate::sqlite::support::Writer;

#[test]
fn programs_that_open_a_new_store_at_once_create_it_once() {
    let Some(server) = postgres::server() else { return };
    let address = parsed(&server.address());
    std::thread::scope(|scope| {
        let opening: Vec<_> = (0..6).map(|_| scope.spawn(|| PostgresStore::open(&address))).collect();
        for opened in opening {
            assert_eq!(block_on(opened.join().unwrap().unwrap().sessions()).unwrap(), []);
        }
    });
}

#[test]
fn a_store_that_another_program_changed_is_refused() {
    let Some(store) = Temporary::new() else { return };
    let open = || PostgresStore::open(&parsed(&store.address));
    drop(open().unwrap());
    store.sql("UPDATE {schema}.migrations SET checksum = 'x' WHERE number = 1");
    assert!(matches!(open(), Err(OpenError::ChangedMigration { number: 1 })));
    store.sql("UPDATE {schema}.migrations SET number = 99 WHERE number = 1");
    let newer = open();
    assert!(matches!(newer, Err(OpenError::Newer { found: 99, .. })), "{newer:?}");
}

#[test]
fn a_store_that_is_opened_for_reading_exists_and_is_not_written() {
    let Some(store) = Temporary::new() else { return };
    let writer = Writer::create(&*store, sample::session(1));
    let reader = PostgresStore::open_read_only(&parsed(&store.address)).unwrap();
    assert_eq!(block_on(reader.sessions()).unwrap(), [writer.session()]);
    let refused = block_on(reader.claim(sample::session(2), Owner::new("x"), ClaimMode::IfFree));
    assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
    let missing = PostgresStore::open_read_only(&parsed(&store.server.address())).unwrap_err();
    assert_eq!(missing.code(), ErrorCode::StoreNotFound);
}

/// With one snapshot per transaction, an append does not see that what it needs was collected while it waited.
#[test]
fn another_isolation_level_is_refused() {
    let Some(store) = Temporary::new() else { return };
    let role = format!("{}_strict", postgres::schema_of(&store.address));
    store.sql(&format!(
        "CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET default_transaction_isolation = 'repeatable read'"
    ));
    let address = store.address.replace("tailor@", &format!("{role}@"));
    let refused = PostgresStore::open(&parsed(&address)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StoreDenied);
    assert!(refused.to_string().contains("read committed"), "{refused}");
    let append = "BEGIN ISOLATION LEVEL SERIALIZABLE; DO $$ BEGIN
            PERFORM {schema}.append_1(1, NULL, 0, true, 1, '{a}', '{b}', '{c}', '{}', '{}', 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
                NULL, NULL, '{}', '{}', '{}', NULL);
        EXCEPTION WHEN SQLSTATE 'BS007' THEN RAISE NOTICE 'refused'; END $$; ROLLBACK";
    store.sql(append);
}

/// In PostgreSQL 14 every user may create functions in the schema `public`.
#[test]
fn functions_of_others_are_not_executed() {
    let Some(server) = postgres::server() else { return };
    let address = server.address();
    let other = format!("{}_other", postgres::schema_of(&address));
    let role = format!("{}_victim", postgres::schema_of(&address));
    server.sql(&format!("CREATE SCHEMA {other}; CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET search_path = {other}"));
    for (name, arguments, returned) in [
        ("nextval", "text", "bigint"),
        ("hashtextextended", "text, integer", "bigint"),
        ("cardinality", "bytea[]", "integer"),
        ("cardinality", "text[]", "integer"),
        ("unnest", "bytea[]", "SETOF bytea"),
        ("unnest", "bigint[]", "SETOF bigint"),
        ("to_char", "timestamp, text", "text"),
        ("make_interval", "secs double precision", "interval"),
    ] {
        server.sql(&format!(
            "CREATE FUNCTION {other}.{name}({arguments}) RETURNS {returned} LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''hijacked''; END'"
        ));
    }
    server.sql(&format!(
        "CREATE FUNCTION {other}.path(json, text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''hijacked''; END';
        CREATE OPERATOR {other}.#>> (LEFTARG = json, RIGHTARG = text, FUNCTION = {other}.path)"
    ));
    let store = PostgresStore::open(&parsed(&address.replace("tailor@", &format!("{role}@")))).unwrap();
    let mut writer = Writer::create(&store, sample::session(1));
    let mut batch = sample::notes(["one"]);
    batch.add_object(backstitch_core::object::Object::blob(*b"an object"));
    writer.append(batch).unwrap();
    block_on(store.send(writer.session(), sample::item("x"))).unwrap();
    assert!(block_on(StoreAdmin::verify(&store)).unwrap().is_sound());
    block_on(StoreAdmin::collect(&store, Retention::keep_all(), GcMode::Now)).unwrap();
    struct Rows;
    impl RowSink for Rows {
        fn columns(&mut self, _: Vec<String>) {}
        fn row(&mut self, _: Vec<SqlValue>) -> bool {
            true
        }
    }
    for view in ["records", "sessions", "messages", "calls", "requests", "spending", "changes"] {
        let sql = format!("SELECT * FROM {view}");
        block_on(StoreAdmin::select(&store, &sql, &[], SelectLimits::default(), &mut Rows)).unwrap();
    }
}

#[test]
fn settings_that_lose_data_are_dangerous() {
    let Some(store) = Temporary::new() else { return };
    let checks = store.check_server().unwrap();
    let of = |name: &str| checks.iter().find(|check| check.name == name).unwrap();
    // The server of the tests has no sync and no standby.
    assert!(of("fsync").is_dangerous && of("fsync").problem.is_some());
    assert!(!of("synchronous_commit").is_dangerous);
    assert!(of("standbys").problem.is_some() && !of("standbys").is_dangerous);
    assert!(of("version").problem.is_none() && of("oldest snapshot").problem.is_none());
}
