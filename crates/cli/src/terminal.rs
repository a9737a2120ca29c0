//! Output of the command. Everything that it prints passes through this module.
//!
//! Missions, answers of models, results of tools, file names and files may hold text that controls a
//! terminal: escape sequences that repaint lines or fill the clipboard, and controls that change the
//! direction of text. None of it reaches a terminal. Control characters (except newline and tab) and
//! bidirectional controls are written in the form `\u001b`. That form means the same inside a JSON string, so
//! text and JSON share one rule.
//!
//! `println!`, `print!` and `eprintln!` of this crate are the macros below. A lint refuses those of the
//! standard library.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;

/// Exit code that a shell reports for a program that SIGPIPE ended.
const BROKEN_PIPE: i32 = 141;

/// Maximum length of JSON that is printed on one line, in characters.
const ONE_LINE: usize = 100;

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

/// Writes text to standard output. Use `println!` or `print!`.
pub(crate) fn to_stdout(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    written(io::stdout().lock().write_all(safe(&text).as_bytes()), "stdout");
}

/// Writes text to standard error. Use `eprintln!`.
pub(crate) fn to_stderr(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    written(io::stderr().lock().write_all(safe(&text).as_bytes()), "stderr");
}

/// Writes data to standard output: byte for byte, or escaped if that is a terminal.
pub(crate) fn data(text: &str) {
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() { safe(text) } else { Cow::Borrowed(text) };
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()), "stdout");
}

/// Flushes a line of standard output that has not ended yet.
pub(crate) fn flush() {
    written(io::stdout().lock().flush(), "stdout");
}

/// Handles the result of a write. If the reader has closed the pipe, as `head` does, the command exits as
/// SIGPIPE would end it, and a session that it drives can be resumed.
fn written(done: io::Result<()>, stream: &str) {
    match done {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(BROKEN_PIPE),
        // An error of stderr cannot be reported anywhere.
        Err(_) if stream == "stderr" || std::thread::panicking() => {}
        Err(error) => panic!("failed to write to {stream}: {error}"),
    }
}

/// Escapes every character that would control a terminal.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    escaped(text, steers)
}

/// Renders a JSON value without invisible characters. Parsing the text returns the same value.
pub(crate) fn exact_json(value: &Value) -> String {
    let compact = value.to_string();
    let text = if compact.chars().count() <= ONE_LINE { compact } else { format!("{value:#}") };
    escaped(&text, |character| steers(character) || is_invisible(character)).into_owned()
}

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// Whether a terminal may interpret the character instead of showing it.
fn steers(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

/// Whether the character has no width or looks like a space: fillers, joiners, variation selectors and tags.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{00a0}' | '\u{00ad}' | '\u{034f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// All characters that are escaped, and their neighbours.
    fn samples() -> impl Iterator<Item = char> {
        (0..0x11_0000).filter_map(char::from_u32).filter(|character| {
            let number = u32::from(*character);
            number < 0x3200 || (0xfd00..0x1_0100).contains(&number) || (0xe_0000..0xe_1000).contains(&number)
        })
    }

    #[test]
    fn no_control_and_no_bidirectional_override_is_left() {
        let text: String = samples().collect();
        let safe = safe(&text);
        assert!(!safe.chars().any(|one| one.is_control() && one != '\n' && one != '\t'));
        assert!(!safe.contains(['\u{202a}', '\u{202b}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2069}']));
        assert_eq!(super::safe("\u{1b}]0;x\u{7}\u{9b}2J"), "\\u001b]0;x\\u0007\\u009b2J");
        assert!(matches!(super::safe("plain\n\ttext ä 漢 👍"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_means_the_same_after_it_was_made_safe() {
        let text: String = samples().collect();
        let value = json!({"command": text, "\u{202e}key": [1, 2.5, null, "back\\slash\u{1b}"]});
        assert_eq!(serde_json::from_str::<Value>(&safe(&value.to_string())).unwrap(), value);
        for value in [value, json!({"command": "true"}), json!({"a": "x".repeat(300)})] {
            let shown = exact_json(&value);
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
            assert!(!shown.chars().any(is_invisible), "{shown}");
        }
    }
}
