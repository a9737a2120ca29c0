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
use std::ops::Range;
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{
    CallVerdict, ObservationCause, Position, Record, RecordBody, WorkspaceRevision, WorkspaceRoot,
};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    FilePath, OwnStep, Reversal, ReversalConflicts, ReversalPlan, ReversedCapture, Store, StoreError,
    Workspace,
};

use super::shared::{CallWindow, name_shared, windows};
use crate::error::{Result, RuntimeError};
use crate::live::{FilesRestored, LiveSession, blocking, load_view, read_records, recorded};
use crate::observed::{is_boundary, is_observed};
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

impl RewindScope {
    /// Whether files are moved, and not only listed.
    pub(crate) fn moves_files(self) -> bool {
        !self.dry_run && self.only != Some(RewoundHalf::Conversation)
    }
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
        let others = match scope.files {
            RewoundFiles::Own if open.is_some() => self.paths_of_others().await?,
            _ => None,
        };
        let (before, kept) = others.filter(|(_, paths)| !paths.is_empty()).unzip();
        let kept: Vec<FilePath> = kept.unwrap_or_default();
        if let Some(before) = before.filter(|_| !scope.dry_run) {
            self.adopt_paths(before, kept.clone()).await?;
        }
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
        // A call that overlaps with others may have started before the point. What it changed until then stays.
        let known = match since {
            StepsSince::Position(_) => Some(target),
            StepsSince::Rescue(_) => then.files(),
        };
        let records = read_records(store, self.id(), from, None).await?;
        let (mut open, mut begun) = (HashMap::new(), HashMap::new());
        // An earlier rewind may have left a call open, and undone what it did.
        for call in then.calls().filter(|call| call.is_open() && !call.files_restored) {
            begun.extend(CallWindow::of(call).map(|window| (call.call_id, window)));
            let intent = call.intent.as_ref().filter(|intent| intent.point.session == self.id());
            let intent = intent.map(|intent| &*intent.record).filter(|intent| intent.root.is_some());
            if let (Some(intent), Some(before)) = (intent, known) {
                let is_observed = is_observed(intent);
                open.insert(call.call_id, OpenCall { start: from, before, is_observed });
            }
        }
        let files = then.recorded_at().zip(known.map(|known| known.root));
        let windows = windows(&records, begun, files);
        let (steps, open) = own_steps(&records, known, open, since);
        let (steps, unstored) = stored_steps(store, steps, target).await?;
        Ok((steps, unstored.or(open), windows))
    }
}

/// A call that may have changed files, and has not ended.
#[derive(Debug, Clone, Copy)]
struct OpenCall {
    /// Its start, or the first record that counts.
    start: Position,
    /// The files then.
    before: WorkspaceRevision,
    /// Another program runs it, so that others may run at the same time.
    is_observed: bool,
}

/// Steps, each with the positions of its first and its last record, in the order of the last ones.
#[derive(Debug, Default)]
struct StepList(Vec<(Range<Position>, OwnStep)>);

impl StepList {
    /// Adds a step, if the files are known. Earlier ones that overlap with it become a part of it: what calls changed that ran at
    /// the same time cannot be undone one by one.
    fn add(
        &mut self,
        range: Range<Position>,
        before: Option<WorkspaceRevision>,
        after: Option<WorkspaceRevision>,
    ) {
        let (Some(before), Some(after)) = (before, after) else { return };
        let (start, before) = self.take_overlapping(range.start, before);
        self.0.push((start..range.end, OwnStep { before, after }));
    }

    /// Removes the steps that overlap with one from `start` on. Returns the first start of them all, and the files then.
    fn take_overlapping(
        &mut self,
        mut start: Position,
        mut before: WorkspaceRevision,
    ) -> (Position, WorkspaceRevision) {
        while let Some((range, step)) = self.0.pop_if(|(range, _)| range.end > start) {
            if range.start < start {
                (start, before) = (range.start, step.before);
            }
        }
        (start, before)
    }
}

