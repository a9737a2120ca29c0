//! API keys, and their redaction.
//!
//! Errors and recordings are always redacted. Answers are redacted only if the key is long enough to be a
//! real one: local servers use words like `none` as keys, and a model may say such a word.

use std::fmt;
use std::sync::Arc;

use backstitch_core::message::{Arguments, Large, Part};
use backstitch_core::ports::{Delta, Deltas, Finish, PolicyAnswer};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// The replacement of a secret.
const REDACTED: &str = "[secret]";

/// The minimum length of a key that is redacted in answers.
const SHORTEST_KEY: usize = 16;

/// The API key of an account. `Debug` does not show it.
#[derive(Clone)]
pub struct ApiKey {
    secret: SecretString,
    pub(crate) is_token: bool,
}

impl ApiKey {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self { secret: SecretString::from(key.into()), is_token: false }
    }

    /// Wraps a token of OAuth, which every provider takes as `Authorization: Bearer`.
    pub fn token(token: impl Into<String>) -> Self {
        Self { is_token: true, ..Self::new(token) }
    }

    pub(crate) fn expose(&self) -> &str {
        self.secret.expose_secret()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey([secret])")
    }
}

/// Replaces a secret in a text.
pub(crate) fn redact_text(text: &str, secret: &str) -> String {
    if secret.is_empty() { text.to_owned() } else { text.replace(secret, REDACTED) }
}

/// Replaces several secrets in a text. The longest is the first, since one may be part of another.
pub(crate) fn redact_all(text: &str, secrets: &[&str]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| redact_text(&text, secret))
}

/// Replaces a secret in all texts and names of a value.
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

/// Replaces a secret in bytes.
pub(crate) fn redact_bytes(bytes: &[u8], secret: &[u8]) -> Vec<u8> {
    if secret.is_empty() {
        return bytes.to_vec();
    }
    let mut clean = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(start) = rest.windows(secret.len()).position(|window| window == secret) {
        clean.extend_from_slice(&rest[..start]);
        clean.extend_from_slice(REDACTED.as_bytes());
        rest = &rest[start + secret.len()..];
    }
    clean.extend_from_slice(rest);
    clean
}

/// Replaces a secret in an answer. A raw payload that contains it is dropped.
pub(crate) fn redact_answer(mut answer: PolicyAnswer, secret: &str) -> PolicyAnswer {
    if secret.len() < SHORTEST_KEY {
        return answer;
    }
    for part in &mut answer.parts {
        let text = part.as_text().and_then(|part| part.text.inline());
        if let Some(clean) = text.filter(|text| text.contains(secret)).map(|text| redact_text(text, secret)) {
            *part = Part::text(clean);
        }
    }
    for call in &mut answer.calls {
        call.name = redact_text(&call.name, secret);
        call.provider_call_id = call.provider_call_id.take().map(|id| redact_text(&id, secret));
        let text = call.arguments.text();
        if text.contains(secret) {
            call.arguments = Arguments::from_text(redact_text(&text, secret));
        }
    }
    if let Finish::Other(word) = &mut answer.finish {
        *word = redact_text(word, secret);
    }
    if let Some(sidecar) = &mut answer.provider {
        // A changed payload would invalidate the signatures of its thoughts, and the provider would refuse
        // it.
        let holds =
            |payload: &mut Large<Arc<str>>| payload.inline().is_some_and(|text| text.contains(secret));
        sidecar.payload_redacted |= sidecar.payload.take_if(holds).is_some();
        sidecar.finish_reason = sidecar.finish_reason.take().map(|reason| redact_text(&reason, secret));
    }
    answer
}

/// Forwards deltas of an answer without secrets, which may be split between them.
pub(crate) struct Listener<'a> {
    deltas: &'a Deltas,
    secrets: Vec<&'a str>,
    /// Buffered text that may be the beginning of a secret, of answers, of thoughts and of calls.
    held: [String; 3],
}

impl<'a> Listener<'a> {
    pub(crate) fn new(deltas: &'a Deltas, secrets: &[&'a str]) -> Self {
        let secrets = secrets.iter().copied().filter(|secret| secret.len() >= SHORTEST_KEY).collect();
        Self { deltas, secrets, held: Default::default() }
    }

    pub(crate) fn emit(&mut self, delta: Delta) {
        if self.secrets.is_empty() {
            return self.deltas.emit(delta);
        }
        let (place, piece, make) = match delta {
            Delta::Text(piece) => (0, piece, Delta::Text as fn(String) -> Delta),
            Delta::Reasoning(piece) => (1, piece, Delta::Reasoning as fn(String) -> Delta),
            Delta::Call(piece) => (2, piece, Delta::Call as fn(String) -> Delta),
        };
        let held = &mut self.held[place];
        held.push_str(&piece);
        if self.secrets.iter().any(|secret| held.contains(secret)) {
            *held = redact_all(held, &self.secrets);
        }
        let begins = |start: &usize| self.secrets.iter().any(|secret| secret.starts_with(&held[*start..]));
        let longest = self.secrets.iter().map(|secret| secret.len()).max().unwrap_or(0);
        let starts = held.char_indices().map(|(start, _)| start);
        let start = starts.skip_while(|start| start + longest <= held.len()).find(begins);
        let rest = held.split_off(start.unwrap_or(held.len()));
        let emitted = std::mem::replace(held, rest);
        if !emitted.is_empty() {
            self.deltas.emit(make(emitted));
        }
    }

    /// Forwards the buffered text, which turned out not to be a secret.
    pub(crate) fn finish(self) {
        let [words, thoughts, calls] = self.held;
        for delta in [Delta::Reasoning(thoughts), Delta::Text(words), Delta::Call(calls)] {
            let (Delta::Text(text) | Delta::Reasoning(text) | Delta::Call(text)) = &delta;
            if !text.is_empty() {
                self.deltas.emit(delta);
            }
        }
    }
}
