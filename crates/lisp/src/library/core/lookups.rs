//! Lookups in maps, sets and vectors.

use super::sequences::{integer, items};
use super::{NEXT, SPINE};
use crate::error::{Error, Result};
use crate::library::{Arity, CallContext, Native, Realise, type_error};
use crate::machine::lookup;
use crate::value::{Map, Sequence, Value, Vector};

const KEY: &[Realise] = &[Realise::Not, Realise::Deep, Realise::Not];

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("get", Arity::between(2, 3), KEY, |_, a| {
        Ok(lookup(&a[0], &a[1]).unwrap_or_else(|| a.get(2).cloned().unwrap_or_default()))
    }),
    Native::leaf("get-in", Arity::between(2, 3), KEY, get_in),
    Native::leaf("contains?", Arity::exactly(2), KEY, contains),
    Native::leaf("find", Arity::exactly(2), KEY, find),
    Native::leaf("keys", Arity::exactly(1), SPINE, |c, a| parts(c, "keys", &a[0], 0)),
    Native::leaf("vals", Arity::exactly(1), SPINE, |c, a| parts(c, "vals", &a[0], 1)),
    Native::unary("key", |c, a| part(c.name, &a[0], 0)),
    Native::unary("val", |c, a| part(c.name, &a[0], 1)),
    Native::binary("map-entry*", |_, a| Ok(Value::Vector(Vector::entry(a[0].clone(), a[1].clone())))),
    // The entry of `zipmap`: a key is compared with others, so all of it is realised and charged.
    Native::leaf("zip-entry*", Arity::exactly(2), &[Realise::Deep, Realise::Not], |c, a| {
        c.allocate(160)?;
        Ok(Value::Vector(Vector::entry(a[0].clone(), a[1].clone())))
    }),
    Native::leaf("select-keys", Arity::exactly(2), &[Realise::Not, Realise::Deep], select_keys),
    Native::leaf("destructure-map*", Arity::exactly(1), SPINE, destructure_map),
    Native::leaf("entries", Arity::exactly(1), NEXT, |c, a| match &a[0] {
        Value::Map(map) => c.vector(map.entries()),
        Value::Nil => Ok(Value::vector(Vec::new())),
        other => Err(c.type_error("a map", other)),
    }),
    Native::leaf("pluck", Arity::exactly(2), &[Realise::Deep, Realise::Spine], |c, a| {
        let rows = items(c, "pluck", &a[1])?;
        let found = rows.iter().map(|row| lookup(row, &a[0]).unwrap_or_default()).collect();
        c.sequence(found)
    }),
];

fn get_in(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let path = items(context, "get-in", &arguments[1])?;
    let mut found = Some(arguments[0].clone());
    for key in &path {
        found = found.and_then(|value| lookup(&value, key));
    }
    Ok(found.unwrap_or_else(|| arguments.get(2).cloned().unwrap_or_default()))
}

fn contains(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let key = &arguments[1];
    Ok(match &arguments[0] {
        Value::Nil => false,
        Value::Map(map) => map.contains_key(key),
        Value::Set(set) => set.contains(key),
        Value::Vector(vector) => {
            matches!(key, Value::Integer(index) if usize::try_from(*index).is_ok_and(|index| index < vector.len()))
        }
        Value::String(text) => match key {
            Value::Integer(_) | Value::Float(_) | Value::Ratio(_) => {
                let index = integer("contains?", key)?;
                usize::try_from(index).is_ok_and(|index| index < text.units())
            }
            other => return Err(type_error("contains?", "an index into the string", other).hint("use `str/includes?`")),
        },
        other => {
            return Err(type_error("contains?", "a map, a set or a vector", other)
                .hint("to find an item of a sequence use `(some #{item} coll)`"));
        }
    }
    .into())
}

fn find(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let key = &arguments[1];
    Ok(match &arguments[0] {
        Value::Nil => Value::Nil,
        Value::Map(map) => match map.get_entry(key) {
            Some((key, value)) => Value::Vector(Vector::entry(key.clone(), value.clone())),
            None => Value::Nil,
        },
        Value::Vector(_) => match lookup(&arguments[0], key) {
            Some(value) => Value::Vector(Vector::entry(key.clone(), value)),
            None => Value::Nil,
        },
        other => return Err(type_error("find", "a map or a vector", other)),
    })
}

fn parts(context: &mut CallContext<'_>, name: &str, value: &Value, which: usize) -> Result<Value> {
    let found: Vec<Value> = match value {
        Value::Map(map) => {
            context.collection(map.len())?;
            if which == 0 { map.keys().cloned().collect() } else { map.values().cloned().collect() }
        }
        Value::Nil => return Ok(Value::Nil),
        other => {
            let entries = items(context, name, other)?;
            entries.iter().map(|entry| part(name, entry, which)).collect::<Result<_>>()?
        }
    };
    Ok(if found.is_empty() { Value::Nil } else { Sequence::realised(found) })
}

fn part(name: &str, value: &Value, which: usize) -> Result<Value> {
    match value {
        Value::Vector(vector) if vector.is_entry() => Ok(vector.get(which).cloned().unwrap_or_default()),
        other => Err(type_error(name, "an entry of a map", other)),
    }
}

fn select_keys(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let keys = items(context, "select-keys", &arguments[1])?;
    context.allocate(64 * keys.len())?;
    let mut selected = match &arguments[0] {
        Value::Map(map) if map.is_flexible() => Map::new().flexible(),
        _ => Map::new(),
    };
    for key in keys {
        match &arguments[0] {
            Value::Map(map) => {
                if let Some((key, value)) = map.get_entry(&key) {
                    selected.insert(key.clone(), value.clone());
                }
            }
            Value::Nil => {}
            Value::Vector(_) => {
                if let Some(value) = lookup(&arguments[0], &key) {
                    selected.insert(key, value);
                }
            }
            other => return Err(type_error("select-keys", "a map", other)),
        }
    }
    Ok(Value::Map(selected))
}

/// Returns the map that a map pattern reads: a sequence is taken as alternating keys and values, with an
/// optional map at its end.
fn destructure_map(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    match &arguments[0] {
        Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => {
            let items = items(context, "destructuring", &arguments[0])?;
            if let [only @ Value::Map(_)] = items.as_slice() {
                return Ok(only.clone());
            }
            let (pairs, last) = match items.split_last() {
                Some((last @ Value::Map(_), pairs)) if items.len() % 2 == 1 => (pairs, Some(last)),
                Some((last, _)) if items.len() % 2 == 1 => {
                    return Err(Error::argument(format!("no value supplied for key {last:?}")));
                }
                _ => (items.as_slice(), None),
            };
            let mut map: Map = pairs.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
            if let Some(Value::Map(last)) = last {
                for (key, value) in last {
                    map.insert(key.clone(), value.clone());
                }
            }
            Ok(Value::Map(map))
        }
        other => Ok(other.clone()),
    }
}
