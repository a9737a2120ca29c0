//! Strategies whose choices are recorded in the session.
//!
//! They have only options here. What is left out depends on the cuts of the session, which the driver of an evaluation
//! makes and renders; see [`Cut`](super::Cut). Without a session, they show everything.

use serde::{Deserialize, Serialize};

use super::plan::{CutRules, SummaryRules};
use super::{RenderedTranscript, TranscriptHistory, TranscriptStatistics, TranscriptStrategy};
use crate::compression::{ConfiguredStrategy, Strategy};

/// Leaves out old results, and then old answers, at cuts that stay until the room is used up again. Agents without a
/// strategy do the same.
pub type CutStrategy = ConfiguredStrategy<CutOptions>;

/// Replaces old answers with a summary that the model writes, at cuts that stay until the room is used up again.
pub type SummaryStrategy = ConfiguredStrategy<SummaryOptions>;

/// The options of [`CutStrategy`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CutOptions {
    /// The number of latest answers whose results stay, unless the room is too small for them.
    pub keep_turns: usize,
    /// The most tokens of the conversation, by an estimate. The window of the model is a limit too.
    pub tokens: Option<u64>,
    /// Results of up to this size in bytes stay.
    pub keep_bytes: u64,
    /// The number of characters of a result that are shown when it is left out.
    pub preview: usize,
    /// The name of the tool that recalls results: [`crate::recall::TOOL_NAME`].
    pub recall: Option<String>,
}

impl Default for CutOptions {
    fn default() -> Self {
        Self { keep_turns: 8, tokens: None, keep_bytes: 512, preview: 120, recall: None }
    }
}

impl CutOptions {
    /// Returns the rules that they stand for.
    pub fn rules(&self) -> CutRules {
        CutRules {
            tokens: self.tokens,
            keep_turns: self.keep_turns,
            keep_bytes: self.keep_bytes,
            preview: self.preview,
            recall: self.recall.clone(),
            summary: None,
        }
    }
}

/// The options of [`SummaryStrategy`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryOptions {
    /// The most latest answers that stay beside the summary. They take at most a quarter of the room.
    pub keep_turns: usize,
    /// The most tokens of the conversation, by an estimate. The window of the model is a limit too.
    pub tokens: Option<u64>,
    /// What summaries pay attention to, in words.
    pub focus: Option<String>,
    /// The name of the tool that recalls results: [`crate::recall::TOOL_NAME`].
    pub recall: Option<String>,
}

impl Default for SummaryOptions {
    fn default() -> Self {
        Self { keep_turns: 8, tokens: None, focus: None, recall: None }
    }
}

/// Renders everything.
fn whole(name: &'static str, history: &TranscriptHistory) -> RenderedTranscript {
    let messages: Vec<_> = history.messages().cloned().collect();
    let statistics = TranscriptStatistics::of(name, history, &messages, 0);
    RenderedTranscript { messages, statistics }
}

impl Strategy for CutOptions {
    const NAME: &'static str = "cut";
    const VERSION: u32 = 1;
    type History<'a> = &'a TranscriptHistory;
    type Rendered = RenderedTranscript;

    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript {
        whole(Self::NAME, history)
    }
}

impl TranscriptStrategy for CutOptions {
    fn cut_rules(&self) -> Option<CutRules> {
        Some(self.rules())
    }
}

impl Strategy for SummaryOptions {
    const NAME: &'static str = "summary";
    const VERSION: u32 = 1;
    type History<'a> = &'a TranscriptHistory;
    type Rendered = RenderedTranscript;

    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript {
        whole(Self::NAME, history)
    }
}

impl TranscriptStrategy for SummaryOptions {
    fn cut_rules(&self) -> Option<CutRules> {
        let Self { keep_turns, tokens, focus, recall } = self.clone();
        let summary = Some(SummaryRules { focus });
        Some(CutRules { keep_turns, tokens, recall, summary, ..CutOptions::default().rules() })
    }
}
