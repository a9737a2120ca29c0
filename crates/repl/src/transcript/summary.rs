//! Summaries: the request for one, and the text that is kept of the answer.
//!
//! The request shows the answers that the summary covers as the requests before it did, so that a provider has them in
//! its cache, and then asks for the summary. Answers with an open call are not among them: no provider accepts a call
//! without its result, and they stay in the conversation.

use std::sync::Arc;

use backstitch_core::id::IdStream;
use backstitch_core::journal::InnerMessage;
use backstitch_core::message::{Content, Message, Part, PolicyName, RoleHint};
use backstitch_core::time::FixedClock;

use super::TranscriptHistory;
use super::cut::{ConversationOrder, Cut};
use super::head::BlockIndex;

/// The most bytes of a summary.
const MOST_BYTES: usize = 32 * 1024;

/// What the model is asked to do.
const INSTRUCTION: &str = "\
The conversation is becoming too long to be shown in full. Write a summary of everything above. It will take the place \
of your answers, calls and results above, which you will not see again; the messages of the user stay as they are.

Write what you need in order to continue without asking or looking again:
- what the user wants, and what of it is done;
- facts that were found, with exact names, paths, commands, numbers and error messages;
- files that were read or changed, and what matters in them;
- decisions, with their reasons, and what was tried without success;
- what is not finished, and the next step.

Answer with the summary alone, in the language of the conversation and in at most 800 words. Do not call tools.";

impl Cut {
    /// Returns the messages of the request for the summary. `shown` are those that a request shows now, and
    /// `messages` all of the conversation. `None` if the cut needs no summary.
    pub fn summary_request<'a>(
        &self,
        messages: impl IntoIterator<Item = &'a Arc<InnerMessage>>,
        shown: impl IntoIterator<Item = &'a Arc<InnerMessage>>,
        order: &ConversationOrder,
    ) -> Option<Vec<Arc<InnerMessage>>> {
        let summary = self.summary.as_ref().filter(|_| self.needs_summary())?;
        let (end, before) = (order.place(self.end)?, order.place(summary.before)?);
        let given = messages.into_iter().take_while(|message| order.place_of(message) <= end).cloned();
        let history: TranscriptHistory = given.collect();
        let index = BlockIndex { history: &history, order };
        let covered = index.before(Some(summary.before));
        let is_covered = |message: &&Arc<InnerMessage>| match index.of(message) {
            Some(at) => at < covered && history.blocks().get(at).is_some_and(|block| !block.is_open()),
            None => order.place_of(message) < before,
        };
        let mut request: Vec<_> = shown.into_iter().filter(is_covered).cloned().collect();
        let last = history.messages().next_back()?;
        request.push(Arc::new(instruction(last, summary.focus.as_deref())?));
        Some(request)
    }
}

/// Returns the message that asks for a summary. It is not recorded, and always the same.
fn instruction(last: &InnerMessage, focus: Option<&str>) -> Option<InnerMessage> {
    let text = match focus {
        Some(focus) => format!("{INSTRUCTION}\n\nPay most attention to this: {focus}"),
        None => INSTRUCTION.to_owned(),
    };
    let ids = IdStream::from_seed([0; 32], Arc::new(FixedClock::default()));
    let policy = PolicyName::new("user").ok()?;
    let mut message = Message::new(policy, Content::Parts(vec![Part::text(text)].into()));
    message.role_hint_for_llm = Some(RoleHint::User);
    let inner = InnerMessage::new(last.evaluation_id, message, &ids);
    let inner = inner.of_prompt(last.prompt_ns.as_str(), last.prompt_key.as_str());
    Some(inner.at(last.sequence.saturating_add(1), last.turn))
}

/// Returns the text that is kept of a summary: without space around it, and at most 32 KiB. `None` if nothing is left.
pub fn summary_text(answer: &str) -> Option<String> {
    let mut text = answer.trim().to_owned();
    if text.len() > MOST_BYTES {
        text.truncate(text.floor_char_boundary(MOST_BYTES));
        text.push('…');
    }
    (!text.is_empty()).then_some(text)
}
