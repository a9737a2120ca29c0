//! Killed during a rewind and during a fork: files and state are both old or both new.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{ObservationCause, Position, RecordBody};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{FilePath, Store as _};
use backstitch_runtime::{FilesRestored, FunctionPolicy, PointSpec, ResumeOptions, read_records};
use backstitch_testkit::tool::Counter;

use super::child::{Death, Role, kill_at};
use super::outcome::collect;
use super::points::Crash;
use super::session::{self, agent};
use super::stage::{Opened, Place, Stage};
use crate::findings::Finding;

/// The end of the turn with several calls.
const TO: PointSpec = PointSpec::Turn(2);

/// The work of a process that rewinds.
pub(crate) async fn rewinds(stage: &Stage) {
    let opened = stage.open();
    let live = opened.runtime.open_idle(session::id(), opened.options()).await.unwrap();
    live.rewind(&TO, None).await.unwrap();
    live.release().await.unwrap();
}

/// The work of a process that restores single files.
pub(crate) async fn restores(stage: &Stage) {
    let opened = stage.open();
    let live = opened.runtime.open_idle(session::id(), opened.options()).await.unwrap();
    let paths = ["a", "site.txt"].map(|path| FilePath::new(path).unwrap());
    live.restore_files(&TO, paths.to_vec()).await.unwrap();
    live.release().await.unwrap();
}

/// The work of a process that forks.
pub(crate) async fn forks(stage: &Stage) {
    let opened = stage.open_at("forked");
    let fork = opened.runtime.fork_session(session::id(), TO, opened.plain_options()).await.unwrap();
    fork.release().await.unwrap();
}

/// Files and state of a session as the next process finds them.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    files: BTreeMap<String, String>,
    findings: Vec<String>,
    counter: u64,
    turns: u64,
}

/// Opens a session and resumes it up to its first request, which fails.
async fn find(stage: &Stage, opened: &Opened, id: SessionId, files: &str) -> Found {
    let mute =
        FunctionPolicy::new(PolicyName::new("mute").unwrap(), |_| async { Err("it says nothing".into()) });
    let mut agent = agent(stage);
    agent.policy = Arc::new(mute);
    let driver = opened.runtime.open(id, agent, opened.plain_options()).await.unwrap();
    // Either the session has ended, or its policy is asked and fails.
    let _ = driver.resume(ResumeOptions::default()).await;
    let found = {
        let state = driver.session().state().await;
        let recorded = state.view.files().map(|files| files.root);
        assert_eq!(recorded, Some(opened.workspace.capture().unwrap().root), "the files are as recorded");
        assert!(state.view.owed_files().is_none());
        let mut files_found = BTreeMap::new();
        collect(&stage.path(files), "", &mut files_found);
        let findings = state.session.all::<Finding>().unwrap();
        Found {
            files: files_found,
            findings: findings.iter().map(|finding| finding.0.clone()).collect(),
            counter: state.resources.inspect(|counter: &Counter| counter.number).unwrap().unwrap(),
            turns: state.view.latest_evaluation().map_or(0, |latest| latest.turns),
        }
    };
    driver.session().release().await.unwrap();
    found
}

/// A stage whose session has run to its end.
fn played() -> Stage {
    let stage = Stage::new(Place::Host);
    assert!(!stage.play(Role::End, &Death::None));
    stage
}

async fn rewound(opened: &Opened) -> bool {
    let records = read_records(&*opened.store, session::id(), Position::START, None).await.unwrap();
    records.iter().any(|record| matches!(record.body, RecordBody::Rewound(_)))
}

