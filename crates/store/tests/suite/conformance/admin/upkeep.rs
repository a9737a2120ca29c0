//! Properties of looking after a store: verification, sizes, garbage, removed sessions, SQL.

use backstitch_core::code::ErrorCode;
use backstitch_core::object::Object;
use backstitch_core::ports::{
    ErasureMode, Expiry, ForkRemoval, GcMode, Owner, Removal, RemovedSession, Retention, SelectLimits,
    SqlValue, Store,
};
use backstitch_core::time::Clock as _;
use backstitch_testkit::{block_on, sample};

use super::super::index::{indexed, summary_at};
use super::super::{Writer, object, records};
use super::{HasAdmin, Rows, scratch, supported, unsupported_operations, write, write_notes};

fn is_stored(store: &dyn Store, one: &Object) -> bool {
    object(store, one.id()).is_some()
}

/// A store without sessions has nothing to report.
pub(crate) fn a_new_store_is_sound_and_empty(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let admin = one.admin();
    let report = block_on(admin.verify()).expect("a store can be verified");
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!((report.sessions, report.records, report.objects), (0, 0, 0));
    let size = block_on(admin.size()).expect("a store can be measured");
    assert!(size.sessions.is_empty() && size.objects.is_empty());
    let collected =
        block_on(admin.collect(Retention::keep_all(), GcMode::Now)).expect("garbage is collected");
    assert!(collected.freed.is_empty() && collected.kept_objects == 0);
    assert_eq!(block_on(admin.removed()).expect("removed sessions are listed"), []);
    let expiry = Expiry::before(sample::clock().now());
    assert_eq!(block_on(admin.expired(expiry)).expect("expired sessions are listed"), []);
    assert_eq!(block_on(admin.remove_stray_summaries()).expect("summaries are repaired"), 0);
    assert!(!admin.name().is_empty());
}

/// Verification reads all sessions, records and objects, and finds nothing in a store that nobody damaged.
pub(crate) fn verification_counts_what_is_stored(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let journals = [sample::every_kind(), sample::journal(3, 5)];
    journals.iter().for_each(|journal| write(one.store(), journal));
    let report = block_on(one.admin().verify()).expect("a store can be verified");
    assert!(report.is_sound(), "{:?}", report.findings);
    let wanted: usize = journals.iter().map(|journal| journal.records().len()).sum();
    assert_eq!((report.sessions, report.records), (2, wanted as u64));
    assert!(report.objects > 0 && report.removed.is_empty() && report.lost.is_empty());
}

/// Sizes are listed by session, in the order of creation, and by kind of object.
pub(crate) fn sizes_are_those_of_the_sessions(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let store = one.store();
    let second = write_notes(store, 2, &["one", "two"]);
    let mut writer = Writer::create(store, sample::session(1));
    let mut batch = sample::notes(["with an object"]);
    batch.add_object(Object::blob(vec![7; 1000]));
    let next = writer.append(batch).expect("a batch that fits is appended");
    let saved = store.save_snapshot(writer.session(), writer.claim.fence, next, vec![1, 2, 3]);
    block_on(saved).expect("the holder saves a snapshot");
    let size = block_on(one.admin().size()).expect("a store can be measured");
    let sessions: Vec<_> = size.sessions.iter().map(|one| (one.session, one.records)).collect();
    assert_eq!(sessions, [(second, 3), (writer.session(), 2)]);
    assert!(size.sessions.iter().all(|one| one.text > 0));
    assert!(size.sessions[0].snapshot == 0 && size.sessions[1].snapshot > 0);
    let objects: Vec<_> = size.objects.iter().map(|one| (one.objects, one.content)).collect();
    assert_eq!(objects, [(1, 1000)]);
}

/// A collection deletes the objects that no record names, reports what a dry run reports, and keeps the others.
pub(crate) fn a_collection_deletes_what_no_record_names(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let (store, admin) = (one.store(), one.admin());
    let (named, garbage) = (Object::blob(*b"named"), Object::blob(*b"garbage"));
    let mut writer = Writer::create(store, sample::session(1));
    let note = sample::note("names an object").with_data(named.id().to_string().into());
    let mut batch = sample::notes(["brings objects"]).with(note);
    batch.add_object(named.clone()).add_object(garbage.clone());
    writer.append(batch).expect("a batch that fits is appended");
    let collect = |mode| block_on(admin.collect(Retention::keep_all(), mode)).expect("garbage is collected");
    let rehearsed = collect(GcMode::DryRun);
    assert!(is_stored(store, &named) && is_stored(store, &garbage));
    let collected = collect(GcMode::Now);
    assert_eq!(rehearsed, collected);
    assert_eq!(
        collected.freed.iter().map(|freed| (freed.session, freed.objects)).collect::<Vec<_>>(),
        [(None, 1)]
    );
    assert!(collected.freed_bytes() > 0 && collected.kept_objects == 1 && collected.pruned_roots == 0);
    assert!(is_stored(store, &named) && !is_stored(store, &garbage));
    assert!(collect(GcMode::Now).freed.is_empty(), "there is nothing left");
    assert_eq!(writer.records().len(), 3);
}

