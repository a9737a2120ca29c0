//! Why a session has no answer: the error that stopped it, the failure of its evaluation, or the last failed
//! attempt.

use backstitch::journal::{SessionFailure, SessionStopped};
use backstitch::view::{JournalEntry, JournalView, Request};
use serde::Serialize;
use serde_json::{Value, json};

use backstitch::host::one_line;

/// A failure in a line.
pub(crate) fn text(failure: &SessionFailure) -> String {
    let attempts = match failure.attempts {
        None => String::new(),
        Some(1) => " after 1 attempt".to_owned(),
        Some(attempts) => format!(" after {attempts} attempts"),
    };
    format!("{}{attempts}: {}", failure.kind, one_line(&failure.message, 200))
}

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

/// Renders the requests of all evaluations as JSON, with the data of their records.
pub(crate) fn evaluations(view: &JournalView) -> Value {
    let all = view.evaluations().map(|evaluation| {
        let requests: Vec<Value> = evaluation.requests.iter().map(|request| as_json(request)).collect();
        json!({
            "evaluation": evaluation.evaluation_id, "turns": evaluation.turns, "outcome": evaluation.outcome(),
            "error": evaluation.finished.as_ref().and_then(|finished| finished.record.error.as_ref()),
            "requests": requests,
        })
    });
    all.collect()
}

fn as_json(request: &Request) -> Value {
    json!({
        "attempts": request.attempts(), "started": record(&request.started),
        "failures": request.failures.iter().map(record).collect::<Vec<_>>(),
        "finished": request.finished.as_ref().map(record),
    })
}

/// Renders the last stop as JSON. `current` says whether it is the reason why no process drives the session.
pub(crate) fn last_stop(view: &JournalView) -> Value {
    let current: Option<&SessionStopped> = view.stopped();
    match view.last_stop() {
        Some(stop) => {
            let mut json = record(stop);
            json["current"] = json!(current.is_some());
            json
        }
        None => Value::Null,
    }
}

fn record<T: Serialize>(recorded: &JournalEntry<T>) -> Value {
    let JournalEntry { point, at, record } = recorded;
    json!({"session": point.session, "position": point.position, "at": at, "data": &**record})
}
