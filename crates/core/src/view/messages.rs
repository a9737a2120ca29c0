//! Parts of the transcript.
//!
//! In a session that was opened from a snapshot, the transcript is in pages. These methods decode only the
//! pages that they need; [`JournalView::transcript`] decodes all of them.

use std::ops::Range;
use std::sync::Arc;

use super::fold::JournalView;
use crate::id::EvaluationId;
use crate::journal::InnerMessage;
use crate::session::SessionError;

impl JournalView {
    /// Returns the number of messages of the transcript.
    pub fn message_count(&self) -> usize {
        self.visible.state.length::<InnerMessage>()
    }

    /// Returns the messages at those of these places of the transcript that exist.
    pub fn messages(&self, places: Range<usize>) -> Result<Vec<Arc<InnerMessage>>, SessionError> {
        self.visible.state.range(places)
    }

    /// Returns the messages of an evaluation, in order.
    pub fn messages_of(&self, evaluation: EvaluationId) -> Result<Vec<Arc<InnerMessage>>, SessionError> {
        let Some(known) = self.evaluation(evaluation) else { return Ok(Vec::new()) };
        let mut missing = usize::try_from(known.messages).unwrap_or(usize::MAX);
        let (mut from, end) = (known.first_message, self.message_count());
        let mut messages = Vec::new();
        // Messages of other evaluations may lie between, so that the last ones follow later.
        while missing > 0 && from < end {
            let until = from.saturating_add(missing).min(end);
            let found = self.messages(from..until)?.into_iter();
            messages.extend(found.filter(|message| message.evaluation_id == evaluation));
            missing = usize::try_from(known.messages).unwrap_or(usize::MAX).saturating_sub(messages.len());
            from = until;
        }
        Ok(messages)
    }
}
