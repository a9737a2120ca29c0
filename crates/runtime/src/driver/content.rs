//! Messages and calls of a session, and the history that a machine is rebuilt from, with content that is too large for
//! records.

use std::sync::Arc;

use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{CallStarted, InnerMessage};
use backstitch_core::machine::{EvaluationHistory, final_text};
use backstitch_core::message::{Arguments, Large};
use backstitch_core::view::{Call, Transcript};
use serde_json::{Map, Value};

use super::hydrate::{ContentCache, ObjectSource};
use crate::error::Result;
use crate::live::LiveSession;

/// Reads messages and calls of a session. Fetched content is cached.
pub(super) struct Content {
    pub(super) live: Arc<LiveSession>,
    pub(super) hydrated: ContentCache,
}

impl Content {
    pub(super) fn new(live: Arc<LiveSession>) -> Self {
        Self { live, hydrated: ContentCache::default() }
    }

    /// Returns the transcript with all of its content.
    pub(super) async fn transcript(&self) -> Result<Transcript> {
        let transcript = self.live_transcript().await?;
        self.hydrated.transcript(self.held(), transcript).await
    }

    /// Returns the transcript as the session has it, in which large content is only referenced.
    pub(super) async fn live_transcript(&self) -> Result<Transcript> {
        Ok(self.live.view().await.transcript()?)
    }

    /// Returns the messages of an evaluation with all of their content. No other messages are decoded.
    pub(super) async fn messages_of(&self, evaluation: EvaluationId) -> Result<Vec<Arc<InnerMessage>>> {
        let mut messages = self.live.view().await.messages_of(evaluation)?;
        for message in &mut messages {
            *message = self.message(message).await?;
        }
        Ok(messages)
    }

    /// Returns the source of the session's objects.
    pub(super) fn held(&self) -> ObjectSource<'_> {
        ObjectSource::By(&self.live)
    }

    /// Returns a message with all of its content.
    pub(super) async fn message(&self, message: &Arc<InnerMessage>) -> Result<Arc<InnerMessage>> {
        self.hydrated.message(self.held(), message).await
    }

    /// Returns the text of the last answer of an evaluation so far.
    pub(super) async fn final_text(&self, evaluation: EvaluationId) -> Result<String> {
        Ok(final_text(&self.messages_of(evaluation).await?))
    }

    /// Returns the arguments that a call which may have run was started with.
    pub(super) async fn start_arguments(&self, call: &Call) -> Result<Map<String, Value>> {
        if let Some(intent) = call.latest_intent()
            && let Some(edited) = self.edited_arguments(intent).await?
        {
            return Ok(edited);
        }
        let arguments = self.arguments(call.call_id).await?;
        Ok(arguments.and_then(|arguments| arguments.object().cloned()).unwrap_or_default())
    }

    /// Returns the arguments of an intent, if they differ from those of the call's message.
    pub(super) async fn edited_arguments(
        &self,
        intent: &Arc<CallStarted>,
    ) -> Result<Option<Map<String, Value>>> {
        let mut intent = intent.clone();
        self.held().fetch_large(&mut intent).await?;
        Ok(intent.arguments.as_ref().and_then(Large::inline).cloned())
    }

    /// Returns the arguments of a call as its message has them. Large ones are fetched.
    pub(super) async fn arguments(&self, call: CallId) -> Result<Option<Arguments>> {
        let transcript = self.live_transcript().await?;
        let Some(message) = transcript.message_of(call) else { return Ok(None) };
        let message = self.message(message).await?;
        Ok(message.message.option_call().map(|call| call.arguments.clone()))
    }

    /// Returns the history of an evaluation. Content that is too large for records is fetched.
    pub(super) async fn past(&self, evaluation: EvaluationId) -> Result<EvaluationHistory> {
        let mut past = EvaluationHistory::of(&*self.live.view().await, evaluation)?;
        let before = past.followed.iter_mut().flat_map(|followed| &mut followed.messages);
        for message in before.chain(&mut past.messages) {
            *message = self.message(message).await?;
        }
        with_content(self.held(), past).await
    }
}

/// Fetches the content that is too large for the records of programs and of structured answers.
pub(super) async fn with_content(
    held: ObjectSource<'_>,
    mut past: EvaluationHistory,
) -> Result<EvaluationHistory> {
    for record in past.large_records_mut() {
        held.fetch_large(record).await?;
    }
    Ok(past)
}
