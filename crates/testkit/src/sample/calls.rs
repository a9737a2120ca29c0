//! Calls in sample journals: approved or denied, started, interrupted, answered.

use backstitch_core::budget::{Amounts, Reservation};
use backstitch_core::extra::Extra;
use backstitch_core::journal::{
    BudgetCharged, CallFinished, CallStarted, CallVerdict, Decision, Effect, EvaluationOutcome,
    IdempotencyKey, PauseReason, ProcessStarted, ResourceChanged, StepFinished, WorkspaceRoot,
};
use backstitch_core::message::{
    Large, MediaPart, MediaUrl, Message, Modality, OptionCall, OptionResult, OptionResultBuilder, Retry,
};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::session::StoredOp;
use serde_json::{Value, json};

use super::content;
use super::generator::{Generator, OpenCall};
use super::slices::{self, Milestone, Remark, Task};

impl Generator {
    /// Advances the open calls: starts the next one, or ends one that was started. So calls run sequentially
    /// or concurrently, at random, and concurrent calls end in any order.
    pub(super) fn step_call(&mut self) {
        if self.one_in(self.shape.cancellations) {
            self.finish(EvaluationOutcome::Cancelled);
            return self.commit();
        }
        let calls = &self.running().calls;
        let next = calls.iter().position(|call| call.attempts == 0);
        let started: Vec<usize> = (0..calls.len()).filter(|&index| calls[index].attempts > 0).collect();
        match next {
            Some(next) if started.is_empty() || self.rng.below(2) == 0 => self.begin_call(next),
            _ => {
                let index = started[self.rng.below(started.len() as u64) as usize];
                self.end_call(index);
            }
        }
    }

    /// Starts a call, unless its arguments do not parse or it has to be approved first.
    fn begin_call(&mut self, index: usize) {
        let call = self.open_call(index);
        let payload = payload(&call.message);
        if !payload.arguments.is_parsable() {
            let message = "the arguments are not JSON";
            return self.answer_as_runtime(index, "invalid_arguments", message, Retry::Allowed);
        }
        if !call.approved && self.one_in(self.shape.pauses) {
            return self.pause(PauseReason::Approval, Some(payload.invocation_id));
        }
        self.start_call(index);
        // Intents of calls that start together may share a batch; most become durable before the next.
        if self.rng.below(3) > 0 {
            self.commit();
        }
    }

    fn start_call(&mut self, index: usize) {
        let call = self.open_call(index);
        let payload = payload(&call.message);
        let effect = effect_of(&payload.option_name);
        let root = self.workspace_of(effect);
        // Most roots cover everything.
        let coverage = root.filter(|_| self.rng.below(4) == 0).map(|_| self.coverage());
        let amounts = Amounts { calls: 1, ..Amounts::ZERO };
        let reservation = (self.rng.below(2) == 0).then(|| Reservation { id: self.ids.next(), amounts });
        let evaluation_id = self.running().id;
        let edited = call.approved && self.rng.below(2) == 0;
        let attempt = call.attempts + 1;
        self.boundaries.push(self.position());
        self.edit_call(index, |call| {
            call.attempts = attempt;
            call.reservation = reservation;
        });
        self.push(CallStarted {
            call_id: payload.invocation_id,
            evaluation_id,
            name: payload.option_name.clone(),
            arguments: edited.then(|| json!({ "path": "src/edited.rs" })).and_then(object).map(Large::Inline),
            effect,
            idempotency_key: IdempotencyKey::new(self.session, payload.invocation_id),
            attempt,
            root,
            coverage,
            reservation,
            session: None,
            extra: Extra::default(),
        });
        if effect == Effect::External {
            self.push(ProcessStarted {
                call_id: payload.invocation_id,
                program: payload.option_name.clone(),
                group: 4_711,
                started: format!("16302{attempt}"),
                boot: "0f1c7a9e-58a5-4c1a-9a3c-2f6d8f1f3a52".into(),
                extra: Extra::default(),
            });
        }
        // A call that runs again makes more progress than before.
        if attempt > 1 {
            let name = format!("step {attempt}");
            self.push(StepFinished::new(payload.invocation_id, name, json!(attempt)));
        }
    }

