//! Files in memory: the conformance suite of filesystems, and properties of memory alone.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::json::JsonLimits;
use backstitch_core::object::Object;
use backstitch_core::ports::{
    Access, Filesystem, FilesystemError, FilesystemLimits, Recursion, Workspace, WorkspaceError, WriteMode,
};
use backstitch_core::time::{Clock, FixedClock};
use backstitch_filesystem::format::{Manifest, TreeEntry, TreeMode, tree_object};
use backstitch_filesystem::{FilePath, LoadError, MemoryFiles, MemoryFilesystem, MemoryWorkspace};
use backstitch_testkit::filesystem::model::operations;
use backstitch_testkit::filesystem::tree::{Leaf, Tree, tree, tree_of};
use backstitch_testkit::filesystem::{Setup, StoredObjects, Subject};
use proptest::prelude::*;

struct InMemory {
    filesystem: Arc<MemoryFilesystem>,
    /// The view of tools: the same files, possibly read-only.
    seen: Arc<dyn Filesystem>,
    workspace: MemoryWorkspace,
}

impl Subject for InMemory {
    fn filesystem(&self) -> Arc<dyn Filesystem> {
        self.seen.clone()
    }

    fn workspace(&self) -> &dyn Workspace {
        &self.workspace
    }

    fn set_executable(&self, path: &FilePath, executable: bool) {
        self.filesystem.set_executable(path, executable).unwrap();
    }
}

fn open(setup: Setup) -> Box<dyn Subject> {
    let filesystem = Arc::new(filled(&setup.tree).with_limits(setup.limits));
    let seen: Arc<dyn Filesystem> = match setup.access {
        Access::ReadWrite => filesystem.clone(),
        Access::ReadOnly => Arc::new(filesystem.read_only()),
    };
    let workspace = MemoryWorkspace::new(filesystem.clone(), setup.objects);
    Box::new(InMemory { filesystem, seen, workspace })
}

fn filled(tree: &Tree) -> MemoryFilesystem {
    let filesystem = MemoryFilesystem::new();
    for (at, leaf) in tree {
        match leaf {
            Leaf::EmptyDirectory => filesystem.make_directory(&path(at)).unwrap(),
            Leaf::File { bytes, executable } => {
                filesystem.write_bytes(&path(at), bytes, WriteMode::Create).unwrap();
                filesystem.set_executable(&path(at), *executable).unwrap();
            }
        }
    }
    filesystem
}

fn path(text: &str) -> FilePath {
    FilePath::new(text).unwrap()
}

mod conformance {
    backstitch_testkit::filesystem_conformance!(super::open);
}

#[test]
fn a_snapshot_is_a_value() {
    let filesystem = MemoryFilesystem::new();
    filesystem.write_bytes(&path("a/b"), b"before", WriteMode::Create).unwrap();
    let snapshot = filesystem.snapshot();
    filesystem.write_bytes(&path("a/b"), b"after", WriteMode::Overwrite).unwrap();
    filesystem.write_bytes(&path("c"), b"", WriteMode::Create).unwrap();
    assert_eq!(snapshot.get(&path("a/b")).unwrap()[..], *b"before");
    assert_eq!((snapshot.len(), snapshot.bytes()), (1, 6));
    assert_ne!(snapshot, filesystem.snapshot());
    filesystem.restore(snapshot.clone());
    assert_eq!(filesystem.read_bytes(&path("a/b")).unwrap(), b"before");
    assert_eq!(filesystem.snapshot(), snapshot);

    let other = MemoryFilesystem::from_files(snapshot);
    other.delete(&path("a"), Recursion::All).unwrap();
    assert!(other.snapshot().is_empty());
    assert_eq!(filesystem.snapshot().len(), 1);
}

#[test]
fn files_say_when_they_were_changed_if_there_is_a_clock() {
    let clock = Arc::new(FixedClock::default());
    let filesystem = MemoryFilesystem::new().with_clock(clock.clone());
    filesystem.write_bytes(&path("a"), b"", WriteMode::Create).unwrap();
    let first = clock.now();
    clock.advance(Duration::from_secs(1));
    filesystem.write_bytes(&path("b"), b"", WriteMode::Create).unwrap();
    filesystem.rename(&path("a"), &path("moved")).unwrap();
    assert_eq!(filesystem.stat(&path("moved")).unwrap().modified, Some(first));
    assert_eq!(filesystem.stat(&path("b")).unwrap().modified, Some(clock.now()));
    let again = MemoryFiles::from_json(filesystem.snapshot().to_json().as_bytes()).unwrap();
    assert_eq!(again, filesystem.snapshot());
    assert_eq!(filled(&[("x".to_owned(), Leaf::file(""))].into()).stat(&path("x")).unwrap().modified, None);
}

