//! The coverage of a root is determined when a call starts, is recorded with it, and holds until the call
//! ends.

use std::fs;

use backstitch_core::journal::{Effect, OmittedFile, Position};
use backstitch_core::ports::{ChangeKind, Objects, Workspace as _};
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult};
use backstitch_runtime::{CallOutcome, FilesRestored, PointSpec, ToolRunner, Tools, read_records};
use backstitch_workspace::{Coverage, HostWorkspace, OpenOptions};
use serde_json::json;

use crate::disk::Disk;

const CAP: u64 = 1_000;

fn disk() -> Disk {
    let disk = Disk::with(|options| options.file_bytes = CAP);
    fs::write(disk.path("never"), vec![1; 5_000]).unwrap();
    fs::write(disk.path("always"), vec![2; 500]).unwrap();
    disk
}

/// Makes a covered file too large and an uncovered file small, and adds a file that is too large.
fn mess_up(disk: &Disk, name: &str, outcome: fn() -> Result<ToolResult, ToolError>) -> Tool {
    let (always, never, new) = (disk.path("always"), disk.path("never"), disk.path("new"));
    let builder = Tool::builder(name, "Grows and shrinks files.").unwrap().effect(Effect::Workspace);
    builder.handler(move |_: ToolContext, (): ()| {
        fs::write(&always, vec![3; 7_000]).unwrap();
        fs::write(&never, "small").unwrap();
        fs::write(&new, vec![4; 9_000]).unwrap();
        async move { outcome() }
    })
}

#[tokio::test]
async fn covered_files_are_restored_even_if_they_could_no_longer_be_captured() {
    let disk = disk();
    let failing = mess_up(&disk, "failing", || Err(ToolError::new("no")));
    let harness = disk.harness(vec![failing]).await;
    assert!(matches!(harness.run("failing", json!({})).await, CallOutcome::Failed(_)));
    assert_eq!(fs::read(disk.path("always")).unwrap(), vec![2; 500]);
    assert_eq!(fs::read(disk.path("never")).unwrap(), b"small", "uncovered files are not touched");
    assert!(!disk.path("new").exists(), "new files are deleted");

    let state = harness.live.state().await;
    let finished = state.view.calls().next().unwrap().finished.clone().unwrap();
    let left_out = |path: &str, bytes| OmittedFile { path: path.into(), bytes: Some(bytes) };
    assert_eq!(finished.record.left_out, [left_out("always", 7_000), left_out("new", 9_000)]);
    // A restore of the rescue touches neither files that were never covered nor files that did not fit.
    let object = Objects::get(&*disk.store, finished.record.coverage.unwrap()).unwrap().unwrap();
    let coverage = Coverage::from_json(object.bytes()).unwrap();
    let uncovered: Vec<_> = coverage.uncovered().map(|one| one.path).collect();
    assert_eq!(uncovered, ["always", "never", "new"]);
}

#[tokio::test]
async fn the_coverage_of_a_root_is_recorded_with_it_and_enough_for_another_process() {
    let disk = disk();
    let succeeding = mess_up(&disk, "succeeding", || Ok(ToolResult::ok("yes")));
    let harness = disk.harness(vec![succeeding]).await;
    assert!(matches!(harness.run("succeeding", json!({})).await, CallOutcome::Succeeded(_)));
    let checkpoint = harness.live.state().await.view.checkpoints()[0].clone();
    let uncovered = |coverage| {
        let object = Objects::get(&*disk.store, coverage).unwrap().unwrap();
        let coverage = Coverage::from_json(object.bytes()).unwrap();
        coverage.uncovered().map(|one| one.path).collect::<Vec<_>>()
    };
    assert_eq!(uncovered(checkpoint.before.coverage.unwrap()), ["never"]);
    let after = checkpoint.after.unwrap();
    assert_eq!(uncovered(after.coverage.unwrap()), ["always", "never", "new"]);

    // Another process, which has only the journal and the objects.
    let Disk { store, workspace, directory } = disk;
    drop((harness, workspace));
    let files = directory.path().join("files");
    let mut options = OpenOptions::new(&files, directory.path().join("another"), store);
    options.locks = Some(directory.path().join("locks"));
    options.file_bytes = CAP;
    let workspace = HostWorkspace::open(options).unwrap();
    workspace.restore_covering(checkpoint.before.root.unwrap(), checkpoint.before.coverage).unwrap();
    assert_eq!(fs::read(files.join("always")).unwrap(), vec![2; 500]);
    assert_eq!(fs::read(files.join("never")).unwrap(), b"small");
    assert!(!files.join("new").exists());
}

