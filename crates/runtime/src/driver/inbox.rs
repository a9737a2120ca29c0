//! What is said from outside while a session is driven.
//!
//! Items wait in the inbox until the driver takes them in: messages and wishes between two actions, a wish to cancel at any
//! time. Taking one in and recording what came of it is one batch, so no item is lost or heard twice.
//!
//! A wish to cancel or to pause names its evaluation. It is granted by that one, or by one that took its place; any other drops
//! it. What is said in a message is for whichever evaluation takes it in: one that ends before it does leaves it to the next.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    InboxId, InboxItem, InboxKind, InnerMessage, Note, PauseResolved, RecordBody,
};
use backstitch_core::machine::{Machine, MachineEvent};
use backstitch_core::message::Part;
use tokio_util::sync::CancellationToken;

use super::drive::Advance;
use super::start::said_by_user;
use crate::agent::Mission;
use crate::error::RuntimeError;
use crate::live::LiveSession;

/// How often the inbox is looked into while nothing else can be done.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How far back the evaluations that took each other's place are followed.
const LONGEST_LINE: usize = 100;

/// What is noted of a wish whose evaluation has ended before it was granted.
const LATE_WISH: &str = "the evaluation that this is about has ended";

/// The wishes about one evaluation that wait in the inbox.
#[derive(Debug, Default)]
pub(super) struct InboxRequests {
    pub(super) cancels: Vec<InboxId>,
    pub(super) pauses: Vec<InboxId>,
}

/// What is said to a session from outside: items in its inbox, and the tokens that stop it here.
pub(super) struct Inbox {
    live: Arc<LiveSession>,
    /// Stops running calls and requests; the session pauses.
    pub(super) stop: CancellationToken,
    /// Ends the evaluation that runs.
    pub(super) cancel: CancellationToken,
}

impl Inbox {
    pub(super) fn new(live: Arc<LiveSession>, stop: CancellationToken, cancel: CancellationToken) -> Self {
        Self { live, stop, cancel }
    }

    /// What waits in the inbox, in the order in which it was sent.
    pub(super) async fn waiting(&self) -> Result<Vec<(InboxId, InboxItem)>, RuntimeError> {
        self.live.store().inbox(self.live.id()).await.map_err(RuntimeError::Store)
    }