#[tokio::test]
async fn killed_during_a_rewind() {
    let stage = played();
    let old = find(&stage, &stage.open(), session::id(), "files").await;
    assert!(!stage.play(Role::Rewind, &Death::None));
    let (hits, new) = (stage.hits(), find(&stage, &stage.open(), session::id(), "files").await);
    assert_ne!(old, new);
    assert_eq!((old.turns, new.turns), (10, 2));
    for point in ["rewind.", "workspace.restore.", "append.", "store."] {
        for (point, reached) in hits.iter().filter(|(name, _)| name.starts_with(point)) {
            for hit in super::matrix::hits_to_try(*reached, 2) {
                let (stage, what) = kill_at(Role::Rewind, point, hit, async || played()).await;
                let opened = stage.open();
                let went_back = rewound(&opened).await;
                let found = find(&stage, &opened, session::id(), "files").await;
                assert_eq!(found, if went_back { new.clone() } else { old.clone() }, "{what}");
                if went_back {
                    let live = opened.runtime.open_idle(session::id(), opened.options()).await.unwrap();
                    live.undo().await.unwrap();
                    live.release().await.unwrap();
                    let undone = find(&stage, &opened, session::id(), "files").await;
                    assert_eq!(undone, old, "{what}, and undone");
                }
            }
        }
    }
}

/// The recorded restores from a position on, and the positions of records that kept files as they were found.
async fn kept_since(opened: &Opened, from: Position) -> (Vec<FilesRestored>, Vec<Position>) {
    let records = read_records(&*opened.store, session::id(), from, None).await.unwrap();
    let restored = records.iter().filter_map(|record| FilesRestored::of(&record.body)).collect();
    let is_found = |body: &RecordBody| matches!(body, RecordBody::WorkspaceObserved(observed) if observed.cause == ObservationCause::Interrupted);
    let kept = records.iter().filter(|record| is_found(&record.body)).map(|record| record.position);
    (restored, kept.collect())
}

#[tokio::test]
async fn what_a_person_edits_after_a_rewind_was_killed_is_kept() {
    let stage = played();
    assert!(!stage.play(Role::Rewind, &Death::None));
    let new = find(&stage, &stage.open(), session::id(), "files").await;
    let restoring = Death::At(Crash::at("workspace.restore.begun", 1));
    let half = Death::At(Crash::at("workspace.restore.half", 1));
    // Killed once, or again while the rewind was being finished.
    let recorded = Death::At(Crash::at("rewind.recorded", 1));
    for deaths in [vec![&recorded], vec![&half], vec![&recorded, &restoring]] {
        let what = format!("{deaths:?}");
        let stage = played();
        for death in deaths {
            assert!(stage.play(Role::Rewind, death), "{what}");
            std::fs::write(stage.file("mine.txt"), "by hand\n").unwrap();
            std::fs::write(stage.file("old.txt"), "edited by hand\n").unwrap();
        }
        let opened = stage.open();
        assert!(rewound(&opened).await, "{what}");
        // The rest of the rewind is made, and the edits stay.
        let edits = [("mine.txt", "by hand\n"), ("old.txt", "edited by hand\n")];
        let mut expected = new.clone();
        expected.files.extend(edits.map(|(file, text)| (file.to_owned(), text.to_owned())));
        assert_eq!(find(&stage, &opened, session::id(), "files").await, expected, "{what}");

        let live = opened.runtime.open_idle(session::id(), opened.plain_options()).await.unwrap();
        live.undo().await.unwrap();
        live.release().await.unwrap();
        for (file, text) in edits {
            assert_eq!(
                std::fs::read_to_string(stage.file(file)).unwrap(),
                text,
                "{what}: {file}, and undone"
            );
        }
    }
}

#[tokio::test]
async fn what_a_rewind_kept_is_not_kept_again_when_it_is_finished() {
    let stage = played();
    let at = stage.open().store.head(session::id()).await.unwrap();
    assert!(stage.play(Role::Rewind, &Death::At(Crash::at("rewind.recorded", 1))));
    let opened = stage.open();
    find(&stage, &opened, session::id(), "files").await;
    let (restored, kept) = kept_since(&opened, at).await;
    assert_eq!(kept, [], "the files have not been edited");
    let rescues: Vec<_> = restored.iter().map(|restored| restored.rescue).collect();
    assert_eq!(rescues, [Some(at)], "the position of the rewind keeps the files as found");
}

