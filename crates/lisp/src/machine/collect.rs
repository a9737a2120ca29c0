//! Counting live memory when the estimate of the meter has reached its threshold.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::fiber::Fiber;
use super::shared::SharedState;
use crate::effort;
use crate::value::{LazyCell, ListNode, Sequence, Value, Vector};

/// Counts the bytes reachable from a set of values, each object once.
#[derive(Default)]
struct Count {
    seen: HashSet<usize, BuildHasherDefault<AddressHasher>>,
    pending: Vec<Value>,
    /// Vectors whose items have been visited up to an index.
    vectors: Vec<(Vector, usize)>,
    bytes: usize,
    visited: usize,
}

/// The number of visited values between two polls for a stop request.
const VISITS_PER_POLL: usize = 4096;

/// Hashes addresses. A program cannot choose them, so the hash need not resist collisions.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, address: usize) {
        let spread = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }
}

impl Count {
    fn enqueue(&mut self, value: &Value) {
        match value {
            Value::Nil
            | Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Character(_)
            | Value::Native(_)
            | Value::Atom(_) => {}
            other => self.pending.push(other.clone()),
        }
    }

    fn first_time(&mut self, address: usize) -> bool {
        self.seen.insert(address)
    }

    fn run(&mut self, enough: usize) {
        loop {
            if self.bytes > enough {
                return;
            }
            // A long vector is visited item by item, to keep the work list short.
            if let Some((vector, at)) = self.vectors.last_mut() {
                let items = at.checked_add(256).map_or(0, |end| end.min(vector.len()));
                let (vector, from) = (vector.clone(), std::mem::replace(at, items));
                if items == vector.len() {
                    self.vectors.pop();
                }
                vector.iter_from(from).take(items - from).for_each(|item| self.enqueue(item));
            } else if self.pending.is_empty() {
                return;
            }
            while let Some(value) = self.pending.pop() {
                if self.bytes > enough {
                    return;
                }
                // The allocations that led to the walk have paid for it, but it may be long.
                self.visited += 1;
                if self.visited.is_multiple_of(VISITS_PER_POLL) && effort::poll_host_again() {
                    return;
                }
                self.visit(&value);
            }
        }
    }

    fn visit(&mut self, value: &Value) {
        if let Some(address) = value.address()
            && !self.first_time(address)
        {
            return;
        }
        match value {
            Value::BigInteger(number) => self.bytes += 64 + number.bits() as usize / 8,
            Value::Ratio(ratio) => {
                self.bytes += 96 + (ratio.numerator.bits() + ratio.denominator.bits()) as usize / 8;
            }
            Value::String(text) => self.bytes += 64 + text.len(),
            Value::Keyword(name) => self.bytes += 64 + name.full().len(),
            Value::Symbol(name) | Value::Var(name) | Value::Tool(name) => {
                self.bytes += 64 + name.full().len()
            }
            Value::List(list) => {
                if let Some(node) = list.node() {
                    self.bytes += ListNode::BYTES;
                    self.enqueue(node.first());
                    self.enqueue(node.rest());
                }
            }
            Value::Sequence(sequence) => {
                self.bytes += Sequence::BYTES;
                sequence.each(&mut |value| self.enqueue(value));
            }
            Value::Lazy(cell) => {
                self.bytes += LazyCell::BYTES;
                if let Some(value) = cell.realised() {
                    self.enqueue(&value);
                }
                cell.inspect(&mut |thunk| thunk.each(&mut |value| self.enqueue(value)));
            }
            Value::Vector(vector) => {
                self.bytes += vector.bytes();
                self.vectors.push((vector.clone(), 0));
            }
            Value::Map(map) => {
                self.bytes += map.bytes();
                map.comparator().into_iter().for_each(|comparator| self.enqueue(comparator));
                for (key, value) in map {
                    self.enqueue(key);
                    self.enqueue(value);
                }
            }
            Value::Set(set) => {
                self.bytes += set.bytes();
                set.comparator().into_iter().for_each(|comparator| self.enqueue(comparator));
                set.iter().for_each(|item| self.enqueue(item));
            }
            Value::Closure(closure) => {
                self.bytes += 96;
                // Functions that were created together share their captured values.
                if self.first_time(Arc::as_ptr(closure.captured()).addr()) {
                    self.bytes += 16 + 16 * closure.captured().len();
                    closure.captured().iter().for_each(|value| self.enqueue(value));
                }
            }
            Value::Exception(exception) => {
                self.bytes += 160;
                self.enqueue(exception.data());
                self.enqueue(exception.cause());
            }
            Value::Reduced(inner) => {
                self.bytes += 32;
                self.enqueue(inner);
            }
            // Compiled patterns have a size limit of their own; see the regex library.
            Value::Regex(pattern) => self.bytes += pattern.regex.bytes(),
            Value::Temporal(_) => self.bytes += 64,
            _ => {}
        }
    }
}

/// Counts live memory and reports it to the meter. Returns whether the program may continue.
///
/// `results` are those of finished branches, whose fibers are gone.
pub(super) fn collect<'a>(
    shared: &mut SharedState,
    fibers: impl Iterator<Item = &'a Fiber>,
    results: impl Iterator<Item = &'a Value>,
) -> bool {
    // Inputs from the host are marked as seen and not counted.
    let mut count = Count::default();
    for value in shared.data.values().chain(&shared.history).chain(shared.journal.values()) {
        count.enqueue(value);
    }
    count.enqueue(&Value::Map(shared.data.clone()));
    for definition in shared.given.slots.iter().flatten() {
        count.enqueue(&definition.value);
    }
    for (_, value) in shared.given.atoms.values() {
        count.enqueue(value);
    }
    count.run(usize::MAX);
    count.bytes = 0;

    let limit = shared.meter.limit();
    sweep_atoms(shared);
    for fiber in fibers {
        count.bytes += 16 * fiber.stack.capacity() + 64 * fiber.frames.capacity();
        count.bytes += fiber.strand.prints.bytes();
        fiber.each(&mut |value| count.enqueue(value));
    }
    results.for_each(|value| count.enqueue(value));
    for definition in shared.memory.slots.iter().flatten() {
        count.enqueue(&definition.value);
        count.bytes += 128;
    }
    for (_, value) in shared.memory.atoms.values() {
        count.enqueue(value);
        count.bytes += 96;
    }
    for watches in shared.watches.values() {
        count.enqueue(&Value::Map(watches.clone()));
    }
    count.run(limit.saturating_mul(2));
    shared.meter.settle(count.bytes)
}

/// Drops the cells of unreachable atoms.
fn sweep_atoms(shared: &mut SharedState) {
    loop {
        let dead: Vec<u64> = shared
            .memory
            .atoms
            .iter()
            .filter(|(number, (atom, _))| atom.handles() == 1 && !shared.given.atoms.contains_key(*number))
            .map(|(number, _)| *number)
            .collect();
        if dead.is_empty() {
            return;
        }
        for number in dead {
            shared.memory.atoms.remove(&number);
        }
    }
}
