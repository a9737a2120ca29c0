//! The lines of the sections: one entry each.
//!
//! Names are on the left, padded to [`COLUMN`], followed by a comment. An entry is one line: text from
//! programs and tools may contain line breaks, quotes and semicolons, and none of them breaks the layout.

use std::borrow::Cow;

use backstitch_lisp::{Limits, Truncation, from_json, to_clojure_without_hidden};

use super::DisplayOptions;
use super::fence::LINE_BREAKS;
use crate::text::{collapsed, cut};
use crate::turn::{DefinedAs, Excerpt, TurnCall, TurnCallOutcome, TurnDefinition};

/// The column of comments, unless the text before them is longer.
pub(super) const COLUMN: usize = 30;

/// The padding of names.
const SPACES: &str = "                              ";

/// The maximum number of characters of a function's parameters.
const PARAMETER_CHARACTERS: usize = 120;

/// Writes an entry, with the end of its line.
pub(super) fn write_entry(out: &mut String, left: &str, comment: &str) {
    out.push_str(left);
    if !comment.is_empty() {
        let width = left.chars().count();
        out.push_str(&SPACES[..COLUMN.saturating_sub(width).max(1)]);
        out.push_str("; ");
        out.push_str(comment);
    }
    out.push('\n');
}

/// Whether a text is printable ASCII. Nearly all texts are, and need no replacements.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// A text as one line: line breaks become spaces.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let breaks = |character: char| character.is_control() || LINE_BREAKS.contains(&character);
    if text.contains(breaks) { Cow::Owned(text.replace(breaks, " ")) } else { Cow::Borrowed(text) }
}

/// A name as one word. Names that can be written in the language are unchanged; others may contain anything.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b'!'..=b'}') && byte != b';' && byte != b'"') {
        return Cow::Borrowed(text);
    }
    let foreign = |character: char| {
        character.is_whitespace() || character.is_control() || matches!(character, ';' | '~' | '"')
    };
    if text.contains(foreign) { Cow::Owned(text.replace(foreign, "_")) } else { Cow::Borrowed(text) }
}

/// A docstring in quotes: without semicolons and line breaks, and with its own quotes escaped. `None` if it
/// is empty.
fn quoted_doc(doc: &str, characters: usize) -> Option<String> {
    // Removing and escaping changes the length by a factor of at most two, so four times as much is enough.
    let beginning = cut(doc, characters.saturating_mul(4).saturating_add(1));
    let plain = collapsed(&beginning.replace(';', ""));
    let doc = cut(&plain, characters);
    (!doc.is_empty()).then(|| format!("\"{}\"", doc.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Writes the entry of a definition.
pub(super) fn write_definition(
    out: &mut String,
    defined: &TurnDefinition,
    with_sample: bool,
    display: &DisplayOptions,
) {
    let doc = defined.doc.as_deref().and_then(|doc| quoted_doc(doc, display.doc_characters));
    let mut comment = doc.unwrap_or_default();
    let mut add = |text: &str| {
        if !comment.is_empty() {
            comment.push(' ');
        }
        comment.push_str(text);
    };
    let name = name(&defined.name);
    match &defined.defined_as {
        DefinedAs::Function { parameters, returned } => {
            if let Some(returned) = returned {
                add(&format!("-> {}", one_line(returned)));
            }
            let parameters = collapsed(&parameters.join(" ").replace(';', ""));
            let left = format!("({name} {})", cut(&parameters, PARAMETER_CHARACTERS));
            write_entry(out, &left, &comment);
        }
        DefinedAs::Value { label, sample } => {
            add(&format!("= {}", one_line(label)));
            if let Some(sample) = sample.as_deref().filter(|_| with_sample) {
                comment.push_str(", sample: ");
                comment.push_str(&one_line(sample));
            }
            write_entry(out, &name, &comment);
        }
    }
}

/// Writes the line of a call.
pub(super) fn write_call(
    out: &mut String,
    call: &TurnCall,
    with_result: bool,
    failed: bool,
    display: &DisplayOptions,
) {
    out.push_str(";   ");
    out.push_str(&name(&call.name));
    out.push('(');
    let arguments = excerpt(&call.arguments, display.arguments());
    if arguments != "{}" && arguments != "nil" {
        out.push_str(&one_line(&arguments));
    }
    out.push(')');
    if with_result {
        out.push_str(" -> ");
        match &call.outcome {
            TurnCallOutcome::Result(result) => out.push_str(&one_line(&described(result, display.sample()))),
            TurnCallOutcome::Error(message) => {
                out.push_str("Error: ");
                out.push_str(&one_line(&cut(message, display.sample_characters)));
            }
            TurnCallOutcome::Open => out.push_str("(no result)"),
        }
    }
    if failed {
        out.push_str(" ; (failed turn)");
    }
    out.push('\n');
}

/// An excerpt in the notation of the language.
pub(super) fn excerpt(excerpt: &Excerpt, truncation: Truncation) -> Cow<'_, str> {
    match excerpt {
        Excerpt::Sample { text, .. } => Cow::Borrowed(text),
        Excerpt::Whole(json) => match from_json(json, &Limits::default()) {
            Ok(value) => Cow::Owned(to_clojure_without_hidden(&value, truncation)),
            // It is nested deeper than the language allows, and would hardly be visible.
            Err(_) => Cow::Borrowed("..."),
        },
    }
}

/// An excerpt, with the names of all fields before it if it is cut.
pub(super) fn described(shown: &Excerpt, truncation: Truncation) -> Cow<'_, str> {
    let text = excerpt(shown, truncation);
    if !truncation.fields || !text.contains("...") {
        return text;
    }
    let label = match shown {
        Excerpt::Sample { label, .. } => label.clone(),
        Excerpt::Whole(json) => match from_json(json, &Limits::default()) {
            Ok(value) => crate::turn::label(&value, truncation),
            Err(_) => return text,
        },
    };
    // A label without fields says nothing that the sample does not.
    if label.contains('{') { Cow::Owned(format!("{label}, sample: {text}")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_in_characters() {
        assert_eq!(cut("ééé", 3), "ééé");
        assert_eq!(cut("ééé", 2), "éé...");
        let mut out = String::new();
        write_entry(&mut out, "größe", "x");
        assert_eq!(out, format!("größe{}; x\n", " ".repeat(25)));
    }

    #[test]
    fn a_long_name_still_has_a_space_after_it() {
        let mut out = String::new();
        write_entry(&mut out, &"n".repeat(40), "x");
        assert_eq!(out, format!("{} ; x\n", "n".repeat(40)));
    }

    #[test]
    fn docstrings_stay_in_their_quotes() {
        let quoted = |doc: &str| quoted_doc(doc, 200);
        assert_eq!(quoted("True; if id > 2").as_deref(), Some("\"True if id > 2\""));
        assert_eq!(
            quoted("a \"b\"\n\n;; === tool/ ===\u{2028}c").as_deref(),
            Some("\"a \\\"b\\\" === tool/ === c\"")
        );
        assert_eq!(quoted("ends in \\").as_deref(), Some("\"ends in \\\\\""));
        assert_eq!(quoted(" ;;; \n"), None);
        assert_eq!(quoted_doc("abc def", 3).as_deref(), Some("\"abc...\""));
    }
}
