//! The state of a rendering between two entries of a conversation.
//!
//! A dialect appends the messages of each entry to it, and makes a body of it at the end. What the dialect has to know of earlier
//! entries is in the state, so that messages that do not change any more can be [encoded](RenderState::encode_settled) and
//! removed. The first messages, before the first turn, and those of the last two turns stay: a dialect looks at them, marks
//! them and appends to them.

use backstitch_core::message::Part;
use serde_json::Value;

use super::RequestInput;
use super::media::{Media, MediaRules, UsedObject};
use super::report::RenderReport;

/// How many turns at the end stay as they are. A cache mark at the end of the last but one user message is the farthest
/// place that a dialect changes.
const OPEN_TURNS: usize = 2;

/// What is rendered of a conversation so far. A clone costs as much as the messages that are not encoded.
#[derive(Clone, Default)]
pub(crate) struct RenderState {
    /// The messages in the form of the provider, but for those that are encoded.
    pub(crate) messages: Vec<Value>,
    /// How the messages depart from the conversation.
    pub(crate) report: RenderReport,
    /// The ids of calls so far.
    pub(crate) used: imbl::HashSet<String>,
    /// Images of the last answer, which stand in the next message of a user, for providers whose answers hold none.
    pub(crate) images: Vec<Part>,
    /// Whether thoughts are missing in one of the last turns, all of which have calls.
    pub(crate) lacks_thoughts: bool,
    /// Whether reasoning is replayed.
    pub(crate) has_reasoning: bool,
    /// What labels of media count.
    media: usize,
    objects: imbl::Vector<UsedObject>,
    /// Where the turns begin that are not encoded, among the messages.
    turns: Vec<usize>,
    /// The number of messages before the first turn.
    head: usize,
}

impl RenderState {
    /// The messages, and the encoder of the media that is added to them.
    pub(crate) fn parts<'r>(
        &'r mut self,
        input: &RequestInput<'r>,
        rules: &'static MediaRules,
    ) -> (&'r mut Vec<Value>, Media<'r>) {
        let Self { messages, report, media, objects, .. } = self;
        (messages, Media::new(input, rules, report, media, objects))
    }

    /// Marks the place of the next message as the beginning of a turn.
    pub(crate) fn begin_turn(&mut self) {
        if self.turns.is_empty() {
            self.head = self.messages.len();
        }
        self.turns.push(self.messages.len());
    }

    /// Inserts a message before all others.
    pub(crate) fn insert_first(&mut self, message: Value) {
        self.messages.insert(0, message);
        self.head += 1;
    }

    /// The number of messages before those that are encoded.
    pub(crate) fn head(&self) -> usize {
        self.head
    }

    /// The stored objects that media of the messages refers to.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &UsedObject> {
        self.objects.iter()
    }

    /// Encodes the messages that later entries cannot change any more, and removes them. Each is followed by a comma, since
    /// others always come after them.
    pub(crate) fn encode_settled(&mut self) -> String {
        let mut text = String::new();
        let place = self.turns.len().saturating_sub(OPEN_TURNS);
        let count = self.turns.get(place).filter(|_| place > 0).map_or(0, |turn| turn - self.head);
        for message in self.messages.drain(self.head..self.head + count) {
            text.push_str(&message.to_string());
            text.push(',');
        }
        self.turns.drain(..place);
        self.turns.iter_mut().for_each(|turn| *turn -= count);
        text
    }
}