#[test]
fn all_files_together_have_a_limit() {
    let filesystem = MemoryFilesystem::new().with_total_bytes(10);
    filesystem.write_bytes(&path("a"), &[0; 6], WriteMode::Create).unwrap();
    filesystem.write_bytes(&path("b"), &[0; 4], WriteMode::Create).unwrap();
    let result = filesystem.write_bytes(&path("b"), &[0; 5], WriteMode::Overwrite);
    assert!(matches!(result, Err(FilesystemError::TooLarge { bytes: 11, limit: 10, .. })), "{result:?}");
    filesystem.delete(&path("a"), Recursion::None).unwrap();
    filesystem.write_bytes(&path("b"), &[0; 5], WriteMode::Append).unwrap();
    assert_eq!(filesystem.snapshot().bytes(), 9);
}

#[test]
fn a_move_must_not_make_paths_too_deep() {
    let filesystem = MemoryFilesystem::new();
    let deep = vec!["d"; 63].join("/");
    filesystem.make_directory(&path(&deep)).unwrap();
    filesystem.make_directory(&path("x/y/z")).unwrap();
    let result = filesystem.rename(&path("x"), &path("d/d/x"));
    assert!(result.is_ok(), "{result:?}");
    let result = filesystem.rename(&path("d/d/x"), &path(&format!("{}/x", vec!["d"; 62].join("/"))));
    assert!(matches!(result, Err(FilesystemError::InvalidPath(_))), "{result:?}");
}

