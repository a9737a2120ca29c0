//! The data that a rewind cuts: state, evaluations, calls, pauses.
//!
//! It uses persistent collections, so that a clone, from which a rewind and a fork start, is cheap, and
//! indexes, so that the cost of applying a record does not depend on the length of the journal.

use std::sync::Arc;

use super::call::{Call, CallStatus};
use super::error::FoldProblem;
use super::evaluation::{Evaluation, Request};
use super::recorded::JournalEntry;
use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{
    Decision, EvaluationStarted, InnerMessage, MessageSlot, ObservationCause, PauseReason, PauseResolved,
    Point, Position, Record, RecordBody, ResourceChanged, Role, SessionCreated, SessionPaused,
    SessionSummary, WorkspaceRevision, place_after, stands_at,
};
use crate::message::Content;
use crate::session::{Items, Slice, SliceMap, SliceOp, SlicePolicy, SnapshotRestoreError};
use crate::text::one_line;
use crate::time::Timestamp;

/// The data that is visible at one position of a journal.
#[derive(Debug, Clone, Default)]
pub(super) struct VisibleState {
    pub(super) state: SliceMap,
    pub(super) evaluations: imbl::Vector<Arc<Evaluation>>,
    pub(super) evaluation_index: imbl::OrdMap<EvaluationId, usize>,
    pub(super) calls: imbl::Vector<Arc<Call>>,
    pub(super) call_index: imbl::OrdMap<CallId, usize>,
    pub(super) pauses: imbl::Vector<Arc<SessionPaused>>,
    /// Time of the last record, and whether the session was driven after it.
    pub(super) last_at: Option<Timestamp>,
    pub(super) is_driven: bool,
    /// Last recorded state of the files.
    pub(super) files: Option<WorkspaceRevision>,
    /// The call that last started to write files.
    pub(super) writer: Option<CallId>,
    /// Whether the files still have to be restored to `files`.
    pub(super) files_are_owed: bool,
    /// The states of snapshotable resources, by stored name.
    pub(super) resources: imbl::OrdMap<String, ResourceStates>,
    /// The number of turns of all evaluations.
    pub(super) turns: u64,
    /// The first thing that a user said, in a line.
    pub(super) mission: Option<Arc<str>>,
    /// The sessions that this one is a fork of, oldest first.
    pub(super) ancestors: imbl::Vector<SessionId>,
}

/// Recorded states of a snapshotable resource.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResourceStates {
    /// First recorded state.
    pub(super) first: Arc<ResourceChanged>,
    /// Latest recorded state.
    pub(super) latest: Arc<ResourceChanged>,
}

impl VisibleState {
    /// Returns the data that a fork of `session` starts from.
    pub(super) fn forked(&self, session: SessionId) -> Self {
        let mut fork = self.clone();
        fork.ancestors.push_back(session);
        (fork.last_at, fork.is_driven) = (None, false);
        // The fork has another directory, where its files are not restored yet.
        fork.files_are_owed = fork.files.is_some();
        fork
    }

    /// Loads the initial state of a session.
    pub(super) fn load(&mut self, created: &SessionCreated) -> Result<(), FoldProblem> {
        for slice in &created.state {
            if self.state.cell(&slice.name).is_some() {
                return Err(SnapshotRestoreError::DuplicateSlice { slice: slice.name.clone() }.into());
            }
            let cell = slice.clone().into_cell()?;
            if slice.name == InnerMessage::NAME {
                let messages: Items<InnerMessage> = cell.items()?;
                let start = Point { session: created.session_id, position: Position::START };
                for message in messages.iter() {
                    self.say(start, message)?;
                }
            } else if cell.policy() != SlicePolicy::Cache {
                self.state.put(slice.name.as_str().into(), Arc::new(cell));
            }
        }
        self.adopt(created)
    }

    /// Applies a record that is not a rewind. On failure everything is unchanged.
    pub(super) fn fold_record(&mut self, session: SessionId, record: &Record) -> Result<(), FoldProblem> {
        self.fold_body(session, record)?;
        // These come from outside, while nobody drives the session.
        let is_foreign = matches!(
            record.body,
            RecordBody::Redacted(_) | RecordBody::ApplyStarted(_) | RecordBody::ApplyFinished(_)
        );
        if !is_foreign {
            self.let_time_pass(record);
        }
        Ok(())
    }

