//! Frames written in Rust: the state of library functions between the calls that they make.

use std::sync::Arc;

use super::fiber::Strand;
use super::request::Request;
use super::shared::SharedState;
use crate::error::{Error, Result};
use crate::value::{Closure, LazyCell, Value};

/// The resources of a frame during a step.
pub(crate) struct Host<'a> {
    pub(crate) shared: &'a mut SharedState,
    pub(crate) strand: &'a mut Strand,
    pub(crate) stack: &'a mut Vec<Value>,
}

impl Host<'_> {
    /// Makes room for the function below the arguments that are pushed next. Arguments are pushed directly on
    /// the stack, because moving values dominates the cost of a short call.
    #[inline]
    pub(crate) fn begin_call(&mut self) {
        self.stack.push(Value::Nil);
    }

    /// Calls [`Work::function`] with one argument.
    #[inline]
    pub(crate) fn call_one(&mut self, argument: Value) -> Step {
        self.begin_call();
        self.stack.push(argument);
        Step::Repeat(1)
    }
}

/// Enters a library function with its arguments, which are realised as far as it declares.
pub(crate) type Enter = fn(&mut Host<'_>, Vec<Value>) -> Result<Step>;

/// The next action of a frame.
pub(crate) enum Step {
    /// The frame returns this value.
    Return(Value),
    /// Calls a function; the frame continues with its result.
    Call(Value, Vec<Value>),
    /// Calls [`Work::function`] with this many arguments, which [`Host::begin_call`] and pushes have put on
    /// the stack. This is cheap if the function has just returned.
    Repeat(usize),
    /// Calls a function in place of the frame.
    Become(Value, Vec<Value>),
    /// Calls a function of the program in place of the frame, with this value as its rest parameter.
    BecomeWithRest(Arc<Closure>, Vec<Value>, Value),
    /// Realises a cell; the frame continues without a value.
    Realise(Arc<LazyCell>),
    /// Runs another frame; this one continues with its result.
    Push(Box<dyn Work>),
    /// The frame continues at once, after a check of the meter.
    Pause,
    /// The frame ends without a value: the frame that waits for it retries.
    Retry,
    Throw(Value),
    /// Sends a request to the host; the frame continues with the answer.
    Ask(Box<Request>),
    /// Runs calls concurrently; the frame continues with the vector of their results.
    Fork(Vec<(Value, Vec<Value>)>),
    /// Ends the program.
    End(Signal, Value),
}

/// The form with which a program ended itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// `(return value)`
    Return,
    /// `(fail value)`
    Fail,
}

/// A frame written in Rust.
pub(crate) trait Work: Send + Sync {
    /// Continues with the awaited value, if any.
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step>;

    /// Handles a propagating error. If it returns true, the propagation stops and the frame below is resumed.
    fn recover(&mut self, _error: &Error) -> bool {
        false
    }

    /// Adds to an error what only this frame knows about it.
    fn explained(&self, error: Error) -> Error {
        error
    }

    /// Returns whether the frame has begun to collect what is printed.
    fn captures_prints(&self) -> bool {
        false
    }

    /// Returns whether the frame counts in the number of foreign realisations of its fiber.
    fn leaves_foreign(&self) -> bool {
        false
    }

    /// Takes the result of [`Work::function`] and pushes the arguments of its next call, if nothing else is
    /// required and the number of arguments is `wanted`. Returns whether it did. If not, nothing has changed,
    /// and the result is passed to [`Work::step`]. It charges the same as a step.
    fn again(&mut self, _host: &mut Host<'_>, _result: &mut Value, _wanted: usize) -> bool {
        false
    }

    /// Returns the function that the frame calls repeatedly.
    fn function(&self) -> Option<&Value> {
        None
    }

    /// Visits every value that the frame refers to, for walks over live memory.
    fn each(&self, visit: &mut dyn FnMut(&Value));
}
