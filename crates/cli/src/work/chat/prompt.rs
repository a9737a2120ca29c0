//! The prompt: editing of a line, history, completion.
//!
//! The editor runs on a thread of its own, so that a signal is noticed while it waits for a key. A message
//! has several lines if it is pasted, or if a line ends with a backslash or Alt-Enter. Shift-Tab asks for the next mode, and
//! keeps what was typed. Ctrl-O asks for the conversation that was interrupted here. Ctrl-Z stops the process, and the prompt is drawn
//! again when it continues. The history is a file in the user's state directory that only the user can read; a
//! conversation works without it.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use backstitch::stores::input_history;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Editor, Event, EventContext, EventHandler, Helper,
    Highlighter, Hinter, KeyCode, KeyEvent, Modifiers, RepeatCount,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::slash;
use crate::input::{PathCompletions, complete_path};
use crate::open::Signals;

/// Number of messages that the history keeps.
const REMEMBERED: usize = 1000;

/// What a person typed.
#[derive(Debug)]
pub(super) enum TypedLine {
    Text(String),
    /// Shift-Tab, with the text so far.
    NextMode(String),
    /// Ctrl-O, with the text so far.
    Continue(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D on an empty line, or the terminal is gone.
    End,
    /// A signal asks the process to end.
    Signal,
}

/// The prompt of a conversation.
pub(super) struct Prompt {
    /// Each question, and the text to begin with.
    questions: mpsc::Sender<(String, String)>,
    lines: UnboundedReceiver<rustyline::Result<TypedLine>>,
    /// The settings of the terminal before the editor changes them.
    before: Option<Termios>,
}

impl Prompt {
    /// Starts the thread of the editor. `commands` are those of files, which are completed too.
    pub(super) fn start(commands: Vec<String>) -> anyhow::Result<Self> {
        let (questions, asked) = mpsc::channel();
        let (typed, lines) = unbounded_channel();
        let before = tcgetattr(io::stdin()).ok();
        let mut editor = LineEditor::new(before.clone(), commands).context("this terminal cannot be used")?;
        std::thread::Builder::new()
            .name("prompt".to_owned())
            .spawn(move || editor.answer(&asked, &typed))
            .context("the thread of the prompt cannot be started")?;
        Ok(Self { questions, lines, before })
    }

    /// Reads a message that begins with a text.
    pub(super) async fn read(&mut self, prompt: &str, begin: &str) -> anyhow::Result<TypedLine> {
        let mut signals = Signals::listen().context("signals cannot be handled here")?;
        if self.questions.send((prompt.to_owned(), begin.to_owned())).is_err() {
            return Ok(TypedLine::End);
        }
        loop {
            let line = tokio::select! {
                line = self.lines.recv() => line,
                signal = signals.next() => {
                    // The editor reports Ctrl-C itself.
                    if signal == tokio::signal::unix::SignalKind::interrupt() {
                        continue;
                    }
                    self.restore();
                    return Ok(TypedLine::Signal);
                }
            };
            return match line {
                Some(Ok(line)) => Ok(line),
                Some(Err(ReadlineError::Interrupted)) => Ok(TypedLine::Interrupted),
                Some(Err(ReadlineError::Eof)) | None => Ok(TypedLine::End),
                // The terminal was closed.
                Some(Err(ReadlineError::Io(error))) if error.raw_os_error() == Some(5) => Ok(TypedLine::End),
                Some(Err(error)) => Err(error).context("cannot read from this terminal"),
            };
        }
    }

    /// Restores the settings of the terminal, which the editor cannot do while it waits for a key.
    fn restore(&self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// The editor, in its thread.
struct LineEditor {
    editor: Editor<MessageHelper, DefaultHistory>,
    continued: Continuations,
    mode_key: EndKey,
    continue_key: EndKey,
    history: Option<PathBuf>,
}

/// A key that ends the line, and remembers that it did.
#[derive(Clone, Default)]
struct EndKey(Arc<AtomicBool>);

impl EndKey {
    /// Whether the key ended the line. It is asked once for each line.
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl ConditionalEventHandler for EndKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

/// The key that stops the process, as in a shell. The editor's own handling returns from the signal before the process has stopped,
/// so the terminal would be in the wrong mode afterwards. This signal is for the thread itself, which stops with it.
struct StopKey {
    /// The settings of the terminal before the editor changes them.
    before: Option<Termios>,
}

impl ConditionalEventHandler for StopKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        let input = io::stdin();
        let edited = tcgetattr(&input).ok();
        let set = |settings: &Option<Termios>| {
            settings.as_ref().map(|settings| tcsetattr(&input, OptionalActions::Now, settings))
        };
        set(&self.before);
        let _ = nix::sys::signal::raise(nix::sys::signal::SIGTSTP);
        set(&edited);
        Some(Cmd::Repaint)
    }
}

/// Input at each line that was continued by a backslash.
type Continuations = Arc<Mutex<Vec<String>>>;

impl LineEditor {
    fn new(before: Option<Termios>, commands: Vec<String>) -> rustyline::Result<Self> {
        let config = Config::builder()
            .max_history_size(REMEMBERED)?
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .bracketed_paste(true)
            .build();
        let history = DefaultHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history)?;
        let continued = Continuations::default();
        editor.set_helper(Some(MessageHelper {
            files: FilenameCompleter::new(),
            commands,
            continued: continued.clone(),
        }));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        editor.bind_sequence(KeyEvent::new('\r', Modifiers::ALT), Cmd::Newline);
        editor.bind_sequence(KeyEvent::new('\n', Modifiers::ALT), Cmd::Newline);
        let (mode_key, continue_key) = (EndKey::default(), EndKey::default());
        let handler = EventHandler::Conditional(Box::new(mode_key.clone()));
        editor.bind_sequence(KeyEvent(KeyCode::BackTab, Modifiers::NONE), handler);
        let handler = EventHandler::Conditional(Box::new(continue_key.clone()));
        editor.bind_sequence(KeyEvent::ctrl('O'), handler);
        editor.bind_sequence(KeyEvent::ctrl('Z'), EventHandler::Conditional(Box::new(StopKey { before })));
        // The history is a convenience: its errors are ignored.
        let history = input_history::create().ok();
        if let Some(path) = &history {
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, continued, mode_key, continue_key, history })
    }

