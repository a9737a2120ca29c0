//! Plain trees of files, to generate, to read and to compare.

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{ChangeKind, FileKind, Filesystem, PathChange};
use backstitch_filesystem::FilePath;
use backstitch_filesystem::format::{Manifest, RefusedEntry, TreeEntry, TreeMode, git_refuses, tree_object};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Files and empty directories by path. Directories that hold something are implied.
pub type Tree = BTreeMap<String, Leaf>;

/// A file or an empty directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf {
    /// A file.
    File {
        /// Its content.
        bytes: Vec<u8>,
        /// Whether it may be executed.
        executable: bool,
    },
    /// A directory without entries.
    EmptyDirectory,
}

impl Leaf {
    /// A file that is not executable.
    pub fn file(bytes: impl Into<Vec<u8>>) -> Self {
        Self::File { bytes: bytes.into(), executable: false }
    }
}

/// Names whose order is easy to get wrong. There are few, so that paths collide.
const NAMES: [&str; 9] = ["a", "a.b", "a-b", "a0", "b", "B", "ä", " x", "~"];

/// A path of a few names.
pub fn path() -> impl Strategy<Value = String> {
    vec(select(NAMES.as_slice()), 1..4).prop_map(|names| names.join("/"))
}

/// Content that is sometimes not text, and sometimes equal to other content.
pub fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        select(vec!["", "one\n", "two\n"]).prop_map(|text| text.as_bytes().to_vec()),
        vec(any::<u8>(), 0..40),
    ]
}

/// A small tree.
pub fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        4 => (content(), any::<bool>()).prop_map(|(bytes, executable)| Leaf::File { bytes, executable }),
        1 => Just(Leaf::EmptyDirectory),
    ];
    vec((path(), leaf), 0..12).prop_map(|leaves| {
        let mut tree = Tree::new();
        for (path, leaf) in leaves {
            let meets = |other: &String| is_below(other, &path) || is_below(&path, other);
            if !tree.keys().any(meets) {
                tree.insert(path, leaf);
            }
        }
        tree
    })
}

/// Whether a path is another one, or below it.
pub(super) fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The tree that a filesystem holds, read through its port.
pub fn tree_of(filesystem: &dyn Filesystem) -> Tree {
    let mut tree = Tree::new();
    let mut open = vec![FilePath::root()];
    while let Some(directory) = open.pop() {
        let entries = filesystem.list(&directory).expect("a directory can be listed");
        if entries.is_empty() && !directory.is_root() {
            tree.insert(directory.as_str().to_owned(), Leaf::EmptyDirectory);
        }
        for entry in entries {
            let path = directory.join(&entry.name).expect("a name can be joined");
            match entry.kind {
                FileKind::Directory => open.push(path),
                FileKind::File => {
                    let bytes = filesystem.read_bytes(&path).expect("a file can be read");
                    let executable = filesystem.stat(&path).expect("a file has a stat").executable;
                    assert_eq!(entry.bytes, bytes.len() as u64, "{path}: the size in the list");
                    tree.insert(path.as_str().to_owned(), Leaf::File { bytes, executable });
                }
                FileKind::Link | FileKind::Other => panic!("{path}: unexpected {:?}", entry.kind),
            }
        }
    }
    tree
}

/// The root of a tree, computed by a simple reference implementation.
pub fn root_of(tree: &Tree) -> WorkspaceRoot {
    let mut manifest = Manifest::default();
    let empty = tree_object(&[]).expect("there is an empty tree").id();
    let directories = tree.iter().filter(|(_, leaf)| **leaf == Leaf::EmptyDirectory);
    manifest.empty_directories.extend(directories.map(|(path, _)| path.as_bytes().to_vec()));
    let id = directory(tree, "", Some(&mut manifest.refused));
    WorkspaceRoot { tree: id.unwrap_or(empty), manifest: manifest.to_object().id() }
}

/// Entries with names that git refuses, by path.
type Refused = BTreeMap<Vec<u8>, RefusedEntry>;

/// The id of the directory below a prefix, if it holds something. Without `refused`, it is part of a refused one.
fn directory(tree: &Tree, prefix: &str, mut refused: Option<&mut Refused>) -> Option<ObjectId> {
    let below = |path: &'_ String| path.strip_prefix(prefix).map(str::to_owned);
    let names: BTreeSet<String> =
        tree.keys().filter_map(below).filter_map(|path| path.split('/').next().map(str::to_owned)).collect();
    let mut entries = Vec::new();
    for name in names {
        let path = format!("{prefix}{name}");
        let is_refused = refused.is_some() && git_refuses(name.as_bytes(), TreeMode::Directory);
        let (mode, object) = match tree.get(&path) {
            Some(Leaf::EmptyDirectory) => continue,
            Some(Leaf::File { bytes, executable }) => {
                let mode = if *executable { TreeMode::Executable } else { TreeMode::File };
                (mode, Object::blob(bytes.clone()).id())
            }
            None => {
                let refused = refused.as_deref_mut().filter(|_| !is_refused);
                let Some(id) = directory(tree, &format!("{path}/"), refused) else { continue };
                (TreeMode::Directory, id)
            }
        };
        match &mut refused {
            Some(refused) if is_refused => {
                refused.insert(path.into_bytes(), RefusedEntry { mode, object });
            }
            _ => entries.push(TreeEntry { name: name.into_bytes(), mode, object }),
        }
    }
    (!entries.is_empty()).then(|| tree_object(&entries).expect("the names are names").id())
}

/// The changes between two trees, computed by a simple reference implementation.
pub fn difference(from: &Tree, to: &Tree) -> Vec<PathChange> {
    let paths: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let holds = |tree: &Tree, path: &str| tree.keys().any(|other| other != path && is_below(other, path));
    let mut changes = Vec::new();
    for path in paths {
        let change = match (from.get(path), to.get(path)) {
            (before, after) if before == after => continue,
            // The directory exists in both trees: the change is in its content.
            (Some(Leaf::EmptyDirectory), None) if holds(to, path) => continue,
            (None, Some(Leaf::EmptyDirectory)) if holds(from, path) => continue,
            (Some(_), None) => ChangeKind::Deleted,
            (None, _) => ChangeKind::Added,
            (Some(Leaf::File { bytes: before, .. }), Some(Leaf::File { bytes: after, .. }))
                if before == after =>
            {
                ChangeKind::Mode
            }
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        changes.push(PathChange { path: path.clone(), change });
    }
    changes
}

/// Changes in a normal form, sorted by path: a change of the kind may also be reported as a deletion and an
/// addition, and becomes one modification.
pub fn normal(changes: &[PathChange]) -> Vec<PathChange> {
    let mut normal: BTreeMap<&str, ChangeKind> = BTreeMap::new();
    for PathChange { path, change } in changes {
        normal.entry(path).and_modify(|before| *before = ChangeKind::Modified).or_insert(*change);
    }
    normal.into_iter().map(|(path, change)| PathChange { path: path.to_owned(), change }).collect()
}
