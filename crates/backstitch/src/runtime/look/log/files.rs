//! The files that the calls of other programs have changed. The words of those programs do not name them.

use std::collections::HashMap;

use backstitch_runtime::{changes_line, is_observed};

use crate::filesystem::format;
use crate::id::CallId;
use crate::journal::{CallChanges, CallStarted, Record, RecordBody, WorkspaceRoot};
use crate::ports::{Objects, PathChange};
use crate::view::JournalView;

/// Files before the calls whose starts were read.
#[derive(Default)]
pub(super) struct CallFiles {
    before: HashMap<CallId, WorkspaceRoot>,
}

impl CallFiles {
    /// Returns what the call of a record has changed, if the record is the end of one. Without recorded paths, a
    /// call whose files are not kept any more has none.
    pub(super) fn changes(
        &mut self,
        objects: &dyn Objects,
        view: &JournalView,
        record: &Record,
    ) -> Option<String> {
        match &record.body {
            RecordBody::CallStarted(started) => {
                self.before.extend(root_before(started).map(|root| (started.call_id, root)));
                None
            }
            RecordBody::CallFinished(finished) => {
                let known = || root_before(&view.call(finished.call_id)?.intent.as_ref()?.record);
                let before = self.before.remove(&finished.call_id).or_else(known)?;
                let after = finished.root?;
                let changes = match finished.changes.as_ref().and_then(CallChanges::paths) {
                    Some(paths) => paths.iter().map(PathChange::from).collect(),
                    None => format::diff(objects, before, after).ok()?,
                };
                (!changes.is_empty()).then(|| changes_line(&changes))
            }
            _ => None,
        }
    }
}

fn root_before(started: &CallStarted) -> Option<WorkspaceRoot> {
    started.root.filter(|_| is_observed(started))
}
