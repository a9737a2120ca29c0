//! Old results told by placeholders.

use std::sync::Arc;

use backstitch_core::journal::InnerMessage;
use backstitch_core::message::{Content, Large, OptionResult};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{RenderedTranscript, TranscriptHistory, TranscriptStatistics, Weight};
use crate::compression::{ConfiguredStrategy, Strategy};
use crate::steps::rounded_old;

/// All answers and calls, but of old and large results only where to find them.
///
/// Results are most of what a transcript weighs, and soon nobody needs them. An elided result still answers its call: its
/// text is a placeholder that names the call and says how to recall it. Whether it was an error is still told. Media that it
/// held is left out with the text.
///
/// Results are elided some answers at a time, so that most requests begin as the one before them did and can be cached.
pub type Elide = ConfiguredStrategy<ElideOptions>;

/// The options of [`Elide`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ElideOptions {
    /// The results of so many of the last answers stay.
    pub keep_turns: usize,
    /// Nothing is elided while the transcript has no more tokens than this, by an estimate.
    pub tokens: Option<u64>,
    /// Results of so many bytes or fewer stay.
    pub keep_bytes: u64,
    /// How many characters of an elided text are shown.
    pub preview: usize,
    /// The tool by which a result can be recalled, to be named where it is offered: [`crate::recall::TOOL_NAME`].
    pub recall: Option<String>,
}

impl Default for ElideOptions {
    fn default() -> Self {
        Self { keep_turns: 8, tokens: None, keep_bytes: 512, preview: 120, recall: None }
    }
}

impl ElideOptions {
    fn elided(&self, message: &InnerMessage, result: &OptionResult) -> InnerMessage {
        let (id, name, bytes) = (result.invocation_id, &result.option_name, Weight::of_result(message));
        let mut text = format!("[The result of {name}, {bytes} bytes, is not shown.");
        if let Some(tool) = &self.recall {
            text.push_str(&format!(" Call {tool} with call_id \"{id}\" to see it."));
        } else {
            text.push_str(&format!(" It is that of call {id}."));
        }
        if !result.parts.is_empty() {
            text.push_str(&format!(" It holds {} parts, media among them.", result.parts.len()));
        }
        let content = message.content();
        let preview: String = content.chars().take(self.preview).collect();
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
}

impl Strategy for ElideOptions {
    const NAME: &'static str = "elide";
    const VERSION: u32 = 1;
    type History<'a> = &'a TranscriptHistory;
    type Rendered = RenderedTranscript;

    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript {
        let (blocks, bytes) = (history.blocks(), history.totals().bytes);
        let calm = self.tokens.is_some_and(|tokens| Weight::tokens(bytes) <= tokens);
        let old = if calm { 0 } else { rounded_old(blocks.len(), self.keep_turns) };
        // The first answer whose results stay.
        let end = blocks.get(old).map_or(0, |block| block.turn);
        let is_old = |message: &InnerMessage| {
            let turn = history.turn_of(message);
            turn.is_some_and(|turn| turn < end && !history.open().contains(&turn))
        };
        let mut count = 0;
        let rendered = history.messages().map(|message| match message.message.option_result() {
            Some(result) if Weight::of_result(message) > self.keep_bytes && is_old(message) => {
                let elided = self.elided(message, result);
                // A placeholder that says as much as what it stands for is of no use.
                if Weight::of_result(&elided) >= Weight::of_result(message) {
                    return message.clone();
                }
                count += 1;
                Arc::new(elided)
            }
            _ => message.clone(),
        });
        let rendered: Vec<Arc<InnerMessage>> = rendered.collect();
        let statistics = TranscriptStatistics::of(Self::NAME, history, &rendered, count);
        RenderedTranscript { messages: rendered, statistics }
    }
}
