//! The command on a pseudo-terminal, with its screen.
//!
//! A thread reads what the command prints, draws it on a screen with a scrollback, and answers queries for the position of the
//! cursor, as a terminal does. The pager is off, unless a stage sets `BACKSTITCH_PAGER` or
//! `PAGER`.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pty_process::Size;

use crate::stage::Stage;

/// Time limit of everything that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rows above the screen that are kept.
const SCROLLBACK: usize = 100_000;

/// Sequence that asks for the position of the cursor.
const CURSOR_QUERY: &[u8] = b"\x1b[6n";

/// What the terminal shows.
struct Display {
    parser: vt100::Parser,
    /// Everything that the command has printed.
    bytes: Vec<u8>,
    is_closed: bool,
}

/// A command that runs on a pseudo-terminal. Dropping it kills the command.
pub(crate) struct Pty {
    child: Child,
    terminal: Arc<pty_process::blocking::Pty>,
    display: Arc<(Mutex<Display>, Condvar)>,
    reader: Option<JoinHandle<()>>,
}

impl Pty {
    /// Starts the command on a terminal of this size, which is its standard input, output and error.
    pub(crate) fn start(stage: &Stage, arguments: &[&str], columns: u16, rows: u16) -> Self {
        Self::spawn(stage, arguments, (columns, rows), None)
    }

    /// Starts the command with its output on a terminal, and without input.
    pub(crate) fn start_without_input(stage: &Stage, arguments: &[&str], columns: u16, rows: u16) -> Self {
        Self::spawn(stage, arguments, (columns, rows), Some(Stdio::null()))
    }

    /// Starts the command with its output on a terminal, and a file as its input.
    pub(crate) fn start_reading(
        stage: &Stage,
        arguments: &[&str],
        columns: u16,
        rows: u16,
        file: &Path,
    ) -> Self {
        let input = std::fs::File::open(file).unwrap();
        Self::spawn(stage, arguments, (columns, rows), Some(input.into()))
    }

    /// Starts a shell script, with the environment of the command.
    pub(crate) fn start_shell(stage: &Stage, script: &str, columns: u16, rows: u16) -> Self {
        let of_stage = stage.command(&[]);
        let mut shell = std::process::Command::new("bash");
        shell.args(["--norc", "-c", script]).current_dir(stage.path("files"));
        for (name, value) in of_stage.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        Self::spawn_command(shell, (columns, rows), None)
    }

    fn spawn(stage: &Stage, arguments: &[&str], size: (u16, u16), input: Option<Stdio>) -> Self {
        Self::spawn_command(stage.command(arguments), size, input)
    }

