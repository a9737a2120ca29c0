//! Captures, restores and diffs.

use std::sync::Arc;

use backstitch_core::journal::{CallChanges, ChangeCounts};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{ChangeKind, Objects, PathChange, Recursion, WorkspaceError, WriteMode};
use backstitch_filesystem::FilePath;
use backstitch_filesystem::format::decode_tree;

use super::{Factory, become_tree, for_all, open, path};
use crate::filesystem::subject::fill;
use crate::filesystem::tree::{Leaf, Tree, difference, normal, root_of, tree, tree_of};
use crate::filesystem::{Setup, StoredObjects, Subject};

fn open_on(factory: Factory, tree: &Tree, objects: &Arc<StoredObjects>) -> Box<dyn Subject> {
    factory(Setup { tree: tree.clone(), objects: objects.clone(), ..Setup::default() })
}

/// A root depends only on the files: not on their location, on the time of writes, or on earlier files.
pub fn equal_files_have_equal_roots(factory: Factory) {
    for_all((tree(), tree()), |(wanted, before)| {
        let direct = open(factory, &wanted);
        let detour = open(factory, &before);
        let mut roots = vec![direct.workspace().capture().unwrap().root];
        let between = detour.workspace().capture().unwrap().root;
        become_tree(&*detour, &wanted);
        roots.push(detour.workspace().capture().unwrap().root);
        roots.push(detour.workspace().capture().unwrap().root);
        assert!(roots.iter().all(|root| *root == roots[0]), "{roots:?}");
        assert_eq!(between == roots[0], before == wanted, "and other files have other roots");
    });
}

