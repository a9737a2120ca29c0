//! One call: what the model asked for, who decided about it, what ran, and its outcome.
//!
//! The report is collected from the records of the call, so it holds every attempt, also those before a rewind. Content that is too
//! large for its record is loaded.

use std::sync::Arc;

use backstitch_runtime::{RuntimeError, arguments_of, with_content};
use serde_json::Value;

use super::call_span::{CallSpan, find_span};
use super::files::changed_files;
use crate::budget::Amounts;
use crate::id::{CallId, ReservationId};
use crate::journal::{
    CallFinished, CallStarted, CallVerdict, InnerMessage, Position, Record, RecordBody, WorkspaceRoot,
};
use crate::message::Large;
use crate::ports::{Store, fetch_large};
use crate::report::{
    CallAttempt, CallDecision, CallPause, CallReport, CallState, CallStep, FileDetail, ModelUsage, Version,
};
use crate::runtime::Runtime;
use crate::view::{Call, JournalView};

impl Runtime {
    /// Reports everything that is recorded about a call of a session, by the beginning or the end of its id, also about one before a
    /// rewind. Fails with [`RuntimeError::NoSuchPoint`] if there is no such call, or several.
    pub async fn call(
        &self,
        view: &JournalView,
        name: &str,
        detail: FileDetail,
    ) -> Result<CallReport, RuntimeError> {
        let store = &*self.store.store;
        let span = find_span(store, view, name).await?;
        let mut found = CallRecords::new(view, &span);
        for record in &span.records {
            found.add(store, view, record).await?;
        }
        found.report.files = changed_files(&*self.store.objects, found.before, found.after, detail)?;
        found.add_request(view);
        let status = status(&found.report);
        Ok(CallReport { status, ..found.report })
    }

