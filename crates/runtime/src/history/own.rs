//! The target of a rewind: the current files without the session's own changes since a point.
//!
//! The journal knows each of these changes as a pair of roots: a call has one before and one after, and a rewind has the files
//! that it found and those that it restored. All records since the point count, also those that a rewind has hidden, because
//! they are what happened to the files. Undoing them is a [`Reversal`], which leaves everything else alone: files of a person,
//! of other sessions, and paths that the session never changed.
//!
//! Rewinds to a point, undoing and repeating them, and restores of all files come here, and nothing else decides which files
//! they move.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{
    CallVerdict, ObservationCause, Position, Record, RecordBody, WorkspaceRevision, WorkspaceRoot,
};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    OwnStep, Reversal, ReversalConflicts, ReversalPlan, ReversedCapture, Store, StoreError, Workspace,
};

use super::shared::{CallWindow, name_shared, windows};
use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, blocking, load_view, read_records, recorded};
use crate::observed::is_boundary;
use crate::point::PointSpec;

/// What a rewind moves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewindScope {
    /// Which files are restored.
    pub files: RewoundFiles,
    /// What to do about paths that others changed too, where the changes cannot be merged.
    pub conflicts: ReversalConflicts,
    /// One half of the session. By default both are rewound.
    pub only: Option<RewoundHalf>,
    /// Reports what would be done, and does nothing.
    pub dry_run: bool,
}

/// Which files a rewind restores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RewoundFiles {
    /// Those that calls of the session changed.
    #[default]
    Own,
    /// All files that were covered at the point. What others changed since is undone too.
    All,
}

/// One half of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewoundHalf {
    /// The files. State and conversation stay as they are.
    Files,
    /// State and conversation. The files stay as they are.
    Conversation,
}

/// The files that a rewind restores.
#[derive(Debug, Default)]
pub(super) struct RewindTarget {
    /// The files, if there are any to restore.
    pub(super) files: Option<WorkspaceRevision>,
    /// Objects of these files, and of those that were found, that are not stored yet.
    pub(super) objects: Vec<Object>,
    /// The files as they were found, if they were captured for this.
    pub(super) found: Option<WorkspaceRoot>,
    /// What happens to the paths. Empty for a rewind of all files.
    pub(super) plan: ReversalPlan,
}

/// Where the steps begin that a rewind undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepsSince {
    /// With the record at this position.
    Position(Position),
    /// With the restore for which the record at this position saved the files.
    Rescue(Position),
}

impl StepsSince {
    /// Returns where the steps begin for a point with this cut.
    pub(super) fn of(point: &PointSpec, cut: Position) -> Self {
        match point {
            PointSpec::Rescue(position) => Self::Rescue(*position),
            _ => Self::Position(cut),
        }
    }

    fn position(self) -> Position {
        match self {
            Self::Position(position) | Self::Rescue(position) => position,
        }
    }
}

impl LiveSession {
    /// Returns the files that a rewind restores whose point has the files `at_point`.
    pub(super) async fn rewind_target(
        &self,
        at_point: Option<WorkspaceRevision>,
        since: StepsSince,
        scope: RewindScope,
    ) -> Result<RewindTarget> {
        if scope.only == Some(RewoundHalf::Conversation) {
            return Ok(RewindTarget::default());
        }
        let (Some(target), Some(workspace)) = (at_point, self.workspace().cloned()) else {
            return Ok(RewindTarget { files: at_point, ..RewindTarget::default() });
        };
        if scope.files == RewoundFiles::All && !scope.dry_run {
            let (files, objects) = self.with_kept_files(at_point).await?;
            return Ok(RewindTarget { files, objects, ..RewindTarget::default() });
        }
        let (steps, open, windows) = match scope.files {
            RewoundFiles::Own => self.own_steps_since(since, target).await?,
            RewoundFiles::All => (Vec::new(), at_point, Vec::new()),
        };
        let kept = match scope.files {
            RewoundFiles::Own if open.is_some() => self.paths_of_others().await?,
            _ => Vec::new(),
        };
        let reversal = Reversal { steps, open, target, kept, conflicts: scope.conflicts };
        self.reverse_apart(workspace, reversal, windows).await
    }

    /// Returns the files without what one call changed. Later changes of the same files stay, where the two can be merged.
    pub(super) async fn without_call(
        &self,
        step: OwnStep,
        conflicts: ReversalConflicts,
        window: Option<CallWindow>,
    ) -> Result<RewindTarget> {
        let Some(workspace) = self.workspace().cloned() else {
            return Err(RuntimeError::NoWorkspace { session: self.id() });
        };
        let (steps, kept) = (vec![step], Vec::new());
        let reversal = Reversal { steps, open: None, target: step.before, kept, conflicts };
        self.reverse_apart(workspace, reversal, window.into_iter().collect()).await
    }

