//! Events of a session, as they are printed.

use std::time::Instant;

use backstitch::host::{RepositoriesChanged, SandboxGap, one_line};
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{self, InnerMessage, PauseReason, RecordBody};
use backstitch::report::RestoredFiles;
use backstitch::slices::ToolInvoked;
use backstitch::tool::Progress;
use backstitch::{LiveKind, Retry, SessionEvent};
use serde_json::json;

use super::{Mode, Role, Screen, Text, end_line, reasoning};
use crate::common::Common;
use crate::history::restores::{self, RestoreCause};
use crate::open::short;
use crate::terminal;

/// What is printed where pieces of a sub-agent's text were missed.
const SUB_AGENT_CUT: &str = "… the rest of this text of a sub-agent was missed; `show` has all of it";

impl Screen {
    /// Prints an event of a session.
    pub(crate) fn show(&self, common: &Common, session: SessionId, event: &SessionEvent) {
        match event {
            SessionEvent::Record(record) => {
                self.note_record(session, &record.body);
                match &record.body {
                    RecordBody::MessageAppended(message) => self.message(session, message),
                    RecordBody::RequestStarted(_) => {
                        self.state().heartbeat.note_request(Instant::now());
                    }
                    RecordBody::RequestFinished(_) => self.state().heartbeat.note_answer(),
                    RecordBody::CallFinished(finished) => self.show_changes(common, session, finished),
                    body => self.invocations(body, None),
                }
                if let Some(restored) = RestoredFiles::of(session, &record.body) {
                    self.event(restores::event(common, &restored));
                    let lines = restores::lines(common, &restored, RestoreCause::Call);
                    lines.iter().for_each(|line| self.status(line));
                }
                if let Some(changed) = RepositoriesChanged::of(&record.body) {
                    let (text, changes) = (changed.text(), &changed.changes);
                    self.event(json!({"v": 1, "event": "repository", "message": text, "changes": changes}));
                    text.lines().for_each(|line| self.status(line));
                }
                if let Some(gap) = SandboxGap::of(&record.body) {
                    self.event(json!({"v": 1, "event": "sandbox", "message": gap.text}));
                    self.status(&format!("the sandbox is not complete: {}", gap.text));
                }
            }
            SessionEvent::Live(event) => match &event.kind {
                LiveKind::Text { turn, text, .. } => self.piece(event.session, *turn, text),
                LiveKind::Reasoning { turn, text, .. } => self.reasoning(event.session, *turn, text),
                LiveKind::Retry(retry) => self.retry(retry),
                LiveKind::Progress { call, progress } => self.progress(*call, progress),
                LiveKind::Output { call, text } => self.output(*call, text),
                LiveKind::SubAgent(record) => {
                    self.note_record(event.session, &record.body);
                    match &record.body {
                        RecordBody::RequestFinished(finished) => {
                            self.end_streamed(event.session, finished.turn);
                        }
                        RecordBody::CallFinished(finished) => {
                            self.show_changes(common, event.session, finished);
                        }
                        body => {
                            let agent = self.state().agents.of(event.session);
                            self.invocations(body, Some(&agent));
                        }
                    }
                }
                _ => {}
            },
            SessionEvent::Missed(count) => {
                let is_cut = {
                    let mut state = self.state();
                    state.continuity.note_gap();
                    state.streamed.take_if(|streamed| streamed.is_begun_outside(session)).is_some()
                };
                if is_cut {
                    self.status_text(&Text::new().add(Role::Dim, SUB_AGENT_CUT));
                }
                self.event(json!({"v": 1, "event": "missed", "count": count}));
            }
            _ => {}
        }
    }

    /// Prints the results of calls that a record holds.
    fn invocations(&self, body: &RecordBody, agent: Option<&str>) {
        let RecordBody::SliceChanged(change) = body else { return };
        change.appended::<ToolInvoked>().iter().for_each(|invoked| self.show_invocation(invoked, agent));
    }

    /// Prints that a request is retried after a backoff.
    fn retry(&self, retry: &Retry) {
        let wait = retry.wait.as_secs_f64();
        self.event(json!({
            "v": 1, "event": "retry", "turn": retry.turn, "attempt": retry.attempt, "seconds": wait,
            "kind": retry.kind, "message": retry.message,
        }));
        let Retry { kind, message, .. } = retry;
        self.status_text(
            &format!("the model did not answer ({kind}): {message}; retrying in {wait:.1} s").into(),
        );
        self.state().heartbeat.note_retry(kind, Instant::now() + retry.wait);
    }

    /// Notes which pieces follow a record. Each attempt of a request starts the text of its answer again.
    fn note_record(&self, session: SessionId, body: &RecordBody) {
        self.state().continuity.note_record(session, body);
        match body {
            RecordBody::RequestStarted(started) => self.end_streamed(session, started.turn),
            RecordBody::RequestFailed(failed) => self.end_streamed(session, failed.turn),
            RecordBody::RequestFinished(finished) => {
                let mut state = self.state();
                state.tokens = state.tokens.saturating_add(finished.usage.total_tokens());
            }
            RecordBody::CallStarted(started) => {
                let mut state = self.state();
                state.agents.note_call(started);
                if started.session.is_some() {
                    state.shown_calls.insert(started.call_id);
                }
                // The start of a call that only reads is recorded with its end.
                if !started.effect.only_reads() || !state.heartbeat.has_call(started.call_id) {
                    state.heartbeat.note_call(started.call_id, &started.name, Instant::now());
                }
            }
            RecordBody::CallFinished(finished) => {
                self.state().heartbeat.end_call(finished.call_id, Instant::now());
            }
            RecordBody::Paused(paused) if paused.reason == PauseReason::Approval => {
                if let Some(call) = paused.call_id {
                    self.state().heartbeat.note_question(call);
                    self.skip_changes(call);
                }
            }
            _ => {}
        }
    }

