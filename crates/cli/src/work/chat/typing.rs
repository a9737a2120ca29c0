//! What a person types while the agent works.
//!
//! The keys arrive one at a time, so that Esc can interrupt the turn and a line can be sent to the agent before the turn has ended. Ctrl-C
//! remains a signal. The terminal is restored before anything is asked, so what was typed never answers a question; a line that is not
//! complete then is the beginning of the next message.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::people::keyboard::{Key, SEQUENCE, decode, read_bytes};
use crate::terminal::{self, draft};

/// Interval at which the reader checks whether it is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The most characters of a line.
const LONGEST: usize = 100_000;

/// What was typed and is not a message yet.
#[derive(Debug, Default)]
pub(super) struct TypedAhead {
    /// The beginning of the next message, such as a line that is not complete.
    pub(super) draft: String,
    /// Lines for the prompt after this turn.
    pub(super) lines: VecDeque<String>,
}

impl TypedAhead {
    /// Makes the lines the beginning of the next message, so that none of them runs before the person sends it.
    pub(super) fn hold_lines(&mut self) {
        let draft = std::mem::take(&mut self.draft);
        let lines = std::mem::take(&mut self.lines);
        self.draft = lines.into_iter().chain([draft]).fold(String::new(), |text, line| join(text, &line));
    }
}

/// Joins two texts with a line break, unless one of them is empty.
pub(super) fn join(mut text: String, next: &str) -> String {
    if !text.is_empty() && !next.is_empty() {
        text.push('\n');
    }
    text.push_str(next);
    text
}

/// What follows a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypingStep {
    /// A line was completed.
    Line(String),
    /// Esc.
    Interrupt,
}

/// A line that is edited, and the bytes that do not make a key yet.
#[derive(Debug, Default)]
struct LineBuffer {
    text: String,
    bytes: Vec<u8>,
    is_pasted: bool,
}

impl LineBuffer {
    /// Takes bytes, and returns what follows from them.
    fn add(&mut self, bytes: &[u8]) -> Vec<TypingStep> {
        self.bytes.extend_from_slice(bytes);
        let mut steps = Vec::new();
        while let Some((key, length)) = decode(&self.bytes) {
            self.bytes.drain(..length);
            match key {
                Key::PasteStart => self.is_pasted = true,
                Key::PasteEnd => self.is_pasted = false,
                Key::Enter if self.is_pasted => self.push('\n'),
                Key::Tab if self.is_pasted => self.push('\t'),
                Key::Enter => {
                    let line = std::mem::take(&mut self.text);
                    if !line.trim().is_empty() {
                        steps.push(TypingStep::Line(line));
                    }
                }
                Key::Escape => steps.push(TypingStep::Interrupt),
                Key::Character(character) => self.push(character),
                Key::Backspace => {
                    self.text.pop();
                }
                Key::Erase => self.text.clear(),
                _ => {}
            }
        }
        steps
    }

    /// Takes the last bytes, and returns all that is left. What completes a line now begins the next message all the same: nothing
    /// reads it any more.
    fn finish(&mut self, last: impl IntoIterator<Item = Vec<u8>>) -> String {
        let mut text = String::new();
        for bytes in last {
            for step in self.add(&bytes) {
                if let TypingStep::Line(line) = step {
                    text = join(text, &line);
                }
            }
        }
        join(text, &std::mem::take(&mut self.text))
    }

    fn push(&mut self, character: char) {
        if self.text.len() < LONGEST {
            self.text.push(character);
        }
    }
}

/// Reads keys while the agent works, until it is dropped.
pub(super) struct TypingReader {
    buffer: LineBuffer,
    bytes: UnboundedReceiver<Vec<u8>>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    before: Termios,
}

impl TypingReader {
    /// Starts to read, after a draft. `None` where the terminal cannot do that: then lines wait for the next prompt.
    pub(super) fn start(draft: String) -> Option<Self> {
        if !super::is_interactive() || !terminal::is_capable() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok()?;
        let (send, bytes) = unbounded_channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let (flag, settings) = (is_over.clone(), before.clone());
        let reader = std::thread::Builder::new()
            .name("typing".to_owned())
            .spawn(move || read(&settings, &flag, &send))
            .ok()?;
        draft::mark_pastes(true);
        let buffer = LineBuffer { text: draft, ..LineBuffer::default() };
        Some(Self { buffer, bytes, is_over, reader: Some(reader), before })
    }

