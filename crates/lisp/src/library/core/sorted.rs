//! Maps and sets with a comparator of the program. The search for the place of a key calls that function, so it
//! is written in the language: these are the parts that it needs.

use super::DEEP;
use crate::error::Result;
use crate::library::{Arity, CallContext, Native, Realise, type_error};
use crate::value::{Map, Set, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::unary("sorted-map-of*", |c, a| {
        c.allocate(256)?;
        Ok(Value::Map(Map::sorted_by(comparator("sorted-map-by", &a[0])?)))
    }),
    Native::unary("sorted-set-of*", |c, a| {
        c.allocate(256)?;
        Ok(Value::Set(Set::sorted_by(comparator("sorted-set-by", &a[0])?)))
    }),
    Native::unary("sorted-comparator*", |_, a| Ok(comparator_of(&a[0]).cloned().unwrap_or_default())),
    Native::binary("sorted-nth*", |_, a| {
        let found = match (&a[0], index(&a[1])) {
            (Value::Map(map), Some(index)) => map.key_at(index),
            (Value::Set(set), Some(index)) => set.value_at(index),
            _ => None,
        };
        Ok(found.cloned().unwrap_or_default())
    }),
    // The arguments are the collection, the index of a new key, the key, and for a map its value.
    Native::taking("sorted-put*", Arity::between(3, 4), &[Realise::Not, Realise::Deep, Realise::Deep], put),
    Native::leaf("sorted?", Arity::exactly(1), DEEP, |_, a| Ok(comparator_of(&a[0]).is_some().into())),
];

/// Returns the comparator that the program gave a map or set.
pub(crate) fn comparator_of(value: &Value) -> Option<&Value> {
    match value {
        Value::Map(map) => map.comparator(),
        Value::Set(set) => set.comparator(),
        _ => None,
    }
}

fn comparator(name: &str, value: &Value) -> Result<Value> {
    match value {
        Value::Closure(_) | Value::Native(_) | Value::Tool(_) | Value::Var(_) => Ok(value.clone()),
        other => Err(type_error(name, "a function as comparator", other)),
    }
}

fn index(value: &Value) -> Option<usize> {
    match value {
        Value::Integer(index) => usize::try_from(*index).ok(),
        _ => None,
    }
}

fn put(context: &mut CallContext<'_>, arguments: &mut [Value]) -> Result<Value> {
    let (length, cost) = match &arguments[0] {
        Value::Map(map) => (map.len(), map.change_cost()),
        Value::Set(set) => (set.len(), set.change_cost()),
        other => return Err(type_error("assoc", "a map or a set", other)),
    };
    context.limits.check_collection(length + 1)?;
    context.work(1)?;
    context.allocate(cost + 32)?;
    let at = index(&arguments[1]).unwrap_or(length);
    let key = std::mem::take(&mut arguments[2]);
    let value = arguments.get_mut(3).map(std::mem::take);
    Ok(match std::mem::take(&mut arguments[0]) {
        Value::Map(mut map) => {
            map.insert_at(at, key, value.unwrap_or_default());
            Value::Map(map)
        }
        Value::Set(mut set) => {
            set.insert_at(at, key);
            Value::Set(set)
        }
        other => other,
    })
}
