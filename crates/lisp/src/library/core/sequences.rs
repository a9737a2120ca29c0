//! Sequences one cell at a time: `seq`, `first`, `rest`, `next`, `cons`, `nth`, `count`.

use std::borrow::Cow;

use super::{NEXT, NOT, SPINE};
use crate::effort;
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, CallContext, Constant, Native, Realise, not_a_sequence, type_error};
use crate::value::{Cursor, CursorStep, List, Sequence, Value, Vector};

pub(crate) const CONSTANTS: &[Constant] =
    &[("PersistentQueue/EMPTY", || Value::Vector(Vector::queue(Vec::new())))];

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("seq", Arity::exactly(1), NEXT, |c, a| seq(c, "seq", &a[0])),
    Native::leaf("first", Arity::exactly(1), NEXT, |c, a| first(c.name, &a[0])),
    Native::leaf("rest", Arity::exactly(1), NEXT, |c, a| rest(c, "rest", &a[0])),
    Native::leaf("step*", Arity::exactly(1), NEXT, |c, a| rest(c, "next", &a[0])),
    Native::binary("cons", cons),
    Native::leaf("count", Arity::exactly(1), SPINE, |c, a| Ok(Value::Integer(count(c, &a[0])? as i64))),
    Native::leaf("last", Arity::exactly(1), SPINE, last),
    Native::unary("peek", |c, a| match &a[0] {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(items) if items.is_queue() => Ok(items.get(0).cloned().unwrap_or_default()),
        Value::Vector(items) => Ok(items.last().cloned().unwrap_or_default()),
        Value::List(list) if list.is_proper() => first(c.name, &a[0]),
        other => Err(c.type_error("a vector or a list", other)),
    }),
    Native::leaf("reverse", Arity::exactly(1), SPINE, |c, a| {
        let mut items = items(c, "reverse", &a[0])?;
        items.reverse();
        Ok(Value::list(items))
    }),
    Native::unary("rseq", |c, a| match &a[0] {
        Value::Vector(vector) if vector.is_empty() => Ok(Value::Nil),
        Value::Vector(_) | Value::Map(_) => {
            let mut items = items(c, "rseq", &a[0])?;
            items.reverse();
            Ok(if items.is_empty() { Value::Nil } else { Sequence::realised(items) })
        }
        other => Err(type_error("rseq", "a vector", other)),
    }),
    Native::leaf("nth*", Arity::between(2, 3), NOT, nth_ready),
    Native::leaf("list", Arity::at_least(0), NOT, |c, a| {
        c.collection(5 * a.len())?;
        Ok(Value::list(a.to_vec()))
    }),
    Native::leaf("range*", Arity::exactly(3), NOT, range),
    Native::leaf("butlast", Arity::exactly(1), SPINE, |c, a| {
        let mut items = items(c, "butlast", &a[0])?;
        items.pop();
        Ok(if items.is_empty() { Value::Nil } else { Sequence::realised(items) })
    }),
    Native::leaf("take-last", Arity::exactly(2), &[Realise::Not, Realise::Spine], |c, a| {
        let wanted = count_of("take-last", &a[0])?;
        let mut items = items(c, "take-last", &a[1])?;
        let from = items.len().saturating_sub(usize::try_from(wanted).unwrap_or(usize::MAX));
        let kept = items.split_off(from);
        Ok(if kept.is_empty() { Value::Nil } else { Sequence::realised(kept) })
    }),
    // Only of what is realised: everything else is flattened lazily.
    Native::unary("flatten*", |c, a| if a[0].may_hold_lazy() { Ok(Value::Nil) } else { flatten(c, a) }),
    Native::leaf("shuffle*", Arity::exactly(1), SPINE, |c, a| {
        let mut items = items(c, "shuffle", &a[0])?;
        for at in (1..items.len()).rev() {
            items.swap(at, c.random.below(at as u64 + 1) as usize);
        }
        c.vector(items)
    }),
];

/// Returns whether a collection is empty; `None` for other values. A lazy cell must be realised.
pub(crate) fn is_empty(value: &Value) -> Option<bool> {
    Some(match value {
        Value::Nil => true,
        Value::String(text) => text.is_empty(),
        Value::Vector(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Set(set) => set.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Sequence(_) => false,
        Value::Lazy(cell) => match cell.realised() {
            Some(value) => return is_empty(&value),
            None => false,
        },
        _ => return None,
    })
}

/// Returns the items of a collection whose spine is realised.
pub(crate) fn items(context: &mut CallContext<'_>, name: &str, value: &Value) -> Result<Vec<Value>> {
    borrow_items(context, name, value).map(Cow::into_owned)
}

/// Returns the items of a collection whose spine is realised. Those of a vector in one block are not copied, but
/// charged as if they were.
pub(super) fn borrow_items<'v>(
    context: &mut CallContext<'_>,
    name: &str,
    value: &'v Value,
) -> Result<Cow<'v, [Value]>> {
    if let Value::Vector(vector) = value {
        context.collection(vector.len())?;
        return Ok(vector.as_slice().map_or_else(|| vector.iter().cloned().collect(), Cow::Borrowed));
    }
    account_for_walk(context, value)?;
    let Some(mut cursor) = Cursor::new(value) else { return Err(not_a_sequence(name, value)) };
    if let Some(left) = cursor.left() {
        context.collection(left)?;
    }
    let mut items = Vec::new();
    loop {
        cursor.take_block(&mut items);
        if items.len() >= 1024 {
            context.limits.check_collection(items.len())?;
        }
        let CursorStep::Item(item) = cursor.next() else { break };
        items.push(item);
    }
    if items.len() > 1024 || !items.is_empty() && matches!(value, Value::Lazy(_)) {
        context.collection(items.len())?;
    }
    Ok(Cow::Owned(items))
}

