//! A transcript, indexed so that a strategy finds what it shows without reading the rest.
//!
//! A transcript may be cut between *blocks* only. A block is an answer of the model: its text, its calls and
//! their results, even if a result came after the next answer. Messages of users and of the system belong to
//! no block.
//!
//! A transcript may begin with earlier evaluations. Their answers are blocks like any other, numbered
//! consecutively across evaluations.
//!
//! A history is a persistent value: cloning it is cheap, and pushing a message does not affect clones.

use std::sync::Arc;

use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::machine::TurnNumbers;
use imbl::{HashMap, HashSet, OrdMap, OrdSet, Vector};

use super::Weight;

/// The place of the system message at the beginning, whichever evaluation it belongs to.
const HEAD: u64 = 0;

/// The messages of one evaluation so far, after those of the evaluations that it follows.
#[derive(Debug, Clone, Default)]
pub struct TranscriptHistory {
    /// All messages, by place.
    messages: OrdMap<u64, Arc<InnerMessage>>,
    /// The places of messages without a block.
    apart: OrdSet<u64>,
    /// The place of the first user message.
    first_user: Option<u64>,
    /// The first place of each evaluation.
    evaluations: OrdMap<EvaluationId, u64>,
    /// The numbers of the answers.
    numbers: TurnNumbers,
    blocks: Vector<Block>,
    /// The accumulated weight of the blocks up to each one.
    weights: Vector<u64>,
    /// The answers of the latest evaluation that have a call without a result.
    open: OrdSet<u64>,
    /// The blocks of turn 0 of each evaluation, before its first answer.
    openings: OrdSet<u64>,
    turn_of_call: HashMap<CallId, u64>,
    answered: HashSet<CallId>,
    totals: Totals,
}

/// An answer with its calls and results.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    /// The number of the answer.
    pub(super) turn: u64,
    /// The places of its messages.
    pub(super) places: Vec<u64>,
    /// The calls without a result that may still get one.
    unanswered: Vec<CallId>,
    has_answer: bool,
    /// Whether it precedes the first answer of its evaluation.
    is_opening: bool,
}

impl Block {
    /// Whether the block may be dropped. Blocks of turn 0 precede the first answer, and stay.
    pub(super) fn may_go(&self) -> bool {
        self.unanswered.is_empty() && !self.is_opening
    }

    /// Whether a call has no result and may still get one.
    pub(super) fn is_open(&self) -> bool {
        !self.unanswered.is_empty()
    }
}

/// The totals of a transcript.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) answers: usize,
    pub(super) calls: usize,
    pub(super) sidecars: usize,
    pub(super) bytes: u64,
}

impl TranscriptHistory {
    /// Creates a history without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message. Its sequence number determines its place, regardless of the order of additions, but
    /// evaluations have to be added one after the other. The cost is proportional to the size of the message.
    pub fn push(&mut self, message: Arc<InnerMessage>) {
        let Some(place) = self.place_of(&message) else { return };
        self.numbers.number(&message);
        let weight = Weight::of(&message);
        self.totals.bytes += weight;
        self.totals.sidecars += usize::from(message.provider.is_some());
        match message.role() {
            Role::System => {
                self.apart.insert(place);
            }
            Role::User => {
                self.apart.insert(place);
                self.first_user = Some(self.first_user.map_or(place, |first| first.min(place)));
            }
            Role::Assistant => self.add_answer(place, &message, weight),
            Role::Tool => self.add_result(place, &message, weight),
        }
        self.messages.insert(place, message);
    }

    /// The place of a message; `None` if it was added before. Places are unique.
    fn place_of(&mut self, message: &InnerMessage) -> Option<u64> {
        let place = match (message.role(), message.sequence) {
            (Role::System, 0) => HEAD,
            (_, sequence) => self.first_place(message.evaluation_id).saturating_add(sequence),
        };
        match self.messages.get(&place) {
            None => Some(place),
            Some(known) if known.message_id == message.message_id => None,
            Some(_) => self.messages.get_max().map(|(last, _)| last + 1),
        }
    }

    /// The first place of an evaluation. A new evaluation closes the previous ones: their open calls cannot
    /// get a result any more.
    fn first_place(&mut self, evaluation: EvaluationId) -> u64 {
        if let Some(first) = self.evaluations.get(&evaluation) {
            return *first;
        }
        let first = self.messages.get_max().map_or(HEAD, |(last, _)| *last) + 1;
        self.evaluations.insert(evaluation, first);
        for open in std::mem::take(&mut self.open) {
            if let Ok(index) = self.blocks.binary_search_by_key(&open, |block| block.turn)
                && let Some(block) = self.blocks.get_mut(index)
            {
                block.unanswered.clear();
            }
        }
        first
    }