/// The tree of a root equals the tree of git, and the manifest has the exceptions.
pub fn roots_are_those_of_git(factory: Factory) {
    for_all(tree(), |tree| {
        let captured = open(factory, &tree).workspace().capture().unwrap();
        assert_eq!(captured.root, root_of(&tree));
    });
    let nothing = open(factory, &Tree::new()).workspace().capture().unwrap();
    assert_eq!(nothing.root.tree.to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    assert_eq!(nothing.root.manifest, Object::blob(*br#"{"v":1}"#).id());
}

/// Entries that git refuses are in the manifest, and are restored like all others.
pub fn what_git_refuses_is_kept(factory: Factory) {
    let objects = Arc::default();
    let tree = Tree::from([
        ("sub/.git/HEAD".to_owned(), Leaf::file("ref: refs/heads/main\n")),
        ("sub/.git/refs/tags".to_owned(), Leaf::EmptyDirectory),
        ("sub/.git/modules/x/.git".to_owned(), Leaf::file("gitdir: ..\n")),
        ("sub/file".to_owned(), Leaf::file("x")),
        ("only/.git".to_owned(), Leaf::file("gitdir: ../elsewhere\n")),
        ("empty/.GIT".to_owned(), Leaf::EmptyDirectory),
    ]);
    let subject = open_on(factory, &Tree::new(), &objects);
    fill(&*subject, &tree);
    let captured = subject.workspace().capture().unwrap();
    assert_eq!(captured.root, root_of(&tree));
    objects.store(&captured);
    let top = objects.get(captured.root.tree).unwrap().expect("the tree is stored");
    let names: Vec<_> = decode_tree(top.bytes()).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, [b"sub"], "a directory that holds only what git refuses is not in the tree");
    become_tree(&*subject, &Tree::from([("sub/.git".to_owned(), Leaf::file("gone"))]));
    subject.workspace().restore(captured.root).unwrap();
    assert_eq!(tree_of(&*subject.filesystem()), tree);
    assert_eq!(subject.workspace().capture().unwrap().root, captured.root);
}

/// A capture returns the objects that are not stored, each once. With them all objects of the root are
/// stored.
pub fn only_new_objects_are_given(factory: Factory) {
    for_all((tree(), tree()), |(first, second)| {
        let objects = Arc::default();
        let subject = open_on(factory, &first, &objects);
        let mut stored = 0;
        for tree in [&first, &second] {
            become_tree(&*subject, tree);
            let captured = subject.workspace().capture().unwrap();
            let again = subject.workspace().capture().unwrap();
            assert_eq!(again.objects.len(), captured.objects.len(), "returned objects are not stored yet");
            objects.store(&captured);
            stored += captured.objects.len();
            assert_eq!(objects.ids().len(), stored, "each is new, and is returned once");
            assert_complete(&objects, captured.root.tree);
            assert!(objects.contains(captured.root.manifest).unwrap());
            assert_eq!(subject.workspace().capture().unwrap().objects, [], "nothing is new any more");
        }
    });
}

fn assert_complete(objects: &StoredObjects, tree: ObjectId) {
    let object = objects.get(tree).unwrap().expect("the tree is stored");
    for entry in decode_tree(object.bytes()).expect("it is a tree") {
        match entry.mode.object_kind() {
            ObjectKind::Tree => assert_complete(objects, entry.object),
            _ => assert!(objects.contains(entry.object).unwrap(), "the blob is stored"),
        }
    }
}

/// A restore returns the files to their captured state, and reports its changes.
pub fn restoring_writes_exactly_the_root(factory: Factory) {
    for_all((tree(), tree()), |(wanted, other)| {
        let objects = Arc::default();
        let subject = open_on(factory, &wanted, &objects);
        let captured = subject.workspace().capture().unwrap();
        objects.store(&captured);
        become_tree(&*subject, &other);
        let restored = subject.workspace().restore(captured.root).unwrap();
        assert_eq!(tree_of(&*subject.filesystem()), wanted);
        assert_eq!(normal(&restored.changed), difference(&other, &wanted));
        assert_eq!(subject.workspace().capture().unwrap().root, captured.root);

        // Another workspace that has only the objects is restored to the same files.
        let elsewhere = open_on(factory, &other, &objects);
        elsewhere.workspace().restore(captured.root).unwrap();
        assert_eq!(tree_of(&*elsewhere.filesystem()), wanted);
    });
}

/// A restore of the current root changes nothing, and a restore after interference changes only the
/// differences.
pub fn restoring_can_be_repeated(factory: Factory) {
    let objects = Arc::default();
    let tree = Tree::from([
        ("a/one".to_owned(), Leaf::file("1")),
        ("a/two".to_owned(), Leaf::file("2")),
        ("b/empty".to_owned(), Leaf::EmptyDirectory),
    ]);
    let subject = open_on(factory, &tree, &objects);
    let captured = subject.workspace().capture().unwrap();
    objects.store(&captured);
    let restore = || normal(&subject.workspace().restore(captured.root).unwrap().changed);
    assert_eq!(restore(), []);
    let fs = subject.filesystem();
    fs.delete(&path("a"), Recursion::All).unwrap();
    fs.write_bytes(&path("a"), b"in the way", WriteMode::Create).unwrap();
    fs.write_bytes(&path("b/empty/not"), b"", WriteMode::Create).unwrap();
    assert_eq!(restore().len(), 4);
    assert_eq!(restore(), []);
    fs.delete(&path("b"), Recursion::All).unwrap();
    subject.set_executable(&path("a/one"), true);
    assert_eq!(restore().len(), 2);
    assert_eq!(tree_of(&*fs), tree);
}

/// A diff lists exactly the files and empty directories that differ, in both directions.
pub fn differences_are_reported(factory: Factory) {
    for_all((tree(), tree()), |(from, to)| {
        let objects = Arc::default();
        let subject = open_on(factory, &from, &objects);
        let first = subject.workspace().capture().unwrap();
        objects.store(&first);
        become_tree(&*subject, &to);
        let second = subject.workspace().capture().unwrap();
        // What a call records is known before its objects are stored.
        let changes = subject.workspace().changes(first.root, second.root, &second.objects).unwrap();
        check_changes(&changes, &difference(&from, &to));
        objects.store(&second);
        let diff = |from, to| subject.workspace().diff(from, to).unwrap();
        assert_eq!(diff(first.root, second.root), difference(&from, &to));
        assert_eq!(diff(second.root, first.root), difference(&to, &from));
        assert_eq!(diff(second.root, second.root), []);
    });
}

/// Checks that changes list the same paths as a diff, with the contents and sizes that fit their kinds.
fn check_changes(changes: &CallChanges, diff: &[PathChange]) {
    assert_eq!(changes.counts(), ChangeCounts::of(diff.iter().map(|change| change.change)));
    let Some(paths) = changes.paths() else { return };
    let listed: Vec<_> = paths.iter().map(|path| (path.path.as_str(), path.change)).collect();
    assert_eq!(listed, diff.iter().map(|change| (change.path.as_str(), change.change)).collect::<Vec<_>>());
    for path in paths {
        match path.change {
            ChangeKind::Added => assert_eq!(path.before, None, "{path:?}"),
            ChangeKind::Deleted => assert_eq!(path.after, None, "{path:?}"),
            ChangeKind::Mode => assert_eq!(path.before, path.after, "{path:?}"),
            // A link in place of a file may hold the same bytes.
            ChangeKind::Modified => {}
        }
        assert!(
            [path.before, path.after].iter().flatten().all(|content| content.bytes.is_some()),
            "{path:?}"
        );
    }
}

/// A restore with a missing object fails with the id of that object, and the files do not change.
pub fn missing_objects_are_refused(factory: Factory) {
    let wanted = Tree::from([("a/file".to_owned(), Leaf::file("wanted")), ("b".to_owned(), Leaf::file("b"))]);
    let present = Tree::from([("present".to_owned(), Leaf::file("present"))]);
    let captured = open(factory, &wanted).workspace().capture().unwrap();
    for missing in &captured.objects {
        let objects: Arc<StoredObjects> = Arc::default();
        objects.store(&captured);
        objects.remove(missing.id());
        let subject = open_on(factory, &present, &objects);
        if missing.id() == captured.root.manifest
            && subject.workspace().capture().unwrap().root.manifest == missing.id()
        {
            // This is the manifest of the present files too, which are captured before they are replaced.
            continue;
        }
        match subject.workspace().restore(captured.root) {
            Err(WorkspaceError::MissingObject { object }) => assert_eq!(object, missing.id()),
            other => panic!("{missing:?}: {other:?}"),
        }
        assert_eq!(tree_of(&*subject.filesystem()), present);
        assert!(subject.filesystem().stat(&FilePath::root()).is_ok());
    }
}
