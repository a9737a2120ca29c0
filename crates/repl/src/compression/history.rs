//! The turns so far, indexed so that a strategy finds what it shows without reading the rest.
//!
//! A history is a persistent value: cloning it is cheap, and pushing a turn does not affect clones. It holds
//! the turns, and the positions of the last calls, the last prints and the newest definitions in them.
//! Folding turn by turn and folding all turns at once have the same result.

use std::ops::Range;
use std::sync::Arc;

use imbl::{OrdMap, Vector};

use super::estimate_tokens;
use super::looks::count_access;
use crate::turn::{Excerpt, Turn, TurnCall, TurnCallOutcome, TurnDefinition};

/// The turns of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct History {
    turns: Vector<Arc<Turn>>,
    /// The positions of the calls of all turns.
    calls: Vector<TurnItemIndex>,
    /// The positions of the prints of successful turns.
    prints: Vector<TurnItemIndex>,
    /// The indices of failed turns.
    failed: Vector<usize>,
    /// The times of the first and the last definition of each defined name.
    names: OrdMap<Arc<str>, Times>,
    /// The definitions, by the time of the last one.
    definitions: OrdMap<u64, Definition>,
    next_time: u64,
    /// The accumulated weight of the turns up to each one.
    weights: Vector<Weight>,
}

/// The position of an item of a turn.
#[derive(Debug, Clone, Copy)]
struct TurnItemIndex {
    turn: usize,
    index: usize,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    first: u64,
    last: u64,
}

#[derive(Debug, Clone, Copy)]
struct Definition {
    first: u64,
    place: TurnItemIndex,
}

/// The size of turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

/// A definition that currently exists.
pub(super) struct Live<'a> {
    /// The order of first definitions.
    pub(super) first: u64,
    pub(super) defined: &'a TurnDefinition,
    /// The turn that defined it last.
    pub(super) turn: &'a Turn,
}

impl History {
    /// Creates a history without turns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next turn. The cost is proportional to the size of the turn.
    pub fn push(&mut self, turn: Arc<Turn>) {
        let at = self.turns.len();
        let place = |index| TurnItemIndex { turn: at, index };
        self.calls.extend((0..turn.tool_calls.len()).map(place));
        if turn.success {
            self.prints.extend((0..turn.prints.len()).map(place));
            for name in &turn.memory.forgotten {
                if let Some(times) = self.names.remove(name.as_str()) {
                    self.definitions.remove(&times.last);
                }
            }
            for (index, defined) in turn.memory.defined.iter().enumerate() {
                self.define(&defined.name, place(index));
            }
        } else {
            self.failed.push_back(at);
        }
        let before = self.weight_of(0..at);
        let weight = weight(&turn);
        self.weights
            .push_back(Weight { bytes: before.bytes + weight.bytes, tokens: before.tokens + weight.tokens });
        self.turns.push_back(turn);
    }

    fn define(&mut self, name: &str, place: TurnItemIndex) {
        let last = self.next_time;
        self.next_time += 1;
        let first = match self.names.get_mut(name) {
            Some(times) => {
                self.definitions.remove(&times.last);
                times.last = last;
                times.first
            }
            None => {
                self.names.insert(name.into(), Times { first: last, last });
                last
            }
        };
        self.definitions.insert(last, Definition { first, place });
    }

    /// The number of turns.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether there are no turns.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The turns, in order.
    pub fn turns(&self) -> impl DoubleEndedIterator<Item = &Arc<Turn>> {
        self.turns.iter()
    }

    /// The turn at an index, from 0.
    pub fn get(&self, index: usize) -> Option<&Arc<Turn>> {
        count_access();
        self.turns.get(index)
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn prints(&self) -> usize {
        self.prints.len()
    }

    pub(super) fn definitions(&self) -> usize {
        self.definitions.len()
    }

    /// The last calls, in order, each with its turn.
    pub(super) fn last_calls(&self, limit: usize) -> impl Iterator<Item = (&Turn, &TurnCall)> {
        let from = self.calls.len().saturating_sub(limit);
        (from..self.calls.len()).filter_map(|at| self.calls.get(at)).filter_map(|place| {
            let turn = self.get(place.turn)?;
            Some((&**turn, turn.tool_calls.get(place.index)?))
        })
    }

    /// The last prints of successful turns, in order, each with its turn.
    pub(super) fn last_prints(&self, limit: usize) -> impl Iterator<Item = (&Turn, &str)> {
        let from = self.prints.len().saturating_sub(limit);
        (from..self.prints.len()).filter_map(|at| self.prints.get(at)).filter_map(|place| {
            let turn = self.get(place.turn)?;
            Some((&**turn, turn.prints.get(place.index)?.as_str()))
        })
    }

    /// The indices of failed turns, the latest first.
    pub(super) fn failed(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator {
        self.failed.iter().rev().copied().inspect(|_| count_access())
    }

    /// The number of current definitions that were last made before a turn. Visits only the others.
    pub(super) fn definitions_before(&self, turn: usize) -> usize {
        let newest = self.definitions.values().rev().inspect(|_| count_access());
        self.definitions.len() - newest.take_while(|definition| definition.place.turn >= turn).count()
    }

    /// The current definitions that were last made before a turn, the newest first.
    pub(super) fn newest_definitions(&self, before: usize) -> impl Iterator<Item = Live<'_>> {
        let newest = self.definitions.values().rev().inspect(|_| count_access());
        newest.skip_while(move |definition| definition.place.turn >= before).filter_map(|definition| {
            let turn = self.get(definition.place.turn)?;
            let defined = turn.memory.defined.get(definition.place.index)?;
            Some(Live { first: definition.first, defined, turn })
        })
    }

    /// The size of a range of turns.
    pub(super) fn weight_of(&self, turns: Range<usize>) -> Weight {
        let up_to = |end: usize| match end {
            0 => Weight::default(),
            end => {
                count_access();
                self.weights.get(end - 1).copied().unwrap_or_default()
            }
        };
        let (before, all) = (up_to(turns.start), up_to(turns.end));
        Weight {
            bytes: all.bytes.saturating_sub(before.bytes),
            tokens: all.tokens.saturating_sub(before.tokens),
        }
    }
}

impl FromIterator<Arc<Turn>> for History {
    fn from_iter<I: IntoIterator<Item = Arc<Turn>>>(turns: I) -> Self {
        let mut history = Self::new();
        history.extend(turns);
        history
    }
}

impl Extend<Arc<Turn>> for History {
    fn extend<I: IntoIterator<Item = Arc<Turn>>>(&mut self, turns: I) {
        turns.into_iter().for_each(|turn| self.push(turn));
    }
}

fn weight(turn: &Turn) -> Weight {
    let mut weight = Weight::default();
    let mut add = |text: &str| {
        weight.bytes += text.len() as u64;
        weight.tokens += estimate_tokens(text);
    };
    add(&turn.answer);
    turn.prints.iter().for_each(|print| add(print));
    if let Some(error) = &turn.error {
        add(&error.message);
    }
    for call in &turn.tool_calls {
        add(&call.name);
        add(&excerpt_text(&call.arguments));
        match &call.outcome {
            TurnCallOutcome::Result(result) => add(&excerpt_text(result)),
            TurnCallOutcome::Error(message) => add(message),
            TurnCallOutcome::Open => {}
        }
    }
    weight
}

fn excerpt_text(excerpt: &Excerpt) -> std::borrow::Cow<'_, str> {
    match excerpt {
        Excerpt::Whole(json) => json.to_string().into(),
        Excerpt::Sample { text, .. } => text.into(),
    }
}
