//! What stores promise about summaries: one is stored with its batch, describes the head, and is replaced by no other way than
//! a later batch or a put at the same head.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use backstitch_core::budget::Amounts;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{
    Batch, EvaluationOutcome, JournalState, Origin, PauseReason, Position, SessionFailure, SessionStopped,
    SessionSummary, StopReason,
};
use backstitch_core::ports::{ClaimMode, SessionQuery, Store, StoreError};
use backstitch_testkit::{block_on, sample};

use super::{Writer, append, claim, first_batch, head};

/// A summary of the session after so many records.
pub(super) fn summary_at(session: SessionId, position: u64, mission: &str) -> SessionSummary {
    SessionSummary {
        position: Position::new(position),
        mission: Arc::from(mission),
        ..sample::summary(session)
    }
}

/// A batch of one note with the summary after it.
pub(super) fn summarized(session: SessionId, start: u64, text: &str) -> Batch {
    let mut batch = sample::notes([text]);
    batch.summarize(summary_at(session, start + 1, text));
    batch
}

pub(super) fn indexed<'a>(store: &'a dyn Store, summary: SessionSummary) -> Writer<'a> {
    let mut writer = Writer::claim(store, summary.session);
    let mut batch = first_batch(summary.session);
    batch.summarize(SessionSummary { position: Position::new(1), ..summary });
    writer.append(batch).expect("a claimed session can be created");
    writer
}

fn summary(store: &dyn Store, session: SessionId) -> Option<SessionSummary> {
    block_on(store.summary(session)).expect("the summary of a session that exists can be read")
}

fn mission(store: &dyn Store, session: SessionId) -> Option<String> {
    summary(store, session).map(|summary| summary.mission.to_string())
}

fn put(store: &dyn Store, summary: SessionSummary) -> bool {
    block_on(store.put_summary(summary)).expect("a summary can be put without a claim")
}

fn unindexed(store: &dyn Store) -> Vec<SessionId> {
    block_on(store.unindexed(usize::MAX)).expect("unindexed sessions can be listed")
}

fn listed(store: &dyn Store) -> Vec<SessionId> {
    let page = block_on(store.query(SessionQuery::new())).expect("sessions can be listed");
    page.sessions.into_iter().map(|one| one.summary.session).collect()
}

/// The summary of a batch is there when the batch is, and replaces the one before it.
pub(crate) fn a_summary_is_stored_with_its_batch(store: &dyn Store) {
    let session = sample::session(1);
    let mut writer = indexed(store, summary_at(session, 1, "created"));
    assert_eq!(mission(store, session).as_deref(), Some("created"));
    for (start, text) in [(1, "one"), (2, "two")] {
        writer.append(summarized(session, start, text)).expect("a summarized batch is appended");
        assert_eq!(summary(store, session), Some(summary_at(session, start + 1, text)));
    }
    assert_eq!((listed(store), unindexed(store)), (vec![session], vec![]));
    assert_fails!(block_on(store.summary(sample::session(2))), StoreError::NotFound { .. });
}

/// After a batch without a summary the session has none, until one is put or comes with a later batch.
pub(crate) fn a_batch_without_a_summary_leaves_its_session_unindexed(store: &dyn Store) {
    let session = sample::session(1);
    let mut writer = Writer::create(store, session);
    let is_indexed = |expected: Option<&str>| {
        assert_eq!(mission(store, session).as_deref(), expected);
        assert_eq!(listed(store).is_empty(), expected.is_none());
        assert_eq!(unindexed(store).is_empty(), expected.is_some());
    };
    is_indexed(None);
    assert!(put(store, summary_at(session, 1, "put")));
    is_indexed(Some("put"));
    writer.append(sample::notes(["bare"])).expect("a summary is not needed");
    is_indexed(None);
    writer.append(summarized(session, 2, "carried")).expect("a summarized batch is appended");
    is_indexed(Some("carried"));
    writer.append(sample::notes(["bare again"])).expect("a summary is not needed");
    is_indexed(None);
}

/// Whatever a batch is refused for, the summary before it stays.
pub(crate) fn a_refused_batch_leaves_the_summary(store: &dyn Store) {
    let session = sample::session(1);
    let mut writer = indexed(store, summary_at(session, 1, "before"));
    let fence = writer.claim.fence;
    let mut early = sample::notes(["early"]);
    early.summarize(summary_at(session, 8, "early"));
    assert_fails!(append(store, session, Position::new(7), fence, early), StoreError::Conflict { .. });
    let refers = sample::every_kind().batches[1].bodies()[1].clone();
    let mut missing = sample::notes(["refers"]).with(refers);
    missing.summarize(summary_at(session, 3, "refers"));
    assert_fails!(writer.append(missing), StoreError::MissingObject { .. });
    claim(store, session, "bob", ClaimMode::TakeOver).expect("a held session can be taken over");
    assert_fails!(writer.append(summarized(session, 1, "fenced")), StoreError::Fenced { .. });
    assert_eq!(mission(store, session).as_deref(), Some("before"));
}

