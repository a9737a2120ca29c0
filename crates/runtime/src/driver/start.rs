//! The start of an evaluation: its contract is recorded, and then its first messages.
//!
//! Messages that wait in the inbox of a session without an open evaluation start the next one. They are taken out of the
//! inbox in the batch that starts the evaluation and records them. So a message is either waiting, or part of an
//! evaluation that can be resumed. Resuming a session returns only after the messages that were sent to it are answered.

use backstitch_core::id::{EvaluationId, IdStream};
use backstitch_core::journal::{EvaluationStarted, InboxId, InboxKind};
use backstitch_core::message::{Message, MessageBuilder, PolicyName, RoleHint};
use backstitch_core::ports::BoxFuture;
use backstitch_core::time::Timestamp;
use backstitch_core::view::JournalView;

use super::Driver;
use super::drive::millis;
use super::inbox::message_of;
use crate::agent::Mission;
use crate::error::{Result, RuntimeError};
use crate::live::Durable;
use crate::outcome::DriveOutcome;

impl Driver {
    /// Starts an evaluation and drives it to its end, or to a pause.
    pub async fn start(&self, mission: impl Into<Mission>) -> Result<DriveOutcome> {
        let evaluation = self.begin(mission.into(), None).await?;
        self.drive(evaluation).await
    }

