//! Rewinds move only what the session's own calls changed.

use backstitch_core::code::ErrorCode;
use backstitch_core::journal::Effect;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{
    ChangeKind, ConflictKind, Filesystem as _, PathChange, ReversalConflicts, WriteMode,
};
use backstitch_filesystem::FilePath;
use backstitch_runtime::{
    ObservedCall, ObservedResult, ObservedSession, RewindOptions, RewindScope, RewoundFiles, RewoundHalf,
    Runtime, SessionOptions,
};
use serde_json::json;

use crate::disk::Disk;
use crate::history::{Setting, before, call, findings};

fn path(name: &str) -> FilePath {
    FilePath::new(name).unwrap()
}

fn text(setting: &Setting, name: &str) -> Option<String> {
    setting.files.read_bytes(&path(name)).ok().map(|bytes| String::from_utf8(bytes).unwrap())
}

/// A person creates a file, and edits one that the session left before the second call.
fn edit_by_hand(setting: &Setting) {
    setting.files.write_bytes(&path("mine"), b"by hand", WriteMode::Create).unwrap();
    setting.files.write_bytes(&path("one"), b"by hand", WriteMode::Overwrite).unwrap();
}

#[tokio::test]
async fn files_of_a_person_stay_through_rewind_undo_and_redo() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let second = call(&setting.runtime, live.id(), 1).await;
    edit_by_hand(&setting);
    let is_kept = || {
        assert_eq!(text(&setting, "mine").as_deref(), Some("by hand"));
        assert_eq!(text(&setting, "one").as_deref(), Some("by hand"));
    };

    let done = live.rewind(&before(second), None).await.unwrap();
    assert_eq!(setting.names(), ["one"]);
    let deleted = |path: &str| PathChange { path: path.to_owned(), change: ChangeKind::Deleted };
    assert_eq!(done.own_files.changes, [deleted("three"), deleted("two")]);
    assert!(done.own_files.conflicts.is_empty());
    is_kept();

    setting.files.write_bytes(&path("later"), b"by hand", WriteMode::Create).unwrap();
    live.undo().await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"]);
    is_kept();
    live.redo().await.unwrap();
    assert_eq!(setting.names(), ["one"]);
    is_kept();
    assert_eq!(text(&setting, "later").as_deref(), Some("by hand"));
}

#[tokio::test]
async fn a_file_that_others_changed_too_is_left_alone_unless_forced() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let second = call(&setting.runtime, live.id(), 1).await;
    setting.files.write_bytes(&path("three"), b"by hand", WriteMode::Overwrite).unwrap();

    let done = live.rewind(&before(second), None).await.unwrap();
    let left: Vec<&str> = done.own_files.conflicts.iter().map(|left| left.path.as_str()).collect();
    assert_eq!(left, ["three"]);
    assert_eq!(setting.names(), ["one", "three"]);
    assert_eq!(text(&setting, "three").as_deref(), Some("by hand"));
    live.undo().await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"]);

    let scope = RewindScope { conflicts: ReversalConflicts::TakeTarget, ..RewindScope::default() };
    let done = live.rewind_within(&before(second), None, scope).await.unwrap();
    assert_eq!(done.own_files.forced.len(), 1);
    assert_eq!(setting.names(), ["one"]);
    live.undo().await.unwrap();
    assert_eq!(text(&setting, "three").as_deref(), Some("by hand"), "the rescue has the edit");
}

#[tokio::test]
async fn all_files_are_restored_only_when_asked() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let second = call(&setting.runtime, live.id(), 1).await;
    edit_by_hand(&setting);
    let scope = RewindScope { files: RewoundFiles::All, ..RewindScope::default() };
    live.rewind_within(&before(second), None, scope).await.unwrap();
    assert_eq!(text(&setting, "mine"), None);
    assert_eq!(text(&setting, "one").as_deref(), Some("sewn"));
    live.undo().await.unwrap();
    assert_eq!(text(&setting, "mine").as_deref(), Some("by hand"));
    assert_eq!(setting.names(), ["one", "two", "three"]);
}

#[tokio::test]
async fn one_half_moves_and_the_other_stays() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let second = call(&setting.runtime, live.id(), 1).await;
    let only = |half| RewindScope { only: Some(half), ..RewindScope::default() };

    live.rewind_within(&before(second), None, only(RewoundHalf::Files)).await.unwrap();
    assert_eq!(setting.names(), ["one"]);
    assert_eq!(findings(&driver).await, ["one", "two", "three"]);
    live.undo().await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"]);

    live.rewind_within(&before(second), None, only(RewoundHalf::Conversation)).await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"]);
    assert_eq!(findings(&driver).await, ["one"]);
}

