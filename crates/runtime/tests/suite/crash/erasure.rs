//! Killed while a value is redacted or a session is removed: the store is sound, and running it again completes
//! it.

use std::fs;
use std::path::Path;

use backstitch_core::journal::{InboxItem, InboxKind};
use backstitch_core::ports::{
    Erasure, ErasureMode, ForkRemoval, Owner, Redaction, Removal, Store as _, StoreError,
};
use backstitch_core::redaction::SensitiveValue;
use backstitch_core::time::Clock as _;
use backstitch_runtime::{ResumeOptions, SystemClock};
use backstitch_store::{SqliteOptions, SqliteStore};
use serde_json::json;

use super::child::{Death, Role};
use super::matrix::hits_to_try;
use super::points::Crash;
use super::session::{agent, id};
use super::stage::{Place, Plot, Stage};
use crate::redaction::remains::assert_gone;

/// A text that the session has in calls, in results, in its log and in files.
const VALUE: &str = "all of notes.txt";

/// Opens the store with transactions so small that there are many of them.
fn open(stage: &Stage) -> SqliteStore {
    let options = SqliteOptions { transaction_bytes: 1_000, ..SqliteOptions::default() };
    SqliteStore::open_with(stage.path("store/store.db"), options).unwrap()
}

/// The work of a process that redacts.
pub(crate) async fn redacts(stage: &Stage) {
    let redaction = Redaction {
        session: id(),
        value: SensitiveValue::new(VALUE).unwrap(),
        owner: Owner::new("redactor"),
        at: SystemClock::new().now(),
        mode: ErasureMode::Now,
    };
    let report = open(stage).redact(redaction).await.unwrap();
    assert_eq!(report.erasure, Erasure::Complete);
}

/// The work of a process that removes the session.
pub(crate) async fn removes(stage: &Stage) {
    let removal = Removal {
        sessions: vec![id()],
        forks: ForkRemoval::Refuse,
        owner: Owner::new("remover"),
        at: SystemClock::new().now(),
        mode: ErasureMode::Now,
    };
    let report = open(stage).remove(removal).await.unwrap();
    assert_eq!(report.erasure, Erasure::Complete);
}

/// A session that has ended, with a pending item.
async fn finished(plot: Plot) -> Stage {
    let stage = Stage::of(Place::Host, plot);
    assert!(!stage.play(Role::End, &Death::None));
    let data = json!({ "text": format!("and {VALUE}") });
    let item = InboxItem { kind: InboxKind::Message, at: SystemClock::new().now(), data };
    open(&stage).send(id(), item).await.unwrap();
    stage
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Kills a process at each point, and runs the same work again.
async fn killed_at(role: Role, points: &[&str], check: impl AsyncFn(&Stage, &str)) {
    let first = finished(Plot::Alone).await;
    let saved = tempfile::tempdir().unwrap();
    copy(&first.path("store/"), saved.path());
    assert!(!first.play(role, &Death::None));
    let hits = first.hits();
    for point in points {
        let reached = hits.get(*point).copied().unwrap_or_else(|| panic!("{point}: {hits:?}"));
        for hit in hits_to_try(reached, 3) {
            let what = format!("killed at {point}, time {hit} of {reached}");
            let stage = Stage::of(Place::Host, Plot::Alone);
            copy(saved.path(), &stage.path("store/"));
            assert!(stage.play(role, &Death::At(Crash::at(point, hit))), "{what}");
            let store = open(&stage);
            let report = store.verify().unwrap();
            assert!(report.is_sound(), "{what}: {:?}", report.findings);
            drop(store);
            assert!(!stage.play(role, &Death::None), "{what}");
            let store = open(&stage);
            assert_gone(&store, VALUE);
            let report = store.verify().unwrap();
            assert!(report.is_sound(), "{what}: {:?}", report.findings);
            drop(store);
            check(&stage, &what).await;
        }
    }
}

#[tokio::test]
async fn killed_while_a_value_is_redacted() {
    let points = [
        "redact.begun",
        "redact.objects",
        "redact.records",
        "redact.inbox",
        "erase.rebuilt",
        "store.before_commit",
        "store.after_commit",
    ];
    killed_at(Role::Redact, &points, async |stage, what| {
        // The session is whole: it opens, and has its answer.
        let opened = stage.open();
        assert!(!opened.store.verify().unwrap().redacted.is_empty(), "{what}");
        let driver = opened.runtime.open(id(), agent(stage), opened.options()).await.unwrap();
        let answered = driver.resume(ResumeOptions::default()).await.unwrap();
        assert!(answered.answer().is_ok(), "{what}");
        driver.session().release().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn killed_while_a_session_is_removed() {
    let points = [
        "remove.unlisted",
        "remove.records",
        "remove.collected",
        "erase.rebuilt",
        "gc.swept",
        "store.before_commit",
        "store.after_commit",
    ];
    killed_at(Role::Remove, &points, async |stage, what| {
        let store = open(stage);
        assert_eq!(store.sessions().await.unwrap(), [], "{what}");
        let read = store.head(id()).await;
        assert!(matches!(read, Err(StoreError::NotFound { .. })), "{what}: {read:?}");
        assert_eq!(store.removed().unwrap().len(), 1, "{what}");
    })
    .await;
}
