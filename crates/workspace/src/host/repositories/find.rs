//! Finds the repositories of a workspace.
//!
//! A directory is a repository if git would accept it as one, whatever its name is: `.git`, the repository of
//! a submodule or of a worktree, or a bare repository. A `.git` that is a file or a link points to one. The
//! covered directories are known from the last scan. The workspace's own `.git` is not covered, so it is
//! walked here, without the directories that hold objects.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use backstitch_filesystem::format::names::{is_path, join, push};

use super::super::index::{DirIndex, Entry};
use super::super::sys::{self, Kind, Names};

/// Maximum depth of directories in the workspace's own repository.
const MOST_DEPTH: usize = 12;

/// Maximum length of the text of a `.git` file.
const MOST_POINTER: u64 = 8 * 1024;

/// The repositories of a workspace.
#[derive(Debug, Default)]
pub(super) struct Repositories {
    /// Paths of the directories.
    pub(super) directories: BTreeSet<Vec<u8>>,
    /// Paths of the files and links named `.git`, with what they point to, if that exists.
    pub(super) pointers: BTreeMap<Vec<u8>, Option<PathBuf>>,
}

impl Repositories {
    /// Finds the repositories below an open directory with this path.
    pub(super) fn find(root: BorrowedFd<'_>, path: &Path, index: Option<&DirIndex>) -> Self {
        let mut found = Self::default();
        match sys::entry_stat(root, ".git").ok().flatten().map(|entry| entry.kind) {
            Some(Kind::Directory) => {
                found.directories.insert(b".git".to_vec());
                if let Ok(own) = sys::open_directory(root, ".git") {
                    found.walk(&own, b".git", 0);
                }
            }
            Some(Kind::File | Kind::Link) => {
                found.pointers.insert(b".git".to_vec(), None);
            }
            Some(Kind::Special) | None => {}
        }
        if let Some(index) = index {
            found.visit(index, &mut Vec::new());
        }
        for (pointer, target) in &mut found.pointers {
            *target = resolve(path, pointer);
            let inside = target.as_ref().and_then(|target| target.strip_prefix(path).ok());
            if let Some(inside) = inside.filter(|inside| is_path(inside.as_os_str().as_bytes())) {
                found.directories.insert(inside.as_os_str().as_bytes().to_vec());
            }
        }
        found
    }

    fn walk(&mut self, directory: &OwnedFd, path: &[u8], depth: usize) {
        let Ok(names) = Names::read(directory.as_fd()) else { return };
        if is_repository(names.iter().map(|name| name.to_bytes())) {
            self.directories.insert(path.to_vec());
        }
        if depth == MOST_DEPTH {
            return;
        }
        for (name, may_be_directory) in names.hinted() {
            if may_be_directory
                && !holds_objects(name.to_bytes())
                && let Ok(below) = sys::open_directory(directory.as_fd(), name)
            {
                self.walk(&below, &join(path, name.to_bytes()), depth + 1);
            }
        }
    }

    fn visit(&mut self, node: &DirIndex, path: &mut Vec<u8>) {
        if is_repository(node.entries.iter().map(|(name, _)| &**name)) {
            self.directories.insert(path.clone());
        }
        for (name, entry) in &node.entries {
            match entry {
                Entry::Directory(below) => {
                    let length = path.len();
                    push(path, name);
                    self.visit(below, path);
                    path.truncate(length);
                }
                Entry::File(_) | Entry::Link(_) if name.eq_ignore_ascii_case(b".git") => {
                    self.pointers.insert(join(path, name), None);
                }
                Entry::File(_) | Entry::Link(_) | Entry::Uncovered(_) => {}
            }
        }
    }
}

/// Returns whether git would accept a directory with these names as a repository.
pub(in crate::host) fn is_repository<'a>(names: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut head, mut content) = (false, false);
    for name in names {
        // Some file systems do not distinguish cases.
        head |= name.eq_ignore_ascii_case(b"HEAD");
        content |= name.eq_ignore_ascii_case(b"objects") || name.eq_ignore_ascii_case(b"commondir");
    }
    head && content
}

fn holds_objects(name: &[u8]) -> bool {
    name == b"pack" || name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}

/// Returns what a file or link named `.git` points to.
fn resolve(root: &Path, pointer: &[u8]) -> Option<PathBuf> {
    let path = root.join(OsStr::from_bytes(pointer));
    if path.symlink_metadata().ok()?.is_symlink() {
        return fs::canonicalize(path).ok();
    }
    let text = sys::read_at_most(rustix::fs::CWD, &path, MOST_POINTER).ok()?;
    let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
    fs::canonicalize(path.parent()?.join(OsStr::from_bytes(target))).ok()
}
