//! The end of a program: its result, definitions and atoms are realised, within the limits.

use std::collections::HashMap;
use std::sync::Arc;

use super::realise::{DeepWalk, Functions};
use super::shared::SharedState;
use super::work::{Host, Step, Work};
use crate::compile::LAST_FORM;
use crate::error::{Error, ErrorKind, Location, Result};
use crate::value::{Cursor, CursorStep, Exception, Map, Sequence, Set, Value, Vector};

/// The bottom frame of a program: takes its result and realises everything lazy in it.
#[derive(Default)]
pub(super) struct Finish {
    result: Option<Value>,
    walk: Option<DeepWalk>,
    /// Values still to be walked.
    roots: Option<Vec<Root>>,
    /// Where the value that is being walked comes from.
    origin: Option<Origin>,
}

/// A value that a program leaves.
struct Root {
    origin: Origin,
    value: Value,
}

/// The origin of a value that a program leaves, for errors.
#[derive(Clone)]
enum Origin {
    Result { place: Option<Location> },
    Atom,
    Definition { name: Arc<str>, place: Option<Location> },
}

impl Origin {
    /// The error for a value that is too large to be kept.
    fn too_large(&self, error: &Error) -> Error {
        let what = match self {
            Origin::Result { .. } => "the value of the program".to_owned(),
            Origin::Atom => "the value of an atom".to_owned(),
            Origin::Definition { name, .. } => format!("`{name}`"),
        };
        let message = format!("{what} is a sequence without end, or too long to keep: {}", error.message());
        let hint = match self {
            Origin::Result { .. } => {
                "values are realised when the program ends: write `(take n ...)` around it"
            }
            _ => {
                "what is defined is realised when the program ends: keep `(take n ...)`, use `let`, or define a function that returns it"
            }
        };
        let explained = Error::new(error.kind(), message).hint(hint);
        match self {
            Origin::Definition { place: Some(place), .. } | Origin::Result { place: Some(place) } => {
                explained.located(place.clone())
            }
            _ => explained,
        }
    }
}

impl Finish {
    fn roots(shared: &SharedState, result: Value) -> Vec<Root> {
        let place_of = |wanted: u32| {
            let place = shared.places.iter().rfind(|(defined, _)| *defined == wanted);
            place.map(|(_, span)| Location::find(&shared.source, *span))
        };
        let mut roots = Vec::new();
        if result.may_hold_lazy() {
            roots.push(Root { origin: Origin::Result { place: place_of(LAST_FORM) }, value: result });
        }
        for number in &shared.defined {
            if let Some(Some(definition)) = shared.memory.slots.get(*number as usize)
                && definition.value.may_hold_lazy()
            {
                let origin = Origin::Definition { name: definition.name.clone(), place: place_of(*number) };
                roots.push(Root { origin, value: definition.value.clone() });
            }
        }
        let atoms = shared.touched.iter().filter_map(|number| shared.memory.atoms.get(number));
        let atoms = atoms.filter(|(_, value)| value.may_hold_lazy());
        roots.extend(atoms.map(|(_, value)| Root { origin: Origin::Atom, value: value.clone() }));
        roots
    }
}

