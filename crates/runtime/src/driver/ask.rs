//! Requests to the policy.
//!
//! A request is recorded, with its reservation, before it is sent. An answer is recorded as one batch before
//! any of its calls run. An answer that a person stops is recorded as far as it came; any other incomplete answer
//! is only kept in a note, and the request is retried.

use std::borrow::Cow;
use std::sync::Arc;

use backstitch_core::budget::{Amounts, Reservation};
use backstitch_core::code::ErrorCode;
use backstitch_core::crash_point;
use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    BudgetCharged, Finish, InnerMessage, Note, PauseReason, ProviderSidecar, RequestFinished, RequestStarted,
    StopReason,
};
use backstitch_core::machine::{EvaluationResult, Machine, MachineEvent, VisibleHistory};
use backstitch_core::ports::{Delta, Deltas, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo};
use serde_json::json;
use tracing::Instrument as _;

use super::StopCause;
use super::arriving::{ArrivingAnswer, PartialAnswer};
use super::content::Content;
use super::drive::{LoopStep, millis};
use super::fit::{MOST_CORRECTIONS, MOST_SHORTENINGS, fitted, is_refused, is_too_long, limit};
use super::hydrate::media_in;
use super::inbox::Inbox;
use super::kept::KeptAttempt;
use super::pause::Pauses;
use super::question::{QuestionState, RequestPurpose, answers_left, without_silent};
use crate::agent::Agent;
use crate::error::{Result, RuntimeError};
use crate::events::LiveKind;
use crate::heap::boxed;
use crate::live::{Durable, LiveSession};
use crate::policy::WAITS;
use crate::spans;

/// The outcome of a request.
pub(super) enum AskOutcome {
    /// The answer, and the attempt that it answers.
    Answered(Box<PolicyAnswer>, u32),
    /// A person stopped it. The evaluation ends with a result, or pauses.
    Stopped(Option<EvaluationResult>),
    /// It failed at a cost, and the budget does not cover another attempt.
    OutOfBudget(String),
    Pauses(PauseReason, String),
    Ends(EvaluationResult),
}

/// Why a request has no answer.
enum AskError {
    /// The provider refused it, or it was too large to be sent. Also holds its digest.
    Refused(PolicyError, Option<Digest>),
    /// Another model is asked.
    FallsBack(PolicyError),
    Other(RuntimeError),
}

impl AskError {
    fn of(error: RuntimeError, digest: Option<Digest>, falls_back: bool) -> Self {
        match error {
            RuntimeError::Policy(error) if falls_back => Self::FallsBack(error),
            RuntimeError::Policy(refused)
                if is_too_long(&refused.kind) || (is_refused(&refused.kind) && digest.is_some()) =>
            {
                Self::Refused(refused, digest)
            }
            error => Self::Other(error),
        }
    }
}

impl From<RuntimeError> for AskError {
    fn from(error: RuntimeError) -> Self {
        Self::Other(error)
    }
}

/// Sends requests to the policy of an agent.
pub(super) struct Asker {
    pub(super) live: Arc<LiveSession>,
    pub(super) agent: Arc<Agent>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) content: Arc<Content>,
    pub(super) pauses: Pauses,
    pub(super) arriving: ArrivingAnswer,
    pub(super) stopped_by: Option<StopCause>,
}

impl Asker {
    pub(super) async fn ask(&self, evaluation: EvaluationId, machine: &mut dyn Machine) -> Result<LoopStep> {
        if self.live.deadline(evaluation).is_some_and(|deadline| self.live.clock().now() >= deadline) {
            return self.pauses.pause_for(evaluation, PauseReason::Deadline, OUT_OF_TIME).await;
        }
        let (mut refused, mut digests, mut shortenings) = (None, Vec::new(), 0);
        let mut fallbacks = self.agent.fallbacks.len();
        loop {
            let (machine, refused_before) = (&mut *machine, refused.take());
            match boxed(move || self.ask_once(evaluation, machine, refused_before)).await {
                Err(AskError::Refused(error, digest)) => {
                    digests.push(digest);
                    shortenings += u32::from(is_too_long(&error.kind));
                    if digests.len() > MOST_CORRECTIONS || shortenings > MOST_SHORTENINGS {
                        return Err(error.into());
                    }
                    refused = Some((error, digests.clone()));
                }
                Err(AskError::FallsBack(error)) if fallbacks == 0 => return Err(error.into()),
                Err(AskError::FallsBack(_)) => {
                    fallbacks -= 1;
                    (digests, shortenings) = (Vec::new(), 0);
                }
                Err(AskError::Other(error)) => return Err(error),
                Ok(step) => return Ok(step),
            }
        }
    }

