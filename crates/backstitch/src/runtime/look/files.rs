//! Files at points of a session, and what differs between two points.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_runtime::{PointSpec, RuntimeError, SystemClock, locate};
use serde_json::Value;
use similar::TextDiff;

use super::view_at;
use crate::filesystem::format;
use crate::journal::{CallChanges, ChangedPath, FileContent, WorkspaceRevision, WorkspaceRoot};
use crate::object::Object;
use crate::ports::{FilePath, ObjectOverlay, Objects, PathChange, WorkspaceError};
use crate::report::{ChangedFile, DiffReport, FileDetail, FileReport, MessageCounts, Version};
use crate::runtime::Runtime;
use crate::session::{CaptureOptions, SlicePolicy};
use crate::view::JournalView;

/// Maximum size of a file that is compared line by line, in bytes.
const MOST_COMPARED: usize = 1024 * 1024;

impl Runtime {
    /// Compares files, state and conversation at two points of a session.
    pub async fn diff(
        &self,
        view: &JournalView,
        from: &PointSpec,
        to: &PointSpec,
        detail: FileDetail,
    ) -> Result<DiffReport, RuntimeError> {
        let (store, objects) = (&*self.store.store, &*self.store.objects);
        let (from, old) = view_at(store, view, from).await?;
        let (to, new) = view_at(store, view, to).await?;
        let [old, new] = [old, new].map(|files| files.map(|files| files.root));
        let mut files = changed_files(objects, old, new, detail)?;
        // Here a difference is never left out.
        files.iter_mut().for_each(|file| _ = file.diff.get_or_insert(None));
        Ok(DiffReport {
            v: Version,
            session: view.session_id(),
            files,
            state: compared_state(&from, &to)?,
            messages: MessageCounts { from: from.message_count(), to: to.message_count() },
        })
    }

    /// Compares the contents of the files that a call changed. A file whose contents are not stored, or not text, has no diff, and of
    /// changes that are only counted there are no files.
    pub fn changed_files(&self, changes: &CallChanges) -> Vec<ChangedFile> {
        // What cannot be read is not shown.
        let read = |content: &Option<FileContent>| match content {
            Some(content) => self.store.objects.get(content.object).ok().flatten().as_ref().and_then(text_of),
            None => Some(String::new()),
        };
        let one = |changed: &ChangedPath| {
            let texts = read(&changed.before).zip(read(&changed.after));
            let diff = texts.and_then(|(before, after)| unified_diff(&before, &after));
            ChangedFile { path: changed.path.clone(), change: changed.change, diff: Some(diff) }
        };
        changes.paths().unwrap_or_default().iter().map(one).collect()
    }

    /// Reads a file as it was at a point; `None` if there was none.
    pub async fn file(
        &self,
        view: &JournalView,
        point: &PointSpec,
        path: &FilePath,
    ) -> Result<Option<FileReport>, RuntimeError> {
        let Some(files) = locate(&*self.store.store, view, point).await?.files else { return Ok(None) };
        let object = format::read_at(&*self.store.objects, files.root, path.as_str().as_bytes())?;
        let (point, path) = (point.to_string(), path.as_str().to_owned());
        Ok(object.map(|object| FileReport::new(view.session_id(), point, path, object.bytes())))
    }
}

/// Lists the paths of recorded files.
pub(super) fn paths(
    objects: &dyn Objects,
    files: Option<WorkspaceRevision>,
) -> Result<Vec<String>, WorkspaceError> {
    let Some(files) = files else { return Ok(Vec::new()) };
    let (tree, manifest) = (format::empty_tree(), format::Manifest::default().to_object());
    let nothing = WorkspaceRoot { tree: tree.id(), manifest: manifest.id() };
    let known = ObjectOverlay::new([tree, manifest], objects);
    Ok(format::diff(&known, nothing, files.root)?.into_iter().map(|change| change.path).collect())
}

/// Describes files that differ between two roots; none, if one of them is not known.
pub(super) fn changed_files(
    objects: &dyn Objects,
    from: Option<WorkspaceRoot>,
    to: Option<WorkspaceRoot>,
    detail: FileDetail,
) -> Result<Vec<ChangedFile>, WorkspaceError> {
    let (Some(from), Some(to)) = (from, to) else { return Ok(Vec::new()) };
    let one = |change: PathChange| -> Result<ChangedFile, WorkspaceError> {
        let diff = match detail {
            FileDetail::Names => None,
            FileDetail::Diffs => Some(text_diff(objects, from, to, &change.path)?),
        };
        Ok(ChangedFile { path: change.path, change: change.change, diff })
    };
    format::diff(objects, from, to)?.into_iter().map(one).collect()
}

/// Adds the difference of a file's lines.
pub(super) fn line_diffs(
    objects: &dyn Objects,
    (from, to): (Option<WorkspaceRoot>, Option<WorkspaceRoot>),
    file: &mut ChangedFile,
) -> Result<(), WorkspaceError> {
    if let (Some(from), Some(to)) = (from, to) {
        file.diff = Some(text_diff(objects, from, to, &file.path)?);
    }
    Ok(())
}

/// Returns the unified diff of a file; `None` if it is not text, too large, or has the same content.
fn text_diff(
    objects: &dyn Objects,
    from: WorkspaceRoot,
    to: WorkspaceRoot,
    path: &str,
) -> Result<Option<String>, WorkspaceError> {
    let read = |root: WorkspaceRoot| -> Result<Option<String>, WorkspaceError> {
        let Some(object) = format::read_at(objects, root, path.as_bytes())? else {
            return Ok(Some(String::new()));
        };
        Ok(text_of(&object))
    };
    let (Some(before), Some(after)) = (read(from)?, read(to)?) else { return Ok(None) };
    Ok(unified_diff(&before, &after))
}

/// Returns the content of a file that is text and not too large.
fn text_of(object: &Object) -> Option<String> {
    let bytes = object.bytes();
    let is_text = bytes.len() <= MOST_COMPARED && !bytes.contains(&0);
    is_text.then(|| String::from_utf8(bytes.to_vec()).ok()).flatten()
}

/// Compares two texts by lines; `None` if they are the same.
fn unified_diff(before: &str, after: &str) -> Option<String> {
    let compare = || TextDiff::from_lines(before, after).unified_diff().context_radius(2).to_string();
    (before != after).then(compare)
}

/// Compares the working state at two points, and returns the number of items of each slice that differs.
pub(super) fn compared_state(
    from: &JournalView,
    to: &JournalView,
) -> Result<BTreeMap<String, (usize, usize)>, RuntimeError> {
    let (mut before, after) = (working_state(from)?, working_state(to)?);
    let mut differing = BTreeMap::new();
    for (name, items) in after {
        let earlier = before.remove(&name).unwrap_or_default();
        if earlier != items {
            differing.insert(name, (earlier.len(), items.len()));
        }
    }
    differing.extend(before.into_iter().map(|(name, items)| (name, (items.len(), 0))));
    Ok(differing)
}

/// Returns the items of each slice of the working state that is not empty.
pub(super) fn working_state(view: &JournalView) -> Result<BTreeMap<String, Vec<Value>>, RuntimeError> {
    let session = view.session(Arc::new(SystemClock::new()));
    let slices = session.snapshot_with(CaptureOptions::policies([SlicePolicy::State])).stored_slices()?;
    let filled = slices.into_iter().filter(|slice| !slice.items.is_empty());
    Ok(filled.map(|slice| (slice.name, slice.items)).collect())
}
