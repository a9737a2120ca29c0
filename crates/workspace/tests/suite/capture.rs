//! Roots are determined by content alone, and include everything that git cannot represent.

use std::fs;
use std::time::Duration;

use backstitch_core::object::ObjectKind;
use backstitch_core::ports::{UncoveredReason, Workspace as _};
use backstitch_workspace::Coverage;

use crate::support::{Place, file_path, uncovered};

/// Creates a tree with entries of all kinds.
fn furnish(place: &Place) {
    place.write("a.txt", "hello\n");
    place.write("src/lib.rs", "pub fn x() {}\n");
    place.write("src/run.sh", "#!/bin/sh\n");
    place.mode("src/run.sh", 0o755);
    place.write("private", "key");
    place.mode("private", 0o600);
    place.directory("empty/inside");
    place.link("link", "src/lib.rs");
    place.link("dangling", "nowhere");
    place.write(b"not-\xff-text/n\xfeme".as_slice(), "bytes");
    place.write("sub/.git/HEAD", "ref: refs/heads/main\n");
    place.directory("sub/.git/refs/tags");
    place.write("sub/.git/objects/aa/bb", "object");
    place.mode("sub/.git/objects/aa/bb", 0o444);
}

#[test]
fn the_same_content_is_the_same_root() {
    let (left, right) = (Place::new(), Place::new());
    furnish(&left);
    std::thread::sleep(Duration::from_millis(20));
    right.write("later-deleted", "");
    furnish(&right);
    fs::remove_file(right.path("later-deleted")).unwrap();
    let roots = [&left, &right].map(|place| place.capture(&place.open()));
    assert_eq!(roots[0], roots[1]);

    for (path, mode) in [("a.txt", 0o640), ("empty", 0o700), ("empty/inside", 0o700), ("", 0o700)] {
        right.mode(path, mode);
        let changed = right.capture(&right.open());
        assert_eq!(changed.tree, roots[0].tree, "{path}");
        assert_ne!(changed.manifest, roots[0].manifest, "{path}");
        right.mode(path, if path == "a.txt" { 0o644 } else { 0o755 });
    }
    assert_eq!(right.capture(&right.open()), roots[0]);
}

