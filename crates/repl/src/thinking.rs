//! Removes the thoughts of a model from its answer.
//!
//! Some servers send thoughts inside of the answer, between `<think>` and `</think>`. They hold drafts of
//! programs, and a draft must not run. A thought without an end extends to the end of the answer. Servers
//! whose template has already written the opening mark send only the closing one: everything before it is a
//! thought. Marks inside of fenced blocks of the answer itself are text.

use std::borrow::Cow;

/// The marks of thoughts.
const MARKS: [&str; 3] = ["think", "thinking", "reasoning"];

/// Returns the answer without the thoughts in it.
pub(crate) fn without_thoughts(answer: &str) -> Cow<'_, str> {
    if !answer.contains('<') {
        return Cow::Borrowed(answer);
    }
    let answer = after_lone_end(answer);
    let mut kept = String::new();
    let mut rest = answer;
    let mut fence: Option<&str> = None;
    let mut has_thoughts = false;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let line = &rest[..end];
        if let Some(open) = fence {
            kept.push_str(line);
            rest = &rest[end..];
            if line.trim_start().starts_with(open)
                && line.trim_matches(['`', '~', ' ', '\t', '\r', '\n']).is_empty()
            {
                fence = None;
            }
            continue;
        }
        if let Some((at, after)) = line_start_of_thought(line) {
            has_thoughts = true;
            kept.push_str(&line[..at]);
            rest = match end_mark(&rest[after..]) {
                Some((_, after_end)) => &rest[after + after_end..],
                None => "",
            };
            // What follows is on a line of its own, as a fence has to be.
            kept.push('\n');
            continue;
        }
        fence = fence_of(line);
        kept.push_str(line);
        rest = &rest[end..];
    }
    if has_thoughts { Cow::Owned(kept) } else { Cow::Borrowed(answer) }
}

/// The position of an opening mark in a line, and the position after it.
fn line_start_of_thought(line: &str) -> Option<(usize, usize)> {
    marks(line).find(|mark| !mark.closes && !mark.is_quoted).map(|mark| (mark.start, mark.end))
}

/// The position of the first closing mark, and the position after it.
fn end_mark(text: &str) -> Option<(usize, usize)> {
    marks(text).find(|mark| mark.closes).map(|mark| (mark.start, mark.end))
}

/// The text after a closing mark that no opening mark precedes. The mark begins or ends a line.
fn after_lone_end(answer: &str) -> &str {
    let Some(mark) = marks(answer).next() else { return answer };
    let line_begin = answer[..mark.start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = answer[mark.end..].find('\n').map_or(answer.len(), |at| mark.end + at);
    let is_at_edge =
        answer[line_begin..mark.start].trim().is_empty() || answer[mark.end..line_end].trim().is_empty();
    if mark.closes && is_at_edge { &answer[mark.end..] } else { answer }
}

/// The fence that a line opens.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '\t', '>']);
    ["```", "~~~"].into_iter().find(|fence| {
        // A block that opens and closes on one line opens nothing.
        line.strip_prefix(*fence).is_some_and(|after| !after.contains(*fence))
    })
}

struct Mark {
    start: usize,
    end: usize,
    closes: bool,
    /// Whether a quotation mark precedes it, as in a string of a program.
    is_quoted: bool,
}

fn marks(text: &str) -> impl Iterator<Item = Mark> {
    text.match_indices('<').filter_map(move |(start, _)| {
        let inside = &text[start + 1..];
        let (closes, name) = match inside.strip_prefix('/') {
            Some(name) => (true, name),
            None => (false, inside),
        };
        let length = name.bytes().take_while(u8::is_ascii_alphabetic).count();
        let is_mark = MARKS.iter().any(|mark| name[..length].eq_ignore_ascii_case(mark));
        let after = name.get(length..)?;
        (is_mark && after.starts_with('>')).then(|| Mark {
            start,
            end: start + 1 + usize::from(closes) + length + 1,
            closes,
            is_quoted: text[..start].ends_with(['"', '`']),
        })
    })
}
