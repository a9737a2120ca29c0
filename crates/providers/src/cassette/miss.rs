//! Reports how a request differs from the recorded ones.

use std::path::Path;

use serde_json::Value;

use super::format::{Request, path_of};
use crate::transport::{CassetteMiss, HttpRequest, MissReason};

/// The maximum number of characters of a value in a report.
const LONGEST_VALUE: usize = 120;

/// Creates the error for a request. It compares with the first remaining exchange, preferring one of the same
/// path.
pub(super) fn miss<'a>(
    file: &Path,
    recorded: usize,
    left: impl Iterator<Item = &'a Request> + Clone,
    asked: &HttpRequest,
) -> CassetteMiss {
    let path = path_of(&asked.url);
    let same = left.clone().find(|request| path_of(&request.url) == path);
    let reason = match (same, left.clone().next()) {
        (Some(request), _) => body_differs(request, asked),
        (None, Some(request)) => {
            MissReason::Path { recorded: path_of(&request.url).to_owned(), asked: path.to_owned() }
        }
        (None, None) => MissReason::AllPlayed { recorded },
    };
    CassetteMiss { file: file.to_owned(), reason }
}

fn body_differs(recorded: &Request, asked: &HttpRequest) -> MissReason {
    let Some(body) = &recorded.body else { return MissReason::LongBody };
    let text = asked.body.text();
    let now = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text));
    match difference(body, &now, String::new()) {
        Some((place, recorded, asked)) => {
            let place = if place.is_empty() { "the top".to_owned() } else { place };
            MissReason::Body { place, recorded: shown(recorded), asked: shown(asked) }
        }
        // Two bodies with equal values in another order, or with a redacted secret.
        None => MissReason::Body {
            place: "the top".to_owned(),
            recorded: "other bytes of the same value".to_owned(),
            asked: "these".to_owned(),
        },
    }
}

type Difference<'a> = (String, Option<&'a Value>, Option<&'a Value>);

/// The first place at which two values differ.
fn difference<'a>(one: &'a Value, other: &'a Value, place: String) -> Option<Difference<'a>> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                pair(one.get(name), other.get(name), format!("{place}/{escaped}"))
            })
        }
        (Value::Array(one), Value::Array(other)) => (0..one.len().max(other.len()))
            .find_map(|index| pair(one.get(index), other.get(index), format!("{place}/{index}"))),
        _ if one == other => None,
        _ => Some((place, Some(one), Some(other))),
    }
}

fn pair<'a>(one: Option<&'a Value>, other: Option<&'a Value>, place: String) -> Option<Difference<'a>> {
    match (one, other) {
        (Some(one), Some(other)) => difference(one, other, place),
        _ => Some((place, one, other)),
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
