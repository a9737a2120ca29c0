//! Changes that cannot be told apart, because calls of two sessions ran at the same time in one directory.
//!
//! What a call changed are the paths in which the files before and after it differ. While a call of another session runs in the
//! same directory, its changes are among them. A path that both have listed is *shared*: nobody knows who changed it last, so
//! history leaves it alone and names it.

use std::collections::{BTreeSet, HashMap};

use backstitch_core::id::CallId;
use backstitch_core::journal::{
    CallChanges, CallVerdict, ObservationCause, Position, Record, RecordBody, WorkspaceRoot,
};
use backstitch_core::ports::{
    ConflictKind, FilePath, MergeConflict, ReversalPlan, SessionQuery, Workspace, WorkspaceError,
};
use backstitch_core::time::Timestamp;
use backstitch_core::view::Call;

use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, blocking, read_records};

/// The newest other sessions of a directory that are looked at.
const NEWEST: usize = 50;

/// The time in which a call ran, and what changed meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallWindow {
    start: Timestamp,
    /// `None` if it has not ended.
    end: Option<Timestamp>,
    before: WorkspaceRoot,
    after: Option<WorkspaceRoot>,
    changes: Option<CallChanges>,
}

impl CallWindow {
    /// Returns the window of a call that has started.
    pub(super) fn of(call: &Call) -> Option<Self> {
        let intent = call.intent.as_ref()?;
        let finished = call.finished.as_ref();
        Some(Self {
            start: intent.at,
            end: finished.map(|finished| finished.at),
            before: intent.record.root?,
            after: finished.and_then(|finished| finished.record.root),
            changes: finished.and_then(|finished| finished.record.changes.clone()),
        })
    }

    fn overlaps(&self, other: &Self) -> bool {
        let ends_after = |end: Option<Timestamp>, start: Timestamp| end.is_none_or(|end| end > start);
        ends_after(self.end, other.start) && ends_after(other.end, self.start)
    }

    /// Returns the changed paths; `None` if the call has not ended, so that any path may be among them.
    fn paths(&self, workspace: &dyn Workspace) -> Result<Option<BTreeSet<String>>, WorkspaceError> {
        let Some(after) = self.after else { return Ok(None) };
        if after == self.before {
            return Ok(Some(BTreeSet::new()));
        }
        if let Some(paths) = self.changes.as_ref().and_then(CallChanges::paths) {
            return Ok(Some(paths.iter().map(|changed| changed.path.clone()).collect()));
        }
        let changes = workspace.diff(self.before, after)?;
        Ok(Some(changes.into_iter().map(|change| change.path).collect()))
    }
}

/// Returns the windows of the calls in these records whose changes stand, or may stand. `open` are the calls that were open before
/// the first record.
pub(super) fn windows(records: &[Record], mut open: HashMap<CallId, CallWindow>) -> Vec<CallWindow> {
    let mut windows = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::CallStarted(call) => {
                if let Some(before) = call.root {
                    let window =
                        CallWindow { start: record.at, end: None, before, after: None, changes: None };
                    open.insert(call.call_id, window);
                }
            }
            RecordBody::CallFinished(call) => {
                let window = open.remove(&call.call_id);
                if let Some(window) = window.filter(|_| call.outcome == CallVerdict::Succeeded) {
                    windows.push(CallWindow {
                        end: Some(record.at),
                        after: call.root,
                        changes: call.changes.clone(),
                        ..window
                    });
                }
            }
            // What the open calls have changed was undone.
            RecordBody::Rewound(_) => open.clear(),
            RecordBody::WorkspaceObserved(observed) if observed.cause == ObservationCause::Interrupted => {
                open.clear();
            }
            _ => {}
        }
    }
    windows.extend(open.into_values());
    windows
}

/// Returns the paths that two sessions have changed at the same time.
fn shared(
    workspace: &dyn Workspace,
    own: &[CallWindow],
    others: &[CallWindow],
) -> Result<BTreeSet<String>, WorkspaceError> {
    let mut shared = BTreeSet::new();
    for (one, other) in own.iter().flat_map(|one| others.iter().map(move |other| (one, other))) {
        if !one.overlaps(other) {
            continue;
        }
        // An open call of another session has no result that could be kept.
        let Some(theirs) = other.paths(workspace)? else { continue };
        match one.paths(workspace)? {
            Some(own) => shared.extend(own.intersection(&theirs).cloned()),
            None => shared.extend(theirs),
        }
    }
    Ok(shared)
}

