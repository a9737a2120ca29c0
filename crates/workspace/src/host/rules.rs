//! Rules for the paths that a workspace covers.
//!
//! Static rules do not change while a workspace is open: its own repository, the runtime's directory,
//! temporary names, and configured patterns in the syntax of `.gitignore`. `.gitignore` files are read during
//! the scan. They exclude nothing by themselves, but an ignored directory has a budget, and one that exceeds
//! it is omitted as a whole.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use backstitch_core::object::ObjectId;
use backstitch_core::ports::{UncoveredReason, WorkspaceError};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::sys::{Stamp, io_error};

/// Maximum size of a `.gitignore`. A larger file is not read, because it is not a list of patterns.
pub(crate) const MOST_IGNORE_BYTES: u64 = 1024 * 1024;

/// Static rules of an open workspace.
#[derive(Debug)]
pub(crate) struct Rules {
    excludes: Option<Gitignore>,
    /// Device and inode of the runtime's directory.
    store: Option<(u64, u64)>,
    /// Path of the runtime's directory, if it lies inside the workspace.
    store_path: Option<Vec<u8>>,
}

impl Rules {
    pub(crate) fn new(
        excludes: &[String],
        store: Option<(u64, u64)>,
        store_path: Option<Vec<u8>>,
    ) -> Result<Self, WorkspaceError> {
        let mut builder = GitignoreBuilder::new("");
        for pattern in excludes {
            builder.add_line(None, pattern).map_err(|error| invalid_pattern(pattern, error))?;
        }
        let built = builder.build().map_err(|error| invalid_pattern("the exclude patterns", error))?;
        Ok(Self { excludes: (!excludes.is_empty()).then_some(built), store, store_path })
    }

    /// Reason why a path is never covered, or `None` if it may be.
    pub(crate) fn never(&self, path: &[u8], is_directory: bool, stamp: &Stamp) -> Option<UncoveredReason> {
        if path == b".git" {
            return Some(UncoveredReason::OwnRepository);
        }
        let is_store = is_directory && self.store == Some((stamp.device, stamp.inode));
        if is_store || self.store_path.as_deref() == Some(path) {
            return Some(UncoveredReason::OwnFiles);
        }
        let excludes = self.excludes.as_ref()?;
        excludes.matched(to_path(path), is_directory).is_ignore().then_some(UncoveredReason::Excluded)
    }
}

/// Returns whether a reason comes from a static rule, independent of the decisions of a capture.
pub(crate) fn is_static(reason: UncoveredReason) -> bool {
    matches!(reason, UncoveredReason::OwnRepository | UncoveredReason::OwnFiles | UncoveredReason::Excluded)
}

/// The `.gitignore` files from the workspace down to a directory, with a cache of parsed ones.
#[derive(Debug, Default)]
pub(crate) struct Ignores {
    read: HashMap<ObjectId, Arc<Gitignore>>,
    stack: Vec<(usize, Arc<Gitignore>)>,
}

impl Ignores {
    /// Enters a directory with a `.gitignore`, whose content is read unless it is known. `path` is the path of the
    /// directory.
    pub(crate) fn enter(&mut self, path: &[u8], id: ObjectId, content: impl FnOnce() -> Vec<u8>) {
        let matcher = self.read.entry(id).or_insert_with(|| Arc::new(patterns_in(&content())));
        self.stack.push((path.len(), matcher.clone()));
    }

    pub(crate) fn leave(&mut self) {
        self.stack.pop();
    }

    /// Returns whether a path is ignored, not considering the directories above it: the innermost file with a matching
    /// pattern decides.
    pub(crate) fn is_ignored(&self, path: &[u8], is_directory: bool) -> bool {
        for (above, matcher) in self.stack.iter().rev() {
            let below = if *above == 0 { path } else { &path[above + 1..] };
            let matched = matcher.matched(to_path(below), is_directory);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        false
    }
}

fn patterns_in(bytes: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let bytes = &bytes[..bytes.len().min(MOST_IGNORE_BYTES as usize)];
    for line in String::from_utf8_lossy(bytes).lines() {
        // An invalid line is skipped, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn invalid_pattern(pattern: &str, error: ignore::Error) -> WorkspaceError {
    io_error(pattern.as_bytes(), io::Error::new(io::ErrorKind::InvalidInput, error))
}

fn to_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}
