//! The earlier evaluations of a session, as a Lisp agent sees them: the mission and the outcome of each.
//!
//! Their programs, prints and definitions are not shown, because memory belongs to one evaluation: a program
//! could not use them.

use backstitch_core::journal::{EvaluationOutcome, InnerMessage, Role};
use backstitch_core::machine::{FollowedConversation, final_text};
use backstitch_core::message::Large;
use serde_json::Value as Json;

use crate::compression::one_line;
use crate::mission::without_firewalled;
use crate::text::{collapsed, cut};

/// The maximum number of characters of an earlier answer.
const LONGEST_ANSWER: usize = 4_000;

/// The missions and answers of earlier evaluations, the oldest first; empty when there are none.
pub(super) fn earlier(followed: &[FollowedConversation]) -> String {
    followed.iter().map(mission_and_answer).collect::<Vec<_>>().join("\n\n")
}

fn mission_and_answer(followed: &FollowedConversation) -> String {
    let is_by_a_person =
        |message: &InnerMessage| message.role() == Role::User && !message.message.policy.is_reserved();
    let asked = followed.messages.iter().filter(|message| is_by_a_person(message));
    let asked: Vec<String> = asked.map(|message| message.content()).collect();
    format!("Mission: {}\n{}", asked.join("\n\n"), outcome_of(followed))
}

fn outcome_of(followed: &FollowedConversation) -> String {
    let Some(finished) = &followed.finished else { return "It was not answered.".to_owned() };
    match (finished.outcome, &finished.error) {
        (EvaluationOutcome::Completed, _) => {
            // As JSON on one line, so that it cannot be taken for another mission or a section.
            let answer = match finished.output.as_ref().and_then(Large::inline) {
                Some(output) => without_firewalled(output),
                None => Json::String(final_text(&followed.messages)),
            };
            format!("Answer: {}", one_line(&cut(&answer.to_string(), LONGEST_ANSWER)))
        }
        (_, Some(error)) => format!("It failed: {}", cut(&collapsed(&error.message), LONGEST_ANSWER)),
        (EvaluationOutcome::Cancelled, None) => "It was cancelled.".to_owned(),
        (EvaluationOutcome::Failed | EvaluationOutcome::Superseded, None) => {
            "It was not answered.".to_owned()
        }
    }
}
