//! Output while a session is driven.
//!
//! For people, the text of the model streams to the terminal. Calls, their results, and a heartbeat during
//! long waits are printed to standard error. If standard output is no terminal, only the answer is written to
//! it. For programs (`--json`), each of these is one line, and the last line says how the run ended.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use backstitch::budget::Amounts;
use backstitch::code::ErrorCode;
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{InnerMessage, RecordBody, Role};
use backstitch::slices::ToolInvoked;
use backstitch::tool::Progress;
use backstitch::{FilesRestored, LiveKind, Retry, SessionEvent, one_line};
use serde_json::{Value, json};

use super::Common;
use super::ending::{INTERRUPTED, ended, stopped};
use super::place::short;
use super::restores::Restore;
use crate::error::ReportedError;
use crate::terminal;

/// Time without output after which a heartbeat is printed.
const SILENCE: Duration = Duration::from_secs(10);

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// One JSON object per line.
    Json,
    /// Text for a person, streamed.
    Terminal,
    /// Only the answer on standard output.
    Answer,
}

/// Prints the events of a session. Clones share their state.
#[derive(Clone)]
pub(super) struct Screen {
    mode: Mode,
    state: Arc<Mutex<ScreenState>>,
}

struct ScreenState {
    /// Time of the last output.
    shown: Instant,
    /// Names and start times of the calls that have not ended.
    open: BTreeMap<CallId, (String, Instant)>,
    /// Whether the last line that streamed has not ended.
    inside_line: bool,
    /// Turn of the text that streamed last.
    streamed: Option<u64>,
    /// Session that was announced, until its end is.
    announced: Option<Value>,
    /// Total spending of the session, once it is known.
    spent: Option<Amounts>,
}

/// A run whose start was announced, so its end has to be announced too. After a panic, that happens on drop.
pub(super) struct AnnouncedRun(Screen);

impl AnnouncedRun {
    /// Announces the end of a run that an error ended, unless that was done already.
    pub(super) fn close(self, done: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
        done.map_err(|error| {
            let session = self.0.state().announced.clone();
            self.0.end(stopped(&session.unwrap_or_default(), &error));
            ReportedError(error).into()
        })
    }
}

impl Drop for AnnouncedRun {
    fn drop(&mut self) {
        let session = self.0.state().announced.clone();
        if let Some(session) = session {
            self.0.end(ended(&session, "stopped", ErrorCode::Panic.as_str(), "the command panicked"));
        }
    }
}

impl Screen {
    pub(super) fn new(json: bool) -> Self {
        let mode = match (json, std::io::stdout().is_terminal()) {
            (true, _) => Mode::Json,
            (false, true) => Mode::Terminal,
            (false, false) => Mode::Answer,
        };
        let state = ScreenState {
            shown: Instant::now(),
            open: BTreeMap::new(),
            inside_line: false,
            streamed: None,
            announced: None,
            spent: None,
        };
        Self { mode, state: Arc::new(Mutex::new(state)) }
    }

    /// Prints an event of a session.
    pub(super) fn show(&self, common: &Common, session: SessionId, event: &SessionEvent) {
        match event {
            SessionEvent::Record(record) => {
                match &record.body {
                    RecordBody::MessageAppended(message) => self.message(message),
                    body => self.invocations(body),
                }
                if let Some(restored) = FilesRestored::of(&record.body) {
                    self.restored(common, &Restore::new(session, restored));
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
        change.appended::<ToolInvoked>().iter().for_each(|invoked| self.invoked(invoked));
    }

    /// Starts a task that prints a heartbeat whenever nothing was printed for [`SILENCE`]. Abort the task to
    /// end it.
    pub(super) fn tick(&self) -> tokio::task::JoinHandle<()> {
        let live = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                live.sign_of_life();
            }
        })
    }

    /// Prints that a request is retried after a backoff.
    fn retry(&self, retry: &Retry) {
        let wait = retry.wait.as_secs_f64();
        self.event(json!({
            "v": 1, "event": "retry", "turn": retry.turn, "attempt": retry.attempt, "seconds": wait,
            "kind": retry.kind, "message": retry.message,
        }));
        let Retry { kind, message, .. } = retry;
        self.status(&format!("the model did not answer ({kind}): {message}; retrying in {wait:.1} s"));
    }

    /// Prints the text of an answer, unless it was streamed already.
    pub(super) fn answer(&self, text: &str, streamed: bool) {
        if self.mode == Mode::Json {
            return;
        }
        let mut state = self.state();
        let seen = streamed && self.mode == Mode::Terminal && state.streamed.is_some();
        end_line(&mut state);
        if !seen {
            terminal::data(&format!("{text}\n"));
        }
    }

    /// Prints a line for people to standard error.
    pub(super) fn status(&self, text: &str) {
        if self.mode != Mode::Json {
            let mut state = self.state();
            end_line(&mut state);
            state.shown = Instant::now();
            eprintln!("{text}");
        }
    }

    /// Prints an event for programs, if the session was announced and its end was not.
    pub(super) fn event(&self, event: Value) {
        if self.mode == Mode::Json {
            let mut state = self.state();
            state.shown = Instant::now();
            if state.announced.is_some() {
                println!("{event}");
            }
        }
    }

    /// Announces a session. Its end has to be announced through the returned value.
    pub(super) fn begin(&self, event: Value) -> AnnouncedRun {
        self.state().announced = Some(event["session"].clone());
        if self.mode == Mode::Json {
            println!("{event}");
        }
        AnnouncedRun(self.clone())
    }

