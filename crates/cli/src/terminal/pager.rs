//! A pager for long output.
//!
//! While a [`Pager`] exists, standard output is buffered until it is longer than the screen. Then the pager is started, and the
//! output goes to it. Shorter output is printed when the `Pager` is dropped. Where standard output is no
//! terminal, nothing changes.
//!
//! The pager is `BACKSTITCH_PAGER`, else that of the settings, else `PAGER`, else `less -FRX`. An empty one, `cat` and `--no-pager` switch it off. A user who
//! closes the pager ends the command: only commands that read may have one.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::output;

/// The pager without a setting.
const DEFAULT: &str = "less -FRX";

static IS_REFUSED: AtomicBool = AtomicBool::new(false);

static CURRENT: Mutex<Option<PagerState>> = Mutex::new(None);

static PREFERRED: OnceLock<String> = OnceLock::new();

/// Sets the pager of the user's settings, for the whole process. Later calls change nothing.
pub(crate) fn prefer(command: String) {
    let _ = PREFERRED.set(command);
}

/// Switches pagers off, for the whole process.
pub(crate) fn refuse() {
    IS_REFUSED.store(true, Ordering::Relaxed);
}

enum PagerState {
    /// The output so far, which fits on the screen.
    Buffered { bytes: Vec<u8>, program: Vec<String> },
    /// The output goes to a pager.
    Started { child: Child, input: ChildStdin },
}

/// Sends standard output through a pager, until it is dropped.
#[must_use]
pub(crate) struct Pager(());

impl Pager {
    /// Starts to buffer the output, if it is for a terminal and has a pager.
    pub(crate) fn new() -> Self {
        let is_refused = IS_REFUSED.load(Ordering::Relaxed);
        if !is_refused && io::stdout().is_terminal() && super::is_capable() {
            let mut current = current();
            if let (None, Some(program)) = (&*current, program()) {
                *current = Some(PagerState::Buffered { bytes: Vec::new(), program });
            }
        }
        Self(())
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        let state = current().take();
        match state {
            Some(PagerState::Buffered { bytes, .. }) => output::directly(&bytes),
            Some(PagerState::Started { mut child, input }) => {
                drop(input);
                let _ = child.wait();
            }
            None => {}
        }
    }
}

/// Whether the bytes went to a pager, or to its buffer.
pub(super) fn takes(bytes: &[u8]) -> bool {
    let mut current = current();
    let Some(state) = &mut *current else { return false };
    if let PagerState::Buffered { bytes: buffered, program } = state {
        buffered.extend_from_slice(bytes);
        if fits(buffered) {
            return true;
        }
        let buffered = std::mem::take(buffered);
        if let Some((child, input)) = start_pager(program) {
            *state = PagerState::Started { child, input };
            write(state, &buffered);
        } else {
            *current = None;
            output::directly(&buffered);
        }
        return true;
    }
    write(state, bytes);
    true
}

fn write(state: &mut PagerState, bytes: &[u8]) {
    let PagerState::Started { child, input } = state else { return };
    if input.write_all(bytes).is_err() {
        // The user has closed the pager, and wants no more of the output.
        let _ = child.wait();
        std::process::exit(0);
    }
}

/// Starts a pager. Returns `None` if it cannot be started.
fn start_pager(program: &[String]) -> Option<(Child, ChildStdin)> {
    let (name, arguments) = program.split_first()?;
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // A pager of the user's choice shows colours too.
        command.env("LESS", "FRX");
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("warning: the pager {name:?} cannot be started: {error}");
            return None;
        }
    };
    ignore_interrupts();
    let input = child.stdin.take()?;
    Some((child, input))
}

/// Keeps Ctrl-C, which is meant for the pager, from ending this process before it.
fn ignore_interrupts() {
    use tokio::signal::unix::{SignalKind, signal};
    // The handler stays when the listener is dropped.
    if tokio::runtime::Handle::try_current().is_ok() {
        let _ = signal(SignalKind::interrupt());
    } else if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
        let _entered = runtime.enter();
        let _ = signal(SignalKind::interrupt());
    }
}

/// The words of the pager's command line, if there is a pager.
fn program() -> Option<Vec<String>> {
    let variable = |name: &str| std::env::var(name).ok();
    let setting = variable("BACKSTITCH_PAGER").or_else(|| PREFERRED.get().cloned());
    words(setting.or_else(|| variable("PAGER")).as_deref())
}

fn words(setting: Option<&str>) -> Option<Vec<String>> {
    let words = shlex::split(setting.unwrap_or(DEFAULT))?;
    (!words.is_empty() && words != ["cat"]).then_some(words)
}

/// Whether output fits on the screen, with a row for the prompt of the shell.
fn fits(bytes: &[u8]) -> bool {
    rows(&String::from_utf8_lossy(bytes), super::columns()) < super::rows()
}

/// How many rows a text takes. The only control sequences in it are colours.
fn rows(text: &str, columns: usize) -> usize {
    text.lines().map(|line| super::width(&without_colors(line)).div_ceil(columns).max(1)).sum()
}

fn without_colors(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, after)| after))
}

fn current() -> MutexGuard<'static, Option<PagerState>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_they_are_wrapped() {
        assert_eq!(rows("", 10), 0);
        assert_eq!(rows("a\n\nb\n", 10), 3);
        assert_eq!(rows(&"x".repeat(25), 10), 3);
        assert_eq!(rows(&format!("\u{1b}[36m{}\u{1b}[0m", "x".repeat(10)), 10), 1);
        assert_eq!(rows("漢字漢字漢字", 10), 2);
    }

    #[test]
    fn an_empty_pager_and_cat_are_none() {
        let expected = Some(vec!["less".to_owned(), "-FRX".to_owned()]);
        assert_eq!(words(None), expected);
        assert_eq!(words(Some("")), None);
        assert_eq!(words(Some("cat")), None);
        assert_eq!(words(Some("'no end")), None);
        assert_eq!(words(Some("less -S")), Some(vec!["less".to_owned(), "-S".to_owned()]));
    }
}
