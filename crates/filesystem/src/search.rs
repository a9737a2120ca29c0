//! Walks directories and matches globs.
//!
//! A walk visits everything below a directory in a fixed order: names sorted within each directory, a
//! directory before its entries. It does not follow links. It skips special files, and names that a path
//! cannot contain. It stops at its limits and reports that; directories that cannot be listed are counted and
//! skipped.

use backstitch_core::ports::{DirectoryEntry, FileKind, Filesystem, FilesystemError};
use serde::{Deserialize, Serialize};

use super::FilePath;
use super::pattern::PathPattern;

/// Limits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchLimits {
    /// Maximum number of visited names.
    pub entries: usize,
    /// Maximum number of bytes read.
    pub bytes: u64,
    /// Maximum number of returned matches.
    pub matches: usize,
}

impl Default for SearchLimits {
    /// 100,000 names, 256 MiB and 1,000 matches.
    fn default() -> Self {
        Self { entries: 100_000, bytes: 256 * 1024 * 1024, matches: 1_000 }
    }
}

/// Result of a glob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glob {
    /// Matches in the order of the walk.
    pub matches: Vec<GlobMatch>,
    /// Number of directories that could not be listed.
    pub skipped: usize,
    /// True if a limit ended the search.
    pub truncated: bool,
}

/// An entry whose path matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobMatch {
    /// Path from the root.
    pub path: FilePath,
    /// Type of the entry.
    pub kind: FileKind,
    /// Size of a file in bytes.
    pub bytes: u64,
}

/// A walk below a directory.
pub(super) struct Walk<'a, F: ?Sized> {
    filesystem: &'a F,
    open: Vec<std::vec::IntoIter<(FilePath, DirectoryEntry)>>,
    entries_left: usize,
    pub(super) skipped: usize,
    pub(super) truncated: bool,
}

impl<'a, F: Filesystem + ?Sized> Walk<'a, F> {
    pub(super) fn new(
        filesystem: &'a F,
        below: &FilePath,
        limits: SearchLimits,
    ) -> Result<Self, FilesystemError> {
        let first = children(below, filesystem.list(below)?);
        let entries_left = limits.entries;
        Ok(Self { filesystem, open: vec![first], entries_left, skipped: 0, truncated: false })
    }
}

impl<F: Filesystem + ?Sized> Iterator for Walk<'_, F> {
    type Item = (FilePath, DirectoryEntry);

    fn next(&mut self) -> Option<Self::Item> {
        let (path, entry) = loop {
            match self.open.last_mut()?.next() {
                Some((_, entry)) if entry.kind == FileKind::Other => {}
                Some(found) => break found,
                None => drop(self.open.pop()),
            }
        };
        if self.entries_left == 0 {
            self.truncated = true;
            self.open.clear();
            return None;
        }
        self.entries_left -= 1;
        if entry.kind == FileKind::Directory {
            match self.filesystem.list(&path) {
                Ok(entries) => self.open.push(children(&path, entries)),
                Err(_) => self.skipped += 1,
            }
        }
        Some((path, entry))
    }
}

fn children(
    directory: &FilePath,
    entries: Vec<DirectoryEntry>,
) -> std::vec::IntoIter<(FilePath, DirectoryEntry)> {
    let mut children: Vec<_> = entries
        .into_iter()
        // A name with a slash, a replaced byte or a dot would be a different path than the listed one.
        .filter_map(|entry| {
            let path = directory.join(&entry.name).ok()?;
            (path.name() == Some(&entry.name)).then_some((path, entry))
        })
        .collect();
    children.sort_by(|(_, left), (_, right)| left.name.cmp(&right.name));
    children.into_iter()
}

/// Path relative to a directory above it.
pub(super) fn seen_from<'a>(path: &'a FilePath, below: &FilePath) -> &'a str {
    path.as_str().strip_prefix(below.as_str()).unwrap_or(path.as_str()).trim_start_matches('/')
}

pub(super) fn glob<F: Filesystem + ?Sized>(
    filesystem: &F,
    pattern: &str,
    below: &FilePath,
    limits: SearchLimits,
) -> Result<Glob, FilesystemError> {
    let pattern = PathPattern::new(pattern)?;
    if filesystem.stat(below)?.kind != FileKind::Directory {
        return Err(FilesystemError::NotDirectory { path: below.to_string() });
    }
    let Some(start) = literal_start(filesystem, below, pattern.literal()) else { return Ok(Glob::default()) };
    let mut walk = Walk::new(filesystem, &start, limits)?;
    let mut found = Glob::default();
    for (path, entry) in walk.by_ref() {
        if !pattern.matches(seen_from(&path, below)) {
            continue;
        }
        if found.matches.len() == limits.matches {
            found.truncated = true;
            break;
        }
        found.matches.push(GlobMatch { path, kind: entry.kind, bytes: entry.bytes });
    }
    found.skipped = walk.skipped;
    found.truncated |= walk.truncated;
    Ok(found)
}

/// Directory at a pattern's literal prefix, or `None` if it does not exist, so that nothing can match.
fn literal_start<F: Filesystem + ?Sized>(
    filesystem: &F,
    below: &FilePath,
    literal: &[String],
) -> Option<FilePath> {
    let mut start = below.clone();
    for name in literal {
        start = start.join(name).ok()?;
        // A link in the prefix is not followed either.
        if filesystem.stat(&start).ok()?.kind != FileKind::Directory {
            return None;
        }
    }
    Some(start)
}
