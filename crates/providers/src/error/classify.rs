//! From what a provider sent to what went wrong.

use std::time::Duration;

use serde_json::Value;

use super::{ErrorKind, ProviderError, quote};
use crate::provider::Provider;

/// The longest wait that is taken from a provider; whoever names a longer one is not asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// What a response that is no answer means. `header` looks a header up by its lower-case name.
pub fn of_response<'a>(
    provider: Provider,
    status: u16,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &str,
) -> ProviderError {
    let parsed: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let described = described(status, header("location"), body);
    let mut error = classified(provider, Some(status), &parsed, &described);
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
pub(crate) fn said_error(provider: Provider, body: &str) -> Option<ProviderError> {
    let said: Value = serde_json::from_str(body).ok()?;
    let is_error = !said["error"].is_null() || !said[0]["error"].is_null() || said["type"] == "error";
    is_error.then(|| of_event(provider, &said))
}

/// What an error inside of a stream means.
pub(crate) fn of_event(provider: Provider, event: &Value) -> ProviderError {
    let text = event.to_string();
    classified(provider, None, event, &text)
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

fn classified(provider: Provider, status: Option<u16>, body: &Value, raw: &str) -> ProviderError {
    // Gemini wraps errors into a list of one.
    let body = body.get(0).unwrap_or(body);
    let error = if body["error"].is_object() { &body["error"] } else { body };
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    // Some compatible servers say it in fewer words.
    let short = || body["error"].as_str().or_else(|| body["detail"].as_str());
    let message = text("message").or_else(short).unwrap_or(raw);
    let (kind, code) = match provider {
        Provider::OpenAiChat | Provider::OpenAiResponses => {
            let code = text("code").or(text("type"));
            (openai(status, text("type"), text("code")), code)
        }
        Provider::Anthropic => {
            let detail = error["details"]["error_code"].as_str();
            (anthropic(status, text("type"), detail, message), text("type"))
        }
        Provider::Gemini => (gemini(status, error, message), text("status")),
    };
    let mut made = ProviderError::new(provider, kind, message);
    made.code = code.map(str::to_owned);
    made.retry_after = gemini_delay(error);
    made
}

fn by_status(status: Option<u16>) -> ErrorKind {
    match status {
        Some(401 | 403) => ErrorKind::Auth,
        Some(402) => ErrorKind::OutOfCredit,
        Some(408 | 409) => ErrorKind::Server,
        Some(429) => ErrorKind::RateLimited,
        Some(503 | 529) => ErrorKind::Overloaded,
        Some(300..=499) => ErrorKind::InvalidRequest,
        Some(_) | None => ErrorKind::Server,
    }
}

fn openai(status: Option<u16>, kind: Option<&str>, code: Option<&str>) -> ErrorKind {
    const NO_MONEY: [&str; 2] = ["insufficient_quota", "credit_balance_exhausted"];
    let words = [code.unwrap_or_default(), kind.unwrap_or_default()];
    if words.iter().any(|word| NO_MONEY.contains(word)) {
        return ErrorKind::OutOfCredit;
    }
    for word in words {
        return match word {
            "context_length_exceeded" => ErrorKind::ContextTooLong,
            "content_policy_violation"
            | "content_filter"
            | "invalid_prompt"
            | "bio_policy"
            | "misalignment_policy_violation" => ErrorKind::ContentFilter,
            "rate_limit_exceeded" | "rate_limit_error" | "slow_down" => ErrorKind::RateLimited,
            "server_is_overloaded" | "service_unavailable_error" => ErrorKind::Overloaded,
            "invalid_api_key" | "authentication_error" => ErrorKind::Auth,
            "server_error" if status.is_none() => ErrorKind::Server,
            "invalid_request_error" if status.is_none() => ErrorKind::InvalidRequest,
            _ => continue,
        };
    }
    by_status(status)
}

fn anthropic(status: Option<u16>, kind: Option<&str>, detail: Option<&str>, message: &str) -> ErrorKind {
    match kind {
        Some("authentication_error" | "permission_error") => ErrorKind::Auth,
        Some("billing_error") => ErrorKind::OutOfCredit,
        Some("rate_limit_error") if detail == Some("enforced_spend_limit_reached") => ErrorKind::OutOfCredit,
        Some("rate_limit_error") => ErrorKind::RateLimited,
        Some("overloaded_error") => ErrorKind::Overloaded,
        Some("api_error" | "timeout_error" | "conflict_error") => ErrorKind::Server,
        // There is no code for it, and what to do about it is too different to be left unknown.
        Some("invalid_request_error") if is_too_long(message) => ErrorKind::ContextTooLong,
        Some("invalid_request_error" | "not_found_error" | "request_too_large") => ErrorKind::InvalidRequest,
        _ => by_status(status),
    }
}

fn is_too_long(message: &str) -> bool {
    const SIGNS: [&str; 3] =
        ["prompt is too long", "exceed context limit", "exceeds the maximum number of tokens allowed"];
    SIGNS.iter().any(|sign| message.contains(sign))
}

fn gemini(status: Option<u16>, error: &Value, message: &str) -> ErrorKind {
    let details = || error["details"].as_array().into_iter().flatten();
    let word = error.get("status").and_then(Value::as_str);
    let status = status.or_else(|| error["code"].as_u64().and_then(|code| u16::try_from(code).ok()));
    if is_too_long(message) {
        return ErrorKind::ContextTooLong;
    }
    if details().any(|detail| detail["reason"] == "API_KEY_INVALID") {
        return ErrorKind::Auth;
    }
    match word {
        Some("UNAUTHENTICATED" | "PERMISSION_DENIED") => ErrorKind::Auth,
        Some("RESOURCE_EXHAUSTED") => {
            let quotas = details().flat_map(|detail| detail["violations"].as_array().into_iter().flatten());
            let by_day = |quota: &Value| quota["quotaId"].as_str().is_some_and(|id| id.contains("PerDay"));
            if quotas.into_iter().any(by_day) { ErrorKind::OutOfCredit } else { ErrorKind::RateLimited }
        }
        Some("UNAVAILABLE") => ErrorKind::Overloaded,
        Some("INTERNAL" | "DEADLINE_EXCEEDED") => ErrorKind::Server,
        Some("INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "NOT_FOUND") => ErrorKind::InvalidRequest,
        _ => by_status(status),
    }
}

/// The wait that Gemini names in the body.
fn gemini_delay(error: &Value) -> Option<Duration> {
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    retry_delay(None, Some(delay.strip_suffix('s')?))
}
