//! Properties of backups, salvage, bundles and copies.

use backstitch_core::code::ErrorCode;
use backstitch_core::ports::{ImportChanges, SessionRole, TransferOutcome};
use backstitch_testkit::{block_on, sample};

use super::super::records;
use super::{HasAdmin, scratch, supported, value, write, write_notes};

/// A backup is written once, and nothing is overwritten.
pub(crate) fn a_backup_is_a_new_file(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    write(one.store(), &sample::journal(3, 5));
    let (scratch, admin) = (scratch(), one.admin());
    let path = scratch.path().join("backup");
    let Some(bytes) = value(block_on(admin.backup(&path, &mut |_| {}))) else { return };
    let found = std::fs::read(&path).expect("the backup is there");
    assert_eq!(found.len() as u64, bytes);
    let again = block_on(admin.backup(&path, &mut |_| {})).expect_err("a file is never overwritten");
    assert_eq!(again.code(), ErrorCode::AlreadyExists);
    assert_eq!(std::fs::read(&path).expect("the backup is there"), found);
}

/// Salvage copies a sound store completely, to a new file only.
pub(crate) fn the_salvage_of_a_sound_store_is_complete(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let journal = sample::journal(3, 5);
    write(one.store(), &journal);
    let (scratch, admin) = (scratch(), one.admin());
    let path = scratch.path().join("salvaged");
    let Some(report) = value(block_on(admin.salvage(&path))) else { return };
    assert!(report.is_complete() && path.exists());
    let sessions: Vec<_> = report.sessions.iter().map(|one| (one.session, one.records)).collect();
    assert_eq!(sessions, [(journal.session, journal.records().len() as u64)]);
    let again = block_on(admin.salvage(&path)).expect_err("a file is never overwritten");
    assert_eq!(again.code(), ErrorCode::AlreadyExists);
}

/// A bundle holds a session as it is, and importing it twice changes nothing.
pub(crate) fn a_bundle_moves_a_session(one: &dyn HasAdmin, two: &dyn HasAdmin) {
    let journal = sample::journal(3, 5);
    write(one.store(), &journal);
    let scratch = scratch();
    let path = scratch.path().join("bundle");
    let exported = block_on(one.admin().export_bundle(journal.session, &path, &mut |_| {}));
    let Some(exported) = value(exported) else { return };
    assert_eq!(exported.bytes, std::fs::metadata(&path).expect("the bundle is there").len());
    let bundle = one.open_bundle(&path).expect("a store that writes bundles opens them");
    let (sessions, moved, _) = bundle.counts();
    assert_eq!((bundle.session(), sessions), (journal.session, 1));
    assert_eq!(moved, journal.records().len() as u64);
    for outcome in [TransferOutcome::Created, TransferOutcome::Present] {
        let imported = block_on(two.admin().import_bundle(&*bundle, &ImportChanges::default(), &mut |_| {}));
        assert_eq!(imported.expect("a bundle can be imported").outcome(), outcome);
    }
    assert_eq!(records(two.store(), journal.session), records(one.store(), journal.session));
    let none = scratch.path().join("none");
    let unknown = block_on(one.admin().export_bundle(sample::session(9), &none, &mut |_| {}));
    assert_eq!(unknown.expect_err("there is no such session").code(), ErrorCode::SessionNotFound);
    assert!(!none.exists());
}

/// A copy has the same records, and a longer journal extends it.
pub(crate) fn a_copied_session_is_the_same(one: &dyn HasAdmin, two: &dyn HasAdmin) {
    let session = write_notes(one.store(), 1, &["one"]);
    let copy = || block_on(one.admin().copy_session(session, two.admin(), &mut |_| {}));
    let Some(report) = value(copy()) else { return };
    assert_eq!((report.session, report.outcome()), (session, TransferOutcome::Created));
    let roles: Vec<_> = report.sessions.iter().map(|one| one.role).collect();
    assert_eq!(roles, [SessionRole::Main]);
    assert_eq!(records(two.store(), session), records(one.store(), session));
    assert_eq!(value(copy()).map(|report| report.outcome()), Some(TransferOutcome::Present));
    assert!(block_on(two.admin().verify()).expect("a store can be verified").is_sound());
}

/// A session of the same id with other records is left as it is.
pub(crate) fn another_session_of_the_same_id_is_a_conflict(one: &dyn HasAdmin, two: &dyn HasAdmin) {
    let session = write_notes(one.store(), 1, &["one"]);
    write_notes(two.store(), 1, &["other"]);
    let before = records(two.store(), session);
    let copied = block_on(one.admin().copy_session(session, two.admin(), &mut |_| {}));
    let Some(copied) = supported(copied) else { return };
    assert_eq!(copied.expect_err("the journals differ").code(), ErrorCode::SessionConflict);
    assert_eq!(records(two.store(), session), before);
}