/// Accounts for the copy of a map, a set or a string that a walk makes.
fn account_for_walk(context: &mut CallContext<'_>, value: &Value) -> Result<()> {
    match value {
        Value::Map(map) => context.allocate(64 + 128 * map.len()),
        Value::Set(set) => context.allocate(64 + 16 * set.len()),
        Value::String(text) => context.allocate(64 + 16 * text.len()),
        _ => Ok(()),
    }
}

/// Returns the value as a sequence: `nil` if there are no items.
pub(crate) fn seq(context: &mut CallContext<'_>, name: &str, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Nil => Value::Nil,
        Value::Sequence(_) => value.clone(),
        Value::List(list) => {
            if list.is_empty() {
                Value::Nil
            } else {
                value.clone()
            }
        }
        Value::Lazy(cell) => match cell.realised() {
            Some(Value::List(list)) if list.is_empty() => Value::Nil,
            Some(value) => value,
            None => Value::Nil,
        },
        other => {
            account_for_walk(context, other)?;
            match Cursor::new(other) {
                Some(cursor) => cursor.into_value(),
                None => return Err(type_error(name, "a collection", other)),
            }
        }
    })
}

pub(crate) fn first(name: &str, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Nil => Value::Nil,
        Value::Vector(items) => items.get(0).cloned().unwrap_or_default(),
        Value::Sequence(sequence) => sequence.first(),
        Value::List(list) => list.node().map_or(Value::Nil, |node| node.first().clone()),
        Value::Lazy(cell) => match cell.realised() {
            Some(value) => first(name, &value)?,
            None => Value::Nil,
        },
        Value::Map(map) => match map.iter().next() {
            Some((key, value)) => Value::Vector(crate::value::Vector::entry(key.clone(), value.clone())),
            None => Value::Nil,
        },
        Value::Set(set) => set.iter().next().cloned().unwrap_or_default(),
        Value::String(text) => text.chars().next().map_or(Value::Nil, Value::Character),
        other => return Err(type_error(name, "a collection", other)),
    })
}

/// Returns the items after the first: a sequence, possibly lazy, or the empty list.
pub(crate) fn rest(context: &mut CallContext<'_>, name: &str, value: &Value) -> Result<Value> {
    let rest = match value {
        Value::Nil => Value::Nil,
        Value::Sequence(sequence) => {
            context.allocate(Sequence::BYTES)?;
            sequence.rest()
        }
        Value::List(list) => list.node().map_or(Value::Nil, |node| node.rest().clone()),
        Value::Lazy(cell) => match cell.realised() {
            Some(value) => return rest(context, name, &value),
            None => Value::Nil,
        },
        Value::Vector(items) => {
            context.allocate(Sequence::BYTES)?;
            Sequence::of(items.clone(), 1).map_or(Value::Nil, Value::Sequence)
        }
        other => {
            account_for_walk(context, other)?;
            let Some(mut cursor) = Cursor::new(other) else {
                return Err(type_error(name, "a collection", other));
            };
            let _ = cursor.next();
            cursor.into_value()
        }
    };
    Ok(if rest.is_nil() { Value::List(List::EMPTY) } else { rest })
}

fn cons(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    context.allocate(crate::value::ListNode::BYTES)?;
    let rest = match &arguments[1] {
        Value::Nil => return Ok(Value::List(List::EMPTY.push(arguments[0].clone()))),
        Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => arguments[1].clone(),
        other => seq(context, "cons", other)?,
    };
    Ok(Value::List(List::cons(arguments[0].clone(), rest)))
}

/// Counts the items of a collection. The spine must be realised.
pub(crate) fn count(context: &mut CallContext<'_>, value: &Value) -> Result<usize> {
    Ok(match value {
        Value::Nil => 0,
        Value::String(text) => text.units(),
        Value::Vector(items) => items.len(),
        Value::Map(map) => map.len(),
        Value::Set(set) => set.len(),
        Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => {
            let mut cursor = Cursor::new(value).unwrap_or(Cursor::End);
            let mut count = 0;
            loop {
                if let Some(left) = cursor.left() {
                    break count + left;
                }
                match cursor.next() {
                    CursorStep::Item(_) => count += 1,
                    _ => break count,
                }
                if count % 64 == 0 {
                    context.work(16)?;
                }
            }
        }
        other => return Err(type_error("count", "a collection", other)),
    })
}

