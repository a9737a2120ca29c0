//! Opening sessions from snapshots: only the records after a snapshot are read, and whatever is wrong with a
//! snapshot, the session is what its records say.

use std::sync::Arc;

use backstitch_core::execution::Resources;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Effect, Note, Origin, Position, SessionCreated};
use backstitch_core::ports::{ClaimMode, Owner, Store};
use backstitch_core::view::JournalView;
use backstitch_runtime::{
    LiveSession, PointSpec, ResumeOptions, Runtime, SessionEnvironment, SessionOptions, SnapshotState,
    SystemClock, check_snapshot, fold_view, load_view,
};
use backstitch_testkit::sample::{self, Journal};
use serde_json::json;

use crate::counting::CountingStore;
use crate::tailor::{reply, scripted, with_keep};

/// Appends a journal.
async fn write(store: &CountingStore, journal: &Journal) {
    let held = store.claim(journal.session, Owner::new("a test"), ClaimMode::IfFree).await.unwrap();
    let mut next = Position::START;
    for batch in &journal.batches {
        next = store.append(journal.session, next, held.fence, batch.clone()).await.unwrap();
    }
    store.release(held).await.unwrap();
}

/// Saves a snapshot of a session at a cut, and returns it.
async fn snapshot(store: &CountingStore, session: SessionId, cut: u64) -> Vec<u8> {
    let cut = Position::new(cut);
    let bytes = fold_view(store, session, Some(cut)).await.unwrap().encode_snapshot().unwrap();
    let held = store.claim(session, Owner::new("a test"), ClaimMode::IfFree).await.unwrap();
    store.save_snapshot(session, held.fence, cut, bytes.clone()).await.unwrap();
    store.release(held).await.unwrap();
    store.take_reads();
    bytes
}

fn environment(store: &Arc<CountingStore>) -> SessionEnvironment {
    SessionEnvironment {
        store: store.clone(),
        clock: Arc::new(SystemClock::new()),
        owner: Owner::new("a test"),
        resources: Resources::default(),
        workspace: None,
        snapshot_interval: 1_000,
    }
}

#[track_caller]
fn assert_same(one: &JournalView, other: &JournalView) {
    assert_eq!(one.difference(other).unwrap(), None);
}

#[tokio::test]
async fn no_record_before_the_snapshot_is_read() {
    let journal = sample::conversation(200);
    let store = Arc::new(CountingStore::default());
    write(&store, &journal).await;
    let cut = journal.records().len() as u64 - 100;
    snapshot(&store, journal.session, cut).await;
    let live = LiveSession::open(environment(&store), journal.session, ClaimMode::IfFree, |_| {}).await;
    let live = live.unwrap();
    let reads = store.take_reads();
    assert!(!reads.is_empty() && reads.iter().all(|(_, from)| from.number() >= cut), "{reads:?}");
    let folded = fold_view(&*store, journal.session, None).await.unwrap();
    assert_same(&live.state().await.view, &folded);
    live.release().await.unwrap();

    store.take_reads();
    assert_same(&load_view(&*store, journal.session, None).await.unwrap(), &folded);
    assert!(store.take_reads().iter().all(|(_, from)| from.number() >= cut));
}

#[tokio::test]
async fn a_cut_after_the_snapshot_is_opened_from_it_and_one_before_it_is_not() {
    let journal = sample::conversation(30);
    let store = CountingStore::default();
    write(&store, &journal).await;
    let (session, cut) = (journal.session, 150);
    snapshot(&store, session, cut).await;
    for at in [1, 149, 150, 151, 200] {
        let at = Position::new(at);
        store.take_reads();
        let loaded = load_view(&store, session, Some(at)).await.unwrap();
        let first = store.take_reads().iter().map(|(_, from)| from.number()).min();
        assert!(first.is_none_or(|first| (first < cut) == (at.number() < cut)), "{at}: {first:?}");
        assert_same(&loaded, &fold_view(&store, session, Some(at)).await.unwrap());
    }
}

#[tokio::test]
async fn a_fork_is_opened_from_its_own_snapshot_or_from_one_of_its_parent_before_the_fork() {
    let journal = sample::conversation(30);
    let store = CountingStore::default();
    write(&store, &journal).await;
    let (parent, at) = (journal.session, Position::new(160));
    let fork = sample::session(99);
    let origin = Origin::Fork { session: parent, position: at };
    let created = SessionCreated { origin, ..sample::created(fork) };
    let batch =
        Batch::at(created.created_at).with(created).with(Note::new("a", "b")).with(Note::new("a", "c"));
    write(&store, &Journal { session: fork, batches: vec![batch] }).await;
    let folded = fold_view(&store, fork, None).await.unwrap();

    // A snapshot of the parent after the fork says nothing about the fork.
    for (cut, applies) in [(170, false), (160, true), (150, true)] {
        snapshot(&store, parent, cut).await;
        assert_same(&load_view(&store, fork, None).await.unwrap(), &folded);
        let reads = store.take_reads();
        let of_parent = reads.iter().filter(|(session, _)| *session == parent);
        assert!(of_parent.clone().all(|(_, from)| (from.number() >= cut) == applies), "{cut}: {reads:?}");
    }
    snapshot(&store, fork, 2).await;
    assert_same(&load_view(&store, fork, None).await.unwrap(), &folded);
    let reads = store.take_reads();
    assert!(reads.iter().all(|(session, from)| *session == fork && from.number() >= 2), "{reads:?}");
}