    /// Reports about a call of a session or of its sub-agents, and theirs. `None` if no session has such a call.
    pub async fn call_below(
        &self,
        view: JournalView,
        name: &str,
        detail: FileDetail,
    ) -> Result<Option<CallReport>, RuntimeError> {
        let mut views = vec![view];
        while let Some(view) = views.pop() {
            match self.call(&view, name, detail).await {
                Ok(report) => return Ok(Some(report)),
                Err(RuntimeError::NoSuchPoint { .. }) => {}
                Err(error) => return Err(error),
            }
            for child in view.calls().filter_map(Call::session) {
                match self.view(child).await {
                    Ok(view) => views.push(view),
                    // The process crashed before the sub-agent had a journal.
                    Err(RuntimeError::SessionNotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(None)
    }
}

/// The report of a call, while its records are read.
struct CallRecords {
    report: CallReport,
    /// The reservations of its attempts.
    reservations: Vec<ReservationId>,
    /// The files before the latest attempt.
    before: Option<WorkspaceRoot>,
    /// The files after the latest attempt. Of a failed one it is the files as the call left them, before they were restored.
    after: Option<WorkspaceRoot>,
}

impl CallRecords {
    fn new(view: &JournalView, span: &CallSpan) -> Self {
        let known = view.call(span.call);
        let report = CallReport {
            v: Version,
            session: span.session,
            call: span.call,
            name: known.map(|known| known.name.clone()).unwrap_or_default(),
            status: CallState::NotStarted,
            visible: known.is_some(),
            turn: 0,
            asked_at: None,
            arguments: Value::Null,
            edited: None,
            effect: None,
            attempts: Vec::new(),
            pauses: Vec::new(),
            decisions: Vec::new(),
            output: None,
            result: None,
            steps: Vec::new(),
            sub_agent: None,
            spent: Amounts::ZERO,
            request: None,
            files: Vec::new(),
            rolled_back: false,
        };
        Self { report, reservations: Vec::new(), before: None, after: None }
    }

    async fn add(
        &mut self,
        store: &dyn Store,
        view: &JournalView,
        record: &Record,
    ) -> Result<(), RuntimeError> {
        let call = self.report.call;
        let report = &mut self.report;
        match &record.body {
            RecordBody::MessageAppended(message) => add_message(report, store, record, message).await?,
            RecordBody::CallStarted(started) if started.call_id == call => {
                let is_visible = report.session != view.session_id() || is_seen(view, record.position);
                self.start(store, record, started, is_visible).await?;
            }
            RecordBody::CallFinished(finished) if finished.call_id == call => self.finish(record, finished),
            RecordBody::StepFinished(step) if step.call_id == call => {
                report.steps.push(CallStep { name: step.name.clone(), value: step.value.clone() });
            }
            RecordBody::Paused(paused) if paused.call_id == Some(call) => {
                report.pauses.push(CallPause { at: record.at, reason: paused.reason });
            }
            RecordBody::Resolved(resolved) if resolved.call_id == Some(call) => {
                let (decision, by) = (resolved.decision.clone(), resolved.by.clone());
                report.decisions.push(CallDecision { at: record.at, decision, by });
            }
            RecordBody::BudgetCharged(charged)
                if charged.reservation.is_some_and(|id| self.reservations.contains(&id)) =>
            {
                report.spent = report.spent.plus(charged.amounts);
            }
            _ => {}
        }
        Ok(())
    }

    async fn start(
        &mut self,
        store: &dyn Store,
        record: &Record,
        started: &Arc<CallStarted>,
        is_visible: bool,
    ) -> Result<(), RuntimeError> {
        let mut started = started.clone();
        fetch_large(store, &mut started).await?;
        self.reservations.extend(started.reservation.map(|reservation| reservation.id));
        let report = &mut self.report;
        if let Some(arguments) = started.arguments.as_ref().and_then(Large::inline) {
            report.edited =
                Some(Value::Object(arguments.clone())).filter(|edited| *edited != report.arguments);
        }
        report.effect = Some(started.effect);
        report.sub_agent = started.session.or(report.sub_agent);
        report.attempts.push(CallAttempt {
            attempt: started.attempt,
            position: record.position,
            visible: is_visible,
            started_at: record.at,
            finished_at: None,
            outcome: None,
            elapsed_micros: None,
            rescue: None,
            left_out: None,
        });
        (self.before, self.after, report.rolled_back) = (started.root, None, false);
        Ok(())
    }

    fn finish(&mut self, record: &Record, finished: &CallFinished) {
        let Some(latest) = self.report.attempts.last_mut() else { return };
        latest.finished_at = Some(record.at);
        latest.outcome = Some(finished.outcome);
        latest.elapsed_micros = Some(finished.elapsed_micros);
        latest.rescue = finished.rescue;
        latest.left_out = Some(finished.left_out.clone());
        self.report.rolled_back = finished.outcome == CallVerdict::Failed;
        self.after = if self.report.rolled_back { finished.rescue } else { finished.root };
    }

    fn add_request(&mut self, view: &JournalView) {
        let evaluation = view.call(self.report.call).and_then(|call| view.evaluation(call.evaluation_id));
        let Some(evaluation) = evaluation else { return };
        let turn = self.report.turn;
        let of_turn = evaluation.requests.iter().rev().find(|request| request.started.record.turn == turn);
        self.report.request = of_turn.map(|request| ModelUsage {
            provider: request.started.record.provider.clone(),
            model: request.started.record.model.clone(),
            usage: request.finished.as_ref().map_or(Amounts::ZERO, |finished| finished.record.usage),
        });
    }
}

/// Adds the message that asks for the call, or the one that answers it.
async fn add_message(
    report: &mut CallReport,
    store: &dyn Store,
    record: &Record,
    message: &InnerMessage,
) -> Result<(), RuntimeError> {
    let call: CallId = report.call;
    if message.message.option_call().is_some_and(|asked| asked.invocation_id == call) {
        let message = with_content(store, message).await?;
        if let Some(asked) = message.message.option_call() {
            report.name.clone_from(&asked.option_name);
        }
        report.arguments = arguments_of(&message);
        (report.turn, report.asked_at) = (message.turn, Some(record.at));
    } else if message.tool_call_id() == Some(call) {
        let message = with_content(store, message).await?;
        report.output = Some(message.content());
        report.result = message.message.option_result().cloned();
    }
    Ok(())
}

fn is_seen(view: &JournalView, position: Position) -> bool {
    view.lineage().visible(view.head()).iter().any(|range| range.contains(&position))
}

fn status(report: &CallReport) -> CallState {
    match (&report.result, report.attempts.last()) {
        (Some(result), _) if result.is_error => CallState::Failed,
        (Some(_), _) => CallState::Succeeded,
        (None, Some(latest)) if latest.outcome.is_some() => CallState::WithoutResult,
        (None, Some(_)) => CallState::Open,
        (None, None) => CallState::NotStarted,
    }
}
