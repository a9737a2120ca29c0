//! The last lines of a run, and its last event.

use std::time::Duration;

use backstitch::RuntimeError;
use backstitch::budget::Amounts;
use backstitch::view::JournalView;
use serde_json::{Value, json};

use crate::error::{code_of, message_of};
use crate::terminal::{duration, grouped, money};

/// Renders all amounts as JSON, including those that are zero, and the number of requests whose cost is not known.
pub(super) fn as_json((spent, unpriced): (Amounts, u64)) -> Value {
    json!({
        "input_tokens": spent.input_tokens, "cache_read_tokens": spent.cache_read_tokens,
        "cache_write_tokens": spent.cache_write_tokens, "output_tokens": spent.output_tokens,
        "reasoning_tokens": spent.reasoning_tokens, "total_tokens": spent.total_tokens(),
        "money_micros": spent.money_micros, "unpriced_requests": unpriced, "turns": spent.turns, "calls": spent.calls,
    })
}

/// Returns what a session has spent. Turns and calls are charged only where a budget limits them, so those of its view count too.
pub(super) fn spent_in(view: &JournalView) -> Amounts {
    let charged = view.ledger().charged();
    let turns = view.evaluations().map(|evaluation| evaluation.turns).sum();
    let calls = view.calls().filter(|call| call.intent.is_some()).count() as u64;
    Amounts { turns: charged.turns.max(turns), calls: charged.calls.max(calls), ..charged }
}

/// Formats what an evaluation took.
pub(super) fn closing_line(took: Duration, turns: u64, spent: Amounts, unpriced: u64) -> String {
    let mut parts = vec![run_time(took), counted(turns, "turn")];
    parts.extend(tokens_and_money(spent));
    if spent.money_micros > 0 && unpriced > 0 {
        parts.push(format!("and {} without a price", counted(unpriced, "request")));
    }
    format!("({})", parts.join(", "))
}

/// Formats the line between a turn of a conversation and the next prompt.
pub(crate) fn status_line(model: &str, turn: usize, spent: Amounts, context: Option<String>) -> String {
    let mut parts = vec![model.to_owned(), format!("turn {turn}")];
    parts.extend(tokens_and_money(spent));
    parts.extend(context);
    parts.join(" · ")
}

fn tokens_and_money(spent: Amounts) -> impl Iterator<Item = String> {
    let tokens = spent.total_tokens();
    let tokens = (tokens > 0).then(|| format!("{} tokens", grouped(tokens)));
    let cost = (spent.money_micros > 0).then(|| format!("cost {}", money(spent.money_micros)));
    tokens.into_iter().chain(cost)
}

fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{} {what}s", grouped(number)) }
}

/// Formats the time of a run, in seconds also where it was short.
fn run_time(took: Duration) -> String {
    if took.as_secs() < 60 { format!("{:.1} s", took.as_secs_f64()) } else { duration(took) }
}

/// Exit code of a command that a signal interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Builds the event `ended`.
pub(crate) fn ended_event(
    session: &Value,
    outcome: &str,
    kind: impl Into<Value>,
    message: impl Into<Value>,
) -> Value {
    let (kind, message): (Value, Value) = (kind.into(), message.into());
    json!({
        "v": 1, "event": "ended", "session": session, "outcome": outcome, "kind": kind, "message": message,
    })
}

/// Builds the event `ended` of a run that an error stopped.
pub(super) fn stopped_event(session: &Value, error: &anyhow::Error) -> Value {
    let known = error.chain().find_map(|error| error.downcast_ref::<RuntimeError>());
    let message = known.map_or_else(|| message_of(error), ToString::to_string);
    let kind = known.map_or_else(|| code_of(error).as_str(), RuntimeError::kind);
    ended_event(session, "stopped", kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_leave_out_what_is_zero() {
        let spent = Amounts { input_tokens: 1200, output_tokens: 34, money_micros: 12_300, ..Amounts::ZERO };
        assert_eq!(
            closing_line(Duration::from_millis(2140), 3, spent, 0),
            "(2.1 s, 3 turns, 1,234 tokens, cost 0.0123)"
        );
        assert_eq!(closing_line(Duration::from_secs(75), 1, Amounts::ZERO, 1), "(1 min 15 s, 1 turn)");
        assert!(
            closing_line(Duration::ZERO, 1, spent, 1)
                .ends_with("cost 0.0123, and 1 request without a price)")
        );
        assert_eq!(status_line("scripted:a", 2, Amounts::ZERO, None), "scripted:a · turn 2");
    }
}
