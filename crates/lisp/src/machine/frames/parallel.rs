//! `pmap` and `pcalls`: concurrent branches.

use super::super::work::{Host, Step, Work};
use crate::error::Result;
use crate::library::{Arity, Effects, Native, Realise, items};
use crate::value::{Sequence, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::frame("pmap", Arity::at_least(2), &[Realise::Not, Realise::Spine], Effects::Acts, |host, a| {
        let mut context = super::super::execute::frame_context("pmap", host);
        let sources =
            a[1..].iter().map(|value| items(&mut context, "pmap", value)).collect::<Result<Vec<_>>>()?;
        let length = sources.iter().map(Vec::len).min().unwrap_or(0);
        host.shared.meter.note(512 * length);
        let branches = (0..length)
            .map(|at| (a[0].clone(), sources.iter().map(|source| source[at].clone()).collect()))
            .collect();
        Ok(Step::Push(Box::new(Branches { calls: Some(branches) })))
    }),
    Native::acting("pcalls", Arity::at_least(0), |_, a| {
        let branches = a.into_iter().map(|function| (function, Vec::new())).collect();
        Ok(Step::Push(Box::new(Branches { calls: Some(branches) })))
    }),
];

/// Calls to run concurrently.
struct Branches {
    calls: Option<Vec<(Value, Vec<Value>)>>,
}

impl Work for Branches {
    fn step(&mut self, _: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        Ok(match (self.calls.take(), incoming) {
            (Some(calls), _) => Step::Fork(calls),
            (None, Some(Value::Vector(results))) => Step::Return(Sequence::realised(results.into_items())),
            (None, _) => Step::Return(Value::Nil),
        })
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        for (function, arguments) in self.calls.iter().flatten() {
            visit(function);
            arguments.iter().for_each(&mut *visit);
        }
    }
}
