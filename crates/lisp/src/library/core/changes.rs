//! Functions that add, replace or remove items of collections. A collection with one owner is changed in
//! place.

use super::sequences::{integer, items};
use super::{DEEP, NOT};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, CallContext, Native, Realise, type_error};
use crate::value::{List, Map, Value, Vector};

const KEYS: &[Realise] = &[
    Realise::Not,
    Realise::Deep,
    Realise::Not,
    Realise::Deep,
    Realise::Not,
    Realise::Deep,
    Realise::Not,
    Realise::Deep,
    Realise::Not,
    Realise::Deep,
];

pub(crate) const NATIVES: &[Native] = &[
    Native::taking("conj", Arity::at_least(0), &[Realise::Not, Realise::Element], |c, a| {
        let Some((target, items)) = a.split_first_mut() else { return Ok(Value::vector(Vec::new())) };
        account(c, target, items.len())?;
        for item in items.iter() {
            check_conj(target, item)?;
        }
        let mut target = std::mem::take(target);
        for item in items {
            target = conj(target, std::mem::take(item));
        }
        Ok(target)
    })
    .if_sorted("sorted-conj*"),
    Native::taking("into*", Arity::exactly(2), &[Realise::Not, Realise::Elements], into)
        .if_sorted("sorted-into*"),
    Native::taking("assoc", Arity::at_least(3), KEYS, assoc).if_sorted("sorted-assoc*"),
    Native::taking("dissoc", Arity::at_least(1), DEEP_AFTER_FIRST, |c, a| {
        let (target, keys) = a.split_first_mut().expect("invariant: at least one argument");
        match target {
            Value::Nil => Ok(Value::Nil),
            Value::Map(map) => {
                // The cost of many keys is at most a copy of the whole map.
                c.allocate((map.change_cost() * keys.len()).min(map.change_cost() + map.bytes()))?;
                c.work(keys.len())?;
                let mut map = std::mem::take(map);
                for key in keys {
                    map.remove(key);
                }
                Ok(Value::Map(map))
            }
            other => Err(type_error("dissoc", "a map", other)),
        }
    }),
    Native::taking("disj", Arity::at_least(1), DEEP_AFTER_FIRST, |c, a| {
        let (target, keys) = a.split_first_mut().expect("invariant: at least one argument");
        match target {
            Value::Nil => Ok(Value::Nil),
            Value::Set(set) => {
                c.allocate((set.change_cost() * keys.len()).min(set.change_cost() + set.bytes()))?;
                c.work(keys.len())?;
                let mut set = std::mem::take(set);
                for key in keys {
                    set.remove(key);
                }
                Ok(Value::Set(set))
            }
            other => Err(type_error("disj", "a set", other)),
        }
    }),
    Native::taking("pop", Arity::exactly(1), NOT, |c, a| match &mut a[0] {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(vector) if !vector.is_empty() => {
            c.allocate(vector.change_cost())?;
            let mut vector = std::mem::take(vector);
            if vector.is_queue() {
                vector.pop_front();
            } else {
                vector.pop();
            }
            Ok(Value::Vector(vector))
        }
        Value::List(list) if list.is_proper() && !list.is_empty() => super::sequences::rest(c, "pop", &a[0]),
        Value::Vector(vector) if vector.is_queue() => Ok(std::mem::take(&mut a[0])),
        Value::Vector(_) | Value::List(_) => Err(Error::argument("pop: the collection is empty")),
        other => Err(type_error("pop", "a vector or a list", other)),
    }),
    Native::taking("merge", Arity::at_least(0), DEEP, merge).if_sorted("sorted-conj*"),
    Native::leaf("assoc-in-check*", Arity::exactly(1), DEEP, |c, a| {
        // A path nests as many maps as it has keys.
        let path = items(c, "assoc-in", &a[0])?;
        c.limits.check_depth(u32::try_from(path.len()).unwrap_or(u32::MAX))?;
        Ok(Value::vector(path))
    }),
];

const DEEP_AFTER_FIRST: &[Realise] = &[Realise::Not, Realise::Deep];

/// Accounts for changes of a collection before they are made.
fn account(context: &mut CallContext<'_>, target: &Value, changes: usize) -> Result<()> {
    if changes == 0 {
        return Ok(());
    }
    // The first change may copy; the others happen in place.
    let (first, length) = match target {
        Value::Vector(vector) => (vector.change_cost(), vector.len()),
        Value::Map(map) => (map.change_cost(), map.len()),
        Value::Set(set) => (set.change_cost(), set.len()),
        _ => (80, 0),
    };
    context.limits.check_collection(length + changes)?;
    context.work(changes)?;
    context.allocate(first + 80 * (changes - 1))
}