impl LiveSession {
    /// Returns the paths that these calls have changed while calls of other sessions in the directory changed them too.
    pub(super) async fn shared_paths(&self, own: Vec<CallWindow>) -> Result<Vec<FilePath>> {
        let Some(workspace) = self.workspace().cloned() else { return Ok(Vec::new()) };
        let directory = workspace.host_directory().map(|directory| directory.to_string_lossy().into_owned());
        let (Some(directory), Some(first)) = (directory, own.iter().map(|window| window.start).min()) else {
            return Ok(Vec::new());
        };
        let query = SessionQuery::roots().with_workspace(directory).with_limit(NEWEST);
        let page = self.store().query(query).await?;
        let mut others = Vec::new();
        for other in page.sessions.iter().map(|session| &session.summary) {
            // Most have ended before.
            if other.session != self.id() && other.updated_at >= first {
                let records = read_records(&**self.store(), other.session, Position::START, None).await?;
                others.extend(windows(&records, HashMap::new()));
            }
        }
        if others.is_empty() {
            return Ok(Vec::new());
        }
        match blocking(move || shared(&*workspace, &own, &others)).await {
            Ok(shared) => Ok(shared.iter().filter_map(|path| FilePath::new(path).ok()).collect()),
            // Retention may have removed the files of these calls.
            Err(RuntimeError::Workspace(error)) => {
                tracing::warn!(%error, "calls that ran at the same time could not be compared");
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }
}

/// Names paths that are left alone because they are shared.
pub(super) fn name_shared(plan: &mut ReversalPlan, paths: &[FilePath]) {
    let named = paths.iter().map(|path| path.as_str().to_owned());
    plan.conflicts.extend(named.map(|path| MergeConflict { path, kind: ConflictKind::Shared }));
    plan.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
    plan.conflicts.dedup_by(|one, other| one.path == other.path);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backstitch_core::journal::{CallFinished, ChangeKind, ChangedPath};
    use backstitch_core::object::ObjectId;
    use backstitch_filesystem::{MemoryFilesystem, MemoryWorkspace};
    use backstitch_testkit::filesystem::StoredObjects;

    use super::*;

    fn time(micros: i64) -> Timestamp {
        Timestamp::from_unix_micros(micros).unwrap()
    }

    fn window(start: i64, end: Option<i64>, paths: &[&str]) -> CallWindow {
        let root = |number| {
            let id = ObjectId::from_bytes([number; 20]);
            WorkspaceRoot { tree: id, manifest: id }
        };
        let changed = paths.iter().map(|path| ChangedPath::new(*path, ChangeKind::Modified)).collect();
        CallWindow {
            start: time(start),
            end: end.map(time),
            before: root(1),
            after: end.map(|_| root(2)),
            changes: Some(CallChanges::new(changed)),
        }
    }

    fn paths(own: &[CallWindow], others: &[CallWindow]) -> Vec<String> {
        let objects = Arc::new(StoredObjects::default());
        let workspace = MemoryWorkspace::new(Arc::new(MemoryFilesystem::new()), objects);
        shared(&workspace, own, others).unwrap().into_iter().collect()
    }

    #[test]
    fn paths_that_two_windows_cover_are_shared() {
        let own = [window(10, Some(20), &["a", "b"]), window(30, Some(40), &["c"])];
        assert_eq!(paths(&own, &[window(15, Some(35), &["b", "c", "d"])]), ["b", "c"]);
        assert_eq!(paths(&own, &[window(20, Some(30), &["a", "b", "c"])]), [""; 0], "between the two");
        assert_eq!(paths(&own, &[window(15, None, &["a"])]), [""; 0], "it has not ended");
        let open = [window(10, None, &[])];
        assert_eq!(paths(&open, &[window(5, Some(9), &["a"]), window(11, Some(12), &["b"])]), ["b"]);
    }

    #[test]
    fn failed_calls_change_nothing() {
        let call = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        let open = HashMap::from([(call, window(10, None, &[]))]);
        let finished = |outcome| {
            let body = CallFinished::new(call, outcome);
            windows(&[Record::new(Position::START, time(20), body)], open.clone())
        };
        assert_eq!(finished(CallVerdict::Failed), []);
        assert_eq!(finished(CallVerdict::Succeeded).len(), 1);
        assert_eq!(windows(&[], open.clone()).len(), 1);
    }
}