fn last(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Vector(items) => Ok(items.last().cloned().unwrap_or_default()),
        Value::Map(map) => Ok(map.entries().pop().unwrap_or_default()),
        value => {
            account_for_walk(context, value)?;
            let Some(mut cursor) = Cursor::new(value) else {
                return Err(type_error("last", "a sequence", value));
            };
            let mut last = Value::Nil;
            while let CursorStep::Item(item) = cursor.next() {
                context.work(1)?;
                last = item;
            }
            Ok(last)
        }
    }
}

/// Reads an integer argument. A whole double is accepted, as `(int x)` would convert it.
pub(crate) fn integer(name: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Integer(value) => Ok(*value),
        // The results of `mod` and its like on big integers stay big even if they are small.
        Value::BigInteger(value) => num_traits::ToPrimitive::to_i64(&**value)
            .ok_or_else(|| Error::argument(format!("{name}: {value} is beyond 64 bits"))),
        Value::Float(value) if value.is_finite() => Ok(*value as i64),
        Value::Ratio(ratio) => Ok(num_traits::ToPrimitive::to_i64(&ratio.truncate()).unwrap_or(i64::MAX)),
        other => Err(type_error(name, "an integer", other)),
    }
}

/// Reads a number of items to take or to drop. A fraction counts as a whole item, since Clojure counts down
/// while the number is positive; a number that is not positive is none.
pub(crate) fn count_of(name: &str, value: &Value) -> Result<u64> {
    Ok(match value {
        Value::Integer(value) => u64::try_from(*value).unwrap_or(0),
        Value::BigInteger(value) if value.sign() == num_bigint::Sign::Minus => 0,
        Value::BigInteger(value) => num_traits::ToPrimitive::to_u64(&**value).unwrap_or(u64::MAX),
        // A conversion saturates, and NaN is none.
        Value::Float(value) => value.ceil() as u64,
        Value::Ratio(ratio) => {
            let whole = ratio.truncate();
            let is_negative = whole.sign() == num_bigint::Sign::Minus;
            let whole =
                num_traits::ToPrimitive::to_u64(&whole).unwrap_or(if is_negative { 0 } else { u64::MAX });
            // A ratio is never whole.
            if ratio.to_f64() > 0.0 { whole.saturating_add(1) } else { 0 }
        }
        other => return Err(type_error(name, "a number", other)),
    })
}

/// `nth` of an indexed value; sequences are handled by a frame.
fn nth_ready(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let index = integer("nth", &arguments[1])?;
    let found = match &arguments[0] {
        Value::Nil => return Ok(arguments.get(2).cloned().unwrap_or_default()),
        Value::Vector(_) | Value::String(_) => crate::machine::lookup(&arguments[0], &Value::Integer(index)),
        other => return Err(type_error("nth", "a sequence", other)),
    };
    match (found, arguments.get(2)) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(out_of_bounds(index)),
    }
}

/// The error for an index beyond the end.
#[cold]
pub(crate) fn out_of_bounds(index: i64) -> Error {
    Error::new(ErrorKind::IndexOutOfBounds, format!("nth: index {index} is out of bounds"))
        .hint("give a default: `(nth coll index nil)`")
}

/// `(range start end step)` of integers; an end of `nil` is never reached.
fn range(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let (start, step) = match (&arguments[0], &arguments[2]) {
        (Value::Integer(start), Value::Integer(step)) => (*start, *step),
        _ => return Err(type_error("range", "integers", &arguments[0])),
    };
    let count = match &arguments[1] {
        Value::Nil => u64::MAX,
        Value::Integer(end) => {
            let distance = i128::from(*end) - i128::from(start);
            let step = i128::from(step);
            if step == 0 {
                if distance == 0 { 0 } else { u64::MAX }
            } else if (distance > 0) != (step > 0) || distance == 0 {
                0
            } else {
                u64::try_from((distance.abs() + step.abs() - 1) / step.abs()).unwrap_or(u64::MAX - 1)
            }
        }
        other => return Err(type_error("range", "integers", other)),
    };
    Ok(Sequence::range(start, step, count).map_or(Value::List(List::EMPTY), Value::Sequence))
}

fn flatten(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    context.work(arguments[0].shape().weight() as usize / 8)?;
    let is_sequential = |value: &Value| {
        matches!(value, Value::Vector(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_))
    };
    if !is_sequential(&arguments[0]) {
        return Ok(Value::List(List::EMPTY));
    }
    let mut flat = Vec::new();
    let mut stack = vec![Cursor::new(&arguments[0]).unwrap_or(Cursor::End)];
    while let Some(cursor) = stack.last_mut() {
        effort::check(effort::touch(effort::ITEM))?;
        match cursor.next() {
            CursorStep::Item(item) if is_sequential(&item) => stack.extend(Cursor::new(&item)),
            CursorStep::Item(item) => {
                flat.push(item);
                context.limits.check_collection(flat.len())?;
            }
            _ => {
                stack.pop();
            }
        }
    }
    context.sequence(flat)
}
