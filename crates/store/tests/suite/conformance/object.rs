//! Guarantees about objects: they are stored before the records that refer to them, once, and never change.

use backstitch_core::journal::{Batch, Position, RecordBody};
use backstitch_core::message::MessageKind;
use backstitch_core::object::{Object, ObjectKind};
use backstitch_core::ports::{ClaimMode, Store, StoreError};
use backstitch_testkit::sample;

use super::{Writer, append, claim, first_batch, object};

fn notes_with(objects: &[Object]) -> Batch {
    let mut batch = sample::notes(["with objects"]);
    for object in objects {
        batch.add_object(object.clone());
    }
    batch
}

/// Objects of every kind are read byte for byte, also those that no record names, such as the files of a
/// tree.
pub(crate) fn objects_are_read_as_they_were_stored(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    let objects: Vec<Object> = [ObjectKind::Blob, ObjectKind::Tree, ObjectKind::Commit]
        .into_iter()
        .flat_map(|kind| [Object::new(kind, *b""), Object::new(kind, bytes.clone())])
        .collect();
    for one in &objects {
        assert_eq!(object(store, one.id()), None);
    }
    writer.append(notes_with(&objects)).expect("objects may come with any record");
    for one in &objects {
        assert_eq!(object(store, one.id()).as_ref(), Some(one));
    }
    assert_eq!(object(store, Object::blob(*b"never stored").id()), None);
}

/// An object may be repeated, in one batch and in several.
pub(crate) fn an_object_is_stored_once(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let one = Object::blob(vec![7; 100_000]);
    for _ in 0..3 {
        writer.append(notes_with(&[one.clone(), one.clone()])).expect("a stored object is not an error");
        assert_eq!(object(store, one.id()).as_ref(), Some(&one));
    }
    assert_eq!(writer.records().len(), 4);
}

/// A record may refer to an object that another session stored.
pub(crate) fn objects_are_shared_between_sessions(store: &dyn Store) {
    let journal = sample::every_kind();
    let mut first = Writer::claim(store, journal.session);
    first.append_all(journal.batches.clone());
    // A fork repeats the messages of its parent, but not their objects.
    let mut second = Writer::create(store, sample::session(2));
    let mut bare = sample::notes(["a fork"]);
    for body in journal.batches.iter().flat_map(|batch| batch.bodies()) {
        if matches!(body, RecordBody::MessageAppended(_)) {
            bare.push(body.clone());
        }
    }
    assert!(bare.objects().is_empty() && bare.bodies().iter().any(|body| !body.object_refs().is_empty()));
    second.append(bare).expect("the objects are stored");
}

/// The objects of a refused batch are not stored, whatever the reason.
pub(crate) fn objects_of_refused_batches_are_not_stored(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let (session, fence) = (writer.session(), writer.claim.fence);
    let lost = Object::blob(*b"lost");
    let with_lost = || notes_with(std::slice::from_ref(&lost));

    assert_fails!(append(store, session, Position::new(5), fence, with_lost()), StoreError::Conflict { .. });
    assert_fails!(writer.append(with_lost().with(sample::created(session))), StoreError::Beginning { .. });
    let refers = sample::every_kind().batches[1].bodies()[1].clone();
    assert_fails!(writer.append(with_lost().with(refers)), StoreError::MissingObject { .. });
    let mut empty = sample::notes::<String>([]);
    empty.add_object(lost.clone());
    assert_fails!(writer.append(empty), StoreError::EmptyBatch);
    claim(store, session, "bob", ClaimMode::TakeOver).expect("a held session can be taken over");
    assert_fails!(writer.append(with_lost()), StoreError::Fenced { .. });

    assert_eq!(object(store, lost.id()), None);
    assert_eq!(writer.records().len(), 1);
}

/// A message whose text is too large for a record can be hydrated from stored objects.
pub(crate) fn large_contents_come_back(store: &dyn Store) {
    let journal = sample::every_kind();
    let mut writer = Writer::claim(store, journal.session);
    writer.append(first_batch(journal.session)).expect("a claimed session can be created");
    writer.append(journal.batches[1].clone()).expect("a batch that fits is appended");
    let found = writer.records();
    let asked = found.iter().find_map(|record| match &record.body {
        RecordBody::MessageAppended(message) => Some(message),
        _ => None,
    });
    let mut message = asked.expect("something was asked").message.clone();
    assert_eq!(message.kind(), MessageKind::Parts);
    assert_eq!(message.text(), "What is this?", "the large part is in an object");
    message
        .hydrate(|reference| object(store, reference.object).map(|object| object.bytes().clone()))
        .expect("all objects are stored");
    assert_eq!(message.text(), format!("What is this?\n{}", "Read all of it: ".repeat(8_192)));
}
