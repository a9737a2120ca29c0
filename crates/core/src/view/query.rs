//! Queries of a view.

use std::ops::Range;
use std::sync::Arc;

use super::call::{Call, CallStatus, Checkpoint};
use super::evaluation::{DriverPresence, Evaluation, SessionStatus};
use super::fold::JournalView;
use super::ledger::Ledger;
use super::lineage::Lineage;
use super::transcript::Transcript;
use crate::budget::{Amounts, Limits};
use crate::digest::Digest;
use crate::id::{CallId, EvaluationId, IdStream, SessionId};
use crate::journal::{
    InnerMessage, PauseReason, Position, ResourceChanged, SessionCreated, SessionPaused, WorkspaceRevision,
    inner_message_append,
};
use crate::session::{
    CaptureOptions, Change, PendingNotifications, PreparedCommit, Session, SessionError, SessionInfo,
    SlicePolicy,
};
use crate::time::{Clock, Timestamp};

impl JournalView {
    /// The first record.
    pub fn created(&self) -> &SessionCreated {
        &self.created
    }

    /// The session.
    pub fn session_id(&self) -> SessionId {
        self.created.session_id
    }

    /// Position of the next record.
    pub fn head(&self) -> Position {
        self.head
    }

    /// The rewinds of the journal, which determine visibility.
    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    /// Amounts spent and reserved.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the amounts that an evaluation has spent or reserved: all of the session since the evaluation
    /// started.
    pub fn spent_by(&self, evaluation: &Evaluation) -> Amounts {
        self.ledger.committed().minus(self.ledger.committed_before(evaluation.evaluation_id))
    }

    /// Returns the remaining budget of an evaluation, of each limited kind; none without a budget.
    pub fn budget_left(&self, evaluation: &Evaluation) -> Option<Limits> {
        evaluation.budget.map(|limits| limits.left_after(self.spent_by(evaluation)))
    }

    /// Creates a live session with the state at the journal's head. Its ids continue from there.
    pub fn session(&self, clock: Arc<dyn Clock>) -> Session {
        let info = SessionInfo {
            id: self.created.session_id,
            created_at: self.created.created_at,
            tags: self.tags().clone(),
            parent: self.created.origin.parent(),
            children: Vec::new(),
        };
        let ids = IdStream::new(info.id, self.head.number(), clock);
        let mut session = Session::with_state(info, ids, self.visible.state.clone());
        session.register::<InnerMessage, InnerMessage>(inner_message_append);
        self.attach_to(&mut session);
        session
    }

    /// Replaces the state of a live session by that of the journal, as for a rewind. Its reducers, policies
    /// and observers stay.
    pub fn load_into(&self, session: &mut Session) {
        session.adopt(&self.visible.state);
        self.attach_to(session);
    }

    /// Prepares the view for the records of these changes: it decodes the items of the changed slices, as in
    /// the session of the prepared commit, so that both can share them.
    pub fn expect(&mut self, session: &Session, prepared: &PreparedCommit) -> Result<(), SessionError> {
        session.check_prepared(prepared)?;
        let journaled = |change: &&Change| change.policy() != SlicePolicy::Cache;
        let mut changes = prepared.changes().iter().filter(journaled);
        changes.try_for_each(|change| change.type_slice(&mut self.visible.state))
    }

    /// Advances a live session from the state of `before` to that of this view, whose slices it shares. The
    /// records between the two were made from `prepared`. Observers have to be notified once these records
    /// are durable.
    pub fn advance(
        &self,
        before: &Self,
        session: &mut Session,
        prepared: PreparedCommit,
    ) -> Option<PendingNotifications> {
        let is_changed = !prepared.changes().is_empty() || !self.visible.state.is(&before.visible.state);
        let unobserved = is_changed.then(|| session.follow(&self.visible.state, prepared));
        // Snapshots carry the provenance from the journal.
        self.attach_to(session);
        unobserved
    }

    /// The transcript.
    pub fn transcript(&self) -> Result<Transcript, SessionError> {
        Ok(Transcript::carrying(self.visible.state.items()?, self.carried()))
    }

    /// The evaluations, in the order in which they started.
    pub fn evaluations(&self) -> impl DoubleEndedIterator<Item = &Evaluation> {
        self.visible.evaluations.iter().map(|evaluation| &**evaluation)
    }

    /// The evaluation that started last.
    pub fn latest_evaluation(&self) -> Option<&Evaluation> {
        self.evaluations().next_back()
    }

    /// The evaluation that started last, if it has not ended.
    pub fn open_evaluation(&self) -> Option<&Evaluation> {
        self.latest_evaluation().filter(|latest| latest.finished.is_none())
    }

    /// Returns one evaluation.
    pub fn evaluation(&self, evaluation: EvaluationId) -> Option<&Evaluation> {
        self.visible.evaluation(evaluation)
    }

