//! Walking and globbing.
//!
//! A walk visits what is below a directory in one order, each directory's names sorted, a directory before what it holds. It
//! does not follow links, passes over what is neither a file, a link nor a directory, and over names that a path cannot have.
//! It ends at its limits and says so; what cannot be listed is counted and passed over.

use backstitch_core::ports::{Entry, FileKind, Filesystem, FilesystemError};
use serde::{Deserialize, Serialize};

use super::FilePath;
use super::pattern::PathPattern;

/// How much a search may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchLimits {
    /// The most names that are visited.
    pub entries: usize,
    /// The most bytes that are read.
    pub bytes: u64,
    /// The most matches that are given.
    pub matches: usize,
}

impl Default for SearchLimits {
    /// 100,000 names, 256 MiB and 1,000 matches.
    fn default() -> Self {
        Self { entries: 100_000, bytes: 256 * 1024 * 1024, matches: 1_000 }
    }
}

/// What a glob found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glob {
    /// What matches, in the order of the walk.
    pub matches: Vec<GlobMatch>,
    /// How many directories could not be listed.
    pub skipped: usize,
    /// Whether a limit ended the search.
    pub truncated: bool,
}

/// Something whose path matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobMatch {
    /// Its path, from the root.
    pub path: FilePath,
    /// What it is.
    pub kind: FileKind,
    /// How many bytes a file has.
    pub bytes: u64,
}

/// A walk below a directory.
pub(super) struct Walk<'a, F: ?Sized> {
    filesystem: &'a F,
    open: Vec<std::vec::IntoIter<(FilePath, Entry)>>,
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
    type Item = (FilePath, Entry);

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

fn children(directory: &FilePath, entries: Vec<Entry>) -> std::vec::IntoIter<(FilePath, Entry)> {
    let mut children: Vec<_> = entries
        .into_iter()
        // A name with a slash, a replaced byte or a dot would be another path than the one that was listed.
        .filter_map(|entry| {
            let path = directory.join(&entry.name).ok()?;
            (path.name() == Some(&entry.name)).then_some((path, entry))
        })
        .collect();
    children.sort_by(|(_, left), (_, right)| left.name.cmp(&right.name));
    children.into_iter()
}

/// A path as it is seen from a directory above it.
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

/// The directory at which a pattern's literal start leads; none if there is no such directory, and so nothing to be found.
fn literal_start<F: Filesystem + ?Sized>(
    filesystem: &F,
    below: &FilePath,
    literal: &[String],
) -> Option<FilePath> {
    let mut start = below.clone();
    for name in literal {
        start = start.join(name).ok()?;
        // A link on the way is not followed here either.
        if filesystem.stat(&start).ok()?.kind != FileKind::Directory {
            return None;
        }
    }
    Some(start)
}
