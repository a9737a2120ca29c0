//! Foreign text without controls.
//!
//! Missions, answers of models, results of tools, file names and files may hold text that controls a
//! terminal: escape sequences that repaint lines or fill the clipboard, and controls that change the
//! direction of text. None of it reaches a terminal. Control characters (except newline and tab) and
//! bidirectional controls are written in the form `\u001b`. That form means the same inside a JSON string, so
//! text and JSON share one rule. Escaping a text twice changes nothing more.

use std::borrow::Cow;

use backstitch::host::escape_characters as escaped;
pub(super) use backstitch::host::is_steering as steers;
use serde_json::Value;

/// Maximum length of JSON that is printed on one line, in characters.
const ONE_LINE: usize = 100;

/// Escapes every character that would control a terminal.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    escaped(text, steers)
}

/// Escapes every character that would control a terminal, and newlines.
pub(crate) fn safe_line(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character == '\n' || steers(character))
}

/// Renders a JSON value without invisible characters. Parsing the text returns the same value.
pub(crate) fn exact_json(value: &Value) -> String {
    let compact = value.to_string();
    let text = if compact.chars().count() <= ONE_LINE { compact } else { format!("{value:#}") };
    escaped(&text, |character| steers(character) || is_invisible(character)).into_owned()
}

/// Renders a text without control characters except tab, and without invisible ones. Undoing the escapes
/// `\\u001b` returns the same text: a backslash before a `u` is escaped too.
pub(crate) fn exact_text(text: &str) -> String {
    let text = text.replace("\\u", "\\u005cu");
    let is_unsafe = |character| character == '\n' || steers(character) || is_invisible(character);
    escaped(&text, is_unsafe).into_owned()
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
