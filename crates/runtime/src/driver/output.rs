//! Answers that have to be data.
//!
//! Before an evaluation ends with an answer, the answer is found in what was said and checked. One that does not fit is told so,
//! once, and asked for again; that too is a message of the journal, so a process that dies in between goes on from there. A second
//! one that does not fit ends the evaluation. What fits is passed to its reducers in the batch that ends the evaluation.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{EvaluationOutcome, InnerMessage, Role};
use backstitch_core::machine::{EvaluationResult, TurnState, answers_of, final_text};
use backstitch_core::session::{Draft, Session};

use super::Driver;
use super::cut_off::{EMPTY, say_as_runtime};
use crate::error::RuntimeError;

/// How often an answer that does not fit, or that is empty, is asked for again.
const REPAIRS: usize = 1;

/// What becomes of an evaluation that is about to end.
pub(super) enum OutputCheck {
    /// It ends like this.
    Ends(EvaluationResult),
    /// The policy was told what is wrong with its answer.
    AsksAgain(Arc<InnerMessage>),
}

impl Driver {
    /// Checks the answer of an evaluation that is about to end with one: that it says something, and that it fits.
    pub(super) async fn judge(
        &self,
        evaluation: EvaluationId,
        ending: EvaluationResult,
    ) -> Result<OutputCheck, RuntimeError> {
        if ending.outcome != EvaluationOutcome::Completed {
            return Ok(OutputCheck::Ends(ending));
        }
        let messages = self.content.transcript().await?.inner_messages(evaluation);
        let states: Vec<_> =
            answers_of(&messages).into_iter().map(|(turn, answer)| (turn, TurnState::of(answer))).collect();
        let empty = states.iter().rev().take_while(|(_, state)| *state == TurnState::Empty).count();
        if empty > 0 && ending.output.is_none() {
            return match empty > REPAIRS {
                true => Ok(OutputCheck::Ends(EvaluationResult::failed(
                    ErrorCode::EmptyAnswer,
                    "the answer was empty, twice in a row",
                ))),
                false => {
                    say_as_runtime(&self.live, evaluation, EMPTY.to_owned()).await.map(OutputCheck::AsksAgain)
                }
            };
        }
        let Some(contract) = &self.agent.output else { return Ok(OutputCheck::Ends(ending)) };
        let text = final_text(&messages);
        let problem = match contract.judge(ending.output, &text) {
            Ok(value) => return Ok(OutputCheck::Ends(EvaluationResult::completed(Some(value)))),
            Err(problem) => problem,
        };
        // What is said about an answer that was empty or cut off is no complaint about its form.
        let whole: Vec<_> = states.iter().filter(|(_, state)| *state == TurnState::Whole).collect();
        let complaints = messages
            .iter()
            .filter(|message| is_by_runtime(message) && whole.iter().any(|(turn, _)| *turn == message.turn));
        if complaints.count() >= REPAIRS {
            return Ok(OutputCheck::Ends(EvaluationResult::failed(ErrorCode::InvalidOutput, problem)));
        }
        let told = format!("{problem}\nAnswer again, with all of it and with nothing but the JSON.");
        say_as_runtime(&self.live, evaluation, told).await.map(OutputCheck::AsksAgain)
    }

    /// What the answer of an evaluation changes. One that the reducers of its type refuse is none: the evaluation fails.
    pub(super) fn with_output(
        &self,
        session: &Session,
        ending: EvaluationResult,
    ) -> (Draft, EvaluationResult) {
        let mut draft = session.draft();
        let (Some(contract), Some(output)) = (&self.agent.output, &ending.output) else {
            return (draft, ending);
        };
        match contract.output().dispatch(output, &mut draft) {
            Ok(()) => (draft, ending),
            Err(error) => {
                let failed = EvaluationResult::failed(
                    ErrorCode::OutputRefused,
                    format!("the answer was refused: {error}"),
                );
                (session.draft(), failed)
            }
        }
    }
}

/// Whether the runtime itself says it to the policy.
pub(super) fn is_by_runtime(message: &InnerMessage) -> bool {
    message.role() == Role::User && message.message.policy.is_reserved()
}
