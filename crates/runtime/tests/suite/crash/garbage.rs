//! Killed while garbage is collected: a collection is atomic, and never removes what a session needs.

use backstitch_core::ports::{GcMode, Retention};
use backstitch_store::SqliteStore;

use super::child::{Death, Role};
use super::matrix::{Reference, hits_to_try, resumed};
use super::points::Crash;
use super::session::Unseen;
use super::stage::{Place, Stage};

/// Keeps everything except the files at boundaries before the last call.
fn retention() -> Retention {
    Retention::keep_all().keep_boundaries(1)
}

/// The work of a process that collects garbage.
pub(crate) fn collects(stage: &Stage) {
    let store = SqliteStore::open(stage.path("store/store.db")).unwrap();
    let report = store.gc(retention(), GcMode::Now).unwrap();
    assert!(report.freed_bytes() > 0, "{report:?}");
}

#[tokio::test]
async fn killed_while_garbage_is_collected() {
    let reference = Reference::of(Place::Host).await;
    let interrupted = || {
        let stage = Stage::new(Place::Host);
        assert!(stage.play(Role::End, &Death::In("shell:1")));
        stage
    };
    let stage = interrupted();
    assert!(!stage.play(Role::Collect, &Death::None));
    let hits = stage.hits();
    for point in ["gc.marked", "gc.swept", "store.before_commit", "store.after_commit"] {
        let reached = hits.get(point).copied().unwrap_or_else(|| panic!("{point}: {hits:?}"));
        for hit in hits_to_try(reached, 1) {
            let what = format!("killed at {point}, time {hit}");
            let stage = interrupted();
            assert!(stage.play(Role::Collect, &Death::At(Crash::at(point, hit))), "{what}");
            let store = SqliteStore::open(stage.path("store/store.db")).unwrap();
            let report = store.verify().unwrap();
            assert!(report.is_sound(), "{what}: {report:?}");
            let is_left = store.gc(retention(), GcMode::DryRun).unwrap().freed_bytes() > 0;
            // Opening a store may commit something too; the last commit is that of the collection.
            let is_done = point == "store.after_commit" && hit == reached;
            assert_eq!(is_left, !is_done, "{what}, of {reached}: all of it or nothing");
            drop(store);
            resumed(&stage, Unseen::Retry).await.assert_is(&reference.outcome, &what);
        }
    }
}