fn check_conj(target: &Value, item: &Value) -> Result<()> {
    match target {
        Value::Map(_) => match item {
            Value::Map(_) | Value::Nil => Ok(()),
            Value::Vector(pair) if pair.len() == 2 => Ok(()),
            Value::Vector(_) => Err(Error::argument("conj: a vector added to a map must be a pair")),
            other => Err(type_error("conj", "a pair or a map to add to a map", other)),
        },
        Value::Nil
        | Value::Vector(_)
        | Value::Set(_)
        | Value::List(_)
        | Value::Sequence(_)
        | Value::Lazy(_) => Ok(()),
        other => Err(type_error("conj", "a collection", other)),
    }
}

/// Adds an item at the position that fits the type of the collection.
fn conj(target: Value, item: Value) -> Value {
    match target {
        Value::Vector(mut vector) => {
            vector.push(item);
            Value::Vector(vector)
        }
        Value::Map(mut map) => {
            match item {
                Value::Vector(pair) => {
                    let mut parts = pair.into_items().into_iter();
                    if let (Some(key), Some(value)) = (parts.next(), parts.next()) {
                        map.insert(key, value);
                    }
                }
                Value::Map(other) => {
                    for (key, value) in &other {
                        map.insert(key.clone(), value.clone());
                    }
                }
                _ => {}
            }
            Value::Map(map)
        }
        Value::Set(mut set) => {
            set.insert(item);
            Value::Set(set)
        }
        Value::Nil => Value::List(List::EMPTY.push(item)),
        Value::List(list) if list.is_proper() => Value::List(list.push(item)),
        other => Value::List(List::cons(item, other)),
    }
}

/// `into` without a transducer. The source is already realised as far as the target needs.
fn into(context: &mut CallContext<'_>, arguments: &mut [Value]) -> Result<Value> {
    let found = items(context, "into", &arguments[1])?;
    account(context, &arguments[0], found.len())?;
    for item in &found {
        check_conj(&arguments[0], item)?;
    }
    let mut target = std::mem::take(&mut arguments[0]);
    if let Value::Vector(vector) = &target
        && vector.is_empty()
        && !vector.is_queue()
    {
        return Ok(Value::vector(found));
    }
    for item in found {
        target = conj(target, item);
    }
    Ok(target)
}

fn assoc(context: &mut CallContext<'_>, arguments: &mut [Value]) -> Result<Value> {
    if arguments.len().is_multiple_of(2) {
        let message = "assoc: expects an even number of arguments after the map, found an odd number";
        return Err(Error::new(ErrorKind::Arity, message).hint("`(assoc map key value key value ...)`"));
    }
    let (target, pairs) = arguments.split_first_mut().expect("invariant: at least one argument");
    account(context, target, pairs.len() / 2)?;
    match target {
        Value::Nil | Value::Map(_) => {
            let mut map = match std::mem::take(target) {
                Value::Map(map) => map,
                _ => Map::new(),
            };
            for pair in pairs.chunks_exact_mut(2) {
                map.insert(std::mem::take(&mut pair[0]), std::mem::take(&mut pair[1]));
            }
            Ok(Value::Map(map))
        }
        Value::Vector(vector) if !vector.is_queue() => {
            let mut length = vector.len();
            let mut indices = Vec::with_capacity(pairs.len() / 2);
            for pair in pairs.chunks_exact(2) {
                let Value::Integer(_) = &pair[0] else {
                    return Err(type_error("assoc", "an integer as the index into a vector", &pair[0]));
                };
                let index = integer("assoc", &pair[0])?;
                match usize::try_from(index) {
                    Ok(index) if index <= length => {
                        length += usize::from(index == length);
                        indices.push(index);
                    }
                    _ => {
                        let message = format!("assoc: index {index} is outside of a vector of {length}");
                        return Err(Error::new(ErrorKind::IndexOutOfBounds, message));
                    }
                }
            }
            let mut vector: Vector = std::mem::take(vector);
            for (index, pair) in indices.into_iter().zip(pairs.chunks_exact_mut(2)) {
                vector.set(index, std::mem::take(&mut pair[1]));
            }
            Ok(Value::Vector(vector))
        }
        other => Err(type_error("assoc", "a map or a vector", other)),
    }
}

fn merge(context: &mut CallContext<'_>, arguments: &mut [Value]) -> Result<Value> {
    // `(merge)` and `(merge nil nil)` are nil.
    if arguments.iter().all(|value| !value.is_truthy()) {
        return Ok(Value::Nil);
    }
    let total: usize = arguments
        .iter()
        .map(|value| match value {
            Value::Map(map) => map.len(),
            _ => 1,
        })
        .sum();
    let start = Value::Map(Map::new());
    let base = if arguments[0].is_nil() { &start } else { &arguments[0] };
    account(context, base, total)?;
    for item in &arguments[1..] {
        check_conj(base, item)?;
    }
    let mut result = std::mem::take(&mut arguments[0]);
    if result.is_nil() {
        result = start;
    }
    for item in &mut arguments[1..] {
        let item = std::mem::take(item);
        if !item.is_nil() {
            result = conj(result, item);
        }
    }
    Ok(result)
}