#[test]
fn the_stored_form_is_a_promise() {
    let filesystem = MemoryFilesystem::new();
    filesystem.write_bytes(&path("b/text"), "ä\0\n".as_bytes(), WriteMode::Create).unwrap();
    filesystem.write_bytes(&path("b/bytes"), b"\xff\0", WriteMode::Create).unwrap();
    filesystem.set_executable(&path("b/bytes"), true).unwrap();
    filesystem.make_directory(&path("empty")).unwrap();
    let text = r#"{"v":1,"files":[{"path":"b/bytes","base64":"/wA=","executable":true},{"path":"b/text","text":"ä\u0000\n"}],"empty_directories":["empty"]}"#;
    assert_eq!(filesystem.snapshot().to_json(), text);
    assert_eq!(MemoryFiles::from_json(text.as_bytes()).unwrap(), filesystem.snapshot());
    assert_eq!(serde_json::from_str::<MemoryFiles>(text).unwrap(), filesystem.snapshot());
    assert_eq!(MemoryFiles::new().to_json(), r#"{"v":1,"files":[]}"#);
}

#[test]
fn what_cannot_be_loaded_is_refused() {
    let load = |text: &str| MemoryFiles::from_json(text.as_bytes()).unwrap_err();
    assert!(matches!(load("{}"), LoadError::Json(_)));
    assert!(matches!(load(r#"{"v":1,"files":[],"more":1}"#), LoadError::Json(_)));
    assert!(matches!(load(r#"{"v":2,"files":[],"more":1}"#), LoadError::Version { version: 2 }));
    for content in ["", r#","text":"a","base64":"""#, r#","base64":"?""#, r#","base64":"/w""#] {
        let text = format!(r#"{{"v":1,"files":[{{"path":"a"{content}}}]}}"#);
        assert!(matches!(load(&text), LoadError::Content { .. }), "{text}");
    }
    for hostile in ["../a", "/a", "a\\\\b"] {
        let text = format!(r#"{{"v":1,"files":[{{"path":"{hostile}","text":""}}]}}"#);
        assert!(matches!(load(&text), LoadError::Path(_)), "{text}");
    }
    for (first, second) in [("a", "a"), ("a", "a/b"), ("a/b", "a"), ("a", "")] {
        let file = |path| format!(r#"{{"path":"{path}","text":""}}"#);
        let text = format!(r#"{{"v":1,"files":[{},{}]}}"#, file(first), file(second));
        assert!(matches!(load(&text), LoadError::Taken { .. }), "{text}");
    }
    let below = r#"{"v":1,"files":[{"path":"a","text":""}],"empty_directories":["a/b"]}"#;
    assert!(matches!(load(below), LoadError::Taken { .. }));
    let nested = "[".repeat(1_000);
    assert!(matches!(load(&nested), LoadError::Limit(_)));

    let limits = FilesystemLimits { file_bytes: 2, ..FilesystemLimits::default() };
    let text = br#"{"v":1,"files":[{"path":"a","text":"abc"}]}"#;
    let result = MemoryFiles::from_json_within(text, JsonLimits::default(), limits);
    assert!(matches!(result, Err(LoadError::TooLarge { bytes: 3, limit: 2, .. })));
    let result = MemoryFiles::from_json_within(text, JsonLimits { bytes: 10, depth: 8 }, limits);
    assert!(matches!(result, Err(LoadError::Limit(_))));
}

#[test]
fn roots_that_memory_cannot_hold_are_refused_and_nothing_changes() {
    let objects: Arc<StoredObjects> = Arc::default();
    let present = Tree::from([("present".to_owned(), Leaf::file("x"))]);
    let filesystem = Arc::new(filled(&present).with_total_bytes(1_000));
    let workspace = MemoryWorkspace::new(filesystem.clone(), objects.clone());
    let blob = Object::blob(*b"target");
    let large = Object::blob(vec![0; 2_000]);
    let entry =
        |name: &[u8], mode, object: &Object| TreeEntry { name: name.to_vec(), mode, object: object.id() };
    let empty_tree = tree_object(&[]).unwrap();
    let manifest = |text: &str| Object::blob(text.as_bytes().to_vec());
    let plain = Manifest::default().to_object();
    objects.insert([blob.clone(), large.clone(), empty_tree.clone(), plain.clone()]);
    let file = || vec![entry(b"a", TreeMode::File, &blob)];
    type Refused = fn(&WorkspaceError) -> bool;
    let blocked: Refused = |error| matches!(error, WorkspaceError::Blocked { .. });
    let damaged: Refused = |error| matches!(error, WorkspaceError::DamagedObject { .. });
    let limit: Refused = |error| matches!(error, WorkspaceError::Limit { .. });
    let cases = [
        (vec![entry(b"link", TreeMode::Link, &blob)], plain.clone(), blocked),
        (vec![entry(b"\xff", TreeMode::File, &blob)], plain.clone(), blocked),
        (vec![entry(b"a\\b", TreeMode::File, &blob)], plain.clone(), blocked),
        (vec![entry(b"a\nb", TreeMode::File, &blob)], plain.clone(), blocked),
        (vec![entry(b"large", TreeMode::File, &large)], plain.clone(), limit),
        (vec![entry(b"not a tree", TreeMode::Directory, &blob)], plain.clone(), damaged),
        (vec![entry(b"not a blob", TreeMode::File, &empty_tree)], plain.clone(), damaged),
        (vec![entry(b"empty", TreeMode::Directory, &empty_tree)], plain.clone(), damaged),
        (vec![entry(b".git", TreeMode::File, &blob)], plain, damaged),
        (file(), manifest(r#"{"v":1,"empty_directories":["a"]}"#), damaged),
        (file(), manifest(r#"{"v":1,"empty_directories":["a/b"]}"#), damaged),
        // Both are well-formed, but memory has neither exact modes nor names that are not UTF-8.
        (file(), manifest(r#"{"v":1,"modes":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}"#), blocked),
        (file(), manifest(r#"{"v":1,"empty_directories_encoded":["b/%ff"]}"#), blocked),
        (file(), manifest(r#"{"v":2}"#), damaged),
        (
            file(),
            manifest(
                r#"{"v":1,"refused":[{"path":"b","mode":"100644","object":"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}]}"#,
            ),
            |error| matches!(error, WorkspaceError::MissingObject { .. }),
        ),
    ];
    for (index, (entries, manifest, is_wanted)) in cases.into_iter().enumerate() {
        let tree = tree_object(&entries).unwrap();
        let root = WorkspaceRoot { tree: tree.id(), manifest: manifest.id() };
        objects.insert([tree, manifest]);
        let error = workspace.restore(root).unwrap_err();
        assert!(is_wanted(&error), "case {index}: {error:?}");
        assert_eq!(tree_of(&*filesystem), present, "case {index}");
    }
}

#[test]
fn a_small_tree_that_stands_for_too_much_is_refused() {
    let objects: Arc<StoredObjects> = Arc::default();
    let blob = Object::blob(*b"");
    let mut tree =
        tree_object(&[TreeEntry { name: b"x".to_vec(), mode: TreeMode::File, object: blob.id() }]).unwrap();
    objects.insert([blob, Manifest::default().to_object()]);
    for _ in 0..4 {
        let name = |number: usize| format!("{number}").into_bytes();
        let entry = |number| TreeEntry { name: name(number), mode: TreeMode::Directory, object: tree.id() };
        let next = tree_object(&(0..1_000).map(entry).collect::<Vec<_>>()).unwrap();
        objects.insert([std::mem::replace(&mut tree, next)]);
    }
    let root = WorkspaceRoot { tree: tree.id(), manifest: Manifest::default().to_object().id() };
    objects.insert([tree]);
    let workspace = MemoryWorkspace::new(Arc::default(), objects.clone());
    let nothing = workspace.capture().unwrap();
    objects.store(&nothing);
    for result in [workspace.restore(root).map(drop), workspace.diff(nothing.root, root).map(drop)] {
        assert!(matches!(result, Err(WorkspaceError::Limit { .. })), "{result:?}");
    }
}

#[test]
fn what_was_given_and_never_stored_is_given_again() {
    let objects: Arc<StoredObjects> = Arc::default();
    let filesystem = Arc::new(filled(&[("a/b".to_owned(), Leaf::file("x"))].into()));
    let workspace = MemoryWorkspace::new(filesystem, objects.clone());
    let first = workspace.capture().unwrap();
    assert_eq!(workspace.capture().unwrap(), first);
    objects.store(&first);
    assert_eq!(workspace.capture().unwrap().objects, []);
    first.objects.iter().for_each(|object| objects.remove(object.id()));
    workspace.forget_stored();
    assert_eq!(workspace.capture().unwrap(), first);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_survive_their_json(tree in tree()) {
        let files = filled(&tree).snapshot();
        let text = files.to_json();
        let again = MemoryFiles::from_json(text.as_bytes()).unwrap();
        prop_assert_eq!(again.to_json(), text);
        prop_assert_eq!(tree_of(&MemoryFilesystem::from_files(again.clone())), tree);
        prop_assert_eq!((again.len(), again.bytes()), (files.len(), files.bytes()));
        prop_assert_eq!(again, files);
    }

    #[test]
    fn counts_and_snapshots_stay_right(operations in operations()) {
        let filesystem = MemoryFilesystem::new();
        let mut kept = Vec::new();
        for operation in &operations {
            let before = filesystem.snapshot();
            if operation.apply(&filesystem).is_err() {
                prop_assert_eq!(&filesystem.snapshot(), &before);
            }
            let tree = tree_of(&filesystem);
            let sizes = tree.values().filter_map(|leaf| match leaf {
                Leaf::File { bytes, .. } => Some(bytes.len() as u64),
                Leaf::EmptyDirectory => None,
            });
            let snapshot = filesystem.snapshot();
            prop_assert_eq!((snapshot.len(), snapshot.bytes()), (sizes.clone().count(), sizes.sum::<u64>()));
            kept.push((snapshot, tree));
        }
        for (snapshot, tree) in kept {
            prop_assert_eq!(tree_of(&MemoryFilesystem::from_files(snapshot)), tree);
        }
    }

    #[test]
    fn loading_never_panics(text in ".{0,200}", at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let _ = MemoryFiles::from_json(text.as_bytes());
        let mut real = br#"{"v":1,"files":[{"path":"a/b","base64":"/wA=","executable":true}],"empty_directories":["e"]}"#.to_vec();
        let at = at.index(real.len());
        real[at] = byte;
        let _ = MemoryFiles::from_json(&real);
        let _ = Manifest::from_bytes(&real);
    }
}