    /// Sends one request. If others of the same turn were refused, this one has to differ from all of them.
    async fn ask_once(
        &self,
        evaluation: EvaluationId,
        machine: &mut dyn Machine,
        refused: Option<(PolicyError, Vec<Option<Digest>>)>,
    ) -> Result<LoopStep, AskError> {
        let answers_left = answers_left(&*self.live.view().await, evaluation);
        let shown = machine.show(answers_left);
        if shown.is_none()
            && self.agent.elides().is_none()
            && let Some(step) = boxed(|| self.make_room(evaluation)).await?
        {
            return Ok(step);
        }
        let agent = match self.agent.answering(&*self.live.view().await, evaluation) {
            Cow::Borrowed(_) => self.agent.clone(),
            Cow::Owned(agent) => Arc::new(agent),
        };
        let (question, left_out) = self.question(&agent, evaluation, shown).await?;
        let turn = question.turn;
        let mut info = agent.policy.describe(&question);
        if let Some((error, digests)) = refused
            && digests.contains(&info.digest)
        {
            return Err(AskError::Other(error.into()));
        }
        info.renderer = info.renderer.or_else(|| question.renderer.clone());
        info.departures.extend(left_out.into_iter().map(|what| format!("not shown: {what}")));
        info.estimate = self.agent.prices.priced(info.estimate, &info.provider, &info.model);
        let (described, digest) = ((info.provider.clone(), info.model.clone()), info.digest);
        let estimate = info.estimate;
        let reservation = match self.announce(evaluation, turn, &info, Amounts::ONE_TURN).await? {
            Ok(reservation) => reservation,
            Err(exceeded) => {
                return Ok(self.pauses.pause_for(evaluation, PauseReason::Budget, exceeded).await?);
            }
        };
        crash_point!("ask.before");
        let began = self.live.clock().monotonic();
        let span = spans::request(self.live.id(), turn, &info);
        let asked = self.ask_or_stop(&agent, evaluation, question, info).instrument(span.clone()).await;
        let asked = asked.inspect_err(|error| spans::record_failure(&span, error.kind()));
        let falls_back =
            matches!(&asked, Err(RuntimeError::Policy(error)) if agent.after(&error.kind).is_some());
        if let Err(RuntimeError::Policy(error)) = &asked
            && let Some(reservation) = &reservation
            && (falls_back || is_refused(&error.kind) || self.is_attempt_charged(evaluation).await)
        {
            // It was refused, so it costs nothing; what a failed attempt cost is charged already.
            let settled = BudgetCharged::new(Some(reservation.id), Amounts::ZERO);
            self.live.record(vec![settled.into()]).await?;
        }
        match asked.map_err(|error| AskError::of(error, digest, falls_back))? {
            AskOutcome::Answered(mut answer, attempt) => {
                crash_point!("ask.after");
                answer.usage = self.agent.prices.priced(answer.usage, &described.0, &described.1);
                spans::record_answer(&span, &answer, self.agent.contents);
                let millis = millis(self.live.clock().monotonic().saturating_sub(began));
                let finished = RequestFinished {
                    attempt,
                    finish_reason: answer.provider.as_ref().and_then(|sidecar| sidecar.finish_reason.clone()),
                    usage: answer.usage,
                    elapsed_millis: millis,
                    ..RequestFinished::new(evaluation, turn, answer.finish.clone())
                };
                if reservation.is_some() {
                    answer.usage = answer.usage.plus(Amounts { millis, ..Amounts::ZERO });
                }
                note_finish(&mut answer, described);
                let output = answer.output.clone();
                let messages = self.record_answer(finished, *answer, reservation).await?;
                machine.handle(MachineEvent::Answered { messages: messages.clone(), output });
                Ok(self.settle_answer(evaluation, &messages, machine).await?)
            }
            AskOutcome::Stopped(ending) => {
                let cause = self.stopped_by.as_ref().and_then(|stopped_by| stopped_by());
                // After a shutdown the request is repeated, as after a kill.
                if ending.is_some() || !matches!(cause, Some(StopReason::Shutdown)) {
                    self.record_stopped(evaluation, turn, described, estimate, reservation).await?;
                } else {
                    let partial = self.arriving.end_attempt().await;
                    self.keep_unfinished(partial, evaluation, &described, estimate, reservation).await?;
                }
                match ending {
                    Some(ending) => Ok(LoopStep::Finish(ending)),
                    None => {
                        let detail = "it was stopped while it waited for an answer";
                        Ok(self.pauses.pause_for(evaluation, PauseReason::Asked, detail).await?)
                    }
                }
            }
            AskOutcome::OutOfBudget(exceeded) => {
                self.settle(reservation).await?;
                Ok(self.pauses.pause_for(evaluation, PauseReason::Budget, exceeded).await?)
            }
            AskOutcome::Pauses(reason, detail) => {
                let partial = self.arriving.end_attempt().await;
                self.keep_unfinished(partial, evaluation, &described, estimate, reservation).await?;
                Ok(self.pauses.pause_for(evaluation, reason, detail).await?)
            }
            AskOutcome::Ends(ending) => Ok(LoopStep::Finish(ending)),
        }
    }

