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
use backstitch_core::session::Snapshot;
use backstitch_core::view::{ConversationState, Transcript};

use super::LiveSession;
use crate::error::Result;

impl LiveSession {
    /// Returns a snapshot with all content inlined. Any store can adopt it, and continue with the same
    /// requests.
    pub async fn export_snapshot(&self) -> Result<Snapshot> {
        let (snapshot, transcript) = {
            let state = self.state().await;
            let session = &state.session;
            (session.snapshot(), Transcript::of(session)?)
        };
        let (mut messages, mut media) = (Vec::with_capacity(transcript.all().len()), BTreeMap::new());
        for message in transcript.all().iter() {
            messages.push(self.with_content(message, &mut media).await?);
        }
        let mut provenance = snapshot.provenance().map(|known| Provenance::clone(&known));
        if let Some(known) = &mut provenance {
            for record in known.large_records_mut() {
                self.fetch_large(record).await?;
            }
        }
        Ok(snapshot.with_content(messages, provenance, media.into_values().collect()))
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

    /// Returns a message with all content inlined. Its media are added to `media`.
    async fn with_content(
        &self,
        message: &Arc<InnerMessage>,
        media: &mut BTreeMap<ObjectId, Object>,
    ) -> Result<Arc<InnerMessage>> {
        let wanted = message.object_refs();
        if wanted.is_empty() {
            return Ok(message.clone());
        }
        let mut found: BTreeMap<ObjectId, ObjectContent> = BTreeMap::new();
        for id in wanted {
            let content = self.content(id).await?;
            found.insert(id, content.ok_or(StoreError::MissingObject { object: id })?);
        }
        let mut whole = InnerMessage::clone(message);
        whole.hydrate_content(|reference| found.get(&reference.object).cloned())?;
        // Objects that are not inlined are media.
        for id in whole.object_refs() {
            if let Some(ObjectContent::Bytes(bytes)) = found.remove(&id) {
                media.insert(id, Object::blob(bytes));
            }
        }
        Ok(Arc::new(whole))
    }
}