#[tokio::test]
async fn a_rescue_keeps_what_fits_and_lists_the_rest() {
    let disk = Disk::new();
    let path = disk.path("");
    let builder = Tool::builder("failing", "Writes a lot.").unwrap().effect(Effect::Workspace);
    let failing = builder.handler(move |_: ToolContext, (): ()| {
        fs::write(path.join("a-small"), vec![1; 400]).unwrap();
        fs::write(path.join("b-large"), vec![2; 9_000]).unwrap();
        async { Err(ToolError::new("no")) }
    });
    let harness = disk.harness(vec![]).await;
    let runner = ToolRunner::new(harness.live.clone(), Tools::new([failing]).unwrap());
    let call = harness.call("failing", json!({})).await;
    runner.with_rescue_budget(1_000).run(call).await.unwrap();
    let state = harness.live.state().await;
    let call = state.view.calls().next().unwrap();
    let finished = &call.finished.as_ref().unwrap().record;
    assert_eq!(finished.left_out, [OmittedFile { path: "b-large".into(), bytes: Some(9_000) }]);
    let before = call.intent.as_ref().unwrap().record.root.unwrap();
    let kept = disk.workspace.diff(before, finished.rescue.unwrap()).unwrap();
    assert_eq!(kept.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["a-small"]);
    assert_eq!(call.intent.as_ref().unwrap().record.coverage, None, "everything is covered");
}

/// A user must be able to see what a rollback changed, their own files included, and to restore it.
#[tokio::test]
async fn a_restore_names_what_it_changed_and_where_it_is_kept() {
    let disk = Disk::new();
    fs::write(disk.path("thesis.txt"), "chapter one").unwrap();
    let path = disk.path("");
    let builder = Tool::builder("failing", "Fails.").unwrap().effect(Effect::Workspace);
    let failing = builder.handler(move |_: ToolContext, (): ()| {
        // Concurrent edits of a user look the same.
        fs::write(path.join("thesis.txt"), "chapter two").unwrap();
        fs::write(path.join("ch2.txt"), "new").unwrap();
        async { Err(ToolError::new("no")) }
    });
    let harness = disk.harness(vec![failing]).await;
    harness.run("failing", json!({})).await;
    let records = read_records(&*disk.store, harness.live.id(), Position::START, None).await.unwrap();
    let restored: Vec<_> = records.iter().filter_map(|record| FilesRestored::of(&record.body)).collect();
    let [restored] = &restored[..] else { panic!("{restored:?}") };
    let changed: Vec<_> = restored.changed.iter().map(|one| (one.path.as_str(), one.change)).collect();
    assert_eq!(changed, [("ch2.txt", ChangeKind::Deleted), ("thesis.txt", ChangeKind::Modified)]);
    assert_eq!(restored.kept, []);
    assert_eq!(fs::read(disk.path("thesis.txt")).unwrap(), b"chapter one");

    let point = restored.point().unwrap();
    assert_eq!(point.to_string().parse::<PointSpec>().unwrap(), point);
    harness.live.rewind(&point, None).await.unwrap();
    assert_eq!(fs::read(disk.path("thesis.txt")).unwrap(), b"chapter two");
    assert_eq!(fs::read(disk.path("ch2.txt")).unwrap(), b"new");
    // A rewind is a restore too.
    let records = read_records(&*disk.store, harness.live.id(), Position::START, None).await.unwrap();
    let last = records.iter().rev().find_map(|record| FilesRestored::of(&record.body)).unwrap();
    let changed: Vec<_> = last.changed.iter().map(|one| (one.path.as_str(), one.change)).collect();
    assert_eq!(changed, [("ch2.txt", ChangeKind::Added), ("thesis.txt", ChangeKind::Modified)]);
    assert!(last.rescue.is_some());
}