    /// Returns the state before the next request.
    pub(super) async fn question_state(&self, evaluation: EvaluationId) -> Result<QuestionState> {
        let (transcript, session, view) = {
            let state = self.live.state().await;
            state.view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
            (state.view.transcript()?, state.session.clone(), state.view.clone())
        };
        let transcript = self.content.hydrated.transcript(self.content.held(), transcript).await?;
        Ok(QuestionState { view, session, transcript })
    }

    /// Builds the request. Also returns what it leaves out of the conversation.
    async fn question(
        &self,
        agent: &Agent,
        evaluation: EvaluationId,
        shown: Option<VisibleHistory>,
    ) -> Result<(PolicyRequest, Vec<String>)> {
        let state = self.question_state(evaluation).await?;
        let (mut shown, objects) = match shown {
            Some(shown) => {
                let messages = without_silent(shown.messages);
                let shown = fitted(VisibleHistory { messages, ..shown }, limit(agent, &state.view));
                let objects = media_in(&shown.messages);
                (shown, objects)
            }
            // A conversation that the agent's machine does not render is cached between requests.
            None => match state.elided(agent, evaluation, &self.content.hydrated) {
                Some(elided) => elided,
                None => {
                    let room = state.room(agent, evaluation, &self.content.hydrated, None)?;
                    (room.visible(), room.media())
                }
            },
        };
        let left_out = std::mem::take(&mut shown.left_out);
        let media = self.content.hydrated.media(self.content.held(), objects).await?;
        let (live, turn, arriving) = (self.live.clone(), state.turn(evaluation)?, self.arriving.clone());
        arriving.start(turn).await;
        let deltas = Deltas::new(move |delta| {
            arriving.add(&delta);
            live.channel.publish(match delta {
                Delta::Text(text) => LiveKind::Text { evaluation, turn, text },
                Delta::Reasoning(text) => LiveKind::Reasoning { evaluation, turn, text },
                Delta::Call(_) => return,
            });
        });
        let question = state.request(agent, evaluation, shown, media, deltas, RequestPurpose::Answer)?;
        let memo = self.content.hydrated.memo();
        Ok((PolicyRequest { memo, ..question }, left_out))
    }

    /// Records that a request is about to be sent, which costs `turns` besides its estimate. The inner error names the limit
    /// that it would exceed.
    pub(super) async fn announce(
        &self,
        evaluation: EvaluationId,
        turn: u64,
        info: &RequestInfo,
        turns: Amounts,
    ) -> Result<Result<Option<Reservation>, String>> {
        self.live
            .commit(|commit| {
                let view = commit.view();
                let known = view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
                let estimate = info.estimate.plus(turns);
                if let Some(limits) = known.budget {
                    // Some budget has to be left, whatever the estimate is.
                    let least = estimate.plus(Amounts { input_tokens: 1, ..Amounts::ZERO });
                    if let Err(exceeded) = limits.check(view.spent_by(known).plus(least)) {
                        return Ok(Err(exceeded.to_string()));
                    }
                }
                let is_free = known.budget.is_none() && info.estimate == Amounts::ZERO;
                let ids = commit.session().ids();
                let reservation = (!is_free).then(|| Reservation { id: ids.next(), amounts: estimate });
                commit.push(RequestStarted {
                    evaluation_id: evaluation,
                    turn,
                    provider: info.provider.clone(),
                    model: info.model.clone(),
                    digest: info.digest,
                    length: info.length,
                    renderer: info.renderer.clone(),
                    reservation,
                    extra: Extra::default(),
                });
                if !info.departures.is_empty() {
                    commit.push(departures(evaluation, turn, &info.departures));
                }
                Ok(Ok(reservation))
            })
            .await
    }