    /// Records the start of an evaluation, with its system message and its mission.
    pub fn begin(
        &self,
        mission: Mission,
        parent: Option<EvaluationId>,
    ) -> BoxFuture<'_, Result<EvaluationId>> {
        Box::pin(async move { self.begin_with(vec![mission], parent, Vec::new()).await })
    }

    /// Records the start of an evaluation, with its system message and the first messages of the user, and
    /// removes the inbox items that these came from. An evaluation that replaces another one has the rest of
    /// its budget and time, and obeys requests to stop that name it. Otherwise requests to stop that wait
    /// already name evaluations that have ended.
    pub(super) async fn begin_with(
        &self,
        mut missions: Vec<Mission>,
        parent: Option<EvaluationId>,
        taken: Vec<InboxId>,
    ) -> Result<EvaluationId> {
        let none_is_open = |view: &JournalView| match view.open_evaluation() {
            Some(open) => Err(RuntimeError::EvaluationOpen { evaluation: open.evaluation_id }),
            None => Ok(()),
        };
        // Checked before soundness, since reading the state waits for pending appends.
        none_is_open(&*self.live.view().await)?;
        self.live.check_sound()?;
        // The session may come from a process that died while it restored files, or whose files were in
        // memory.
        self.live.settle_files().await?;
        self.live.reconcile_files().await?;
        let late = match parent {
            Some(_) => Vec::new(),
            None => self.inbox.late_requests().await?,
        };
        let evaluation = self
            .live
            .commit(|commit| {
                let view = commit.view();
                none_is_open(view)?;
                let evaluation: EvaluationId = commit.session().ids().next();
                let mut started = self.started(evaluation, parent);
                started.follows = view.to_follow(parent);
                started.directory = self.live.new_directory(view);
                started.excludes = self.live.new_excludes(view);
                if let Some(before) = parent.and_then(|parent| view.evaluation(parent)) {
                    started.budget = view.budget_left(before).or(started.budget);
                    started.deadline_millis = before.time_left().map(millis).or(started.deadline_millis);
                }
                commit.push(started).durable(Durable::WithNext);
                if let Some(rendered) = self.rendered(evaluation) {
                    commit.dispatch(rendered)?;
                }
                for (id, note) in late {
                    commit.push(note).take([id]);
                }
                commit.take(taken);
                Ok(evaluation)
            })
            .await?;
        let objects: Vec<_> =
            missions.iter_mut().flat_map(|mission| std::mem::take(&mut mission.objects)).collect();
        let opening = self.opening(missions).await?;
        self.live.condition().mark_asked();
        self.live
            .commit(|commit| {
                for message in opening {
                    commit.say(evaluation, 0, message)?;
                }
                commit.add_objects(objects);
                Ok(())
            })
            .await?;
        self.set_deadline(evaluation).await;
        Ok(evaluation)
    }

    /// Returns the record that starts an evaluation of this agent.
    pub(super) fn started(
        &self,
        evaluation: EvaluationId,
        parent: Option<EvaluationId>,
    ) -> EvaluationStarted {
        let agent = &self.agent;
        EvaluationStarted {
            fingerprint: agent.fingerprint().ok(),
            tools: agent.contracts().ok(),
            parent_evaluation: parent,
            budget: agent.limits(),
            deadline_millis: agent.deadline.map(millis),
            decider: Some(agent.policy.name().clone()),
            ..EvaluationStarted::new(evaluation, agent.ns.clone(), agent.key.clone())
        }
    }

    async fn opening(&self, missions: Vec<Mission>) -> Result<Vec<Message>> {
        let ids = self.live.state().await.session.ids().clone();
        let mut messages = Vec::new();
        if let Some(system) = &self.agent.system {
            let mut builder = MessageBuilder::continue_step(1, &ids);
            builder.policy(PolicyName::new("prompt")?).role_hint(RoleHint::System).add_text(system.as_str());
            messages.push(builder.to_message()?);
        }
        for mission in missions {
            messages.push(user_message(mission, 1, &ids)?);
        }
        Ok(messages)
    }

    /// Sets the deadline from the remaining active time of the evaluation.
    pub(crate) async fn set_deadline(&self, evaluation: EvaluationId) {
        let state = self.live.state().await;
        let left = state.view.evaluation(evaluation).and_then(|known| known.time_left());
        if let Some(left) = left {
            let now = self.live.clock().now();
            let micros = i64::try_from(left.as_micros()).unwrap_or(i64::MAX);
            let deadline = Timestamp::from_unix_micros(now.unix_micros().saturating_add(micros));
            self.live.set_deadline(evaluation, deadline.unwrap_or(now));
        }
    }

    /// Starts an evaluation with the messages that wait in the inbox, and drives it to its end, or to a
    /// pause. Returns `None` if no message waits. Fails with [`RuntimeError::EvaluationOpen`] while an
    /// evaluation is open, since that one processes them itself.
    pub fn start_waiting(&self) -> BoxFuture<'_, Result<Option<DriveOutcome>>> {
        Box::pin(async move {
            let (mut missions, mut taken) = (Vec::new(), Vec::new());
            for (id, item) in self.inbox.waiting().await? {
                // A message that cannot be read is noted by the next evaluation.
                if let Some(mission) = (item.kind == InboxKind::Message).then(|| message_of(&item)).flatten()
                {
                    missions.push(mission);
                    taken.push(id);
                }
            }
            if missions.is_empty() {
                return Ok(None);
            }
            let evaluation = self.begin_with(missions, None, taken).await?;
            self.drive(evaluation).await.map(Some)
        })
    }

    /// Answers messages that arrived too late for the driven evaluation. If that one failed, was cancelled or
    /// paused, its outcome is returned, and the messages are answered on the next resume.
    pub(super) async fn and_answer_waiting(&self, mut ended: DriveOutcome) -> Result<DriveOutcome> {
        let is_stopped = || self.inbox.stop.is_cancelled() || self.inbox.cancel.is_cancelled();
        while matches!(ended, DriveOutcome::Completed(_)) && !is_stopped() {
            match self.start_waiting().await? {
                Some(next) => ended = next,
                None => break,
            }
        }
        Ok(ended)
    }
}

/// Returns a mission as a message of the user.
pub(super) fn user_message(mission: Mission, step: u64, ids: &IdStream) -> Result<Message> {
    let mut builder = MessageBuilder::continue_step(step, ids);
    builder.person(PolicyName::new("user")?);
    for part in mission.parts {
        builder.add_part(part);
    }
    Ok(builder.to_message()?)
}
