//! `+` and its family.

use super::NOT;
use crate::error::Result;
use crate::library::{Arity, CallContext, Native};
use crate::value::Value;
use crate::value::number::{self, Division, Overflow};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("+", Arity::at_least(0), NOT, |c, a| sum(c, a, Overflow::Fail)).quick(|a, b| match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.checked_add(*b).map(Value::Integer),
        (Value::Float(a), Value::Float(b)) => Some(Value::Float(a + b)),
        _ => None,
    }),
    Native::leaf("+'", Arity::at_least(0), NOT, |c, a| sum(c, a, Overflow::Promote)),
    Native::leaf("-", Arity::at_least(1), NOT, |c, a| difference(c, a, Overflow::Fail)),
    Native::leaf("-'", Arity::at_least(1), NOT, |c, a| difference(c, a, Overflow::Promote)),
    Native::leaf("*", Arity::at_least(0), NOT, |c, a| product(c, a, Overflow::Fail)).quick(|a, b| {
        match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => a.checked_mul(*b).map(Value::Integer),
            (Value::Float(a), Value::Float(b)) => Some(Value::Float(a * b)),
            _ => None,
        }
    }),
    Native::leaf("*'", Arity::at_least(0), NOT, |c, a| product(c, a, Overflow::Promote)),
    Native::leaf("/", Arity::at_least(1), NOT, quotient),
    // `/` of a first argument that is known to be a double when the program is compiled.
    Native::leaf("divide-double*", Arity::at_least(2), NOT, |c, a| {
        let (first, rest) = (a[0].clone(), &a[1..]);
        rest.iter().try_fold(first, |left, next| match (&left, number::to_f64(next)) {
            (Value::Float(left), Some(next)) => Ok(Value::Float(left / next)),
            _ => c.number(number::divide(&left, next)?),
        })
    }),
    Native::unary("inc", |c, a| step(c, &a[0], 1, Overflow::Fail)),
    Native::unary("inc'", |c, a| step(c, &a[0], 1, Overflow::Promote)),
    Native::unary("dec", |c, a| step(c, &a[0], -1, Overflow::Fail)),
    Native::unary("dec'", |c, a| step(c, &a[0], -1, Overflow::Promote)),
    Native::binary("quot", |c, a| whole(c, a, Division::Quotient)),
    Native::binary("rem", |c, a| whole(c, a, Division::Remainder)),
    Native::binary("mod", |c, a| whole(c, a, Division::Modulus)),
    Native::leaf("max", Arity::at_least(1), NOT, |c, a| extreme(c.name, a, true)).quick(|a, b| {
        match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => Some(Value::Integer(*a.max(b))),
            _ => None,
        }
    }),
    Native::leaf("min", Arity::at_least(1), NOT, |c, a| extreme(c.name, a, false)).quick(|a, b| {
        match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => Some(Value::Integer(*a.min(b))),
            _ => None,
        }
    }),
];

fn check_numeric(name: &str, value: &Value) -> Result<()> {
    if number::is_number(value) { Ok(()) } else { Err(number::not_a_number(name, value)) }
}

fn sum(context: &mut CallContext<'_>, arguments: &[Value], overflow: Overflow) -> Result<Value> {
    let Some((first, rest)) = arguments.split_first() else { return Ok(Value::Integer(0)) };
    // Clojure casts a single argument, and nil can be cast to any type.
    if !(rest.is_empty() && first.is_nil()) {
        check_numeric("+", first)?;
    }
    rest.iter().try_fold(first.clone(), |total, next| context.number(number::add(&total, next, overflow)?))
}

fn difference(context: &mut CallContext<'_>, arguments: &[Value], overflow: Overflow) -> Result<Value> {
    match arguments {
        [only] => context.number(number::negate(only, overflow)?),
        [first, rest @ ..] => rest
            .iter()
            .try_fold(first.clone(), |left, next| context.number(number::subtract(&left, next, overflow)?)),
        [] => Ok(Value::Nil),
    }
}

fn product(context: &mut CallContext<'_>, arguments: &[Value], overflow: Overflow) -> Result<Value> {
    let Some((first, rest)) = arguments.split_first() else { return Ok(Value::Integer(1)) };
    if !(rest.is_empty() && first.is_nil()) {
        check_numeric("*", first)?;
    }
    rest.iter().try_fold(first.clone(), |total, next| {
        // The product is as long as both factors together: refuse it before computing it.
        let bits = number::bits(&total).saturating_add(number::bits(next));
        if bits > 128 {
            context.limits.check_number(bits.saturating_sub(1))?;
        }
        context.number(number::multiply(&total, next, overflow)?)
    })
}

fn quotient(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    match arguments {
        [only] => {
            check_numeric("/", only)?;
            context.number(number::divide(&Value::Integer(1), only)?)
        }
        [first, rest @ ..] => {
            rest.iter().try_fold(first.clone(), |left, next| context.number(number::divide(&left, next)?))
        }
        [] => Ok(Value::Nil),
    }
}

fn step(context: &mut CallContext<'_>, value: &Value, by: i64, overflow: Overflow) -> Result<Value> {
    let name = if by > 0 { "inc" } else { "dec" };
    check_numeric(name, value)?;
    context.number(number::add(value, &Value::Integer(by), overflow)?)
}

fn whole(context: &mut CallContext<'_>, arguments: &[Value], wanted: Division) -> Result<Value> {
    context.number(number::divide_whole(&arguments[0], &arguments[1], wanted)?)
}

fn extreme(name: &str, arguments: &[Value], largest: bool) -> Result<Value> {
    // A single argument is returned unchanged, as in Clojure.
    let mut best = &arguments[0];
    for next in &arguments[1..] {
        let is_nan = |value: &Value| matches!(value, Value::Float(value) if value.is_nan());
        let order = number::compare_numbers(name, best, next)?;
        if is_nan(best) {
            continue;
        }
        // Of two equal values the later one is returned, as in Clojure.
        let replace = if largest {
            order.is_none_or(|order| !order.is_gt())
        } else {
            order.is_none_or(|order| !order.is_lt())
        };
        if is_nan(next) || replace {
            best = next;
        }
    }
    Ok(best.clone())
}