    pub(super) async fn ask_or_stop(
        &self,
        agent: &Agent,
        evaluation: EvaluationId,
        question: PolicyRequest,
        info: RequestInfo,
    ) -> Result<AskOutcome> {
        tokio::select! {
            biased;
            () = self.inbox.stop.cancelled() => Ok(AskOutcome::Stopped(None)),
            () = self.inbox.wait_for_cancel(evaluation) => {
                Ok(AskOutcome::Stopped(Some(EvaluationResult::cancelled())))
            }
            answer = self.with_retries(agent, evaluation, question, info) => match answer {
                Ok(asked) => Ok(asked),
                Err(RuntimeError::Policy(error)) if error.kind == WAITS => {
                    Ok(AskOutcome::Pauses(PauseReason::Asked, error.message))
                }
                // A filter withholds the answer. A retry would have the same result.
                Err(RuntimeError::Policy(error))
                    if error.kind == CONTENT_FILTER && agent.after(CONTENT_FILTER).is_none() =>
                {
                    Ok(AskOutcome::Ends(EvaluationResult::failed(CONTENT_FILTER, error.message)))
                }
                Err(error) => Err(error),
            },
            () = self.inbox.out_of_time(evaluation) => {
                Ok(AskOutcome::Pauses(PauseReason::Deadline, OUT_OF_TIME.to_owned()))
            }
        }
    }

    /// Records an answer that a person stopped, as far as it came, at its estimated cost. Without text there is no answer, and
    /// the request is repeated later; reasoning and calls are kept.
    async fn record_stopped(
        &self,
        evaluation: EvaluationId,
        turn: u64,
        described: (String, String),
        estimate: Amounts,
        reservation: Option<Reservation>,
    ) -> Result<()> {
        let partial = self.arriving.end_attempt().await;
        if partial.kept.text.trim().is_empty() {
            return self.keep_unfinished(partial, evaluation, &described, estimate, reservation).await;
        }
        if let Some(note) = partial.note(evaluation, false) {
            self.live.record_when(vec![note.into()], Durable::WithNext).await?;
        }
        let usage = self.cost_of(&partial.kept, estimate, &described.0, &described.1);
        let finished = RequestFinished {
            attempt: partial.kept.attempt,
            usage,
            ..RequestFinished::new(evaluation, turn, Finish::Interrupted)
        };
        let mut answer =
            PolicyAnswer { finish: Finish::Interrupted, usage, ..PolicyAnswer::text(partial.kept.text) };
        note_finish(&mut answer, described);
        self.record_answer(finished, answer, reservation).await?;
        Ok(())
    }

    /// Keeps what has arrived of an answer whose request is repeated later, and charges its estimated cost in place of the
    /// reservation. If nothing has arrived, the reservation stays.
    pub(super) async fn keep_unfinished(
        &self,
        partial: PartialAnswer,
        evaluation: EvaluationId,
        (provider, model): &(String, String),
        estimate: Amounts,
        reservation: Option<Reservation>,
    ) -> Result<()> {
        if partial.kept.is_empty() {
            return Ok(());
        }
        let usage = self.cost_of(&partial.kept, estimate, provider, model);
        let is_charged = reservation.is_some() || usage != Amounts::ZERO;
        let reservation = reservation.map(|reservation| reservation.id);
        let charged = is_charged.then(|| BudgetCharged::new(reservation, usage).into());
        let note = partial.note(evaluation, true).map(Into::into);
        let records = note.into_iter().chain(charged).collect();
        self.live.record_when(records, Durable::WithNext).await
    }

    /// Ends the reservation of a request whose attempts are charged already, or cost nothing.
    pub(super) async fn settle(&self, reservation: Option<Reservation>) -> Result<()> {
        let Some(reservation) = reservation else { return Ok(()) };
        let settled = BudgetCharged::new(Some(reservation.id), Amounts::ZERO);
        self.live.record_when(vec![settled.into()], Durable::WithNext).await
    }