    fn add_answer(&mut self, place: u64, message: &InnerMessage, weight: u64) {
        let turn = self.numbers.number(message);
        let index = self.add_to_block(turn, message.turn == 0, place, weight);
        let call = message.message.option_call().map(|call| call.invocation_id);
        let Some(block) = self.blocks.get_mut(index) else { return };
        self.totals.answers += usize::from(!block.has_answer);
        block.has_answer = true;
        if let Some(call) = call {
            self.totals.calls += 1;
            self.turn_of_call.insert(call, turn);
            if !self.answered.contains(&call) {
                block.unanswered.push(call);
                self.open.insert(turn);
            }
        }
    }

    fn add_result(&mut self, place: u64, message: &InnerMessage, weight: u64) {
        let call = message.tool_call_id();
        // A result belongs to the answer that made its call, regardless of its own turn number.
        let own = self.numbers.number(message);
        let turn = call.and_then(|call| self.turn_of_call.get(&call).copied()).unwrap_or(own);
        let index = self.add_to_block(turn, turn == own && message.turn == 0, place, weight);
        let Some(call) = call else { return };
        self.answered.insert(call);
        if let Some(block) = self.blocks.get_mut(index) {
            block.unanswered.retain(|unanswered| *unanswered != call);
            if !block.is_open() {
                self.open.remove(&turn);
            }
        }
    }

    /// Adds a message to the block of a turn, and returns the index of the block.
    fn add_to_block(&mut self, turn: u64, is_opening: bool, place: u64, weight: u64) -> usize {
        let index = match self.blocks.binary_search_by_key(&turn, |block| block.turn) {
            Ok(index) => index,
            Err(index) => {
                let before = self.weight_before(index);
                self.blocks.insert(index, Block { turn, is_opening, ..Block::default() });
                self.weights.insert(index, before);
                if is_opening {
                    self.openings.insert(turn);
                }
                index
            }
        };
        if let Some(block) = self.blocks.get_mut(index) {
            block.places.push(place);
        }
        // Almost always this is only the last one.
        for later in index..self.weights.len() {
            if let Some(sum) = self.weights.get_mut(later) {
                *sum += weight;
            }
        }
        index
    }

    /// The messages, in the order of their places.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Arc<InnerMessage>> {
        self.messages.values()
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn at(&self, place: u64) -> Option<&Arc<InnerMessage>> {
        self.messages.get(&place)
    }

    pub(super) fn apart(&self) -> impl Iterator<Item = u64> {
        self.apart.iter().copied()
    }

    pub(super) fn first_user(&self) -> Option<u64> {
        self.first_user
    }

    /// The answers, the oldest first.
    pub(super) fn blocks(&self) -> &Vector<Block> {
        &self.blocks
    }

    /// The numbers of the answers with a call that may still get a result.
    pub(super) fn open(&self) -> &OrdSet<u64> {
        &self.open
    }

    /// The numbers of the blocks before the first answer of each evaluation.
    pub(super) fn openings(&self) -> &OrdSet<u64> {
        &self.openings
    }

    /// The answer that a message belongs to, if any.
    pub(super) fn turn_of(&self, message: &InnerMessage) -> Option<u64> {
        match message.role() {
            Role::System | Role::User => None,
            Role::Assistant => Some(self.numbers.known(message)),
            Role::Tool => {
                let made = message.tool_call_id().and_then(|call| self.turn_of_call.get(&call).copied());
                Some(made.unwrap_or_else(|| self.numbers.known(message)))
            }
        }
    }

    /// The approximate size of the blocks before one, in bytes.
    pub(super) fn weight_before(&self, block: usize) -> u64 {
        block.checked_sub(1).and_then(|last| self.weights.get(last).copied()).unwrap_or_default()
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }
}

impl FromIterator<Arc<InnerMessage>> for TranscriptHistory {
    fn from_iter<I: IntoIterator<Item = Arc<InnerMessage>>>(messages: I) -> Self {
        let mut history = Self::new();
        history.extend(messages);
        history
    }
}

impl Extend<Arc<InnerMessage>> for TranscriptHistory {
    fn extend<I: IntoIterator<Item = Arc<InnerMessage>>>(&mut self, messages: I) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}
