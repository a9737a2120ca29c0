//! Garbage collection deletes unneeded objects only.

use std::collections::BTreeMap;
use std::fs;

use backstitch_core::journal::{
    Batch, CallChanges, CallFinished, ChangeKind, ChangedPath, FileContent, WorkspaceRoot,
};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{ClaimMode, GcMode, GcReport, Objects as _, Retention, Store as _, StoreError};
use backstitch_core::time::Clock as _;
use backstitch_filesystem::format::Manifest;
use backstitch_store::{SqliteOptions, SqliteStore};
use backstitch_testkit::{block_on, sample};
use rusqlite::Connection;
use tempfile::TempDir;

use super::agent::{Agent, succeeded};
use super::support::{Temporary, Writer, claim, read};

/// Returns whether a root can be restored completely. Panics if it is neither complete nor completely pruned.
pub(super) fn is_whole(store: &SqliteStore, root: WorkspaceRoot) -> bool {
    let get = |id| block_on(store.object(id));
    let pruned = |id| matches!(get(id), Err(StoreError::Pruned { .. }));
    if pruned(root.tree) || pruned(root.manifest) {
        return false;
    }
    let manifest = get(root.manifest).unwrap().expect("the manifest of a root is there or pruned");
    let manifest = Manifest::from_bytes(manifest.bytes()).unwrap();
    let mut open = vec![root.tree];
    open.extend(manifest.refused.values().map(|refused| refused.object));
    while let Some(id) = open.pop() {
        let object = get(id).unwrap().unwrap_or_else(|| panic!("{id} is missing below {root:?}"));
        if object.kind() == ObjectKind::Tree {
            let entries = backstitch_filesystem::format::decode_tree(object.bytes()).unwrap();
            open.extend(entries.into_iter().map(|entry| entry.object));
        }
    }
    true
}

pub(super) fn gc(store: &SqliteStore, retention: Retention) -> GcReport {
    let announced = store.gc(retention, GcMode::DryRun).unwrap();
    let report = store.gc(retention, GcMode::Now).unwrap();
    assert_eq!(report, announced, "a dry run says what will happen");
    let again = store.gc(retention, GcMode::Now).unwrap();
    assert_eq!(
        (again.freed.len(), again.kept_objects),
        (0, report.kept_objects),
        "nothing is left to collect"
    );
    let verified = store.verify().unwrap();
    assert!(verified.is_sound(), "{:?}", verified.findings);
    report
}

#[test]
fn old_boundaries_go_and_new_ones_stay() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    let roots: Vec<WorkspaceRoot> = (0..10)
        .map(|index| {
            let text = format!("version {index} {}", "x".repeat(500));
            agent.call(&[("changes", &text), ("stays", "the same"), ("sub/.git", &text)])
        })
        .collect();
    let before = read(&*store, agent.session()).unwrap();
    let report = gc(&store, Retention::keep_all().keep_boundaries(3));
    let kept: Vec<bool> = roots.iter().map(|root| is_whole(&store, *root)).collect();
    // The third call from the end starts with the files that the fourth one left.
    assert_eq!(kept, [false, false, false, false, false, false, true, true, true, true]);
    assert_eq!(report.pruned_roots, 6);
    assert!(report.freed.iter().all(|freed| freed.session == Some(agent.session())));
    // Each pruned root frees its two trees and its manifest, and the tree and the blob of the change.
    let by_kind: BTreeMap<&str, u64> =
        report.freed.iter().map(|freed| (freed.kind.as_str(), freed.objects)).collect();
    assert_eq!(by_kind, BTreeMap::from([("blob", 12), ("tree", 12)]));
    assert_eq!(read(&*store, agent.session()).unwrap(), before, "records stay");

    // Storing a pruned object again restores it.
    let text = format!("version 2 {}", "x".repeat(500));
    let again = agent.call(&[("changes", &text), ("stays", "the same"), ("sub/.git", &text)]);
    assert_eq!(again, roots[2]);
    assert!(is_whole(&store, roots[2]));
}

