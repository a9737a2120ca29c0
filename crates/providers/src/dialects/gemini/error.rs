//! Classification of errors of Gemini.

use serde_json::Value;

use crate::error::{ErrorKind, SentError};

pub(super) fn classify<'a>(sent: &SentError<'a>) -> (ErrorKind, Option<&'a str>) {
    let word = sent.text("status");
    (meaning(sent, word), word)
}

fn meaning(sent: &SentError<'_>, word: Option<&str>) -> ErrorKind {
    let details = || sent.error["details"].as_array().into_iter().flatten();
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
        _ => {
            // Inside of a stream the error itself holds the status.
            let code = || sent.error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
            SentError { status: sent.status.or_else(code), ..*sent }.by_status()
        }
    }
}