    fn spawn_command(
        mut command: std::process::Command,
        (columns, rows): (u16, u16),
        input: Option<Stdio>,
    ) -> Self {
        let (terminal, side_of_command) = pty_process::blocking::open().unwrap();
        terminal.resize(Size::new(rows, columns)).unwrap();
        let chosen: Vec<OsString> = command
            .get_envs()
            .filter(|(_, value)| value.is_some())
            .map(|(name, _)| name.to_owned())
            .collect();
        let is_chosen = |name: &str| chosen.iter().any(|chosen| chosen == name);
        // The terminal of the test is not that of the person who runs it.
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PAGER", "LESS", "COLUMNS", "LINES"] {
            if !is_chosen(name) {
                command.env_remove(name);
            }
        }
        if !is_chosen("TERM") {
            command.env("TERM", "xterm-256color");
        }
        if !is_chosen("BACKSTITCH_PAGER") && !is_chosen("PAGER") {
            command.env("BACKSTITCH_PAGER", "");
        }
        let mut command = pty_process::blocking::Command::from(command);
        if let Some(input) = input {
            command = command.stdin(input);
        }
        let child = command.spawn(side_of_command).unwrap();
        let size = |number| NonZeroU16::new(number).unwrap();
        let display = Display {
            parser: vt100::Parser::new(size(rows), size(columns), SCROLLBACK),
            bytes: Vec::new(),
            is_closed: false,
        };
        let display = Arc::new((Mutex::new(display), Condvar::new()));
        let terminal = Arc::new(terminal);
        let reader = std::thread::spawn({
            let (terminal, display) = (Arc::clone(&terminal), Arc::clone(&display));
            move || read(&terminal, &display)
        });
        Self { child, terminal, display, reader: Some(reader) }
    }

    /// Types text. Enter is `\r`, Ctrl-C is `\u{3}`, Ctrl-D is `\u{4}`.
    pub(crate) fn send(&self, text: &str) {
        // A command that has ended reads nothing more.
        let _ = (&*self.terminal).write_all(text.as_bytes());
    }

    /// Waits until a text is on the screen or in the scrollback, in one line or broken into several.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |display| count(&everything(display), text) > 0);
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(crate) fn wait_for_screen(&self, text: &str) {
        self.wait_until(text, |display| display.parser.screen().contents().contains(text));
    }

    /// Waits until a text was shown so many times.
    #[track_caller]
    pub(crate) fn wait_for_times(&self, text: &str, times: usize) {
        self.wait_until(text, |display| count(&everything(display), text) >= times);
    }

    #[track_caller]
    fn wait_until(&self, what: &str, holds: impl Fn(&mut Display) -> bool) {
        let started = Instant::now();
        let mut display = self.display();
        while !holds(&mut display) {
            let left = PATIENCE.saturating_sub(started.elapsed());
            let is_over = left.is_zero() || display.is_closed;
            assert!(!is_over, "{what:?} did not appear:\n{}", everything(&mut display));
            display = self.display.1.wait_timeout(display, left).unwrap().0;
        }
    }

    /// Returns the text on the screen.
    pub(crate) fn screen(&self) -> String {
        self.display().parser.screen().contents()
    }

    /// Returns the text of the scrollback and the screen.
    pub(crate) fn everything(&self) -> String {
        everything(&mut self.display())
    }

    /// Returns what the command has printed, with its control sequences and with plain newlines.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8(self.display().bytes.clone()).unwrap().replace("\r\n", "\n")
    }

    /// Kills the command, as SIGKILL does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Closes the terminal, as a user who closes the window does, and waits for the end of the command.
    pub(crate) fn hang_up(mut self) -> Option<i32> {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::HUP).unwrap();
        self.exit_code()
    }

    /// Waits for the end of the command, and returns its exit code; 128 and its number for a signal. A command that prints is
    /// waited for longer.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let (mut started, mut printed) = (Instant::now(), 0);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            let length = self.display().bytes.len();
            if length > printed {
                (started, printed) = (Instant::now(), length);
            }
            assert!(started.elapsed() < PATIENCE, "the command did not end:\n{}", self.everything());
            std::thread::sleep(Duration::from_millis(5));
        };
        // What it has printed last is read once no process has the terminal open.
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        status.code().or_else(|| status.signal().map(|signal| 128 + signal))
    }

    /// Waits for the end of the command, and returns its exit code and the whole text.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        let code = self.exit_code();
        (code, self.everything())
    }

    fn display(&self) -> MutexGuard<'_, Display> {
        self.display.0.lock().unwrap()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads until no process has the terminal open.
fn read(mut terminal: &pty_process::blocking::Pty, display: &(Mutex<Display>, Condvar)) {
    let mut buffer = [0; 64 * 1024];
    let mut failures = 0;
    // An error may only be an interruption. It is the end if it stays one.
    while failures < 3 {
        let Ok(read @ 1..) = terminal.read(&mut buffer) else {
            failures += 1;
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        failures = 0;
        let mut shown = display.0.lock().unwrap();
        let old = shown.bytes.len();
        shown.bytes.extend_from_slice(&buffer[..read]);
        // A query may have arrived in two parts.
        let from = old.saturating_sub(CURSOR_QUERY.len() - 1);
        let queries =
            shown.bytes[from..].windows(CURSOR_QUERY.len()).filter(|part| *part == CURSOR_QUERY).count();
        shown.parser.process(&buffer[..read]);
        let (row, column) = shown.parser.screen().cursor_position();
        drop(shown);
        for _ in 0..queries {
            let _ = write!(terminal, "\x1b[{};{}R", row + 1, column + 1);
        }
        display.1.notify_all();
    }
    display.0.lock().unwrap().is_closed = true;
    display.1.notify_all();
}

/// How often a text was shown, in one line or broken into several.
fn count(shown: &str, text: &str) -> usize {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let exact = shown.matches(text).count();
    if exact == 0 && text.contains(' ') && !text.contains('\n') {
        flat(shown).matches(&flat(text)).count()
    } else {
        exact
    }
}

/// The scrollback and the screen, with wrapped rows as one line and without spaces at the ends of lines.
fn everything(display: &mut Display) -> String {
    let screen = display.parser.screen_mut();
    let (rows, columns) = screen.size();
    let mut text = String::new();
    let mut add = |screen: &vt100::Screen, row: u16| {
        let line = screen.rows(0, columns.get()).nth(row.into()).unwrap_or_default();
        text.push_str(&line);
        if !screen.row_wrapped(row) {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
    };
    for above in (1..=screen.scrollback_len()).rev() {
        screen.set_scrollback(above);
        add(screen, 0);
    }
    screen.set_scrollback(0);
    for row in 0..rows.get() {
        add(screen, row);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
