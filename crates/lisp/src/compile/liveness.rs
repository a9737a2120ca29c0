//! Finds the last use of each local, so that its value can be moved out of the slot.
//!
//! A value that only the operand stack refers to can be changed in place. This makes `(assoc m k v)` in a
//! `reduce` cheap and frees the head of a long sequence. The walk goes backwards and tracks which locals are
//! read later.

use super::code::Capture;
use super::node::{Binding, Expr, NodeKind, Slot};

/// A set of locals.
#[derive(Clone, Default)]
struct Live(Vec<u64>);

impl Live {
    fn contains(&self, slot: Slot) -> bool {
        self.0.get(usize::from(slot) / 64).is_some_and(|word| word & (1 << (slot % 64)) != 0)
    }

    fn insert(&mut self, slot: Slot) {
        let word = usize::from(slot) / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (slot % 64);
    }

    fn remove(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(usize::from(slot) / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    /// Keeps only the locals below a slot. Slots are allocated in order and never reused, so everything bound
    /// inside an expression has a higher slot than the enclosing locals.
    fn keep_below(&mut self, slot: Slot) {
        let word = usize::from(slot) / 64;
        self.0.truncate(word + 1);
        if let Some(last) = self.0.get_mut(word) {
            *last &= (1 << (slot % 64)) - 1;
        }
    }

    fn union(&mut self, other: &Live) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

/// Marks the last uses in the body of a function.
pub(crate) fn mark(body: &mut Expr) {
    let mut pass = Pass { back: Vec::new() };
    pass.walk(body, &mut Live::default());
}

struct Pass {
    /// The live locals at the target of each `recur`, innermost last.
    back: Vec<Live>,
}

impl Pass {
    fn walk_all(&mut self, nodes: &mut [Expr], live: &mut Live) {
        for node in nodes.iter_mut().rev() {
            self.walk(node, live);
        }
    }

    fn captures(&mut self, captures: &mut [Capture], live: &mut Live) {
        for capture in captures.iter_mut().rev() {
            if let Capture::Local(slot) = *capture {
                if !live.contains(slot) {
                    *capture = Capture::TakeLocal(slot);
                }
                live.insert(slot);
            }
        }
    }

    fn walk(&mut self, node: &mut Expr, live: &mut Live) {
        match &mut node.kind {
            NodeKind::Constant(_)
            | NodeKind::Captured(_)
            | NodeKind::Sibling(_)
            | NodeKind::Global(_)
            | NodeKind::Definition(_)
            | NodeKind::IsDefined(_)
            | NodeKind::Data(_) => {}
            NodeKind::Local { slot, last } => {
                *last = !live.contains(*slot);
                live.insert(*slot);
            }
            NodeKind::Cond(clauses, otherwise) => {
                let after = live.clone();
                self.walk(otherwise, live);
                for (test, result) in clauses.iter_mut().rev() {
                    let mut taken = after.clone();
                    self.walk(result, &mut taken);
                    live.union(&taken);
                    self.walk(test, live);
                }
            }
            NodeKind::And(nodes) | NodeKind::Or(nodes) => {
                let after = live.clone();
                for node in nodes.iter_mut().rev() {
                    live.union(&after);
                    self.walk(node, live);
                }
            }
            NodeKind::Do(nodes) | NodeKind::Vector(nodes) | NodeKind::Map(nodes) | NodeKind::Set(nodes) => {
                self.walk_all(nodes, live);
            }
            NodeKind::Let(bindings, body) => {
                self.walk(body, live);
                for binding in bindings.iter_mut().rev() {
                    match binding {
                        Binding::One(slot, value) => {
                            live.remove(*slot);
                            self.walk(value, live);
                        }
                        Binding::Spread { value, first, count, rest } => {
                            (*first..*first + *count + u16::from(*rest)).for_each(|slot| live.remove(slot));
                            self.walk(value, live);
                        }
                    }
                }
            }
            NodeKind::Loop { first, initial, body } => {
                // Outer locals that the body reads are read again in the next iteration.
                let mut read = Live::default();
                uses(body, &mut read);
                let slots = *first..*first + initial.len() as u16;
                read.keep_below(*first);
                live.union(&read);
                self.back.push(live.clone());
                self.walk(body, live);
                self.back.pop();
                slots.for_each(|slot| live.remove(slot));
                live.union(&read);
                self.walk_all(initial, live);
            }
            NodeKind::Recur { arguments, .. } => {
                *live = self.back.last().cloned().unwrap_or_default();
                self.walk_all(arguments, live);
            }
            NodeKind::Call(function, arguments) => {
                self.walk_all(arguments, live);
                self.walk(function, live);
            }
            NodeKind::CallNative(_, arguments) | NodeKind::CallTool(_, arguments) => {
                self.walk_all(arguments, live)
            }
            NodeKind::Function(function) | NodeKind::Lazy(function) => {
                self.captures(&mut function.captures, live)
            }
            NodeKind::Group { functions, first, count, body } => {
                self.walk(body, live);
                (*first..*first + *count).for_each(|slot| live.remove(slot));
                self.captures(&mut functions.captures, live);
            }
            NodeKind::Case { value, clauses, otherwise } => {
                let after = live.clone();
                self.walk(otherwise, live);
                for (_, result) in clauses.iter_mut() {
                    let mut taken = after.clone();
                    self.walk(result, &mut taken);
                    live.union(&taken);
                }
                self.walk(value, live);
            }
            NodeKind::Try { body, catches, finally } => {
                if let Some((_, _, finally)) = finally {
                    // An exception may lead here, with locals in an unknown state: nothing is moved.
                    let mut read = Live::default();
                    uses(finally, &mut read);
                    live.union(&read);
                    self.walk(finally, live);
                }
                let after = live.clone();
                for (_, slot, handler) in catches.iter_mut() {
                    let mut taken = after.clone();
                    self.walk(handler, &mut taken);
                    taken.remove(*slot);
                    live.union(&taken);
                }
                // The body may exit anywhere, so it moves no local that is used later.
                self.walk(body, live);
            }
            NodeKind::Define { value, .. } => {
                if let Some(value) = value {
                    self.walk(value, live);
                }
            }
            NodeKind::Task(id, body) => {
                let after = live.clone();
                self.walk(body, live);
                live.union(&after);
                self.walk(id, live);
            }
        }
    }
}

/// Collects every local that an expression reads.
fn uses(node: &Expr, found: &mut Live) {
    let captures = |captures: &[Capture], found: &mut Live| {
        for capture in captures {
            if let Capture::Local(slot) | Capture::TakeLocal(slot) = capture {
                found.insert(*slot);
            }
        }
    };
    match &node.kind {
        NodeKind::Constant(_)
        | NodeKind::Captured(_)
        | NodeKind::Sibling(_)
        | NodeKind::Global(_)
        | NodeKind::Definition(_)
        | NodeKind::IsDefined(_)
        | NodeKind::Data(_) => {}
        NodeKind::Local { slot, .. } => found.insert(*slot),
        NodeKind::Cond(clauses, otherwise) => {
            for (test, result) in clauses {
                uses(test, found);
                uses(result, found);
            }
            uses(otherwise, found);
        }
        NodeKind::And(nodes)
        | NodeKind::Or(nodes)
        | NodeKind::Do(nodes)
        | NodeKind::Vector(nodes)
        | NodeKind::Map(nodes)
        | NodeKind::Set(nodes)
        | NodeKind::Recur { arguments: nodes, .. }
        | NodeKind::CallNative(_, nodes)
        | NodeKind::CallTool(_, nodes) => nodes.iter().for_each(|node| uses(node, found)),
        NodeKind::Let(bindings, body) => {
            for binding in bindings {
                match binding {
                    Binding::One(_, value) | Binding::Spread { value, .. } => uses(value, found),
                }
            }
            uses(body, found);
        }
        NodeKind::Loop { initial, body, .. } => {
            initial.iter().for_each(|node| uses(node, found));
            uses(body, found);
        }
        NodeKind::Call(function, arguments) => {
            uses(function, found);
            arguments.iter().for_each(|node| uses(node, found));
        }
        NodeKind::Function(function) | NodeKind::Lazy(function) => captures(&function.captures, found),
        NodeKind::Group { functions, body, .. } => {
            captures(&functions.captures, found);
            uses(body, found);
        }
        NodeKind::Case { value, clauses, otherwise } => {
            uses(value, found);
            clauses.iter().for_each(|(_, result)| uses(result, found));
            uses(otherwise, found);
        }
        NodeKind::Try { body, catches, finally } => {
            uses(body, found);
            catches.iter().for_each(|(_, _, handler)| uses(handler, found));
            if let Some((_, _, finally)) = finally {
                uses(finally, found);
            }
        }
        NodeKind::Define { value, .. } => {
            if let Some(value) = value {
                uses(value, found);
            }
        }
        NodeKind::Task(id, body) => {
            uses(id, found);
            uses(body, found);
        }
    }
}