#[tokio::test]
async fn whatever_is_wrong_with_a_snapshot_the_session_is_what_its_records_say() {
    let journal = sample::conversation(20);
    let store = CountingStore::default();
    write(&store, &journal).await;
    let session = journal.session;
    let folded = fold_view(&store, session, None).await.unwrap();
    let head = folded.head().number();
    let sound = folded.encode_snapshot().unwrap();
    let of_another = JournalView::fold(&sample::journal(5, 3).records()).unwrap();
    assert_ne!(of_another.session_id(), session);
    let mut of_another_version = sound.clone();
    of_another_version[9] ^= 1;
    let forgeries = [
        (head, Vec::new()),
        (head, b"{\"version\":1}".to_vec()),
        (head, sound[..sound.len() / 2].to_vec()),
        (head, of_another_version),
        (head - 1, sound.clone()),
        (head + 5, sound.clone()),
        (of_another.head().number(), of_another.encode_snapshot().unwrap()),
    ];
    for (position, bytes) in forgeries {
        store.forge(position, bytes);
        assert_same(&load_view(&store, session, None).await.unwrap(), &folded);
        assert_same(&load_view(&store, session, Some(Position::new(10))).await.unwrap(), &{
            fold_view(&store, session, Some(Position::new(10))).await.unwrap()
        });
    }
    // One that is ahead of the journal, and agrees with itself.
    let longer = Journal { session, batches: [&journal.batches[..], &[sample::notes(["late"])]].concat() };
    let ahead = JournalView::fold(&longer.records()).unwrap();
    store.forge(ahead.head().number(), ahead.encode_snapshot().unwrap());
    assert_same(&load_view(&store, session, None).await.unwrap(), &folded);
}

#[tokio::test]
async fn snapshots_are_compared_with_the_records() {
    let journal = sample::conversation(20);
    let store = CountingStore::default();
    write(&store, &journal).await;
    let session = journal.session;
    assert_eq!(check_snapshot(&store, session).await.unwrap(), SnapshotState::Absent);
    let bytes = snapshot(&store, session, 100).await;
    assert_eq!(check_snapshot(&store, session).await.unwrap(), SnapshotState::Sound);
    store.forge(100, bytes[1..].to_vec());
    assert!(matches!(check_snapshot(&store, session).await.unwrap(), SnapshotState::Unusable(_)));
    // A snapshot that reads well and says something else.
    let text = b"\"sequence\":1,";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    let mut wrong = bytes;
    wrong[at + text.len() - 2] = b'2';
    store.forge(100, wrong);
    assert_eq!(check_snapshot(&store, session).await.unwrap(), SnapshotState::Wrong("slices"));
}

#[tokio::test]
async fn snapshots_are_written_as_the_session_grows_and_released_with_it() {
    let store = Arc::new(CountingStore::default());
    let runtime = Runtime::new(store.clone()).with_snapshot_interval(10);
    let turns = 150;
    let replies = (0..turns).map(|turn| reply("sewing", &[("keep", json!({ "text": format!("{turn}") }))]));
    let replies = replies.chain([reply("Sewn.", &[])]).collect();
    let (agent, _) = with_keep(scripted(replies), Effect::Pure);
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let session = driver.session().id();
    driver.start("sew").await.unwrap();
    driver.session().release().await.unwrap();

    let (saved, head) = (store.saved(), store.head(session).await.unwrap().number());
    assert!(head > 500 && !saved.is_empty(), "{saved:?} of {head}");
    // All of them together are no more than some times the last one.
    let all: u64 = saved.iter().map(|cut| cut.number()).sum();
    assert!(all <= 4 * head, "{saved:?} of {head}");
    let folded = fold_view(&*store, session, None).await.unwrap();
    assert_same(&load_view(&*store, session, None).await.unwrap(), &folded);
    assert_eq!(check_snapshot(&*store, session).await.unwrap(), SnapshotState::Sound);

    // Opening it again continues from there.
    let again = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    assert_same(&again.session().state().await.view, &folded);
    again.resume(ResumeOptions::default()).await.unwrap();
    again.session().release().await.unwrap();
}

#[tokio::test]
async fn no_answer_waits_for_a_snapshot() {
    let store = Arc::new(CountingStore::default());
    let runtime = Runtime::new(store.clone()).with_snapshot_interval(1);
    let agent = scripted(vec![reply("Sewn.", &[])]);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    store.stall_snapshots(true);
    driver.start("sew").await.unwrap();
    assert!(store.saved().len() <= 1, "only one was saved before");
    let released = tokio::spawn({
        let live = driver.session().clone();
        async move { live.release().await }
    });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!released.is_finished(), "the release waits for the snapshot");
    store.stall_snapshots(false);
    released.await.unwrap().unwrap();
    assert!(!store.saved().is_empty());
}

#[tokio::test]
async fn a_session_that_went_back_to_before_its_snapshot_gets_another() {
    let store = Arc::new(CountingStore::default());
    let runtime = Runtime::new(store.clone()).with_snapshot_interval(1);
    let replies = (0..20).map(|turn| reply("sewing", &[("keep", json!({ "text": format!("{turn}") }))]));
    let (agent, _) = with_keep(scripted(replies.chain([reply("Sewn.", &[])]).collect()), Effect::Pure);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let session = driver.session().id();
    driver.start("sew").await.unwrap();
    let live = driver.session();
    live.rewind(&PointSpec::Position(Position::new(20)), None).await.unwrap();
    live.release().await.unwrap();
    let folded = fold_view(&*store, session, None).await.unwrap();
    assert_eq!(store.saved().last(), Some(&folded.head()), "{:?}", store.saved());
    store.take_reads();
    assert_same(&load_view(&*store, session, None).await.unwrap(), &folded);
    let reads = store.take_reads();
    assert!(reads.iter().all(|(_, from)| *from >= folded.head()), "{reads:?}");
}
