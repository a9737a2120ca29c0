//! Summaries of long conversations, and the cuts that show them.
//!
//! A cut that needs a summary is recorded first, and names what the summary covers. The model is asked for it by a request of
//! its own, which is recorded and charged like any other, and its answer is recorded in one batch with the complete cut. So
//! after a crash at any point, either the summary is there or it is asked for again. If the model does not write one, the
//! conversation is cut without it.

use std::sync::Arc;

use backstitch_core::budget::Amounts;
use backstitch_core::code::ErrorCode;
use backstitch_core::crash_point;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{BudgetCharged, PauseReason, RequestFinished};
use backstitch_core::machine::EvaluationResult;
use backstitch_core::message::Large;
use backstitch_core::ports::{Deltas, PolicyAnswer, PolicyError};
use backstitch_repl::transcript::{Cut, summary_text};
use tracing::Instrument as _;

use super::ask::{AskOutcome, Asker};
use super::drive::{LoopStep, millis};
use super::fit::limit;
use super::hydrate::media_in;
use super::question::RequestPurpose;
use super::room::Room;
use crate::agent::Agent;
use crate::error::{Result, RuntimeError};
use crate::live::Durable;
use crate::spans;

/// The outcome of a request for a summary.
pub(super) enum SummaryOutcome {
    /// The summary is recorded.
    Written(Cut),
    /// There is no summary.
    Failed(RuntimeError),
    /// The session stops before there is one.
    Stopped(Option<EvaluationResult>),
    /// The session pauses before there is one.
    Pauses(PauseReason, String),
}

impl Asker {
    /// Cuts a conversation that has used up its room, before a request. Returns a step if the session stops meanwhile.
    pub(super) async fn make_room(&self, evaluation: EvaluationId) -> Result<Option<LoopStep>> {
        let mut may_summarize = true;
        loop {
            let state = self.question_state(evaluation).await?;
            let agent = self.agent.answering(&state.view, evaluation);
            let limit = limit(&agent, &state.view);
            let room = state.room(&agent, evaluation, &self.content.hydrated, limit)?;
            let Some(pending) = room.pending().cloned() else {
                match room.next_cut(may_summarize) {
                    Some(cut) => self.record_cut(cut, Durable::WithNext).await?,
                    None => return Ok(None),
                }
                continue;
            };
            match self.summarize(&agent, evaluation, &room, &pending).await? {
                SummaryOutcome::Written(_) => {}
                SummaryOutcome::Failed(error) => {
                    tracing::warn!(session = %self.live.id(), %error, "a conversation is cut without a summary");
                    self.record_cut(room.without_summary(&pending), Durable::WithNext).await?;
                }
                SummaryOutcome::Stopped(Some(ending)) => return Ok(Some(LoopStep::Finish(ending))),
                SummaryOutcome::Stopped(None) => {
                    let detail = "it was stopped while it waited for a summary";
                    return self.pauses.pause_for(evaluation, PauseReason::Asked, detail).await.map(Some);
                }
                SummaryOutcome::Pauses(reason, detail) => {
                    return self.pauses.pause_for(evaluation, reason, detail).await.map(Some);
                }
            }
            // Another one would cover nothing more.
            may_summarize = false;
        }
    }

    /// Records a cut.
    pub(super) async fn record_cut(&self, cut: Cut, when: Durable) -> Result<()> {
        self.live
            .commit(|commit| {
                commit.durable(when);
                commit.dispatch(cut)
            })
            .await
    }

