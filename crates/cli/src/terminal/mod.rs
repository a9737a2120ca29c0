//! Output of the command. Everything that it prints passes through this module.
//!
//! `println!`, `print!` and `eprintln!` of this crate are the macros below, and [`line`] prints a line with
//! colours. All of them escape what would control a terminal (see [`escape`]): the only control sequences that reach it are
//! the colours of [`style`]. A lint refuses the macros of the standard library.
//!
//! A stream has colours only where it is a terminal, or where the user asks for them. While a
//! [`pager::Pager`] exists, standard output goes through it.
//!
//! On a terminal, lines are broken between words. A line that begins with two spaces is a command, code or data, and is left as it is, so that
//! it can be copied. [`data`] and [`exact_line`] break nothing, and neither does anything with `--json`.

// First, because the modules below use them.
/// Prints a line to standard output.
macro_rules! println {
    () => { $crate::terminal::to_stdout(::core::format_args!("\n")) };
    ($($what:tt)*) => {
        $crate::terminal::to_stdout(::core::format_args!("{}\n", ::core::format_args!($($what)*)))
    };
}

/// Prints to standard output.
macro_rules! print {
    ($($what:tt)*) => { $crate::terminal::to_stdout(::core::format_args!($($what)*)) };
}

/// Prints a line to standard error.
macro_rules! eprintln {
    ($($what:tt)*) => {
        $crate::terminal::to_stderr(::core::format_args!("{}\n", ::core::format_args!($($what)*)))
    };
}

pub(crate) mod difference;
pub(crate) mod draft;
mod escape;
mod layout;
mod markdown;
mod number;
mod output;
pub(crate) mod pager;
mod redraw;
pub(crate) mod status;
pub(crate) mod style;
mod table;
pub(crate) mod time;
mod wrap;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use escape::{exact_json, exact_text, safe};
pub(crate) use layout::{cut, width};
pub(crate) use markdown::MarkdownStream;
pub(crate) use number::{duration, grouped, money};
pub(crate) use pager::Pager;
pub(crate) use redraw::RedrawnLines;
pub(crate) use style::{ColorChoice, Role, Text};
pub(crate) use table::Table;
pub(crate) use wrap::{hanging, wrapped, wrapped_within};

use clap::builder::StyledStr;
use markdown::Look;
use rustix::termios::{QueueSelector, tcflush};

/// Whether only results and errors are printed.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Whether the output is for a screen reader.
static IS_PLAIN: AtomicBool = AtomicBool::new(false);

/// Whether no line is broken.
static IS_EXACT: AtomicBool = AtomicBool::new(false);

/// The characters of a text that are shown on any terminal.
const LEAST_ROOM: usize = 20;

/// Columns of an output that is not a terminal.
const COLUMNS: usize = 80;

/// Rows of an output that is not a terminal.
const ROWS: usize = 24;

/// Writes text to standard output. Use `println!` or `print!`.
pub(crate) fn to_stdout(text: fmt::Arguments<'_>) {
    output::stdout(prose(&safe(&text.to_string()), io::stdout().is_terminal()).as_bytes());
}

/// Writes text to standard error. Use `eprintln!`.
pub(crate) fn to_stderr(text: fmt::Arguments<'_>) {
    output::stderr(prose(&safe(&text.to_string()), io::stderr().is_terminal()).as_bytes());
}

/// Breaks the lines of a text for a terminal.
fn prose(text: &str, is_terminal: bool) -> Cow<'_, str> {
    let columns = columns();
    let is_long = |line: &str| !is_verbatim(line) && width(line.trim_end_matches('\n')) > columns;
    if !is_terminal || IS_EXACT.load(Ordering::Relaxed) || !text.split('\n').any(is_long) {
        return text.into();
    }
    let mut broken = String::new();
    for line in text.split_inclusive('\n') {
        if is_long(line) {
            let end = line.trim_end().len();
            broken.push_str(&wrapped(&line[..end], columns).join("\n"));
            broken.push_str(&line[end..]);
        } else {
            broken.push_str(line);
        }
    }
    broken.into()
}

/// Whether a line is a command, code or data, which is not broken.
fn is_verbatim(line: &str) -> bool {
    line.starts_with("  ") || line.starts_with('\t')
}

/// Returns a line as it is printed, with newlines: broken between words, for a terminal.
fn broken(text: &Text, is_terminal: bool, has_colors: bool) -> String {
    let mut all = String::new();
    let is_broken = is_terminal && !IS_EXACT.load(Ordering::Relaxed) && !is_verbatim(&text.text());
    let lines = if is_broken { wrap::wrapped_text(text, columns()) } else { vec![text.clone()] };
    for line in lines {
        line.render(has_colors, &mut all);
        all.push('\n');
    }
    all
}

/// Writes data to standard output: byte for byte, or escaped if that is a terminal.
pub(crate) fn data(text: &str) {
    bytes(text.as_bytes());
}

