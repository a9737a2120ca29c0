//! The inbox: messages, requests and decisions from outside while a session is driven.
//!
//! Items wait in the inbox until the driver processes them: between two actions, or at any time for a request
//! to cancel. An item is removed in the batch that records its effect, so it is neither lost nor processed
//! twice.
//!
//! A request to cancel or to pause names its evaluation. It applies to that one or to an evaluation that
//! replaced it; any other drops it. A message is for the evaluation that processes it first: if one ends
//! before, the message is left to the next.
//!
//! While an action runs, the driver also notices here that the session was taken over. It stops its calls as for a pause,
//! and leaves everything else to the new driver.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::journal::{InboxId, InboxItem, InboxKind, InnerMessage, Note, PauseResolved};
use backstitch_core::machine::{Machine, MachineEvent};
use backstitch_core::message::Part;
use tokio_util::sync::CancellationToken;

use super::drive::Advance;
use super::start::user_message;
use crate::agent::Mission;
use crate::clock::after;
use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, callers_of};

/// Interval at which the inbox is polled during an action.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The most superseded evaluations that are followed back.
const LONGEST_LINE: usize = 100;

/// Note about a request whose evaluation ended before it was processed.
const LATE_REQUEST: &str = "the evaluation that this is about has ended";

/// Requests in the inbox to stop one evaluation.
#[derive(Debug, Default)]
pub(super) struct InboxRequests {
    pub(super) cancels: Vec<InboxId>,
    pub(super) pauses: Vec<InboxId>,
}

impl InboxRequests {
    pub(super) fn is_any(&self) -> bool {
        !self.cancels.is_empty() || !self.pauses.is_empty()
    }
}

/// Input to a session from outside: its inbox, and the tokens that stop it in this process.
pub(super) struct Inbox {
    live: Arc<LiveSession>,
    /// Stops running calls and requests. The session pauses.
    pub(super) stop: CancellationToken,
    /// Ends the running evaluation.
    pub(super) cancel: CancellationToken,
}

impl Inbox {
    pub(super) fn new(live: Arc<LiveSession>, stop: CancellationToken, cancel: CancellationToken) -> Self {
        Self { live, stop, cancel }
    }

    /// Returns the items of the inbox, in the order in which they were sent.
    pub(super) async fn waiting(&self) -> Result<Vec<(InboxId, InboxItem)>> {
        Ok(self.live.store().inbox(self.live.id()).await?)
    }

    /// Filters the requests that name an evaluation, or one that it replaced.
    pub(super) async fn requests_for(
        &self,
        evaluation: EvaluationId,
        waiting: &[(InboxId, InboxItem)],
    ) -> InboxRequests {
        let mut stop_requests = InboxRequests::default();
        let is_request = |item: &InboxItem| matches!(item.kind, InboxKind::Cancel | InboxKind::Pause);
        if !waiting.iter().any(|(_, item)| is_request(item)) {
            return stop_requests;
        }
        let state = self.live.state().await;
        let parent = |evaluation: &EvaluationId| {
            state.view.evaluation(*evaluation).and_then(|known| known.start.as_ref()?.parent_evaluation)
        };
        let line: Vec<_> = std::iter::successors(Some(evaluation), parent).take(LONGEST_LINE).collect();
        for (id, item) in waiting {
            if item.evaluation().is_some_and(|named| !line.contains(&named)) {
                continue;
            }
            match item.kind {
                InboxKind::Cancel => stop_requests.cancels.push(*id),
                InboxKind::Pause => stop_requests.pauses.push(*id),
                _ => {}
            }
        }
        stop_requests
    }

    /// Processes an item that is not a request to stop the evaluation.
    pub(super) async fn handle(
        &self,
        evaluation: EvaluationId,
        id: InboxId,
        item: InboxItem,
        machine: &mut dyn Machine,
    ) -> Result<()> {
        if let Some((child, passed)) = item.to_sub_agent() {
            return self.pass_on(id, child, passed).await;
        }
        match item.kind {
            InboxKind::Message => match message_of(&item) {
                Some(mission) => {
                    let message = self.consume_message(evaluation, id, mission).await?;
                    machine.handle(MachineEvent::MessageAdded(message));
                    Ok(())
                }
                None => self.consume_with_note(id, "a message that cannot be read", &item).await,
            },
            // Requests about this evaluation are handled before.
            InboxKind::Cancel | InboxKind::Pause => self.consume_with_note(id, LATE_REQUEST, &item).await,
            InboxKind::Resolution => self.decide(id, &item).await,
            InboxKind::Signal if item.signal_name().is_some() => {
                self.live.receive_signals(item.signal_name()).await
            }
            _ => self.consume_with_note(id, "something that is not known here", &item).await,
        }
    }

    /// Processes waiting decisions and signals, before the pause of the session is examined.
    pub(super) async fn receive_decisions(&self) -> Result<()> {
        for (id, item) in self.waiting().await? {
            if let Some((child, passed)) = item.to_sub_agent() {
                self.pass_on(id, child, passed).await?;
            }
        }
        let waiting = self.waiting().await?;
        for (id, item) in waiting.into_iter().filter(|(_, item)| item.kind == InboxKind::Resolution) {
            self.decide(id, &item).await?;
        }
        // Nothing else is recorded before a decision has repaired the session.
        self.live.receive_signals(None).await
    }

