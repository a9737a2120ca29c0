//! Classification of error responses.

use std::time::Duration;

use backstitch_providers::{ErrorKind, Provider, of_response, retry_delay};
use serde_json::json;

use Provider::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};

#[test]
fn each_response_has_its_kind() {
    let openai = |kind: &str, code: &str| json!({"error": {"message": "m", "type": kind, "param": null, "code": code}});
    let anthropic =
        |kind: &str, text: &str| json!({"type": "error", "error": {"type": kind, "message": text}});
    let gemini = |code: u16, status: &str, text: &str| json!({"error": {"code": code, "message": text, "status": status}});
    let capped = json!({"error": {"type": "rate_limit_error", "message": "m", "details": {"error_code": "enforced_spend_limit_reached"}}});
    let bad_key = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "m", "details": [{"reason": "API_KEY_INVALID"}]}});
    let daily = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m", "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}]}});
    let cases = [
        (OpenAiChat, 401, openai("invalid_request_error", "invalid_api_key"), ErrorKind::Auth),
        (OpenAiChat, 403, json!({}), ErrorKind::Auth),
        (OpenAiChat, 404, openai("invalid_request_error", "model_not_found"), ErrorKind::InvalidRequest),
        (
            OpenAiChat,
            400,
            openai("invalid_request_error", "context_length_exceeded"),
            ErrorKind::ContextTooLong,
        ),
        (
            OpenAiChat,
            400,
            openai("invalid_request_error", "content_policy_violation"),
            ErrorKind::ContentFilter,
        ),
        (
            OpenAiResponses,
            400,
            openai("invalid_request_error", "invalid_encrypted_content"),
            ErrorKind::InvalidRequest,
        ),
        (OpenAiResponses, 429, openai("requests", "rate_limit_exceeded"), ErrorKind::RateLimited),
        (OpenAiResponses, 429, openai("insufficient_quota", "insufficient_quota"), ErrorKind::OutOfCredit),
        (
            OpenAiResponses,
            503,
            openai("service_unavailable_error", "server_is_overloaded"),
            ErrorKind::Overloaded,
        ),
        (OpenAiResponses, 500, openai("server_error", "x"), ErrorKind::Server),
        (OpenAiResponses, 502, json!("not an object"), ErrorKind::Server),
        (Anthropic, 401, anthropic("authentication_error", "m"), ErrorKind::Auth),
        (Anthropic, 402, anthropic("billing_error", "m"), ErrorKind::OutOfCredit),
        (Anthropic, 429, anthropic("rate_limit_error", "m"), ErrorKind::RateLimited),
        (Anthropic, 429, capped, ErrorKind::OutOfCredit),
        (Anthropic, 529, anthropic("overloaded_error", "m"), ErrorKind::Overloaded),
        (Anthropic, 413, json!(null), ErrorKind::ContextTooLong),
        (
            Anthropic,
            400,
            anthropic("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            ErrorKind::ContextTooLong,
        ),
        (Anthropic, 400, anthropic("invalid_request_error", "other"), ErrorKind::InvalidRequest),
        (
            Anthropic,
            400,
            anthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
            ErrorKind::OutOfCredit,
        ),
        (OpenAiChat, 402, json!({"error": {"message": "Insufficient Balance"}}), ErrorKind::OutOfCredit),
        (
            Gemini,
            400,
            gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            ErrorKind::Auth,
        ),
        (Gemini, 400, bad_key, ErrorKind::Auth),
        (
            Gemini,
            400,
            gemini(
                400,
                "INVALID_ARGUMENT",
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            ),
            ErrorKind::ContextTooLong,
        ),
        (Gemini, 429, gemini(429, "RESOURCE_EXHAUSTED", "m"), ErrorKind::RateLimited),
        (Gemini, 429, daily, ErrorKind::OutOfCredit),
        (Gemini, 503, gemini(503, "UNAVAILABLE", "m"), ErrorKind::Overloaded),
        (Gemini, 500, gemini(500, "INTERNAL", "m"), ErrorKind::Server),
    ];
    for (provider, status, body, kind) in cases {
        let error = of_response(provider, status, |_| None, &body.to_string());
        assert_eq!(error.kind, kind, "{provider} {status} {body}");
        assert_eq!(error.status, Some(status));
        assert_eq!(error.retryable, kind.is_retryable());
    }
}

#[test]
fn waits_are_taken_from_headers_and_bodies() {
    assert_eq!(retry_delay(Some("1500"), Some("9")), Some(Duration::from_millis(1500)));
    assert_eq!(retry_delay(None, Some("2.5")), Some(Duration::from_millis(2500)));
    assert_eq!(retry_delay(None, Some("soon")), None);
    assert_eq!(retry_delay(None, Some("-1")), None);
    let body = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m", "details": [{"retryDelay": "20s"}]}});
    let error = of_response(Gemini, 429, |_| None, &body.to_string());
    assert_eq!(error.retry_after, Some(Duration::from_secs(20)));
}

#[test]
fn a_provider_may_say_whether_to_ask_again() {
    let told = |word: &'static str| {
        of_response(OpenAiChat, 500, move |name| (name == "x-should-retry").then_some(word), "{}").retryable
    };
    assert!(told("true"));
    assert!(!told("false"));
    let long = of_response(Anthropic, 429, |name| (name == "retry-after").then_some("3600"), "{}");
    assert_eq!((long.kind, long.retryable), (ErrorKind::RateLimited, false));
}

#[test]
fn secrets_that_a_provider_repeats_are_taken_out() {
    let body = json!({"error": {"message": "Incorrect API key provided: sk-hunter2.", "type": "x", "code": "sk-hunter2"}});
    let error = of_response(OpenAiChat, 401, |_| None, &body.to_string()).without("sk-hunter2");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}