/// A future that was never polled has done nothing.
pub(crate) fn a_collection_that_is_dropped_deletes_nothing(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let garbage = Object::blob(*b"garbage");
    let mut writer = Writer::create(one.store(), sample::session(1));
    let mut batch = sample::notes(["brings an object"]);
    batch.add_object(garbage.clone());
    writer.append(batch).expect("a batch that fits is appended");
    drop(one.admin().collect(Retention::keep_all(), GcMode::Now));
    assert!(is_stored(one.store(), &garbage));
}

/// A removed session is listed with the number of its records, also by verification.
pub(crate) fn removed_sessions_are_listed_until_they_are_created_again(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let (store, admin) = (one.store(), one.admin());
    let session = write_notes(store, 1, &["one", "two"]);
    let removal = Removal {
        sessions: vec![session],
        forks: ForkRemoval::Refuse,
        owner: Owner::new("remover"),
        at: sample::clock().now(),
        mode: ErasureMode::Now,
    };
    block_on(store.remove(removal)).expect("a free session is removed");
    let removed = || block_on(admin.removed()).expect("removed sessions are listed");
    assert_eq!(removed(), [RemovedSession { session, records: 3 }]);
    let report = block_on(admin.verify()).expect("a store can be verified");
    assert!(report.is_sound() && report.removed == removed());
    write_notes(store, 1, &[]);
    assert_eq!(removed(), []);
}

/// Deleting a snapshot deletes nothing else. It may be repeated, and the session has to exist.
pub(crate) fn a_deleted_snapshot_leaves_the_journal(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let (store, admin) = (one.store(), one.admin());
    let writer = Writer::create(store, sample::session(1));
    let (session, before) = (writer.session(), writer.records());
    let saved = store.save_snapshot(session, writer.claim.fence, writer.next, vec![1, 2, 3]);
    block_on(saved).expect("the holder saves a snapshot");
    for _ in 0..2 {
        block_on(admin.remove_snapshot(session)).expect("a snapshot can be deleted");
        assert!(block_on(store.snapshot(session)).expect("snapshots can be read").is_none());
    }
    assert_eq!(records(store, session), before);
    let unknown = block_on(admin.remove_snapshot(sample::session(9))).expect_err("there is no such session");
    assert_eq!(unknown.code(), ErrorCode::SessionNotFound);
}

/// A statement returns rows up to a limit, reads the view of sessions, and changes nothing.
pub(crate) fn sql_reads_and_does_nothing_else(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let admin = one.admin();
    let session = indexed(one.store(), summary_at(sample::session(1), 1, "a mission")).session();
    let select = |sql: &str, parameters: &[SqlValue], rows: usize| {
        let mut found = Rows::default();
        let limits = SelectLimits { rows, ..SelectLimits::default() };
        let selected = supported(block_on(admin.select(sql, parameters, limits, &mut found)));
        selected.map(|selected| (selected, found))
    };
    let sql = format!("SELECT {} AS one UNION ALL SELECT 2", one.first_parameter());
    let Some((selected, found)) = select(&sql, &[SqlValue::Integer(1)], 9) else { return };
    let selected = selected.expect("a statement that reads is executed");
    assert_eq!((selected.rows, selected.is_cut), (2, false));
    assert_eq!(found.columns, ["one"]);
    assert_eq!(found.rows, [[SqlValue::Integer(1)], [SqlValue::Integer(2)]]);
    let (cut, found) = select("SELECT 1 AS one UNION ALL SELECT 2", &[], 1).expect("SQL is supported");
    assert!(cut.expect("a limit is not an error").is_cut && found.rows.len() == 1);
    let (_, found) = select("SELECT session FROM sessions", &[], 9).expect("SQL is supported");
    assert_eq!(found.rows, [[SqlValue::Text(session.to_string())]]);
    for wrong in ["DELETE FROM sessions", "SELECT", "nonsense", "SELECT 1; SELECT 2"] {
        let (refused, _) = select(wrong, &[], 9).expect("SQL is supported");
        assert_eq!(refused.expect_err(wrong).code(), ErrorCode::QueryInvalid, "{wrong}");
    }
    assert_eq!(records(one.store(), session).len(), 1);
}

/// A note about a file that is being written is not one about a remainder.
pub(crate) fn what_a_living_process_writes_is_not_unfinished(one: &dyn HasAdmin, _: &dyn HasAdmin) {
    let (scratch, admin) = (scratch(), one.admin());
    let place = scratch.path().join("export.partial-1");
    std::fs::write(&place, "a part").expect("a file can be written");
    let note = block_on(admin.note_unfinished(&place));
    assert!(!block_on(admin.unfinished()).contains(&place));
    assert!(!block_on(admin.remove_unfinished()).contains(&place));
    drop(note);
    assert!(place.exists(), "only a note was removed");
}

/// What a store refuses as unsupported it refuses with a hint, and it is still sound.
pub(crate) fn what_is_not_supported_has_a_code_and_a_hint(one: &dyn HasAdmin, two: &dyn HasAdmin) {
    unsupported_operations(one, two);
    assert!(block_on(one.admin().verify()).expect("a store can be verified").is_sound());
}
