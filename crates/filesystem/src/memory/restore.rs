//! Restores files in memory from a root and stored objects.
//!
//! Everything is read before anything is changed. Unchanged directories are shared with the present files,
//! and neither read nor written.

use std::sync::Arc;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::ObjectKind;
use backstitch_core::ports::{FilesystemLimits, Objects, UncoveredPath, UncoveredReason, WorkspaceError};
use backstitch_core::time::Timestamp;

use super::capture::{root_of, summary};
use super::node::{Directory, File, FileNode};
use super::{MemoryFiles, joined};
use crate::FilePath;
use crate::format::names::shown;
use crate::format::{DirectoryHandle, Root, StoredItem, TreeMode, damaged, fetch, git_refuses};

/// Maximum number of entries. A tree can name the same directory many times, so a small object can describe
/// more files than fit in memory.
const MOST_ENTRIES: usize = 256 * 1024;

/// Reads files from objects.
pub(super) struct Restore<'a> {
    pub(super) objects: &'a dyn Objects,
    pub(super) limits: FilesystemLimits,
    pub(super) total_bytes: u64,
    pub(super) modified: Option<Timestamp>,
    pub(super) entries: usize,
    pub(super) bytes: u64,
    /// Files whose content was redacted. They stay as they are.
    pub(super) kept: Vec<UncoveredPath>,
}

impl Restore<'_> {
    /// Loads the files of a root, sharing equal directories with the present files.
    pub(super) fn files(
        &mut self,
        root: WorkspaceRoot,
        present: &MemoryFiles,
    ) -> Result<MemoryFiles, WorkspaceError> {
        let wanted = Root::load(self.objects, root)?;
        if wanted.folder().modes.is_some() {
            let reason = "files in memory have no exact modes".to_owned();
            return Err(WorkspaceError::Blocked { path: shown(b""), reason });
        }
        let files = MemoryFiles::from_root(self.directory(wanted.folder(), "", Some(&present.root))?);
        // Shared directories were not counted before.
        self.check("all files", files.bytes(), self.total_bytes)?;
        // Content of a root that files in memory cannot represent changes the computed root.
        if !self.kept.is_empty() || root_of(&files) == root {
            return Ok(files);
        }
        Err(damaged(root.tree, "capturing the restored files gives a different root"))
    }

    fn directory(
        &mut self,
        wanted: DirectoryHandle<'_>,
        path: &str,
        present: Option<&Arc<Directory>>,
    ) -> Result<Arc<Directory>, WorkspaceError> {
        if let Some(present) = present.filter(|_| wanted.overlay.is_none()) {
            let summary = summary(present);
            if summary.tree == wanted.tree && !summary.exceptional {
                return Ok(present.clone());
            }
        }
        let mut nodes: Vec<(Arc<str>, FileNode)> = Vec::new();
        for (bytes, item) in wanted.load(self.objects)?.entries {
            let name = str::from_utf8(&bytes).map_err(|_| WorkspaceError::Blocked {
                path: joined(path, &String::from_utf8_lossy(&bytes)),
                reason: "names in memory must be UTF-8, and this one is not".to_owned(),
            })?;
            let path = joined(path, name);
            // The summary of the present tree does not include refused names, so equality cannot be detected
            // there.
            let present = present
                .filter(|_| !git_refuses(&bytes, item.tree_mode()))
                .and_then(|directory| directory.get(name));
            let node = self.node(item, &path, present)?;
            nodes.extend(node.map(|node| (name.into(), node)));
        }
        Ok(Arc::new(nodes.into_iter().collect()))
    }

    fn node(
        &mut self,
        item: StoredItem<'_>,
        path: &str,
        present: Option<&FileNode>,
    ) -> Result<Option<FileNode>, WorkspaceError> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            let reason = format!("there are more than {MOST_ENTRIES} files and directories");
            return Err(WorkspaceError::Limit { reason });
        }
        // Parsed anew each time: this also bounds the depth of the walk.
        FilePath::within(path, self.limits).map_err(|error| WorkspaceError::Blocked {
            path: path.chars().take(200).collect(),
            reason: error.reason.to_owned(),
        })?;
        let (object, executable) = match item {
            StoredItem::Directory(wanted) => {
                let present = match present {
                    Some(FileNode::Directory(directory)) => Some(directory),
                    Some(FileNode::File(_)) | None => None,
                };
                return Ok(Some(FileNode::Directory(self.directory(wanted, path, present)?)));
            }
            StoredItem::Link { .. } => {
                let reason = "files in memory cannot be links".to_owned();
                return Err(WorkspaceError::Blocked { path: path.to_owned(), reason });
            }
            StoredItem::File { id, .. } => (id, item.tree_mode() == TreeMode::Executable),
        };
        let same = match present {
            Some(FileNode::File(file)) if file.blob().id() == object => Some(file),
            Some(FileNode::File(_) | FileNode::Directory(_)) | None => None,
        };
        let file = match same {
            Some(file) if file.executable == executable => file.clone(),
            Some(file) => Arc::new(File::from_blob(file.blob().clone(), executable, self.modified)),
            None if self.objects.is_redacted(object).map_err(WorkspaceError::Objects)? => {
                let (path, reason) = (path.to_owned(), UncoveredReason::Redacted);
                self.kept.push(UncoveredPath { path, reason, bytes: None });
                return Ok(present.cloned());
            }
            None => {
                let blob = fetch(self.objects, object, ObjectKind::Blob)?;
                Arc::new(File::from_blob(blob, executable, self.modified))
            }
        };
        self.count(path, file.bytes.len() as u64)?;
        Ok(Some(FileNode::File(file)))
    }

    fn count(&mut self, path: &str, bytes: u64) -> Result<(), WorkspaceError> {
        self.bytes += bytes;
        self.check(path, bytes, self.limits.file_bytes)?;
        self.check("all files", self.bytes, self.total_bytes)
    }

    fn check(&self, what: &str, bytes: u64, limit: u64) -> Result<(), WorkspaceError> {
        if bytes <= limit {
            return Ok(());
        }
        Err(WorkspaceError::Limit { reason: format!("{what}: {bytes} bytes exceed the limit of {limit}") })
    }
}
