//! Guarantees of reads.

use backstitch_core::journal::{Position, Record, RecordBody};
use backstitch_core::ports::{Store, StoreError};
use backstitch_testkit::{block_on, sample};

use super::{Writer, head, read, texts};

/// Ranges start at the requested position and end at their limit or at the end of the journal, whichever is
/// first.
pub(crate) fn ranges_are_cut_at_both_ends(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    for index in 1..10 {
        writer.append(sample::notes([index.to_string()])).expect("notes fit anywhere");
    }
    let session = writer.session();
    let all = writer.records();
    assert_eq!(all.len(), 10);
    for from in 0..12_usize {
        for limit in [0, 1, 2, 9, 10, 11, usize::MAX] {
            let found = read(store, session, from as u64, limit);
            let start = from.min(10);
            let end = start.saturating_add(limit).min(10);
            assert_eq!(found, &all[start..end], "from {from}, at most {limit}");
        }
    }
    assert_eq!(read(store, session, u64::MAX, 1), []);
    assert_eq!(read(store, session, u64::MAX, usize::MAX), []);
    assert_eq!(texts(&read(store, session, 9, usize::MAX)), ["9"]);
    assert_eq!(head(store, session), Position::new(10));
}

/// Reading a session that does not exist is an error that names it, not an empty journal.
pub(crate) fn an_unknown_session_is_not_found(store: &dyn Store) {
    Writer::create(store, sample::session(1));
    let unknown = sample::session(2);
    let is_not_found =
        |error: &StoreError| matches!(error, StoreError::NotFound { session } if *session == unknown);
    for limit in [0, 1, usize::MAX] {
        let error = block_on(store.read(unknown, Position::START, limit)).expect_err("it does not exist");
        assert!(is_not_found(&error), "{error:?}");
    }
    let error = block_on(store.head(unknown)).expect_err("it does not exist");
    assert!(is_not_found(&error), "{error:?}");
    assert_eq!(block_on(store.holder(unknown)).expect("the holder can be read"), None);
}

/// Notes are those that a whole journal has, wherever they are.
pub(crate) fn notes_are_found_among_other_records(store: &dyn Store) {
    let is_note = |record: &Record| matches!(record.body, RecordBody::Note(_));
    for seed in 1..6 {
        let journal = sample::journal(seed, 30);
        let mut writer = Writer::claim(store, journal.session);
        for batch in journal.batches {
            writer.append(batch).expect("a sample can be appended");
        }
        writer.append(sample::notes(["last"])).expect("notes fit anywhere");
        let expected: Vec<_> = writer.records().into_iter().filter(is_note).collect();
        let found = block_on(store.notes(writer.session())).expect("notes can be read");
        assert_eq!(found, expected);
    }
    let unknown = sample::session(77);
    let error = block_on(store.notes(unknown)).expect_err("it does not exist");
    assert!(matches!(error, StoreError::NotFound { session } if session == unknown), "{error:?}");
}

/// Sessions are listed in the order in which they were created, not in that of their ids, their claims or
/// their latest records.
pub(crate) fn sessions_are_listed_in_the_order_of_their_creation(store: &dyn Store) {
    assert_eq!(block_on(store.sessions()).expect("sessions can be listed"), []);
    let mut writers: Vec<Writer<'_>> =
        (0..20).map(|seed| Writer::claim(store, sample::session(seed))).collect();
    let ids: Vec<_> = writers.iter().map(Writer::session).collect();
    assert!(!ids.is_sorted(), "the samples are in the order of their ids, which would hide a mistake");
    let mut expected = Vec::new();
    for index in [3, 1, 4, 15, 9, 2, 6, 5, 19, 8, 7, 0, 10] {
        let writer = &mut writers[index];
        writer.append(super::first_batch(writer.session())).expect("a claimed session can be created");
        expected.push(writer.session());
        let earliest = expected[0];
        let first = writers.iter_mut().find(|writer| writer.session() == earliest);
        first.expect("it was created").append(sample::notes(["later"])).expect("notes fit anywhere");
        assert_eq!(block_on(store.sessions()).expect("sessions can be listed"), expected);
    }
}
