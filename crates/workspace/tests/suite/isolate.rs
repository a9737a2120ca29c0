//! Copies of projects.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use backstitch_core::ports::{UncoveredReason, Workspace as _};
use backstitch_workspace::{
    CopyOptions, HostWorkspace, IgnoredBudget, IsolateError, OpenOptions, ProjectCopy, copy_project,
    remove_copy, restore_copy, supports_reflinks, unclaimed_copies,
};

use crate::support::{Place, run_git};

fn copied(place: &Place, name: &str) -> Result<ProjectCopy, IsolateError> {
    copy_project(CopyOptions {
        project: &place.root,
        place: &place.above.join("copies"),
        name,
        store_directory: &place.above.join("store"),
        ignored: IgnoredBudget { bytes: 1000, entries: 10 },
    })
}

fn repository(place: &Place) {
    place.git(&["init", "-q", "-b", "main"]);
    place.git(&["config", "user.email", "a@example.org"]);
    place.git(&["config", "user.name", "a"]);
    place.git(&["add", "-A"]);
    place.git(&["commit", "-q", "-m", "first"]);
}

fn left_out(copy: &ProjectCopy) -> Vec<(&str, UncoveredReason)> {
    copy.left_out.iter().map(|one| (one.path.as_str(), one.reason)).collect()
}

#[test]
fn a_copy_has_the_same_root_and_shares_nothing() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("bin/run", "#!/bin/sh\n");
    place.mode("bin/run", 0o755);
    place.write("secret/key", "k");
    place.mode("secret/key", 0o600);
    place.mode("secret", 0o700);
    place.link("link", "a.txt");
    place.link("dangling", "/nowhere/at/all");
    place.directory("empty");
    place.write(b"\xff", "bytes");
    let old = fs::File::open(place.path("a.txt")).unwrap();
    let then = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    old.set_modified(then).unwrap();
    let root = place.capture(&place.open());
    let copy = copied(&place, "one").unwrap();
    assert_eq!(left_out(&copy), []);
    let mut options = OpenOptions::new(&copy.directory, place.above.join("store"), place.objects.clone());
    options.locks = Some(place.above.join("locks"));
    assert_eq!(HostWorkspace::open(options).unwrap().capture().unwrap().root, root);
    assert_eq!(copy.directory.file_name(), place.root.file_name());
    let (one, other) =
        (place.path("a.txt").metadata().unwrap(), copy.directory.join("a.txt").metadata().unwrap());
    assert_ne!(one.ino(), other.ino());
    assert_eq!(other.modified().unwrap(), then, "build tools compare times");
    fs::write(copy.directory.join("a.txt"), "two\n").unwrap();
    assert_eq!(fs::read_to_string(place.path("a.txt")).unwrap(), "one\n");
}

#[test]
fn what_is_not_copied_is_listed() {
    let place = Place::new();
    place.write(".gitignore", "target/\nsmall/\n");
    place.write("target/big", vec![7; 5000]);
    place.write("small/a", "a");
    place.fifo("pipe");
    let _socket = UnixListener::bind(place.path("socket")).unwrap();
    let copy = copied(&place, "one").unwrap();
    let mut expected = vec![("pipe", UncoveredReason::Special), ("socket", UncoveredReason::Special)];
    if !supports_reflinks(&place.above) {
        expected.push(("target", UncoveredReason::IgnoredBudget));
        assert!(!copy.directory.join("target").exists());
    }
    assert_eq!(left_out(&copy), expected);
    assert!(copy.directory.join("small/a").exists());
    if rustix::process::geteuid().as_raw() != 0 {
        place.write("locked", "x");
        place.mode("locked", 0o000);
        let copy = copied(&place, "two").unwrap();
        assert!(left_out(&copy).contains(&("locked", UncoveredReason::Unreadable)));
    }
}

#[test]
fn the_store_in_a_project_is_not_copied_and_nested_places_are_refused() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write(".backstitch/store.db", "data");
    let options = |at: &'static str| CopyOptions {
        project: Box::leak(Box::new(place.root.clone())),
        place: Box::leak(Box::new(place.above.join(at))),
        name: "one",
        store_directory: Box::leak(Box::new(place.root.join(".backstitch"))),
        ignored: IgnoredBudget::default(),
    };
    let copy = copy_project(options("copies")).unwrap();
    assert!(!copy.directory.join(".backstitch").exists());
    let refused = copy_project(options("work/copies")).unwrap_err();
    assert!(matches!(refused, IsolateError::Nested { .. }), "{refused}");
}

#[test]
fn git_works_in_a_copy_and_leaves_the_original_alone() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    repository(&place);
    fs::write(place.path(".git/index.lock"), "").unwrap();
    let before = place.git(&["rev-parse", "HEAD"]);
    let copy = copied(&place, "one").unwrap();
    let git = |arguments: &[&str]| run_git(&copy.directory, arguments);
    assert_eq!(git(&["status", "--short"]), "");
    assert_eq!(git(&["rev-parse", "HEAD"]), before);
    fs::write(copy.directory.join("a.txt"), "two\n").unwrap();
    git(&["commit", "-q", "-am", "second"]);
    git(&["checkout", "-q", "-b", "other"]);
    git(&["fsck", "--connectivity-only"]);
    assert_eq!(place.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(place.git(&["branch", "--list"]).trim(), "* main");
    let copied = copy.directory.to_str().unwrap();
    place.git(&["fetch", "-q", copied, "refs/heads/main:refs/heads/fetched"]);
    assert_eq!(place.git(&["rev-parse", "fetched"]), git(&["rev-parse", "main"]));
}