    /// Ends a call that was started: it may be interrupted first, and then it succeeds or fails.
    fn end_call(&mut self, index: usize) {
        let call = self.open_call(index);
        let payload = payload(&call.message);
        if call.attempts < 3 && self.one_in(self.shape.crashes) {
            return match effect_of(&payload.option_name) {
                Effect::External => self.pause(PauseReason::EffectUnknown, Some(payload.invocation_id)),
                _ => self.start_call(index),
            };
        }
        if self.one_in(self.shape.failures) {
            self.fail_call(index);
        } else {
            self.succeed_call(index);
        }
    }

    fn succeed_call(&mut self, index: usize) {
        let call = self.open_call(index);
        if self.rng.below(4) > 0 {
            let (op, tasks) = slices::change_tasks(&mut self.rng, self.here.tasks);
            self.here.tasks = tasks;
            self.push(slices::stored::<Task>(op));
        }
        if self.rng.below(4) == 0 {
            let change = slices::change_unknown(&mut self.rng);
            self.push(change);
        }
        if self.rng.below(6) == 0 {
            let item = json!({ "name": content::word(&mut self.rng) });
            self.push(slices::stored::<Milestone>(StoredOp::Append(item)));
        }
        self.log();

        let mut builder = response(&call.message);
        let result = if self.one_in(self.shape.large) {
            Value::String(content::large_text(&mut self.rng))
        } else {
            json!({ "lines": self.rng.below(500), "text": content::sentence(&mut self.rng, 10) })
        };
        if self.rng.below(10) == 0 {
            let image = Object::blob(content::sentence(&mut self.rng, 30).into_bytes());
            builder.with_parts(vec![MediaPart::new(Modality::Image, MediaUrl::blob(image.id())).into()]);
            self.add_objects(vec![image]);
        }
        let result = builder.success(result);
        let root = self.workspace_of(effect_of(&payload(&call.message).option_name));
        self.answer(index, result, Some((CallVerdict::Succeeded, root)));
    }

    fn fail_call(&mut self, index: usize) {
        let call = self.open_call(index);
        self.log();
        let text = content::sentence(&mut self.rng, 8);
        let result = response(&call.message).error("tool_error", text, Retry::Refused);
        let rescue = self.workspace_of(effect_of(&payload(&call.message).option_name));
        self.answer(index, result, Some((CallVerdict::Failed, rescue)));
    }

    /// Records an error as the runtime, for a call that did not run or that a decision ended.
    fn answer_as_runtime(&mut self, index: usize, kind: &str, text: &str, retry: Retry) {
        let call = self.open_call(index);
        let result = response(&call.message).as_runtime().error(kind, text, retry);
        let outcome = (call.attempts > 0).then_some((CallVerdict::Failed, None));
        self.answer(index, result, outcome);
    }

    /// Records the result of a call, and its outcome when it was started.
    fn answer(
        &mut self,
        index: usize,
        result: Message,
        outcome: Option<(CallVerdict, Option<WorkspaceRoot>)>,
    ) {
        let call = self.running().calls.remove(index);
        self.say(result, None);
        if let Some((outcome, root)) = outcome {
            if let Some(reservation) = call.reservation {
                self.push(BudgetCharged::new(Some(reservation.id), reservation.amounts));
            }
            let failed = outcome == CallVerdict::Failed;
            let elapsed_micros = self.rng.below(3_000_000);
            let summary = Some(content::sentence(&mut self.rng, 3));
            // One successful call in three has changed a resource.
            if !failed && elapsed_micros.is_multiple_of(3) {
                self.push(ResourceChanged::new("spool", json!({ "metres": elapsed_micros })));
            }
            self.push(CallFinished {
                root: root.filter(|_| !failed),
                rescue: root.filter(|_| failed),
                elapsed_micros,
                summary,
                ..CallFinished::new(payload(&call.message).invocation_id, outcome)
            });
            self.boundaries.push(self.position());
        }
        // The outcome of one call and the intent of the next may share a batch.
        if self.rng.below(3) > 0 {
            self.commit();
        }
    }