    /// Whether the last attempt failed at a cost that is known or estimated, and so is charged by itself.
    async fn is_attempt_charged(&self, evaluation: EvaluationId) -> bool {
        let view = self.live.view().await;
        let request = view.evaluation(evaluation).and_then(|known| known.requests.last());
        let failed = request.and_then(|request| request.last_failure());
        failed.is_some_and(|failed| failed.usage != Amounts::ZERO)
    }

    /// Returns the estimated cost of a part of an answer, by the largest possible cost of its request.
    pub(super) fn cost_of(
        &self,
        part: &KeptAttempt,
        largest: Amounts,
        provider: &str,
        model: &str,
    ) -> Amounts {
        let cost = part.cost(largest);
        match self.agent.prices.has(provider, model) {
            true => self.agent.prices.priced(cost, provider, model),
            // Only the policy may have estimated the money.
            false => Amounts { money_micros: largest.money_micros, ..cost },
        }
    }

    /// Records an answer as one batch. The batch is durable with the next record, and before any call of the
    /// answer runs.
    async fn record_answer(
        &self,
        finished: RequestFinished,
        mut answer: PolicyAnswer,
        reservation: Option<Reservation>,
    ) -> Result<Vec<Arc<InnerMessage>>> {
        let policy = self.agent.policy.name();
        let (evaluation, turn) = (finished.evaluation_id, finished.turn);
        let (mut provider, usage) = (answer.provider.take(), answer.usage);
        let objects = std::mem::take(&mut answer.objects);
        if let Some(sidecar) = &mut provider
            && sidecar.usage.is_none()
        {
            sidecar.usage = Some(usage);
        }
        self.live
            .commit(|commit| {
                let messages = answer.into_messages(policy, turn, commit.session().ids())?;
                commit.add_objects(objects);
                let mut added = Vec::new();
                for message in messages {
                    added.push(commit.say_with(evaluation, turn, message, provider.take())?);
                }
                if let Finish::Other(word) = &finished.finish {
                    commit.push(unknown_finish(evaluation, turn, word));
                }
                commit.push(finished).durable(Durable::WithNext);
                if reservation.is_some() || usage != Amounts::ZERO {
                    let reservation = reservation.map(|reservation| reservation.id);
                    let amounts = usage.plus(Amounts::ONE_TURN);
                    commit.push(BudgetCharged::new(reservation, amounts));
                }
                Ok(added)
            })
            .await
    }
}

/// Stores the finish reason in the provider's sidecar. An ordinary reason is not stored if the policy has no
/// sidecar.
fn note_finish(answer: &mut PolicyAnswer, (provider, model): (String, String)) {
    if answer.provider.is_none() && matches!(answer.finish, Finish::Stop | Finish::Calls) {
        return;
    }
    let made = || ProviderSidecar { provider, model, ..ProviderSidecar::default() };
    answer.provider.get_or_insert_with(made).finish = Some(answer.finish.clone());
}

/// Returns a note about an unknown finish reason.
fn unknown_finish(evaluation: EvaluationId, turn: u64, word: &str) -> Note {
    let text = format!(
        "the answer of turn {turn} ended with {word:?}, a reason that is not known; it counts as an answer"
    );
    let data = json!({ "evaluation_id": evaluation, "turn": turn, "finish_reason": word });
    Note::new("request", text).with_data(data)
}

/// Joins the first lines, and counts the others. The data of the note has all of them.
fn listed(lines: &[String]) -> String {
    const MOST: usize = 5;
    let first = lines.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join("; ");
    match lines.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first}; and {more} more"),
    }
}

/// Returns a note about the places where a request differs from the conversation.
fn departures(evaluation: EvaluationId, turn: u64, lines: &[String]) -> Note {
    let text = format!("the request of turn {turn} is not what was said: {}", listed(lines));
    let data = json!({ "evaluation_id": evaluation, "turn": turn, "departures": lines });
    Note::new("request", text).with_data(data)
}

/// Detail of a pause at the deadline.
pub(super) const OUT_OF_TIME: &str = "the evaluation's deadline has passed";

/// The kind of a policy's error when a filter withholds its answer.
const CONTENT_FILTER: &str = ErrorCode::ContentFilter.as_str();