#[test]
fn days_and_boundaries_each_keep() {
    let day =
        |day: u64| sample::clock().now().saturating_add(std::time::Duration::from_secs(day * 24 * 60 * 60));
    let make = |store: &Temporary| -> Vec<WorkspaceRoot> {
        let mut agent = Agent::new(store, 1);
        let mut call = |index: u64| {
            agent.at = day(index);
            agent.call(&[("file", &index.to_string())])
        };
        (0..6).map(&mut call).collect()
    };
    for (retention, expected) in [
        (Retention::keep_all(), 0),
        (Retention::keep_all().keep_since(day(4)), 3),
        (Retention::keep_all().keep_since(day(4)).keep_boundaries(3), 2),
        (Retention::keep_all().keep_since(day(1)).keep_boundaries(1), 0),
        (Retention::keep_all().keep_since(day(9)), 5),
        (Retention::keep_all().keep_boundaries(0), 5),
        (Retention::keep_all().keep_days(day(9), 0), 5),
        (Retention::keep_all().keep_days(day(9), 5), 3),
    ] {
        let store = Temporary::new();
        let roots = make(&store);
        let report = gc(&store, retention);
        let gone = roots.iter().filter(|root| !is_whole(&store, **root)).count();
        assert_eq!((gone, report.pruned_roots), (expected, expected as u64), "{retention:?}");
    }
}

#[test]
fn the_files_of_now_of_open_calls_and_of_forks_stay() {
    let store = Temporary::new();
    let nothing = Retention::keep_all().keep_boundaries(0);
    let mut agent = Agent::new(&store, 1);
    let mut cuts = Vec::new();
    let roots: Vec<WorkspaceRoot> = (0..8)
        .map(|index| {
            let root = agent.call(&[("file", &index.to_string())]);
            cuts.push(agent.next);
            root
        })
        .collect();
    // A fork from the end of the third call, and an immediate fork of that fork.
    let fork = agent.fork(2, cuts[2]);
    let fork_of_fork = fork.fork(3, fork.next);
    // Rewind to the end of the sixth call, then start a call that never ends.
    agent.rewind(cuts[5], Some(roots[5]));
    agent.start();
    gc(&store, nothing);
    let kept: Vec<usize> = (0..8).filter(|index| is_whole(&store, roots[*index])).collect();
    assert_eq!(kept, [2, 5]);
    drop((fork, fork_of_fork));

    // A rewind that another one undoes.
    agent.rewind(cuts[2], Some(roots[2]));
    gc(&store, nothing);
    assert!(is_whole(&store, roots[2]) && is_whole(&store, roots[5]));
}