    /// Asks the model for the summary that a cut needs, and records it.
    pub(super) async fn summarize(
        &self,
        agent: &Agent,
        evaluation: EvaluationId,
        room: &Room,
        cut: &Arc<Cut>,
    ) -> Result<SummaryOutcome> {
        let failed = |code: ErrorCode, message: &str| {
            let error = PolicyError::new(agent.policy.name().clone(), code, message);
            Ok(SummaryOutcome::Failed(error.into()))
        };
        let Some(shown) = room.summary_request() else {
            return failed(ErrorCode::NotRendered, "there is nothing to summarize");
        };
        let state = self.question_state(evaluation).await?;
        let media = self.content.hydrated.media(self.content.held(), media_in(&shown.messages)).await?;
        let turn = state.turn(evaluation)?;
        self.arriving.start(turn).await;
        let arriving = self.arriving.clone();
        let deltas = Deltas::new(move |delta| arriving.add(&delta));
        let question = state.request(agent, evaluation, shown, media, deltas, RequestPurpose::Summary)?;
        let mut info = agent.policy.describe(&question);
        info.renderer = info.renderer.or_else(|| question.renderer.clone());
        info.estimate = self.agent.prices.priced(info.estimate, &info.provider, &info.model);
        let (described, estimate) = ((info.provider.clone(), info.model.clone()), info.estimate);
        let reservation = match self.announce(evaluation, turn, &info, Amounts::ZERO).await? {
            Ok(reservation) => reservation,
            Err(exceeded) => return failed(ErrorCode::Budget, &exceeded),
        };
        crash_point!("ask.before");
        let began = self.live.clock().monotonic();
        let span = spans::request(self.live.id(), turn, &info);
        let asked = self.ask_or_stop(agent, evaluation, question, info).instrument(span.clone()).await;
        let (answer, attempt) = match asked.inspect_err(|error| spans::record_failure(&span, error.kind())) {
            Ok(AskOutcome::Answered(answer, attempt)) => (*answer, attempt),
            Ok(AskOutcome::Stopped(ending)) => {
                let partial = self.arriving.end_attempt().await;
                self.keep_unfinished(partial, evaluation, &described, estimate, reservation).await?;
                return Ok(SummaryOutcome::Stopped(ending));
            }
            Ok(AskOutcome::OutOfBudget(exceeded)) => {
                self.settle(reservation).await?;
                return failed(ErrorCode::Budget, &exceeded);
            }
            Ok(AskOutcome::Pauses(PauseReason::Deadline, detail)) => {
                let partial = self.arriving.end_attempt().await;
                self.keep_unfinished(partial, evaluation, &described, estimate, reservation).await?;
                return Ok(SummaryOutcome::Pauses(PauseReason::Deadline, detail));
            }
            Ok(AskOutcome::Pauses(_, detail)) => {
                self.settle(reservation).await?;
                return failed(ErrorCode::WaitsForPerson, &detail);
            }
            Ok(AskOutcome::Ends(_)) => {
                self.settle(reservation).await?;
                return failed(ErrorCode::ContentFilter, "the model refused to write a summary");
            }
            Err(RuntimeError::Policy(error)) => {
                self.settle(reservation).await?;
                return Ok(SummaryOutcome::Failed(error.into()));
            }
            Err(error) => return Err(error),
        };
        crash_point!("ask.after");
        let mut usage = self.agent.prices.priced(answer.usage, &described.0, &described.1);
        let elapsed_millis = millis(self.live.clock().monotonic().saturating_sub(began));
        let finished = RequestFinished {
            attempt,
            finish_reason: answer.provider.as_ref().and_then(|sidecar| sidecar.finish_reason.clone()),
            usage,
            elapsed_millis,
            ..RequestFinished::new(evaluation, turn, answer.finish.clone())
        };
        if reservation.is_some() {
            usage = usage.plus(Amounts { millis: elapsed_millis, ..Amounts::ZERO });
        }
        let written = summary_text(&text_of(&answer)).map(|text| cut.with_summary(text));
        let written = written.filter(|cut| room.with_cut(cut).1 < room.tokens());
        let is_charged = reservation.is_some() || usage != Amounts::ZERO;
        self.live
            .commit(|commit| {
                if let Some(cut) = &written {
                    commit.dispatch(cut.clone())?;
                }
                commit.push(finished).durable(Durable::WithNext);
                if is_charged {
                    commit.push(BudgetCharged::new(reservation.map(|one| one.id), usage));
                }
                Ok(())
            })
            .await?;
        match written {
            Some(cut) => Ok(SummaryOutcome::Written(cut)),
            None => {
                failed(ErrorCode::EmptyAnswer, "the model wrote no summary that is shorter than the answers")
            }
        }
    }
}

/// Returns the text of an answer.
fn text_of(answer: &PolicyAnswer) -> String {
    let texts = answer.parts.iter().filter_map(|part| match &part.as_text()?.text {
        Large::Inline(text) => Some(&**text),
        Large::Object(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
