//! What an import changes is part of the transaction that makes a session visible.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxItem, InboxKind, Note, Position, RecordBody};
use backstitch_core::ports::{
    BundleError, ClaimMode, ImportChanges, Owner, Store as _, StoreError, TransferOutcome, TransferStep,
};
use backstitch_core::time::Timestamp;
use backstitch_store::{Bundle, SqliteOptions, SqliteStore};
use backstitch_testkit::{block_on, sample};
use serde_json::json;

use super::super::agent::Agent;
use super::super::support::{Temporary, read};
use super::{check_sound, empty, exported, sessions};

/// A note for each of these sessions.
fn notes(of: &[SessionId]) -> ImportChanges {
    let batch = || Batch::at(Timestamp::UNIX_EPOCH).with(Note::new("limit", "it is limited"));
    let additions = of.iter().map(|session| (*session, batch())).collect();
    ImportChanges { additions, leaves_out_decisions: true }
}

/// Asserts that a session ends with the note, and returns the number of its records before it.
fn check_limited(store: &SqliteStore, session: SessionId) -> usize {
    let records = read(store, session).unwrap();
    let is_note = |body: &RecordBody| matches!(body, RecordBody::Note(note) if note.topic == "limit");
    let found: Vec<_> = records.iter().map(|record| is_note(&record.body)).collect();
    assert_eq!(found.iter().position(|found| *found), Some(records.len() - 1), "{session}: {found:?}");
    records.len() - 1
}

#[test]
fn a_session_is_never_visible_without_the_records_that_an_import_adds() {
    let store = Temporary::new();
    let mut eldest = Agent::new(&store, 50);
    eldest.call(&[("file", "0")]);
    let cut = eldest.next;
    let mut fork = eldest.fork(51, cut);
    fork.call(&[("file", "1")]);
    let both = [eldest.session(), fork.session()];
    let bundle = Bundle::open(exported(&store, fork.session(), "fork.bundle"), &mut |_| {}).unwrap();
    // Each session in its own transaction.
    let target = Temporary::with(SqliteOptions { transaction_bytes: 1, ..SqliteOptions::default() });
    let other = SqliteStore::open_read_only(target.path()).unwrap();
    let mut seen = Vec::new();
    let imported = target.import_bundle(&bundle, &notes(&both), &mut |progress| {
        if progress.step == TransferStep::Sessions {
            let visible = block_on(other.sessions()).unwrap();
            for session in &visible {
                check_limited(&other, *session);
            }
            seen.push(visible.len());
        }
    });
    assert_eq!(imported.unwrap().outcome(), TransferOutcome::Created);
    assert_eq!(seen, [1, 2]);
    assert_eq!(check_limited(&target, eldest.session()) as u64, cut.number());
    assert_eq!(check_limited(&target, fork.session()) as u64, fork.next.number());
    check_sound(&target);
    // What is there is not changed again.
    let again = target.import_bundle(&bundle, &notes(&both), &mut |_| {}).unwrap();
    assert!(again.sessions.iter().all(|one| one.outcome == TransferOutcome::Present), "{again:?}");
    for session in both {
        check_limited(&target, session);
    }
    assert!(block_on(target.holder(fork.session())).unwrap().is_none());
}

#[test]
fn a_session_that_is_extended_gets_the_records_too() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 50);
    agent.call(&[("file", "0")]);
    let target = empty();
    super::imported(&target, &exported(&store, agent.session(), "short.bundle")).unwrap();
    let from = agent.next;
    agent.call(&[("file", "1")]);
    let bundle = Bundle::open(exported(&store, agent.session(), "long.bundle"), &mut |_| {}).unwrap();
    let report = target.import_bundle(&bundle, &notes(&[agent.session()]), &mut |_| {}).unwrap();
    assert_eq!(report.outcome(), TransferOutcome::Extended { from });
    assert_eq!(check_limited(&target, agent.session()) as u64, agent.next.number());
    check_sound(&target);
}

#[test]
fn a_session_that_a_process_has_claimed_ahead_is_not_imported() {
    let store = Temporary::new();
    let agent = Agent::new(&store, 50);
    let bundle = Bundle::open(exported(&store, agent.session(), "one.bundle"), &mut |_| {}).unwrap();
    let (target, changes) = (empty(), notes(&[agent.session()]));
    let claim = block_on(target.claim(agent.session(), Owner::new("racer"), ClaimMode::IfFree)).unwrap();
    let refused = target.import_bundle(&bundle, &changes, &mut |_| {}).unwrap_err();
    assert!(matches!(refused, BundleError::Store(StoreError::Held { .. })), "{refused:?}");
    assert!(sessions(&target).is_empty());
    block_on(target.release(claim)).unwrap();
    target.import_bundle(&bundle, &changes, &mut |_| {}).unwrap();
    check_limited(&target, agent.session());
}

#[test]
fn decisions_that_wait_can_be_left_out() {
    let store = Temporary::new();
    let agent = Agent::new(&store, 50);
    let decision = InboxItem { kind: InboxKind::Resolution, data: json!({}), ..sample::item("decided") };
    block_on(store.send(agent.session(), decision)).unwrap();
    block_on(store.send(agent.session(), sample::item("waits"))).unwrap();
    let bundle = Bundle::open(exported(&store, agent.session(), "one.bundle"), &mut |_| {}).unwrap();
    for (changes, count) in [(ImportChanges::default(), 2), (notes(&[]), 1)] {
        let target = empty();
        target.import_bundle(&bundle, &changes, &mut |_| {}).unwrap();
        let waiting = block_on(target.inbox(agent.session())).unwrap();
        assert_eq!(waiting.len(), count, "{waiting:?}");
        assert_eq!(read(&*target, agent.session()).unwrap().last().unwrap().position.next(), agent.next);
    }
    assert!(agent.next > Position::START);
}