/// A batch whose summary describes another position, or another session, counts as one without a summary.
pub(crate) fn a_summary_of_another_head_is_ignored(store: &dyn Store) {
    let session = sample::session(1);
    let mut writer = indexed(store, summary_at(session, 1, "created"));
    for (start, wrong) in
        [(1, summary_at(session, 7, "far")), (2, summary_at(sample::session(2), 3, "other"))]
    {
        let mut batch = sample::notes(["a note"]);
        batch.summarize(wrong);
        writer.append(batch).expect("the records fit");
        assert_eq!(summary(store, session), None, "at {start}");
    }
    // What is pushed after the summary is not described by it.
    let late = summarized(session, 3, "early").with(sample::note("late"));
    writer.append(late).expect("the records fit");
    assert_eq!((summary(store, session), unindexed(store)), (None, vec![session]));
}

/// Of summaries that are put, only one of the head is written; nothing is written for a session that does not exist.
pub(crate) fn only_a_summary_of_the_head_is_put(store: &dyn Store) {
    let session = sample::session(1);
    let mut writer = indexed(store, summary_at(session, 1, "created"));
    writer.append(summarized(session, 1, "carried")).expect("a summarized batch is appended");
    for position in [0, 1, 3, u64::MAX >> 1] {
        assert!(!put(store, summary_at(session, position, "wrong")), "at {position}");
        assert_eq!(mission(store, session).as_deref(), Some("carried"));
    }
    assert!(put(store, summary_at(session, 2, "right")));
    assert_eq!(mission(store, session).as_deref(), Some("right"));
    assert_eq!(head(store, session), Position::new(2), "a summary writes no records");
    let unknown = block_on(store.put_summary(sample::summary(sample::session(2))));
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })), "{unknown:?}");
}

/// A summary with every field filled is read as it was written, both ways.
pub(crate) fn summaries_come_back_as_they_were_written(store: &dyn Store) {
    let (session, parent) = (sample::session(1), sample::session(9));
    let full = SessionSummary {
        state: JournalState::Paused,
        pause: Some(PauseReason::Budget),
        outcome: Some(EvaluationOutcome::Cancelled),
        failure: Some(SessionFailure { kind: "auth".into(), message: "no ".into(), attempts: Some(3) }),
        stopped: Some(SessionStopped {
            message: Some("é\u{0}\"".into()),
            ..SessionStopped::new(StopReason::Error, None)
        }),
        agent: Some("tailor".into()),
        workspace: Some("/home/ada/a coat".into()),
        project: Some("/home/ada/coat".into()),
        origin: Origin::Fork { session: parent, position: Position::new(7) },
        name: Some("hem".into()),
        tags: BTreeMap::from([("a".into(), "1".into()), ("b".into(), "".into())]),
        mission: Arc::from("Mend the coat"),
        turns: 7,
        spent: Amounts { input_tokens: 5, money_micros: u64::MAX, ..Amounts::ONE_TURN },
        ..sample::summary(session)
    };
    let mut writer = indexed(store, full.clone());
    assert_eq!(summary(store, session).as_ref(), Some(&full));
    let page = block_on(store.query(SessionQuery::new())).expect("sessions can be listed");
    assert_eq!(page.sessions[0].summary, full);
    writer.append(sample::notes(["bare"])).expect("a summary is not needed");
    let replaced = SessionSummary { position: Position::new(2), tags: BTreeMap::new(), ..full };
    assert!(put(store, replaced.clone()));
    assert_eq!(summary(store, session), Some(replaced));
    let tagged = block_on(store.query(SessionQuery::new().with_tag("a", "1"))).expect("tags can be queried");
    assert_eq!(tagged.sessions, [], "the tags are those of the last summary");
}

/// Sessions without a summary are listed in the order of creation, at most as many as asked for.
pub(crate) fn unindexed_sessions_are_listed_in_order(store: &dyn Store) {
    let seeds = [5, 3, 8, 1];
    let created = seeds.map(|seed| Writer::create(store, sample::session(seed)).session());
    indexed(store, sample::summary(sample::session(4)));
    assert_eq!(unindexed(store), created);
    let two = block_on(store.unindexed(2)).expect("unindexed sessions can be listed");
    assert_eq!(two, created[..2]);
    assert_eq!(block_on(store.unindexed(0)).expect("none can be listed"), []);
    assert!(put(store, sample::summary(created[1])));
    assert_eq!(unindexed(store), [created[0], created[2], created[3]]);
}

/// While batches are appended, each reader finds a summary, and it is that of a head between two moments.
pub(crate) fn readers_see_the_summary_of_the_head(store: &dyn Store) {
    let session = sample::session(1);
    let mut writer = indexed(store, summary_at(session, 1, "created"));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let before = head(store, session);
                let found = summary(store, session).expect("there is always a summary");
                let after = head(store, session);
                assert!(before <= found.position && found.position <= after, "{before} {found:?} {after}");
            }
        });
        for start in 1..200 {
            writer.append(summarized(session, start, "note")).expect("a summarized batch is appended");
        }
        done.store(true, Ordering::SeqCst);
    });
}
