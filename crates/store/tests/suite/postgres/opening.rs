//! Creating, migrating and opening stores.

use backstitch_core::code::ErrorCode;
use backstitch_core::ports::{ClaimMode, OpenError, Owner, Store, StoreError};
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
