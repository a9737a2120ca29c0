//! Incomplete answers: cut off by the token limit, interrupted by the provider, withheld, or empty.
//!
//! None of them completes an evaluation. By default an answer that was cut off pauses it, unless its machine
//! requests another one itself, as that of a Lisp agent does for a shorter program; an interrupted one
//! is continued at once; a withheld one fails the evaluation; an empty one is requested again once. All of
//! them are recorded, and how they are handled follows from the journal.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InboxKind, InnerMessage, PauseReason};
use backstitch_core::machine::{EvaluationResult, Machine, MachineEvent, TurnState, answers_of};
use backstitch_core::message::{MessageBuilder, PolicyName, RoleHint};

use super::ask::Asker;
use super::drive::LoopStep;
use crate::agent::OnTruncation;
use crate::error::{Result, RuntimeError};
use crate::live::LiveSession;

/// The most consecutive answers that are continued without a decision.
const MOST_CONTINUED: usize = 8;

/// Message to the policy after an answer that was cut off in the middle.
const CONTINUE: &str = "Your last answer reached its token limit and was cut off. Continue exactly where it stopped, and repeat \
                        nothing of it.";

/// Message to the policy after an answer that was cut off before its first text.
const CUT_OFF_EARLY: &str = "Your last answer reached its token limit before it said anything. Answer again, with less thought \
                             before the answer.";

/// Message to the policy after an empty answer.
pub(super) const EMPTY: &str = "Your last answer was empty. Answer now.";

/// Detail of a pause or failure at the token limit.
const REACHED_LIMIT: &str = "the answer reached its token limit";

impl Asker {
    /// Returns the next step of the evaluation after an answer that was just recorded.
    pub(super) async fn settle_answer(
        &self,
        evaluation: EvaluationId,
        answer: &[Arc<InnerMessage>],
        machine: &mut dyn Machine,
    ) -> Result<LoopStep> {
        match TurnState::of(answer) {
            TurnState::Whole | TurnState::Empty | TurnState::Calls => Ok(LoopStep::Continue),
            TurnState::Withheld => Ok(LoopStep::Finish(EvaluationResult::failed(
                ErrorCode::ContentFilter,
                "the answer was withheld by a filter",
            ))),
            TurnState::Interrupted if self.count_continued_in_a_row(evaluation).await? > MOST_CONTINUED => {
                let message = format!("the provider interrupted {MOST_CONTINUED} answers in a row");
                Ok(LoopStep::Finish(EvaluationResult::failed(ErrorCode::Interrupted, message)))
            }
            TurnState::Interrupted => Ok(LoopStep::Continue),
            TurnState::CutOff => match self.agent.on_truncation {
                OnTruncation::Fail => {
                    Ok(LoopStep::Finish(EvaluationResult::failed(ErrorCode::Truncated, REACHED_LIMIT)))
                }
                on_truncation
                    if self.continues_by_itself(on_truncation)
                        && self.count_continued_in_a_row(evaluation).await? <= MOST_CONTINUED =>
                {
                    if let Some(added) = self.ask_to_continue(evaluation, answer).await? {
                        machine.handle(MachineEvent::MessageAdded(added));
                    }
                    Ok(LoopStep::Continue)
                }
                OnTruncation::Continue | OnTruncation::Pause => {
                    self.pauses.pause_for(evaluation, PauseReason::Truncated, REACHED_LIMIT).await
                }
            },
        }
    }

    /// Returns whether an answer that was cut off is followed by another one without a decision. A machine that
    /// requests another answer itself reports to the policy what was wrong, so nobody has to decide anything.
    fn continues_by_itself(&self, on_truncation: OnTruncation) -> bool {
        on_truncation == OnTruncation::Continue || !self.agent.machines().continues_answers()
    }

    /// Asks the policy to continue an answer, unless its machine requests another one itself.
    async fn ask_to_continue(
        &self,
        evaluation: EvaluationId,
        answer: &[Arc<InnerMessage>],
    ) -> Result<Option<Arc<InnerMessage>>> {
        if !self.agent.machines().continues_answers() {
            return Ok(None);
        }
        let text = if TurnState::is_silent(answer) { CUT_OFF_EARLY } else { CONTINUE };
        say_as_runtime(&self.live, evaluation, text.to_owned()).await.map(Some)
    }

    /// Continues an answer that was cut off before the evaluation was resumed, unless a message waits in the
    /// inbox: then that message says how to continue.
    pub(super) async fn continue_cut_off(&self, evaluation: EvaluationId) -> Result<()> {
        let Some(answer) = self.cut_off(evaluation).await? else { return Ok(()) };
        if !self.inbox.waiting().await?.iter().any(|(_, item)| item.kind == InboxKind::Message) {
            self.ask_to_continue(evaluation, &answer).await?;
        }
        Ok(())
    }

    /// Returns the last answer of an evaluation if it was cut off, was not accepted, and no message came
    /// after it.
    pub(super) async fn cut_off(&self, evaluation: EvaluationId) -> Result<Option<Vec<Arc<InnerMessage>>>> {
        let view = self.live.view().await;
        let messages = view.transcript()?.inner_messages(evaluation);
        let known = view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
        let (accepted, settled) = (known.accepted, known.finished_turns.last().map(|turn| turn.turn));
        let answers = answers_of(&messages);
        let Some((turn, answer)) = answers.last_key_value() else { return Ok(None) };
        let is_last =
            messages.last().is_some_and(|last| answer.iter().any(|of| of.message_id == last.message_id));
        let is_cut_off = TurnState::of(answer.iter().copied()) == TurnState::CutOff;
        let is_open = is_last && is_cut_off && accepted != Some(*turn) && settled != Some(*turn);
        Ok(is_open.then(|| answer.iter().map(|message| (*message).clone()).collect()))
    }

    /// Counts the answers at the end of an evaluation that were cut off or interrupted.
    async fn count_continued_in_a_row(&self, evaluation: EvaluationId) -> Result<usize> {
        let messages = self.content.live_transcript().await?.inner_messages(evaluation);
        let answers = answers_of(&messages);
        let states = answers.values().rev().map(|answer| TurnState::of(answer.iter().copied()));
        Ok(states.take_while(|state| matches!(state, TurnState::CutOff | TurnState::Interrupted)).count())
    }
}

/// Adds a message from the runtime to the policy.
pub(super) async fn say_as_runtime(
    live: &LiveSession,
    evaluation: EvaluationId,
    text: String,
) -> Result<Arc<InnerMessage>> {
    live.commit(|commit| {
        let known = commit.view().evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
        let mut builder = MessageBuilder::continue_step(known.turns + 1, commit.session().ids());
        builder.policy(PolicyName::runtime()).role_hint(RoleHint::User).add_text(text);
        commit.say(evaluation, known.turns, builder.to_message()?)
    })
    .await
}
