//! Reads errors that providers sent.
//!
//! What is the same for all is here: status, headers, waits, where the message is. What a word means is decided by the
//! [`Classify`] of the provider's dialect.

use std::time::Duration;

use serde_json::Value;

use super::{ErrorKind, ProviderError, quote};
use crate::provider::Provider;

/// The longest wait that is taken from a provider; whoever names a longer one is not asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// An error as a provider sent it.
pub(crate) struct SentError<'a> {
    /// The status of the HTTP response; none inside of a stream.
    pub(crate) status: Option<u16>,
    /// The object that describes the error.
    pub(crate) error: &'a Value,
    /// Its message.
    pub(crate) message: &'a str,
}

impl<'a> SentError<'a> {
    /// A text of the object that describes the error.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.error.get(name).and_then(Value::as_str)
    }

    /// What the status alone means.
    pub(crate) fn by_status(&self) -> ErrorKind {
        match self.status {
            Some(401 | 403) => ErrorKind::Auth,
            Some(402) => ErrorKind::OutOfCredit,
            Some(408 | 409) => ErrorKind::Server,
            Some(429) => ErrorKind::RateLimited,
            Some(503 | 529) => ErrorKind::Overloaded,
            Some(300..=499) => ErrorKind::InvalidRequest,
            Some(_) | None => ErrorKind::Server,
        }
    }

    /// Whether the message says that the conversation is too long. Some providers have no code for that, and what to do about it
    /// is too different to be left unknown.
    pub(crate) fn says_too_long(&self) -> bool {
        const SIGNS: [&str; 3] =
            ["prompt is too long", "exceed context limit", "exceeds the maximum number of tokens allowed"];
        SIGNS.iter().any(|sign| self.message.contains(sign))
    }
}

/// Decides what an error means, and finds the provider's own word for it.
pub(crate) type Classify = for<'a> fn(&SentError<'a>) -> (ErrorKind, Option<&'a str>);

/// What a response that is no answer means. `header` looks a header up by its lower-case name.
pub(crate) fn of_response<'a>(
    provider: Provider,
    classify: Classify,
    status: u16,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &str,
) -> ProviderError {
    let parsed: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let described = described(status, header("location"), body);
    let mut error = classified(provider, classify, Some(status), &parsed, &described);
    error.status = Some(status);
    let named = retry_delay(header("retry-after-ms"), header("retry-after"));
    let dated = || retry_date(header("retry-after")?, header("date"));
    error.retry_after = named.or_else(dated).or(error.retry_after);
    match header("x-should-retry") {
        Some("true") => error.retryable = true,
        Some("false") => error.retryable = false,
        _ => {}
    }
    if error.retry_after.is_some_and(|wait| wait > LONGEST_WAIT) {
        error.retryable = false;
    }
    error
}

/// A response that does not explain itself, in words: its status, and where it leads to or how it begins.
fn described(status: u16, location: Option<&str>, body: &str) -> String {
    match location {
        Some(target) if (300..400).contains(&status) => {
            format!("HTTP status {status}, a redirect to {target}, which is not followed")
        }
        _ if body.trim().is_empty() => format!("HTTP status {status} without a body"),
        _ => format!("HTTP status {status}: {}", quote(body)),
    }
}

/// The error that a body is, when it is one: servers also send errors with a status that says that all is well.
pub(crate) fn said_error(provider: Provider, classify: Classify, body: &str) -> Option<ProviderError> {
    let said: Value = serde_json::from_str(body).ok()?;
    let is_error = !said["error"].is_null() || !said[0]["error"].is_null() || said["type"] == "error";
    is_error.then(|| of_event(provider, classify, &said))
}

/// What an error inside of a stream means.
pub(crate) fn of_event(provider: Provider, classify: Classify, event: &Value) -> ProviderError {
    let text = event.to_string();
    classified(provider, classify, None, event, &text)
}

/// The wait until a date that a header names: from when the response was sent, where that is said, else from now. It is nothing
/// when that is over.
fn retry_date(until: &str, sent: Option<&str>) -> Option<Duration> {
    let read = |date: &str| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date.trim()).ok();
    let from = sent.and_then(read).unwrap_or_else(jiff::Timestamp::now);
    let wait = read(until)?.duration_since(from);
    Some(Duration::try_from(wait).unwrap_or(Duration::ZERO))
}

/// The wait that headers name: milliseconds, else seconds.
pub fn retry_delay(milliseconds: Option<&str>, seconds: Option<&str>) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| (0.0..1e9).contains(number));
    let by_milliseconds = milliseconds.and_then(number).map(|number| number / 1_000.0);
    by_milliseconds.or_else(|| seconds.and_then(number)).map(Duration::from_secs_f64)
}

fn classified(
    provider: Provider,
    classify: Classify,
    status: Option<u16>,
    body: &Value,
    raw: &str,
) -> ProviderError {
    // Google wraps errors into a list of one, also for compatible clients.
    let body = body.get(0).unwrap_or(body);
    let error = if body["error"].is_object() { &body["error"] } else { body };
    // Some compatible servers say it in fewer words.
    let short = || body["error"].as_str().or_else(|| body["detail"].as_str());
    let message = error["message"].as_str().or_else(short).unwrap_or(raw);
    let (kind, code) = classify(&SentError { status, error, message });
    let mut made = ProviderError::new(provider, kind, message);
    made.code = code.map(str::to_owned);
    made.retry_after = named_delay(error);
    made
}

/// The wait that the body names, as Google has it.
fn named_delay(error: &Value) -> Option<Duration> {
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    retry_delay(None, Some(delay.strip_suffix('s')?))
}