    /// Adds the time since the previous record to the evaluation that is driven. A session that waits for a
    /// decision is not driven, and neither was a session before a record of its resumption.
    fn let_time_pass(&mut self, record: &Record) {
        let (since, was_driven) = (self.last_at.replace(record.at), self.is_driven);
        self.is_driven = self.pauses.is_empty() && !matches!(record.body, RecordBody::SessionStopped(_));
        let is_resumption =
            matches!(record.body, RecordBody::EvaluationResumed(_) | RecordBody::EvaluationStarted(_));
        let Some(since) = since.filter(|_| was_driven && !is_resumption) else { return };
        let passed = record.at.since(since);
        let open = self.evaluations.back().is_some_and(|latest| latest.finished.is_none());
        if open
            && !passed.is_zero()
            && let Some(latest) = self.evaluations.back_mut()
        {
            let latest = Arc::make_mut(latest);
            latest.active = latest.active.saturating_add(passed);
        }
    }

    fn fold_body(&mut self, session: SessionId, record: &Record) -> Result<(), FoldProblem> {
        let point = Point { session, position: record.position };
        match &record.body {
            RecordBody::SessionCreated(_) => return Err(FoldProblem::Beginning),
            RecordBody::MessageAppended(message) => self.say(point, message)?,
            RecordBody::SliceChanged(change) => {
                if change.slice == InnerMessage::NAME {
                    return Err(FoldProblem::TranscriptChanged);
                }
                // A cache is computed again on demand.
                if change.policy != SlicePolicy::Cache {
                    self.state.apply_stored(change)?;
                }
            }
            RecordBody::EvaluationStarted(started) => self.start(point, started)?,
            RecordBody::EvaluationResumed(resumed) => {
                self.edit_evaluation(resumed.evaluation_id)?.resume(resumed);
            }
            RecordBody::RequestStarted(request) => {
                let evaluation = self.edit_evaluation(request.evaluation_id)?;
                evaluation.open_request = Some(request.clone());
                let started = JournalEntry::new(session, record, request);
                evaluation.requests.push_back(Arc::new(Request::new(started)));
            }
            RecordBody::RequestFinished(finished) => {
                let evaluation = self.edit_evaluation(finished.evaluation_id)?;
                let request = evaluation.edit_request(finished.turn)?;
                request.finished = Some(JournalEntry::new(session, record, finished));
            }
            RecordBody::RequestFailed(failed) => {
                let evaluation = self.edit_evaluation(failed.evaluation_id)?;
                let request = evaluation.edit_request(failed.turn)?;
                request.failures.push(JournalEntry::new(session, record, failed));
            }
            RecordBody::EvaluationFinished(finished) => {
                let ended = finished.evaluation_id;
                let evaluation = self.edit_evaluation(ended)?;
                if evaluation.finished.is_some() {
                    return Err(FoldProblem::AlreadyFinished { evaluation: ended });
                }
                evaluation.finished = Some(JournalEntry::new(session, record, finished));
                evaluation.open_request = None;
                self.forget_pauses(|visible, pause| {
                    let call = pause.call_id.and_then(|call| visible.call(call));
                    call.is_some_and(|call| call.evaluation_id == ended)
                });
            }
            RecordBody::CallStarted(started) => {
                let evaluation = started.evaluation_id;
                self.evaluation(evaluation).ok_or(FoldProblem::UnknownEvaluation { evaluation })?;
                let index = self.call_at(started.call_id, evaluation, &started.name);
                let call = self.edit_call(index);
                call.intent = Some(JournalEntry::new(session, record, started));
                call.finished = None;
                (call.decision, call.edit) = (None, None);
                call.files_restored = false;
                if let Some(before) = WorkspaceRevision::of(started.root, started.coverage) {
                    self.files = Some(before);
                    self.writer = Some(started.call_id);
                }
            }
            RecordBody::CallFinished(finished) => {
                let call = self.edit_known_call(finished.call_id)?;
                call.finished = Some(JournalEntry::new(session, record, finished));
                call.processes = imbl::Vector::new();
                let after = call.checkpoint().and_then(|checkpoint| checkpoint.after);
                self.files =
                    after.and_then(|after| WorkspaceRevision::of(after.root, after.coverage)).or(self.files);
            }
            RecordBody::StepFinished(step) => {
                let steps = &mut self.edit_known_call(step.call_id)?.steps;
                steps.insert(step.name.as_str().into(), Arc::new(step.value.clone()));
            }
            RecordBody::ProcessStarted(process) => {
                self.edit_known_call(process.call_id)?.processes.push_back(process.clone());
            }
            RecordBody::Paused(paused) => {
                // A call that a person is asked about again is not approved any more.
                let is_question = paused.reason == PauseReason::Approval && paused.session.is_none();
                let call = paused.call_id.filter(|_| is_question);
                if let Some(index) = call.and_then(|call| self.call_index.get(&call).copied()) {
                    self.edit_call(index).approval = None;
                }
                self.pauses.push_back(paused.clone());
            }
            RecordBody::Resolved(resolved) => {
                let PauseResolved { call_id, .. } = **resolved;
                self.forget_pauses(|_, pause| pause.call_id == call_id);
                if matches!(resolved.decision, Decision::Accept)
                    && let Some(latest) = self.evaluations.back_mut()
                {
                    let latest = Arc::make_mut(latest);
                    latest.accepted = Some(latest.turns);
                }
                if let Some(index) = call_id.and_then(|call| self.call_index.get(&call).copied()) {
                    let call = self.edit_call(index);
                    if resolved.is_approval_of_person() {
                        call.approval = Some(resolved.clone());
                    }
                    if matches!(resolved.decision, Decision::Edit { .. }) {
                        call.edit = Some(resolved.clone());
                    }
                    call.decision = Some(resolved.clone());
                }
            }
            RecordBody::TurnFinished(turn) => {
                let evaluation = turn.evaluation_id;
                self.edit_evaluation(evaluation)?.finished_turns.push_back(turn.clone());
            }
            RecordBody::ProgramStarted(program) => {
                self.edit_evaluation(program.evaluation_id)?.programs.push_back(program.clone());
            }
            RecordBody::TaskFinished(task) => {
                self.edit_evaluation(task.evaluation_id)?.tasks.push_back(task.clone());
            }
            // An observation of files whose restore is pending is recorded, and does not change the target of
            // the restore.
            RecordBody::WorkspaceObserved(observed)
                if self.files_are_owed && observed.cause == ObservationCause::Interrupted => {}
            RecordBody::WorkspaceObserved(observed) => {
                self.files = WorkspaceRevision::of(Some(observed.root), observed.coverage);
                self.files_are_owed = false;
                let writer = self.writer.and_then(|call| self.call_index.get(&call).copied());
                if let Some(index) = writer.filter(|_| observed.cause == ObservationCause::Restored) {
                    let call = self.edit_call(index);
                    let before = call.intent.as_ref().and_then(|intent| intent.record.root);
                    call.files_restored |= before == Some(observed.root);
                }
            }
            RecordBody::ResourceChanged(changed) => {
                let known = self.resources.get(&changed.name).map(|known| known.first.clone());
                let first = known.unwrap_or_else(|| changed.clone());
                self.resources
                    .insert(changed.name.clone(), ResourceStates { first, latest: changed.clone() });
            }
            RecordBody::BudgetCharged(_)
            | RecordBody::Rewound(_)
            | RecordBody::SessionStopped(_)
            | RecordBody::Redacted(_)
            | RecordBody::WorkspaceIsolated(_)
            | RecordBody::ApplyStarted(_)
            | RecordBody::ApplyFinished(_)
            | RecordBody::Note(_) => {}
        }
        Ok(())
    }

