//! Placeholders for old results.

use std::sync::Arc;

use backstitch_core::journal::InnerMessage;
use backstitch_core::message::{Content, Large, OptionResult};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{RenderedTranscript, TranscriptHistory, TranscriptStatistics, TranscriptStrategy, Weight};
use crate::compression::{ConfiguredStrategy, Strategy};
use crate::steps::rounded_old;

/// Shows all answers and calls, with placeholders for old and large results.
///
/// Results are most of the size of a transcript, and are soon not needed any more. An elided result still
/// answers its call: its text is a placeholder that names the call and how to recall the result. It keeps the
/// error flag. Media of the result is left out with the text.
///
/// Several answers are elided at once, so that most requests share the beginning of the previous one and can
/// be cached.
pub type Elide = ConfiguredStrategy<ElideOptions>;

/// The options of [`Elide`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ElideOptions {
    /// The number of latest answers whose results stay.
    pub keep_turns: usize,
    /// Nothing is elided up to this number of tokens of the transcript, by an estimate.
    pub tokens: Option<u64>,
    /// Results of up to this size in bytes stay.
    pub keep_bytes: u64,
    /// The number of characters of an elided text that are shown.
    pub preview: usize,
    /// The name of the tool that recalls results, if it is available: [`crate::recall::TOOL_NAME`].
    pub recall: Option<String>,
}

impl Default for ElideOptions {
    fn default() -> Self {
        Self { keep_turns: 8, tokens: None, keep_bytes: 512, preview: 120, recall: None }
    }
}

/// Returns a message with a placeholder for its result, which names the call and how to see the result.
pub(super) fn placeholder(
    message: &InnerMessage,
    result: &OptionResult,
    preview: usize,
    recall: Option<&str>,
) -> InnerMessage {
    let (id, name, bytes) = (result.invocation_id, &result.option_name, Weight::of_result(message));
    let mut text = format!("[The result of {name}, {bytes} bytes, is not shown.");
    if let Some(tool) = recall {
        text.push_str(&format!(" Call {tool} with call_id \"{id}\" to see it."));
    } else {
        text.push_str(&format!(" It is that of call {id}."));
    }
    if !result.parts.is_empty() {
        text.push_str(&format!(" It holds {} parts, media among them.", result.parts.len()));
    }
    let content = message.content();
    let preview: String = content.chars().take(preview).collect();
    if !preview.is_empty() {
        text.push_str(" It begins: ");
        text.push_str(&preview);
        if preview.len() < content.len() {
            text.push_str("...");
        }
    }
    text.push(']');
    let mut elided = message.clone();
    let mut placeholder = result.clone();
    placeholder.parts.clear();
    if placeholder.is_error && placeholder.error_message.is_some() {
        placeholder.error_message = Some(text);
        placeholder.result = Large::Inline(Json::Null);
    } else {
        placeholder.error_message = None;
        placeholder.result = Large::Inline(Json::String(text));
    }
    elided.message.content = Content::OptionResult(placeholder);
    elided
}

/// Returns a message with a placeholder, unless that is not shorter than the result.
pub(super) fn shorter(elided: InnerMessage, message: &InnerMessage) -> Option<InnerMessage> {
    (Weight::of_result(&elided) < Weight::of_result(message)).then_some(elided)
}

impl TranscriptStrategy for ElideOptions {
    fn elides(&self) -> Option<&ElideOptions> {
        Some(self)
    }
}

impl ElideOptions {
    /// Returns the number of the first answer whose results stay.
    pub(super) fn end_of_old(&self, history: &TranscriptHistory) -> u64 {
        let (blocks, bytes) = (history.blocks(), history.totals().bytes);
        let calm = self.tokens.is_some_and(|tokens| Weight::tokens(bytes) <= tokens);
        let old = if calm { 0 } else { rounded_old(blocks.len(), self.keep_turns) };
        blocks.get(old).map_or(0, |block| block.turn)
    }

    /// Whether a message has a result that does not stay in any case.
    pub(super) fn is_long(&self, message: &InnerMessage) -> bool {
        message.message.option_result().is_some() && Weight::of_result(message) > self.keep_bytes
    }

    /// Returns a message with a placeholder for its result; `None` if that would not be shorter, or there is no result.
    pub(super) fn elided(&self, message: &InnerMessage) -> Option<Arc<InnerMessage>> {
        let result = message.message.option_result()?;
        let elided = placeholder(message, result, self.preview, self.recall.as_deref());
        shorter(elided, message).map(Arc::new)
    }
}

impl Strategy for ElideOptions {
    const NAME: &'static str = "elide";
    const VERSION: u32 = 1;
    type History<'a> = &'a TranscriptHistory;
    type Rendered = RenderedTranscript;

    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript {
        let end = self.end_of_old(history);
        let is_old = |message: &InnerMessage| {
            let turn = history.turn_of(message);
            turn.is_some_and(|turn| turn < end && !history.open().contains(&turn))
        };
        let mut count = 0;
        let rendered = history.messages().map(|message| {
            let is_elided = self.is_long(message) && is_old(message);
            let Some(elided) = is_elided.then(|| self.elided(message)).flatten() else {
                return message.clone();
            };
            count += 1;
            elided
        });
        let rendered: Vec<Arc<InnerMessage>> = rendered.collect();
        let statistics = TranscriptStatistics::of(Self::NAME, history, &rendered, count);
        RenderedTranscript { messages: rendered, statistics }
    }
}
