//! Notes about restores: which files were restored, which were left alone, and where to find the overwritten
//! ones.
//!
//! A person may have edited files while a call ran, and has to know what a rollback did with them. So every
//! restore that changes something, or leaves something alone, is a note in the journal, for the command line
//! and for `log`.

use backstitch_core::journal::{Note, Position, RecordBody};
use backstitch_core::ports::{PathChange, RestoreReport, UncoveredPath};
use serde::{Deserialize, Serialize};

use super::{Durable, LiveSession};
use crate::error::RuntimeError;
use crate::events::FILES_RESTORED;
use crate::point::PointSpec;

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

impl LiveSession {
    /// Records a restore, together with the next record. `rescue` is the position of the files before it.
    pub(crate) async fn note_restored(
        &self,
        restored: RestoreReport,
        rescue: Option<Position>,
    ) -> Result<(), RuntimeError> {
        if restored.changed.is_empty() && restored.kept.is_empty() {
            return Ok(());
        }
        let note = FilesRestored::new(restored, rescue).note();
        self.record_when(vec![note.into()], Durable::WithNext).await
    }
}
