//! The loop: what the machine wants is done, and what was done is told to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstitch_core::crash_point;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Batch, EvaluationStarted, InboxId, PauseReason, Paused, RecordBody};
use backstitch_core::machine::{Action, Ending, Event, Machine, final_text};
use backstitch_core::message::{Message, MessageBuilder, PolicyName, RoleHint};
use backstitch_core::time::Timestamp;
use backstitch_core::view::JournalView;
use tracing::Instrument as _;

use super::Driver;
use super::ask::OUT_OF_TIME;
use super::output::Judged;
use crate::agent::Mission;
use crate::error::RuntimeError;
use crate::heap::boxed;
use crate::live::{Commit, Durable, load_view, push_changes};
use crate::outcome::Ended;
use crate::spans;

/// How long the outcome of a call may be held while a program computes what to do next.
const HELD_FOR: Duration = Duration::from_millis(20);

/// What comes of an action.
pub(super) enum Next {
    /// The machine goes on.
    GoOn,
    /// Driving ends.
    End(Ended),
    /// The evaluation ends.
    Finish(Ending),
}

/// How far a machine came.
pub(super) enum Advance {
    /// It says what is to be done.
    Action(Action),
    /// It was stopped, because the evaluation is out of time.
    OutOfTime,
    /// It was stopped for another reason.
    Interrupted,
}