/// Returns the changes of files that are recorded, the oldest first, and the files before a call that has not ended. `known` are
/// the files before the first record, and `started` the calls that were open then.
fn own_steps(
    records: &[Record],
    mut known: Option<WorkspaceRevision>,
    mut started: HashMap<CallId, OpenCall>,
    since: StepsSince,
) -> (Vec<OwnStep>, Option<WorkspaceRevision>) {
    let mut steps = StepList::default();
    // Files that were saved and then restored came from the session, except for the point at which they were saved: the
    // rewind to it restores them.
    let is_target = |record: &Record| since == StepsSince::Rescue(record.position);
    for record in records {
        let here = record.position..record.position;
        match &record.body {
            RecordBody::CallStarted(call) => {
                if let Some(before) = WorkspaceRevision::of(call.root, call.coverage) {
                    let is_observed = is_observed(call);
                    started.insert(call.call_id, OpenCall { start: record.position, before, is_observed });
                    known = Some(before);
                }
            }
            RecordBody::CallFinished(call) => {
                let open = started.remove(&call.call_id);
                let before = open.map(|open| open.before).or(known);
                let range = open.map_or(record.position, |open| open.start)..record.position;
                match call.outcome {
                    CallVerdict::Succeeded => {
                        if let Some(after) = WorkspaceRevision::of(call.root, call.coverage) {
                            steps.add(range, before, Some(after));
                            known = Some(after);
                        }
                    }
                    CallVerdict::Failed => {
                        let left = WorkspaceRevision::of(call.rescue, call.coverage);
                        steps.add(range, before.filter(|_| !is_target(record)), left);
                        steps.add(here, left, before);
                    }
                }
            }
            RecordBody::Rewound(rewound) => {
                let after = WorkspaceRevision::of(rewound.root, rewound.coverage);
                let found = WorkspaceRevision::of(rewound.rescue, rewound.coverage).or(after);
                // A rewind ends the open calls, and undoes what they have done so far.
                if let Some(open) = first_open(&started, known, record.position)
                    && !is_target(record)
                {
                    steps.add(open.start..record.position, Some(open.before), found);
                }
                steps.add(here, found, after);
                started.clear();
                known = after.or(known);
            }
            RecordBody::WorkspaceObserved(observed) => {
                let found = WorkspaceRevision { root: observed.root, coverage: observed.coverage };
                let before = known.filter(|_| !is_target(record));
                if observed.cause == ObservationCause::Interrupted {
                    // An undo may have brought back what is restored now, so that these are not the files that were known.
                    let restored = WorkspaceRevision::of(observed.restored, observed.coverage);
                    steps.add(here.clone(), before, Some(found));
                    known = restored.or(known);
                    steps.add(here, Some(found), known);
                } else {
                    // What changes while a guarded command runs is its work: it reports nothing itself.
                    steps.add(here, before.filter(|_| is_boundary(observed)), Some(found));
                    known = Some(found);
                }
            }
            // Before this, a kill may have left files that were to be restored.
            body if FilesRestored::of(body).is_some() => started.clear(),
            _ => {}
        }
    }
    let open = first_open(&started, known, Position::new(u64::MAX));
    let open = open.map(|open| steps.take_overlapping(open.start, open.before).1);
    (steps.0.into_iter().map(|(_, step)| step).collect(), open)
}

