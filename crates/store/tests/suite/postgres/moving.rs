//! Sessions move between stores of different kinds.

use backstitch_core::code::ErrorCode;
use backstitch_core::ports::{ClaimMode, ImportChanges, Owner, Store, StoreAdmin, TransferOutcome};
use backstitch_store::{Bundle, SqliteStore};
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::support::Temporary;
use crate::sqlite::support::{Temporary as InFile, notes, read, write};

#[test]
fn a_session_is_the_same_after_it_went_to_a_file_and_back() {
    let (Some(first), Some(second)) = (Temporary::new(), Temporary::new()) else { return };
    let journal = sample::every_kind();
    write(&*first, &journal);
    let file = InFile::new();
    let copied = block_on(StoreAdmin::copy_session(&*first, journal.session, &*file, &mut |_| {})).unwrap();
    assert_eq!(copied.outcome(), TransferOutcome::Created);
    for outcome in [TransferOutcome::Created, TransferOutcome::Present] {
        let admin: &dyn StoreAdmin = &*file;
        let back = block_on(admin.copy_session(journal.session, &*second, &mut |_| {})).unwrap();
        assert_eq!(back.outcome(), outcome);
    }
    let wanted = read(&*first, journal.session).unwrap();
    assert_eq!(read(&*file, journal.session).unwrap(), wanted);
    assert_eq!(read(&*second, journal.session).unwrap(), wanted);
    for object in journal.objects() {
        assert_eq!(block_on(second.object(object.id())).unwrap().as_ref(), Some(object));
    }
    for store in [&*first, &*second] {
        let report = block_on(StoreAdmin::verify(store)).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
}

#[test]
fn an_import_appends_records_in_its_transaction_and_refuses_held_sessions() {
    let (Some(first), Some(second)) = (Temporary::new(), Temporary::new()) else { return };
    let journal = sample::journal(3, 2);
    write(&*first, &journal);
    let place = TempDir::new().unwrap();
    let path = place.path().join("bundle");
    block_on(StoreAdmin::export_bundle(&*first, journal.session, &path, &mut |_| {})).unwrap();
    let bundle = Bundle::open(&path, &mut |_| {}).unwrap();
    let claim = block_on(second.claim(journal.session, Owner::new("holder"), ClaimMode::IfFree)).unwrap();
    let mut changes = ImportChanges::default();
    changes.additions.insert(journal.session, sample::notes(["limited"]));
    let import = || block_on(second.import_bundle(&bundle, &changes, &mut |_| {}));
    assert_eq!(import().unwrap_err().code(), ErrorCode::SessionHeld);
    assert_eq!(block_on(second.sessions()).unwrap(), []);
    block_on(second.release(claim)).unwrap();
    assert_eq!(import().unwrap().outcome(), TransferOutcome::Created);
    assert_eq!(import().unwrap().outcome(), TransferOutcome::Present);
    assert_eq!(notes(&*second, journal.session).last().map(String::as_str), Some("limited"));
    assert_eq!(read(&*second, journal.session).unwrap().len(), journal.records().len() + 1);
    assert!(block_on(StoreAdmin::verify(&*second)).unwrap().is_sound());
}

#[test]
fn salvage_keeps_the_sound_beginning_of_a_journal() {
    let Some(store) = Temporary::new() else { return };
    let (sound, damaged) = (sample::journal(3, 2), sample::journal(4, 2));
    write(&*store, &sound);
    write(&*store, &damaged);
    let number = format!("(SELECT id FROM {{schema}}.sessions WHERE session = '{}')", damaged.session);
    store.sql(&format!("UPDATE {{schema}}.records SET record = replace(record, 'e', 'E') WHERE position = 3 AND session = {number}"));
    let report = block_on(StoreAdmin::verify(&*store)).unwrap();
    assert!(!report.is_sound());
    let place = TempDir::new().unwrap();
    let path = place.path().join("salvaged.db");
    let salvaged = block_on(StoreAdmin::salvage(&*store, &path)).unwrap();
    assert!(salvaged.sessions[0].lost.is_none() && salvaged.sessions[1].records == 3);
    let file = SqliteStore::open(&path).unwrap();
    assert_eq!(read(&file, sound.session).unwrap(), read(&*store, sound.session).unwrap());
    assert_eq!(read(&file, damaged.session).unwrap().len(), 3);
    assert!(file.verify().unwrap().is_sound());
}
