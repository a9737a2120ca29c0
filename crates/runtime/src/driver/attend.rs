//! What is said from outside while a session is driven.
//!
//! Items wait in the inbox until the driver takes them in: messages and wishes between two actions, a wish to cancel at any
//! time. Taking one in and recording what came of it is one batch, so no item is lost or heard twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    Batch, InboxId, InboxItem, InboxKind, InnerMessage, Note, PauseReason, RecordBody, Resolved,
};
use backstitch_core::machine::{Ending, Event, Machine};
use backstitch_core::message::Part;

use super::drive::{Next, said_by_user};
use super::{Driver, Mission};
use crate::error::RuntimeError;
use crate::live::{Commit, push_changes};

/// How often the inbox is looked into while nothing else can be done.
const LOOK_EVERY: Duration = Duration::from_millis(250);

impl Driver {
    /// Takes in what waits in the inbox, and grants wishes.
    pub(super) async fn attend(
        &self,
        evaluation: EvaluationId,
        machine: &mut dyn Machine,
    ) -> Result<Next, RuntimeError> {
        let store = self.live.store();
        for (id, item) in store.inbox(self.live.id()).await.map_err(RuntimeError::Store)? {
            self.take_in_item(evaluation, id, item, machine).await?;
        }
        if self.wants_cancel.swap(false, Ordering::SeqCst) || self.cancel.is_cancelled() {
            return Ok(Next::Finish(Ending::cancelled()));
        }
        if self.stop.is_cancelled() || self.wants_pause.swap(false, Ordering::SeqCst) {
            let ended = self.pause_for(evaluation, PauseReason::Asked, "someone asked for a pause").await?;
            return Ok(Next::End(ended));
        }
        Ok(Next::GoOn)
    }

    async fn take_in_item(
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
                    machine.take_in(Event::Said(said));
                    Ok(())
                }
                None => self.take_in_note(id, "a message that cannot be read", &item).await,
            },
            InboxKind::Cancel => {
                self.wants_cancel.store(true, Ordering::SeqCst);
                self.take_in_note(id, "someone asked to cancel the evaluation", &item).await
            }
            InboxKind::Pause => {
                self.wants_pause.store(true, Ordering::SeqCst);
                self.take_in_note(id, "someone asked for a pause", &item).await
            }
            InboxKind::Resolution => match serde_json::from_value::<Resolved>(item.data.clone()) {
                Ok(resolved) => self.decide(id, resolved, &item).await,
                Err(_) => self.take_in_note(id, "a decision that cannot be read", &item).await,
            },
            _ => self.take_in_note(id, "something that is not known here", &item).await,
        }
    }

    /// Takes in the decisions that wait, before it is asked what the session waits for.
    pub(super) async fn hear_decisions(&self) -> Result<(), RuntimeError> {
        let waiting = self.live.store().inbox(self.live.id()).await.map_err(RuntimeError::Store)?;
        for (id, item) in waiting.into_iter().filter(|(_, item)| item.kind == InboxKind::Resolution) {
            match serde_json::from_value::<Resolved>(item.data.clone()) {
                Ok(resolved) => self.decide(id, resolved, &item).await?,
                Err(_) => self.take_in_note(id, "a decision that cannot be read", &item).await?,
            }
        }
        Ok(())
    }

    /// Decides, and takes the item out. A process that dies between finds the item again, and that it is decided already.
    async fn decide(&self, id: InboxId, resolved: Resolved, item: &InboxItem) -> Result<(), RuntimeError> {
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
            .commit(|state| {
                let session = &state.execution.session;
                let turns = state.view.evaluation(evaluation).map_or(0, |known| known.turns);
                let message = said_by_user(mission, turns + 1, session.ids())?;
                let inner = state.inner_message(evaluation, turns, message, 0)?;
                let mut prepared = session.prepare(&session.draft())?;
                session.prepare_more(&mut prepared, inner.clone())?;
                let mut batch = Batch::at(self.live.clock().now());
                push_changes(&mut batch, &prepared)?;
                batch.take(id);
                Ok((Commit::now(batch, Some(prepared)), Arc::new(inner)))
            })
            .await
    }

    async fn take_in_note(&self, id: InboxId, text: &str, item: &InboxItem) -> Result<(), RuntimeError> {
        let note = Note {
            topic: "inbox".to_owned(),
            text: text.to_owned(),
            data: serde_json::json!({"kind": item.kind, "data": item.data}),
            data_object: None,
            extra: Extra::default(),
        };
        self.take_in_record(id, note.into()).await
    }

    async fn take_in_record(&self, id: InboxId, body: RecordBody) -> Result<(), RuntimeError> {
        self.live
            .commit(|_| {
                let mut batch = Batch::at(self.live.clock().now()).with(body);
                batch.take(id);
                Ok((Commit::now(batch, None), ()))
            })
            .await
    }

    /// The wishes to cancel that wait in the inbox. They go with the end of the evaluation, so that none of them ends the next.
    pub(super) async fn waiting_cancels(&self) -> Result<Vec<InboxId>, RuntimeError> {
        let waiting = self.live.store().inbox(self.live.id()).await.map_err(RuntimeError::Store)?;
        let cancels = waiting.into_iter().filter(|(_, item)| item.kind == InboxKind::Cancel);
        Ok(cancels.map(|(id, _)| id).collect())
    }

    /// Completes when someone outside wants the evaluation to end. The wish itself is taken in with the end.
    pub(super) async fn wait_for_cancel(&self) {
        loop {
            if tokio::time::timeout(LOOK_EVERY, self.cancel.cancelled()).await.is_ok() {
                return;
            }
            match self.live.store().inbox(self.live.id()).await {
                Ok(items) => {
                    if items.iter().any(|(_, item)| item.kind == InboxKind::Cancel) {
                        return;
                    }
                }
                Err(error) => tracing::warn!(%error, "the inbox could not be read"),
            }
        }
    }
}

/// What a message item says: text, or parts as messages hold them.
fn message_of(item: &InboxItem) -> Option<Mission> {
    if let Some(text) = item.data.as_str() {
        return Some(text.into());
    }
    let parts: Vec<Part> = serde_json::from_value(item.data.clone()).ok()?;
    (!parts.is_empty()).then_some(Mission::new(parts))
}
