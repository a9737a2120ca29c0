//! Functions that return lazy sequences.

use super::super::work::{Host, Step, Work};
use super::{cursor, prelude, take_first};
use crate::error::Result;
use crate::library::{Arity, Effects, Native, Realise};
use crate::value::{Cursor, CursorStep, Each, List, Thunk, Value, Vector};

pub(crate) const NATIVES: &[Native] = &[
    Native::calling("map", Arity::at_least(1), map),
    Native::calling("map-indexed", Arity::between(1, 2), |h, a| {
        each(h, a, "map-indexed", Each::MapIndexed(0))
    }),
    Native::calling("filter", Arity::between(1, 2), |h, a| each(h, a, "filter", Each::Filter(true))),
    Native::calling("remove", Arity::between(1, 2), |h, a| each(h, a, "remove", Each::Filter(false))),
    Native::calling("keep", Arity::between(1, 2), |h, a| each(h, a, "keep", Each::Keep)),
    Native::calling("take-while", Arity::between(1, 2), |h, a| each(h, a, "take-while", Each::TakeWhile)),
    Native::calling("mapcat*", Arity::at_least(2), mapcat),
    Native::frame("concat", Arity::at_least(0), &[], Effects::Pure, concat),
    Native::frame("concat-all*", Arity::exactly(1), &[], Effects::Pure, |h, a| {
        let sources = cursor("concat", &a[0])?;
        lazy(h, Thunk::Concat { current: Cursor::End, sources })
    }),
    Native::frame("take", Arity::between(1, 2), &[], Effects::Pure, take),
    Native::calling("iterate", Arity::exactly(2), |h, a| {
        let [function, value] = super::take(a);
        let rest = cell(h, Thunk::Iterate { function, value: value.clone() });
        Ok(Step::Return(Value::List(List::cons(value, rest))))
    }),
    Native::frame("repeat", Arity::between(1, 2), &[], Effects::Pure, |h, a| {
        let (count, value) = match a.len() {
            1 => (u64::MAX, a[0].clone()),
            _ => {
                let count = crate::library::integer("repeat", &a[0])?;
                (u64::try_from(count).unwrap_or(0).min(u64::MAX - 1), a[1].clone())
            }
        };
        lazy(h, Thunk::Repeat { value, count })
    }),
    Native::frame("cycle", Arity::exactly(1), &[], Effects::Pure, |h, a| {
        let source = cursor("cycle", &a[0])?;
        lazy(h, Thunk::Cycle { all: a[0].clone(), source })
    }),
    Native::frame("skip*", Arity::exactly(2), &[], Effects::Pure, |_, a| {
        let left = crate::library::count_of("drop", &a[0])?;
        Ok(Step::Push(Box::new(Skip { cursor: cursor("drop", &a[1])?, left })))
    }),
    Native::frame("nth", Arity::between(2, 3), &[], Effects::Pure, nth),
    Native::frame("doall", Arity::between(1, 2), &[Realise::Spine], Effects::Pure, |_, mut a| {
        Ok(Step::Return(a.pop().unwrap_or_default()))
    }),
    Native::frame("dorun", Arity::between(1, 2), &[Realise::Spine], Effects::Pure, |_, _| {
        Ok(Step::Return(Value::Nil))
    }),
    Native::acting("realized?", Arity::exactly(1), |host, a| {
        let is_realised = match &a[0] {
            Value::Lazy(cell) => cell.is_realised(),
            other => super::delay::is_realised(host, other).unwrap_or(true),
        };
        Ok(Step::Return(is_realised.into()))
    }),
];

fn cell(host: &mut Host<'_>, thunk: Thunk) -> Value {
    host.shared.cell(thunk, host.strand.id)
}

fn lazy(host: &mut Host<'_>, thunk: Thunk) -> Result<Step> {
    Ok(Step::Return(cell(host, thunk)))
}

fn map(host: &mut Host<'_>, arguments: Vec<Value>) -> Result<Step> {
    if arguments.len() <= 2 {
        return each(host, arguments, "map", Each::Map);
    }
    let sources = arguments[1..].iter().map(|value| cursor("map", value)).collect::<Result<Vec<_>>>()?;
    lazy(host, Thunk::MapMany { function: take_first(arguments), sources })
}

/// Returns the sequence of a function and the items of a collection, or the transducer of the function.
fn each(host: &mut Host<'_>, arguments: Vec<Value>, name: &str, each: Each) -> Result<Step> {
    if arguments.len() == 1 {
        return prelude(host.shared, &format!("{name}-transducer*"), arguments);
    }
    let source = cursor(name, &arguments[1])?;
    lazy(host, Thunk::Each { each, function: take_first(arguments), source })
}

