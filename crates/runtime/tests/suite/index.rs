//! The index: summaries are those that the journals give, whatever happens to a session, and sessions without one are
//! summarized when they are listed.

use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Effect, EvaluationOutcome, EvaluationStarted, JournalState, Position};
use backstitch_core::ports::{
    ClaimMode, IndexedSession, IndexedStatus, OriginKind, Owner, SessionOrder, SessionQuery, Store,
};
use backstitch_core::time::Clock as _;
use backstitch_runtime::{IndexProgress, IndexRepair, ResumeOptions, Runtime, RuntimeError, SessionOptions};
use backstitch_store::{MemoryStore, SqliteStore};
use backstitch_testkit::sample;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use serde_json::json;
use tempfile::TempDir;

use crate::tailor::{reply, scripted, with_keep};

/// Asserts that every session has the summary that its journal gives.
pub(crate) async fn is_current(runtime: &Runtime) {
    let check = runtime.check_index(IndexRepair::Report, |_| {}).await.unwrap();
    assert_eq!((check.differing.as_slice(), check.unindexed.as_slice()), (&[][..], &[][..]));
    assert!(check.unreadable.is_empty(), "{:?}", check.unreadable);
    let sessions = runtime.store().sessions().await.unwrap().len() as u64;
    assert_eq!((check.compared, check.rebuilt), (sessions, 0));
}

async fn listed(runtime: &Runtime, query: SessionQuery) -> Vec<IndexedSession> {
    runtime.sessions(query).await.unwrap().sessions
}

/// Appends batches without summaries, as a writer that does not fold would.
async fn write_bare(store: &dyn Store, session: SessionId, batches: Vec<Batch>) {
    let held = store.claim(session, Owner::new("tests"), ClaimMode::IfFree).await.unwrap();
    let mut next = store.head(session).await.unwrap_or(Position::START);
    for batch in batches {
        next = store.append(session, next, held.fence, batch).await.unwrap();
    }
    store.release(held).await.unwrap();
}

fn created(session: SessionId) -> Batch {
    let created = sample::created(session);
    Batch::at(created.created_at).with(created)
}

#[tokio::test]
async fn a_session_is_listed_as_it_is_driven() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let replies = vec![reply("first", &[("keep", json!({"text": "wait"}))]), reply("done", &[])];
    let (agent, ran) = with_keep(scripted(replies), Effect::Workspace);
    let tags = [("team".to_owned(), "a".to_owned())].into();
    let options = SessionOptions { tags, ..SessionOptions::default() };
    let driver = Arc::new(runtime.create(agent.clone(), options).await.unwrap());
    let session = driver.session().id();
    let status = async || listed(&runtime, SessionQuery::new()).await[0].status();
    assert_eq!(status().await, IndexedStatus::Idle);
    is_current(&runtime).await;

    let running = crate::tailor::started_until(&driver, &ran, 1).await;
    assert_eq!(status().await, IndexedStatus::Running);
    let found = listed(&runtime, SessionQuery::new().with_tag("team", "a").with_agent("tailor")).await;
    assert_eq!((found[0].id(), &*found[0].summary.mission), (session, "sew"));
    is_current(&runtime).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    driver.session().release().await.unwrap();
    is_current(&runtime).await;

    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    driver.session().release().await.unwrap();
    let ended = listed(&runtime, SessionQuery::new().with_outcome(EvaluationOutcome::Completed)).await;
    assert_eq!((ended[0].status(), ended[0].summary.turns), (IndexedStatus::Idle, 2));
    assert_eq!(runtime.interrupted_sessions().await.unwrap(), []);
    runtime.send(session, "And the sleeve?").await.unwrap();
    assert_eq!(status().await, IndexedStatus::Runnable);
    is_current(&runtime).await;
}