#[test]
fn an_ordinary_tree_needs_no_exceptions() {
    let place = Place::new();
    place.write("a", "a");
    place.write("b/c", "c");
    let captured = place.open().capture().unwrap();
    let manifest = captured.objects.iter().find(|object| object.id() == captured.root.manifest).unwrap();
    assert_eq!(&**manifest.bytes(), br#"{"v":1}"#);
    assert_eq!(captured.objects.len(), 5);
    assert!(captured.uncovered.is_empty());
}

#[test]
fn an_empty_directory_is_the_empty_tree() {
    let place = Place::new();
    let root = place.capture(&place.open());
    assert_eq!(root.tree.to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
}

#[test]
fn trees_are_those_of_git() {
    let place = Place::new();
    place.write("a.txt", "hello\n");
    place.write("a/b", "below a directory that sorts after a.txt");
    place.write("a0", "");
    place.write("tool.sh", "#!/bin/sh\n");
    place.mode("tool.sh", 0o755);
    place.link("link", "../out of here");
    place.write(b"n\xfeme".as_slice(), "bytes");
    place.write("deep/er/and/deeper", "x");
    place.git(&["init", "-q"]);
    place.git(&["add", "-A"]);
    let wanted = place.git(&["write-tree"]);
    let workspace = place.open();
    let root = place.capture(&workspace);
    assert_eq!(root.tree.to_string(), wanted);
    let blob = workspace.read_at(root, &file_path("a.txt")).unwrap().unwrap();
    assert_eq!(blob.id().to_string(), place.git(&["hash-object", "a.txt"]));
    assert_eq!(workspace.read_at(root, &file_path("a")).unwrap(), None);
    assert_eq!(workspace.read_at(root, &file_path("a/b/c")).unwrap(), None);
    assert_eq!(&**workspace.read_at(root, &file_path("link")).unwrap().unwrap().bytes(), b"../out of here");
}

#[test]
fn only_what_is_not_stored_is_given() {
    let place = Place::new();
    furnish(&place);
    let workspace = place.open();
    let first = workspace.capture().unwrap();
    // It was not stored, so it is returned again.
    let again = workspace.capture().unwrap();
    let ids = |captured: &backstitch_core::ports::WorkspaceCapture| {
        let mut ids: Vec<_> = captured.objects.iter().map(|object| object.id()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&first), ids(&again));
    place.store(again);
    assert_eq!(ids(&workspace.capture().unwrap()), []);
    assert_eq!(ids(&workspace.capture().unwrap()), []);

    place.write("src/lib.rs", "pub fn y() {}\n");
    let changed = workspace.capture().unwrap();
    let kinds: Vec<_> = changed.objects.iter().map(|object| object.kind()).collect();
    assert_eq!(kinds, [ObjectKind::Blob, ObjectKind::Tree, ObjectKind::Tree]);
    place.store(changed);

    // Collected objects are returned again once the workspace was notified.
    std::thread::sleep(Duration::from_millis(120));
    place.capture(&workspace);
    place.objects.0.lock().unwrap().clear();
    place.store(backstitch_core::ports::WorkspaceCapture { objects: first.objects.clone(), ..first.clone() });
    let manifest = first.root.manifest;
    place.objects.0.lock().unwrap().retain(|id, _| *id == manifest);
    assert_eq!(ids(&workspace.capture().unwrap()), []);
    workspace.forget_stored();
    assert_eq!(ids(&workspace.capture().unwrap()).len(), ids(&first).len() - 1);
}

#[test]
fn a_change_in_a_nested_repository_costs_what_changed() {
    let place = Place::new();
    place.directory("sub");
    place.shell(
        "cd sub; git init -q; for i in $(seq 200); do echo $i | git hash-object -w --stdin >/dev/null; done",
    );
    let workspace = place.open();
    let before = place.capture(&workspace);
    place.shell("cd sub; echo one more | git hash-object -w --stdin");
    let captured = workspace.capture().unwrap();
    assert_ne!(captured.root.manifest, before.manifest);
    assert_eq!(captured.root.tree, before.tree);
    let bytes: usize = captured.objects.iter().map(|object| object.bytes().len()).sum();
    // Not the two hundred read-only objects: only the new one, the directories above it, and the manifest.
    assert!(bytes < 20_000, "{bytes} bytes in {:?}", captured.objects);
}

#[test]
fn other_names_and_attributes_of_files_are_said() {
    let place = Place::new();
    place.write("one", "x");
    fs::hard_link(place.path("one"), place.path("two")).unwrap();
    place.write("attributed", "y");
    let set =
        rustix::fs::setxattr(place.path("attributed"), "user.note", b"x", rustix::fs::XattrFlags::empty());
    let captured = place.open().capture().unwrap();
    let found = uncovered(&captured);
    assert!(found.contains(&("one".to_owned(), UncoveredReason::HardLink)), "{found:?}");
    assert!(found.contains(&("two".to_owned(), UncoveredReason::HardLink)), "{found:?}");
    // Not every filesystem has extended attributes.
    if set.is_ok() {
        assert!(found.contains(&("attributed".to_owned(), UncoveredReason::Attributes)), "{found:?}");
    }
}

#[test]
fn where_the_own_repository_stands_is_said_and_is_no_part_of_the_root() {
    let place = Place::new();
    place.write("a", "a");
    let workspace = place.open();
    let before = workspace.git_head();
    assert_eq!(before.head, None);
    let root = place.capture(&workspace);
    place.git(&["init", "-q"]);
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "one"]);
    let after = workspace.git_head();
    assert_eq!(after.head.as_deref(), Some("ref: refs/heads/main"));
    assert_eq!(after.references["refs/heads/main"], place.git(&["rev-parse", "HEAD"]));
    place.git(&["pack-refs", "--all"]);
    assert_eq!(workspace.git_head(), after);
    assert_eq!(before.changes(&after).len(), 2);
    // It is stored with the coverage, for a later rewind to this root.
    let kept = workspace.capture().unwrap().coverage.unwrap();
    assert_eq!(Coverage::git_head(kept.bytes()).unwrap(), after);
    assert_eq!(after.changes(&after), Vec::<String>::new());
    assert_eq!(place.capture(&workspace), root);
}

#[test]
fn a_capture_too_large_to_hold_is_refused() {
    let place = Place::new();
    place.write("a", vec![1; 4_000]);
    place.write("b", vec![2; 4_000]);
    let workspace = place.open_with(|options| options.new_bytes = 5_000);
    let error = workspace.capture().unwrap_err().to_string();
    assert!(error.contains("more than 5000 bytes of new content"), "{error}");
    fs::remove_file(place.path("b")).unwrap();
    place.capture(&workspace);
}
