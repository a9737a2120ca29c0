//! Events of a session, as they are printed.

use std::time::{Duration, Instant};

use backstitch::host::{RepositoriesChanged, SandboxGap, one_line};
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{self, InnerMessage, RecordBody};
use backstitch::report::RestoredFiles;
use backstitch::slices::ToolInvoked;
use backstitch::tool::Progress;
use backstitch::{LiveKind, Retry, SessionEvent};
use serde_json::json;

use super::{Mode, Role, Screen, Text, end_line};
use crate::common::Common;
use crate::history::restores::{self, RestoreCause};
use crate::look::tool_result::{KnownResult, result_line};
use crate::open::short;
use crate::terminal::{self, MarkdownStream};

/// Time of a call from which it is printed with the result.
const LONG: Duration = Duration::from_secs(1);

impl Screen {
    /// Prints an event of a session.
    pub(crate) fn show(&self, common: &Common, session: SessionId, event: &SessionEvent) {
        match event {
            SessionEvent::Record(record) => {
                match &record.body {
                    RecordBody::MessageAppended(message) => self.message(message),
                    RecordBody::RequestStarted(_) => {
                        self.state().heartbeat.note_request(Instant::now());
                    }
                    RecordBody::RequestFinished(_) => self.state().heartbeat.note_answer(),
                    body => self.invocations(body),
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
                LiveKind::Text { turn, text, .. } => self.piece("text", *turn, text),
                LiveKind::Reasoning { turn, text, .. } => self.piece("reasoning", *turn, text),
                LiveKind::Retry(retry) => self.retry(retry),
                LiveKind::Progress { call, progress } => self.progress(*call, progress),
                LiveKind::Output { call, text } => self.output(*call, text),
                LiveKind::SubAgent(record) => self.invocations(&record.body),
                _ => {}
            },
            _ => {}
        }
    }

    /// Prints the results of calls that a record holds.
    fn invocations(&self, body: &RecordBody) {
        let RecordBody::SliceChanged(change) = body else { return };
        change.appended::<ToolInvoked>().iter().for_each(|invoked| self.show_invocation(invoked));
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
    }

    fn piece(&self, kind: &str, turn: u64, text: &str) {
        self.event(json!({"v": 1, "event": kind, "turn": turn, "text": text}));
        if self.mode == Mode::Terminal && kind == "text" {
            self.stream(turn, text, !text.ends_with('\n'));
        }
    }

    /// Prints text of an answer.
    fn stream(&self, turn: u64, text: &str, inside_line: bool) {
        let mut state = self.state();
        state.heartbeat.touch(Instant::now());
        if state.streamed != Some(turn) {
            state.markdown = MarkdownStream::default();
        }
        state.streamed = Some(turn);
        state.inside_line = inside_line;
        terminal::stream(&mut state.markdown, text);
    }

    fn message(&self, message: &InnerMessage) {
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
            let (start, end) = (format!("> {name}"), format!("[{}]", short(id)));
            let around = terminal::width(&start) + terminal::width(&end) + 4;
            let arguments = one_line(&call.arguments.text(), terminal::room(around, 70));
            let line = Text::new().add(Role::Accent, start).plain(format!(" {arguments}  "));
            self.status_text(&line.add(Role::Dim, end));
            self.state().heartbeat.note_call(id, &name, Instant::now());
        } else {
            let text = message.content();
            self.event(json!({"v": 1, "event": "said", "turn": message.turn, "text": text}));
            let streamed = self.state().streamed == Some(message.turn);
            if self.mode == Mode::Terminal && !streamed && !text.is_empty() {
                self.stream(message.turn, &text, true);
            }
        }
    }

    fn show_invocation(&self, invoked: &ToolInvoked) {
        let (took, rest) = {
            let mut state = self.state();
            let took = state.heartbeat.end_call(invoked.call_id, Instant::now());
            (took.filter(|took| *took >= LONG), state.output.rest(invoked.call_id))
        };
        self.event(json!({
            "v": 1, "event": "result", "call": invoked.call_id, "name": invoked.name,
            "success": invoked.success, "text": invoked.rendered_output,
        }));
        if let Some(rest) = rest.filter(|rest| *rest > 0) {
            let more = format!("  … {rest} more {}", if rest == 1 { "line" } else { "lines" });
            self.status_text(&Text::new().add(Role::Dim, more));
        }
        let (mark, role) = if invoked.success { ("+", Role::Success) } else { ("x", Role::Failure) };
        let took = took.map(|took| format!("  ({:.1} s)", took.as_secs_f64())).unwrap_or_default();
        let start = format!("{mark} {}", invoked.name);
        let room = terminal::room(terminal::width(&start) + terminal::width(&took) + 3, 90);
        // Output of a command was printed as it arrived.
        let exit = rest.and_then(|_| KnownResult::of(&invoked.rendered_output)?.exit());
        let result = exit.unwrap_or_else(|| result_line(&invoked.rendered_output, room));
        let line = Text::new().add(role, start).plain(format!(": {result}"));
        self.status_text(&line.add(Role::Dim, took));
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
