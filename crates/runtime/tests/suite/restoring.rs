//! Restores of single files: recorded, undoable, and without effect on the conversation.

use backstitch_core::journal::Effect;
use backstitch_core::ports::{Filesystem as _, WriteMode};
use backstitch_filesystem::FilePath;
use backstitch_runtime::{PointSpec, RewindScope, RuntimeError};

use crate::history::{Setting, before, call, findings};
use crate::index::is_current;

fn path(name: &str) -> FilePath {
    FilePath::new(name).unwrap()
}

fn text(setting: &Setting, name: &str) -> Option<String> {
    setting.files.read_bytes(&path(name)).ok().map(|bytes| String::from_utf8(bytes).unwrap())
}

#[tokio::test]
async fn single_files_are_restored_and_undone() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let second = call(&setting.runtime, live.id(), 1).await;
    let said = setting.runtime.view(live.id()).await.unwrap().transcript().unwrap().all().len();
    setting.files.write_bytes(&path("one"), b"by hand", WriteMode::Overwrite).unwrap();
    setting.files.write_bytes(&path("mine"), b"by hand", WriteMode::Create).unwrap();

    // `one` existed before the second call, and `three` did not.
    let (paths, scope) =
        (vec![path("one"), path("three")], RewindScope { dry_run: true, ..RewindScope::default() });
    let planned = live.restore_files_within(&before(second), paths, scope).await.unwrap();
    let listed: Vec<&str> = planned.own_files.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!((planned.dry_run, listed), (true, vec!["one", "three"]));
    assert_eq!(setting.names(), ["one", "two", "three"], "nothing is changed");
    let done = live.restore_files(&before(second), vec![path("one"), path("three")]).await.unwrap();
    assert!(done.rescue.is_some());
    assert_eq!(setting.names(), ["one", "two"]);
    assert_eq!(text(&setting, "one").as_deref(), Some("sewn"));
    assert_eq!(text(&setting, "mine").as_deref(), Some("by hand"), "other files stay");
    assert_eq!(findings(&driver).await, ["one", "two", "three"], "the state stays");
    let view = setting.runtime.view(live.id()).await.unwrap();
    assert_eq!(view.transcript().unwrap().all().len(), said, "the conversation stays");
    assert_eq!((view.owed_files(), view.files().map(|files| files.root)), (None, done.root));
    is_current(&setting.runtime).await;

    live.undo().await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"]);
    assert_eq!(text(&setting, "one").as_deref(), Some("by hand"));
    assert_eq!(text(&setting, "mine").as_deref(), Some("by hand"));
}

#[tokio::test]
async fn what_cannot_be_restored_changes_nothing() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let head = setting.runtime.view(live.id()).await.unwrap().head();
    let second = call(&setting.runtime, live.id(), 1).await;
    let missing = live.restore_files(&before(second), vec![path("one"), path("four")]).await.unwrap_err();
    assert!(matches!(missing, RuntimeError::NoSuchFile { ref path, .. } if path == "four"), "{missing}");
    let nothing = live.restore_files(&PointSpec::Head, vec![path("one")]).await.unwrap_err();
    assert!(matches!(nothing, RuntimeError::NothingToRewind { .. }), "{nothing}");
    let nowhere = live.restore_files(&PointSpec::Turn(99), vec![path("one")]).await.unwrap_err();
    assert!(matches!(nowhere, RuntimeError::NoSuchPoint { .. }), "{nowhere}");
    assert_eq!(setting.runtime.view(live.id()).await.unwrap().head(), head);
    assert_eq!(setting.names(), ["one", "two", "three"]);
}

/// Undoing several times undoes several rewinds, and redoing repeats them.
#[tokio::test]
async fn undo_walks_back_through_rewinds_and_redo_forward() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let [second, third] =
        [call(&setting.runtime, live.id(), 1).await, call(&setting.runtime, live.id(), 2).await];
    live.rewind(&before(third), None).await.unwrap();
    live.rewind(&before(second), None).await.unwrap();
    live.rewind(&PointSpec::Start, None).await.unwrap();
    let mut states = Vec::new();
    for expected in [&["one"][..], &["one", "two"], &["one", "two", "three"]] {
        states.push(setting.names());
        live.undo().await.unwrap();
        assert_eq!(setting.names(), expected);
        assert_eq!(findings(&driver).await, expected);
    }
    let nothing = live.undo().await.unwrap_err();
    assert!(matches!(nothing, RuntimeError::NothingToUndo { .. }), "{nothing}");
    for state in states.into_iter().rev() {
        live.redo().await.unwrap();
        assert_eq!(setting.names(), state);
        assert_eq!(findings(&driver).await, state);
    }
    let nothing = live.redo().await.unwrap_err();
    assert!(matches!(nothing, RuntimeError::NothingToRedo { .. }), "{nothing}");
    live.undo().await.unwrap();
    assert_eq!(setting.names(), ["one"]);
    // A new rewind ends what could be repeated, and is undone first.
    live.rewind(&PointSpec::Start, None).await.unwrap();
    assert!(matches!(live.redo().await, Err(RuntimeError::NothingToRedo { .. })));
    live.undo().await.unwrap();
    assert_eq!(setting.names(), ["one"]);
    live.undo().await.unwrap();
    assert_eq!(setting.names(), ["one", "two"]);
    is_current(&setting.runtime).await;
}
