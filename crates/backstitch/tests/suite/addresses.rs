//! Stores that are opened by their addresses.

use backstitch::code::ErrorCode;
use backstitch::ports::{ClaimMode, GcMode, Owner, Retention, SelectLimits, SqlValue, StoreError};
use backstitch::prelude::*;
use backstitch::stores::{self, OpenedStore, StoreAddress, StoresError};

/// Runs a session to its answer.
async fn sew(runtime: &Runtime) {
    let policy = ScriptedPolicy::from_toml("[[reply]]\ntext = \"Done.\"\n").unwrap();
    let run = runtime.start(&Agent::new("tailor").policy(policy), "Sew").await.unwrap();
    run.outcome().await.unwrap();
}

async fn sessions(opened: &OpenedStore) -> usize {
    opened.store.sessions().await.unwrap().len()
}

#[tokio::test]
async fn a_path_is_a_file_that_other_openings_share() {
    let place = tempfile::tempdir().unwrap();
    let address = StoreAddress::new(place.path().join("store/store.db"));
    assert!(address.is_missing());
    let runtime = Runtime::at(address.path().unwrap()).unwrap();
    sew(&runtime).await;
    let (open, read) = (stores::open(&address).unwrap(), stores::open_read_only(&address).unwrap());
    assert_eq!((sessions(&open).await, sessions(&read).await), (1, 1));
    assert_eq!((&open.address, open.address.directory()), (&address, Some(&*place.path().join("store"))));
    assert!(open.admin.verify().await.unwrap().is_sound());
    // What was opened for reading writes nothing.
    let session = read.store.sessions().await.unwrap()[0];
    let refused = read.store.claim(session, Owner::new("reader"), ClaimMode::IfFree).await;
    assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
    let refused = read.admin.collect(Retention::keep_all(), GcMode::Now).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StoreReadOnly);
    assert!(read.admin.collect(Retention::keep_all(), GcMode::DryRun).await.is_ok());
}

#[tokio::test]
async fn a_store_in_memory_is_a_new_one_each_time() {
    let runtime = Runtime::at("memory:").unwrap();
    sew(&runtime).await;
    assert_eq!(runtime.store().sessions().await.unwrap().len(), 1);
    let opened = stores::open(&StoreAddress::Memory).unwrap();
    assert_eq!((sessions(&opened).await, opened.address.directory()), (0, None));
    assert!(!std::path::Path::new("memory:").exists());
    let mut sink = NoRows;
    let refused = opened.admin.select("SELECT 1", &[], SelectLimits::default(), &mut sink).await.unwrap_err();
    assert_eq!((refused.code(), refused.hint().is_some()), (ErrorCode::StoreUnsupported, true));
}

struct NoRows;

impl backstitch::ports::RowSink for NoRows {
    fn columns(&mut self, _: Vec<String>) {}

    fn row(&mut self, _: Vec<SqlValue>) -> bool {
        false
    }
}

#[test]
fn an_address_of_another_kind_is_refused_without_its_password() {
    let address = StoreAddress::new("mysql://me:secret@localhost/sessions");
    let opened = stores::open(&address).unwrap_err();
    assert!(matches!(&opened, StoresError::Open { source, .. } if source.hint().is_some()), "{opened:?}");
    assert_eq!(opened.code(), ErrorCode::StoreUnsupported);
    assert_eq!(stores::open_read_only(&address).unwrap_err().code(), ErrorCode::StoreUnsupported);
    assert!(stores::open_for_rescue(&address).is_err());
    let error = Runtime::at("mysql://me:secret@localhost/sessions").unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnsupported);
    let text = format!("{error} {error:?} {opened} {opened:?}");
    assert!(text.contains("mysql://") && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_damaged_store_is_salvaged_without_being_opened() {
    let place = tempfile::tempdir().unwrap();
    let (path, copy, saved) =
        (place.path().join("store/store.db"), place.path().join("copy.db"), place.path().join("saved.db"));
    sew(&Runtime::at(&path).unwrap()).await;
    let admin = stores::open_for_rescue(&StoreAddress::new(&path)).unwrap();
    let bytes = admin.backup(&copy, &mut |_| {}).await.unwrap();
    assert_eq!(std::fs::metadata(&copy).unwrap().len(), bytes);
    // A store that is shorter than its header says cannot be opened.
    let whole = std::fs::read(&copy).unwrap();
    std::fs::write(&copy, &whole[..whole.len() - 8192]).unwrap();
    assert!(stores::open_read_only(&StoreAddress::new(&copy)).is_err());
    stores::open_for_rescue(&StoreAddress::new(&copy)).unwrap().salvage(&saved).await.unwrap();
    assert!(stores::open_read_only(&StoreAddress::new(&saved)).is_ok());
    let missing = stores::open_for_rescue(&StoreAddress::new(place.path().join("none"))).unwrap();
    let refused = missing.salvage(&place.path().join("x.db")).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StoreNotFound);
}
