//! Output while a session is driven.
//!
//! For people, the text of the model streams to the terminal. Calls, their results and the changes that they made to files are printed
//! to standard error. While nothing is printed, a status line says what the session waits for; where there can be none, a heartbeat does during long
//! waits. If standard output is not a terminal, only the answer is written to it. For programs (`--json`), each of these is
//! one line, and the last line says how the run ended.
//!
//! Neither shows an answer with a hole: pieces that a slow output has missed are printed from the record of the answer.
//!
//! `run`, `resume`, `ask` and `chat` share this module.

mod agents;
mod changes;
mod closing;
mod continuity;
mod heartbeat;
mod output;
mod reasoning;
mod result;
mod show;

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use backstitch::Runtime;
use backstitch::budget::Amounts;
use backstitch::code::ErrorCode;
use backstitch::id::{CallId, SessionId};
use backstitch::view::JournalView;
use serde_json::{Value, json};

use agents::AgentNames;
use closing::stopped_event;
pub(crate) use closing::{INTERRUPTED, ended_event, status_line};
use continuity::{Continuity, StreamedText};
use heartbeat::Heartbeat;
use output::OutputLines;

use crate::error::ReportedError;
use crate::terminal::status::{self, StatusGuard};
use crate::terminal::{self, MarkdownStream, Role, Text, grouped};
pub(crate) use reasoning::{is_shown as is_reasoning_shown, show as show_reasoning};

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
pub(crate) struct Screen {
    mode: Mode,
    state: Arc<Mutex<ScreenState>>,
}

struct ScreenState {
    began: Instant,
    heartbeat: Heartbeat,
    output: OutputLines,
    /// Sub-agents by their sessions.
    agents: AgentNames,
    /// Where the contents of changed files are stored.
    files: Option<Runtime>,
    /// Calls whose changes a person has seen before they were made, and those of sub-agents, whose own calls are shown.
    shown_calls: HashSet<CallId>,
    /// Calls that ran a command.
    commands: HashSet<CallId>,
    /// Reasoning whose line has not ended.
    reasoning: String,
    /// The answer that streamed last.
    streamed: Option<StreamedText>,
    continuity: Continuity,
    markdown: MarkdownStream,
    /// Session that was announced, until its end is.
    announced: Option<Value>,
    /// Total spending of the session, once it is known.
    /// What was spent, and the number of requests whose cost is not known.
    spent: Option<(Amounts, u64)>,
    /// Tokens of the answers so far.
    tokens: u64,
    /// Number of the picture of the status line.
    frame: usize,
}

/// Draws the status line, or prints heartbeats, until it is dropped.
#[must_use]
pub(crate) struct Ticker {
    task: tokio::task::JoinHandle<()>,
    _status: StatusGuard,
}

impl Ticker {
    /// Ends it.
    pub(crate) fn abort(self) {}
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Interval between two pictures of the status line.
const FRAME: Duration = Duration::from_millis(120);

/// Time without output after which the status line is drawn.
const PAUSE: Duration = Duration::from_millis(700);

/// The pictures of the status line.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// A run whose start was announced, so its end has to be announced too. After a panic, that happens on drop.
pub(crate) struct AnnouncedRun(Screen);

impl AnnouncedRun {
    /// Announces the end of a run that an error ended, unless that was done already.
    pub(crate) fn close(self, done: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
        done.map_err(|error| {
            let session = self.0.state().announced.clone();
            self.0.end(stopped_event(&session.unwrap_or_default(), &error));
            ReportedError(error).into()
        })
    }
}

impl Drop for AnnouncedRun {
    fn drop(&mut self) {
        let session = self.0.state().announced.clone();
        if let Some(session) = session {
            self.0.end(ended_event(&session, "stopped", ErrorCode::Panic.as_str(), "the command panicked"));
        }
    }
}

impl Screen {
    pub(crate) fn new(json: bool) -> Self {
        let mode = match (json, std::io::stdout().is_terminal()) {
            (true, _) => Mode::Json,
            (false, true) => Mode::Terminal,
            (false, false) => Mode::Answer,
        };
        let state = ScreenState {
            began: Instant::now(),
            heartbeat: Heartbeat::new(Instant::now()),
            output: OutputLines::default(),
            agents: AgentNames::default(),
            files: None,
            shown_calls: HashSet::new(),
            commands: HashSet::new(),
            reasoning: String::new(),
            streamed: None,
            continuity: Continuity::default(),
            markdown: terminal::markdown_stream(),
            announced: None,
            spent: None,
            tokens: 0,
            frame: 0,
        };
        Self { mode, state: Arc::new(Mutex::new(state)) }
    }

