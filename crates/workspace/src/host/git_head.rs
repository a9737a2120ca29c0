//! Reads the state of the workspace's own repository.
//!
//! Roots do not cover it and restores do not touch it. Its state is stored beside each root, so that a moved
//! head or branch can be reported before files are restored, and so that a call that moved it is not repeated.
//! Only a plain `.git` directory is read, and nothing that it points to.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use backstitch_filesystem::format::names::join;

use super::sys::{self, Kind, Names};
use crate::git_head::GitHead;

mod index;

const MOST_BYTES: u64 = 64 * 1024 * 1024;
const MOST_REFS: usize = 100_000;
const MOST_DEPTH: usize = 16;

impl GitHead {
    /// Reads the state of the repository in a directory. Unreadable parts are omitted.
    pub(crate) fn read(root: BorrowedFd<'_>) -> Self {
        let mut state = Self::default();
        let Ok(git) = sys::open_directory(root, ".git") else { return state };
        state.head = read_text(git.as_fd(), "HEAD").map(|text| text.trim().to_owned());
        for line in read_text(git.as_fd(), "packed-refs").unwrap_or_default().lines() {
            if let Some((commit, name)) = line.split_once(' ')
                && is_commit(commit)
                && state.references.len() < MOST_REFS
            {
                state.references.insert(name.to_owned(), commit.to_owned());
            }
        }
        // A loose reference is newer than a packed one.
        if let Ok(refs) = sys::open_directory(git.as_fd(), "refs") {
            state.loose(&refs, "refs", 0);
        }
        let mut digest = blake3::Hasher::new();
        rest(&mut digest, &git, &[], 0);
        state.rest = Some(digest.finalize().to_hex()[..32].to_owned());
        state
    }

    fn loose(&mut self, directory: &OwnedFd, path: &str, depth: usize) {
        let Ok(names) = Names::read(directory.as_fd()) else { return };
        for name in names.iter() {
            let Ok(text) = name.to_str() else { continue };
            let path = format!("{path}/{text}");
            match sys::entry_stat(directory.as_fd(), name) {
                Ok(Some(found)) if found.kind == Kind::Directory && depth < MOST_DEPTH => {
                    if let Ok(below) = sys::open_directory(directory.as_fd(), name) {
                        self.loose(&below, &path, depth + 1);
                    }
                }
                Ok(Some(found)) if found.kind == Kind::File && self.references.len() < MOST_REFS => {
                    let commit = read_text(directory.as_fd(), text).unwrap_or_default();
                    self.references.insert(path, commit.trim().to_owned());
                }
                _ => {}
            }
        }
    }
}

/// Adds the index of a repository, its unfinished operations, and the repositories in it.
fn rest(digest: &mut blake3::Hasher, git: &OwnedFd, path: &[u8], depth: usize) {
    let Ok(names) = Names::read(git.as_fd()) else { return };
    for (name, may_be_directory) in names.hinted() {
        let bytes = name.to_bytes();
        let path = join(path, bytes);
        let is_file = bytes == b"index" || bytes.ends_with(b"_HEAD") || bytes == b"tables.list";
        // A repository at the top of `.git` is read by `GitHead::read`.
        let is_head = depth > 0 && matches!(bytes, b"HEAD" | b"packed-refs");
        if is_file || is_head {
            if let Ok(content) = sys::read_at_most(git.as_fd(), name, MOST_BYTES) {
                digest.update(&path).update(&[0]);
                match bytes {
                    b"index" => index::update(digest, &content),
                    _ => drop(digest.update(&content)),
                }
            }
        } else if may_be_directory
            && depth < MOST_DEPTH
            && (depth > 0 && !is_fanout(bytes) || matches!(bytes, b"modules" | b"worktrees" | b"reftable"))
            && let Ok(below) = sys::open_directory(git.as_fd(), name)
        {
            match bytes {
                b"refs" => {
                    let mut loose = GitHead::default();
                    loose.loose(&below, "refs", 0);
                    for (name, commit) in loose.references {
                        digest.update(&path).update(name.as_bytes()).update(commit.as_bytes());
                    }
                }
                _ => rest(digest, &below, &path, depth + 1),
            }
        }
    }
}

/// True for directories of a submodule's repository that hold neither heads nor an index.
fn is_fanout(name: &[u8]) -> bool {
    matches!(name, b"objects" | b"logs" | b"hooks" | b"info" | b"lfs")
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn read_text(directory: BorrowedFd<'_>, name: &str) -> Option<String> {
    String::from_utf8(sys::read_at_most(directory, name, MOST_BYTES).ok()?).ok()
}