#[tokio::test]
async fn a_session_that_an_error_stopped_is_listed_with_the_error() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    // The script has no second answer.
    let (agent, _) =
        with_keep(scripted(vec![reply("first", &[("keep", json!({"text": "a seam"}))])]), Effect::Pure);
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap_err();
    assert_eq!(listed(&runtime, SessionQuery::new()).await[0].status(), IndexedStatus::Running, "it is held");
    driver.session().release().await.unwrap();
    let stopped = listed(&runtime, SessionQuery::new().with_status(IndexedStatus::Stopped)).await;
    assert!(stopped[0].summary.failure.is_some() && stopped[0].summary.stopped.is_some(), "{stopped:?}");
    assert_eq!(runtime.interrupted_sessions().await.unwrap(), [driver.session().id()]);
    is_current(&runtime).await;
}

#[tokio::test]
async fn the_directory_is_recorded_where_no_definition_names_it_and_when_it_moves() {
    let place = TempDir::new().unwrap();
    let store = Arc::new(SqliteStore::open(place.path().join("store/store.db")).unwrap());
    let runtime = Runtime::new(store.clone());
    let options = |name: &str| {
        let directory = place.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let files =
            HostWorkspace::open(OpenOptions::new(directory, place.path().join("store"), store.clone()));
        SessionOptions::with_workspace(Arc::new(files.unwrap()))
    };
    let directory = |name: &str| {
        let path = place.path().canonicalize().unwrap().join(name);
        path.to_str().map(str::to_owned)
    };
    let found = async || {
        listed(&runtime, SessionQuery::new()).await[0].summary.workspace.as_deref().map(str::to_owned)
    };
    let (agent, _) = with_keep(scripted(vec![reply("done", &[]), reply("again", &[])]), Effect::Pure);
    let driver = runtime.create(agent.clone(), options("one")).await.unwrap();
    driver.start("sew").await.unwrap().answer().unwrap();
    driver.session().release().await.unwrap();
    assert_eq!(found().await, directory("one"));
    let session = driver.session().id();
    drop(driver);

    let driver = runtime.open(session, agent, options("two")).await.unwrap();
    driver.start("more").await.unwrap().answer().unwrap();
    driver.session().release().await.unwrap();
    assert_eq!(found().await, directory("two"));
    let view = runtime.view(session).await.unwrap();
    let recorded: Vec<_> =
        view.evaluations().map(|one| one.start.as_ref().unwrap().directory.clone()).collect();
    assert_eq!(recorded, [directory("one"), directory("two")], "only a new directory is recorded");
    is_current(&runtime).await;
}

#[tokio::test]
async fn sessions_without_a_summary_are_indexed_when_they_are_listed() {
    let store = Arc::new(MemoryStore::new());
    let runtime = Runtime::new(store.clone());
    for seed in 1..=70 {
        write_bare(&*store, sample::session(seed), vec![created(sample::session(seed))]).await;
    }
    // An evaluation of an unknown call: the journal cannot be folded.
    let broken = sample::session(99);
    let evaluation = sample::ids(99).next();
    let started = || EvaluationStarted::new(evaluation, "tests", "tailor");
    let twice = Batch::at(sample::clock().now()).with(started()).with(started());
    write_bare(&*store, broken, vec![created(broken), twice]).await;

    let mut reports: Vec<IndexProgress> = Vec::new();
    let report = runtime.index(|progress| reports.push(progress)).await.unwrap();
    assert_eq!((report.indexed, report.unreadable.len()), (70, 1));
    assert_eq!(report.unreadable[0].session, broken);
    assert!(matches!(report.unreadable[0].error, RuntimeError::Fold(_)), "{:?}", report.unreadable[0]);
    assert_eq!(reports.last(), Some(&IndexProgress { done: 71, total: 71 }));
    assert!(reports.len() > 1 && reports.is_sorted_by_key(|progress| progress.done), "{reports:?}");

    let page = runtime.sessions(SessionQuery::new().with_limit(50)).await.unwrap();
    assert_eq!((page.sessions.len(), page.next.is_some()), (50, true));
    assert_eq!(runtime.count_sessions(SessionQuery::new()).await.unwrap(), 70);
    // A later batch without a summary is found by the next query.
    write_bare(&*store, sample::session(3), vec![Batch::at(sample::clock().now()).with(started())]).await;
    let open = listed(&runtime, SessionQuery::new().with_status(IndexedStatus::Interrupted)).await;
    assert_eq!(open.iter().map(IndexedSession::id).collect::<Vec<_>>(), [sample::session(3)]);
}

