//! Random trees with random changes are restored exactly.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use proptest::prelude::*;

use crate::support::{Place, set_mode};

/// A change of a directory. There are few names, so that changes collide.
#[derive(Debug, Clone)]
enum Change {
    Write(Vec<u8>, u8, u16),
    Directory(Vec<u8>),
    Link(Vec<u8>, u8),
    Delete(Vec<u8>),
    Mode(Vec<u8>, u32),
    Rename(Vec<u8>, Vec<u8>),
    Fifo(Vec<u8>),
    Uncovered(Vec<u8>),
}

fn name() -> impl Strategy<Value = &'static [u8]> {
    prop::sample::select(vec![
        &b"a"[..],
        b"b",
        b"a.c",
        b"dir",
        b"dir0",
        b".git",
        b".GIT ",
        b".gitmodules",
        b"n\xffme",
        b"\xc3\xa9",
        b"-x",
        b"%41",
        b"= +",
    ])
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    (prop::sample::select(vec![&b"x"[..], b"y", b"z"]), prop::collection::vec(name(), 0..4)).prop_map(
        |(first, rest)| {
            // Not at the top: there, `.git` is the workspace's own.
            std::iter::once(first).chain(rest).collect::<Vec<_>>().join(&b'/')
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    let modes = prop::sample::select(vec![0o644, 0o755, 0o600, 0o444, 0o700, 0o777, 0o4755, 0o1777, 0o500]);
    prop_oneof![
        6 => (path(), any::<u8>(), 0..300_u16).prop_map(|(path, fill, size)| Change::Write(path, fill, size)),
        2 => path().prop_map(Change::Directory),
        2 => (path(), any::<u8>()).prop_map(|(path, target)| Change::Link(path, target)),
        3 => path().prop_map(Change::Delete),
        3 => (path(), modes).prop_map(|(path, mode)| Change::Mode(path, mode)),
        2 => (path(), path()).prop_map(|(from, to)| Change::Rename(from, to)),
        1 => path().prop_map(Change::Fifo),
        1 => path().prop_map(Change::Uncovered),
    ]
}

/// Makes a change as far as possible.
fn make(place: &Place, change: &Change) {
    let above = |path: &PathBuf| fs::create_dir_all(path.parent().unwrap());
    match change {
        Change::Write(path, fill, size) => {
            let path = place.path(path);
            let _ = above(&path);
            let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
            if is_file || fs::symlink_metadata(&path).is_err() {
                let _ = fs::write(&path, vec![*fill; usize::from(*size)]);
            }
        }
        Change::Directory(path) => {
            let _ = fs::create_dir_all(place.path(path));
        }
        Change::Link(path, target) => {
            let path = place.path(path);
            let _ = above(&path);
            let _ = symlink(["a", "../x", "/nowhere", "dir/b"][usize::from(*target) % 4], &path);
        }
        Change::Delete(path) => {
            let path = place.path(path);
            let _ = fs::remove_file(&path);
            let _ = fs::remove_dir_all(&path);
        }
        Change::Mode(path, mode) => {
            let path = place.path(path);
            if let Ok(found) = fs::symlink_metadata(&path)
                && !found.is_symlink()
            {
                // Without root permissions the test could not continue in a closed directory.
                set_mode(&path, if found.is_dir() { mode | 0o700 } else { *mode });
            }
        }
        Change::Rename(from, to) => {
            let to = place.path(to);
            let _ = above(&to);
            let _ = fs::rename(place.path(from), to);
        }
        Change::Fifo(path) => {
            let path = place.path(path);
            let _ = above(&path);
            let _ = rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU);
        }
        Change::Uncovered(path) => {
            let path = place.path([path, b".keep".as_slice()].concat());
            let _ = above(&path);
            let _ = fs::write(path, "mine");
        }
    }
}

/// Content that no restore may touch.
fn kept(place: &Place) -> Vec<(Vec<u8>, Vec<u8>)> {
    let picture = place.picture().into_iter();
    picture
        .filter(|(path, _)| path.ends_with(b".keep"))
        .map(|(path, (_, _, content))| (path, content))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_tree_comes_back_exactly(
        first in prop::collection::vec(change(), 0..25),
        second in prop::collection::vec(change(), 0..25),
        third in prop::collection::vec(change(), 0..8),
        fresh in any::<bool>(),
    ) {
        let place = Place::new();
        let open = || place.open_with(|options| {
            options.excludes = vec!["*.keep".to_owned()];
            options.file_bytes = 250;
        });
        first.iter().for_each(|change| make(&place, change));
        let mut workspace = open();
        let a = place.capture(&workspace);
        let covered_a = workspace.coverage();
        prop_assert_eq!(place.capture(&workspace), a);

        second.iter().for_each(|change| make(&place, change));
        // The coverage of A, since a rollback uses that.
        let during = workspace.capture_with(&covered_a).unwrap();
        let again = workspace.capture_with(&covered_a).unwrap();
        prop_assert_eq!(during.root, again.root);
        place.store(during);
        third.iter().for_each(|change| make(&place, change));
        if fresh {
            drop(workspace);
            workspace = open();
            prop_assert_eq!(workspace.coverage(), covered_a.clone());
        }
        let uncovered = kept(&place);
        match workspace.restore_with(a, &covered_a, None) {
            Ok(restored) => {
                let root = workspace.capture_with(&covered_a).unwrap().root;
                if restored.kept.is_empty() {
                    prop_assert_eq!(root, a, "{:?}", restored);
                }
                prop_assert_eq!(&workspace.restore_with(a, &covered_a, None).unwrap().changed, &[]);
            }
            // A directory with an uncovered entry would have to become a file.
            Err(error) => prop_assert!(
                matches!(error, backstitch_core::ports::WorkspaceError::Blocked { .. }), "{error:?}"
            ),
        }
        prop_assert_eq!(kept(&place), uncovered);
        drop(workspace);
        // The cache was right: a scan that reads all files gives the same root.
        let cached = open();
        let root = cached.capture_with(&covered_a).unwrap().root;
        drop(cached);
        let uncached = place.open_with(|options| {
            options.excludes = vec!["*.keep".to_owned()];
            options.file_bytes = 250;
            options.cache = Some(place.above.join("no cache"));
        });
        prop_assert_eq!(uncached.capture_with(&covered_a).unwrap().root, root);
    }
}