    pub(super) fn evaluation(&self, evaluation: EvaluationId) -> Option<&Evaluation> {
        self.evaluations.get(self.place_of(evaluation)?).map(|evaluation| &**evaluation)
    }

    /// Returns the index of an evaluation in the list of evaluations.
    pub(super) fn place_of(&self, evaluation: EvaluationId) -> Option<usize> {
        self.evaluation_index.get(&evaluation).copied()
    }

    pub(super) fn call(&self, call: CallId) -> Option<&Call> {
        self.call_index.get(&call).and_then(|index| self.calls.get(*index)).map(|call| &**call)
    }

    /// Returns the data after a rewind to `prefix`: all of that view, with the current logs. The files are
    /// separate: they have to be restored to `files` if there is one, and are left unchanged otherwise.
    pub(super) fn rewound_to(&self, prefix: &Self, files: Option<WorkspaceRevision>) -> Self {
        let mut visible = prefix.clone();
        // The time between the cut and now was spent on data that is no longer visible.
        (visible.last_at, visible.is_driven) = (self.last_at, false);
        (visible.files, visible.files_are_owed) = match files {
            Some(files) => (Some(files), true),
            None => (self.files, self.files_are_owed),
        };
        // A resource that was registered after the cut is reset to its state at that time, the first recorded
        // one.
        for (name, known) in &self.resources {
            let first = &known.first;
            let state = || ResourceStates { first: first.clone(), latest: first.clone() };
            visible.resources.entry(name.clone()).or_insert_with(state);
        }
        for (name, cell) in self.state.cells().filter(|(_, cell)| cell.policy() == SlicePolicy::Log) {
            visible.state.put(name.clone(), cell.clone());
        }
        visible
    }

