//! A transcript in blocks, between which it may be cut.
//!
//! A block is an answer of the model: its words, its calls and the results of them. They carry one turn number, also where a
//! result came after the next answer. What was said before the first answer, and what people and the system say at any time,
//! belongs to no block.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{InnerMessage, Role};

/// An answer with its calls and results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// The number of the answer.
    pub turn: u64,
    /// Where its messages stand.
    pub places: Vec<usize>,
    /// Whether one of its calls has no result.
    pub open: bool,
}

/// The blocks of a transcript, in the order of their answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    blocks: Vec<Block>,
    /// Where the first words of the user stand.
    first_user: Option<usize>,
}

impl Blocks {
    /// The blocks of the messages of one evaluation.
    pub fn of(messages: &[Arc<InnerMessage>]) -> Self {
        let results: HashSet<CallId> = messages.iter().filter_map(|message| message.tool_call_id()).collect();
        // A result belongs to the answer that made its call, whatever it says itself.
        let turn_of_call: BTreeMap<CallId, u64> = messages
            .iter()
            .filter_map(|message| Some((message.message.option_call()?.invocation_id, message.turn)))
            .collect();
        let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
        let mut first_user = None;
        for (place, message) in messages.iter().enumerate() {
            let turn = match message.role() {
                Role::System => continue,
                Role::User => {
                    first_user = first_user.or(Some(place));
                    continue;
                }
                Role::Assistant => message.turn,
                Role::Tool => message
                    .tool_call_id()
                    .and_then(|call| turn_of_call.get(&call).copied())
                    .unwrap_or(message.turn),
            };
            let block = blocks.entry(turn).or_insert_with(|| Block { turn, ..Block::default() });
            block.places.push(place);
            let call = message.message.option_call();
            block.open |= call.is_some_and(|call| !results.contains(&call.invocation_id));
        }
        Self { blocks: blocks.into_values().collect(), first_user }
    }

    /// The blocks, the oldest first.
    pub fn all(&self) -> &[Block] {
        &self.blocks
    }

    /// Where the first words of the user stand.
    pub fn first_user(&self) -> Option<usize> {
        self.first_user
    }
}
