//! Guarantees of inboxes: a sent item waits until a batch takes it, and it is taken once, atomically with
//! that batch.

use std::thread;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxId, InboxItem, InboxKind, Position};
use backstitch_core::object::Object;
use backstitch_core::ports::{ClaimMode, Store, StoreError};
use backstitch_testkit::{block_on, sample};
use serde_json::{Value, json};

use super::{Writer, append, claim, head, object, records, texts};

fn send(store: &dyn Store, session: SessionId, text: &str) -> InboxId {
    block_on(store.send(session, sample::item(text))).expect("an existing session accepts items")
}

fn inbox(store: &dyn Store, session: SessionId) -> Vec<(InboxId, InboxItem)> {
    block_on(store.inbox(session)).expect("an inbox can be read")
}

/// The texts of the pending items.
fn waiting(store: &dyn Store, session: SessionId) -> Vec<String> {
    let text = |(_, item): (InboxId, InboxItem)| item.data["text"].as_str().unwrap_or_default().to_owned();
    inbox(store, session).into_iter().map(text).collect()
}

fn taking(text: &str, items: &[InboxId]) -> Batch {
    let mut batch = sample::notes([text]);
    for item in items {
        batch.take(*item);
    }
    batch
}

/// Items of every kind wait unchanged, in the order in which they were sent, each in the inbox of its
/// session.
pub(crate) fn items_wait_in_the_order_in_which_they_were_sent(store: &dyn Store) {
    let one = Writer::create(store, sample::session(1));
    let other = Writer::create(store, sample::session(2));
    assert_eq!(inbox(store, one.session()), []);
    let kinds = ["message", "resolution", "cancel", "pause", "not known"].map(InboxKind::from);
    let datas = [
        json!({"text": "continue"}),
        json!({"call": 1, "kind": "approve"}),
        Value::Null,
        json!(null),
        json!([1.5, "é\u{0}"]),
    ];
    let mut sent = Vec::new();
    for (kind, data) in kinds.into_iter().zip(datas) {
        let item = InboxItem { kind, data, ..sample::item("") };
        let id = block_on(store.send(one.session(), item.clone())).expect("sending needs no claim");
        assert!(sent.last().is_none_or(|(last, _)| *last < id), "a later item has a larger number");
        sent.push((id, item));
        send(store, other.session(), "for the other");
    }
    assert_eq!(inbox(store, one.session()), sent);
    assert_eq!(waiting(store, other.session()), ["for the other"; 5]);
    assert_eq!(one.records().len(), 1, "sending writes no records");
}

/// Sending needs no claim and disturbs no writer; but the session must exist.
pub(crate) fn anybody_may_send_to_a_session_that_exists(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let session = writer.session();
    send(store, session, "while it is held");
    writer.append(sample::notes(["one"])).expect("the holder is not disturbed");
    block_on(store.release(writer.claim.clone())).expect("what is held can be released");
    send(store, session, "while it is free");
    assert_eq!(waiting(store, session), ["while it is held", "while it is free"]);

    let unknown = sample::session(2);
    claim(store, unknown, "ada", ClaimMode::IfFree).expect("a session that is free can be claimed");
    let error = block_on(store.send(unknown, sample::item("hello"))).expect_err("it does not exist");
    assert!(matches!(error, StoreError::NotFound { session } if session == unknown), "{error:?}");
    assert_eq!(inbox(store, unknown), []);
}

/// An item is removed with the batch that takes it, and cannot be taken again.
pub(crate) fn an_item_is_taken_with_the_batch_and_once(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let session = writer.session();
    let ids = ["a", "b", "c"].map(|text| send(store, session, text));
    writer.append(taking("took c and a", &[ids[2], ids[0]])).expect("what waits can be taken");
    assert_eq!(waiting(store, session), ["b"]);
    let error = writer.append(taking("took a again", &[ids[1], ids[0]])).expect_err("it was taken");
    let StoreError::NotInInbox { session: named, item } = error else { panic!("{error:?}") };
    assert_eq!((named, item), (session, ids[0]));
    assert_eq!(waiting(store, session), ["b"]);
    writer.append(taking("took b", &[ids[1]])).expect("what waits can be taken");
    assert_eq!(inbox(store, session), []);
    assert_eq!(texts(&writer.records()), ["took c and a", "took b"]);
    assert!(send(store, session, "d") > ids[2], "no number is used twice");
}

/// Items that were never sent, items of another session and items that are named twice cannot be taken.
/// Nothing of the batch is stored.
pub(crate) fn a_batch_that_takes_what_does_not_wait_leaves_nothing(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let other = Writer::create(store, sample::session(2));
    let mine = send(store, writer.session(), "mine");
    let theirs = send(store, other.session(), "theirs");
    let lost = Object::blob(*b"lost");
    for bad in [&[InboxId(u64::MAX >> 1)][..], &[InboxId(0)], &[mine, theirs], &[mine, mine]] {
        let mut batch = taking("takes too much", bad);
        batch.add_object(lost.clone());
        assert_fails!(writer.append(batch), StoreError::NotInInbox { .. });
        assert_eq!(waiting(store, writer.session()), ["mine"]);
        assert_eq!(waiting(store, other.session()), ["theirs"]);
        assert_eq!(writer.records().len(), 1);
        assert_eq!(object(store, lost.id()), None);
    }
}

/// A refused batch takes no items, whatever the reason.
pub(crate) fn a_refused_batch_takes_nothing(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let (session, fence) = (writer.session(), writer.claim.fence);
    let item = send(store, session, "wait");
    let conflict = append(store, session, Position::new(7), fence, taking("late", &[item]));
    assert!(matches!(conflict, Err(StoreError::Conflict { .. })), "{conflict:?}");
    let refers = sample::every_kind().batches[1].bodies()[1].clone();
    assert_fails!(writer.append(taking("refers", &[item]).with(refers)), StoreError::MissingObject { .. });
    claim(store, session, "bob", ClaimMode::TakeOver).expect("a held session can be taken over");
    assert_fails!(writer.append(taking("fenced", &[item])), StoreError::Fenced { .. });
    assert_eq!(waiting(store, session), ["wait"]);
    assert_eq!(head(store, session), Position::new(1));
}

/// An item that could be stored but not be read again is refused.
pub(crate) fn items_that_would_not_come_back_are_refused(store: &dyn Store) {
    let writer = Writer::create(store, sample::session(1));
    let deep = (0..100).fold(Value::Null, |inner, _| json!([inner]));
    let private = json!({"$serde_json::private::Number": "1"});
    for data in [deep, private] {
        let item = InboxItem { data, ..sample::item("") };
        assert_fails!(block_on(store.send(writer.session(), item)), StoreError::UnstorableItem { .. });
    }
    assert_eq!(inbox(store, writer.session()), []);
}

/// Of two concurrent batches that take the same item exactly one is stored.
pub(crate) fn an_item_is_taken_by_one_of_two(store: &dyn Store) {
    let writer = Writer::create(store, sample::session(1));
    let (session, fence) = (writer.session(), writer.claim.fence);
    for round in 0..50 {
        let item = send(store, session, "once");
        let take = || append(store, session, Position::new(1 + round), fence, taking("took it", &[item]));
        let (one, other) = thread::scope(|scope| {
            let other = scope.spawn(take);
            (take(), other.join().expect("the other one ends"))
        });
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        assert_eq!(inbox(store, session), []);
    }
    assert_eq!(records(store, session).len(), 51);
}
