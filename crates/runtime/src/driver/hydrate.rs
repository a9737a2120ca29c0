//! Large content, brought back.
//!
//! What is too large for a record lies in objects, and a session holds only their names, whether it was opened from a store or
//! said this itself. A policy gets the content. What was fetched once is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::id::{EvaluationId, MessageId};
use backstitch_core::journal::{InnerMessage, LargeRecord};
use backstitch_core::message::Message;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{MediaBytes, Store, fetch_large};
use backstitch_core::session::Items;
use backstitch_core::view::Transcript;

use super::conversation::Conversation;
use crate::error::RuntimeError;
use crate::live::LiveSession;

/// Messages whose content was fetched.
#[derive(Default)]
pub(super) struct ContentCache {
    messages: Mutex<HashMap<MessageId, Arc<InnerMessage>>>,
    media: Mutex<HashMap<ObjectId, Arc<[u8]>>>,
    whole: Mutex<Option<CachedTranscript>>,
    conversation: Mutex<Conversation>,
}

/// A transcript as it was brought back the last time.
#[derive(Clone, Default)]
struct CachedTranscript {
    transcript: Transcript,
    /// The last message, as it was given.
    last: Option<Arc<InnerMessage>>,
}

impl CachedTranscript {
    /// Whether this is how a transcript begins. Transcripts grow at their ends and go back to what they were, so it is if the
    /// last message is in its place.
    fn begins(&self, given: &Items<InnerMessage>) -> bool {
        let Some(last) = &self.last else { return true };
        let there = self.transcript.all().len().checked_sub(1).and_then(|place| given.get(place));
        there.is_some_and(|there| Arc::ptr_eq(there, last))
    }
}

/// Where objects are.
#[derive(Clone, Copy)]
pub(super) enum ObjectSource<'a> {
    /// In the store, or with a session that has not stored them yet.
    By(&'a LiveSession),
    /// In the store.
    In(&'a dyn Store),
}

impl ObjectSource<'_> {
    async fn object(self, id: ObjectId) -> Result<Option<Object>, RuntimeError> {
        match self {
            Self::By(live) => live.object(id).await,
            Self::In(store) => store.object(id).await.map_err(RuntimeError::Store),
        }
    }

    /// Puts back what is too large for a record.
    pub(super) async fn fetch_large(self, record: &mut dyn LargeRecord) -> Result<(), RuntimeError> {
        match self {
            Self::By(live) => live.fetch_large(record).await,
            Self::In(store) => fetch_large(store, record).await.map_err(RuntimeError::Store),
        }
    }
}

impl ContentCache {
    /// The transcript with all of its content. What was looked at the last time is not looked at again.
    pub(super) async fn transcript(
        &self,
        held: ObjectSource<'_>,
        transcript: Transcript,
    ) -> Result<Transcript, RuntimeError> {
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

    /// A message with all of its content.
    pub(super) async fn message(
        &self,
        held: ObjectSource<'_>,
        message: &Arc<InnerMessage>,
    ) -> Result<Arc<InnerMessage>, RuntimeError> {
        let wanted = message.object_refs();
        if wanted.is_empty() {
            return Ok(message.clone());
        }
        if let Some(known) = self.known(message.message_id) {
            return Ok(known);
        }
        let mut contents: HashMap<ObjectId, Arc<[u8]>> = HashMap::new();
        for id in wanted {
            if let Some(object) = held.object(id).await? {
                contents.insert(id, object.bytes().clone());
            }
        }
        let mut whole = InnerMessage::clone(message);
        whole.hydrate(|reference| contents.get(&reference.object).cloned())?;
        let whole = Arc::new(whole);
        self.messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(message.message_id, whole.clone());
        Ok(whole)
    }

    /// What was said in a conversation that ends with an evaluation, as far as it is shown, and the objects that media in it lies in.
    /// What was looked at the last time is not looked at again.
    pub(super) fn conversation(
        &self,
        transcript: &Transcript,
        evaluation: EvaluationId,
        followed: impl FnOnce() -> Vec<EvaluationId>,
    ) -> (Items<InnerMessage>, Vec<ObjectId>) {
        let mut known = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
        known.grow(transcript, evaluation, followed);
        (known.shown().clone(), known.media().to_vec())
    }

    /// The bytes of those of these objects that the store holds. What it does not hold is left to whoever needs it.
    pub(super) async fn media(
        &self,
        held: ObjectSource<'_>,
        objects: impl IntoIterator<Item = ObjectId>,
    ) -> Result<MediaBytes, RuntimeError> {
        let mut found = HashMap::new();
        for object in objects {
            let known = self.media.lock().unwrap_or_else(PoisonError::into_inner).get(&object).cloned();
            let bytes = match known {
                Some(bytes) => bytes,
                None => match held.object(object).await? {
                    Some(fetched) => fetched.bytes().clone(),
                    None => continue,
                },
            };
            found.insert(object, bytes);
        }
        // What is no longer shown is no longer kept.
        *self.media.lock().unwrap_or_else(PoisonError::into_inner) = found.clone();
        Ok(Arc::new(found))
    }

    fn known(&self, id: MessageId) -> Option<Arc<InnerMessage>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

/// The objects that the media of messages is in.
pub(super) fn media_in(messages: &Items<InnerMessage>) -> Vec<ObjectId> {
    messages.iter().flat_map(|message| media_of(&message.message)).collect()
}

/// The objects that the media of a message is in.
pub(super) fn media_of(message: &Message) -> impl Iterator<Item = ObjectId> + '_ {
    let of_result = message.option_result().map(|result| result.parts.as_slice());
    let parts = message.parts().or(of_result).unwrap_or_default();
    parts.iter().filter_map(|part| part.as_media()?.url.object_id())
}
