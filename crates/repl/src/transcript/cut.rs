//! Cuts: what requests leave out of a long conversation, as recorded data.
//!
//! A strategy that decides for each request anew changes the beginning of the conversation with many of them, and
//! providers cannot cache what differs. So what is left out is decided once, at a *cut*, and recorded in the session's
//! slice of [`Cut`]s. It stays until the room is used up again. A request shows the messages up to the end of the latest
//! cut as the cut says, and all later ones unchanged: between two cuts, each request begins with the one before it.
//!
//! The slice has the policy of the transcript: a rewind, a fork and a resume find the cuts of their own place, and a
//! request can be rendered again without the limits that led to its cut.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::session::{Items, Slice, SlicePolicy};
use serde::{Deserialize, Serialize};

/// The version of the text that a cut renders to. Requests name it, so it changes with the text.
const VERSION: u32 = 1;

/// A message of a conversation, by its evaluation and its place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationPoint {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The place in the evaluation.
    pub sequence: u64,
}

impl ConversationPoint {
    pub(super) fn of(message: &InnerMessage) -> Self {
        Self { evaluation_id: message.evaluation_id, sequence: message.sequence }
    }
}

/// A cut of a conversation. It replaces the cuts before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// The last message when the cut was made. Later messages are shown unchanged.
    pub end: ConversationPoint,
    /// The first answer whose results are shown. `None` shows all results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results_from: Option<ConversationPoint>,
    /// The first answer that is shown. `None` shows all answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers_from: Option<ConversationPoint>,
    /// Results of up to this size in bytes are always shown.
    pub keep_bytes: u64,
    /// The number of characters that are shown of a result that is left out.
    pub preview: usize,
    /// The name of the tool that recalls results, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<String>,
    /// The summary that stands for answers that are not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<CutSummary>,
    /// The number of tokens that led to the cut. `None` if a person asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A summary of the beginning of a conversation, in the words of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CutSummary {
    /// The first answer that it does not cover.
    pub before: ConversationPoint,
    /// What it pays attention to, in the words of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// The summary. `None` until the model has written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for Cut {
    const NAME: &'static str = "conversation_cut";
    const POLICY: SlicePolicy = SlicePolicy::Journal;
}

impl Cut {
    /// Creates a cut that leaves nothing out.
    pub fn whole(end: ConversationPoint) -> Self {
        Self {
            end,
            results_from: None,
            answers_from: None,
            keep_bytes: 0,
            preview: 0,
            recall: None,
            summary: None,
            limit: None,
            extra: Extra::default(),
        }
    }

    /// Whether the model has to write the summary before the conversation continues.
    pub fn needs_summary(&self) -> bool {
        self.summary.as_ref().is_some_and(|summary| summary.text.is_none())
    }

    /// Whether it shows a summary.
    pub fn has_summary(&self) -> bool {
        self.summary.as_ref().is_some_and(|summary| summary.text.is_some())
    }

    /// Whether it leaves anything out.
    pub fn leaves_out(&self) -> bool {
        self.results_from.is_some() || self.answers_from.is_some()
    }

    /// Returns the cut with the summary that it needs.
    #[must_use]
    pub fn with_summary(&self, text: impl Into<String>) -> Self {
        let mut cut = self.clone();
        if let Some(summary) = &mut cut.summary {
            summary.text = Some(text.into());
        }
        cut
    }

    /// Identifies the renderer of requests with this cut; `None` if they show everything.
    pub fn renderer(&self) -> Option<String> {
        let name = if self.has_summary() { "summary" } else { "cut" };
        self.leaves_out().then(|| self.renderer_named(name))
    }

    /// Identifies the renderer of the request for the summary.
    pub fn summary_renderer(&self) -> String {
        self.renderer_named("summarize")
    }

    fn renderer_named(&self, name: &str) -> String {
        let mut stored = serde_json::to_value(self).unwrap_or_default();
        stored.sort_all_objects();
        let digest = Digest::of(stored.to_string().as_bytes());
        let hex: String = digest.as_bytes()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{name}/{VERSION} {hex}")
    }
}

/// The place of a message in a conversation. The opening system message is the first, whichever evaluation it is of.
pub(super) type Place = (usize, u64);

/// The evaluations of a conversation in their order, which orders its messages and points.
#[derive(Debug, Clone, Default)]
pub struct ConversationOrder {
    evaluations: HashMap<EvaluationId, usize>,
}

impl ConversationOrder {
    /// Creates the order of an evaluation after those that it follows, oldest first.
    pub fn new(followed: &[EvaluationId], evaluation: EvaluationId) -> Self {
        let all = followed.iter().copied().chain([evaluation]);
        Self { evaluations: all.zip(1..).collect() }
    }

    /// Returns the place of a point; `None` if it belongs to another conversation.
    pub(super) fn place(&self, point: ConversationPoint) -> Option<Place> {
        Some((*self.evaluations.get(&point.evaluation_id)?, point.sequence))
    }

    /// Returns the place of a message. Messages of other conversations come last.
    pub(super) fn place_of(&self, message: &InnerMessage) -> Place {
        match (message.role(), message.sequence) {
            (Role::System, 0) => (0, 0),
            (_, sequence) => {
                (self.evaluations.get(&message.evaluation_id).copied().unwrap_or(usize::MAX), sequence)
            }
        }
    }

    /// Returns the cuts of the conversation that count.
    pub fn latest(&self, cuts: &Items<Cut>) -> LatestCuts {
        let mut own = cuts.iter().rev().filter(|cut| self.place(cut.end).is_some());
        let Some(latest) = own.next().cloned() else { return LatestCuts::default() };
        if !latest.needs_summary() {
            return LatestCuts { pending: None, shown: Some(latest) };
        }
        LatestCuts { pending: Some(latest), shown: own.find(|cut| !cut.needs_summary()).cloned() }
    }
}

/// The latest cuts of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatestCuts {
    /// The cut that needs a summary, if it is the latest.
    pub pending: Option<Arc<Cut>>,
    /// The latest complete cut, which requests are rendered by.
    pub shown: Option<Arc<Cut>>,
}
