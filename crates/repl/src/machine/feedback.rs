//! Messages to a model about its programs, so that it can correct them.

use serde_json::{Map, Value as Json};

use super::run::ProgramCall;
use crate::extract::NoProgram;
use crate::mission::without_firewalled;
use crate::signature::{Mismatch, Signature};
use crate::text::cut;
use crate::turn::TurnError;

/// The maximum number of calls in the list for an interrupted program.
const MOST_CALLS: usize = 50;

/// The maximum number of characters of a call's arguments.
const SHOWN: usize = 120;

/// The maximum number of characters of an error, which all later requests contain.
const LONGEST: usize = 8_000;

/// The message for an answer without a program.
pub(crate) fn no_program(none: NoProgram) -> String {
    format!(
        "{none}. Answer with one program in a block fenced as ```clojure, for example:\n```clojure\n(return {{:answer 42}})\n```"
    )
}

/// The error of an answer that reached its token limit.
pub(crate) fn cut_off() -> TurnError {
    let message = "the answer reached its token limit before its program was complete, so nothing of it was run. Answer with \
                   a shorter program, and leave the rest to the next one";
    TurnError { kind: "truncated".to_owned(), message: message.to_owned() }
}

/// The error of an answer that a person stopped.
pub(crate) fn stopped() -> TurnError {
    let message = "the user interrupted this answer here, so nothing of it was run";
    TurnError { kind: "interrupted".to_owned(), message: message.to_owned() }
}

/// The message for a returned value that does not fit the signature.
pub(crate) fn mismatched(signature: &Signature, mismatches: &[Mismatch]) -> String {
    let mut text = format!("the returned value does not fit the signature {}", signature.output);
    for mismatch in mismatches {
        text.push_str(&format!("\n- {mismatch}"));
    }
    text.push_str(&format!(
        "\nThe definitions of this program were not kept. Fix it and return again, for example (return {})",
        signature.output.example()
    ));
    text
}

/// The message for a returned value that is not valid under the schema of the signature.
pub(crate) fn invalid_answer(signature: &Signature, problems: &str) -> String {
    format!(
        "the returned value does not fit the JSON Schema of the answer:{problems}\nThe definitions of this program were not \
         kept. Fix it and return again, for example (return {})",
        signature.output.example()
    )
}

/// The message for a returned value that cannot be written as JSON.
pub(crate) fn not_json(message: &str, advice: Option<&str>) -> String {
    let advice = advice.map(|advice| format!(" ({advice})")).unwrap_or_default();
    format!(
        "the returned value cannot be an answer: {message}{advice}. Return strings, numbers, booleans, vectors and maps"
    )
}

/// The message to the user for an evaluation without an answer, with the error of the last turn.
pub(crate) fn no_answer(turns: u64, last: Option<&TurnError>) -> String {
    let turns = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
    let why = match last {
        Some(error) => format!(" The last one failed: {}", error.message),
        None => String::new(),
    };
    format!("no program returned an answer in {turns}, and there may be no more.{why}")
}

/// The error for a program that behaved differently when it ran again.
pub(crate) fn diverged(what: &str) -> TurnError {
    TurnError { kind: "program_diverged".to_owned(), message: what.to_owned() }
}

/// The error for an interrupted program that is not run again.
pub(crate) fn not_run_again(why: &str) -> TurnError {
    let message = format!("the program was interrupted and is not run again, because {why}");
    TurnError { kind: "program_interrupted".to_owned(), message }
}

/// Adds the calls that were made to an error message.
pub(crate) fn with_calls(message: &str, calls: &[ProgramCall]) -> String {
    if calls.is_empty() {
        return format!("{message}. It had called no tool");
    }
    let mut text = format!("{message}. These calls had been made:");
    for made in calls.iter().take(MOST_CALLS) {
        let outcome = match &made.result {
            Some(result) if result.is_error => "failed",
            Some(_) => "done",
            None => "unknown",
        };
        text.push_str(&format!("\n- {}({}) {outcome}", made.name, shown(&made.arguments)));
    }
    if calls.len() > MOST_CALLS {
        text.push_str(&format!("\n- and {} more", calls.len() - MOST_CALLS));
    }
    text
}

/// The beginning of a call's arguments, without firewalled fields.
pub(crate) fn shown(arguments: &Map<String, Json>) -> String {
    let text = without_firewalled(&Json::Object(arguments.clone())).to_string();
    cut(&text, SHOWN).into_owned()
}

/// Truncates a message that all later requests contain: a long one keeps its beginning, and its end, which
/// names the place.
pub(crate) fn bounded(message: String) -> String {
    let total = message.chars().count();
    if total <= LONGEST {
        return message;
    }
    let place = |character| message.char_indices().nth(character).map_or(message.len(), |(at, _)| at);
    let (head, tail) = (place(LONGEST * 3 / 4), place(total - LONGEST / 4));
    let left_out = total - LONGEST * 3 / 4 - LONGEST / 4;
    format!("{}... ({left_out} characters left out) ...{}", &message[..head], &message[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        let short = "é".repeat(LONGEST);
        assert_eq!(bounded(short.clone()), short);
        let long = bounded(format!("begins{}ends", "é".repeat(1_000_000)));
        assert!(long.starts_with("begins") && long.ends_with("ends"), "{long}");
        assert!(long.contains("(992010 characters left out)"), "{long}");
        assert!(long.chars().count() < LONGEST + 50);
    }
}
