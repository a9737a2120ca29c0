//! Resolution of local names.
//!
//! Functions nest, and each level has its own locals. A name of an outer level is captured by every function
//! in between, by value: a binding never changes.

use std::collections::BTreeMap;

use super::code::Capture;
use super::node::{NodeKind, Slot};
use crate::error::{Error, ErrorKind, Result};
use crate::reader::Name;

/// The target of `recur`.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) first: Slot,
    pub(crate) count: u16,
    pub(crate) of_loop: bool,
}

/// One function that is being compiled, or several that refer to each other.
#[derive(Default)]
pub(crate) struct Level {
    /// The names of the functions themselves.
    siblings: BTreeMap<Name, u16>,
    pub(crate) captures: Vec<(Name, Capture)>,
    /// Captures by name.
    captured: BTreeMap<Name, u16>,
    /// Named locals in the order of their binding, each with the slot that its name had before.
    locals: Vec<(Name, Option<Slot>)>,
    /// The slot of each name.
    slots: BTreeMap<Name, Slot>,
    next_slot: u32,
    pub(crate) target: Option<Target>,
    /// True if `recur` has no target because it is inside a `try`.
    pub(crate) inside_try: bool,
}

impl Level {
    pub(crate) fn new(siblings: Vec<Name>) -> Self {
        // If two have the same name, the first one counts.
        let siblings = siblings.into_iter().enumerate().rev().map(|(at, name)| (name, at as u16)).collect();
        Self { siblings, ..Self::default() }
    }

    /// Begins another arity of the same function.
    pub(crate) fn restart(&mut self) {
        self.locals.clear();
        self.slots.clear();
        self.next_slot = 0;
        self.target = None;
        self.inside_try = false;
    }

    /// Reserves consecutive slots.
    pub(crate) fn reserve(&mut self, count: usize) -> Result<Slot> {
        let first = self.next_slot;
        self.next_slot =
            u32::try_from(count).ok().and_then(|count| first.checked_add(count)).unwrap_or(u32::MAX);
        match u16::try_from(self.next_slot) {
            Ok(_) => Ok(first as Slot),
            Err(_) => Err(Error::new(ErrorKind::InvalidForm, "too many local names in one function")),
        }
    }

    /// Names a slot from here on.
    pub(crate) fn name(&mut self, name: Name, slot: Slot) {
        let before = self.slots.insert(name.clone(), slot);
        self.locals.push((name, before));
    }

    /// Returns the number of slots in use.
    pub(crate) fn slots(&self) -> u16 {
        self.next_slot as u16
    }

    /// Returns a mark of the current scope for [`Level::reset`].
    pub(crate) fn mark(&self) -> usize {
        self.locals.len()
    }

    /// Removes the names that were bound since the mark.
    pub(crate) fn reset(&mut self, mark: usize) {
        for (name, before) in self.locals.drain(mark..).rev() {
            match before {
                Some(slot) => self.slots.insert(name, slot),
                None => self.slots.remove(&name),
            };
        }
    }

    /// Returns the names that are bound here, for suggestions.
    pub(crate) fn known_names(&self) -> impl Iterator<Item = &str> {
        self.locals.iter().map(|(name, _)| name).chain(self.siblings.keys()).map(Name::full)
    }

    fn local(&self, name: &Name) -> Option<Slot> {
        self.slots.get(name).copied()
    }
}

/// Finds a name in the innermost function or captures it from an outer one.
pub(crate) fn resolve(levels: &mut [Level], name: &Name) -> Option<NodeKind> {
    let (level, outer) = levels.split_last_mut()?;
    if let Some(slot) = level.local(name) {
        return Some(NodeKind::Local { slot, last: false });
    }
    if let Some(index) = level.siblings.get(name) {
        return Some(NodeKind::Sibling(*index));
    }
    if let Some(index) = level.captured.get(name) {
        return Some(NodeKind::Captured(*index));
    }
    let capture = match resolve(outer, name)? {
        NodeKind::Local { slot, .. } => Capture::Local(slot),
        NodeKind::Captured(index) => Capture::Captured(index),
        NodeKind::Sibling(index) => Capture::Sibling(index),
        _ => return None,
    };
    let index = level.captures.len() as u16;
    level.captures.push((name.clone(), capture));
    level.captured.insert(name.clone(), index);
    Some(NodeKind::Captured(index))
}

/// Returns whether a name is a local of any level, without capturing it.
pub(crate) fn is_local(levels: &[Level], name: &Name) -> bool {
    levels.iter().any(|level| level.local(name).is_some() || level.siblings.contains_key(name))
}