/// Writes bytes to standard output: exactly, or as escaped text if that is a terminal.
pub(crate) fn bytes(bytes: &[u8]) {
    if io::stdout().is_terminal() {
        output::stdout(safe(&String::from_utf8_lossy(bytes)).as_bytes());
    } else {
        output::stdout(bytes);
    }
    output::flush();
}

/// Prints a line to standard output, with colours if it has them.
pub(crate) fn line(text: &Text) {
    output::stdout(broken(text, io::stdout().is_terminal(), style::stdout_has_colors()).as_bytes());
}

/// Prints a line to standard output that is not broken, such as one of a file.
pub(crate) fn exact_line(text: &Text) {
    output::stdout(format!("{}\n", text.rendered(style::stdout_has_colors())).as_bytes());
}

/// Prints text of the command itself, such as its help, which may have colours already.
pub(crate) fn own_text(text: &StyledStr) {
    output::stdout(colored_or_plain(text, style::stdout_has_colors()).as_bytes());
}

/// Prints text of the command itself to standard error.
pub(crate) fn own_error_text(text: &StyledStr) {
    output::stderr(colored_or_plain(text, style::stderr_has_colors()).as_bytes());
}

fn colored_or_plain(text: &StyledStr, has_colors: bool) -> String {
    if has_colors { text.ansi().to_string() } else { text.to_string() }
}

/// Starts Markdown that streams to standard output, which is a terminal.
pub(crate) fn markdown_stream() -> MarkdownStream {
    let look = match (is_plain(), style::stdout_has_colors()) {
        (true, _) => Look::Words,
        (false, true) => Look::Colors,
        (false, false) => Look::Marks,
    };
    MarkdownStream::new(look, columns())
}

/// Prints a piece of Markdown that streams to standard output.
pub(crate) fn stream(markdown: &mut MarkdownStream, text: &str) {
    let rendered = markdown.push(text);
    if !rendered.is_empty() {
        output::stdout(rendered.as_bytes());
        output::flush();
    }
}

/// Prints what was held back of Markdown that streams, and ends its line.
pub(crate) fn end_stream(markdown: &mut MarkdownStream) {
    output::stdout(markdown.flush().as_bytes());
    output::flush();
}

/// Prints a text to standard output: Markdown on a terminal, and elsewhere as it is, with a newline.
pub(crate) fn markdown(text: &str) {
    if io::stdout().is_terminal() {
        let mut markdown = markdown_stream();
        stream(&mut markdown, text);
        end_stream(&mut markdown);
    } else {
        data(&format!("{text}\n"));
    }
}

/// Prints a line to standard error, with colours if it has them.
pub(crate) fn error_line(text: &Text) {
    output::stderr(broken(text, io::stderr().is_terminal(), style::stderr_has_colors()).as_bytes());
}

/// Asks a question, and returns the line that is typed, without spaces around it.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    // What was typed before the question was shown does not answer it.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    let _asking = status::ask();
    to_stderr(format_args!("{question}"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// Asks a question. Everything but `y` and `yes` means no.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    Ok(matches!(ask(question)?.to_lowercase().as_str(), "y" | "yes"))
}

/// Suppresses progress, for the whole process.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Whether progress and notes about it are not printed.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Prints for a screen reader: no line is drawn again, and words stand in the place of marks. For the whole process.
pub(crate) fn be_plain() {
    IS_PLAIN.store(true, Ordering::Relaxed);
}

/// Whether the output is for a screen reader.
pub(crate) fn is_plain() -> bool {
    IS_PLAIN.load(Ordering::Relaxed)
}

/// Breaks no line, because programs read the output. For the whole process.
pub(crate) fn be_exact() {
    IS_EXACT.store(true, Ordering::Relaxed);
}

/// Returns the columns of the terminal; 80 if standard output and standard error are none.
pub(crate) fn columns() -> usize {
    size().map_or(COLUMNS, |(columns, _)| columns)
}

/// Returns the characters that are left in a line of the terminal after `used` ones, and at most `most`. Without a terminal
/// no line is too long.
pub(crate) fn room(used: usize, most: usize) -> usize {
    size().map_or(most, |(columns, _)| columns.saturating_sub(used).clamp(most.min(LEAST_ROOM), most))
}

/// Returns the rows of the terminal; 24 if standard output and standard error are none.
pub(crate) fn rows() -> usize {
    size().map_or(ROWS, |(_, rows)| rows)
}

/// Whether the terminal, if there is one, understands colours and is not just a buffer.
pub(crate) fn is_capable() -> bool {
    std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// Columns and rows of the first stream that is a terminal and knows its size.
fn size() -> Option<(usize, usize)> {
    let size_of = |stream: BorrowedFd<'_>| {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
    };
    size_of(io::stdout().as_fd()).or_else(|| size_of(io::stderr().as_fd()))
}
