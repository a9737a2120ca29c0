//! The cost of a search.
//!
//! The engine is linear, but the factor varies: with a small table it takes one step for each byte; otherwise
//! it follows every state of the pattern at every byte. Repeated searches may even read the same text each
//! time. So that fuel bounds time, the steps are counted. For a pattern whose whole table is small, walking
//! it over the text shows how far the search will read. Any other pattern is charged for all its states over
//! the whole text.

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind};

/// The largest table that is built to count steps, in bytes.
const TABLE: usize = 64 << 10;
/// Bytes walked per unit of fuel.
const BYTES_PER_UNIT: usize = 64;
/// States followed per unit of fuel.
const STATES_PER_UNIT: usize = 16;

/// Counts the steps of a pattern.
pub(super) struct Meter {
    table: Option<dense::DFA<Vec<u32>>>,
    states: usize,
}

impl Meter {
    /// Creates a meter for a translated pattern that compiles within `size` bytes.
    pub(super) fn new(translated: &str, size: usize) -> Self {
        let compiler = thompson::Config::new().nfa_size_limit(Some(size * 2));
        let nfa = thompson::Compiler::new()
            .configure(compiler)
            .syntax(syntax::Config::new().nest_limit(100))
            .build(translated);
        let Ok(nfa) = nfa else { return Self { table: None, states: size / 8 } };
        let table = dense::Config::new()
            .start_kind(StartKind::Unanchored)
            .match_kind(MatchKind::LeftmostFirst)
            .unicode_word_boundary(true)
            .dfa_size_limit(Some(TABLE))
            .determinize_size_limit(Some(2 * TABLE));
        let states = nfa.states().len();
        Self { table: dense::Builder::new().configure(table).build_from_nfa(&nfa).ok(), states }
    }

    /// Returns the fuel for following all states over `bytes` bytes.
    pub(super) fn simulation(&self, bytes: usize) -> usize {
        1 + bytes.saturating_mul(self.states / STATES_PER_UNIT + 1)
    }

    /// Returns the fuel for a search that begins at `from`.
    pub(super) fn search(&self, text: &str, from: usize) -> usize {
        match self.table.as_ref().and_then(|table| steps(table, text, from)) {
            Some(steps) => 1 + steps / BYTES_PER_UNIT,
            None => self.simulation(text.len() - from),
        }
    }
}

/// Returns the number of bytes that a search reads, or `None` if the table has no transition.
fn steps(table: &dense::DFA<Vec<u32>>, text: &str, from: usize) -> Option<usize> {
    let mut state = table.start_state_forward(&Input::new(text).range(from..)).ok()?;
    for (steps, byte) in text.as_bytes()[from..].iter().enumerate() {
        state = table.next_state(state, *byte);
        if table.is_special_state(state) {
            if table.is_dead_state(state) {
                return Some(steps + 1);
            }
            if table.is_quit_state(state) {
                return None;
            }
        }
    }
    Some(text.len() - from)
}