    /// Prints the files that were restored.
    fn restored(&self, common: &Common, restore: &Restore) {
        self.event(restore.event(common));
        restore.lines(common).iter().for_each(|line| self.status(line));
    }

    /// Whether a session was announced, and its end was not.
    pub(super) fn is_announced(&self) -> bool {
        self.state().announced.is_some()
    }

    /// Sets the total spending of the session, for its last event.
    pub(super) fn set_spent(&self, spent: Amounts) {
        self.state().spent = Some(spent);
    }

    /// Prints the last event. Later calls print nothing.
    pub(super) fn end(&self, mut event: Value) {
        let mut state = self.state();
        event["spent"] = json!(state.spent.map(amounts));
        if state.announced.take().is_some() && self.mode == Mode::Json {
            println!("{event}");
        }
    }

    /// Ends the process at once.
    pub(super) fn quit(&self) -> ! {
        let mut state = self.state();
        if let Some(session) = state.announced.take()
            && self.mode == Mode::Json
        {
            let message = "a signal ended the command before the session was paused";
            println!("{}", ended(&session, "interrupted", ErrorCode::Signal.as_str(), message));
        }
        // The state stays locked, so no other task prints anything more.
        std::process::exit(INTERRUPTED.into());
    }

    fn piece(&self, kind: &str, turn: u64, text: &str) {
        self.event(json!({"v": 1, "event": kind, "turn": turn, "text": text}));
        if self.mode == Mode::Terminal && kind == "text" {
            let mut state = self.state();
            (state.shown, state.streamed) = (Instant::now(), Some(turn));
            state.inside_line = !text.ends_with('\n');
            print!("{text}");
            terminal::flush();
        }
    }

    fn message(&self, message: &InnerMessage) {
        if message.role() != Role::Assistant {
            return;
        }
        if let Some(call) = message.message.option_call() {
            let (id, name) = (call.invocation_id, call.option_name.clone());
            self.event(json!({
                "v": 1, "event": "call", "turn": message.turn, "call": id, "name": name,
                "arguments": call.arguments.text(),
            }));
            self.status(&format!("> {name} {}  [{}]", one_line(&call.arguments.text(), 70), short(id)));
            self.state().open.insert(id, (name, Instant::now()));
        } else {
            let text = message.content();
            self.event(json!({"v": 1, "event": "said", "turn": message.turn, "text": text}));
            let streamed = self.state().streamed == Some(message.turn);
            if self.mode == Mode::Terminal && !streamed && !text.is_empty() {
                let mut state = self.state();
                (state.shown, state.streamed) = (Instant::now(), Some(message.turn));
                state.inside_line = true;
                print!("{text}");
                terminal::flush();
            }
        }
    }

    fn invoked(&self, invoked: &ToolInvoked) {
        self.state().open.remove(&invoked.call_id);
        self.event(json!({
            "v": 1, "event": "result", "call": invoked.call_id, "name": invoked.name,
            "success": invoked.success, "text": invoked.rendered_output,
        }));
        let mark = if invoked.success { "+" } else { "x" };
        self.status(&format!("{mark} {}: {}", invoked.name, one_line(&invoked.rendered_output, 90)));
    }

    fn progress(&self, call: CallId, progress: &Progress) {
        let Progress { message, fraction } = progress;
        self.event(json!({
            "v": 1, "event": "progress", "call": call, "text": message, "fraction": fraction,
        }));
        let share = fraction.map(|share| format!(" ({:.0} %)", share * 100.0)).unwrap_or_default();
        self.status(&format!("… {message}{share}"));
    }

    /// Prints output of a running call as it arrives.
    fn output(&self, call: CallId, text: &str) {
        self.event(json!({"v": 1, "event": "output", "call": call, "text": text}));
        if self.mode == Mode::Terminal {
            let mut state = self.state();
            end_line(&mut state);
            state.shown = Instant::now();
            for line in text.lines() {
                eprintln!("  {line}");
            }
        }
    }

    fn sign_of_life(&self) {
        let words = {
            let state = self.state();
            if state.shown.elapsed() < SILENCE {
                return;
            }
            let longest = state.open.values().min_by_key(|(_, since)| *since);
            match longest {
                Some((name, since)) => {
                    json!({"v": 1, "event": "waiting", "for": name, "seconds": since.elapsed().as_secs()})
                }
                None => {
                    let seconds = state.shown.elapsed().as_secs();
                    json!({"v": 1, "event": "waiting", "for": "the model", "seconds": seconds})
                }
            }
        };
        let what = words["for"].as_str().unwrap_or_default();
        self.status(&format!("… waiting for {what} ({} s)", words["seconds"]));
        self.event(words);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renders all amounts as JSON, including those that are zero.
fn amounts(spent: Amounts) -> Value {
    json!({
        "input_tokens": spent.input_tokens, "cache_read_tokens": spent.cache_read_tokens,
        "cache_write_tokens": spent.cache_write_tokens, "output_tokens": spent.output_tokens,
        "reasoning_tokens": spent.reasoning_tokens, "total_tokens": spent.total_tokens(),
        "money_micros": spent.money_micros, "turns": spent.turns, "calls": spent.calls,
    })
}

fn end_line(state: &mut ScreenState) {
    if std::mem::take(&mut state.inside_line) {
        println!();
    }
}
