//! Structured answers.
//!
//! Before an evaluation completes, its answer is extracted and checked. After the first answer that does not
//! fit, the policy receives the problem and is asked again. That message is in the journal, so a process that
//! dies in between resumes there. A second answer that does not fit fails the evaluation. An answer that fits
//! is passed to its reducers in the batch that ends the evaluation.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{EvaluationOutcome, InnerMessage, Role};
use backstitch_core::machine::{EvaluationResult, TurnState, answers_of, final_text};
use backstitch_core::session::{Draft, Session};

use super::Driver;
use super::cut_off::{EMPTY, say_as_runtime};
use crate::error::Result;
use crate::fence::catch_panic;

/// How often an answer that does not fit, or that is empty, is requested again.
const REPAIRS: usize = 1;

/// The check of an evaluation that is about to end.
pub(super) enum OutputCheck {
    Ends(EvaluationResult),
    /// The policy has been sent the problem of its answer.
    AsksAgain(Arc<InnerMessage>),
}

impl Driver {
    /// Checks the answer of an evaluation that is about to complete: it must not be empty, and it must fit
    /// its contract.
    pub(super) async fn judge(
        &self,
        evaluation: EvaluationId,
        ending: EvaluationResult,
    ) -> Result<OutputCheck> {
        if ending.outcome != EvaluationOutcome::Completed {
            return Ok(OutputCheck::Ends(ending));
        }
        let messages = self.content.transcript().await?.inner_messages(evaluation);
        let states: Vec<_> =
            answers_of(&messages).into_iter().map(|(turn, answer)| (turn, TurnState::of(answer))).collect();
        let empty = states.iter().rev().take_while(|(_, state)| *state == TurnState::Empty).count();
        if empty > 0 && ending.output.is_none() {
            return if empty > REPAIRS {
                Ok(OutputCheck::Ends(EvaluationResult::failed(
                    ErrorCode::EmptyAnswer,
                    "the answer was empty, twice in a row",
                )))
            } else {
                say_as_runtime(&self.live, evaluation, EMPTY.to_owned()).await.map(OutputCheck::AsksAgain)
            };
        }
        let Some(contract) = &self.agent.output else { return Ok(OutputCheck::Ends(ending)) };
        let text = final_text(&messages);
        let judged = catch_panic(|| contract.judge(ending.output, &text));
        let judged = judged
            .unwrap_or_else(|panic| Err(format!("the answer does not fit: reading it panicked: {panic}")));
        let problem = match judged {
            Ok(value) => return Ok(OutputCheck::Ends(EvaluationResult::completed(Some(value)))),
            Err(problem) => problem,
        };
        // A message about an empty or cut off answer is not one about its form.
        let whole: Vec<_> = states.iter().filter(|(_, state)| *state == TurnState::Whole).collect();
        let complaints = messages
            .iter()
            .filter(|message| is_by_runtime(message) && whole.iter().any(|(turn, _)| *turn == message.turn));
        if complaints.count() >= REPAIRS {
            return Ok(OutputCheck::Ends(EvaluationResult::failed(ErrorCode::InvalidOutput, problem)));
        }
        let correction = format!("{problem}\nAnswer again, with all of it and with nothing but the JSON.");
        say_as_runtime(&self.live, evaluation, correction).await.map(OutputCheck::AsksAgain)
    }

    /// Returns the changes that the answer of an evaluation makes. If the reducers of its type refuse it, the
    /// evaluation fails.
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

/// True for messages of the runtime to the policy.
pub(super) fn is_by_runtime(message: &InnerMessage) -> bool {
    message.role() == Role::User && message.message.policy.is_reserved()
}