    /// Undoes steps whose calls ran in these windows. Paths that calls of other sessions changed at the same time are left
    /// alone and named, unless conflicts are forced.
    async fn reverse_apart(
        &self,
        workspace: Arc<dyn Workspace>,
        mut reversal: Reversal,
        windows: Vec<CallWindow>,
    ) -> Result<RewindTarget> {
        reversal.kept.extend(self.kept_files.get().map(|kept| kept.paths.clone()).unwrap_or_default());
        let shared = match reversal.conflicts {
            ReversalConflicts::LeaveAlone => self.shared_paths(windows).await?,
            ReversalConflicts::TakeTarget => Vec::new(),
        };
        reversal.kept.extend(shared.iter().cloned());
        let mut target = self.reverse(workspace, reversal).await?;
        name_shared(&mut target.plan, &shared);
        Ok(target)
    }

    async fn reverse(&self, workspace: Arc<dyn Workspace>, reversal: Reversal) -> Result<RewindTarget> {
        let alone = self.files.clone().write_owned().await;
        let ReversedCapture { captured, found, plan } = blocking(move || {
            let _alone = alone;
            workspace.capture_reversed(&reversal)
        })
        .await?;
        let (files, objects) = recorded(captured);
        Ok(RewindTarget { files: Some(files), objects, found: Some(found), plan })
    }

    /// Returns the session's own changes since a record, the files before one whose result is not known, and the windows of
    /// the calls.
    async fn own_steps_since(
        &self,
        since: StepsSince,
        target: WorkspaceRevision,
    ) -> Result<(Vec<OwnStep>, Option<WorkspaceRevision>, Vec<CallWindow>)> {
        let (store, from) = (&**self.store(), since.position());
        let then = load_view(store, self.id(), Some(from)).await?;
        let open = then.calls().filter(|call| call.is_open()).filter_map(|call| {
            let intent = call.intent.as_ref().filter(|intent| intent.point.session == self.id())?;
            let (root, coverage) = (intent.record.root, intent.record.coverage);
            Some((call.call_id, WorkspaceRevision::of(root, coverage)?))
        });
        let open = open.collect();
        let records = read_records(store, self.id(), from, None).await?;
        let begun = then.calls().filter(|call| call.is_open());
        let begun = begun.filter_map(|call| Some((call.call_id, CallWindow::of(call)?))).collect();
        let windows = windows(&records, begun);
        let (steps, open) = own_steps(&records, then.files(), open, since);
        let (steps, unstored) = stored_steps(store, steps, target).await?;
        Ok((steps, unstored.or(open), windows))
    }
}

/// Returns the changes of files that are recorded, the oldest first, and the files before a call that has not ended. `known` are
/// the files before the first record, and `started` the calls that were open then, with the files before them.
fn own_steps(
    records: &[Record],
    mut known: Option<WorkspaceRevision>,
    mut started: HashMap<CallId, WorkspaceRevision>,
    since: StepsSince,
) -> (Vec<OwnStep>, Option<WorkspaceRevision>) {
    let mut steps = Vec::new();
    let mut add = |before: Option<WorkspaceRevision>, after: Option<WorkspaceRevision>| {
        if let (Some(before), Some(after)) = (before, after) {
            steps.push(OwnStep { before, after });
        }
    };
    // Files that were saved and then restored came from the session, except for the point at which they were saved: the
    // rewind to it restores them.
    let is_target = |record: &Record| since == StepsSince::Rescue(record.position);
    for record in records {
        match &record.body {
            RecordBody::CallStarted(call) => {
                if let Some(files) = WorkspaceRevision::of(call.root, call.coverage) {
                    started.insert(call.call_id, files);
                    known = Some(files);
                }
            }
            RecordBody::CallFinished(call) => {
                let before = started.remove(&call.call_id).or(known);
                match call.outcome {
                    CallVerdict::Succeeded => {
                        if let Some(after) = WorkspaceRevision::of(call.root, call.coverage) {
                            add(before, Some(after));
                            known = Some(after);
                        }
                    }
                    CallVerdict::Failed => {
                        if let Some(left) = WorkspaceRevision::of(call.rescue, call.coverage) {
                            add(before.filter(|_| !is_target(record)), Some(left));
                            add(Some(left), before);
                        }
                    }
                }
            }
            RecordBody::Rewound(rewound) => {
                let after = WorkspaceRevision::of(rewound.root, rewound.coverage);
                let found = WorkspaceRevision::of(rewound.rescue, rewound.coverage).or(after);
                // A rewind ends the open calls, and undoes what they have done so far.
                let is_interrupted = !started.is_empty() && !is_target(record);
                add(known.filter(|_| is_interrupted), found);
                add(found, after);
                started.clear();
                known = after.or(known);
            }
            RecordBody::WorkspaceObserved(observed) => {
                let found = WorkspaceRevision { root: observed.root, coverage: observed.coverage };
                if observed.cause == ObservationCause::Interrupted {
                    add(known.filter(|_| !is_target(record)), Some(found));
                    add(Some(found), known);
                    started.clear();
                } else {
                    // What changes while a guarded command runs is its work: it reports nothing itself.
                    add(known.filter(|_| is_boundary(observed)), Some(found));
                    known = Some(found);
                }
            }
            _ => {}
        }
    }
    let open = known.filter(|_| !started.is_empty());
    (steps, open)
}

