//! What a server refuses has a type and a code, and no password.

use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_core::journal::{Batch, Position};
use backstitch_core::ports::{ClaimMode, OpenError, Owner, Store, StoreError};
use backstitch_store::PostgresStore;
use backstitch_testkit::postgres::{self, schema_of};
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::support::{Temporary, options, parsed, until_available};
use crate::sqlite::support::{Writer, notes};

/// Opening fails with this code, and says nothing of the password.
fn assert_refused(address: &str, code: ErrorCode) -> OpenError {
    let address = parsed(address).with_password("hunter2-leaked");
    let error = PostgresStore::open(&address).expect_err("the server refuses it");
    assert_eq!(error.code(), code, "{error:?}");
    assert!(!format!("{error} {error:?} {address:?}").contains("hunter2-leaked"), "{error:?}");
    error
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    let place = TempDir::new().unwrap();
    let host = place.path().to_str().unwrap().replace('/', "%2F");
    assert_refused(&format!("postgres://tailor@{host}/postgres"), ErrorCode::StoreUnavailable);
    assert_refused("postgres://tailor@127.0.0.1:1/postgres", ErrorCode::StoreUnavailable);
}

#[test]
fn a_server_that_refuses_the_user_denies_access() {
    let Some(server) = postgres::server() else { return };
    let address = server.address();
    assert_refused(&address.replace("/postgres?", "/no_such_database?"), ErrorCode::StoreDenied);
    assert_refused(&address.replace("tailor@", "nobody_known@"), ErrorCode::StoreDenied);
    let role = format!("{}_limited", schema_of(&address));
    server.sql(&format!("CREATE ROLE {role} LOGIN"));
    let limited = address.replace("tailor@", &format!("{role}@"));
    let error = assert_refused(&limited, ErrorCode::StoreDenied);
    assert!(error.to_string().contains("permission denied"), "{error}");
    // A user without the right to create schemas can have a store in schemas of its own.
    for schema in [schema_of(&address).to_owned(), format!("{}_views", schema_of(&address))] {
        server.sql(&format!("CREATE SCHEMA {schema} AUTHORIZATION {role}"));
    }
    let store = PostgresStore::open(&parsed(&limited)).unwrap();
    block_on(store.claim(sample::session(1), Owner::new("limited"), ClaimMode::IfFree)).unwrap();
}

#[test]
fn a_server_that_only_reads_is_read_only() {
    let Some(store) = Temporary::new() else { return };
    let role = format!("{}_standby", schema_of(&store.address));
    store.sql(&format!(
        "CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET default_transaction_read_only = on"
    ));
    let standby =
        PostgresStore::open(&parsed(&store.address.replace("tailor@", &format!("{role}@")))).unwrap();
    assert_eq!(block_on(standby.sessions()).unwrap(), []);
    let refused =
        block_on(standby.claim(sample::session(1), Owner::new("x"), ClaimMode::IfFree)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StoreReadOnly, "{refused:?}");
}

#[test]
fn an_append_without_room_is_repeated_for_a_while() {
    let Some(store) = Temporary::with(options().with_deadline(Duration::from_secs(3))) else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    store.sql("CREATE SEQUENCE {schema}.attempts");
    let refuse = |condition: &str| {
        store.sql(&format!(
            "CREATE OR REPLACE FUNCTION {{schema}}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF {condition} THEN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END IF; RETURN NULL;
            END $$"
        ));
    };
    // A sequence is not rolled back.
    refuse("nextval('{schema}.attempts') < 3");
    store.sql("CREATE TRIGGER refuse AFTER INSERT ON {schema}.records EXECUTE FUNCTION {schema}.refuse()");
    writer.append(sample::notes(["one"])).expect("the third attempt finds room");
    refuse("true");
    let full = writer.append(sample::notes(["two"]));
    assert!(matches!(&full, Err(StoreError::Full { .. })), "{full:?}");
    refuse("false");
    writer.append(sample::notes(["three"])).expect("nothing else is wrong");
    assert_eq!(notes(&*store, sample::session(1)), ["one", "three"]);
}

#[test]
fn a_session_that_is_locked_for_too_long_is_busy_or_unavailable() {
    let options = super::support::options().with_deadline(std::time::Duration::from_millis(700));
    let Some(store) = Temporary::with(options) else { return };
    let session = sample::session(1);
    // The deadline is short for the append only.
    let claim =
        until_available(|| block_on(store.claim(session, Owner::new("x"), ClaimMode::IfFree))).unwrap();
    let created = sample::created(session);
    let batch = Batch::at(created.created_at).with(created);
    let done = std::sync::atomic::AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        let lock =
            "BEGIN; LOCK TABLE {schema}.records IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(6); ROLLBACK";
        let locking = scope.spawn(|| store.sql(lock));
        while store.sql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = '{schema}.records'::regclass") == "0" {
            std::thread::yield_now();
        }
        let refused = block_on(store.append(session, Position::START, claim.fence, batch.clone()));
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        locking.join().unwrap();
        refused
    });
    // Earlier attempts may have been stored once the lock was gone.
    match refused {
        Err(StoreError::OutcomeUnknown { .. } | StoreError::Unavailable { .. } | StoreError::Busy { .. })
        | Ok(_) => {}
        Err(other) => panic!("{other:?}"),
    }
    assert!(until_available(|| block_on(store.sessions())).unwrap().len() <= 1);
}

/// Retrying would only delay the answer.
#[test]
fn a_server_that_wants_a_password_denies_access_without_one() {
    use std::io::{Read as _, Write as _};
    let place = TempDir::new().unwrap();
    let listener = std::os::unix::net::UnixListener::bind(place.path().join(".s.PGSQL.5432")).unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 1024]);
            // A request for the password.
            let _ = client.write_all(b"R\0\0\0\x08\0\0\0\x03");
            let _ = client.read(&mut [0; 1024]);
        }
    });
    let host = place.path().to_str().unwrap().replace('/', "%2F");
    let error = PostgresStore::open(&parsed(&format!("postgres://tailor@{host}/postgres"))).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreDenied, "{error:?}");
    assert!(error.to_string().contains("password missing"), "{error}");
}
