//! `apply`: a call with the items of a sequence as arguments.
//!
//! A function of the library gets all items, as many as a collection may have. A function of the program with
//! a rest parameter gets only as many as it names, and the rest of the sequence unrealised, so that
//! `(apply (fn [a & more] a) (range))` ends.

use std::sync::Arc;

use super::super::natives;
use super::super::work::{Host, Step, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::library::Native;
use crate::value::{Closure, Cursor, CursorStep, Sequence, Thunk, Value, Vector};

/// The most arguments of a function of the program. They are on the stack.
const MOST_ON_STACK: usize = 50_000;

pub(super) fn apply(host: &mut Host<'_>, mut arguments: Vec<Value>) -> Result<Step> {
    let last = arguments.pop().unwrap_or_default();
    let rest = super::cursor("apply", &last)?;
    let mut a = arguments.into_iter();
    let mut function = a.next().unwrap_or_default();
    while let Value::Var(name) = &function {
        host.shared.meter.work(1)?;
        function = host.shared.global_named(name.full())?;
    }
    let arguments: Vec<Value> = a.collect();
    if let Value::Native(Native { name: "concat", .. }) = function {
        // Joining is lazy, also in the sequences that are joined.
        let current = Cursor::Items(Vector::from(arguments), 0, rest.into_value());
        let thunk = Thunk::Concat { current: Cursor::End, sources: current };
        return Ok(Step::Return(host.shared.cell(thunk, host.strand.id)));
    }
    let wanted = Wanted::of(&function, host.shared.limits.collection_size);
    Ok(Step::Push(Box::new(Apply { function, arguments, rest, wanted, is_called: false })))
}

/// The number of items that a function wants before it can be called.
#[derive(Clone, Copy)]
enum Wanted {
    /// All, but not more than this.
    All(usize),
    /// No more than this: then its rest parameter takes the others.
    UpTo(usize),
}

impl Wanted {
    fn of(function: &Value, most: usize) -> Self {
        match function {
            // Each of its arguments becomes a branch.
            Value::Native(Native { name: "pcalls", .. }) => Self::All(MOST_ON_STACK.min(most)),
            Value::Native(_) => Self::All(most),
            Value::Closure(closure) => match most_named(closure) {
                Some(named) => Self::UpTo(named + 1),
                None => Self::All(MOST_ON_STACK.min(most)),
            },
            _ => Self::All(MOST_ON_STACK.min(most)),
        }
    }
}

/// The most parameters that any arity of a function with a rest parameter names.
fn most_named(closure: &Closure) -> Option<usize> {
    let function = closure.function();
    let variadic = usize::from(function.variadic.as_ref()?.parameters);
    Some(function.fixed.iter().map(|body| usize::from(body.parameters)).fold(variadic, usize::max))
}

/// Collects the arguments of `apply`.
struct Apply {
    function: Value,
    arguments: Vec<Value>,
    rest: Cursor,
    wanted: Wanted,
    /// Whether a function of the library has been called and its result is awaited.
    is_called: bool,
}

impl Apply {
    fn too_many(most: usize) -> Error {
        Error::new(ErrorKind::SizeExceeded, format!("apply: more than {most} arguments"))
            .hint("the sequence is too long or has no end: use `reduce`, or `(take n ...)` around it")
    }

    /// Calls the function with all arguments.
    fn call(&mut self, host: &mut Host<'_>) -> Result<Step> {
        let arguments = std::mem::take(&mut self.arguments);
        match &self.function {
            // Not by way of the stack, which has less room.
            Value::Native(native) => {
                let native = *native;
                self.is_called = true;
                natives::call(native, arguments, host)
            }
            function => Ok(Step::Become(function.clone(), arguments)),
        }
    }

    /// Calls a function of the program with the rest of the sequence as its rest parameter.
    fn call_with_rest(&mut self, closure: Arc<Closure>) -> Step {
        let named = closure.function().variadic.as_ref().map_or(0, |body| usize::from(body.parameters));
        let more = self.arguments.split_off(named.min(self.arguments.len()));
        let rest = std::mem::replace(&mut self.rest, Cursor::End).into_value();
        let rest = Sequence::chunk(Vector::from(more), 0, rest).map_or(Value::Nil, Value::Sequence);
        Step::BecomeWithRest(closure, std::mem::take(&mut self.arguments), rest)
    }
}

impl Work for Apply {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        if self.is_called {
            return Ok(match incoming {
                Some(value) => Step::Return(value),
                None => Step::Retry,
            });
        }
        loop {
            match (self.wanted, &self.function) {
                (Wanted::UpTo(most), Value::Closure(closure)) if self.arguments.len() >= most => {
                    return Ok(self.call_with_rest(closure.clone()));
                }
                (Wanted::All(most), _) if self.arguments.len() > most => return Err(Self::too_many(most)),
                _ => {}
            }
            match self.rest.next() {
                CursorStep::Item(item) => {
                    host.shared.meter.work(1)?;
                    // The list of arguments itself is not a value that a count of live memory finds.
                    if self.arguments.len() > host.shared.limits.memory_bytes / 32 {
                        return Err(host.shared.meter.exceeded());
                    }
                    self.arguments.push(item);
                }
                CursorStep::End => return self.call(host),
                CursorStep::Blocked(cell) => return Ok(Step::Realise(cell)),
            }
        }
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.function);
        self.arguments.iter().for_each(&mut *visit);
        self.rest.each(visit);
    }
}