    /// Notes that what open calls did was undone with what came later, so that later changes are not theirs.
    pub(super) fn part_from_open_calls(&mut self) {
        let open = self.calls.iter().enumerate().filter(|(_, call)| call.is_open());
        let open: Vec<usize> = open.map(|(index, _)| index).collect();
        for index in open {
            self.edit_call(index).files_restored = true;
        }
    }

    fn start(&mut self, point: Point, started: &Arc<EvaluationStarted>) -> Result<(), FoldProblem> {
        let id = started.evaluation_id;
        match self.edit_evaluation(id) {
            // An evaluation that was loaded with the session is started again.
            Ok(evaluation) if evaluation.start.is_none() => evaluation.begin(started),
            Ok(_) => return Err(FoldProblem::AlreadyStarted { evaluation: id }),
            Err(_) => {
                let mut evaluation = Evaluation::new(id, &started.prompt_ns, &started.prompt_key, point);
                evaluation.begin(started);
                self.add_evaluation(evaluation);
            }
        }
        Ok(())
    }

    /// Adds a message to the transcript, and to its evaluation and call.
    fn say(&mut self, point: Point, message: &Arc<InnerMessage>) -> Result<(), FoldProblem> {
        let id = message.evaluation_id;
        let place = self.state.length::<InnerMessage>();
        let known = self.evaluation(id);
        let there = || {
            // Messages of other evaluations may lie between, so the message is at this index or a later one.
            let from = known?.first_message.saturating_add(usize::try_from(message.sequence).ok()?);
            let later = self.state.range::<InnerMessage>(from..place).ok()?;
            later.into_iter().find(|other| stands_at(other, message))
        };
        match place_after(known.map_or(0, |known| known.messages), message, there)? {
            MessageSlot::Taken => return Ok(()),
            MessageSlot::Next => {}
        }
        let is_new = known.is_none();
        self.state.apply(InnerMessage::POLICY, &SliceOp::Append(message.clone()))?;
        if self.mission.is_none() && message.role() == Role::User {
            self.mission = Some(one_line(&message.content(), SessionSummary::MISSION_LENGTH).into());
        }
        if is_new {
            self.add_evaluation(Evaluation::new(id, &message.prompt_ns, &message.prompt_key, point));
        }
        let evaluation = self.edit_evaluation(id)?;
        if evaluation.messages == 0 {
            evaluation.first_message = place;
        }
        evaluation.messages += 1;
        let new_turns = message.turn.saturating_sub(evaluation.turns);
        if new_turns > 0 {
            evaluation.turns = message.turn;
            evaluation.open_request = None;
        }
        self.turns = self.turns.saturating_add(new_turns);
        match &message.message.content {
            Content::OptionCall(call) => {
                self.call_at(call.invocation_id, id, &call.option_name);
            }
            Content::OptionResult(result) => {
                let index = self.call_at(result.invocation_id, id, &result.option_name);
                self.edit_call(index).result = Some(CallStatus::of(result));
            }
            Content::Parts(_) => {}
        }
        Ok(())
    }

    fn add_evaluation(&mut self, evaluation: Evaluation) {
        self.evaluation_index.insert(evaluation.evaluation_id, self.evaluations.len());
        self.evaluations.push_back(Arc::new(evaluation));
    }

    pub(super) fn edit_evaluation(
        &mut self,
        evaluation: EvaluationId,
    ) -> Result<&mut Evaluation, FoldProblem> {
        let index = self.evaluation_index.get(&evaluation).copied();
        let known = index.and_then(|index| self.evaluations.get_mut(index));
        known.map(Arc::make_mut).ok_or(FoldProblem::UnknownEvaluation { evaluation })
    }

    /// Returns the index of a call in the list of calls; a new call is added.
    fn call_at(&mut self, call: CallId, evaluation: EvaluationId, name: &str) -> usize {
        if let Some(index) = self.call_index.get(&call) {
            return *index;
        }
        let index = self.calls.len();
        self.calls.push_back(Arc::new(Call::new(call, evaluation, name)));
        self.call_index.insert(call, index);
        index
    }

    fn edit_known_call(&mut self, call: CallId) -> Result<&mut Call, FoldProblem> {
        let index = *self.call_index.get(&call).ok_or(FoldProblem::UnknownCall { call })?;
        Ok(self.edit_call(index))
    }

    pub(super) fn edit_call(&mut self, index: usize) -> &mut Call {
        let call = self.calls.get_mut(index).expect("invariant: the index of calls names calls that exist");
        Arc::make_mut(call)
    }

    fn forget_pauses(&mut self, condition: impl Fn(&Self, &SessionPaused) -> bool) {
        if !self.pauses.is_empty() {
            let kept = self.pauses.iter().filter(|pause| !condition(self, pause)).cloned();
            self.pauses = kept.collect();
        }
    }
}
