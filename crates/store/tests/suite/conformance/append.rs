//! Guarantees of appends: atomic batches, dense positions, nothing lost and nothing changed.

use backstitch_core::journal::{Batch, Position};
use backstitch_core::ports::{Store, StoreError};
use backstitch_core::view::JournalView;
use backstitch_testkit::sample::{self, Journal};
use backstitch_testkit::{block_on, fold};

use super::{Writer, append, first_batch, head, object, records, texts};

/// Appends a journal batch by batch, and checks the position after each.
fn write_all<'a>(store: &'a dyn Store, journal: &Journal) -> Writer<'a> {
    let mut writer = Writer::claim(store, journal.session);
    let mut count = 0;
    for batch in &journal.batches {
        count += batch.len();
        let next = writer.append(batch.clone()).expect("a batch that fits is appended");
        assert_eq!(next, Position::START.after(count), "the position after the batch");
    }
    writer
}

/// Records of every kind are read as they were appended, field by field, and so are the objects that they
/// refer to.
pub(crate) fn every_kind_of_record_comes_back(store: &dyn Store) {
    for journal in [sample::every_kind(), sample::journal(3, 40)] {
        let writer = write_all(store, &journal);
        let (found, expected) = (writer.records(), journal.records());
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected);
        }
        for one in journal.objects() {
            assert_eq!(object(store, one.id()).as_ref(), Some(one));
        }
    }
}

/// Positions start at 0 and have no gaps, whatever the sizes of the batches.
pub(crate) fn positions_are_dense(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    for size in [1, 3, 1, 17, 2] {
        writer.append(sample::notes((0..size).map(|index| index.to_string()))).expect("notes fit anywhere");
    }
    let positions: Vec<u64> = writer.records().iter().map(|record| record.position.number()).collect();
    assert_eq!(positions, (0..25).collect::<Vec<_>>());
    assert_eq!(head(store, writer.session()), Position::new(25));
}

/// A batch without records is refused, at the beginning and later.
pub(crate) fn an_empty_batch_is_refused(store: &dyn Store) {
    let mut writer = Writer::claim(store, sample::session(1));
    let empty = || sample::notes::<String>([]);
    assert_fails!(writer.append(empty()), StoreError::EmptyBatch);
    writer.append(first_batch(writer.session())).expect("the session can still be created");
    assert_fails!(writer.append(empty()), StoreError::EmptyBatch);
    assert_eq!(writer.records().len(), 1);
}

/// A journal that does not start with the creation of its own session, or contains it twice, is refused.
/// Nothing of the batch is stored.
pub(crate) fn a_bad_beginning_leaves_nothing(store: &dyn Store) {
    let session = sample::session(1);
    let mut writer = Writer::claim(store, session);
    let created = || sample::created(session);
    let late = sample::notes(["first"]).with(created());
    let twice = first_batch(session).with(created());
    for batch in [sample::notes(["no creation"]), late, twice, first_batch(sample::session(2))] {
        assert_fails!(writer.append(batch), StoreError::Beginning { session: named } if named == session);
        assert_fails!(block_on(store.read(session, Position::START, 1)), StoreError::NotFound { .. });
        assert_eq!(block_on(store.sessions()).expect("sessions can be listed"), []);
    }
    writer.append(first_batch(session)).expect("the session can still be created");
    assert_fails!(writer.append(sample::notes(["a note"]).with(created())), StoreError::Beginning { .. });
    assert_eq!(writer.records().len(), 1);
}

/// A batch in which one record refers to a missing object is refused: none of its records is stored.
pub(crate) fn a_batch_with_a_missing_object_leaves_nothing(store: &dyn Store) {
    let journal = sample::every_kind();
    let mut writer = Writer::claim(store, journal.session);
    writer.append(journal.batches[0].clone()).expect("the session is created");
    // The same records without their objects.
    let bare = |batch: &Batch| {
        let bodies = batch.bodies().iter().cloned();
        bodies.fold(sample::notes(["before"]), |bare, body| bare.with(body))
    };
    let error = writer.append(bare(&journal.batches[1])).expect_err("an object is missing");
    let StoreError::MissingObject { object } = error else { panic!("{error:?}") };
    assert!(journal.batches[1].objects().iter().any(|brought| brought.id() == object));
    assert_eq!(writer.records().len(), 1);
    assert_eq!(head(store, journal.session), Position::new(1));

    writer.append(journal.batches[1].clone()).expect("with its objects the batch is stored");
    writer.append(bare(&journal.batches[3])).expect("stored objects need not be part of the batch");
}

