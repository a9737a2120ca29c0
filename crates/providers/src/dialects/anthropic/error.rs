//! Classification of errors of Messages.

use crate::error::{ErrorKind, SentError};

pub(super) fn classify<'a>(sent: &SentError<'a>) -> (ErrorKind, Option<&'a str>) {
    let kind = sent.text("type");
    let detail = sent.error["details"]["error_code"].as_str();
    let meaning = match kind {
        Some("authentication_error" | "permission_error") => ErrorKind::Auth,
        Some("billing_error") => ErrorKind::OutOfCredit,
        Some("rate_limit_error") if detail == Some("enforced_spend_limit_reached") => ErrorKind::OutOfCredit,
        Some("rate_limit_error") => ErrorKind::RateLimited,
        Some("overloaded_error") => ErrorKind::Overloaded,
        Some("api_error" | "timeout_error" | "conflict_error") => ErrorKind::Server,
        Some("request_too_large") => ErrorKind::ContextTooLong,
        Some("invalid_request_error" | "not_found_error") => ErrorKind::InvalidRequest,
        _ => sent.by_status(),
    };
    (meaning, kind)
}