#[tokio::test]
async fn killed_while_restoring_single_files() {
    let stage = played();
    let old = find(&stage, &stage.open(), session::id(), "files").await;
    assert!(!stage.play(Role::Restore, &Death::None));
    let (hits, new) = (stage.hits(), find(&stage, &stage.open(), session::id(), "files").await);
    assert_ne!(old.files, new.files);
    assert!(new.files.len() < old.files.len() && new.files.contains_key("notes.txt"), "{new:?}");
    assert_eq!(Found { files: old.files.clone(), ..new.clone() }, old, "only files change");
    for point in ["rewind.", "workspace.restore.", "append."] {
        for (point, reached) in hits.iter().filter(|(name, _)| name.starts_with(point)) {
            for hit in super::matrix::hits_to_try(*reached, 2) {
                let (stage, what) = kill_at(Role::Restore, point, hit, async || played()).await;
                let opened = stage.open();
                let is_recorded = rewound(&opened).await;
                let found = find(&stage, &opened, session::id(), "files").await;
                assert_eq!(found, if is_recorded { new.clone() } else { old.clone() }, "{what}");
                if is_recorded {
                    let live = opened.runtime.open_idle(session::id(), opened.options()).await.unwrap();
                    live.undo().await.unwrap();
                    live.release().await.unwrap();
                    let undone = find(&stage, &opened, session::id(), "files").await;
                    assert_eq!(undone, old, "{what}, and undone");
                }
            }
        }
    }
}

#[tokio::test]
async fn files_that_were_deleted_before_a_rewind_exist_after_its_undo() {
    for place in [Place::Host, Place::Memory] {
        let stage = Stage::new(place);
        assert!(!stage.play(Role::End, &Death::None));
        if place == Place::Host {
            std::fs::remove_dir_all(stage.file("")).unwrap();
        }
        let opened = stage.open();
        let live = opened.runtime.open_idle(session::id(), opened.options()).await.unwrap();
        let before = live.state().await.view.files().unwrap();
        live.rewind(&TO, None).await.unwrap();
        live.undo().await.unwrap();
        assert_eq!(live.state().await.view.files(), Some(before), "{place:?}");
        assert_eq!(opened.workspace.capture().unwrap().root, before.root, "{place:?}");
    }
}

#[tokio::test]
async fn killed_while_forking() {
    let stage = played();
    let old = find(&stage, &stage.open(), session::id(), "files").await;
    assert!(!stage.play(Role::Fork, &Death::None));
    let hits = stage.hits();
    let new = forked(&stage).await.expect("it was forked");
    assert_eq!(new.turns, 2);
    for point in ["fork.", "workspace.restore.", "append.", "store."] {
        for (point, reached) in hits.iter().filter(|(name, _)| name.starts_with(point)) {
            for hit in super::matrix::hits_to_try(*reached, 2) {
                let before = Cell::new(Position::START);
                let new_stage = async || {
                    let stage = played();
                    before.set(stage.open().store.head(session::id()).await.unwrap());
                    stage
                };
                let (stage, what) = kill_at(Role::Fork, point, hit, new_stage).await;
                match forked(&stage).await {
                    Some(found) => assert_eq!(found, new, "{what}"),
                    None => {
                        assert!(!stage.play(Role::Fork, &Death::None), "{what}");
                        assert_eq!(forked(&stage).await, Some(new.clone()), "{what}, and forked again");
                    }
                }
                let opened = stage.open();
                assert_eq!(
                    opened.store.head(session::id()).await.unwrap(),
                    before.get(),
                    "{what}: the parent"
                );
                assert_eq!(find(&stage, &opened, session::id(), "files").await, old, "{what}: the parent");
            }
        }
    }
}

/// Files and state of the fork, if there is one.
async fn forked(stage: &Stage) -> Option<Found> {
    let opened = stage.open_at("forked");
    let sessions = opened.store.sessions().await.unwrap();
    let forks: Vec<_> = sessions.into_iter().filter(|other| *other != session::id()).collect();
    assert!(forks.len() < 2, "{forks:?}");
    match forks.first() {
        Some(fork) => Some(find(stage, &opened, *fork, "forked").await),
        None => None,
    }
}
