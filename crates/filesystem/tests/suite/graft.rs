//! Roots in which single paths are those of another root.

use std::sync::Arc;

use backstitch_core::ports::{Filesystem as _, Workspace as _, WorkspaceError, WriteMode};
use backstitch_filesystem::format::graft;
use backstitch_filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_testkit::filesystem::StoredObjects;
use backstitch_testkit::filesystem::tree::{Leaf, Tree, path, root_of, tree, tree_of};
use proptest::prelude::*;

pub(super) fn filled(tree: &Tree) -> Arc<MemoryFilesystem> {
    let filesystem = MemoryFilesystem::new();
    for (at, leaf) in tree {
        let at = FilePath::new(at).unwrap();
        match leaf {
            Leaf::EmptyDirectory => filesystem.make_directory(&at).unwrap(),
            Leaf::File { bytes, executable } => {
                filesystem.write_bytes(&at, bytes, WriteMode::Create).unwrap();
                filesystem.set_executable(&at, *executable).unwrap();
            }
        }
    }
    Arc::new(filesystem)
}

fn is_at(other: &str, path: &str) -> bool {
    other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The result that is expected; `None` if neither tree holds the path, or a file is in its way.
fn expected(onto: &Tree, from: &Tree, path: &str) -> Option<Tree> {
    let holds = |tree: &Tree| tree.keys().any(|other| is_at(other, path));
    let (here, there) = (holds(onto), holds(from));
    let is_file_above = |(other, leaf): (&String, &Leaf)| {
        other != path && is_at(path, other) && *leaf != Leaf::EmptyDirectory
    };
    if !here && !there || there && onto.iter().any(is_file_above) {
        return None;
    }
    let mut result: Tree = onto
        .iter()
        .filter(|(other, _)| !is_at(other, path))
        .map(|(at, leaf)| (at.clone(), leaf.clone()))
        .collect();
    let brought = from.iter().filter(|(other, _)| is_at(other, path));
    result.extend(brought.map(|(at, leaf)| (at.clone(), leaf.clone())));
    if there {
        result.retain(|other, leaf| other == path || *leaf != Leaf::EmptyDirectory || !is_at(path, other));
    } else if let Some((parent, _)) = path.rsplit_once('/')
        && !result.keys().any(|other| is_at(other, parent))
    {
        result.insert(parent.to_owned(), Leaf::EmptyDirectory);
    }
    Some(result)
}

proptest! {
    #[test]
    fn one_path_changes_and_nothing_else(onto in tree(), from in tree(), any in path(), pick in any::<prop::sample::Index>()) {
        // A path of one of the trees, a directory of it, or any other.
        let mut paths: Vec<String> = onto.keys().chain(from.keys()).cloned().collect();
        paths.extend(paths.clone().iter().filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned())));
        paths.push(any);
        let path = &paths[pick.index(paths.len())];
        let objects = Arc::new(StoredObjects::default());
        let workspaces = [&onto, &from].map(|tree| MemoryWorkspace::new(filled(tree), objects.clone()));
        let roots = workspaces.each_ref().map(|workspace| {
            let captured = workspace.capture().unwrap();
            objects.store(&captured);
            captured.root
        });
        let grafted = graft(&*objects, roots[0], roots[1], &[path.as_bytes()]);
        match (expected(&onto, &from, path), grafted) {
            (Some(expected), Ok(grafted)) => {
                prop_assert!(grafted.missing.is_empty());
                prop_assert_eq!(grafted.root, root_of(&expected));
                objects.insert(grafted.objects);
                workspaces[0].restore(grafted.root).unwrap();
                prop_assert_eq!(tree_of(&**workspaces[0].memory()), expected);
            }
            (None, Ok(grafted)) => {
                prop_assert_eq!(grafted.missing, vec![path.as_bytes().to_vec()]);
                prop_assert_eq!(grafted.root, roots[0]);
            }
            (None, Err(WorkspaceError::Blocked { .. })) => {}
            (_, Err(error)) => prop_assert!(false, "{path}: {error}"),
        }
    }
}

#[test]
fn several_paths_are_combined_and_missing_ones_are_listed() {
    let tree = |leaves: &[(&str, &str)]| -> Tree {
        leaves.iter().map(|(path, text)| ((*path).to_owned(), Leaf::file(*text))).collect()
    };
    let objects = Arc::new(StoredObjects::default());
    let capture = |files: &Tree| {
        let captured = MemoryWorkspace::new(filled(files), objects.clone()).capture().unwrap();
        objects.store(&captured);
        captured.root
    };
    let onto = capture(&tree(&[("a", "new"), ("b/c", "new"), ("d", "stays")]));
    let from = capture(&tree(&[("a", "old"), ("b/c", "old"), ("d", "old"), ("e/f", "old")]));
    let grafted = graft(&*objects, onto, from, &[b"a", b"b", b"e/f", b"nothing"]).unwrap();
    let expected = tree(&[("a", "old"), ("b/c", "old"), ("d", "stays"), ("e/f", "old")]);
    assert_eq!(grafted.root, root_of(&expected));
    assert_eq!(grafted.missing, [b"nothing".to_vec()]);
}
