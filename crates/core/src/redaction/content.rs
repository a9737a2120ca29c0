//! Redaction of the content of objects that records name: texts, results, arguments, media.

use std::collections::BTreeSet;

use super::record::TextRedaction;
use super::{MARKER, SensitiveValue};

/// How often bytes are gone through before all of them are replaced.
const ROUNDS: usize = 4;

/// Returns the bytes without the value. JSON stays JSON. If the value cannot be taken out of the bytes, the marker replaces all of
/// them.
pub fn redact_content(bytes: &[u8], value: &SensitiveValue) -> Vec<u8> {
    let json = str::from_utf8(bytes).ok().and_then(|text| redact_json(text, value));
    let redacted = json.map_or_else(|| redact_bytes(bytes, value), String::into_bytes);
    if value.is_in(&redacted) { MARKER.as_bytes().to_vec() } else { redacted }
}

fn redact_json(text: &str, value: &SensitiveValue) -> Option<String> {
    let reads = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let mut redaction =
        TextRedaction { value, free: &|_| true, reads: &reads, kept: BTreeSet::new(), replacements: 0 };
    redaction.run(text).filter(|redacted| !value.is_in(redacted.as_bytes()))
}

fn redact_bytes(bytes: &[u8], value: &SensitiveValue) -> Vec<u8> {
    let mut current = bytes.to_vec();
    for _ in 0..ROUNDS {
        let ranges = value.finder().ranges(&current);
        if ranges.is_empty() {
            break;
        }
        let mut next = Vec::with_capacity(current.len());
        let mut at = 0;
        for range in ranges {
            next.extend_from_slice(&current[at..range.start]);
            next.extend_from_slice(MARKER.as_bytes());
            at = range.end;
        }
        next.extend_from_slice(&current[at..]);
        current = next;
    }
    current
}