#[tokio::test]
async fn one_call_is_undone_and_the_others_stay() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let second = call(&setting.runtime, live.id(), 1).await.to_string();
    edit_by_hand(&setting);

    let preview = RewindScope { dry_run: true, ..RewindScope::default() };
    let planned = live.undo_call(&second, preview).await.unwrap();
    assert!(planned.dry_run);
    assert_eq!(setting.names(), ["one", "two", "three"]);

    let done = live.undo_call(&second, RewindScope::default()).await.unwrap();
    assert_eq!(planned.own_files, done.own_files);
    let deleted = PathChange { path: "two".to_owned(), change: ChangeKind::Deleted };
    assert_eq!(done.own_files.changes, [deleted]);
    assert_eq!(setting.names(), ["one", "three"]);
    assert_eq!(text(&setting, "mine").as_deref(), Some("by hand"));
    assert_eq!(findings(&driver).await, ["one", "two", "three"], "the conversation stays");
    assert!(live.undo_call(&second, RewindScope::default()).await.is_err(), "it is undone already");

    live.undo().await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"]);
}

#[tokio::test]
async fn a_call_whose_file_was_changed_since_is_undone_only_if_that_is_forced() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let second = call(&setting.runtime, live.id(), 1).await.to_string();
    setting.files.write_bytes(&path("two"), b"by hand", WriteMode::Overwrite).unwrap();
    let error = live.undo_call(&second, RewindScope::default()).await.unwrap_err();
    assert!(error.to_string().contains("cannot be merged: two"), "{error}");
    let forced = RewindScope { conflicts: ReversalConflicts::TakeTarget, ..RewindScope::default() };
    let done = live.undo_call(&second, forced).await.unwrap();
    assert_eq!(done.own_files.forced.len(), 1);
    assert_eq!(setting.names(), ["one", "three"]);
    live.undo().await.unwrap();
    assert_eq!(text(&setting, "two").as_deref(), Some("by hand"), "the rescue has the edit");
}

#[tokio::test]
async fn a_dry_run_names_the_files_and_records_nothing() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let second = call(&setting.runtime, live.id(), 1).await;
    edit_by_hand(&setting);
    let head = setting.runtime.view(live.id()).await.unwrap().head();
    for (files, count) in [(RewoundFiles::Own, 2), (RewoundFiles::All, 4)] {
        let scope = RewindScope { files, dry_run: true, ..RewindScope::default() };
        let done = live.rewind_within(&before(second), None, scope).await.unwrap();
        assert!(done.dry_run);
        assert_eq!(done.own_files.changes.len(), count, "{:?}", done.own_files);
    }
    assert_eq!(setting.names(), ["one", "two", "three"]);
    assert_eq!(setting.runtime.view(live.id()).await.unwrap().head(), head);
}

/// A session of another program in a directory.
async fn observed(runtime: &Runtime, disk: &Disk) -> ObservedSession {
    let options = SessionOptions::with_workspace(disk.workspace.clone());
    runtime.create_observed(json!(null), PolicyName::new("loom").unwrap(), options).await.unwrap()
}

fn observed_call(id: &str) -> ObservedCall {
    ObservedCall::new(id, "weave", json!({}))
}

async fn end_call(session: &ObservedSession, id: &str) {
    let result = ObservedResult { outcome: Ok(json!("done")), elapsed_micros: None };
    session.record_call_end(observed_call(id), result).await.unwrap();
}

#[tokio::test]
async fn paths_that_calls_of_two_sessions_changed_at_the_same_time_are_left_alone() {
    let disk = Disk::new();
    let runtime = Runtime::new(disk.store.clone());
    let write = |name: &str| std::fs::write(disk.path(name), name).unwrap();
    let (one, two) = (observed(&runtime, &disk).await, observed(&runtime, &disk).await);
    let first = one.record_call_start(observed_call("first")).await.unwrap();
    write("early");
    two.record_call_start(observed_call("beside")).await.unwrap();
    write("either");
    end_call(&two, "beside").await;
    end_call(&one, "first").await;
    one.record_call_start(observed_call("alone")).await.unwrap();
    write("own");
    end_call(&one, "alone").await;
    one.release().await.unwrap();
    two.release().await.unwrap();

    let options = SessionOptions::with_workspace(disk.workspace.clone());
    let live = runtime.open_idle(one.id(), options).await.unwrap();
    let done = live.rewind(&before(first), None).await.unwrap();
    let left: Vec<_> = done.own_files.conflicts.iter().map(|left| (left.path.as_str(), left.kind)).collect();
    assert_eq!(left, [("either", ConflictKind::Shared)]);
    let is_there = |name: &str| disk.path(name).exists();
    assert_eq!(["early", "either", "own"].map(is_there), [false, true, false]);

    live.undo().await.unwrap();
    assert_eq!(["early", "either", "own"].map(is_there), [true, true, true]);
    let forced = RewindScope { conflicts: ReversalConflicts::TakeTarget, ..RewindScope::default() };
    live.rewind_within(&before(first), None, forced).await.unwrap();
    assert_eq!(["early", "either", "own"].map(is_there), [false, false, false]);
    live.release().await.unwrap();
}