/// Returns the first call that is open. Of those that this runtime runs only the last can be, and `known` are the files before it.
fn first_open(
    started: &HashMap<CallId, OpenCall>,
    known: Option<WorkspaceRevision>,
    now: Position,
) -> Option<OpenCall> {
    let observed = started.values().filter(|call| call.is_observed).min_by_key(|call| call.start);
    let known = known.filter(|_| !started.is_empty());
    let last = known.map(|before| OpenCall { start: now, before, is_observed: false });
    observed.copied().or(last)
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
    use backstitch_core::journal::{
        CallFinished, CallStarted, Effect, IdempotencyKey, SessionRewound, WorkspaceObserved,
    };
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

    fn mark() -> Extra {
        let mark = serde_json::Map::from_iter([("outside".to_owned(), "added a".into())]);
        Extra::try_from(mark).unwrap()
    }

    /// The call of another program with this number.
    fn outside_call(number: u8) -> CallId {
        CallId::of_foreign(CALL.parse().unwrap(), &number.to_string())
    }

    fn begun(number: u8, before: u8) -> RecordBody {
        let (call_id, session) = (outside_call(number), CALL.parse().unwrap());
        let started = CallStarted {
            call_id,
            evaluation_id: CALL.parse().unwrap(),
            name: "weave".to_owned(),
            arguments: None,
            effect: Effect::External,
            idempotency_key: IdempotencyKey::new(session, call_id),
            attempt: 1,
            root: Some(root(before)),
            coverage: None,
            reservation: None,
            session: None,
            extra: mark(),
        };
        started.into()
    }

    fn ended(number: u8, after: u8) -> RecordBody {
        let finished = CallFinished::new(outside_call(number), CallVerdict::Succeeded);
        CallFinished { root: Some(root(after)), ..finished }.into()
    }

    /// Returns the steps of records from position 10 on, which found the files 1, as numbers, and the files before an open call.
    fn all_steps(since: StepsSince, bodies: Vec<RecordBody>) -> (Vec<(u8, u8)>, Option<u8>) {
        all_steps_after(HashMap::new(), since, bodies)
    }

    /// Does the same with calls that were open.
    fn all_steps_after(
        started: HashMap<CallId, OpenCall>,
        since: StepsSince,
        bodies: Vec<RecordBody>,
    ) -> (Vec<(u8, u8)>, Option<u8>) {
        let positions = (10..).map(Position::new);
        let record = |(position, body)| Record::new(position, Timestamp::UNIX_EPOCH, body);
        let records: Vec<Record> = positions.zip(bodies).map(record).collect();
        let (steps, open) = own_steps(&records, Some(files(1)), started, since);
        let number = |files: WorkspaceRevision| (1..9).find(|number| root(*number) == files.root).unwrap();
        let steps = steps.iter().map(|step| (number(step.before), number(step.after))).collect();
        (steps, open.map(number))
    }

    fn steps(since: StepsSince, bodies: Vec<RecordBody>) -> Vec<(u8, u8)> {
        let (steps, open) = all_steps(since, bodies);
        assert_eq!(open, None);
        steps
    }

    #[test]
    fn calls_that_overlap_are_one_step() {
        let since = StepsSince::Position(Position::new(10));
        let inside = vec![begun(1, 1), begun(2, 2), ended(2, 3), ended(1, 4), begun(3, 5), ended(3, 6)];
        assert_eq!(steps(since, inside), [(1, 4), (5, 6)]);
        let staggered = vec![begun(1, 1), begun(2, 2), ended(1, 3), begun(3, 4), ended(2, 5), ended(3, 6)];
        assert_eq!(steps(since, staggered), [(1, 6)]);
        let barrier = vec![begun(1, 1), begun(2, 2), ended(1, 3), ended(2, 3)];
        assert_eq!(steps(since, barrier), [(1, 3)]);
    }

    #[test]
    fn an_open_call_contains_those_that_overlap_with_it() {
        let since = StepsSince::Position(Position::new(10));
        let first = vec![begun(4, 1), ended(4, 2), begun(1, 3), begun(2, 4), ended(1, 5)];
        let bodies = [first, vec![begun(3, 6), ended(3, 7)]].concat();
        assert_eq!(all_steps(since, bodies), (vec![(1, 2)], Some(3)));
    }

    #[test]
    fn what_others_change_between_calls_is_not_a_step() {
        let bodies = vec![succeeded(2), observed(3, ObservationCause::Drifted), succeeded(4)];
        let since = StepsSince::Position(Position::new(10));
        assert_eq!(steps(since, bodies), [(1, 2), (3, 4)]);
    }

    #[test]
    fn what_changes_while_a_guarded_command_runs_is_a_step() {
        let boundary =
            WorkspaceObserved { extra: mark(), ..WorkspaceObserved::new(root(2), ObservationCause::Drifted) };
        let bodies = vec![boundary.into(), observed(3, ObservationCause::Drifted)];
        let at = Position::new(10);
        assert_eq!(steps(StepsSince::Position(at), bodies.clone()), [(1, 2)]);
        assert!(steps(StepsSince::Rescue(at), bodies).is_empty(), "the files of the boundary are the point");
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
    fn a_rewind_that_ends_a_call_undoes_what_is_not_of_others() {
        // The files 2 have the changes of others only, 3 were found, and 4 were restored.
        let rewound = SessionRewound {
            root: Some(root(4)),
            rescue: Some(root(3)),
            ..SessionRewound::new(Position::new(10))
        };
        let open = OpenCall { start: Position::new(9), before: files(1), is_observed: false };
        let started = HashMap::from([(CALL.parse().unwrap(), open)]);
        let bodies = vec![observed(2, ObservationCause::Drifted), rewound.into()];
        let since = StepsSince::Position(Position::new(10));
        assert_eq!(all_steps_after(started, since, bodies), (vec![(2, 3), (3, 4)], None));
    }

    #[test]
    fn a_recovery_restores_the_files_before_its_call() {
        // The files 2 were brought back by an undo, 3 were found, and 1 are those before the call.
        let undone = SessionRewound {
            root: Some(root(2)),
            undoes: Some(Position::new(5)),
            ..SessionRewound::new(Position::new(10))
        };
        let recovered = WorkspaceObserved {
            restored: Some(root(1)),
            ..WorkspaceObserved::new(root(3), ObservationCause::Interrupted)
        };
        let since = StepsSince::Position(Position::new(10));
        let bodies = vec![undone.into(), recovered.into(), succeeded(4)];
        assert_eq!(steps(since, bodies)[1..], [(2, 3), (3, 1), (1, 4)]);
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
