//! What is recorded of a restore: which files were restored, what was left alone, and where to find what was overwritten.
//!
//! A person may have edited files while a call ran, and cannot tell what a rollback did with them. So every restore that
//! changes something, or leaves something alone, is a note in the journal, for the command line and for `log`.

use backstitch_core::journal::{Note, Position, RecordBody};
use backstitch_core::ports::{PathChange, RestoreReport, UncoveredPath};
use serde::{Deserialize, Serialize};

use super::{Durable, LiveSession};
use crate::error::RuntimeError;
use crate::point::PointSpec;

/// The topic of the note.
const TOPIC: &str = "files_restored";

/// More than this is counted and not listed.
const MOST_LISTED: usize = 1_000;

/// A restore that changed files, or left some alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRestored {
    /// Where the files are recorded as they were found, if they were.
    pub rescue: Option<Position>,
    /// The files that were changed to what they had been: added, modified or deleted by the restore.
    pub changed: Vec<PathChange>,
    /// The files that should have been changed and were left alone.
    pub kept: Vec<UncoveredPath>,
    /// How many files are not listed.
    #[serde(default)]
    pub more: usize,
}

impl FilesRestored {
    /// The restore that a record tells of.
    pub fn of(record: &RecordBody) -> Option<Self> {
        let RecordBody::Note(note) = record else { return None };
        let is_one = note.topic == TOPIC;
        is_one.then(|| serde_json::from_value(note.data.inline()?.clone()).ok()).flatten()
    }

    /// The name of the place where the files are as they were found: `rescue:POSITION`.
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
        Note::new(TOPIC, text).with_data(serde_json::to_value(self).unwrap_or_default())
    }
}

impl LiveSession {
    /// Records what a restore did, with whatever is recorded next. `rescue` is the position of the files as found.
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