    /// Reads a line for each question, until the conversation ends.
    fn answer(
        &mut self,
        asked: &mpsc::Receiver<(String, String)>,
        typed: &UnboundedSender<rustyline::Result<TypedLine>>,
    ) {
        while let Ok((prompt, begin)) = asked.recv() {
            let text = self.editor.readline_with_initial(&prompt, (&begin, ""));
            let (is_next_mode, continues) = (self.mode_key.take(), self.continue_key.take());
            let line = text.map(|text| match self.join_continued(text) {
                text if is_next_mode => TypedLine::NextMode(text),
                text if continues => TypedLine::Continue(text),
                text => TypedLine::Text(text),
            });
            if let Ok(TypedLine::Text(text)) = &line
                && !text.trim().is_empty()
            {
                let _ = self.editor.add_history_entry(text.as_str());
                if let Some(path) = &self.history {
                    let _ = self.editor.append_history(path);
                }
            }
            let is_over = typed.send(line).is_err();
            if is_over {
                return;
            }
        }
    }

    /// Removes the backslashes that continued a line. Those of pasted text stay.
    fn join_continued(&self, text: String) -> String {
        let mut continued = self.continued.lock().unwrap_or_else(PoisonError::into_inner);
        join_continued(text, std::mem::take(&mut *continued))
    }
}

fn join_continued(text: String, continued: Vec<String>) -> String {
    let mut text = text;
    let mut removed = 0;
    for input in continued {
        // Each backslash before this one is gone already.
        let Some(place) = input.len().checked_sub(1 + removed) else { continue };
        if text.get(place..place + 2) == Some("\\\n") {
            text.remove(place);
            removed += 1;
        }
    }
    text
}

#[derive(Helper, Hinter, Highlighter)]
struct MessageHelper {
    files: FilenameCompleter,
    /// Commands of files.
    commands: Vec<String>,
    continued: Continuations,
}

impl Validator for MessageHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        let backslashes = input.len() - input.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            self.continued.lock().unwrap_or_else(PoisonError::into_inner).push(input.to_owned());
            return Ok(ValidationResult::Incomplete);
        }
        Ok(ValidationResult::Valid(None))
    }
}

impl Completer for MessageHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..position).unwrap_or_default();
        if typed.starts_with('/') && !typed.contains(char::is_whitespace) {
            let names = slash::names().chain(self.commands.iter().map(String::as_str));
            let names = names.filter(|name| name.starts_with(typed));
            let pair = |name: &str| Pair { display: name.to_owned(), replacement: format!("{name} ") };
            return Ok((0, names.map(pair).collect()));
        }
        let here = std::env::current_dir().unwrap_or_default();
        if let Some(PathCompletions { start, words }) = complete_path(typed, &here) {
            let pair = |(replacement, display)| Pair { display, replacement };
            return Ok((start, words.into_iter().map(pair).collect()));
        }
        // A path that leads out of the directory.
        let word = typed.rsplit(char::is_whitespace).next().unwrap_or_default();
        if word.starts_with('@') {
            return self.files.complete_path(line, position);
        }
        Ok((position, Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_backslashes_that_continued_a_line_are_removed() {
        let first = "make \\".to_owned();
        let second = "make \\\nall\\".to_owned();
        let text = "make \\\nall\\\ncargo \\\nbuild".to_owned();
        assert_eq!(join_continued(text.clone(), vec![first, second]), "make \nall\ncargo \\\nbuild");
        assert_eq!(join_continued(text.clone(), Vec::new()), text);
        assert_eq!(join_continued("short".to_owned(), vec!["something longer\\".to_owned()]), "short");
    }
}
