//! The lines of the sections: one entry each, whatever is in it.
//!
//! Names stand on the left, padded to [`COLUMN`]; what is told of them follows as a comment. An entry is one line: what comes
//! from programs and tools may hold line breaks, quotes and semicolons, and none of them gets out of its place.

use std::borrow::Cow;

use backstitch_lisp::{Limits, Truncation, from_json, to_clojure_without_hidden};

use super::DisplayOptions;
use super::fence::LINE_BREAKS;
use crate::turn::{DefinedAs, Excerpt, TurnCall, TurnCallOutcome, TurnDefinition};

/// Where comments begin, if what stands before them is short enough.
pub(super) const COLUMN: usize = 30;

/// What pads a name.
const SPACES: &str = "                              ";

/// The most characters that the parameters of a function take.
const PARAMETER_CHARACTERS: usize = 120;

/// Writes an entry, and ends its line.
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

/// Whether a text is printable ASCII, as nearly all texts are: there is nothing to look for in it, and that is quickly seen.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// A text as one line: each line break is a space.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let breaks = |character: char| character.is_control() || LINE_BREAKS.contains(&character);
    if text.contains(breaks) { Cow::Owned(text.replace(breaks, " ")) } else { Cow::Borrowed(text) }
}

/// A name as one word. Names that can be written stay as they are; one that was made otherwise may hold anything.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b'!'..=b'}') && byte != b';' && byte != b'"') {
        return Cow::Borrowed(text);
    }
    let foreign = |character: char| {
        character.is_whitespace() || character.is_control() || matches!(character, ';' | '~' | '"')
    };
    if text.contains(foreign) { Cow::Owned(text.replace(foreign, "_")) } else { Cow::Borrowed(text) }
}

/// A text without spaces around it, and with single ones in it.
pub(crate) fn collapsed(text: &str) -> String {
    let spaces = |character: char| character.is_whitespace() || character.is_control();
    let mut words = text.split(spaces).filter(|word| !word.is_empty());
    let mut collapsed = words.next().unwrap_or_default().to_owned();
    for word in words {
        collapsed.push(' ');
        collapsed.push_str(word);
    }
    collapsed
}

/// The first characters of a text, and `...` if there are more.
pub(crate) fn cut(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

/// A docstring in quotes: no semicolons, no line breaks, and its own quotes escaped. Nothing, if nothing is left of it.
fn quoted_doc(doc: &str, characters: usize) -> Option<String> {
    // What is left out or escaped makes it at most twice as long, so there is no need to look further.
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
            TurnCallOutcome::Result(result) => out.push_str(&one_line(&excerpt(result, display.sample()))),
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
            // Nested deeper than the language allows, so there is not much of it to be seen anyway.
            Err(_) => Cow::Borrowed("..."),
        },
    }
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
