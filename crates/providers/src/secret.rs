//! Keys, and taking them out of what others said.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// What stands where a secret stood.
const REDACTED: &str = "[secret]";

/// The key of an account.
#[derive(Clone)]
pub struct ApiKey(SecretString);

impl ApiKey {
    /// A key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(SecretString::from(key.into()))
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey([secret])")
    }
}

/// A text without a secret.
pub(crate) fn redact_text(text: &str, secret: &str) -> String {
    if secret.is_empty() { text.to_owned() } else { text.replace(secret, REDACTED) }
}

/// A value without a secret, in none of its texts and names.
pub(crate) fn redact_json(value: Value, secret: &str) -> Value {
    match value {
        Value::String(text) => Value::String(redact_text(&text, secret)),
        Value::Array(items) => items.into_iter().map(|item| redact_json(item, secret)).collect(),
        Value::Object(fields) => {
            let clean =
                |(name, value): (String, Value)| (redact_text(&name, secret), redact_json(value, secret));
            fields.into_iter().map(clean).collect()
        }
        other => other,
    }
}

/// Bytes without a secret.
pub(crate) fn redact_bytes(bytes: &[u8], secret: &[u8]) -> Vec<u8> {
    if secret.is_empty() {
        return bytes.to_vec();
    }
    let mut clean = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        match rest.strip_prefix(secret) {
            Some(behind) => {
                clean.extend_from_slice(REDACTED.as_bytes());
                rest = behind;
            }
            None => {
                clean.push(*first);
                rest = &rest[1..];
            }
        }
    }
    clean
}
