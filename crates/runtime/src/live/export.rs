//! Exports: snapshots and conversations that include their content.
//!
//! A session holds references in place of large content and media. An export fetches all of it, so that any
//! store can adopt the export. For a smaller result use
//! [`Session::snapshot`](backstitch_core::session::Session::snapshot), which lists the objects that it refers
//! to.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{CarriedObject, InnerMessage, Provenance};
use backstitch_core::object::{Object, ObjectContent, ObjectId};
use backstitch_core::ports::StoreError;
use backstitch_core::session::{Items, Snapshot};
use backstitch_core::view::{ConversationState, Transcript};

use super::LiveSession;
use crate::error::{Result, RuntimeError};

impl LiveSession {
    /// Returns a snapshot with all content inlined. Any store can adopt it, and continue with the same
    /// requests.
    pub async fn export_snapshot(&self) -> Result<Snapshot> {
        let (snapshot, transcript) = {
            let state = self.state().await;
            let session = &state.session;
            (session.snapshot(), Transcript::of(session)?)
        };
        let mut content = Content { live: self, media: BTreeMap::new() };
        let messages = content.of_messages(transcript.all()).await?;
        let provenance = match snapshot.provenance() {
            Some(known) => Some(content.of_provenance(Provenance::clone(&known)).await?),
            None => None,
        };
        Ok(snapshot.with_content(messages, provenance, content.media.into_values().collect()))
    }

    /// Returns an evaluation, by default the latest, as a conversation with all content inlined. `None` if it
    /// has no messages.
    pub async fn export_conversation(
        &self,
        evaluation: Option<EvaluationId>,
    ) -> Result<Option<ConversationState>> {
        let snapshot = self.export_snapshot().await?;
        let transcript = snapshot.transcript()?;
        let Some(evaluation) = evaluation.or_else(|| transcript.latest_evaluation_id()) else {
            return Ok(None);
        };
        let Some(mut conversation) = transcript.conversation(evaluation) else { return Ok(None) };
        let wanted = std::mem::take(&mut conversation.refers_to);
        let is_wanted = |object: &&CarriedObject| wanted.contains(&object.0.id());
        conversation.objects = snapshot.objects().iter().filter(is_wanted).cloned().collect();
        Ok(Some(conversation))
    }
}

/// Fetches content, and collects media.
struct Content<'a> {
    live: &'a LiveSession,
    media: BTreeMap<ObjectId, Object>,
}

impl Content<'_> {
    async fn content(&self, id: ObjectId) -> Result<ObjectContent> {
        let missing = RuntimeError::from(StoreError::MissingObject { object: id });
        self.live.content(id).await?.ok_or(missing)
    }

    async fn of_messages(&mut self, messages: &Items<InnerMessage>) -> Result<Vec<Arc<InnerMessage>>> {
        let mut whole = Vec::with_capacity(messages.len());
        for message in messages.iter() {
            whole.push(self.of_message(message).await?);
        }
        Ok(whole)
    }

    async fn of_message(&mut self, message: &Arc<InnerMessage>) -> Result<Arc<InnerMessage>> {
        let wanted = message.object_refs();
        if wanted.is_empty() {
            return Ok(message.clone());
        }
        let mut found: BTreeMap<ObjectId, ObjectContent> = BTreeMap::new();
        for id in wanted {
            found.insert(id, self.content(id).await?);
        }
        let mut whole = InnerMessage::clone(message);
        whole.hydrate_content(|reference| found.get(&reference.object).cloned())?;
        // Objects that are not inlined are media.
        for id in whole.object_refs() {
            if let Some(ObjectContent::Bytes(bytes)) = found.remove(&id) {
                self.media.insert(id, Object::blob(bytes));
            }
        }
        Ok(Arc::new(whole))
    }

    async fn of_provenance(&self, mut known: Provenance) -> Result<Provenance> {
        for record in known.large_records_mut() {
            self.live.fetch_large(record).await?;
        }
        Ok(known)
    }
}
