//! Reads the state of the workspace's own repository.
//!
//! Roots do not cover it and restores do not touch it. Its state is stored beside each root, so that a moved
//! head or branch can be reported before files are restored. Only a plain `.git` directory is read, and
//! nothing that it points to.

use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::sys::{self, Kind, Names};
use crate::git_head::GitHead;

const MOST_BYTES: u64 = 16 * 1024 * 1024;
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
        state
    }

    fn loose(&mut self, directory: &OwnedFd, path: &str, depth: usize) {
        let Ok(names) = Names::read(directory.as_fd()) else { return };
        for name in names.iter() {
            let Ok(text) = name.to_str() else { continue };
            let path = format!("{path}/{text}");
            match sys::look(directory.as_fd(), name) {
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

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn read_text(directory: BorrowedFd<'_>, name: &str) -> Option<String> {
    let (file, _) = sys::open_file(directory, name).ok()?;
    let mut text = String::new();
    std::fs::File::from(file).take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}