impl Work for Finish {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        if let (None, Some(value)) = (&self.result, incoming) {
            self.result = Some(value);
        }
        let shared = &mut *host.shared;
        let result = self.result.clone().unwrap_or_default();
        let roots = self.roots.get_or_insert_with(|| Self::roots(shared, result));
        loop {
            if let Some(walk) = &mut self.walk {
                if let Some(cell) = walk.advance(shared)? {
                    return Ok(Step::Realise(cell));
                }
                self.walk = None;
            }
            match roots.pop() {
                Some(root) => {
                    self.walk = Some(DeepWalk::new(&root.value, Functions::Entered));
                    self.origin = Some(root.origin);
                }
                None => break,
            }
        }
        self.origin = None;
        let mut hardener = Hardener::default();
        for number in &shared.defined {
            if let Some(Some(definition)) = shared.memory.slots.get_mut(*number as usize)
                && definition.value.may_hold_lazy()
            {
                definition.value = hardener.harden(&definition.value);
            }
        }
        for number in std::mem::take(&mut shared.touched) {
            if let Some((_, value)) = shared.memory.atoms.get_mut(&number)
                && value.may_hold_lazy()
            {
                *value = hardener.harden(value);
            }
        }
        let result = self.result.take().unwrap_or_default();
        Ok(Step::Return(hardener.harden(&result)))
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        if let Some(value) = &self.result {
            visit(value);
        }
        if let Some(walk) = &self.walk {
            walk.each(visit);
        }
        self.roots.iter().flatten().for_each(|root| visit(&root.value));
    }

    fn explained(&self, error: Error) -> Error {
        let is_limit = matches!(
            error.kind(),
            ErrorKind::MemoryExceeded
                | ErrorKind::SizeExceeded
                | ErrorKind::FuelExceeded
                | ErrorKind::NumberSizeExceeded
                | ErrorKind::NestingExceeded
                | ErrorKind::StackExceeded
        );
        // The numbers of a sequence without end grow until they overflow.
        let overflows = error.kind() == ErrorKind::Arithmetic && error.message().contains("overflow");
        match &self.origin {
            Some(origin) if is_limit || overflows => origin.too_large(&error),
            _ => error,
        }
    }
}

/// Replaces the lazy sequences in a value, which must be realised, by plain ones.
pub(crate) fn harden(value: &Value) -> Value {
    Hardener::default().harden(value)
}

/// Remembers visited cells, so that shared parts stay shared.
#[derive(Default)]
struct Hardener {
    seen: HashMap<usize, Value>,
}

impl Hardener {
    fn harden(&mut self, value: &Value) -> Value {
        if !value.may_hold_lazy() {
            return value.clone();
        }
        match value {
            Value::Lazy(cell) => {
                let address = Arc::as_ptr(cell).addr();
                if let Some(known) = self.seen.get(&address) {
                    return known.clone();
                }
                let hardened = self.sequence(value);
                self.seen.insert(address, hardened.clone());
                hardened
            }
            Value::List(_) | Value::Sequence(_) => self.sequence(value),
            Value::Vector(items) => {
                let hardened: Vec<Value> = items.iter().map(|item| self.harden(item)).collect();
                if items.is_queue() {
                    return Value::Vector(Vector::queue(hardened));
                }
                match (items.is_entry(), <[Value; 2]>::try_from(hardened)) {
                    (true, Ok([key, value])) => Value::Vector(Vector::entry(key, value)),
                    (_, Ok(pair)) => Value::vector(pair.into()),
                    (_, Err(items)) => Value::vector(items),
                }
            }
            Value::Map(map) => {
                let comparator = map.comparator().map(|comparator| self.harden(comparator));
                let entries = map.iter().map(|(key, value)| (self.harden(key), self.harden(value)));
                let hardened = Map::ordered(comparator, entries);
                Value::Map(if map.is_flexible() { hardened.flexible() } else { hardened })
            }
            Value::Set(set) => {
                let comparator = set.comparator().map(|comparator| self.harden(comparator));
                Value::Set(Set::ordered(comparator, set.iter().map(|item| self.harden(item))))
            }
            Value::Closure(closure) => {
                let captured: Arc<[Value]> =
                    closure.captured().iter().map(|value| self.harden(value)).collect();
                Value::Closure(Arc::new(closure.with_captured(captured)))
            }
            Value::Exception(exception) if exception.error().is_none() => {
                let (data, cause) = (self.harden(exception.data()), self.harden(exception.cause()));
                Value::Exception(Arc::new(Exception::info(exception.message().cloned(), data, cause)))
            }
            Value::Reduced(inner) => Value::Reduced(Arc::new(self.harden(inner))),
            other => other.clone(),
        }
    }

    fn sequence(&mut self, value: &Value) -> Value {
        let mut cursor = Cursor::new(value).unwrap_or(Cursor::End);
        let mut items = Vec::new();
        while let CursorStep::Item(item) = cursor.next() {
            items.push(self.harden(&item));
        }
        Sequence::realised(items)
    }
}
