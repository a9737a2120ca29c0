//! The rest of the [`Writer`]: calls, budgets, slices, pauses and rewinds.

use super::*;

impl Writer {
    /// Records the intent of a call, with a workspace root named after the attempt.
    pub(crate) fn start_call(&mut self, evaluation: EvaluationId, id: CallId) -> Position {
        self.start_call_with(evaluation, id, None)
    }

    pub(crate) fn start_call_with(
        &mut self,
        evaluation: EvaluationId,
        id: CallId,
        reservation: Option<Reservation>,
    ) -> Position {
        let session = self.session;
        let running = self.running(evaluation);
        let attempt = running.pending.iter().find(|call| call.id == id).map_or(1, |call| call.attempts + 1);
        let position = self.push(CallStarted {
            call_id: id,
            evaluation_id: evaluation,
            name: "search".into(),
            arguments: None,
            effect: Effect::Workspace,
            idempotency_key: IdempotencyKey::new(session, id),
            attempt,
            root: Some(root(&format!("before {attempt}"))),
            coverage: None,
            reservation,
            session: None,
            extra: Extra::default(),
        });
        if let Some(call) = self.running(evaluation).pending.iter_mut().find(|call| call.id == id) {
            call.attempts = attempt;
        }
        position
    }

    /// Records the outcome of a call: its result and its end.
    pub(crate) fn finish_call(
        &mut self,
        evaluation: EvaluationId,
        id: CallId,
        outcome: CallVerdict,
    ) -> Position {
        let message = match outcome {
            CallVerdict::Succeeded => result(id, "found".into()),
            CallVerdict::Failed => failure(id, "it broke"),
        };
        self.say(evaluation, message);
        self.push(CallFinished {
            root: (outcome == CallVerdict::Succeeded).then(|| root("after")),
            rescue: (outcome == CallVerdict::Failed).then(|| root("rescue")),
            elapsed_micros: 7,
            summary: Some("found".into()),
            ..CallFinished::new(id, outcome)
        })
    }

    pub(crate) fn request(&mut self, evaluation: EvaluationId, reservation: Option<Reservation>) -> Position {
        let turn = self.running(evaluation).turns + 1;
        self.push(RequestStarted {
            evaluation_id: evaluation,
            turn,
            provider: "acme".into(),
            model: "acme-1".into(),
            digest: None,
            length: 12,
            renderer: None,
            reservation,
            extra: Extra::default(),
        })
    }

    pub(crate) fn fail_request(
        &mut self,
        evaluation_id: EvaluationId,
        turn: u64,
        attempt: u32,
        then: AfterFailure,
    ) -> Position {
        let failed = RequestFailed::new(evaluation_id, turn, "rate_limited", "too many requests");
        self.push(RequestFailed { attempt, then, ..failed })
    }

    pub(crate) fn reservation(&mut self, amounts: Amounts) -> Reservation {
        Reservation { id: self.id(), amounts }
    }

    pub(crate) fn charge(&mut self, reservation: Option<ReservationId>, amounts: Amounts) -> Position {
        self.push(BudgetCharged::new(reservation, amounts))
    }

    pub(crate) fn change<S: Slice>(&mut self, op: StoredOp) -> Position {
        let (slice, policy) = (S::NAME.to_owned(), S::POLICY);
        let position = self.push(StoredChange {
            slice,
            version: S::VERSION,
            policy,
            op: op.clone(),
            extra: Extra::default(),
        });
        let length = if policy == SlicePolicy::Log { &mut self.trace } else { &mut self.now.tally };
        *length = match op {
            StoredOp::Append(_) => *length + 1,
            StoredOp::Extend(items) => *length + items.len(),
            StoredOp::Patch { remove, append } => *length - remove.len() + append.len(),
            StoredOp::Replace(items) => items.len(),
            StoredOp::Clear => 0,
        };
        position
    }

    pub(crate) fn pause(&mut self, reason: PauseReason, call_id: Option<CallId>) -> Position {
        let position = self.push(SessionPaused { call_id, ..SessionPaused::new(reason) });
        self.now.pauses.push(call_id);
        position
    }

    pub(crate) fn note(&mut self, text: &str) -> Position {
        self.push(Note::new("test", text))
    }

    pub(crate) fn rewind(&mut self, to: Position) -> Position {
        let position = self.push(SessionRewound::new(to));
        if let Some((standing, _)) = self.before.get(to.number() as usize) {
            self.now = standing.clone();
        }
        position
    }

    pub(crate) fn view(&self) -> JournalView {
        JournalView::fold(&self.records).unwrap()
    }
}
