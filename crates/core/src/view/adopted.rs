//! Provenance of an adopted conversation, and of the session's own snapshots.
//!
//! It is unknown whether a call that was pending in an export was started after the export. It keeps its
//! identity, and counts as a call that may have run.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::call::{Call, CallStatus};
use super::error::FoldProblem;
use super::evaluation::Evaluation;
use super::fold::JournalView;
use super::recorded::JournalEntry;
use super::visible::VisibleState;
use crate::extra::Extra;
use crate::id::{CallId, SessionId};
use crate::journal::{
    CallStarted, CarriedCall, CarriedEvaluation, EvaluationStarted, IdempotencyKey, Origin, Point, Position,
    Provenance, SessionCreated,
};
use crate::session::{CarriedProvenance, ProvenanceSource, Session};

impl VisibleState {
    /// Loads the provenance of the conversation that a session starts with.
    pub(super) fn adopt(&mut self, created: &SessionCreated) -> Result<(), FoldProblem> {
        if matches!(created.origin, Origin::Fork { .. }) {
            return Ok(());
        }
        let adopted = created.adopted.as_deref();
        for carried in adopted.into_iter().flat_map(|adopted| &adopted.evaluations) {
            self.edit_evaluation(carried.evaluation_id)?.adopt(carried, created);
        }
        // Sessions that were adopted before exports carried their origin have derived keys from their own id.
        let origin = adopted.map_or(created.session_id, |adopted| adopted.session);
        let known: HashMap<CallId, &CarriedCall> = adopted
            .into_iter()
            .flat_map(|adopted| adopted.calls.iter().map(|call| (call.call_id, call)))
            .collect();
        let pending: Vec<(usize, CallId)> = self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| call.status() == CallStatus::Pending)
            .map(|(index, call)| (index, call.call_id))
            .collect();
        for (index, id) in pending {
            let carried = known.get(&id).map(|call| CarriedCall::clone(call));
            let carried = carried.unwrap_or_else(|| CarriedCall::new(id, origin));
            let call = self.edit_call(index);
            let steps = carried.steps.iter();
            call.steps =
                steps.map(|(name, value)| (Arc::from(name.as_str()), Arc::new(value.clone()))).collect();
            call.adopted = Some(Arc::new(carried));
        }
        Ok(())
    }
}

impl Evaluation {
    fn adopt(&mut self, carried: &CarriedEvaluation, created: &SessionCreated) {
        self.programs = carried.programs.iter().cloned().collect();
        self.tasks = carried.tasks.iter().cloned().collect();
        self.finished_turns = carried.turns.iter().cloned().collect();
        let point = Point { session: created.session_id, position: Position::START };
        self.finished =
            carried.finished.clone().map(|record| JournalEntry { point, at: created.created_at, record });
        self.decider = carried.started.as_ref().and_then(|started| started.decider.clone());
        self.adopted_start = carried.started.clone();
    }
}

impl JournalView {
    /// Returns the key under which a call's effect must happen at most once. A call that was started keeps its key,
    /// and so does an adopted call.
    pub fn idempotency_key(&self, call: CallId) -> IdempotencyKey {
        let known = self.call(call);
        if let Some(intent) = known.and_then(|known| known.latest_intent()) {
            return intent.idempotency_key.clone();
        }
        let adopted = known.and_then(|known| known.adopted.as_ref());
        IdempotencyKey::new(adopted.map_or(self.session_id(), |adopted| adopted.origin), call)
    }

    /// Returns the provenance for exports of the session.
    pub fn provenance(&self) -> Provenance {
        self.source()()
    }

    /// The provenance that the transcript and snapshots carry.
    pub(super) fn carried(&self) -> CarriedProvenance {
        CarriedProvenance::Live(self.source())
    }

    /// Makes snapshots of a session carry the provenance of this view.
    pub fn attach_to(&self, session: &mut Session) {
        session.attach(self.source());
    }

    /// Returns the source of the provenance. It shares the data of the view, so creating it is cheap.
    fn source(&self) -> ProvenanceSource {
        let session = self.session_id();
        let (evaluations, calls) = (self.visible.evaluations.clone(), self.visible.calls.clone());
        Arc::new(move || {
            let evaluations = evaluations.iter().filter(|evaluation| evaluation.messages > 0);
            let calls = calls.iter().filter(|call| call.status() == CallStatus::Pending);
            Provenance {
                session,
                evaluations: evaluations.map(|evaluation| carried_evaluation(evaluation)).collect(),
                calls: calls.filter_map(|call| carried_call(call, session)).collect(),
                extra: Extra::default(),
            }
        })
    }
}

fn carried_evaluation(evaluation: &Evaluation) -> CarriedEvaluation {
    CarriedEvaluation {
        evaluation_id: evaluation.evaluation_id,
        started: evaluation.started_with().map(|started| {
            // The last policy that decided is the current one.
            let decider = evaluation.decider.clone();
            // Files stay behind.
            let started = EvaluationStarted::clone(started);
            Arc::new(EvaluationStarted { decider, directory: None, excludes: None, ..started })
        }),
        finished: evaluation.finished.as_ref().map(|finished| finished.record.clone()),
        programs: evaluation.programs.iter().cloned().collect(),
        tasks: evaluation.tasks.iter().cloned().collect(),
        turns: evaluation.finished_turns.iter().cloned().collect(),
        extra: Extra::default(),
    }
}

fn carried_call(call: &Call, session: SessionId) -> Option<CarriedCall> {
    if call.intent.is_none() && call.adopted.is_none() {
        return None;
    }
    // Files, budget and the child session are not exported.
    let started = call.intent.as_ref().map(|intent| {
        Arc::new(CallStarted {
            root: None,
            coverage: None,
            reservation: None,
            session: None,
            ..CallStarted::clone(&intent.record)
        })
    });
    Some(CarriedCall {
        call_id: call.call_id,
        origin: call.adopted.as_ref().map_or(session, |adopted| adopted.origin),
        started: started.or_else(|| call.adopted.as_ref()?.started.clone()),
        steps: call.steps.iter().map(|(name, value)| (name.to_string(), Value::clone(value))).collect(),
        extra: call.adopted.as_ref().map(|adopted| adopted.extra.clone()).unwrap_or_default(),
    })
}
