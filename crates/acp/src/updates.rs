//! What an editor sees of a turn while it runs.
//!
//! Text of the model is passed on as it arrives. A reader that is too slow misses pieces: then the record of the answer, which is
//! never missed, has the rest. Each call is announced, started and finished. What a call changed follows with its end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_client_protocol::v1::schema::{
    ContentChunk, Plan as ShownPlan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    ToolCallContent, ToolCallStatus, ToolCallUpdateFields, UsageUpdate,
};
use backstitch::host::{RepositoriesChanged, SandboxGap, describe};
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{CallFinished, CallStarted, CallVerdict, InnerMessage, Record, RecordBody, Role};
use backstitch::report::RestoredFiles;
use backstitch::session::Slice as _;
use backstitch::slices::{Plan, StepStatus};
use backstitch::{LiveKind, Runtime, SessionEvent};

use crate::{calls, diffs};

/// Minimum time between two pieces of the output of one call.
const BETWEEN_OUTPUT: Duration = Duration::from_millis(250);

/// Maximum size of the output of a running call that is shown, in bytes.
const MOST_OUTPUT: usize = 8 * 1024;

/// The updates of a turn.
pub(crate) struct TurnUpdates {
    runtime: Runtime,
    session: SessionId,
    directory: PathBuf,
    /// The context window of the model, in tokens.
    window: Option<u64>,
    /// Text of the current answer that was sent.
    streamed: String,
    /// Whether pieces of the current answer were missed.
    is_cut: bool,
    /// Whether the next message of a user starts the turn, so that the editor has it already.
    awaits_mission: bool,
    calls: HashMap<CallId, ShownCall>,
}

/// A call that the editor sees.
#[derive(Default)]
struct ShownCall {
    started: Option<Arc<CallStarted>>,
    /// Its result, and whether that is an error.
    result: Option<(String, bool)>,
    output: String,
    shown_at: Option<Instant>,
    is_done: bool,
}

impl TurnUpdates {
    pub(crate) fn new(runtime: Runtime, session: SessionId, directory: PathBuf, window: Option<u64>) -> Self {
        let (streamed, calls) = (String::new(), HashMap::new());
        Self { runtime, session, directory, window, streamed, is_cut: false, awaits_mission: false, calls }
    }