fn mapcat(host: &mut Host<'_>, arguments: Vec<Value>) -> Result<Step> {
    let Step::Return(sources) = map(host, arguments)? else { return Ok(Step::Return(Value::Nil)) };
    let sources = cursor("mapcat", &sources)?;
    lazy(host, Thunk::Concat { current: Cursor::End, sources })
}

fn concat(host: &mut Host<'_>, arguments: Vec<Value>) -> Result<Step> {
    for value in &arguments {
        cursor("concat", value)?;
    }
    let sources = Cursor::Items(Vector::from(arguments), 0, Value::Nil);
    lazy(host, Thunk::Concat { current: Cursor::End, sources })
}

fn take(host: &mut Host<'_>, arguments: Vec<Value>) -> Result<Step> {
    if arguments.len() == 1 {
        return prelude(host.shared, "take-transducer*", arguments);
    }
    let count = crate::library::count_of("take", &arguments[0])?;
    let source = cursor("take", &arguments[1])?;
    lazy(host, Thunk::Take { count, source })
}

/// Skips items.
struct Skip {
    cursor: Cursor,
    left: u64,
}

impl Work for Skip {
    fn step(&mut self, host: &mut Host<'_>, _: Option<Value>) -> Result<Step> {
        // Indexed values are skipped at once.
        match &mut self.cursor {
            Cursor::Items(items, at, _) => {
                let skipped = (items.len().saturating_sub(*at) as u64).min(self.left);
                *at += skipped as usize;
                self.left -= skipped;
            }
            Cursor::Range(next, step, left) if *left != u64::MAX => {
                let skipped = (*left).min(self.left);
                let distance = i64::try_from(skipped).unwrap_or(i64::MAX).saturating_mul(*step);
                *next = next.saturating_add(distance);
                *left -= skipped;
                self.left = 0;
            }
            _ => {}
        }
        while self.left > 0 {
            match self.cursor.next() {
                CursorStep::Item(_) => {
                    host.shared.meter.work(1)?;
                    self.left -= 1;
                }
                CursorStep::End => self.left = 0,
                CursorStep::Blocked(cell) => return Ok(Step::Realise(cell)),
            }
        }
        let rest = std::mem::replace(&mut self.cursor, Cursor::End).into_value();
        Ok(Step::Return(if rest.is_nil() { Value::List(List::EMPTY) } else { rest }))
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        self.cursor.each(visit);
    }
}

fn nth(_: &mut Host<'_>, arguments: Vec<Value>) -> Result<Step> {
    let index = match &arguments[1] {
        Value::Integer(index) => *index,
        other => crate::library::integer("nth", other)?,
    };
    let default = arguments.get(2).cloned();
    match &arguments[0] {
        Value::Nil => Ok(Step::Return(default.unwrap_or_default())),
        Value::Vector(_) | Value::String(_) => {
            match (super::super::invoke::lookup(&arguments[0], &Value::Integer(index)), default) {
                (Some(value), _) => Ok(Step::Return(value)),
                (None, Some(default)) => Ok(Step::Return(default)),
                (None, None) => Err(crate::library::out_of_bounds(index)),
            }
        }
        Value::Map(_) | Value::Set(_) => Err(crate::library::type_error("nth", "a sequence", &arguments[0])),
        other => {
            let cursor = cursor("nth", other)?;
            if index < 0 {
                return default.map(Step::Return).ok_or_else(|| crate::library::out_of_bounds(index));
            }
            Ok(Step::Push(Box::new(Nth { cursor, left: index.unsigned_abs(), index, default })))
        }
    }
}

struct Nth {
    cursor: Cursor,
    left: u64,
    index: i64,
    default: Option<Value>,
}

impl Work for Nth {
    fn step(&mut self, host: &mut Host<'_>, _: Option<Value>) -> Result<Step> {
        loop {
            match self.cursor.next() {
                CursorStep::Item(item) if self.left == 0 => return Ok(Step::Return(item)),
                CursorStep::Item(_) => {
                    host.shared.meter.work(1)?;
                    self.left -= 1;
                }
                CursorStep::End => {
                    return self
                        .default
                        .take()
                        .map(Step::Return)
                        .ok_or_else(|| crate::library::out_of_bounds(self.index));
                }
                CursorStep::Blocked(cell) => return Ok(Step::Realise(cell)),
            }
        }
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        self.cursor.each(&mut *visit);
        if let Some(default) = &self.default {
            visit(default);
        }
    }
}
