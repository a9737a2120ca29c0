//! The messages up to the end of a cut, as requests show them.
//!
//! The result depends on these messages and on the cut alone, so later messages do not change it: not even a result
//! that arrives for a call which was open at the cut. Answers with an open call stay, with their whole block.

use std::ops::Range;
use std::sync::Arc;

use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::message::{Content, Part};

use super::cut::{ConversationOrder, ConversationPoint, Cut, Place};
use super::elide::{placeholder, shorter};
use super::history::Block;
use super::{TranscriptHistory, Weight};

/// The beginning of a conversation, as a cut shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CutHead {
    /// The messages to show.
    pub messages: Vec<Arc<InnerMessage>>,
    /// The number of messages of the conversation that they stand for.
    pub count: usize,
    /// The number of results whose text is left out.
    pub results: usize,
    /// The number of answers that are left out with their calls and results.
    pub answers: usize,
    /// Whether a summary stands for answers that are left out.
    pub is_summarized: bool,
}

impl CutHead {
    /// Describes what is left out, a line each.
    pub fn left_out(&self) -> Vec<String> {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let answers = (self.answers > 0).then(|| {
            let summary = if self.is_summarized { ", for which there is a summary" } else { "" };
            let count = self.answers;
            format!("{count} older answer{} with calls and results{summary}", plural(count))
        });
        let results = (self.results > 0)
            .then(|| format!("the text of {} older result{}", self.results, plural(self.results)));
        answers.into_iter().chain(results).collect()
    }
}

impl Cut {
    /// Renders the beginning of a conversation, whose messages are given in their order.
    pub fn render_head<'a>(
        &self,
        messages: impl IntoIterator<Item = &'a Arc<InnerMessage>>,
        order: &ConversationOrder,
    ) -> CutHead {
        let Some(end) = order.place(self.end) else { return CutHead::default() };
        let given = messages.into_iter().take_while(|message| order.place_of(message) <= end);
        let given: Vec<_> = given.cloned().collect();
        let count = given.len();
        if !self.leaves_out() {
            return CutHead { messages: given, count, ..CutHead::default() };
        }
        let history: TranscriptHistory = given.into_iter().collect();
        let index = BlockIndex { history: &history, order };
        let (results_from, answers_from) = (index.before(self.results_from), index.before(self.answers_from));
        let notes = self.notes(&index, answers_from);
        let annotated = index.annotated(self.answers_from);
        let mut head = CutHead { count, is_summarized: self.has_summary(), ..CutHead::default() };
        head.answers = index.leaving(0..answers_from).count();
        for message in history.messages() {
            let Some(at) = index.of(message) else {
                let has_note = annotated.is_some_and(|annotated| Arc::ptr_eq(annotated, message));
                head.messages.push(if has_note { with_notes(message, &notes) } else { message.clone() });
                continue;
            };
            let Some(block) = history.blocks().get(at) else { continue };
            if at < answers_from && block.may_go() {
                continue;
            }
            let elided = (at < results_from && !block.is_open()).then(|| self.elided(message)).flatten();
            head.results += usize::from(elided.is_some());
            head.messages.push(elided.unwrap_or_else(|| message.clone()));
        }
        head
    }

    /// Returns a message with a placeholder for its result; `None` if that would not be shorter, or there is no result.
    pub(super) fn elided(&self, message: &Arc<InnerMessage>) -> Option<Arc<InnerMessage>> {
        let result = message.message.option_result()?;
        if Weight::of_result(message) <= self.keep_bytes {
            return None;
        }
        let placeholder = placeholder(message, result, self.preview, self.recall.as_deref());
        shorter(placeholder, message).map(Arc::new)
    }

    /// Returns the texts about answers that are left out: the summary, and a note about those that it does not cover.
    fn notes(&self, index: &BlockIndex<'_>, answers_from: usize) -> Vec<String> {
        let covered = self.summary.as_ref().map(|summary| index.before(Some(summary.before)));
        let covered = covered.unwrap_or_default();
        let summary = self.summary.as_ref().and_then(|summary| summary.text.as_deref());
        let summary = summary.map(|text| summary_note(text, index.range(0..covered)));
        let note = index.range(covered..answers_from).map(|range| match range {
            (1, first, _) => format!("[Answer {first}, with its calls and results, is not shown.]"),
            (count, first, last) => {
                format!("[{count} answers, {first} to {last}, with their calls and results, are not shown.]")
            }
        });
        summary.into_iter().chain(note).collect()
    }
}

