//! `some`, `every?` and their like: loops that stop early.

use super::super::natives::call_in_place;
use super::super::work::{Host, Step, Work};
use super::{Given, cursor};
use crate::error::Result;
use crate::library::{Arity, Effects, Native};
use crate::value::{Cursor, Next, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::frame("some", Arity::exactly(2), &[], Effects::Calls, |_, a| search("some", a, Until::Truthy)),
    Native::frame("every?", Arity::exactly(2), &[], Effects::Calls, |_, a| search("every?", a, Until::Falsy)),
    Native::frame("not-any?", Arity::exactly(2), &[], Effects::Calls, |_, a| {
        search("not-any?", a, Until::AnyTruthy)
    }),
    Native::frame("not-every?", Arity::exactly(2), &[], Effects::Calls, |_, a| {
        search("not-every?", a, Until::AnyFalsy)
    }),
];

/// What ends the search, and how it answers.
#[derive(Clone, Copy)]
enum Until {
    Truthy,
    Falsy,
    AnyTruthy,
    AnyFalsy,
}

fn search(name: &'static str, arguments: Vec<Value>, until: Until) -> Result<Step> {
    let mut a = Given::new(arguments);
    let predicate = a.take();
    let source = cursor(name, &a.take())?;
    Ok(Step::Push(Box::new(Search { predicate, source, until })))
}

struct Search {
    predicate: Value,
    source: Cursor,
    until: Until,
}

impl Work for Search {
    fn step(&mut self, host: &mut Host<'_>, mut incoming: Option<Value>) -> Result<Step> {
        loop {
            if let Some(answer) = incoming.take() {
                match (self.until, answer.is_truthy()) {
                    (Until::Truthy, true) => return Ok(Step::Return(answer)),
                    (Until::Falsy, false) | (Until::AnyTruthy, true) => {
                        return Ok(Step::Return(Value::Boolean(false)));
                    }
                    (Until::AnyFalsy, false) => return Ok(Step::Return(Value::Boolean(true))),
                    _ => {}
                }
            }
            let item = match self.source.next() {
                Next::Item(item) => item,
                Next::Blocked(cell) => return Ok(Step::Realise(cell)),
                Next::End => {
                    return Ok(Step::Return(match self.until {
                        Until::Truthy => Value::Nil,
                        Until::Falsy | Until::AnyTruthy => Value::Boolean(true),
                        Until::AnyFalsy => Value::Boolean(false),
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

    fn each(&self, look: &mut dyn FnMut(&Value)) {
        look(&self.predicate);
        self.source.each(look);
    }
}