/// Stops a machine when nobody waits for it any more.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Driver {
    /// Starts an evaluation and drives it to its end, or to a pause.
    pub async fn start(&self, mission: impl Into<Mission>) -> Result<Ended, RuntimeError> {
        let evaluation = self.begin(mission.into(), None).await?;
        self.drive(evaluation).await
    }

    /// Records that an evaluation starts, with its system message and its mission.
    pub async fn begin(
        &self,
        mission: Mission,
        parent: Option<EvaluationId>,
    ) -> Result<EvaluationId, RuntimeError> {
        self.begin_with(vec![mission], parent, Vec::new()).await
    }

    /// Records that an evaluation starts, with its system message and all that a person says at its beginning, and takes the
    /// items out of the inbox that it was said in. One that takes the place of another has what that one had left, and grants what
    /// was wished of it; otherwise wishes that wait already are about evaluations that have ended.
    pub(super) async fn begin_with(
        &self,
        mut said: Vec<Mission>,
        parent: Option<EvaluationId>,
        taken: Vec<InboxId>,
    ) -> Result<EvaluationId, RuntimeError> {
        let none_is_open = |view: &JournalView| match view.latest_evaluation() {
            Some(latest) if latest.finished.is_none() => {
                Err(RuntimeError::EvaluationOpen { evaluation: latest.evaluation_id })
            }
            _ => Ok(()),
        };
        // Looked at before it is asked whether the session is sound: what is still being appended is waited for.
        none_is_open(&self.live.state().await.view)?;
        self.live.check_sound()?;
        // The session may come from a process that died while it put files back, or whose files were in its memory.
        self.live.settle_files().await?;
        self.live.take_up_files().await?;
        let late = match parent {
            Some(_) => Vec::new(),
            None => self.late_wishes().await?,
        };
        let evaluation = self
            .live
            .commit(|state| {
                none_is_open(&state.view)?;
                let session = &state.execution.session;
                let evaluation: EvaluationId = session.ids().next();
                let mut started = self.started(evaluation, parent);
                started.follows = state.view.to_follow(parent);
                if let Some(before) = parent.and_then(|parent| state.view.evaluation(parent)) {
                    started.budget = state.view.budget_left(before).or(started.budget);
                    started.deadline_millis = before.time_left().map(millis).or(started.deadline_millis);
                }
                let mut batch = Batch::at(self.live.clock().now()).with(started);
                let mut prepared = session.prepare(&session.draft())?;
                if let Some(rendered) = self.rendered(evaluation) {
                    session.prepare_more(&mut prepared, rendered)?;
                }
                push_changes(&mut batch, &prepared)?;
                for (id, note) in late {
                    batch.push(note).take(id);
                }
                for id in taken {
                    batch.take(id);
                }
                let prepared = Some(prepared);
                Ok((Commit { batch, prepared, when: Durable::WithNext }, evaluation))
            })
            .await?;
        let objects = said.iter_mut().flat_map(|mission| std::mem::take(&mut mission.objects)).collect();
        let opening = self.opening(said).await?;
        self.live.is_asked();
        self.live.say_with(evaluation, 0, opening, objects).await?;
        self.set_deadline(evaluation).await;
        Ok(evaluation)
    }

    /// The record that an evaluation of this agent starts.
    pub(super) fn started(
        &self,
        evaluation: EvaluationId,
        parent: Option<EvaluationId>,
    ) -> EvaluationStarted {
        let agent = &self.agent;
        EvaluationStarted {
            evaluation_id: evaluation,
            prompt_ns: agent.ns.clone(),
            prompt_key: agent.key.clone(),
            fingerprint: agent.fingerprint().ok(),
            tools: agent.contracts().ok(),
            parent_evaluation: parent,
            follows: None,
            budget: agent.limits(),
            deadline_millis: agent.deadline.map(millis),
            decider: Some(agent.policy.name().clone()),
            extra: Extra::default(),
        }
    }

    async fn opening(&self, said: Vec<Mission>) -> Result<Vec<Message>, RuntimeError> {
        let ids = self.live.state().await.execution.session.ids().clone();
        let mut messages = Vec::new();
        if let Some(system) = &self.agent.system {
            let mut builder = MessageBuilder::continue_step(1, &ids);
            builder.policy(PolicyName::new("prompt")?).role_hint(RoleHint::System).add_text(system.as_str());
            messages.push(builder.to_message()?);
        }
        for mission in said {
            messages.push(said_by_user(mission, 1, &ids)?);
        }
        Ok(messages)
    }

    /// The evaluation has what is left of its active time from now on.
    pub(super) async fn set_deadline(&self, evaluation: EvaluationId) {
        let state = self.live.state().await;
        let left = state.view.evaluation(evaluation).and_then(|known| known.time_left());
        if let Some(left) = left {
            let now = self.live.clock().now();
            let micros = i64::try_from(left.as_micros()).unwrap_or(i64::MAX);
            let deadline = Timestamp::from_unix_micros(now.unix_micros().saturating_add(micros));
            self.live.set_deadline(evaluation, deadline.unwrap_or(now));
        }
    }

    /// Drives an evaluation from where its journal stands to its end, or to a pause.
    pub(crate) async fn drive(&self, evaluation: EvaluationId) -> Result<Ended, RuntimeError> {
        let span = spans::evaluation(self.live.id(), evaluation, &self.agent.prompt_name());
        self.live.set_driven(true);
        let ended = boxed(|| self.drive_on(evaluation)).instrument(span.clone()).await;
        if let Err(error) = &ended {
            self.record_stop(evaluation, error).await;
        }
        self.live.set_driven(false);
        if let Ok(Ended::Failed { failure, .. }) = &ended {
            spans::failed(&span, &failure.kind);
        }
        ended
    }

    async fn drive_on(&self, evaluation: EvaluationId) -> Result<Ended, RuntimeError> {
        let mut machine = self.agent.machinery().rebuild(&self.past(evaluation).await?)?;
        loop {
            let next = match self.attend(evaluation, &mut *machine).await? {
                Next::GoOn => {
                    let (back, wanted) = self.wanted_by(evaluation, machine).await?;
                    machine = back;
                    self.save_checkpoint().await?;
                    match wanted {
                        Advance::Action(action) => self.act(evaluation, action, &mut *machine).await?,
                        Advance::OutOfTime => {
                            Next::End(self.pause_for(evaluation, PauseReason::Deadline, OUT_OF_TIME).await?)
                        }
                        // Whatever it was stopped for is attended to first.
                        Advance::Interrupted => Next::GoOn,
                    }
                }
                other => other,
            };
            match next {
                Next::GoOn => {}
                Next::End(ended) => {
                    self.live.flush().await?;
                    self.save_checkpoint().await?;
                    return Ok(ended);
                }
                Next::Finish(ending) => match self.judge(evaluation, ending).await? {
                    Judged::Ends(ending) => {
                        let ended = self.finish(evaluation, ending).await?;
                        // What is answered needs no checkpoint any more.
                        if !matches!(ended, Ended::Completed(_)) {
                            self.save_checkpoint().await?;
                        }
                        return Ok(ended);
                    }
                    Judged::AsksAgain(said) => machine.take_in(Event::Said(said)),
                },
            }
        }
    }

    /// What a machine wants. One that takes long to say so does not keep others waiting, and what happened before it does is
    /// durable meanwhile. It is stopped when someone wants the session to stop, or when the evaluation is out of time.
    async fn wanted_by(
        &self,
        evaluation: EvaluationId,
        mut machine: Box<dyn Machine>,
    ) -> Result<(Box<dyn Machine>, Advance), RuntimeError> {
        if !machine.takes_long() {
            let action = machine.next();
            return Ok((machine, Advance::Action(action)));
        }
        let stop = StopOnDrop::default();
        let flag = stop.0.clone();
        let mut said = tokio::task::spawn_blocking(move || {
            let action = machine.next_unless(&flag);
            (machine, action)
        });
        let (said, why) = tokio::select! {
            biased;
            said = &mut said => (said, Advance::Interrupted),
            () = tokio::time::sleep(HELD_FOR) => {
                self.live.flush().await?;
                tokio::select! {
                    biased;
                    said = &mut said => (said, Advance::Interrupted),
                    why = self.wait_for_stop(evaluation) => {
                        drop(stop);
                        (said.await, why)
                    }
                }
            }
        };
        match said {
            Ok((machine, action)) => Ok((machine, action.map_or(why, Advance::Action))),
            Err(join) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
            Err(_) => Err(RuntimeError::ShuttingDown),
        }
    }

    async fn act(
        &self,
        evaluation: EvaluationId,
        action: Action,
        machine: &mut dyn Machine,
    ) -> Result<Next, RuntimeError> {
        match action {
            Action::Ask => boxed(|| self.ask(evaluation, machine)).await,
            Action::Call(wanted) => boxed(|| self.call(evaluation, wanted, machine)).await,
            Action::Record(bodies) => {
                // The answer that a program was found in may have cost much and its program may run for long, so they are
                // durable before it does. All else goes with what comes next.
                let is_program = |body: &RecordBody| matches!(body, RecordBody::ProgramStarted(_));
                let when = if bodies.iter().any(is_program) { Durable::Now } else { Durable::WithNext };
                self.live.record_when(bodies, when).await?;
                crash_point!("machine.recorded");
                Ok(Next::GoOn)
            }
            Action::Finish(ending) => Ok(Next::Finish(ending)),
            // Calls are waited for where they are run, so there is nothing to wait for here.
            Action::Wait => Err(RuntimeError::Internal {
                reason: format!("evaluation {evaluation} waits for calls that nobody runs"),
            }),
        }
    }

    /// Records that the session waits.
    pub(super) async fn pause_for(
        &self,
        evaluation: EvaluationId,
        reason: PauseReason,
        detail: impl Into<String>,
    ) -> Result<Ended, RuntimeError> {
        self.pause_with(evaluation, reason, detail.into(), Vec::new()).await
    }

    /// Records that the session waits, and takes the items out of the inbox that asked for it.
    pub(super) async fn pause_with(
        &self,
        evaluation: EvaluationId,
        reason: PauseReason,
        detail: String,
        taken: Vec<InboxId>,
    ) -> Result<Ended, RuntimeError> {
        let paused = Paused {
            reason,
            call_id: None,
            detail: Some(detail.clone()),
            offer: None,
            session: None,
            extra: Extra::default(),
        };
        self.live
            .commit(|_| {
                let mut batch = Batch::at(self.live.clock().now()).with(paused);
                for id in taken {
                    batch.take(id);
                }
                Ok((Commit::now(batch, None), ()))
            })
            .await?;
        let partial = match reason {
            PauseReason::Truncated => Some(self.partial(evaluation).await?),
            _ => None,
        };
        Ok(Ended::Paused { evaluation, reason, call: None, detail, session: None, partial })
    }

    /// A pause, as the end of driving. What is waited for in a session that works for a call is about a call of that session.
    pub(super) async fn paused_by(&self, evaluation: EvaluationId, pause: &Paused) -> Ended {
        let mut detail = pause.detail.clone().unwrap_or_default();
        let mut partial = None;
        let call = match pause.session {
            Some(child) => match load_view(&**self.live.store(), child, None).await {
                Ok(view) => {
                    let own = view.pause();
                    // Of a call whose effect is not known the tool is named, in whatever session it was made.
                    if let Some(tool) = own.filter(|own| own.reason == PauseReason::EffectUnknown) {
                        detail = tool.detail.clone().unwrap_or(detail);
                    }
                    if pause.reason == PauseReason::Truncated
                        && let (Some(latest), Ok(transcript)) = (view.latest_evaluation(), view.transcript())
                    {
                        partial = Some(final_text(&transcript.inner_messages(latest.evaluation_id)));
                    }
                    own.and_then(|own| own.call_id)
                }
                Err(_) => None,
            },
            None => pause.call_id,
        };
        Ended::Paused { evaluation, reason: pause.reason, call, detail, session: pause.session, partial }
    }
}

/// What a person says, as a message.
pub(super) fn said_by_user(
    mission: Mission,
    step: u64,
    ids: &backstitch_core::id::IdStream,
) -> Result<Message, RuntimeError> {
    let mut builder = MessageBuilder::continue_step(step, ids);
    builder.person(PolicyName::new("user")?);
    for part in mission.parts {
        builder.add_part(part);
    }
    Ok(builder.to_message()?)
}

/// A time in milliseconds, as records have it.
pub(super) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
