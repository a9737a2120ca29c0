//! `some`, `every?` and similar loops that stop early.

use super::super::natives::call_in_place;
use super::super::work::{Host, Step, Work};
use super::{cursor, take};
use crate::error::Result;
use crate::library::{Arity, Native};
use crate::value::{Cursor, CursorStep, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::calling("some", Arity::exactly(2), |_, a| search("some", a, SearchEnd::Truthy)),
    Native::calling("every?", Arity::exactly(2), |_, a| search("every?", a, SearchEnd::Falsy)),
    Native::calling("not-any?", Arity::exactly(2), |_, a| search("not-any?", a, SearchEnd::AnyTruthy)),
    Native::calling("not-every?", Arity::exactly(2), |_, a| search("not-every?", a, SearchEnd::AnyFalsy)),
];

/// The condition that ends the search, and its result.
#[derive(Clone, Copy)]
enum SearchEnd {
    Truthy,
    Falsy,
    AnyTruthy,
    AnyFalsy,
}

fn search(name: &'static str, arguments: Vec<Value>, until: SearchEnd) -> Result<Step> {
    let [predicate, source] = take(arguments);
    let source = cursor(name, &source)?;
    Ok(Step::Push(Box::new(Search { predicate, source, until })))
}

struct Search {
    predicate: Value,
    source: Cursor,
    until: SearchEnd,
}

impl Work for Search {
    fn step(&mut self, host: &mut Host<'_>, mut incoming: Option<Value>) -> Result<Step> {
        loop {
            if let Some(answer) = incoming.take() {
                match (self.until, answer.is_truthy()) {
                    (SearchEnd::Truthy, true) => return Ok(Step::Return(answer)),
                    (SearchEnd::Falsy, false) | (SearchEnd::AnyTruthy, true) => {
                        return Ok(Step::Return(Value::Boolean(false)));
                    }
                    (SearchEnd::AnyFalsy, false) => return Ok(Step::Return(Value::Boolean(true))),
                    _ => {}
                }
            }
            let item = match self.source.next() {
                CursorStep::Item(item) => item,
                CursorStep::Blocked(cell) => return Ok(Step::Realise(cell)),
                CursorStep::End => {
                    return Ok(Step::Return(match self.until {
                        SearchEnd::Truthy => Value::Nil,
                        SearchEnd::Falsy | SearchEnd::AnyTruthy => Value::Boolean(true),
                        SearchEnd::AnyFalsy => Value::Boolean(false),
                    }));
                }
            };
            match call_in_place(&self.predicate, std::slice::from_ref(&item), host) {
                Some(result) => {
                    host.shared.meter.work(1)?;
                    incoming = Some(result?);
                }
                None => return Ok(host.call_one(item)),
            }
        }
    }

    fn function(&self) -> Option<&Value> {
        Some(&self.predicate)
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.predicate);
        self.source.each(visit);
    }
}