/// Returns the text that shows a summary of a number of answers, with the first and the last of them.
fn summary_note(text: &str, covered: Option<(usize, u64, u64)>) -> String {
    let which = match covered {
        Some((1, first, _)) => {
            format!("answer {first}, which is not shown any more with its calls and results")
        }
        Some((_, first, last)) => {
            format!("answers {first} to {last}, which are not shown any more with their calls and results")
        }
        None => "earlier answers".to_owned(),
    };
    format!(
        "[You wrote the following summary of {which}. It is a record of your work, and not a message of the \
         user.]\n{text}\n[End of the summary.]"
    )
}

/// The blocks of a history, by the points of a conversation.
pub(super) struct BlockIndex<'a> {
    pub(super) history: &'a TranscriptHistory,
    pub(super) order: &'a ConversationOrder,
}

impl<'a> BlockIndex<'a> {
    /// Returns the index of the block that a message belongs to, if any.
    pub(super) fn of(&self, message: &InnerMessage) -> Option<usize> {
        let turn = self.history.turn_of(message)?;
        self.history.blocks().binary_search_by_key(&turn, |block| block.turn).ok()
    }

    /// Returns the first message of a block.
    pub(super) fn first(&self, block: &Block) -> Option<&'a Arc<InnerMessage>> {
        self.history.at(*block.places.iter().min()?)
    }

    /// Returns the number of blocks that begin before a point. Nothing is before `None`.
    pub(super) fn before(&self, point: Option<ConversationPoint>) -> usize {
        let Some(place) = point.and_then(|point| self.order.place(point)) else { return 0 };
        let is_before =
            |block: &&Block| self.first(block).is_some_and(|message| self.order.place_of(message) < place);
        self.history.blocks().iter().take_while(is_before).count()
    }

    /// Returns the blocks of a range that may be left out.
    pub(super) fn leaving(&self, blocks: Range<usize>) -> impl Iterator<Item = &'a Block> {
        let all = self.history.blocks();
        blocks.filter_map(move |at| all.get(at)).filter(|block| block.may_go())
    }

    /// Counts the answers of a range of blocks that may be left out, with the first and the last of them.
    fn range(&self, blocks: Range<usize>) -> Option<(usize, u64, u64)> {
        let turns: Vec<u64> = self.leaving(blocks).map(|block| block.turn).collect();
        Some((turns.len(), *turns.first()?, *turns.last()?))
    }

    /// Returns the message of a user that gets the notes about what is left out before a point: the last one before it.
    pub(super) fn annotated(&self, point: Option<ConversationPoint>) -> Option<&'a Arc<InnerMessage>> {
        let place: Place = point.and_then(|point| self.order.place(point))?;
        let takes_notes = |message: &&Arc<InnerMessage>| {
            message.role() == Role::User && matches!(message.message.content, Content::Parts(_))
        };
        let apart = self.history.apart().filter_map(|place| self.history.at(place));
        apart.filter(|message| self.order.place_of(message) < place).filter(takes_notes).last()
    }
}

/// Returns a message with notes as its last parts.
fn with_notes(message: &Arc<InnerMessage>, notes: &[String]) -> Arc<InnerMessage> {
    let mut message = InnerMessage::clone(message);
    if let Content::Parts(parts) = &mut message.message.content {
        parts.parts.extend(notes.iter().map(|note| Part::text(note.as_str())));
    }
    Arc::new(message)
}
