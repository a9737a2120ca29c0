//! One call: what the model asked for, who decided about it, what ran, and what came of it.
//!
//! The report is collected from the records of the call, so it holds every attempt, also those before a
//! rewind. Content that is too large for its record is loaded.

mod find;
mod print;

use std::sync::Arc;

use backstitch::budget::Amounts;
use backstitch::filesystem::format;
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{
    CallFinished, CallStarted, CallVerdict, Decision, Effect, InnerMessage, PauseReason, Position, Record,
    RecordBody, WorkspaceRoot,
};
use backstitch::message::{Large, OptionResult};
use backstitch::ports::{PathChange, fetch_large};
use backstitch::time::Timestamp;
use backstitch::view::JournalView;
use serde_json::{Value, json};

pub(crate) use print::{cost, duration, money, print};

use super::diff::text_of;
use super::waiting::with_content;
use crate::open::place::OpenStore;
use find::{CallSpan, find_span};

/// Everything that is recorded about a call.
pub(crate) struct CallReport {
    session: SessionId,
    call: CallId,
    name: String,
    /// The turn of the model that asked for the call.
    turn: u64,
    asked_at: Option<Timestamp>,
    /// The arguments of the model.
    asked: Value,
    /// The arguments that ran, if a person edited them.
    edited: Option<Value>,
    effect: Option<Effect>,
    attempts: Vec<Attempt>,
    pauses: Vec<CallPause>,
    decisions: Vec<CallDecision>,
    result: Option<OptionResult>,
    /// The result as the model receives it.
    output: Option<String>,
    steps: Vec<(String, Value)>,
    /// The session of a sub-agent.
    child: Option<SessionId>,
    request: Option<CallRequestCost>,
    charged: Amounts,
    files: Vec<PathChange>,
    /// The roots that `files` compares.
    roots: Option<(WorkspaceRoot, WorkspaceRoot)>,
    /// False for a call before a rewind.
    is_visible: bool,
}

/// One run of a call.
struct Attempt {
    number: u32,
    position: Position,
    started_at: Timestamp,
    finished: Option<(Timestamp, CallFinished)>,
    root: Option<WorkspaceRoot>,
    /// False for an attempt before a rewind.
    is_visible: bool,
}

/// A pause that the call was the reason for.
struct CallPause {
    at: Timestamp,
    reason: PauseReason,
}

/// A decision about the call.
struct CallDecision {
    at: Timestamp,
    decision: Decision,
    by: Option<String>,
}

/// The request whose answer asked for the call. All calls of the answer share it.
struct CallRequestCost {
    provider: String,
    model: String,
    usage: Amounts,
}

impl CallReport {
    /// Collects the report of a call of a session, by the beginning or the end of its id.
    pub(crate) async fn find(place: &OpenStore, view: &JournalView, name: &str) -> anyhow::Result<Self> {
        let span = find_span(&*place.store, view, name).await?;
        let mut report = Self::collect(place, view, &span).await?;
        report.add_files(place)?;
        report.add_request(view);
        Ok(report)
    }

    async fn collect(place: &OpenStore, view: &JournalView, span: &CallSpan) -> anyhow::Result<Self> {
        let call = span.call;
        let known = view.call(call);
        let mut report = Self {
            session: span.session,
            call,
            name: known.map(|known| known.name.clone()).unwrap_or_default(),
            turn: 0,
            asked_at: None,
            asked: Value::Null,
            edited: None,
            effect: None,
            attempts: Vec::new(),
            pauses: Vec::new(),
            decisions: Vec::new(),
            result: None,
            output: None,
            steps: Vec::new(),
            child: None,
            request: None,
            charged: Amounts::ZERO,
            files: Vec::new(),
            roots: None,
            is_visible: known.is_some(),
        };
        let ranges = view.lineage().visible(view.head());
        let is_seen = |position: Position| ranges.iter().any(|range| range.contains(&position));
        let mut reservations = Vec::new();
        for record in &span.records {
            let is_visible = report.session != view.session_id() || is_seen(record.position);
            match &record.body {
                RecordBody::MessageAppended(message) => report.add_message(place, record, message).await?,
                RecordBody::CallStarted(started) if started.call_id == call => {
                    reservations.extend(started.reservation.map(|reservation| reservation.id));
                    report.add_attempt(place, record, started, is_visible).await?;
                }
                RecordBody::CallFinished(finished) if finished.call_id == call => {
                    if let Some(latest) = report.attempts.last_mut() {
                        latest.finished = Some((record.at, (**finished).clone()));
                    }
                }
                RecordBody::StepFinished(step) if step.call_id == call => {
                    report.steps.push((step.name.clone(), step.value.clone()));
                }
                RecordBody::Paused(paused) if paused.call_id == Some(call) => {
                    report.pauses.push(CallPause { at: record.at, reason: paused.reason });
                }
                RecordBody::Resolved(resolved) if resolved.call_id == Some(call) => {
                    let (decision, by) = (resolved.decision.clone(), resolved.by.clone());
                    report.decisions.push(CallDecision { at: record.at, decision, by });
                }
                RecordBody::BudgetCharged(charged)
                    if charged.reservation.is_some_and(|id| reservations.contains(&id)) =>
                {
                    report.charged = report.charged.plus(charged.amounts);
                }
                _ => {}
            }
        }
        Ok(report)
    }

