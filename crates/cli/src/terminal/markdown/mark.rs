//! Marks inside of Markdown text: which of them may still get a meaning from text that follows.
//!
//! A mark such as `**` means something only if it is closed. Text that streams is shown up to the first mark that may be closed by what follows.
//! A mark that is not closed within [`LONGEST`] bytes is a character like others, however the text arrives.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The most bytes between a mark and the end of what it marks.
const LONGEST: usize = 300;

/// The most times that marks of a block are escaped and the rest is read again. Marks of a hostile text may be nested as deep as it is long.
const MOST_ROUNDS: usize = 50;

/// The marks of code, addresses and links.
const BINDING: [char; 3] = ['`', '<', '['];

/// The extensions of Markdown that are read.
pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS
}

/// Returns a source in which marks that would change what is printed already are escaped: those that are closed too late, lines below a text
/// that make it a heading, and definitions of references, to which something elsewhere may refer.
pub(super) fn with_own_marks(source: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(source);
    for _ in 0..MOST_ROUNDS {
        let mut places = definitions(&text);
        places.extend(underlines(&text));
        if places.is_empty() {
            places.extend(long_mark(&text));
        }
        if places.is_empty() {
            return text;
        }
        places.sort_unstable();
        for place in places.into_iter().rev() {
            text.to_mut().insert(place, '\\');
        }
    }
    without_marks(&text).into()
}

/// Escapes all marks inside of lines.
fn without_marks(source: &str) -> String {
    let (mut text, mut is_escaped) = (String::with_capacity(2 * source.len()), false);
    for one in source.chars() {
        if !is_escaped && matches!(one, '*' | '_' | '`' | '<' | '[') {
            text.push('\\');
        }
        text.push(one);
        is_escaped = one == '\\' && !is_escaped;
    }
    text
}

/// The places of definitions of references.
fn definitions(source: &str) -> Vec<usize> {
    if !source.contains("]:") {
        return Vec::new();
    }
    let parser = Parser::new_ext(source, options());
    parser.reference_definitions().iter().map(|(_, definition)| definition.span.start).collect()
}

/// The places of lines that make the text above them a heading.
fn underlines(source: &str) -> Vec<usize> {
    if !source.trim_end().contains('\n') {
        return Vec::new();
    }
    let events = Parser::new_ext(source, options()).into_offset_iter();
    let headings = events.filter(|(event, _)| matches!(event, Event::Start(Tag::Heading { .. })));
    let underlines = headings.filter_map(|(_, range)| {
        let (text, line) = source.get(range.clone())?.trim_end().rsplit_once('\n')?;
        Some(range.start + text.len() + 1 + line.find(['-', '='])?)
    });
    underlines.collect()
}

/// The place of the first mark whose text is too long.
fn long_mark(source: &str) -> Option<usize> {
    if source.len() <= LONGEST {
        return None;
    }
    let mut events = Parser::new_ext(source, options()).into_offset_iter();
    let is_inline = |event: &Event<'_>| {
        matches!(
            event,
            Event::Start(Tag::Emphasis | Tag::Strong | Tag::Link { .. } | Tag::Image { .. })
                | Event::Code(_)
                | Event::InlineHtml(_)
        )
    };
    events.find(|(event, range)| is_inline(event) && range.len() > LONGEST).map(|(_, range)| range.start)
}

/// Returns the place of the first mark in a range of ordinary text that what follows the source may close.
pub(super) fn open_mark(source: &str, range: Range<usize>) -> Option<usize> {
    let text = source.get(range.clone())?;
    let candidates = text.char_indices().map(|(at, mark)| (range.start + at, mark));
    candidates
        .filter(|(at, _)| source.len() - at <= LONGEST)
        .find(|(at, mark)| may_open(&source[..*at], *mark, &source[at + mark.len_utf8()..]))
        .map(|(at, _)| at)
}

/// Returns the place of the first emphasis or link that code, an address or a link could take apart: it has a mark inside that what follows the
/// source may close, and those bind tighter.
pub(super) fn loose_mark(source: &str) -> Option<usize> {
    if !source.contains(BINDING) {
        return None;
    }
    let mut open = Vec::new();
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Emphasis | Tag::Strong | Tag::Link { .. } | Tag::Image { .. }) => {
                open.push(range.start);
            }
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link | TagEnd::Image) => {
                open.pop();
            }
            Event::Text(_) if has_open_binding(source, range.clone()) => {
                if let Some(first) = open.first() {
                    return Some(*first);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a range has the beginning of something that binds tighter than emphasis.
fn has_open_binding(source: &str, range: Range<usize>) -> bool {
    let marks = source.get(range.clone()).unwrap_or_default().match_indices(BINDING);
    marks.map(|(at, _)| range.start + at).any(|at| open_mark(source, at..at + 1).is_some())
}

/// Whether a mark between two texts may open something.
fn may_open(before: &str, mark: char, after: &str) -> bool {
    let next = after.chars().next();
    let is_before_word = next.is_none_or(|next| !next.is_whitespace());
    match mark {
        '`' => true,
        '*' => is_before_word,
        '_' => is_before_word && !before.ends_with(char::is_alphanumeric),
        '[' => after_bracket(after).is_none_or(|rest| rest.is_empty() || rest.starts_with(['(', '['])),
        '<' => {
            next.is_none_or(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'))
                && !after.contains('>')
        }
        _ => false,
    }
}

/// Returns what follows the end of a bracket, if it is certain where it ends.
fn after_bracket(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, mark) in text.char_indices() {
        match mark {
            '[' => depth += 1,
            ']' if depth == 0 => return text.get(at + 1..),
            ']' => depth -= 1,
            // A bracket inside of code or of an address is another one.
            '`' | '<' | '\\' => return None,
            _ => {}
        }
    }
    None
}

/// Whether a line of text has no mark at all, so that it is shown as it is.
pub(super) fn is_without_marks(line: &str) -> bool {
    line.starts_with(char::is_alphabetic)
        && !line.trim_end_matches('\n').contains(['`', '*', '_', '[', ']', '<', '>', '\\', '&', '|', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_are_nested_as_deep_as_a_text_is_long_are_shown_as_they_are() {
        for (open, close) in [("*a ", " a*"), ("[", "](u)"), ("![", "](u)")] {
            let source = format!("- {}{}{}", open.repeat(600), "x ".repeat(200), close.repeat(600));
            let text = with_own_marks(&source);
            assert!(long_mark(&text).is_none(), "{open}");
            assert_eq!(text.replace('\\', ""), source);
        }
        assert_eq!(without_marks(r"a \* *b* \\*c"), r"a \* \*b\* \\\*c");
    }
}
