//! Marks inside of Markdown text: which of them may still get a meaning from text that follows.
//!
//! A mark such as `**` means something only if it is closed. Text that streams is shown up to the first mark that may be closed by what follows.
//! A mark that is not closed within [`LONGEST`] bytes is a character like others, however the text arrives.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

/// The most bytes between a mark and the end of what it marks.
const LONGEST: usize = 300;

/// The extensions of Markdown that are read.
pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS
}

/// Returns a source in which each mark that is closed too late is escaped.
pub(super) fn with_short_marks(source: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(source);
    if source.len() > LONGEST {
        while let Some(place) = long_mark(&text) {
            text.to_mut().insert(place, '\\');
        }
    }
    text
}

/// The place of the first mark whose text is too long.
fn long_mark(source: &str) -> Option<usize> {
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

/// Whether a mark between two texts may open something.
fn may_open(before: &str, mark: char, after: &str) -> bool {
    let next = after.chars().next();
    let is_before_word = next.is_none_or(|next| !next.is_whitespace());
    match mark {
        '`' => true,
        '*' => is_before_word,
        '_' => is_before_word && !before.ends_with(char::is_alphanumeric),
        '[' => match after.find(']').map(|end| &after[end + 1..]) {
            Some(rest) => rest.is_empty() || rest.starts_with(['(', '[', ':']),
            None => true,
        },
        '<' => {
            next.is_none_or(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'))
                && !after.contains('>')
        }
        _ => false,
    }
}

/// Whether a line of text has no mark at all, so that it is shown as it is.
pub(super) fn is_without_marks(line: &str) -> bool {
    line.starts_with(char::is_alphabetic)
        && !line.trim_end_matches('\n').contains(['`', '*', '_', '[', ']', '<', '>', '\\', '&', '|', '\n'])
}
