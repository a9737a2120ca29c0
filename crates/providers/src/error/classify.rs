//! Reads errors that providers sent.
//!
//! Here is what all providers share: status, headers, delays, and where the message is. The [`Classify`]
//! function of the dialect decides what a code means.

use std::time::Duration;

use serde_json::Value;

use super::length::{named_window, says_request_too_large, says_too_long};
use super::{ErrorKind, ProviderError, quote};
use crate::provider::Provider;
use crate::request::RefusedPart;

/// The longest delay that a provider may ask for. An error with a longer one is not retryable.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// An error as a provider sent it.
pub(crate) struct SentError<'a> {
    /// The status of the HTTP response; `None` inside of a stream.
    pub(crate) status: Option<u16>,
    /// The object that describes the error.
    pub(crate) error: &'a Value,
}

impl<'a> SentError<'a> {
    /// A text field of the object that describes the error.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.error.get(name).and_then(Value::as_str)
    }

    /// The kind according to the status alone.
    pub(crate) fn by_status(&self) -> ErrorKind {
        match self.status {
            Some(401 | 403) => ErrorKind::Auth,
            Some(402) => ErrorKind::OutOfCredit,
            Some(408 | 409) => ErrorKind::Server,
            Some(413) => ErrorKind::ContextTooLong,
            Some(429) => ErrorKind::RateLimited,
            Some(503 | 529) => ErrorKind::Overloaded,
            Some(300..=499) => ErrorKind::InvalidRequest,
            Some(_) | None => ErrorKind::Server,
        }
    }
}

/// Decides the kind of an error, and finds the provider's own code for it.
pub(crate) type Classify = for<'a> fn(&SentError<'a>) -> (ErrorKind, Option<&'a str>);

/// Reads a response with an error status. `header` looks a header up by its lower-case name.
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
        // A request that is too long stays too long.
        Some("true") if error.kind != ErrorKind::ContextTooLong => error.retryable = true,
        Some("false") => error.retryable = false,
        _ => {}
    }
    if error.retry_after.is_some_and(|wait| wait > LONGEST_WAIT) {
        error.retryable = false;
    }
    error
}

/// Describes a response without an error object: its status, and the target of the redirect or the beginning
/// of the body.
fn described(status: u16, location: Option<&str>, body: &str) -> String {
    match location {
        Some(target) if (300..400).contains(&status) => {
            format!("HTTP status {status}, a redirect to {target}, which is not followed")
        }
        _ if body.trim().is_empty() => format!("HTTP status {status} without a body"),
        _ => format!("HTTP status {status}: {}", quote(body)),
    }
}

/// Reads a body as an error, if it is one: servers also send errors with a successful status.
pub(crate) fn error_in_body(provider: Provider, classify: Classify, body: &str) -> Option<ProviderError> {
    let content: Value = serde_json::from_str(body).ok()?;
    let is_error =
        !content["error"].is_null() || !content[0]["error"].is_null() || content["type"] == "error";
    is_error.then(|| of_event(provider, classify, &content))
}

/// Reads an error inside of a stream.
pub(crate) fn of_event(provider: Provider, classify: Classify, event: &Value) -> ProviderError {
    let text = event.to_string();
    classified(provider, classify, None, event, &text)
}

/// The delay until the date in a header: counted from the date of the response if it has one, else from now.
/// Zero if the date has passed.
fn retry_date(until: &str, sent: Option<&str>) -> Option<Duration> {
    let from = sent.and_then(date).unwrap_or_else(jiff::Timestamp::now);
    let wait = date(until)?.duration_since(from);
    Some(Duration::try_from(wait).unwrap_or(Duration::ZERO))
}

/// Parses a date of HTTP: the form of today, the one of RFC 850, or that of C.
fn date(text: &str) -> Option<jiff::Timestamp> {
    const OLD_FORMS: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S", "%a %b %e %H:%M:%S %Y"];
    let text = text.trim();
    let today = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    today.or_else(|| {
        let text = text.trim_end_matches(" GMT");
        let parsed = OLD_FORMS.iter().find_map(|form| jiff::civil::DateTime::strptime(form, text).ok())?;
        Some(parsed.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    })
}

/// The delay in headers: milliseconds, else seconds.
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
    // Some compatible servers send only a text.
    let short = || body["error"].as_str().or_else(|| body["detail"].as_str());
    let message = error["message"].as_str().or_else(short).unwrap_or(raw);
    let (kind, code) = classify(&SentError { status, error });
    let kind = by_words(kind, message);
    let mut made = ProviderError::new(provider, kind, message);
    if kind == ErrorKind::ContextTooLong {
        made.window = named_window(error, message);
    }
    made.unexplained = kind == ErrorKind::InvalidRequest
        && matches!(status, Some(400 | 422))
        && !names_reason(error, code)
        && RefusedPart::of_refusal(message).is_none();
    made.code = code.map(str::to_owned);
    made.retry_after = named_delay(error);
    made
}

/// Corrects a kind by the words of the message, for servers without a code for it.
fn by_words(kind: ErrorKind, message: &str) -> ErrorKind {
    const NO_CREDIT: [&str; 3] = ["credit balance is too low", "insufficient balance", "insufficient credit"];
    const BAD_KEY: [&str; 3] = ["api key not valid", "invalid api key", "incorrect api key"];
    // Some versions of llama.cpp send it as a failure of the server, which would be retried.
    const NO_IMAGES: [&str; 2] = ["image input is not supported", "audio input is not supported"];
    let content = || message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| content().contains(word));
    match kind {
        ErrorKind::InvalidRequest | ErrorKind::Server if says_too_long(message) => ErrorKind::ContextTooLong,
        ErrorKind::RateLimited if says_request_too_large(message) => ErrorKind::ContextTooLong,
        ErrorKind::InvalidRequest if has(&NO_CREDIT) => ErrorKind::OutOfCredit,
        ErrorKind::InvalidRequest if has(&BAD_KEY) => ErrorKind::Auth,
        ErrorKind::Server if has(&NO_IMAGES) => ErrorKind::InvalidRequest,
        kind => kind,
    }
}

/// Whether an error names its reason: by a code, or by a field of the request that is not the conversation.
fn names_reason(error: &Value, code: Option<&str>) -> bool {
    const CODES: [&str; 6] = [
        "model_not_found",
        "unsupported_parameter",
        "unsupported_value",
        "unknown_parameter",
        "missing_required_parameter",
        "invalid_encrypted_content",
    ];
    let conversation =
        |param: &str| ["messages", "input", "contents"].iter().any(|name| param.starts_with(name));
    code.is_some_and(|code| CODES.contains(&code))
        || error["param"].as_str().is_some_and(|param| !param.is_empty() && !conversation(param))
}

/// The delay in the body, in Google's form.
fn named_delay(error: &Value) -> Option<Duration> {
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    retry_delay(None, Some(delay.strip_suffix('s')?))
}