/// An append at another position than the next one fails with the next position, and nothing is stored. That
/// holds for a batch that was stored before, too: appends are not idempotent.
pub(crate) fn an_unexpected_position_is_a_conflict_that_names_the_right_one(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    writer.append(sample::notes(["one", "two"])).expect("notes fit anywhere");
    let (session, fence) = (writer.session(), writer.claim.fence);
    for wrong in [1, 2, 4, 1_000_000, u64::MAX] {
        let error = append(store, session, Position::new(wrong), fence, sample::notes(["one", "two"]));
        let error = error.expect_err("the position is not the next one");
        let StoreError::Conflict { session: named, expected, actual } = error else { panic!("{error:?}") };
        assert_eq!((named, expected, actual), (session, Position::new(wrong), Position::new(3)));
    }
    let again = append(store, session, Position::START, fence, first_batch(session));
    assert!(
        matches!(again, Err(StoreError::Conflict { actual, .. }) if actual == Position::new(3)),
        "{again:?}"
    );
    assert_eq!(texts(&writer.records()), ["one", "two"]);

    // Without a journal the next position is the first.
    let other = Writer::claim(store, sample::session(2));
    let early = append(store, other.session(), Position::new(1), other.claim.fence, sample::notes(["early"]));
    assert!(matches!(early, Err(StoreError::Conflict { actual: Position::START, .. })), "{early:?}");
}

/// Many small batches are read in the order in which they were appended.
pub(crate) fn a_thousand_small_batches_stay_in_order(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let texts_of = |index: usize| (0..1 + index % 2).map(move |part| format!("{index}.{part}"));
    for index in 0..1_000 {
        writer.append(sample::notes(texts_of(index))).expect("notes fit anywhere");
    }
    let expected: Vec<String> = (0..1_000).flat_map(texts_of).collect();
    assert_eq!(texts(&writer.records()), expected);
}

/// Two sessions that are written alternately each have their own records, positions and order.
pub(crate) fn sessions_do_not_interfere(store: &dyn Store) {
    let mut one = Writer::create(store, sample::session(1));
    let mut other = Writer::create(store, sample::session(2));
    for index in 0..20 {
        one.append(sample::notes([format!("one {index}")])).expect("notes fit anywhere");
        other.append(sample::notes([format!("other {index}"), "more".into()])).expect("notes fit anywhere");
    }
    let failed = append(store, one.session(), Position::new(5), one.claim.fence, sample::notes(["x"]));
    assert!(matches!(failed, Err(StoreError::Conflict { .. })), "{failed:?}");
    let expected: Vec<String> = (0..20).map(|index| format!("one {index}")).collect();
    assert_eq!(texts(&one.records()), expected);
    assert_eq!((one.next, other.next), (Position::new(21), Position::new(41)));
    assert_eq!(head(store, one.session()), one.next);
    assert_eq!(head(store, other.session()), other.next);
}

/// The records of a store fold to the same view as the appended batches.
pub(crate) fn a_journal_folds_to_what_was_appended(store: &dyn Store) {
    for seed in 0..4 {
        let journal = sample::journal(seed, 30);
        let writer = write_all(store, &journal);
        let grown = fold::every_cut(&journal.records()).expect("a sample journal can be folded");
        let grown = grown.last().expect("a sample journal is not empty");
        let found = records(store, writer.session());
        let folded = JournalView::fold(&found).expect("what was appended can be folded");
        fold::assert_same(&folded, grown, "the journal that was read");
    }
}