    /// The calls, in the order in which they were made.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.visible.calls.iter().map(|call| &**call)
    }

    /// Returns one call.
    pub fn call(&self, call: CallId) -> Option<&Call> {
        self.visible.call(call)
    }

    /// The calls without a result, in the order in which they were made.
    pub fn pending_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls().filter(|call| call.status() == CallStatus::Pending)
    }

    /// Returns the boundaries of all calls that were started, in the order of their starts. In a fork, those
    /// of its parent come first.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let mut checkpoints: Vec<_> = self.calls().filter_map(Call::checkpoint).collect();
        let ancestor = |checkpoint: &Checkpoint| {
            let session = checkpoint.before.session;
            self.visible.ancestors.iter().position(|ancestor| *ancestor == session).unwrap_or(usize::MAX)
        };
        checkpoints.sort_by_key(|checkpoint| (ancestor(checkpoint), checkpoint.before.position));
        checkpoints
    }

    /// Returns the current pause, if there is one: a poisoned one first, else the oldest.
    pub fn pause(&self) -> Option<&Arc<SessionPaused>> {
        let poisoned = self.pauses().find(|pause| pause.reason == PauseReason::Poisoned);
        poisoned.or_else(|| self.pauses().next())
    }

    /// All current pauses, in order.
    pub fn pauses(&self) -> impl Iterator<Item = &Arc<SessionPaused>> {
        self.visible.pauses.iter()
    }

    /// Whether the session waits for a decision about files that changed while no process drove it.
    pub fn waits_for_files(&self) -> bool {
        self.pauses().any(|pause| {
            pause.reason == PauseReason::Files || pause.reason == PauseReason::Asked && pause.files_changed
        })
    }

    /// Time of the last visible record.
    pub fn recorded_at(&self) -> Option<Timestamp> {
        self.visible.last_at
    }

    /// Returns the recorded state of the files; `None` if no record has one.
    pub fn files(&self) -> Option<WorkspaceRevision> {
        self.visible.files
    }

    /// The recorded states of snapshotable resources, by stored name.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<ResourceChanged>> {
        self.visible.resources.values().map(|known| &known.latest)
    }

    /// Returns the recorded state of one snapshotable resource.
    pub fn resource(&self, name: &str) -> Option<&Arc<ResourceChanged>> {
        self.visible.resources.get(name).map(|known| &known.latest)
    }

    /// Returns the state to which the files still have to be restored, because the session was rewound and no
    /// record shows that it was done.
    pub fn owed_files(&self) -> Option<WorkspaceRevision> {
        self.visible.files.filter(|_| self.visible.files_are_owed)
    }

    /// Returns the status of the session, given whether a process drives it.
    pub fn status(&self, driver: DriverPresence) -> SessionStatus {
        let pause = self.pause().map(|pause| pause.reason);
        match SessionStatus::of(pause, self.latest_evaluation(), driver) {
            SessionStatus::Interrupted if self.is_untouched_fork() => SessionStatus::New,
            status => status,
        }
    }

    /// Computes a digest of all slices, regardless of their policy.
    pub fn content_digest(&self, clock: Arc<dyn Clock>) -> Result<Digest, SessionError> {
        self.session(clock).snapshot_with(CaptureOptions::include_all()).content_digest()
    }
}

/// Parts of the transcript. In a session that was opened from a snapshot, the transcript is in pages. These methods decode only
/// the pages that they need; [`JournalView::transcript`] decodes all of them.
impl JournalView {
    /// Returns the number of messages of the transcript.
    pub fn message_count(&self) -> usize {
        self.visible.state.length::<InnerMessage>()
    }

    /// Returns the messages at those of these places of the transcript that exist.
    pub fn messages(&self, places: Range<usize>) -> Result<Vec<Arc<InnerMessage>>, SessionError> {
        self.visible.state.range(places)
    }

    /// Returns the messages of an evaluation, in order.
    pub fn messages_of(&self, evaluation: EvaluationId) -> Result<Vec<Arc<InnerMessage>>, SessionError> {
        let Some(known) = self.evaluation(evaluation) else { return Ok(Vec::new()) };
        let mut missing = usize::try_from(known.messages).unwrap_or(usize::MAX);
        let (mut from, end) = (known.first_message, self.message_count());
        let mut messages = Vec::new();
        // Messages of other evaluations may lie between, so that the last ones follow later.
        while missing > 0 && from < end {
            let until = from.saturating_add(missing).min(end);
            let found = self.messages(from..until)?.into_iter();
            messages.extend(found.filter(|message| message.evaluation_id == evaluation));
            missing = usize::try_from(known.messages).unwrap_or(usize::MAX).saturating_sub(messages.len());
            from = until;
        }
        Ok(messages)
    }
}

/// Evaluations that form one conversation.
impl JournalView {
    /// Returns the evaluations whose conversation an evaluation continues, oldest first and without itself.
    /// The chain ends at an evaluation that is not visible here, such as one that was not exported with an
    /// adopted conversation, or that is not older.
    pub fn followed(&self, evaluation: EvaluationId) -> Vec<EvaluationId> {
        let before = |later: &usize| {
            let later_evaluation = self.visible.evaluations.get(*later)?;
            self.visible.place_of(follows(later_evaluation)?).filter(|place| place < later)
        };
        let line = std::iter::successors(self.visible.place_of(evaluation), before).skip(1);
        let mut line: Vec<EvaluationId> = line
            .filter_map(|place| self.visible.evaluations.get(place).map(|known| known.evaluation_id))
            .collect();
        line.reverse();
        line
    }

    /// Returns the evaluation that the next one follows: the latest, regardless of its outcome. An evaluation
    /// that supersedes another repeats its mission, and therefore follows what the superseded one followed.
    pub fn to_follow(&self, superseded: Option<EvaluationId>) -> Option<EvaluationId> {
        match superseded {
            Some(superseded) => follows(self.evaluation(superseded)?),
            None => self.latest_evaluation().map(|latest| latest.evaluation_id),
        }
    }
}

/// Returns the recorded predecessor of an evaluation.
fn follows(evaluation: &Evaluation) -> Option<EvaluationId> {
    evaluation.started_with()?.follows
}