#[test]
fn what_records_say_stays_whatever_retention_is_told() {
    let store = Temporary::new();
    let journals = [sample::every_kind(), sample::journal(7, 40)];
    journals.iter().for_each(|journal| super::support::write(&*store, journal));
    let in_roots: Vec<ObjectId> = journals
        .iter()
        .flat_map(|journal| journal.records())
        .flat_map(|record| match &record.body {
            backstitch_core::journal::RecordBody::CallStarted(call) => vec![call.root],
            backstitch_core::journal::RecordBody::CallFinished(call) => vec![call.root, call.rescue],
            backstitch_core::journal::RecordBody::Rewound(rewound) => vec![rewound.rescue],
            _ => Vec::new(),
        })
        .flatten()
        .flat_map(|root| [root.tree, root.manifest])
        .collect();
    gc(&store, Retention::keep_all().keep_boundaries(0));
    for journal in &journals {
        assert_eq!(read(&*store, journal.session).unwrap(), journal.records());
        for id in journal.records().iter().flat_map(|record| record.body.object_refs()) {
            let found = block_on(store.object(id));
            match found {
                Ok(Some(_)) => {}
                Err(StoreError::Pruned { .. }) if in_roots.contains(&id) => {}
                other => panic!("{id}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_waits_in_an_inbox_is_needed() {
    let store = Temporary::new();
    let mut writer = Writer::create(&*store, sample::session(1));
    let image = Object::blob(vec![7; 1000]);
    let mut batch = sample::notes(["brings an image"]);
    batch.add_object(image.clone());
    writer.append(batch).unwrap();
    let mut item = sample::item("look at this");
    item.data = serde_json::json!({ "parts": [{ "url": format!("blob:{}", image.id()) }] });
    let id = block_on(store.send(writer.session(), item)).unwrap();
    gc(&store, Retention::keep_all());
    assert_eq!(block_on(store.object(image.id())).unwrap(), Some(image.clone()));
    let mut batch = sample::notes(["took it"]);
    batch.take(id);
    writer.append(batch).unwrap();
    let report = gc(&store, Retention::keep_all());
    assert_eq!((report.freed.len(), report.freed[0].session), (1, None));
    assert_eq!(block_on(store.object(image.id())).unwrap(), None);
}

/// An object is stored when files are captured, and collected before their root is appended.
#[test]
fn a_root_below_which_something_was_collected_since_is_refused() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    agent.call(&[("a", "first"), ("b", "old")]);
    for index in 0..3 {
        agent.call(&[("a", &index.to_string())]);
    }
    let call = agent.start();
    let wanted = [("a", "new"), ("b", "old")];
    let root = Agent::root_of(&wanted);
    let mut batch = Batch::at(agent.at);
    for object in Agent::objects(&wanted) {
        if !store.contains(object.id()).unwrap() {
            batch.add_object(object);
        }
    }
    assert!(!batch.objects().iter().any(|object| *object == Object::blob(*b"old")), "it is stored");
    let other = SqliteStore::open(store.path()).unwrap();
    other.gc(Retention::keep_all().keep_boundaries(1), GcMode::Now).unwrap();
    batch.push(succeeded(call, root));
    let error = agent.append(batch).unwrap_err();
    assert!(matches!(error, StoreError::MissingObject { .. }), "{error:?}");
    // Another capture contains the missing objects.
    agent.finish(call, &wanted).unwrap();
    assert!(is_whole(&store, root));
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn space_is_given_back() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    for index in 0..40_u64 {
        let text: String =
            (0..2_000).map(|n: u64| format!("{:x}", (n * 7919 + index) * 2_654_435_761)).collect();
        agent.call(&[("file", &text)]);
    }
    let before = store.size().unwrap();
    let report = gc(&store, Retention::keep_all().keep_boundaries(1));
    let after = store.size().unwrap();
    assert!(before.file + before.log > report.freed_bytes(), "{before:?}");
    assert!(
        after.file + report.freed_bytes() / 2 < before.file + before.log,
        "{before:?} {after:?} {report:?}"
    );
}

#[test]
fn a_damaged_store_is_not_collected() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    agent.call(&[("file", "content")]);
    let tree = agent.root.unwrap().tree;
    let raw = Connection::open(store.path()).unwrap();
    let changed = raw.execute("UPDATE objects SET content = x'00' WHERE id = ?1", [&tree.as_bytes()[..]]);
    assert_eq!(changed.unwrap(), 1);
    let error = store.gc(Retention::keep_all(), GcMode::Now).unwrap_err();
    assert!(matches!(error, StoreError::DamagedObject { .. }), "{error:?}");
    let error = store.gc(Retention::keep_all(), GcMode::DryRun).unwrap_err();
    assert!(matches!(error, StoreError::DamagedObject { .. }), "{error:?}");
}

/// A collection takes several transactions. Wherever it is interrupted, the rest is complete, and the next
/// collection finishes.
#[test]
fn an_interrupted_collection_leaves_everything_whole() {
    let options = || SqliteOptions { transaction_bytes: 1, ..SqliteOptions::default() };
    let store = Temporary::with(options());
    let mut agent = Agent::new(&store, 1);
    for index in 0..6 {
        let (own, shared) = (format!("content {index}"), format!("shared by some {}", index / 2));
        agent.call(&[("own", &own), ("shared", &shared), ("same", "same"), ("nested/.git", &own)]);
    }
    let (_directory, path) = store.close();
    let retention = Retention::keep_all().keep_boundaries(1);
    let expected = {
        let whole = TempDir::new().unwrap();
        fs::copy(&path, whole.path().join("store.db")).unwrap();
        let store = SqliteStore::open(whole.path().join("store.db")).unwrap();
        let report = store.gc(retention, GcMode::Now).unwrap();
        assert!(report.freed_bytes() > 0 && store.verify().unwrap().is_sound());
        (report, store.size().unwrap().objects)
    };
    for transactions in 0.. {
        let directory = TempDir::new().unwrap();
        let copy = directory.path().join("store.db");
        fs::copy(&path, &copy).unwrap();
        // Blocks all deletions after this many transactions.
        let stop = |sql: &str| Connection::open(&copy).unwrap().execute_batch(sql).unwrap();
        let condition = format!("(SELECT value FROM counters WHERE name = 'generation') >= {transactions}");
        for what in ["DELETE", "UPDATE"] {
            stop(&format!(
                "CREATE TRIGGER stop_{what} BEFORE {what} ON objects WHEN {condition}
                 BEGIN SELECT RAISE(ABORT, 'stop'); END"
            ));
        }
        let store = SqliteStore::open_with(&copy, options()).unwrap();
        let interrupted = store.gc(retention, GcMode::Now).is_err();
        stop("DROP TRIGGER stop_DELETE; DROP TRIGGER stop_UPDATE");
        let report = store.verify().unwrap();
        assert!(report.is_sound(), "after {transactions}: {:?}", report.findings);
        store.gc(retention, GcMode::Now).unwrap();
        assert!(store.verify().unwrap().is_sound(), "after {transactions}");
        assert_eq!(store.size().unwrap().objects, expected.1, "after {transactions}");
        if !interrupted {
            assert!(transactions > 10, "{transactions}");
            break;
        }
    }
}

/// A capture that exceeds the transaction limit is written in several transactions, and is stored completely
/// or not at all.
#[test]
fn a_large_batch_is_written_in_parts() {
    let store = Temporary::with(SqliteOptions { transaction_bytes: 5_000, ..SqliteOptions::default() });
    let mut agent = Agent::new(&store, 1);
    let contents: Vec<String> = (0..40)
        .map(|index| {
            (0..60).map(|part| format!("{:x}", (index * 7919 + part * 104_729) ^ 0x5bd1_e995)).collect()
        })
        .collect();
    let names: Vec<String> = (0..40).map(|index| format!("file {index}")).collect();
    let files: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(contents.iter().map(String::as_str)).collect();
    let before = store.counters();
    let root = agent.call(&files);
    let after = store.counters();
    assert_eq!(after.appends - before.appends, 2, "the intent and the outcome");
    assert!(after.commits - before.commits >= 4, "{} commits", after.commits - before.commits);
    assert!(store.verify().unwrap().is_sound());
    assert!(block_on(store.object(root.tree)).unwrap().is_some());
    for object in Agent::objects(&files) {
        assert!(block_on(store.object(object.id())).unwrap().is_some());
    }
    // A refused batch is refused before anything is written.
    let stale = agent.claim.fence;
    claim(&*store, agent.session(), ClaimMode::TakeOver).unwrap();
    let large = Object::blob(
        (0..9_000_u32).flat_map(|one| one.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<u8>>(),
    );
    let mut batch = sample::notes(["stale"]);
    batch.add_object(large.clone());
    let refused = block_on(store.append(agent.session(), agent.next, stale, batch));
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    assert_eq!(block_on(store.object(large.id())).unwrap(), None);
}

#[test]
fn rules_for_a_tag_keep_everything_of_other_sessions() {
    let store = Temporary::new();
    let (mut tagged, mut other) = (Agent::tagged(&store, 1, "guard"), Agent::new(&store, 2));
    let roots = |agent: &mut Agent<'_>, name: &str| -> Vec<WorkspaceRoot> {
        (0..4).map(|index| agent.call(&[("file", &format!("{name} {index}"))])).collect()
    };
    let (of_tagged, of_other) = (roots(&mut tagged, "tagged"), roots(&mut other, "other"));
    gc(&store, Retention::keep_all().keep_boundaries(1).only_tagged("guard"));
    let kept = |roots: &[WorkspaceRoot]| roots.iter().filter(|root| is_whole(&store, **root)).count();
    assert_eq!((kept(&of_tagged), kept(&of_other)), (2, 4));
}

#[test]
fn the_changed_paths_of_a_call_keep_no_content() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    let mut contents = Vec::new();
    for index in 0..4 {
        let text = format!("version {index} {}", "x".repeat(500));
        let files = [("changes", text.as_str())];
        let objects = Agent::objects(&files);
        let content = objects[0].id();
        let call = agent.start();
        let changed = ChangedPath {
            after: Some(FileContent { object: content, bytes: Some(text.len() as u64) }),
            ..ChangedPath::new("changes/content", ChangeKind::Modified)
        };
        let root = Agent::root_of(&files);
        let finished =
            CallFinished { changes: Some(CallChanges::new(vec![changed])), ..succeeded(call, root) };
        let mut batch = Batch::at(agent.at).with(finished);
        objects.into_iter().for_each(|object| _ = batch.add_object(object));
        agent.append(batch).unwrap();
        agent.root = Some(root);
        contents.push(content);
    }
    let lengths = || contents.iter().map(|id| store.length(*id).unwrap()).collect::<Vec<_>>();
    assert_eq!(lengths(), [Some(510); 4]);
    gc(&store, Retention::keep_all().keep_boundaries(0));
    let kept: Vec<bool> = contents.iter().map(|id| store.contains(*id).unwrap()).collect();
    assert_eq!(lengths(), [None, None, None, Some(510)]);
    assert_eq!(kept, [false, false, false, true], "only the files of now");
}
