//! Messages in rows.
//!
//! The data of a message is
//! `{…,"turn":3,…,"created_at":"…","message":{"policy":"…","role_hint_for_llm":"assistant","step_num":3,"content":{"kind":…}},…}`.
//! Missing are the time of its creation where it is that of the record, the step where it is the turn, and the hint where it
//! is the usual one for the kind of content.
//!
//! The names are searched as text. A quote inside of a string is escaped, so `,"content":{` is a field, and before the first one there
//! are only plain values.

use super::split_field;

const CREATED: &str = r#","created_at":""#;
const MESSAGE: &str = r#","message":{"#;
const HINT: &str = r#","role_hint_for_llm":""#;
const STEP: &str = r#","step_num":"#;
const CONTENT: &str = r#","content":{"#;

pub(super) fn reduce(data: &str, at: &str) -> Option<String> {
    let (place, rest) = split_field(data, MESSAGE)?;
    let (speaker, content) = split_field(rest, CONTENT)?;
    let (before, created_at) = split_field(place, CREATED)?;
    let place = if created_at.strip_suffix('"')? == at { before } else { place };
    let (speaker, step) = split_field(speaker, STEP)?;
    let (policy, hint) = split_field(speaker, HINT)?;
    let speaker = if hint.strip_suffix('"')? == usual_hint(content) { policy } else { speaker };
    let mut remainder = String::with_capacity(data.len());
    remainder.extend([place, MESSAGE, speaker]);
    if step != turn(place)? {
        remainder.extend([STEP, step]);
    }
    remainder.extend([CONTENT, content]);
    Some(remainder)
}

pub(super) fn restore(remainder: &str, at: &str) -> Option<String> {
    let (place, rest) = split_field(remainder, MESSAGE)?;
    let (speaker, content) = split_field(rest, CONTENT)?;
    let (speaker, step) = match split_field(speaker, STEP) {
        Some((speaker, step)) => (speaker, step),
        None => (speaker, turn(place)?),
    };
    let mut data = String::with_capacity(remainder.len() + 96);
    data.push_str(place);
    if !place.contains(CREATED) {
        data.extend([CREATED, at, "\""]);
    }
    data.extend([MESSAGE, speaker]);
    if !speaker.contains(HINT) {
        data.extend([HINT, usual_hint(content), "\""]);
    }
    data.extend([STEP, step, CONTENT, content]);
    Some(data)
}

/// The turn, as it is written.
fn turn(place: &str) -> Option<&str> {
    let (_, rest) = split_field(place, r#","turn":"#)?;
    rest.split(',').next()
}

/// The hint of most messages with this content.
fn usual_hint(content: &str) -> &'static str {
    if content.starts_with(r#""kind":"option_result""#) { "tool" } else { "assistant" }
}