    /// The wishes among these items that are about an evaluation, or about one that it took the place of.
    pub(super) async fn wishes_of(
        &self,
        evaluation: EvaluationId,
        waiting: &[(InboxId, InboxItem)],
    ) -> InboxRequests {
        let mut wishes = InboxRequests::default();
        let is_wish = |item: &InboxItem| matches!(item.kind, InboxKind::Cancel | InboxKind::Pause);
        if !waiting.iter().any(|(_, item)| is_wish(item)) {
            return wishes;
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
                InboxKind::Cancel => wishes.cancels.push(*id),
                InboxKind::Pause => wishes.pauses.push(*id),
                _ => {}
            }
        }
        wishes
    }

    /// Takes in an item that is no wish about the evaluation.
    pub(super) async fn take_in(
        &self,
        evaluation: EvaluationId,
        id: InboxId,
        item: InboxItem,
        machine: &mut dyn Machine,
    ) -> Result<(), RuntimeError> {
        match item.kind {
            InboxKind::Message => match message_of(&item) {
                Some(mission) => {
                    let said = self.take_in_message(evaluation, id, mission).await?;
                    machine.take_in(MachineEvent::Said(said));
                    Ok(())
                }
                None => self.take_in_note(id, "a message that cannot be read", &item).await,
            },
            // Those that are about this evaluation do not come here.
            InboxKind::Cancel | InboxKind::Pause => self.take_in_note(id, LATE_WISH, &item).await,
            InboxKind::Resolution => match serde_json::from_value::<PauseResolved>(item.data.clone()) {
                Ok(resolved) => self.decide(id, resolved, &item).await,
                Err(_) => self.take_in_note(id, "a decision that cannot be read", &item).await,
            },
            _ => self.take_in_note(id, "something that is not known here", &item).await,
        }
    }

    /// Takes in the decisions that wait, before it is asked what the session waits for.
    pub(super) async fn hear_decisions(&self) -> Result<(), RuntimeError> {
        let waiting = self.waiting().await?;
        for (id, item) in waiting.into_iter().filter(|(_, item)| item.kind == InboxKind::Resolution) {
            match serde_json::from_value::<PauseResolved>(item.data.clone()) {
                Ok(resolved) => self.decide(id, resolved, &item).await?,
                Err(_) => self.take_in_note(id, "a decision that cannot be read", &item).await?,
            }
        }
        Ok(())
    }

    /// Decides, and takes the item out. A process that dies between finds the item again, and that it is decided already.
    async fn decide(
        &self,
        id: InboxId,
        resolved: PauseResolved,
        item: &InboxItem,
    ) -> Result<(), RuntimeError> {
        let decided = self.live.resolve(resolved.call_id, resolved.decision, resolved.by).await;
        match decided {
            Ok(()) => self.take_in_note(id, "a decision was taken in", item).await,
            Err(RuntimeError::Unresolvable(reason)) => self.take_in_note(id, &reason, item).await,
            Err(error) => Err(error),
        }
    }

    async fn take_in_message(
        &self,
        evaluation: EvaluationId,
        id: InboxId,
        mission: Mission,
    ) -> Result<Arc<InnerMessage>, RuntimeError> {
        self.live
            .commit(|commit| {
                let turns = commit.view().evaluation(evaluation).map_or(0, |known| known.turns);
                let message = said_by_user(mission, turns + 1, commit.session().ids())?;
                commit.take([id]).say(evaluation, turns, message)
            })
            .await
    }

    async fn take_in_note(&self, id: InboxId, text: &str, item: &InboxItem) -> Result<(), RuntimeError> {
        self.take_in_record(id, note_of(text, item).into()).await
    }

    async fn take_in_record(&self, id: InboxId, body: RecordBody) -> Result<(), RuntimeError> {
        self.live
            .commit(|commit| {
                commit.push(body).take([id]);
                Ok(())
            })
            .await
    }

    /// The wishes about an evaluation that wait in the inbox. They go with its end.
    pub(super) async fn waiting_wishes(
        &self,
        evaluation: EvaluationId,
    ) -> Result<InboxRequests, RuntimeError> {
        let waiting = self.waiting().await?;
        Ok(self.wishes_of(evaluation, &waiting).await)
    }

    /// The wishes that wait before an evaluation starts, and what is noted of them: they are about others.
    pub(super) async fn late_wishes(&self) -> Result<Vec<(InboxId, Note)>, RuntimeError> {
        let waiting = self.waiting().await?.into_iter();
        let wishes = waiting.filter(|(_, item)| matches!(item.kind, InboxKind::Cancel | InboxKind::Pause));
        Ok(wishes.map(|(id, item)| (id, note_of(LATE_WISH, &item))).collect())
    }

    /// Completes when someone outside wants the evaluation to end. The wish itself is taken in with the end.
    pub(super) async fn wait_for_cancel(&self, evaluation: EvaluationId) {
        self.wait_for_wish(evaluation, |wishes| !wishes.cancels.is_empty()).await;
    }

    /// Completes when a program that runs is to be stopped, and says whether that is because the evaluation is out of time. What
    /// someone outside wants is taken in where all wishes are.
    pub(super) async fn wait_for_stop(&self, evaluation: EvaluationId) -> Advance {
        let left = self.live.deadline(evaluation).map(|at| at.since(self.live.clock().now()));
        let out_of_time = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        let is_wish = |wishes: &InboxRequests| !wishes.cancels.is_empty() || !wishes.pauses.is_empty();
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Advance::Interrupted,
            () = self.wait_for_wish(evaluation, is_wish) => Advance::Interrupted,
            () = out_of_time => Advance::OutOfTime,
        }
    }

    /// Completes when someone cancels here, or when such wishes about the evaluation wait in the inbox.
    async fn wait_for_wish(&self, evaluation: EvaluationId, is_wanted: fn(&InboxRequests) -> bool) {
        loop {
            if tokio::time::timeout(LOOK_EVERY, self.cancel.cancelled()).await.is_ok() {
                return;
            }
            match self.waiting_wishes(evaluation).await {
                Ok(wishes) if is_wanted(&wishes) => return,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the inbox could not be read"),
            }
        }
    }
}

/// What is noted of an item that was taken out of the inbox.
fn note_of(text: &str, item: &InboxItem) -> Note {
    Note::new("inbox", text).with_data(serde_json::json!({"kind": item.kind, "data": item.data}))
}

/// What a message item says: text, or parts as messages hold them.
pub(super) fn message_of(item: &InboxItem) -> Option<Mission> {
    if let Some(text) = item.data.as_str() {
        return Some(text.into());
    }
    let parts: Vec<Part> = serde_json::from_value(item.data.clone()).ok()?;
    (!parts.is_empty()).then_some(Mission::new(parts))
}