    /// Ends the text of an answer that streamed.
    fn end_streamed(&self, session: SessionId, turn: u64) {
        let mut state = self.state();
        if state.streamed.take_if(|streamed| streamed.is_of(session, turn)).is_some() {
            end_line(&mut state);
        }
    }

    fn reasoning(&self, session: SessionId, turn: u64, text: &str) {
        if !self.state().continuity.is_answer_whole(session) {
            return;
        }
        self.event(json!({"v": 1, "event": "reasoning", "turn": turn, "text": text}));
        if self.mode == Mode::Terminal && reasoning::is_shown() {
            let mut state = self.state();
            state.heartbeat.touch(Instant::now());
            reasoning::add(&mut state, text);
        }
    }

    /// Prints a piece of an answer, unless pieces before it were missed. Then its record has the rest.
    fn piece(&self, session: SessionId, turn: u64, text: &str) {
        let is_whole = {
            let mut state = self.state();
            let is_whole = state.continuity.is_answer_whole(session);
            state.streamed_text(session, turn).is_cut |= !is_whole;
            is_whole
        };
        if is_whole {
            self.stream(session, turn, text);
        }
    }

    /// Prints text of an answer.
    fn stream(&self, session: SessionId, turn: u64, text: &str) {
        self.event(json!({"v": 1, "event": "text", "turn": turn, "text": text}));
        let mut state = self.state();
        let streamed = state.streamed_text(session, turn);
        let is_new = streamed.text.is_empty();
        streamed.text.push_str(text);
        if self.mode == Mode::Terminal {
            if is_new {
                reasoning::end_line(&mut state);
                if let Some(agent) = state.agents.named(session) {
                    terminal::error_line(&Text::new().add(Role::Dim, format!("{agent}:")));
                }
            }
            state.heartbeat.touch(Instant::now());
            terminal::stream(&mut state.markdown, text);
        }
    }

    /// Prints what was not printed of an answer as it arrived. An answer of which no piece arrived is one event for programs.
    fn show_rest(&self, session: SessionId, turn: u64, text: &str) {
        let rest = {
            let mut state = self.state();
            match state.streamed.take_if(|streamed| streamed.is_of(session, turn)) {
                Some(streamed) => {
                    let rest = streamed.rest(text);
                    // The answer does not begin as it was printed.
                    if streamed.is_cut && !streamed.text.is_empty() && rest.len() == text.len() {
                        end_line(&mut state);
                    }
                    state.streamed = Some(streamed);
                    rest
                }
                None if self.mode == Mode::Json => "",
                None => text,
            }
        };
        if !rest.is_empty() {
            self.stream(session, turn, rest);
        }
    }

    fn message(&self, session: SessionId, message: &InnerMessage) {
        if message.role() != journal::Role::Assistant {
            return;
        }
        self.state().heartbeat.note_answer();
        if let Some(call) = message.message.option_call() {
            let (id, name) = (call.invocation_id, call.option_name.clone());
            self.event(json!({
                "v": 1, "event": "call", "turn": message.turn, "call": id, "name": name,
                "arguments": call.arguments.text(),
            }));
            let start = if terminal::is_plain() { format!("call {name}") } else { format!("> {name}") };
            let end = format!("[{}]", short(id));
            let around = terminal::width(&start) + terminal::width(&end) + 4;
            let arguments = one_line(&call.arguments.text(), terminal::room(around, 70));
            let line = Text::new().add(Role::Accent, start).plain(format!(" {arguments}  "));
            self.status_text(&line.add(Role::Dim, end));
            self.state().heartbeat.note_call(id, &name, Instant::now());
        } else {
            let text = message.content();
            self.show_rest(session, message.turn, &text);
            self.event(json!({"v": 1, "event": "said", "turn": message.turn, "text": text}));
        }
    }

    fn progress(&self, call: CallId, progress: &Progress) {
        let Progress { message, fraction } = progress;
        self.event(json!({
            "v": 1, "event": "progress", "call": call, "text": message, "fraction": fraction,
        }));
        let share = fraction.map(|share| format!(" ({:.0} %)", share * 100.0)).unwrap_or_default();
        self.status_text(&format!("… {message}{share}").into());
    }

    /// Prints output of a running call as it arrives.
    fn output(&self, call: CallId, text: &str) {
        {
            let mut state = self.state();
            if !state.continuity.is_output_whole(call) {
                state.output.forget(call);
                return;
            }
        }
        self.event(json!({"v": 1, "event": "output", "call": call, "text": text}));
        if self.mode == Mode::Terminal && !terminal::is_quiet() {
            let mut state = self.state();
            end_line(&mut state);
            state.heartbeat.touch(Instant::now());
            for line in state.output.visible_lines(call, text) {
                terminal::error_line(&Text::new().add(Role::Dim, format!("  {line}")));
            }
        }
    }
}