    /// Resolves the pause of the session.
    pub(super) fn resolve(&mut self) {
        let Some((reason, call_id)) = self.here.paused else { return };
        let calls = self.here.running.as_ref().map_or(&[][..], |running| &running.calls);
        let waiting = |call: &OpenCall| Some(payload(&call.message).invocation_id) == call_id;
        let index = calls.iter().position(waiting);
        let Some(index) = index else {
            self.add_resolution(call_id, Decision::Continue);
            return self.commit();
        };
        let why = Some("too dear".to_owned());
        match (reason, self.rng.below(3)) {
            (PauseReason::Approval, 0) => {
                self.add_resolution(call_id, Decision::Deny { reason: why });
                self.answer_as_runtime(index, "denied", "too dear", Retry::Refused);
            }
            (PauseReason::Approval, choice) => {
                let arguments = object(json!({ "path": "src/edited.rs" })).unwrap_or_default();
                let edit = Decision::Edit { arguments };
                self.edit_call(index, |call| call.approved = true);
                self.add_resolution(call_id, if choice == 1 { Decision::Approve } else { edit });
            }
            (_, 0) => {
                self.add_resolution(call_id, Decision::Retry);
                self.start_call(index);
            }
            (_, 1) => {
                self.add_resolution(call_id, Decision::Fail { reason: why });
                self.answer_as_runtime(index, "effect_unknown", "nobody knows", Retry::Refused);
            }
            _ => {
                let call = payload(&self.open_call(index).message).clone();
                let found = json!("found it done");
                let result = OptionResult::new(call.invocation_id, call.option_name, found.clone());
                self.add_resolution(call_id, Decision::Happened { result: Box::new(result) });
                let result = response(&self.open_call(index).message).success(found);
                self.answer(index, result, Some((CallVerdict::Succeeded, None)));
            }
        }
        self.commit();
    }

    fn log(&mut self) {
        if self.rng.below(2) == 0 {
            let op = slices::change_remarks(&mut self.rng);
            self.push(slices::stored::<Remark>(op));
        }
    }

    /// The workspace, for calls that may write; its objects are added to the batch.
    fn workspace_of(&mut self, effect: Effect) -> Option<WorkspaceRoot> {
        if effect != Effect::Workspace {
            return None;
        }
        let (root, objects) = content::workspace(&mut self.rng);
        self.add_objects(objects);
        Some(root)
    }

    /// The coverage of a root, in the format of a workspace; its object is added to the batch.
    fn coverage(&mut self) -> ObjectId {
        let object = Object::blob(*br#"{"v":1,"uncovered":[["target","ignored_budget"]]}"#);
        let id = object.id();
        self.add_objects(vec![object]);
        id
    }

    fn open_call(&mut self, index: usize) -> OpenCall {
        self.running().calls[index].clone()
    }

    fn edit_call(&mut self, index: usize, edit: impl FnOnce(&mut OpenCall)) {
        edit(&mut self.running().calls[index]);
    }
}

fn effect_of(option: &str) -> Effect {
    match option {
        "read_file" | "search" => Effect::Pure,
        "write_file" => Effect::Workspace,
        "measure" => Effect::Idempotent,
        _ => Effect::External,
    }
}

fn payload(message: &Message) -> &OptionCall {
    message.option_call().expect("an open call is a call")
}

fn response(call: &Message) -> OptionResultBuilder {
    OptionResultBuilder::response_to(call).expect("an open call is a call")
}

fn object(value: Value) -> Option<serde_json::Map<String, Value>> {
    value.as_object().cloned()
}
