//! A transcript, folded so that what is shown of it can be found without looking at the rest.
//!
//! A transcript may be cut between *blocks* only. A block is an answer of the model: its words, its calls and the results of
//! them, also where a result came after the next answer. What people and the system say belongs to no block.
//!
//! A transcript may begin with the evaluations that its own follows. Their answers are blocks like any other, numbered on from
//! evaluation to evaluation.
//!
//! A history is a value: cloning it is cheap, and pushing a message changes nothing that was there.

use std::sync::Arc;

use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::machine::TurnNumbers;
use imbl::{HashMap, HashSet, OrdMap, OrdSet, Vector};

use super::Weight;

/// The place of the system message that a conversation begins with, whichever evaluation it is of.
const HEAD: u64 = 0;

/// The messages of one evaluation so far, after those of the evaluations that it follows.
#[derive(Debug, Clone, Default)]
pub struct TranscriptHistory {
    /// All messages, by their places.
    messages: OrdMap<u64, Arc<InnerMessage>>,
    /// The places of what belongs to no block.
    apart: OrdSet<u64>,
    /// Where the first words of the user stand.
    first_user: Option<u64>,
    /// Where the messages of each evaluation begin.
    evaluations: OrdMap<EvaluationId, u64>,
    /// The answers, by their numbers.
    numbers: TurnNumbers,
    blocks: Vector<Block>,
    /// What all blocks up to each one weigh.
    weights: Vector<u64>,
    /// The answers of the latest evaluation that have a call without a result.
    open: OrdSet<u64>,
    /// What is told of turn 0 of an evaluation, which came before its first answer.
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
    /// Where its messages stand.
    pub(super) places: Vec<u64>,
    /// Its calls that have no result and may get one.
    unanswered: Vec<CallId>,
    has_answer: bool,
    /// Whether it came before the first answer of its evaluation.
    is_opening: bool,
}

impl Block {
    /// Whether it may be left out. What is told of turn 0 came before the first answer.
    pub(super) fn may_go(&self) -> bool {
        self.unanswered.is_empty() && !self.is_opening
    }

    /// Whether one of its calls has no result and may get one.
    pub(super) fn is_open(&self) -> bool {
        !self.unanswered.is_empty()
    }
}

/// How much of everything there is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) answers: usize,
    pub(super) calls: usize,
    pub(super) sidecars: usize,
    pub(super) bytes: u64,
}

impl TranscriptHistory {
    /// No messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message. It has its place by its sequence, whenever it is added, but evaluations are added one after the other. It
    /// costs as much as the message is large.
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

    /// The place of a message, unless it is known already. Two messages never have the same.
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

    /// Where the messages of an evaluation begin. With those of the next one, those before it are over: their open calls get no
    /// result any more.
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
        // A result belongs to the answer that made its call, whatever it says itself.
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

    /// Adds a message to the block of a turn, and gives the place of that block among all.
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
        // Almost always this is the last one.
        for later in index..self.weights.len() {
            if let Some(sum) = self.weights.get_mut(later) {
                *sum += weight;
            }
        }
        index
    }

    /// The messages, in the order in which they were said.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Arc<InnerMessage>> {
        self.messages.values()
    }

    /// How many messages there are.
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

    /// The numbers of the answers that have a call without a result which may get one.
    pub(super) fn open(&self) -> &OrdSet<u64> {
        &self.open
    }

    /// The numbers of what came before the first answer of each evaluation.
    pub(super) fn openings(&self) -> &OrdSet<u64> {
        &self.openings
    }

    /// The answer that a message belongs to, if it belongs to one.
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

    /// About how many bytes the blocks before one have.
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
