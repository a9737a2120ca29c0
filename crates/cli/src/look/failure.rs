//! Why a session has no answer: the error that stopped it, the failure of its evaluation, or the last failed
//! attempt.

use backstitch::host::one_line;
use backstitch::view::JournalView;

/// Formats the failed attempts of all requests, one line each.
pub(crate) fn attempts(view: &JournalView) -> Vec<String> {
    let requests = view.evaluations().flat_map(|evaluation| &evaluation.requests);
    let failures = requests.flat_map(|request| &request.failures);
    let failures = failures.map(|failure| {
        let failed = &failure.record;
        let then = match failed.then.wait() {
            Some(wait) => format!("retried after {:.1} s", wait.as_secs_f64()),
            None => "not retried".to_owned(),
        };
        let message = one_line(&failed.message, 200);
        format!(
            "turn {}: attempt {} failed ({}): {message}; {then}",
            failed.turn, failed.attempt, failed.kind
        )
    });
    failures.collect()
}
