//! Killed while the changes of an isolated session are applied to a directory, and while that is undone.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::journal::{ObservationCause, Position, RecordBody, WorkspaceIsolated};
use backstitch_core::ports::Workspace;
use backstitch_runtime::{ApplyOptions, read_records};
use backstitch_workspace::{HostWorkspace, OpenOptions};

use super::child::{Death, Role};
use super::outcome::collect;
use super::points::Crash;
use super::session;
use super::stage::{Opened, Place, Stage};

fn project(stage: &Stage, opened: &Opened) -> Arc<dyn Workspace> {
    let mut options = OpenOptions::new(stage.path("project"), stage.path("store"), opened.store.clone());
    options.locks = Some(stage.path("locks"));
    Arc::new(HostWorkspace::open(options).unwrap())
}

/// The work of a process that applies the session. One that was interrupted is completed first, and is enough.
pub(crate) async fn applies(stage: &Stage) {
    let opened = stage.open();
    let live = opened.runtime.open_idle(session::id(), opened.options()).await.unwrap();
    let project = project(stage, &opened);
    let completed = live.complete_apply(project.clone()).await.unwrap();
    if completed.is_none() && live.state().await.view.applied().is_empty() {
        let report = live.apply(project, ApplyOptions::default()).await.unwrap();
        assert!(report.conflicts.is_empty(), "{report:?}");
    }
    live.release().await.unwrap();
}

/// The work of a process that undoes it.
pub(crate) async fn undoes(stage: &Stage) {
    let opened = stage.open();
    let live = opened.runtime.open_idle(session::id(), opened.options()).await.unwrap();
    let project = project(stage, &opened);
    live.complete_apply(project.clone()).await.unwrap();
    if !live.state().await.view.applied().is_empty() {
        live.undo_apply(project, ApplyOptions::default()).await.unwrap();
    }
    live.release().await.unwrap();
}

/// A stage whose session has run in a copy, and a project with an edit of a person.
async fn played() -> Stage {
    let stage = Stage::new(Place::Host);
    assert!(!stage.play(Role::End, &Death::None));
    let opened = stage.open();
    let records = read_records(&*opened.store, session::id(), Position::START, None).await.unwrap();
    let root = records.iter().find_map(|record| match &record.body {
        RecordBody::WorkspaceObserved(observed) if observed.cause == ObservationCause::Started => {
            Some((observed.root, observed.coverage))
        }
        _ => None,
    });
    let (root, coverage) = root.unwrap();
    std::fs::create_dir(stage.path("project")).unwrap();
    std::fs::write(stage.path("project/old.txt"), "what was there before\n").unwrap();
    std::fs::write(stage.path("project/mine.txt"), "by hand\n").unwrap();
    let live = opened.runtime.open_idle(session::id(), opened.options()).await.unwrap();
    let isolated = WorkspaceIsolated {
        project: stage.path("project").to_string_lossy().into_owned(),
        directory: stage.path("files").to_string_lossy().into_owned(),
        root,
        coverage,
        left_out: Vec::new(),
        extra: Extra::default(),
    };
    live.record(vec![isolated.into()]).await.unwrap();
    live.release().await.unwrap();
    stage
}

fn files(stage: &Stage) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    collect(&stage.path("project"), "", &mut files);
    files
}

#[tokio::test]
async fn killed_while_changes_are_applied_and_undone() {
    let stage = played().await;
    let old = files(&stage);
    assert!(!stage.play(Role::Apply, &Death::None));
    let (hits, new) = (stage.hits(), files(&stage));
    assert!(new.len() > old.len() && new.get("mine.txt") == old.get("mine.txt"), "{new:?}");
    assert!(!stage.play(Role::UndoApply, &Death::None));
    assert_eq!(files(&stage), old, "undone");
    let points = ["apply.", "workspace.restore.", "append."];
    for (point, reached) in hits.iter().filter(|(name, _)| points.iter().any(|point| name.starts_with(point)))
    {
        for hit in super::matrix::hits_to_try(*reached, 2) {
            let what = format!("killed at {point}, time {hit} of {reached}");
            // A file is written again if it changed within the resolution of its times, so the last time may not come.
            let mut hit = hit;
            let stage = loop {
                let stage = played().await;
                if stage.play(Role::Apply, &Death::At(Crash::at(point, hit))) {
                    break stage;
                }
                assert!(hit > 1, "{what}: it was not");
                hit -= 1;
            };
            assert!(!stage.play(Role::Apply, &Death::None), "{what}");
            assert_eq!(files(&stage), new, "{what}");
            // Undoing it may be killed at the same point.
            stage.play(Role::UndoApply, &Death::At(Crash::at(point, hit)));
            assert!(!stage.play(Role::UndoApply, &Death::None), "{what}");
            assert_eq!(files(&stage), old, "{what}, and undone");
        }
    }
}

#[tokio::test]
async fn what_a_person_edits_after_a_killed_apply_is_kept() {
    let stage = played().await;
    assert!(stage.play(Role::Apply, &Death::At(Crash::at("apply.recorded", 1))));
    std::fs::write(stage.path("project/mine.txt"), "by hand, again\n").unwrap();
    std::fs::write(stage.path("project/new.txt"), "new\n").unwrap();
    assert!(!stage.play(Role::Apply, &Death::None));
    let found = files(&stage);
    assert!(found["mine.txt"].contains("again") && found.contains_key("new.txt"), "{found:?}");
    assert!(!stage.play(Role::UndoApply, &Death::None));
    let found = files(&stage);
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["mine.txt", "new.txt", "old.txt"], "{found:?}");
}
