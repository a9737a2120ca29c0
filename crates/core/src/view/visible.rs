//! What a rewind cuts: state, evaluations, calls, a pause.
//!
//! All of it is kept in persistent collections, so that a clone, which is what a rewind and a fork start from, is cheap.

use std::sync::Arc;

use super::call::{Call, CallStatus};
use super::evaluation::Evaluation;
use super::fold::FoldProblem;
use crate::id::{CallId, EvaluationId};
use crate::journal::{InnerMessage, Paused, Place, Position, Record, RecordBody, place};
use crate::message::Content;
use crate::session::{Items, Slice, SliceOp, SlicePolicy, SnapshotRestoreError, State, StoredSlice};

/// What is visible at one place of a journal.
#[derive(Debug, Clone, Default)]
pub(super) struct Visible {
    pub(super) state: State,
    pub(super) evaluations: imbl::Vector<Arc<Evaluation>>,
    pub(super) calls: imbl::Vector<Arc<Call>>,
    call_index: imbl::OrdMap<CallId, usize>,
    pub(super) pause: Option<Arc<Paused>>,
}

impl Visible {
    /// Loads the initial state of a session.
    pub(super) fn load(&mut self, slices: &[StoredSlice]) -> Result<(), FoldProblem> {
        for slice in slices {
            let cell = slice.clone().into_cell()?;
            if slice.name == InnerMessage::NAME {
                let messages: Items<InnerMessage> = cell.items()?;
                for message in messages.iter() {
                    self.say(Position::START, message.clone())?;
                }
                continue;
            }
            if cell.policy() == SlicePolicy::Cache {
                continue;
            }
            if self.state.cell(&slice.name).is_some() {
                return Err(SnapshotRestoreError::DuplicateSlice { slice: slice.name.clone() }.into());
            }
            self.state.put(slice.name.as_str().into(), Arc::new(cell));
        }
        Ok(())
    }

    /// Takes in a visible record. After an error everything is as before.
    pub(super) fn take_in(&mut self, record: &Record) -> Result<(), FoldProblem> {
        let position = record.position;
        match &record.body {
            RecordBody::MessageAppended(message) => {
                self.say(position, Arc::new(InnerMessage::clone(message)))?;
            }
            RecordBody::SliceChanged(change) => {
                if change.slice == InnerMessage::NAME {
                    return Err(FoldProblem::TranscriptChanged);
                }
                // A cache is computed again where it is needed.
                if change.policy != SlicePolicy::Cache {
                    self.state.apply_stored(change)?;
                }
            }
            RecordBody::EvaluationStarted(started) => {
                let (ns, key) = (&started.prompt_ns, &started.prompt_key);
                let mut evaluation = Evaluation::new(started.evaluation_id, ns, key, position);
                evaluation.start = Some(Arc::new((**started).clone()));
                self.evaluations.push_back(Arc::new(evaluation));
            }
            RecordBody::RequestStarted(request) => {
                let evaluation = self.evaluation(request.evaluation_id)?;
                evaluation.open_request = Some(Arc::new((**request).clone()));
            }
            RecordBody::EvaluationFinished(finished) => {
                let evaluation = self.evaluation(finished.evaluation_id)?;
                evaluation.finished = Some((position, Arc::new((**finished).clone())));
                evaluation.open_request = None;
            }
            RecordBody::CallStarted(started) => {
                let index = self.call_at(started.call_id, started.evaluation_id, &started.name);
                self.edit_call(index).intent = Some((position, Arc::new((**started).clone())));
            }
            RecordBody::CallFinished(finished) => {
                let unknown = FoldProblem::UnknownCall { call: finished.call_id };
                let index = *self.call_index.get(&finished.call_id).ok_or(unknown)?;
                self.edit_call(index).finished = Some((position, record.at, Arc::new((**finished).clone())));
            }
            RecordBody::Paused(paused) => self.pause = Some(Arc::new((**paused).clone())),
            RecordBody::Resolved(_) => self.pause = None,
            RecordBody::SessionCreated(_)
            | RecordBody::BudgetCharged(_)
            | RecordBody::Rewound(_)
            | RecordBody::TurnFinished(_)
            | RecordBody::Note(_) => {}
        }
        Ok(())
    }

    pub(super) fn call(&self, call: CallId) -> Option<&Call> {
        self.call_index.get(&call).and_then(|index| self.calls.get(*index)).map(|call| &**call)
    }

    /// What is visible after going back to `prefix`: all of it, and the logs as they are here.
    pub(super) fn rewound_to(&self, prefix: &Self) -> Self {
        let mut visible = prefix.clone();
        for (name, cell) in self.state.cells().filter(|(_, cell)| cell.policy() == SlicePolicy::Log) {
            visible.state.put(name.clone(), cell.clone());
        }
        visible
    }

    /// Adds a message to the transcript, and to the evaluation and the call that it belongs to.
    fn say(&mut self, position: Position, message: Arc<InnerMessage>) -> Result<(), FoldProblem> {
        match place(&self.state.items()?, &message)? {
            Place::Taken => return Ok(()),
            Place::Next => {}
        }
        self.state.apply(InnerMessage::POLICY, &SliceOp::Append(message.clone()))?;
        if self.evaluation(message.evaluation_id).is_err() {
            let (ns, key) = (&message.prompt_ns, &message.prompt_key);
            let evaluation = Evaluation::new(message.evaluation_id, ns, key, position);
            self.evaluations.push_back(Arc::new(evaluation));
        }
        let evaluation = self.evaluation(message.evaluation_id)?;
        evaluation.messages += 1;
        if message.turn > evaluation.turns {
            evaluation.turns = message.turn;
            evaluation.open_request = None;
        }
        match &message.message.content {
            Content::OptionCall(call) => {
                self.call_at(call.invocation_id, message.evaluation_id, &call.option_name);
            }
            Content::OptionResult(result) => {
                let index = self.call_at(result.invocation_id, message.evaluation_id, &result.option_name);
                self.edit_call(index).result =
                    Some(if result.is_error { CallStatus::Failed } else { CallStatus::Completed });
            }
            Content::Parts(_) => {}
        }
        Ok(())
    }

    fn evaluation(&mut self, evaluation: EvaluationId) -> Result<&mut Evaluation, FoldProblem> {
        let index = self.evaluations.iter().rposition(|one| one.evaluation_id == evaluation);
        let known = index.and_then(|index| self.evaluations.get_mut(index));
        known.map(Arc::make_mut).ok_or(FoldProblem::UnknownEvaluation { evaluation })
    }

    /// The place of a call in the list of calls; it is added when it is new.
    fn call_at(&mut self, call: CallId, evaluation: EvaluationId, name: &str) -> usize {
        if let Some(index) = self.call_index.get(&call) {
            return *index;
        }
        let index = self.calls.len();
        self.calls.push_back(Arc::new(Call::new(call, evaluation, name)));
        self.call_index.insert(call, index);
        index
    }

    fn edit_call(&mut self, index: usize) -> &mut Call {
        let call = self.calls.get_mut(index).expect("invariant: the index of calls names calls that exist");
        Arc::make_mut(call)
    }
}
