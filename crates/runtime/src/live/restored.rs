//! Notes about restores: which files were restored, which were left alone, and where to find the overwritten
//! ones.
//!
//! A person may have edited files while a call ran, and has to know what a rollback did with them. So every
//! restore that changes something, or leaves something alone, is a note in the journal, for the command line
//! and for `log`.
//!
//! Some files are left as they are ([`KeptFiles`]). A program that reports its own work has settings in the
//! files that it works on, with the hooks of that report and with permissions that a person has granted. They
//! are recorded like all files. A rewind that restored them would install hooks that were removed since, and
//! take back permissions. So its target has these files as they are now.

use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Note, Position, RecordBody, WorkspaceRevision};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    ChangeKind, FilePath, ObjectOverlay, Objects, PathChange, RestoreReport, UncoveredPath,
};
use backstitch_filesystem::format;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Durable, LiveSession, blocking, recorded};
use crate::error::Result;
use crate::events::FILES_RESTORED;
use crate::point::PointSpec;
use crate::report::Version;

/// The most files that are listed. Others are only counted.
const MOST_LISTED: usize = 1_000;

/// A restore that changed files, or left some alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRestored {
    /// The position at which the files before the restore are recorded, if they are.
    pub rescue: Option<Position>,
    /// The files that the restore added, modified or deleted.
    pub changed: Vec<PathChange>,
    /// The files that differ, and were left alone.
    pub kept: Vec<UncoveredPath>,
    /// The number of files that are not listed.
    #[serde(default)]
    pub more: usize,
}

impl FilesRestored {
    /// Returns the restore that a record describes.
    pub fn of(record: &RecordBody) -> Option<Self> {
        let RecordBody::Note(note) = record else { return None };
        let is_one = note.topic == FILES_RESTORED;
        is_one.then(|| serde_json::from_value(note.data.inline()?.clone()).ok()).flatten()
    }

    /// Returns the point of the files before the restore: `rescue:POSITION`.
    pub fn point(&self) -> Option<PointSpec> {
        self.rescue.map(PointSpec::Rescue)
    }

    fn new(mut restored: RestoreReport, rescue: Option<Position>) -> Self {
        let more = [restored.changed.len(), restored.kept.len()];
        let more = more.into_iter().map(|count| count.saturating_sub(MOST_LISTED)).sum();
        restored.changed.truncate(MOST_LISTED);
        restored.kept.truncate(MOST_LISTED);
        Self { rescue, changed: restored.changed, kept: restored.kept, more }
    }

    fn note(&self) -> Note {
        let count = |count: usize| match count {
            1 => "1 file".to_owned(),
            many => format!("{many} files"),
        };
        let mut text = format!("{} restored", count(self.changed.len()));
        if !self.kept.is_empty() {
            text.push_str(&format!(", {} left alone", count(self.kept.len())));
        }
        if let Some(point) = self.point() {
            text.push_str(&format!("; as found: {point}"));
        }
        Note::new(FILES_RESTORED, text).with_data(serde_json::to_value(self).unwrap_or_default())
    }
}

/// A restore of a session's files, as programs read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RestoredFiles {
    /// The version of this form.
    pub v: Version,
    /// What happened. While a session is driven, this is one of its events.
    pub event: RestoredEvent,
    /// The session.
    pub session: SessionId,
    /// The point of the files before the restore, if they are kept.
    #[schemars(with = "Option<String>")]
    pub rescue: Option<PointSpec>,
    /// The files that were restored.
    pub files: Vec<RestoredFile>,
    /// The files that differ, and were left alone.
    pub left_alone: Vec<String>,
    /// The same files, with the reasons.
    #[serde(default)]
    pub kept: Vec<UncoveredPath>,
    /// The number of files that are not listed.
    pub more: usize,
}

/// The name of the event that files were restored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoredEvent {
    /// Files were restored.
    #[default]
    Restored,
}

/// A file that was restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoredFile {
    /// Path in the workspace.
    pub path: String,
    /// What the restore did to it.
    pub change: RestoredChange,
}

/// What a restore did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RestoredChange {
    /// It was missing.
    Recovered,
    /// It did not exist before.
    Removed,
    /// Its mode was another one.
    Mode,
    /// Its content was another one.
    Reverted,
}

impl RestoredChange {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recovered => "recovered",
            Self::Removed => "removed",
            Self::Mode => "mode",
            Self::Reverted => "reverted",
        }
    }
}

impl From<ChangeKind> for RestoredChange {
    fn from(change: ChangeKind) -> Self {
        match change {
            ChangeKind::Added => Self::Recovered,
            ChangeKind::Deleted => Self::Removed,
            ChangeKind::Mode => Self::Mode,
            ChangeKind::Modified => Self::Reverted,
        }
    }
}

impl RestoredFiles {
    /// Returns the restore that a record of a session describes.
    pub fn of(session: SessionId, record: &RecordBody) -> Option<Self> {
        let restored = FilesRestored::of(record)?;
        let rescue = restored.point();
        let FilesRestored { changed, kept, more, .. } = restored;
        let files = changed
            .into_iter()
            .map(|PathChange { path, change }| RestoredFile { path, change: change.into() });
        Some(Self {
            v: Version,
            event: RestoredEvent::Restored,
            session,
            rescue,
            files: files.collect(),
            left_alone: kept.iter().map(|file| file.path.clone()).collect(),
            kept,
            more,
        })
    }
}

impl LiveSession {
    /// Records a restore, together with the next record. `rescue` is the position of the files before it.
    pub(crate) async fn note_restored(
        &self,
        restored: RestoreReport,
        rescue: Option<Position>,
    ) -> Result<()> {
        if restored.changed.is_empty() && restored.kept.is_empty() {
            return Ok(());
        }
        let note = FilesRestored::new(restored, rescue).note();
        self.record_when(vec![note.into()], Durable::WithNext).await
    }

    /// Makes rewinds of this session, and undoing or repeating them, leave these files as they are. Restoring them by name
    /// still does. Only the first call has an effect.
    pub fn keep_files(&self, kept: KeptFiles) {
        let _ = self.kept_files.set(kept);
    }

    /// Returns the target of a rewind with the kept files as they are now, and the objects of it that are not stored.
    pub(crate) async fn with_kept_files(
        &self,
        target: Option<WorkspaceRevision>,
    ) -> Result<(Option<WorkspaceRevision>, Vec<Object>)> {
        let (Some(kept), Some(files)) = (self.kept_files.get().cloned(), target) else {
            return Ok((target, Vec::new()));
        };
        let Some(now) = self.capture_files().await? else { return Ok((target, Vec::new())) };
        let (now, mut objects) = recorded(now);
        let grafted = blocking(move || {
            let known = ObjectOverlay::new(objects.iter().cloned(), &*kept.objects);
            let paths: Vec<&[u8]> = kept.paths.iter().map(|path| path.as_str().as_bytes()).collect();
            let grafted = format::graft(&known, files.root, now.root, &paths)?;
            objects.extend(grafted.objects);
            Ok((grafted.root, objects))
        });
        let (root, objects) = grafted.await?;
        if root == files.root {
            return Ok((target, Vec::new()));
        }
        Ok((Some(WorkspaceRevision { root, ..files }), objects))
    }
}

/// Files that rewinds leave as they are.
#[derive(Clone)]
pub struct KeptFiles {
    /// The files. Those that do not exist are left missing.
    pub paths: Vec<FilePath>,
    /// The objects of the store of the session.
    pub objects: Arc<dyn Objects>,
}

debug_fields!(KeptFiles { paths });