#[tokio::test]
async fn a_store_that_can_only_be_read_is_listed_in_full() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    let all: Vec<SessionId> = (1..=20).map(sample::session).collect();
    for session in &all {
        write_bare(&store, *session, vec![created(*session)]).await;
    }
    // Some are indexed, some are not.
    for session in all.iter().step_by(3) {
        assert!(store.put_summary(sample::summary(*session)).await.unwrap());
    }
    store.send(all[4], sample::item("hello")).await.unwrap();
    drop(store);
    let before = std::fs::read(&path).unwrap();
    let runtime = Runtime::new(Arc::new(SqliteStore::open_read_only(&path).unwrap()));
    for order in [SessionOrder::OldestFirst, SessionOrder::NewestFirst] {
        let (mut found, mut query) = (Vec::new(), SessionQuery::new().with_order(order).with_limit(6));
        assert_eq!(runtime.count_sessions(query.clone()).await.unwrap(), 20);
        loop {
            let page = runtime.sessions(query.clone()).await.unwrap();
            found.extend(page.sessions.iter().map(IndexedSession::id));
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        if order == SessionOrder::NewestFirst {
            found.reverse();
        }
        assert_eq!(found, all, "{order:?}");
    }
    let runnable = listed(&runtime, SessionQuery::new().with_status(IndexedStatus::Runnable)).await;
    assert_eq!(runnable.iter().map(IndexedSession::id).collect::<Vec<_>>(), [all[4]]);
    assert_eq!(std::fs::read(&path).unwrap(), before, "nothing was written");
}

#[tokio::test]
async fn a_summary_that_differs_from_its_journal_is_found_and_rebuilt() {
    let store = Arc::new(MemoryStore::new());
    let runtime = Runtime::new(store.clone());
    for seed in 1..=3 {
        write_bare(&*store, sample::session(seed), vec![created(sample::session(seed))]).await;
    }
    runtime.index(|_| {}).await.unwrap();
    is_current(&runtime).await;
    let mut wrong = store.summary(sample::session(2)).await.unwrap().unwrap();
    wrong.state = JournalState::Poisoned;
    assert!(store.put_summary(wrong).await.unwrap());
    write_bare(&*store, sample::session(3), vec![sample::notes(["bare"])]).await;

    let check = runtime.check_index(IndexRepair::Report, |_| {}).await.unwrap();
    assert_eq!(check.differing, [sample::session(2)]);
    assert_eq!((check.unindexed.as_slice(), check.rebuilt), (&[sample::session(3)][..], 0));
    let check = runtime.check_index(IndexRepair::Rebuild, |_| {}).await.unwrap();
    assert_eq!((check.differing.len(), check.rebuilt), (1, 2));
    is_current(&runtime).await;
}

#[tokio::test]
async fn only_roots_and_forks_are_roots() {
    let store = Arc::new(MemoryStore::new());
    let runtime = Runtime::new(store.clone());
    for (seed, origin) in [(1, None), (2, Some(sample::session(1)))] {
        let mut first = sample::created(sample::session(seed));
        if let Some(parent) = origin {
            first.origin =
                backstitch_core::journal::Origin::Call { session: parent, call: sample::ids(7).next() };
        }
        let batch = Batch::at(first.created_at).with(first);
        write_bare(&*store, sample::session(seed), vec![batch]).await;
    }
    assert_eq!(listed(&runtime, SessionQuery::roots()).await[0].id(), sample::session(1));
    let children = SessionQuery::new().with_origin(OriginKind::Call).with_parent(sample::session(1));
    assert_eq!(listed(&runtime, children).await[0].id(), sample::session(2));
}