/// Joins steps over states that retention has removed, so that all that is left is stored. What others changed between two
/// such steps then counts as the session's, and is in the files that the rewind saves. Also returns the files before steps whose
/// result is not stored.
async fn stored_steps(
    store: &dyn Store,
    steps: Vec<OwnStep>,
    target: WorkspaceRevision,
) -> Result<(Vec<OwnStep>, Option<WorkspaceRevision>)> {
    let mut kept: Vec<OwnStep> = Vec::new();
    let mut open: Option<WorkspaceRevision> = None;
    for step in steps.into_iter().filter(|step| step.before.root != step.after.root) {
        let mut before = open.take().unwrap_or(step.before);
        if !is_stored(store, before).await? {
            before = kept.pop().map_or(target, |last| last.before);
        }
        if is_stored(store, step.after).await? {
            kept.push(OwnStep { before, after: step.after });
        } else {
            open = Some(before);
        }
    }
    Ok((kept, open))
}

async fn is_stored(store: &dyn Store, files: WorkspaceRevision) -> Result<bool> {
    for object in [files.root.tree, files.root.manifest].into_iter().chain(files.coverage) {
        match store.object(object).await {
            Ok(Some(_)) => {}
            Ok(None) | Err(StoreError::Pruned { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use backstitch_core::extra::Extra;
    use backstitch_core::journal::{CallFinished, SessionRewound, WorkspaceObserved};
    use backstitch_core::object::ObjectId;
    use backstitch_core::time::Timestamp;

    use super::*;

    const CALL: &str = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d";

    fn root(number: u8) -> WorkspaceRoot {
        let id = ObjectId::from_bytes([number; 20]);
        WorkspaceRoot { tree: id, manifest: id }
    }

    fn files(number: u8) -> WorkspaceRevision {
        WorkspaceRevision { root: root(number), coverage: None }
    }

    fn finished(outcome: CallVerdict) -> CallFinished {
        CallFinished::new(CALL.parse().unwrap(), outcome)
    }

    fn succeeded(after: u8) -> RecordBody {
        CallFinished { root: Some(root(after)), ..finished(CallVerdict::Succeeded) }.into()
    }

    fn observed(found: u8, cause: ObservationCause) -> RecordBody {
        WorkspaceObserved::new(root(found), cause).into()
    }

    /// Returns the steps of records from position 10 on, which found the files 1, as numbers.
    fn steps(since: StepsSince, bodies: Vec<RecordBody>) -> Vec<(u8, u8)> {
        let positions = (10..).map(Position::new);
        let record = |(position, body)| Record::new(position, Timestamp::UNIX_EPOCH, body);
        let records: Vec<Record> = positions.zip(bodies).map(record).collect();
        let (steps, open) = own_steps(&records, Some(files(1)), HashMap::new(), since);
        assert_eq!(open, None);
        let number = |files: WorkspaceRevision| (1..9).find(|number| root(*number) == files.root).unwrap();
        steps.iter().map(|step| (number(step.before), number(step.after))).collect()
    }

    #[test]
    fn what_others_change_between_calls_is_not_a_step() {
        let bodies = vec![succeeded(2), observed(3, ObservationCause::Drifted), succeeded(4)];
        let since = StepsSince::Position(Position::new(10));
        assert_eq!(steps(since, bodies), [(1, 2), (3, 4)]);
    }

    #[test]
    fn what_changes_while_a_guarded_command_runs_is_a_step() {
        let mark = serde_json::Map::from_iter([("outside".to_owned(), "added a".into())]);
        let boundary = WorkspaceObserved {
            extra: Extra::try_from(mark).unwrap(),
            ..WorkspaceObserved::new(root(2), ObservationCause::Drifted)
        };
        let since = StepsSince::Position(Position::new(10));
        assert_eq!(steps(since, vec![boundary.into(), observed(3, ObservationCause::Drifted)]), [(1, 2)]);
    }

    #[test]
    fn a_rewind_is_a_step_of_its_own() {
        let rewound = SessionRewound {
            root: Some(root(1)),
            rescue: Some(root(3)),
            ..SessionRewound::new(Position::new(10))
        };
        let since = StepsSince::Position(Position::new(10));
        assert_eq!(steps(since, vec![succeeded(2), rewound.into()]), [(1, 2), (3, 1)]);
    }

    #[test]
    fn saved_files_are_undone_from_the_point_at_which_they_were_saved() {
        let failed = CallFinished { rescue: Some(root(2)), ..finished(CallVerdict::Failed) };
        let failed = RecordBody::from(failed);
        for saved in [failed, observed(2, ObservationCause::Interrupted)] {
            let at = Position::new(10);
            assert_eq!(steps(StepsSince::Position(at), vec![saved.clone()]), [(1, 2), (2, 1)]);
            assert_eq!(steps(StepsSince::Rescue(at), vec![saved]), [(2, 1)]);
        }
    }
}