    async fn add_message(
        &mut self,
        place: &OpenStore,
        record: &Record,
        message: &InnerMessage,
    ) -> anyhow::Result<()> {
        let asks = message.message.option_call().is_some_and(|asked| asked.invocation_id == self.call);
        if asks {
            let message = with_content(&*place.store, message).await?;
            if let Some(asked) = message.message.option_call() {
                self.asked = match asked.arguments.object() {
                    Some(object) => Value::Object(object.clone()),
                    // Arguments that are not a JSON object are shown as text.
                    None => Value::String(asked.arguments.text().into_owned()),
                };
                self.name.clone_from(&asked.option_name);
            }
            (self.turn, self.asked_at) = (message.turn, Some(record.at));
        } else if message.tool_call_id() == Some(self.call) {
            let message = with_content(&*place.store, message).await?;
            self.output = Some(message.content());
            self.result = message.message.option_result().cloned();
        }
        Ok(())
    }

    async fn add_attempt(
        &mut self,
        place: &OpenStore,
        record: &Record,
        started: &Arc<CallStarted>,
        is_visible: bool,
    ) -> anyhow::Result<()> {
        let mut started = started.clone();
        fetch_large(&*place.store, &mut started).await?;
        if let Some(arguments) = started.arguments.as_ref().and_then(Large::inline) {
            self.edited = Some(Value::Object(arguments.clone())).filter(|edited| *edited != self.asked);
        }
        self.effect = Some(started.effect);
        self.child = started.session.or(self.child);
        self.attempts.push(Attempt {
            number: started.attempt,
            position: record.position,
            started_at: record.at,
            finished: None,
            root: started.root,
            is_visible,
        });
        Ok(())
    }

    /// Compares the files before and after the latest attempt. Of a failed attempt it is the files as the call
    /// left them, before they were restored.
    fn add_files(&mut self, place: &OpenStore) -> anyhow::Result<()> {
        let Some(latest) = self.attempts.last() else { return Ok(()) };
        let Some((_, finished)) = &latest.finished else { return Ok(()) };
        let after = if self.is_rolled_back() { finished.rescue } else { finished.root };
        let (Some(before), Some(after)) = (latest.root, after) else { return Ok(()) };
        self.files = format::diff(&*place.objects, before, after)?;
        self.roots = Some((before, after));
        Ok(())
    }

    fn add_request(&mut self, view: &JournalView) {
        let Some(call) = view.call(self.call) else { return };
        let Some(evaluation) = view.evaluation(call.evaluation_id) else { return };
        let of_turn =
            evaluation.requests.iter().rev().find(|request| request.started.record.turn == self.turn);
        self.request = of_turn.map(|request| CallRequestCost {
            provider: request.started.record.provider.clone(),
            model: request.started.record.model.clone(),
            usage: request.finished.as_ref().map_or(Amounts::ZERO, |finished| finished.record.usage),
        });
    }

    /// Whether the latest attempt failed, so that its files were restored.
    fn is_rolled_back(&self) -> bool {
        let finished = self.attempts.last().and_then(|attempt| attempt.finished.as_ref());
        finished.is_some_and(|(_, finished)| finished.outcome == CallVerdict::Failed)
    }

    /// Returns a word for the state of the call.
    fn status(&self) -> &'static str {
        match (&self.result, self.attempts.last()) {
            (Some(result), _) if result.is_error => "failed",
            (Some(_), _) => "ok",
            (None, Some(latest)) if latest.finished.is_some() => "ended without a result",
            (None, Some(_)) => "interrupted or running",
            (None, None) => "not started",
        }
    }

    /// Renders the report as JSON. The form is stable, see docs/cli.md.
    pub(crate) fn as_json(&self, place: &OpenStore, with_diff: bool) -> anyhow::Result<Value> {
        let mut files = Vec::new();
        for change in &self.files {
            let mut file = json!({"path": change.path, "change": change.change});
            if with_diff && let Some((before, after)) = self.roots {
                file["diff"] = json!(text_of(place, Some(before), Some(after), change)?);
            }
            files.push(file);
        }
        let attempts: Vec<_> = self.attempts.iter().map(Attempt::as_json).collect();
        let pauses: Vec<_> =
            self.pauses.iter().map(|pause| json!({"at": pause.at, "reason": pause.reason})).collect();
        let decisions =
            self.decisions.iter().map(|one| json!({"at": one.at, "decision": one.decision, "by": one.by}));
        Ok(json!({
            "v": 1, "session": self.session, "call": self.call, "name": self.name, "status": self.status(),
            "visible": self.is_visible, "turn": self.turn, "asked_at": self.asked_at, "arguments": self.asked,
            "edited": self.edited, "effect": self.effect, "attempts": attempts, "pauses": pauses,
            "decisions": decisions.collect::<Vec<_>>(), "output": self.output, "result": self.result,
            "steps": self.steps.iter().map(|(name, value)| json!({"name": name, "value": value})).collect::<Vec<_>>(),
            "sub_agent": self.child, "spent": self.charged,
            "request": self.request.as_ref().map(|request| {
                json!({"provider": request.provider, "model": request.model, "usage": request.usage})
            }),
            "files": files, "rolled_back": self.is_rolled_back(),
        }))
    }
}

impl Attempt {
    fn as_json(&self) -> Value {
        let finished = self.finished.as_ref();
        json!({
            "attempt": self.number, "position": self.position, "visible": self.is_visible,
            "started_at": self.started_at, "finished_at": finished.map(|(at, _)| at),
            "outcome": finished.map(|(_, finished)| finished.outcome),
            "elapsed_micros": finished.map(|(_, finished)| finished.elapsed_micros),
            "rescue": finished.and_then(|(_, finished)| finished.rescue),
            "left_out": finished.map(|(_, finished)| &finished.left_out),
        })
    }
}