    /// Returns what an event changes for the editor.
    pub(crate) async fn of_event(&mut self, event: &SessionEvent) -> Vec<SessionUpdate> {
        match event {
            SessionEvent::Record(record) => self.of_record(record, None).await,
            SessionEvent::Live(event) => {
                let is_own = event.session == self.session;
                match &event.kind {
                    LiveKind::Text { text, .. } if is_own => self.add_piece(text),
                    LiveKind::Reasoning { text, .. } if is_own => vec![thought(text)],
                    LiveKind::Retry(_) => vec![thought(&format!("{}\n", event.kind))],
                    LiveKind::Progress { call, progress } => {
                        let content = vec![ToolCallContent::from(progress.message.clone())];
                        vec![changed_call(*call, ToolCallUpdateFields::new().content(content))]
                    }
                    LiveKind::Output { call, text } => self.add_output(*call, text),
                    LiveKind::SubAgent(record) => self.of_record(record, Some("sub-agent")).await,
                    _ => Vec::new(),
                }
            }
            SessionEvent::Missed(_) => {
                self.is_cut = true;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the end of calls that did not come to theirs, so that none seems to run.
    pub(crate) fn close(&mut self) -> Vec<SessionUpdate> {
        let open = self.calls.iter_mut().filter(|(_, call)| !call.is_done);
        open.map(|(id, call)| {
            call.is_done = true;
            let what = if call.started.is_some() { "It was rolled back." } else { "It did not run." };
            let content = vec![ToolCallContent::from(what)];
            changed_call(*id, ToolCallUpdateFields::new().status(ToolCallStatus::Failed).content(content))
        })
        .collect()
    }

    async fn of_record(&mut self, record: &Record, sub_agent: Option<&str>) -> Vec<SessionUpdate> {
        let mut updates = match &record.body {
            RecordBody::EvaluationStarted(_) if sub_agent.is_none() => {
                self.awaits_mission = true;
                Vec::new()
            }
            RecordBody::RequestStarted(_) if sub_agent.is_none() => {
                (self.streamed, self.is_cut) = (String::new(), false);
                Vec::new()
            }
            RecordBody::RequestFailed(_) if sub_agent.is_none() => {
                self.is_cut = false;
                let was_streamed = !std::mem::take(&mut self.streamed).is_empty();
                let note = was_streamed
                    .then(|| text_chunk("\n\n(The answer broke off, and is asked for again.)\n\n"));
                note.into_iter().collect()
            }
            RecordBody::RequestFinished(finished) if sub_agent.is_none() => {
                let used = finished.usage.total_tokens();
                let usage =
                    self.window.map(|window| SessionUpdate::UsageUpdate(UsageUpdate::new(used, window)));
                usage.filter(|_| used > 0).into_iter().collect()
            }
            RecordBody::MessageAppended(message) => self.of_message(message, sub_agent),
            RecordBody::CallStarted(started) => {
                let call = self.calls.entry(started.call_id).or_default();
                (call.started, call.is_done, call.result) = (Some(started.clone()), false, None);
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                vec![changed_call(started.call_id, fields)]
            }
            RecordBody::CallFinished(finished) => self.finish_call(finished).await,
            RecordBody::SliceChanged(change) if change.slice == Plan::NAME && sub_agent.is_none() => {
                plan_of(&self.runtime, self.session).await.into_iter().collect()
            }
            _ => Vec::new(),
        };
        let is_notable = RestoredFiles::of(self.session, &record.body).is_some()
            || RepositoriesChanged::of(&record.body).is_some()
            || SandboxGap::of(&record.body).is_some();
        if let (true, Some(line)) = (is_notable, describe(record)) {
            updates.push(text_chunk(&format!("\n\n> {}\n\n", line.trim())));
        }
        updates
    }

    fn of_message(&mut self, message: &InnerMessage, sub_agent: Option<&str>) -> Vec<SessionUpdate> {
        if let Some(call) = message.message.option_call() {
            self.calls.entry(call.invocation_id).or_default();
            let arguments = calls::arguments_of(message);
            let subject = (call.option_name.as_str(), &arguments);
            let announced = calls::announced(&self.directory, call.invocation_id, subject, sub_agent);
            return vec![SessionUpdate::ToolCall(announced)];
        }
        if let Some(result) = message.message.option_result() {
            let call = self.calls.entry(result.invocation_id).or_default();
            call.result = Some((message.content(), result.is_error));
            if call.started.is_some() && !call.is_done {
                // The record of its end follows.
                return Vec::new();
            }
            call.is_done = true;
            let fields = calls::finished(status_of(result.is_error), Some(&message.content()), Vec::new());
            return vec![changed_call(result.invocation_id, fields)];
        }
        match message.role() {
            _ if sub_agent.is_some() => Vec::new(),
            Role::User if std::mem::take(&mut self.awaits_mission) => Vec::new(),
            Role::User => vec![SessionUpdate::UserMessageChunk(ContentChunk::new(message.content().into()))],
            Role::Assistant => {
                let text = message.content();
                let rest = rest_of(&self.streamed, self.is_cut, &text);
                let update = (!rest.is_empty()).then(|| text_chunk(rest));
                self.streamed = text;
                update.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn add_piece(&mut self, text: &str) -> Vec<SessionUpdate> {
        if self.is_cut {
            return Vec::new();
        }
        self.streamed.push_str(text);
        vec![text_chunk(text)]
    }

    /// Adds output of a running call, of which the end is shown now and then.
    fn add_output(&mut self, id: CallId, text: &str) -> Vec<SessionUpdate> {
        let call = self.calls.entry(id).or_default();
        call.output.push_str(text);
        if let Some(more) = call.output.len().checked_sub(MOST_OUTPUT) {
            let begin = (more..=call.output.len()).find(|at| call.output.is_char_boundary(*at));
            call.output.drain(..begin.unwrap_or_default());
        }
        if call.is_done || call.shown_at.is_some_and(|shown| shown.elapsed() < BETWEEN_OUTPUT) {
            return Vec::new();
        }
        call.shown_at = Some(Instant::now());
        let content = vec![ToolCallContent::from(calls::fenced(&call.output))];
        vec![changed_call(id, ToolCallUpdateFields::new().content(content))]
    }

    async fn finish_call(&mut self, finished: &CallFinished) -> Vec<SessionUpdate> {
        let call = self.calls.entry(finished.call_id).or_default();
        call.is_done = true;
        let diffs = match &call.started {
            Some(started) => {
                let objects = self.runtime.opened_store().objects.clone();
                diffs::of_finished(objects, &self.directory, started, finished).await
            }
            None => Vec::new(),
        };
        let is_failed = finished.outcome == CallVerdict::Failed;
        let (text, is_error) = match &call.result {
            Some((text, is_error)) => (Some(text.as_str()), *is_error),
            None => (None, is_failed),
        };
        vec![changed_call(finished.call_id, calls::finished(status_of(is_error || is_failed), text, diffs))]
    }
}

/// Returns the plan of a session, if it has one.
pub(crate) async fn plan_of(runtime: &Runtime, session: SessionId) -> Option<SessionUpdate> {
    let state = runtime.state(session).await.ok()?;
    let plan = state.latest::<Plan>().ok()??;
    let entries = plan.steps().iter().map(|step| {
        let status = match step.status {
            StepStatus::Pending => PlanEntryStatus::Pending,
            StepStatus::InProgress => PlanEntryStatus::InProgress,
            StepStatus::Done => PlanEntryStatus::Completed,
        };
        PlanEntry::new(step.title.clone(), PlanEntryPriority::Medium, status)
    });
    Some(SessionUpdate::Plan(ShownPlan::new(entries.collect())))
}

/// Returns the part of a whole answer that was not sent. One that was cut, and does not begin as it was sent, is sent again.
fn rest_of<'a>(streamed: &str, is_cut: bool, whole: &'a str) -> &'a str {
    match whole.strip_prefix(streamed) {
        Some(rest) => rest,
        None if is_cut => whole,
        None => "",
    }
}

pub(crate) fn status_of(is_error: bool) -> ToolCallStatus {
    if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed }
}

/// Returns text of the agent.
pub(crate) fn text_chunk(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(text.to_owned().into()))
}

fn thought(text: &str) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(ContentChunk::new(text.to_owned().into()))
}

fn changed_call(call: CallId, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(calls::update(call, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_an_answer_follows_what_was_sent() {
        assert_eq!(rest_of("", false, "one two"), "one two");
        assert_eq!(rest_of("one", false, "one two"), " two");
        assert_eq!(rest_of("one two", false, "one two"), "");
        assert_eq!(rest_of("one", false, "***"), "", "a text that was replaced when it was recorded");
        assert_eq!(rest_of("one", true, "***"), "***");
    }
}