    /// Passes an item on to a sub-agent. After a crash in between it is passed on again: a decision is noted as already made, and a
    /// signal may arrive twice.
    async fn pass_on(&self, id: InboxId, child: SessionId, item: InboxItem) -> Result<()> {
        let own = self.live.id();
        let is_sub_agent = match callers_of(&**self.live.store(), child).await {
            Ok(line) => child != own && line.contains(&own),
            Err(RuntimeError::SessionNotFound { .. }) => false,
            Err(error) => return Err(error),
        };
        if !is_sub_agent {
            return self.consume_with_note(id, "this session has no such sub-agent", &item).await;
        }
        self.live.store().send(child, item.clone()).await?;
        self.consume_with_note(id, "it was passed on to a sub-agent", &item).await
    }

    /// Applies a decision, and removes the item. After a crash in between, the item is found again and noted
    /// as already decided.
    async fn decide(&self, id: InboxId, item: &InboxItem) -> Result<()> {
        let Ok(resolved) = serde_json::from_value::<PauseResolved>(item.data.clone()) else {
            return self.consume_with_note(id, "a decision that cannot be read", item).await;
        };
        match self.live.apply_decision(resolved).await {
            Ok(()) => self.consume_with_note(id, "a decision was applied", item).await,
            Err(RuntimeError::Unresolvable(reason)) => self.consume_with_note(id, &reason, item).await,
            Err(error) => Err(error),
        }
    }

    /// Records a message of the user, and removes its item.
    pub(super) async fn consume_message(
        &self,
        evaluation: EvaluationId,
        id: InboxId,
        mission: Mission,
    ) -> Result<Arc<InnerMessage>> {
        self.live
            .commit(|commit| {
                let turns = commit.view().evaluation(evaluation).map_or(0, |known| known.turns);
                let message = user_message(mission, turns + 1, commit.session().ids())?;
                commit.take([id]).say(evaluation, turns, message)
            })
            .await
    }

    async fn consume_with_note(&self, id: InboxId, text: &str, item: &InboxItem) -> Result<()> {
        self.live
            .commit(|commit| {
                commit.push(note_of(text, item)).take([id]);
                Ok(())
            })
            .await
    }

    /// Returns the waiting requests to stop an evaluation. They are consumed at its end.
    pub(super) async fn waiting_requests(&self, evaluation: EvaluationId) -> Result<InboxRequests> {
        let waiting = self.waiting().await?;
        Ok(self.requests_for(evaluation, &waiting).await)
    }

    /// Returns the requests that wait before an evaluation starts, with notes about them. They name other
    /// evaluations.
    pub(super) async fn late_requests(&self) -> Result<Vec<(InboxId, Note)>> {
        let waiting = self.waiting().await?.into_iter();
        let stop_requests =
            waiting.filter(|(_, item)| matches!(item.kind, InboxKind::Cancel | InboxKind::Pause));
        Ok(stop_requests.map(|(id, item)| (id, note_of(LATE_REQUEST, &item))).collect())
    }

    /// Completes when the evaluation is to be cancelled. The request is consumed at the end of the
    /// evaluation.
    pub(super) async fn wait_for_cancel(&self, evaluation: EvaluationId) {
        self.wait_for_request(evaluation, |stop_requests| !stop_requests.cancels.is_empty()).await;
    }

    /// Completes when a running program is to be stopped, and returns whether the evaluation is out of time.
    /// Requests themselves are processed between two actions.
    pub(super) async fn wait_for_stop(&self, evaluation: EvaluationId) -> Advance {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Advance::Interrupted,
            () = self.wait_for_request(evaluation, InboxRequests::is_any) => Advance::Interrupted,
            () = self.out_of_time(evaluation) => Advance::OutOfTime,
        }
    }

    /// Completes when the evaluation is out of time.
    pub(super) async fn out_of_time(&self, evaluation: EvaluationId) {
        after(self.live.deadline(evaluation).map(|at| at.since(self.live.clock().now()))).await;
    }

    /// Stops everything if the session was taken over. The next write fails with that reason.
    async fn stop_if_taken_over(&self) {
        let claim = self.live.claim();
        let is_current = self.live.store().is_current(claim.session, claim.fence).await;
        // Without an answer, the clock of this machine decides.
        if self.live.check_lease().is_err() {
            return self.stop.cancel();
        }
        match is_current {
            // Also if only the lease was over by the clock of the store: then nothing says so later.
            Ok(false) => {
                self.live.lease_over().cancel();
                self.stop.cancel();
            }
            Ok(true) => {}
            Err(error) => tracing::warn!(%error, "the claim to the session could not be checked"),
        }
    }

    /// Completes when the token is cancelled, or when such requests about the evaluation wait in the inbox.
    pub(super) async fn wait_for_request(
        &self,
        evaluation: EvaluationId,
        is_wanted: fn(&InboxRequests) -> bool,
    ) {
        loop {
            if tokio::time::timeout(POLL_INTERVAL, self.cancel.cancelled()).await.is_ok() {
                return;
            }
            self.stop_if_taken_over().await;
            match self.waiting_requests(evaluation).await {
                Ok(stop_requests) if is_wanted(&stop_requests) => return,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the inbox could not be read"),
            }
        }
    }
}

/// Returns the note about an item that was removed from the inbox.
fn note_of(text: &str, item: &InboxItem) -> Note {
    Note::new("inbox", text).with_data(serde_json::json!({"kind": item.kind, "data": item.data}))
}

/// Returns the content of a message item, which is text or a list of parts.
pub(super) fn message_of(item: &InboxItem) -> Option<Mission> {
    if let Some(text) = item.data.as_str() {
        return Some(text.into());
    }
    let parts: Vec<Part> = serde_json::from_value(item.data.clone()).ok()?;
    (!parts.is_empty()).then_some(Mission::new(parts))
}