#[tokio::test]
async fn calls_of_one_program_that_overlap_are_undone_together() {
    let disk = Disk::new();
    let runtime = Runtime::new(disk.store.clone());
    let write = |text: &str| std::fs::write(disk.path("both"), text).unwrap();
    write("at first");
    let session = observed(&runtime, &disk).await;
    let first = session.record_call_start(observed_call("first")).await.unwrap();
    write("by the first");
    let second = session.record_call_start(observed_call("second")).await.unwrap();
    write("by the second");
    end_call(&session, "second").await;
    write("by the first again");
    end_call(&session, "first").await;
    session.release().await.unwrap();

    let options = SessionOptions::with_workspace(disk.workspace.clone());
    let live = runtime.open_idle(session.id(), options).await.unwrap();
    let both = || std::fs::read_to_string(disk.path("both")).unwrap();
    let done = live.rewind(&before(first), None).await.unwrap();
    assert_eq!((both().as_str(), &done.own_files.conflicts[..]), ("at first", &[][..]));
    live.undo().await.unwrap();
    assert_eq!(both(), "by the first again");
    let done = live.rewind(&before(second), None).await.unwrap();
    assert_eq!((both().as_str(), &done.own_files.conflicts[..]), ("by the first", &[][..]));
    live.release().await.unwrap();
}

#[tokio::test]
async fn no_files_are_moved_while_a_program_has_an_open_call_in_the_directory() {
    let disk = Disk::new();
    let runtime = Runtime::new(disk.store.clone());
    let (one, two) = (observed(&runtime, &disk).await, observed(&runtime, &disk).await);
    let first = one.record_call_start(observed_call("first")).await.unwrap();
    std::fs::write(disk.path("own"), "own").unwrap();
    end_call(&one, "first").await;
    two.record_call_start(observed_call("beside")).await.unwrap();
    one.release().await.unwrap();
    two.release().await.unwrap();

    let rewind = |scope: RewindScope| {
        let options = RewindOptions { scope, ..RewindOptions::within(disk.workspace.clone()) };
        runtime.rewind_with(one.id(), before(first), options)
    };
    let refused = rewind(RewindScope::default()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::GuardBusy, "{refused}");
    assert!(refused.to_string().contains(&two.id().to_string()), "{refused}");
    let listed = rewind(RewindScope { dry_run: true, ..RewindScope::default() }).await.unwrap();
    assert_eq!(listed.own_files.changes.len(), 1);
    assert!(disk.path("own").exists());
    let scope = RewindScope { conflicts: ReversalConflicts::TakeTarget, ..RewindScope::default() };
    rewind(scope).await.unwrap();
    assert!(!disk.path("own").exists());
}

#[tokio::test]
async fn a_point_inside_of_a_call_keeps_what_that_call_had_changed() {
    let disk = Disk::new();
    let runtime = Runtime::new(disk.store.clone());
    let write = |name: &str, text: &str| std::fs::write(disk.path(name), text).unwrap();
    let one = observed(&runtime, &disk).await;
    let outer = one.record_call_start(observed_call("outer")).await.unwrap();
    write("early", "early");
    write("both", "early");
    let inner = one.record_call_start(observed_call("inner")).await.unwrap();
    write("late", "late");
    write("both", "late");
    end_call(&one, "inner").await;
    end_call(&one, "outer").await;
    one.release().await.unwrap();

    let options = SessionOptions::with_workspace(disk.workspace.clone());
    let live = runtime.open_idle(one.id(), options).await.unwrap();
    let done = live.rewind(&before(inner), None).await.unwrap();
    assert!(done.own_files.conflicts.is_empty(), "{:?}", done.own_files);
    let is_there = |name: &str| disk.path(name).exists();
    assert_eq!(["early", "late"].map(is_there), [true, false]);
    assert_eq!(std::fs::read_to_string(disk.path("both")).unwrap(), "early");
    live.undo().await.unwrap();
    assert_eq!(["early", "late"].map(is_there), [true, true]);
    live.rewind(&before(outer), None).await.unwrap();
    assert_eq!(["early", "late", "both"].map(is_there), [false, false, false]);
    live.release().await.unwrap();
}