    /// Shows what calls change in files, whose contents are stored here.
    pub(crate) fn use_files(&self, runtime: &Runtime) {
        self.state().files = Some(runtime.clone());
    }

    /// Starts a task that shows what the session waits for while nothing is printed.
    pub(crate) fn tick(&self) -> Ticker {
        let live = self.clone();
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(FRAME).await;
                live.sign_of_life();
            }
        });
        Ticker { task, _status: status::begin() }
    }

    /// Prints the text of an answer, unless it was streamed already.
    pub(crate) fn answer(&self, text: &str, streamed: bool) {
        if self.mode == Mode::Json {
            return;
        }
        let mut state = self.state();
        let seen = streamed && self.mode == Mode::Terminal && state.streamed.is_some();
        end_line(&mut state);
        if seen {
            return;
        }
        match streamed {
            true => terminal::markdown(text),
            false => terminal::data(&format!("{text}\n")),
        }
    }

    /// Prints a line for people to standard error.
    pub(crate) fn status(&self, text: &str) {
        if self.mode != Mode::Json {
            let mut state = self.state();
            end_line(&mut state);
            state.heartbeat.touch(Instant::now());
            eprintln!("{text}");
        }
    }

    /// Prints a styled line about progress to standard error.
    pub(crate) fn status_text(&self, line: &Text) {
        if self.mode != Mode::Json && !terminal::is_quiet() {
            let mut state = self.state();
            end_line(&mut state);
            state.heartbeat.touch(Instant::now());
            terminal::error_line(line);
        }
    }

    /// Prints the beginning of an answer that was cut off to standard error, if it was not streamed.
    pub(crate) fn half_answer(&self, text: &str) {
        if self.mode == Mode::Answer {
            text.lines().for_each(|line| terminal::error_line(&Text::new().plain(line)));
        }
    }

    /// Whether a line of streamed text has not ended.
    pub(crate) fn is_inside_line(&self) -> bool {
        self.state().markdown.is_inside_line()
    }

    /// Ends a line of streamed text, before something else is printed.
    pub(crate) fn end_streamed_line(&self) {
        end_line(&mut self.state());
    }

    /// Prints an event for programs, if the session was announced and its end was not.
    pub(crate) fn event(&self, event: Value) {
        if self.mode == Mode::Json {
            let mut state = self.state();
            state.heartbeat.touch(Instant::now());
            if state.announced.is_some() {
                println!("{event}");
            }
        }
    }

    /// Announces a session. Its end has to be announced through the returned value.
    pub(crate) fn begin(&self, event: Value) -> AnnouncedRun {
        let mut state = self.state();
        state.announced = Some(event["session"].clone());
        // Under the lock, so that no signal prints the end before.
        if self.mode == Mode::Json {
            println!("{event}");
        }
        drop(state);
        AnnouncedRun(self.clone())
    }

    /// Prints what the latest evaluation of a session took: time, turns, tokens and money.
    pub(crate) fn close(&self, view: &JournalView) {
        let Some(latest) = view.latest_evaluation() else { return };
        let took = self.state().began.elapsed();
        let line =
            closing::closing_line(took, latest.turns, view.spent_by(latest), latest.unpriced_requests());
        self.status_text(&Text::new().add(Role::Dim, line));
    }

    /// Whether a session was announced, and its end was not. While something is printed, that is assumed: the output may be
    /// stopped.
    pub(crate) fn is_announced(&self) -> bool {
        self.state.try_lock().map_or(true, |state| state.announced.is_some())
    }

    /// Sets the total spending of the session, for its last event.
    pub(crate) fn set_spent(&self, view: &JournalView) {
        let unpriced = view.evaluations().map(|evaluation| evaluation.unpriced_requests()).sum();
        self.state().spent = Some((closing::spent_in(view), unpriced));
    }

    /// Prints the last event. Later calls print nothing.
    pub(crate) fn end(&self, mut event: Value) {
        let mut state = self.state();
        event["spent"] = json!(state.spent.map(closing::as_json));
        if state.announced.take().is_some() && self.mode == Mode::Json {
            println!("{event}");
        }
    }

    /// Ends the process at once.
    pub(crate) fn quit(&self) -> ! {
        let mut state = self.state();
        if let Some(session) = state.announced.take()
            && self.mode == Mode::Json
        {
            let message = "a signal ended the command before the session was paused";
            println!("{}", ended_event(&session, "interrupted", ErrorCode::Signal.as_str(), message));
        }
        // The state stays locked, so no other task prints anything more.
        std::process::exit(INTERRUPTED.into());
    }

    fn sign_of_life(&self) {
        let can_draw = self.mode != Mode::Json && status::can_draw();
        // While something is printed, nothing is due, and an output that is stopped must not block this thread too.
        let Ok(mut state) = self.state.try_lock() else { return };
        let now = Instant::now();
        if can_draw {
            if !state.markdown.is_inside_line() && state.heartbeat.silence(now) >= PAUSE {
                let line = state.status_line(now);
                status::draw(&line);
            }
            return;
        }
        let due = state.heartbeat.due(now);
        drop(state);
        if let Some(waiting) = due {
            let (what, seconds) = (&waiting.what, waiting.seconds);
            self.beat(&format!("… waiting for {what} ({seconds} s)"));
            self.event(json!({"v": 1, "event": "waiting", "for": what, "seconds": seconds}));
        }
    }

    /// Prints a heartbeat. It does not count as output.
    fn beat(&self, text: &str) {
        if self.mode != Mode::Json && !terminal::is_quiet() {
            end_line(&mut self.state());
            terminal::error_line(&Text::new().add(Role::Dim, text));
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScreenState {
    /// Returns the answer of a turn that streams now.
    fn streamed_text(&mut self, session: SessionId, turn: u64) -> &mut StreamedText {
        let streamed = self.streamed.take().filter(|streamed| streamed.is_of(session, turn));
        if streamed.is_none() {
            end_line(self);
            self.markdown = terminal::markdown_stream();
        }
        self.streamed.insert(streamed.unwrap_or_else(|| StreamedText::new(session, turn)))
    }

    /// Returns what the session waits for, with the time and the tokens so far.
    fn status_line(&mut self, now: Instant) -> Text {
        let wait = self.heartbeat.wait(now);
        self.frame = (self.frame + 1) % FRAMES.len();
        let mut rest = format!(" ({} s)", wait.seconds);
        if self.tokens > 0 {
            rest.push_str(&format!(" · {} tokens", grouped(self.tokens)));
        }
        let all = now.saturating_duration_since(self.began).as_secs();
        if all > wait.seconds + 1 {
            rest.push_str(&format!(" · {all} s in all"));
        }
        let line = Text::new().add(Role::Accent, FRAMES[self.frame]).plain(" waiting for ");
        line.plain(wait.what).add(Role::Dim, rest)
    }
}

/// Prints what was held back of streamed text, and ends its line.
fn end_line(state: &mut ScreenState) {
    reasoning::end_line(state);
    if state.markdown.is_open() {
        terminal::end_stream(&mut state.markdown);
    }
}
