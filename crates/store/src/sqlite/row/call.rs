//! Intents of calls in rows.
//!
//! The data of an intent is `{"call_id":"…",…,"idempotency_key":"SESSION/CALL","attempt":1,…}`. The key is missing where it
//! is made of the session's id and the call's. A call of a fork or of an adopted conversation may have another one.

use super::split_field;

const ATTEMPT: &str = r#","attempt":"#;

pub(super) fn reduce(data: &str, session: &str) -> Option<String> {
    let (before, after) = split_field(data, &key(data, session)?)?;
    Some([before, after].concat())
}

pub(super) fn restore(remainder: &str, session: &str) -> Option<String> {
    let (before, after) = split_field(remainder, ATTEMPT)?;
    Some([before, &key(remainder, session)?, ATTEMPT, after].concat())
}

/// The key as a field.
fn key(data: &str, session: &str) -> Option<String> {
    let call = data.strip_prefix(r#"{"call_id":""#)?.split('"').next()?;
    Some(format!(r#","idempotency_key":"{session}/{call}""#))
}
