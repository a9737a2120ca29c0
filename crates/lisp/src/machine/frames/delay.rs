//! `delay` and `force`: a value that is computed on first use.
//!
//! A delay is an atom whose cell holds the function, and later the value, marked so that no program can write
//! it. So it is stored, rolled back and restored like any other atom.

use super::super::work::{Host, Step, Work};
use super::actions::{changeable, create_atom, set};
use super::take_first;
use crate::error::Result;
use crate::library::{Arity, Native};
use crate::value::{AtomRef, DELAY, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::acting("delay*", Arity::exactly(1), |host, a| {
        let cell = Value::vector(vec![Value::keyword(DELAY), take_first(a)]);
        Ok(Step::Return(create_atom(host, cell)))
    }),
    Native::acting("force", Arity::exactly(1), |host, a| match force(host, &a[0])? {
        Some(step) => Ok(step),
        None => Ok(Step::Return(a[0].clone())),
    }),
    Native::acting("delay?", Arity::exactly(1), |host, a| {
        Ok(Step::Return(Value::Boolean(cell_of(host, &a[0]).is_some())))
    }),
];

/// The state of a delay.
enum Delay {
    Pending(Value),
    Done(Value),
}

/// Returns the state of a delay; `None` for any other value.
fn cell_of(host: &Host<'_>, value: &Value) -> Option<(AtomRef, Delay)> {
    let Value::Atom(atom) = value else { return None };
    let (_, Value::Vector(cell)) = host.shared.memory.atoms.get(&atom.number())? else { return None };
    let is_delay = matches!(cell.get(0), Some(Value::Keyword(name)) if name.full() == DELAY);
    match (is_delay, cell.len()) {
        (true, 2) => Some((atom.clone(), Delay::Pending(cell.get(1)?.clone()))),
        (true, 3) => Some((atom.clone(), Delay::Done(cell.get(2)?.clone()))),
        _ => None,
    }
}

/// Returns the step that gives the value of a delay; `None` for any other value.
pub(super) fn force(host: &mut Host<'_>, value: &Value) -> Result<Option<Step>> {
    Ok(Some(match cell_of(host, value) {
        None => return Ok(None),
        Some((_, Delay::Done(value))) => Step::Return(value),
        Some((_, Delay::Pending(function))) => {
            // The effects of a delay from outside of a branch would happen in whichever branch comes first.
            let atom = changeable(host, "force", value)?;
            Step::Push(Box::new(Force { atom, function }))
        }
    }))
}

/// Returns whether a delay has its value; `None` for any other value.
pub(super) fn is_realised(host: &Host<'_>, value: &Value) -> Option<bool> {
    cell_of(host, value).map(|(_, delay)| matches!(delay, Delay::Done(_)))
}

/// Computes the value of a delay.
struct Force {
    atom: AtomRef,
    function: Value,
}

impl Work for Force {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        let Some(value) = incoming else { return Ok(Step::Call(self.function.clone(), Vec::new())) };
        let cell = Value::vector(vec![Value::keyword(DELAY), Value::Nil, value.clone()]);
        set(host, &self.atom, cell);
        Ok(Step::Return(value))
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.function);
        visit(&Value::Atom(self.atom.clone()));
    }
}
