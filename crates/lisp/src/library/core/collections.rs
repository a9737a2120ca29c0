//! Functions that build collections from other collections.

use std::borrow::Cow;

use super::sequences::{borrow_items, items};
use super::sorting::{integers, sort_positions};
use super::{DEEP, NOT, SPINE};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, CallContext, Native, Realise, type_error};
use crate::value::{List, Map, Sequence, Set, Value, Vector, compare};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("vector", Arity::at_least(0), NOT, |c, a| c.vector(a.to_vec())),
    Native::taking("vec", Arity::exactly(1), SPINE, vec),
    Native::leaf("hash-map", Arity::at_least(0), DEEP, |c, a| map_of(c.name, c, a)),
    Native::leaf("array-map", Arity::at_least(0), DEEP, |c, a| map_of(c.name, c, a)),
    Native::leaf("sorted-map", Arity::at_least(0), DEEP, |c, a| {
        let sorted = map_of("sorted-map", c, a)?;
        all_compare(c, a.iter().step_by(2))?;
        Ok(sorted)
    }),
    Native::leaf("hash-set", Arity::at_least(0), DEEP, |c, a| set_of(c, a.to_vec())),
    Native::leaf("sorted-set", Arity::at_least(0), DEEP, |c, a| {
        all_compare(c, a.iter())?;
        set_of(c, a.to_vec())
    }),
    Native::leaf("set", Arity::exactly(1), DEEP, |c, a| match &a[0] {
        Value::Set(_) => Ok(a[0].clone()),
        other => {
            let items = items(c, "set", other)?;
            set_of(c, items)
        }
    }),
    Native::leaf("subvec", Arity::between(2, 3), NOT, subvec),
    Native::unary("empty", |_, a| {
        Ok(match &a[0] {
            Value::Vector(vector) if vector.is_entry() => Value::Nil,
            Value::Vector(vector) if vector.is_queue() => Value::Vector(Vector::queue(Vec::new())),
            Value::Vector(_) => Value::vector(Vec::new()),
            Value::Map(map) => Value::Map(Map::ordered(map.comparator().cloned(), [])),
            Value::Set(set) => Value::Set(Set::ordered(set.comparator().cloned(), [])),
            Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => Value::List(List::EMPTY),
            _ => Value::Nil,
        })
    }),
    Native::leaf("frequencies", Arity::exactly(1), DEEP, |c, a| {
        let items = items(c, "frequencies", &a[0])?;
        c.allocate(64 * items.len())?;
        Ok(Value::Map(count_items(items)))
    }),
    Native::leaf("distinct-vector*", Arity::exactly(1), DEEP, |c, a| {
        let items = items(c, "distinct", &a[0])?;
        c.allocate(32 * items.len())?;
        let mut seen = Set::new();
        let kept = items.into_iter().filter(|item| seen.insert(item.clone())).collect();
        c.sequence(kept)
    }),
    Native::leaf("distinct?", Arity::at_least(1), DEEP, |c, a| {
        c.allocate(32 * a.len())?;
        let mut seen = Set::new();
        Ok(a.iter().all(|item| seen.insert(item.clone())).into())
    }),
    Native::leaf("sort-items*", Arity::exactly(1), SPINE, |c, a| {
        Ok(match borrow_items(c, "sort-by", &a[0])? {
            Cow::Borrowed(_) => a[0].clone(),
            Cow::Owned(items) => Value::vector(items),
        })
    }),
    Native::leaf("sort*", Arity::exactly(1), DEEP, |c, a| {
        let items = borrow_items(c, "sort", &a[0])?;
        let positions = sort_positions(c, &items)?;
        Ok(Sequence::realised(positions.into_iter().map(|at| items[at].clone()).collect()))
    }),
    // The arguments are the keys, then their items.
    Native::leaf("sort-keyed*", Arity::exactly(2), &[Realise::Deep, Realise::Spine], |c, a| {
        let (keys, values) = (borrow_items(c, "sort-by", &a[0])?, borrow_items(c, "sort-by", &a[1])?);
        let positions = sort_positions(c, &keys)?;
        Ok(Sequence::realised(positions.into_iter().map(|at| values[at].clone()).collect()))
    }),
];

fn vec(context: &mut CallContext<'_>, arguments: &mut [Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Vector(vector) if !vector.is_entry() && !vector.is_queue() => {
            Ok(std::mem::take(&mut arguments[0]))
        }
        other => {
            let items = items(context, "vec", other)?;
            Ok(Value::vector(items))
        }
    }
}

fn map_of(name: &str, context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    if !arguments.len().is_multiple_of(2) {
        return Err(Error::argument(format!("{name}: no value supplied for the last key")));
    }
    context.collection(arguments.len())?;
    context.allocate(48 * arguments.len())?;
    Ok(Value::Map(arguments.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()))
}

/// Returns how often each item occurs.
fn count_items(items: Vec<Value>) -> Map {
    let mut counts = Map::new();
    if let Some(mut integers) = integers(&items) {
        integers.sort_unstable();
        for equal in integers.chunk_by(|a, b| a == b) {
            counts.insert(Value::Integer(equal[0]), Value::Integer(equal.len() as i64));
        }
        return counts;
    }
    for item in items {
        let count = match counts.get_exact(&item) {
            Some(Value::Integer(count)) => count + 1,
            _ => 1,
        };
        counts.insert(item, Value::Integer(count));
    }
    counts
}

/// Refuses keys of a sorted collection that cannot be compared with each other.
fn all_compare<'v>(context: &mut CallContext<'_>, keys: impl Iterator<Item = &'v Value>) -> Result<()> {
    let mut before: Option<&Value> = None;
    for key in keys.filter(|key| !key.is_nil()) {
        context.work(1)?;
        compare(before.unwrap_or(key), key)?;
        before = Some(key);
    }
    Ok(())
}

fn set_of(context: &mut CallContext<'_>, items: Vec<Value>) -> Result<Value> {
    context.collection(items.len())?;
    context.allocate(32 * items.len())?;
    Ok(Value::Set(items.into_iter().collect()))
}

fn subvec(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let Value::Vector(vector) = &arguments[0] else {
        return Err(type_error("subvec", "a vector", &arguments[0]));
    };
    let start = super::sequences::integer("subvec", &arguments[1])?;
    let end = match arguments.get(2) {
        Some(end) => super::sequences::integer("subvec", end)?,
        None => vector.len() as i64,
    };
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end && end <= vector.len() => {
            context.collection(end - start)?;
            Ok(Value::Vector(Vector::from(
                vector.iter_from(start).take(end - start).cloned().collect::<Vec<_>>(),
            )))
        }
        _ => Err(Error::new(
            ErrorKind::IndexOutOfBounds,
            format!("subvec: {start} to {end} is not inside a vector of {}", vector.len()),
        )),
    }
}
