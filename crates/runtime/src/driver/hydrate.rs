//! Hydration: fetches the large content of messages.
//!
//! Content that is too large for a record is in objects, and the session holds only references to them,
//! whether it was loaded from a store or created here. A policy receives the content itself. Fetched content
//! is cached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::id::{EvaluationId, MessageId};
use backstitch_core::journal::{InnerMessage, LargeRecord};
use backstitch_core::message::Message;
use backstitch_core::object::{ObjectContent, ObjectId};
use backstitch_core::ports::{MediaBytes, RequestMemo, Store, content_of, fetch_large};
use backstitch_core::session::Items;
use backstitch_core::view::Transcript;

use super::conversation::Conversation;
use crate::error::Result;
use crate::live::LiveSession;

/// A cache of fetched content.
#[derive(Default)]
pub(super) struct ContentCache {
    messages: Mutex<HashMap<MessageId, Arc<InnerMessage>>>,
    media: Mutex<HashMap<ObjectId, Arc<[u8]>>>,
    whole: Mutex<Option<CachedTranscript>>,
    conversation: Mutex<Conversation>,
    memo: RequestMemo,
}

/// The transcript of the previous hydration.
#[derive(Clone, Default)]
struct CachedTranscript {
    transcript: Transcript,
    /// The last message before its hydration.
    last: Option<Arc<InnerMessage>>,
}

impl CachedTranscript {
    /// True if this is a prefix of a transcript. Transcripts only grow at their ends or return to an earlier
    /// state, so it is enough that the last message is in its place.
    fn begins(&self, given: &Items<InnerMessage>) -> bool {
        let Some(last) = &self.last else { return true };
        let there = self.transcript.all().len().checked_sub(1).and_then(|place| given.get(place));
        there.is_some_and(|there| Arc::ptr_eq(there, last))
    }
}

/// The place to read objects from.
#[derive(Clone, Copy)]
pub(super) enum ObjectSource<'a> {
    /// The store, or a session with objects that are not stored yet.
    By(&'a LiveSession),
    /// The store only.
    In(&'a dyn Store),
}

impl ObjectSource<'_> {
    async fn content(self, id: ObjectId) -> Result<Option<ObjectContent>> {
        match self {
            Self::By(live) => live.content(id).await,
            Self::In(store) => Ok(content_of(store.object(id).await)?),
        }
    }

    /// Fetches the content that is too large for a record.
    pub(super) async fn fetch_large(self, record: &mut dyn LargeRecord) -> Result<()> {
        match self {
            Self::By(live) => live.fetch_large(record).await,
            Self::In(store) => Ok(fetch_large(store, record).await?),
        }
    }
}

impl ContentCache {
    /// Returns the transcript with all of its content. Messages that were examined last time are not examined
    /// again.
    pub(super) async fn transcript(
        &self,
        held: ObjectSource<'_>,
        transcript: Transcript,
    ) -> Result<Transcript> {
        let given = transcript.all();
        let known = self.whole.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut whole = known.filter(|known| known.begins(given)).unwrap_or_default();
        while let Some(message) = given.get(whole.transcript.all().len()) {
            whole.transcript.push(self.message(held, message).await?);
            whole.last = Some(message.clone());
        }
        *self.whole.lock().unwrap_or_else(PoisonError::into_inner) = Some(whole.clone());
        Ok(whole.transcript)
    }

    /// Returns a message with all of its content.
    pub(super) async fn message(
        &self,
        held: ObjectSource<'_>,
        message: &Arc<InnerMessage>,
    ) -> Result<Arc<InnerMessage>> {
        let wanted = message.object_refs();
        if wanted.is_empty() {
            return Ok(message.clone());
        }
        if let Some(known) = self.known(message.message_id) {
            return Ok(known);
        }
        let mut contents: HashMap<ObjectId, ObjectContent> = HashMap::new();
        for id in wanted {
            contents.extend(held.content(id).await?.map(|content| (id, content)));
        }
        let mut whole = InnerMessage::clone(message);
        whole.hydrate_content(|reference| contents.get(&reference.object).cloned())?;
        let whole = Arc::new(whole);
        self.messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(message.message_id, whole.clone());
        Ok(whole)
    }

    /// Returns the visible messages of a conversation that ends with an evaluation. Messages that were examined last time are
    /// not examined again.
    pub(super) fn conversation(
        &self,
        transcript: &Transcript,
        evaluation: EvaluationId,
        followed: impl FnOnce() -> Vec<EvaluationId>,
    ) -> MutexGuard<'_, Conversation> {
        let mut known = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
        known.grow(transcript, evaluation, followed);
        known
    }

    /// Returns the bytes of these objects. Objects that the store does not have are left out, and reported
    /// where they are used.
    pub(super) async fn media(
        &self,
        held: ObjectSource<'_>,
        objects: impl IntoIterator<Item = ObjectId>,
    ) -> Result<MediaBytes> {
        let mut found = HashMap::new();
        for object in objects {
            let known = self.media.lock().unwrap_or_else(PoisonError::into_inner).get(&object).cloned();
            let bytes = match known {
                Some(bytes) => bytes,
                None => match held.content(object).await? {
                    Some(ObjectContent::Bytes(bytes)) => bytes,
                    Some(ObjectContent::Redacted) | None => continue,
                },
            };
            found.insert(object, bytes);
        }
        // Media that is no longer shown is dropped from the cache.
        *self.media.lock().unwrap_or_else(PoisonError::into_inner) = found.clone();
        Ok(Arc::new(found))
    }

    /// Returns what the policy keeps between requests for answers.
    pub(super) fn memo(&self) -> RequestMemo {
        self.memo.clone()
    }

    fn known(&self, id: MessageId) -> Option<Arc<InnerMessage>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

/// Returns the objects that hold the media of messages.
pub(super) fn media_in(messages: &Items<InnerMessage>) -> Vec<ObjectId> {
    messages.iter().flat_map(|message| media_of(&message.message)).collect()
}

/// Returns the objects that hold the media of a message.
pub(super) fn media_of(message: &Message) -> impl Iterator<Item = ObjectId> + '_ {
    let of_result = message.option_result().map(|result| result.parts.as_slice());
    let parts = message.parts().or(of_result).unwrap_or_default();
    parts.iter().filter_map(|part| part.as_media()?.url.object_id())
}