    /// Returns what was typed next. Cancel safe.
    pub(super) async fn next(&mut self) -> Vec<TypingStep> {
        match self.bytes.recv().await {
            Some(bytes) => self.buffer.add(&bytes),
            // The terminal is gone, which a signal reports.
            None => std::future::pending().await,
        }
    }

    /// Draws the line that is edited, unless that would overwrite a line that streams.
    pub(super) fn draw(&self, is_inside_line: bool) {
        if !is_inside_line {
            draft::draw(&self.buffer.text);
        }
    }

    /// Ends reading, and returns the lines that nothing has read and the one that is not complete.
    pub(super) fn finish(mut self) -> String {
        self.end();
        let mut last = Vec::new();
        while let Ok(bytes) = self.bytes.try_recv() {
            last.push(bytes);
        }
        self.buffer.finish(last)
    }

    fn end(&mut self) {
        let Some(reader) = self.reader.take() else { return };
        self.is_over.store(true, Ordering::SeqCst);
        let _ = reader.join();
        draft::erase();
        draft::mark_pastes(false);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

impl Drop for TypingReader {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads bytes until it is over. A process in the background leaves the terminal alone.
fn read(before: &Termios, is_over: &AtomicBool, send: &UnboundedSender<Vec<u8>>) {
    let mut typing = before.clone();
    typing.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    while !is_over.load(Ordering::SeqCst) {
        let input = io::stdin();
        if tcgetpgrp(&input).ok() != Some(rustix::process::getpgrp()) {
            std::thread::sleep(LOOK_EVERY);
            continue;
        }
        // A shell that has continued the process may have changed the settings.
        if tcgetattr(&input).is_ok_and(|current| current.local_modes.contains(LocalModes::ICANON)) {
            let _ = tcsetattr(&input, OptionalActions::Now, &typing);
        }
        let Ok(mut bytes) = read_bytes(Some(LOOK_EVERY)) else { return };
        if bytes == [0x1b] {
            bytes.extend(read_bytes(Some(SEQUENCE)).unwrap_or_default());
        }
        if !bytes.is_empty() && send.send(bytes).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> TypingStep {
        TypingStep::Line(text.to_owned())
    }

    #[test]
    fn keys_make_lines() {
        let mut buffer = LineBuffer::default();
        assert_eq!(buffer.add(b"skip the slo\x7fow tests"), []);
        assert_eq!(buffer.add(b"\rand"), [line("skip the slow tests")]);
        assert_eq!(buffer.text, "and");
        assert_eq!(buffer.add(&[0xc3]), []);
        assert_eq!(buffer.add(&[0xa4, b'\r', b' ', b'\r']), [line("andä")]);
        assert_eq!(buffer.add(b"x\x1b"), [TypingStep::Interrupt]);
        assert_eq!(buffer.text, "x", "an interrupt keeps the draft");
        assert_eq!(buffer.add(b"\x15\x1b[200~one\rtwo\x1b[201~\r"), [line("one\ntwo")]);
        assert_eq!(buffer.add(b"\x1b[A\x1b[1;5C"), []);
        assert_eq!(buffer.text, "");
    }

    #[test]
    fn lines_that_nothing_has_read_are_kept() {
        let mut buffer = LineBuffer::default();
        assert_eq!(buffer.add(b"fir"), []);
        assert_eq!(buffer.finish([b"st\rsecond\r".to_vec(), b"thi".to_vec()]), "first\nsecond\nthi");
        assert_eq!(buffer.finish([b"one\r".to_vec()]), "one");
        let lines = VecDeque::from(["/cost".to_owned(), "!make".to_owned()]);
        let mut typed = TypedAhead { draft: "and".to_owned(), lines };
        typed.hold_lines();
        assert_eq!((typed.draft.as_str(), typed.lines.len()), ("/cost\n!make\nand", 0));
    }
}