#[test]
fn worktrees_submodules_and_borrowed_objects_come_along() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    repository(&place);
    // A clone that borrows its objects by a relative path, with a linked worktree and a submodule.
    let clone = place.above.join("clone");
    run_git(&place.above, &["clone", "-q", "--shared", "work", "clone"]);
    fs::write(clone.join(".git/objects/info/alternates"), "../../../work/.git/objects\n").unwrap();
    let module = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../work", "sub"];
    run_git(&clone, &["config", "user.email", "a@example.org"]);
    run_git(&clone, &["config", "user.name", "a"]);
    run_git(&clone, &module);
    run_git(&clone, &["commit", "-q", "-m", "submodule"]);
    run_git(&clone, &["worktree", "add", "-q", "../tree"]);
    let copy_of = |project: &Path, name: &str| -> PathBuf {
        let options = CopyOptions {
            project,
            place: &place.above.join("copies"),
            name,
            store_directory: &place.above.join("store"),
            ignored: IgnoredBudget::default(),
        };
        copy_project(options).unwrap().directory.clone()
    };
    for (project, name) in [("clone", "one"), ("tree", "two"), ("clone/sub", "three")] {
        let project = place.above.join(project);
        let copy = copy_of(&project, name);
        let top = run_git(&copy, &["rev-parse", "--show-toplevel"]);
        assert_eq!(Path::new(top.trim()), copy, "{name}");
        assert_eq!(run_git(&copy, &["status", "--short"]), "", "{name}");
        assert_eq!(
            run_git(&copy, &["log", "--format=%H"]),
            run_git(&project, &["log", "--format=%H"]),
            "{name}"
        );
        fs::write(copy.join("new.txt"), "new\n").unwrap();
        run_git(&copy, &["add", "new.txt"]);
        run_git(&copy, &["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-q", "-m", "new"]);
        assert_eq!(run_git(&project, &["status", "--short"]), "", "{name}");
    }
    let sub = place.above.join("copies/one/clone/sub");
    assert_eq!(run_git(&sub, &["status", "--short"]), "");
    fs::write(place.path("broken"), "").unwrap();
    fs::remove_dir_all(place.path(".git")).unwrap();
    fs::write(place.path(".git"), "gitdir: /nowhere\n").unwrap();
    assert!(matches!(copied(&place, "four"), Err(IsolateError::Repository { .. })));
    assert!(!place.above.join("copies/four.new").exists());
}

#[test]
fn unfinished_copies_are_swept_and_used_ones_are_not() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("closed/a", "a");
    place.mode("closed", 0o555);
    let copies = place.above.join("copies");
    let used = copied(&place, "used").unwrap();
    drop(copied(&place, "known").unwrap());
    drop(copied(&place, "unknown").unwrap());
    fs::create_dir_all(copies.join("killed.new/work")).unwrap();
    let unclaimed = unclaimed_copies(&copies);
    assert!(unclaimed_copies(&copies).is_empty(), "another process has them");
    let mut sessions: Vec<_> = unclaimed.iter().map(|copy| copy.session().map(str::to_owned)).collect();
    sessions.sort();
    assert_eq!(sessions, [None, Some("known".to_owned()), Some("unknown".to_owned())]);
    for copy in unclaimed.into_iter().filter(|copy| copy.session() != Some("known")) {
        let path = copy.remove().unwrap();
        assert!(!path.exists());
    }
    assert!(used.directory.exists() && copies.join("known/work/a.txt").exists());
    assert_eq!(used.directory.join("closed").metadata().unwrap().permissions().mode() & 0o777, 0o555);
    remove_copy(&copies.join("known")).unwrap();
    remove_copy(&copies.join("known")).unwrap();
    assert!(!copies.join("known").exists());
}

#[test]
fn a_deleted_copy_gets_its_repository_again() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    repository(&place);
    let copy = copied(&place, "one").unwrap();
    fs::remove_dir_all(&copy.directory).unwrap();
    restore_copy(&place.root, &copy.directory).unwrap();
    assert_eq!(run_git(&copy.directory, &["log", "--format=%s"]), "first");
    restore_copy(&place.root, &copy.directory).unwrap();
}

/// A copy that is being made is never taken for one that was left.
#[test]
fn copies_are_made_while_others_look_for_left_ones() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    let copies = place.above.join("copies");
    fs::create_dir_all(&copies).unwrap();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                for copy in unclaimed_copies(&copies) {
                    copy.remove().unwrap();
                }
            }
        });
        for number in 0..50 {
            let made = copied(&place, &format!("copy-{number}")).unwrap();
            assert_eq!(fs::read_to_string(made.directory.join("a.txt")).unwrap(), "one\n");
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
