//! Walks directories.

use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd};

use backstitch_core::ports::UncoveredReason;
use backstitch_filesystem::format::names::push;
use backstitch_filesystem::format::{MAX_DEPTH, StoredItem, TreeMode, git_refuses};

use super::{Purpose, Scan, Stop, leaf};
use crate::host::index::{DirIndex, Entry, NodeFlags, OmittedPath};
use crate::host::rules::{MOST_IGNORE_BYTES, is_static};
use crate::host::sys::{self, EntryStat, Kind, Names, is_gone};
use crate::temporary::is_temporary;

impl Scan<'_> {
    pub(super) fn directory(
        &mut self,
        directory: BorrowedFd<'_>,
        found: EntryStat,
        previous: Option<DirIndex>,
        place: WalkContext,
    ) -> Result<DirIndex, Stop> {
        let names = match Names::read(directory) {
            Ok(names) => names,
            // It was removed after it was opened.
            Err(error) if is_gone(&error) => return Err(Stop::Gone),
            Err(error) => return Err(sys::io_error(&self.path, error).into()),
        };
        let previous = previous.unwrap_or_default();
        let mut node = DirIndex { stamp: found.stamp, mode: found.mode, ..DirIndex::default() };
        node.flags =
            NodeFlags { refused: place.refused, racy: self.started.is_racy(&found.stamp), ..node.flags };
        let looked_at = !previous.flags.racy && previous.stamp == found.stamp;
        node.flags.attributes =
            if looked_at { previous.flags.attributes } else { leaf::has_attributes(directory) };
        let mut same =
            previous.flags.sealed && previous.mode == found.mode && previous.flags.refused == place.refused;
        let (tree, modes, old) = (previous.tree, previous.modes, previous.flags);
        let mut before = previous.entries.into_iter().peekable();
        let mut below: Vec<(usize, EntryStat, Option<Box<DirIndex>>)> = Vec::new();
        node.entries.reserve(before.len());

        for name in names.iter() {
            let bytes = name.to_bytes();
            while before.next_if(|(other, _)| **other < *bytes).is_some() {
                same = false;
            }
            let (known, previous) = match before.next_if(|(other, _)| **other == *bytes) {
                Some((name, entry)) => (Some(name), Some(entry)),
                None => (None, None),
            };
            if is_temporary(bytes) {
                same &= previous.is_none();
                continue;
            }
            let above = self.path.len();
            push(&mut self.path, bytes);
            let was = previous.as_ref().map(summary_of);
            let entry = self.entry(directory, name, previous);
            self.path.truncate(above);
            let entry = match entry? {
                VisitOutcome::Nothing => {
                    same &= was.is_none();
                    continue;
                }
                VisitOutcome::Entry(entry) => {
                    same &= was == Some(summary_of(&entry));
                    entry
                }
                VisitOutcome::Directory(found, previous) => {
                    same &= previous.is_some();
                    below.push((node.entries.len(), found, previous));
                    Entry::Uncovered(OmittedPath { reason: None, bytes: None })
                }
            };
            node.entries.push((known.unwrap_or_else(|| bytes.into()), entry));
        }
        same &= before.next().is_none();

        let ignores = match node.get(b".gitignore") {
            Some(Entry::File(leaf)) => Some(leaf.id),
            _ => None,
        };
        if let Some(id) = ignores {
            // Unreadable patterns ignore nothing: that covers more, not less.
            let read = || sys::read_at_most(directory, ".gitignore", MOST_IGNORE_BYTES).unwrap_or_default();
            self.ignores.enter(&self.path, id, read);
        }
        let mut gone = Vec::new();
        for (at, found, previous) in below {
            let was = previous.as_deref().map(|node| (Some(node.as_item()), node.flags.exceptional));
            let name = node.entries[at].0.clone();
            let above = self.path.len();
            push(&mut self.path, &name);
            let refused = place.refused || git_refuses(&name, TreeMode::Directory);
            let walked = self.below(
                directory,
                &name,
                found,
                previous,
                WalkContext { refused, depth: place.depth + 1 },
            );
            self.path.truncate(above);
            match walked {
                Ok(Some(entry)) => {
                    same &= was == Some(summary_of(&entry));
                    node.entries[at].1 = entry;
                }
                Ok(None) => {
                    same = false;
                    gone.push(at);
                }
                Err(stop) => {
                    ignores.is_some().then(|| self.ignores.leave());
                    return Err(stop);
                }
            }
        }
        ignores.is_some().then(|| self.ignores.leave());
        for at in gone.into_iter().rev() {
            node.entries.remove(at);
        }
        if same {
            (node.tree, node.modes) = (tree, modes);
            (node.flags.sealed, node.flags.stored, node.flags.exceptional) =
                (true, old.stored, old.exceptional);
        }
        self.note_partial(&mut node);
        self.seal(&mut node)?;
        Ok(node)
    }

    /// Examines a name. A directory is only recognised here, and walked once all names are known.
    fn entry(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        previous: Option<Entry>,
    ) -> Result<VisitOutcome, Stop> {
        let found = match sys::entry_stat(directory, name) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(VisitOutcome::Nothing),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Ok(uncovered(UncoveredReason::Unreadable, None));
            }
            Err(error) => return Err(sys::io_error(&self.path, error).into()),
        };
        let is_directory = found.kind == Kind::Directory;
        let bytes = (found.kind == Kind::File).then_some(found.stamp.size);
        if let Some(reason) = self.rules.never(&self.path, is_directory, &found.stamp) {
            return Ok(uncovered(reason, bytes));
        }
        if let Some(reason) = self.fixed.reason(&self.path) {
            return Ok(uncovered(reason, bytes));
        }
        if let Some(budget) = &mut self.budget {
            let left = budget.entries.checked_sub(1).zip(budget.bytes.checked_sub(bytes.unwrap_or(0)));
            (budget.entries, budget.bytes) = left.ok_or(Stop::OverBudget)?;
        }
        match (found.kind, previous) {
            (Kind::Special, _) => Ok(uncovered(UncoveredReason::Special, None)),
            (Kind::Directory, Some(Entry::Directory(node))) => Ok(VisitOutcome::Directory(found, Some(node))),
            (Kind::Directory, _) => Ok(VisitOutcome::Directory(found, None)),
            (Kind::File, Some(Entry::File(leaf))) => self.file(directory, name, found, Some(leaf)),
            (Kind::File, _) => self.file(directory, name, found, None),
            (Kind::Link, Some(Entry::Link(leaf))) => self.link(directory, name, found, Some(leaf)),
            (Kind::Link, _) => self.link(directory, name, found, None),
        }
    }

    fn below(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        found: EntryStat,
        previous: Option<Box<DirIndex>>,
        place: WalkContext,
    ) -> Result<Option<Entry>, Stop> {
        let omitted = |reason| Ok(Some(Entry::Uncovered(OmittedPath { reason, bytes: None })));
        if self.purpose == Purpose::Restore && previous.is_none() {
            return omitted(None);
        }
        if place.depth > MAX_DEPTH {
            return omitted(Some(UncoveredReason::TooDeep));
        }
        let directory = match sys::open_directory(parent, name) {
            Ok(directory) => directory,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return omitted(Some(UncoveredReason::Unreadable));
            }
            Err(error) => return Err(sys::io_error(&self.path, error).into()),
        };
        let previous = previous.map(|node| *node);
        let begins_budget = self.budget.is_none() && self.ignores.is_ignored(&self.path, true);
        if begins_budget {
            // What is given from here on may be dropped again.
            self.ask()?;
            self.budget = Some(self.limits.ignored);
        }
        let (given, new_bytes) = (self.new.len(), self.new_bytes);
        let walked = self.directory(directory.as_fd(), found, previous, place);
        if begins_budget {
            self.budget = None;
        }
        match walked {
            Ok(node) => Ok(Some(Entry::Directory(Box::new(node)))),
            Err(Stop::Gone) => Ok(None),
            Err(Stop::OverBudget) if begins_budget => {
                for object in self.new.drain(given..).chain(self.waiting.drain(..)) {
                    self.given.remove(&object.id());
                }
                (self.new_bytes, self.waiting_bytes) = (new_bytes, 0);
                omitted(Some(UncoveredReason::IgnoredBudget))
            }
            Err(stop) => Err(stop),
        }
    }

    /// Marks a directory with entries that a restore must examine although the trees do not show them.
    fn note_partial(&mut self, node: &mut DirIndex) {
        let mut partial = false;
        let above = self.path.len();
        for (name, entry) in &node.entries {
            partial |= match entry {
                Entry::Directory(below) => below.flags.partial,
                Entry::Uncovered(OmittedPath { reason: None, .. }) => true,
                Entry::Uncovered(OmittedPath { reason: Some(reason), .. }) if is_static(*reason) => false,
                Entry::Uncovered(_) => {
                    push(&mut self.path, name);
                    let fixed = self.fixed.reason(&self.path).is_some();
                    self.path.truncate(above);
                    !fixed
                }
                Entry::File(_) | Entry::Link(_) => false,
            };
        }
        node.flags.partial = partial;
    }
}

/// Position of a directory in the walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkContext {
    /// True if it has a name that git refuses, or lies below one.
    pub(super) refused: bool,
    pub(super) depth: usize,
}

pub(super) enum VisitOutcome {
    /// The entry is gone.
    Nothing,
    Entry(Entry),
    Directory(EntryStat, Option<Box<DirIndex>>),
}

pub(super) fn uncovered(reason: UncoveredReason, bytes: Option<u64>) -> VisitOutcome {
    VisitOutcome::Entry(Entry::Uncovered(OmittedPath { reason: Some(reason), bytes }))
}

/// Properties of an entry that show in the trees of its directory, and whether the manifest has entries below it.
fn summary_of(entry: &Entry) -> (Option<StoredItem<'static>>, bool) {
    let is_exceptional = matches!(entry, Entry::Directory(node) if node.flags.exceptional);
    (entry.as_item(), is_exceptional)
}
