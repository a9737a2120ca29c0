//! First phase of a restore: the plan.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::{ChangeKind, PathChange, UncoveredReason, WorkspaceError};
use backstitch_filesystem::format::names::{Name, join, shown};
use backstitch_filesystem::format::{DirectoryHandle, MAX_DEPTH, Overlay, StoredItem, fetch};

use super::Restore;
use crate::host::index::{DirIndex, Entry, NodeFlags, OmittedPath};
use crate::host::scan::{has_content, hash_link};
use crate::host::sys::{self, Kind, Names, is_gone};
use crate::temporary::is_temporary;

/// Steps in a directory.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Mode to set, if it differs.
    pub(super) mode: Option<u32>,
    pub(super) steps: Vec<(Name, Step)>,
}

/// Step for a name.
#[derive(Debug)]
pub(super) enum Step {
    Remove,
    File { id: ObjectId, mode: u32 },
    Link { id: ObjectId },
    Mode { mode: u32, id: ObjectId },
    Make(Plan),
    Enter(Plan),
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.mode.is_none() && self.steps.is_empty()
    }
}

impl Restore<'_> {
    /// Plans the whole workspace.
    pub(super) fn plan(
        &mut self,
        root: BorrowedFd<'_>,
        found: &DirIndex,
        overlay: &Overlay,
        wanted: DirectoryHandle<'_>,
    ) -> Result<Plan, WorkspaceError> {
        let overlay = Some(overlay).filter(|overlay| !overlay.is_empty());
        self.directory(root, &[], found, overlay, wanted, 0)
    }

    fn directory(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &[u8],
        node: &DirIndex,
        overlay: Option<&Overlay>,
        wanted: DirectoryHandle<'_>,
        depth: usize,
    ) -> Result<Plan, WorkspaceError> {
        if is_same(node, overlay, wanted) {
            return Ok(Plan::default());
        }
        check_depth(path, depth)?;
        let contents = wanted.load(self.objects)?;
        let mut plan = Plan::default();
        if contents.mode != node.mode {
            plan.mode = Some(contents.mode);
            self.changes(path, ChangeKind::Mode);
        }
        let names: BTreeSet<&Name> =
            node.entries.iter().map(|(name, _)| name).chain(contents.entries.keys()).collect();
        for name in names {
            let path = join(path, name);
            let below = overlay.and_then(|overlay| overlay.child(name)).filter(|below| !below.is_empty());
            let item = contents.entries.get(name);
            let step = match node.get(name) {
                None => item.map(|item| self.create(&path, item, depth)).transpose()?.flatten(),
                Some(entry) => self.compare(directory, &path, (name, entry, below), item, depth)?,
            };
            plan.steps.extend(step.map(|step| (name.clone(), step)));
        }
        Ok(plan)
    }

    /// Compares the present entry of a name with the wanted one.
    fn compare(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &[u8],
        (name, entry, overlay): (&[u8], &Entry, Option<&Overlay>),
        wanted: Option<&StoredItem<'_>>,
        depth: usize,
    ) -> Result<Option<Step>, WorkspaceError> {
        let failed = |error| sys::io_error(path, error);
        match (entry, wanted) {
            (Entry::File(leaf), Some(StoredItem::File { id, mode })) => {
                return self.file(path, (leaf.id, leaf.mode), (*id, *mode));
            }
            (Entry::Link(leaf), Some(StoredItem::Link { id })) if leaf.id == *id => return Ok(None),
            (Entry::Directory(node), Some(StoredItem::Directory(folder)))
                if is_same(node, overlay, *folder) =>
            {
                return Ok(None);
            }
            (Entry::Directory(node), Some(item @ StoredItem::Directory(folder))) => {
                let Some(below) = open_below(directory, name).map_err(failed)? else {
                    return self.create(path, item, depth);
                };
                let plan = self.directory(below.as_fd(), path, node, overlay, *folder, depth + 1)?;
                return Ok((!plan.is_empty()).then_some(Step::Enter(plan)));
            }
            _ => {}
        }
        // An entry that was not captured may have changed, and so may one whose kind differs from the wanted
        // one.
        let Some(found) = sys::entry_stat(directory, name).map_err(failed)? else {
            return Ok(wanted.map(|item| self.create(path, item, depth)).transpose()?.flatten());
        };
        if let Some(reason) = self.protected(path, &found) {
            if wanted.is_some() {
                self.keep(path, reason, Some(&found));
            }
            return Ok(None);
        }
        // Deletions are reported when they are done, with their contents.
        let Some(wanted) = wanted else { return Ok(Some(Step::Remove)) };
        match (found.kind, wanted) {
            (Kind::File, StoredItem::File { id, mode }) => {
                if self.is_redacted(path, *id)? {
                    return Ok(None);
                }
                let content = fetch(self.objects, *id, ObjectKind::Blob)?;
                // A file that cannot be read now is rewritten.
                let same = found.stamp.size == content.bytes().len() as u64
                    && has_content(directory, name, content.bytes()).unwrap_or(false);
                if same {
                    self.file(path, (*id, found.mode), (*id, *mode))
                } else {
                    self.replace(path, wanted, depth)
                }
            }
            (Kind::Link, StoredItem::Link { id }) if hash_link(directory, name).ok() == Some(*id) => Ok(None),
            (Kind::Directory, StoredItem::Directory(folder)) => {
                let Some(below) = open_below(directory, name).map_err(failed)? else {
                    return self.create(path, wanted, depth);
                };
                let node = self.unread(below.as_fd(), path)?;
                let plan = self.directory(below.as_fd(), path, &node, None, *folder, depth + 1)?;
                Ok((!plan.is_empty()).then_some(Step::Enter(plan)))
            }
            (Kind::Directory, _) => {
                // It must be deleted completely, which is possible only if nothing in it must stay.
                if let Some(inside) = self.find_protected(directory, name, path, 0)? {
                    let reason = format!(
                        "{} is not covered, and lies in a directory that must be replaced",
                        shown(&inside)
                    );
                    return Err(WorkspaceError::Blocked { path: shown(path), reason });
                }
                self.create(path, wanted, depth)
            }
            (Kind::File | Kind::Link | Kind::Special, _) => self.replace(path, wanted, depth),
        }
    }

    fn file(
        &mut self,
        path: &[u8],
        (present, has): (ObjectId, u32),
        (id, mode): (ObjectId, u32),
    ) -> Result<Option<Step>, WorkspaceError> {
        if present != id {
            if self.is_redacted(path, id)? {
                return Ok(None);
            }
            self.check_stored(id)?;
            self.changes(path, ChangeKind::Modified);
            return Ok(Some(Step::File { id, mode }));
        }
        if has == mode {
            return Ok(None);
        }
        self.changes(path, ChangeKind::Mode);
        Ok(Some(Step::Mode { mode, id }))
    }

    /// Replaces an entry by one of another kind.
    fn replace(
        &mut self,
        path: &[u8],
        item: &StoredItem<'_>,
        depth: usize,
    ) -> Result<Option<Step>, WorkspaceError> {
        let at = self.changed.len();
        let step = self.create(path, item, depth)?;
        if let (Some(Step::File { .. } | Step::Link { .. }), Some(change)) = (&step, self.changed.get_mut(at))
        {
            change.change = ChangeKind::Modified;
        }
        Ok(step)
    }

    /// Creates a missing entry, unless its content was redacted.
    fn create(
        &mut self,
        path: &[u8],
        item: &StoredItem<'_>,
        depth: usize,
    ) -> Result<Option<Step>, WorkspaceError> {
        match item {
            StoredItem::File { id, .. } | StoredItem::Link { id } if self.is_redacted(path, *id)? => Ok(None),
            StoredItem::File { id, mode } => {
                self.check_stored(*id)?;
                self.changes(path, ChangeKind::Added);
                Ok(Some(Step::File { id: *id, mode: *mode }))
            }
            StoredItem::Link { id } => {
                self.check_stored(*id)?;
                self.changes(path, ChangeKind::Added);
                Ok(Some(Step::Link { id: *id }))
            }
            StoredItem::Directory(folder) => {
                check_depth(path, depth)?;
                let contents = folder.load(self.objects)?;
                if contents.entries.is_empty() {
                    self.changes(path, ChangeKind::Added);
                }
                let mut plan = Plan { mode: Some(contents.mode), steps: Vec::new() };
                for (name, item) in &contents.entries {
                    let step = self.create(&join(path, name), item, depth + 1)?;
                    plan.steps.extend(step.map(|step| (name.clone(), step)));
                }
                Ok(Some(Step::Make(plan)))
            }
        }
    }

    /// Index of a directory of which only the names are known.
    fn unread(&self, directory: BorrowedFd<'_>, path: &[u8]) -> Result<DirIndex, WorkspaceError> {
        let failed = |error| sys::io_error(path, error);
        let found = sys::file_stat(directory).map_err(failed)?;
        // Reading names needs a separate handle, since this one may have been read to its end.
        let names = sys::open_directory(directory, ".").and_then(|again| Names::read(again.as_fd()));
        let names = match names {
            // It was removed since then, with everything in it.
            Err(error) if is_gone(&error) => Names::default(),
            names => names.map_err(failed)?,
        };
        let unread = || Entry::Uncovered(OmittedPath { reason: None, bytes: None });
        let names = names.iter().map(|name| name.to_bytes()).filter(|name| !is_temporary(name));
        let entries = names.map(|name| (name.into(), unread())).collect();
        let flags = NodeFlags { partial: true, ..NodeFlags::default() };
        Ok(DirIndex { stamp: found.stamp, mode: found.mode, entries, flags, ..DirIndex::default() })
    }

    /// Finds the first entry in a directory that must not be touched.
    fn find_protected(
        &self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
        depth: usize,
    ) -> Result<Option<Vec<u8>>, WorkspaceError> {
        if depth > MAX_DEPTH {
            return Ok(None);
        }
        let failed = |error| sys::io_error(path, error);
        let Some(directory) = open_below(parent, name).map_err(failed)? else { return Ok(None) };
        let names = match Names::read(directory.as_fd()) {
            Err(error) if is_gone(&error) => return Ok(None),
            names => names.map_err(failed)?,
        };
        for name in names.iter() {
            let path = join(path, name.to_bytes());
            let Some(found) = sys::entry_stat(directory.as_fd(), name).map_err(failed)? else { continue };
            if self.protected(&path, &found).is_some() {
                return Ok(Some(path));
            }
            if found.kind == Kind::Directory
                && let Some(inside) =
                    self.find_protected(directory.as_fd(), name.to_bytes(), &path, depth + 1)?
            {
                return Ok(Some(inside));
            }
        }
        Ok(None)
    }

    /// Returns whether the content of a file or link was redacted. Such an entry is left as it is, and listed.
    fn is_redacted(&mut self, path: &[u8], id: ObjectId) -> Result<bool, WorkspaceError> {
        let is_redacted = self.objects.is_redacted(id).map_err(WorkspaceError::Objects)?;
        if is_redacted {
            self.keep(path, UncoveredReason::Redacted, None);
        }
        Ok(is_redacted)
    }

    fn check_stored(&self, id: ObjectId) -> Result<(), WorkspaceError> {
        if self.objects.contains(id).map_err(WorkspaceError::Objects)? {
            Ok(())
        } else {
            Err(WorkspaceError::MissingObject { object: id })
        }
    }

    pub(super) fn changes(&mut self, path: &[u8], change: ChangeKind) {
        self.changed.push(PathChange { path: shown(path), change });
    }
}

/// Opens a directory, or returns `None` if it no longer exists.
fn open_below(parent: BorrowedFd<'_>, name: &[u8]) -> std::io::Result<Option<OwnedFd>> {
    match sys::open_directory_anyway(parent, name) {
        Err(error) if is_gone(&error) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Returns whether a directory is known to equal the wanted one, without reading it.
fn is_same(node: &DirIndex, overlay: Option<&Overlay>, wanted: DirectoryHandle<'_>) -> bool {
    let present = DirectoryHandle { tree: node.tree, modes: node.modes, overlay };
    node.flags.sealed && !node.flags.partial && present == wanted
}

fn check_depth(path: &[u8], depth: usize) -> Result<(), WorkspaceError> {
    if depth <= MAX_DEPTH {
        return Ok(());
    }
    Err(WorkspaceError::Limit { reason: format!("{} nests deeper than {MAX_DEPTH}", shown(path)) })
}
