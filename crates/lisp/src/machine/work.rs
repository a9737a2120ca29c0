//! Frames written in Rust: what library functions that call functions do between the calls.

use std::sync::Arc;

use super::fiber::Strand;
use super::request::Request;
use super::shared::SharedState;
use crate::error::{Error, Result};
use crate::value::{LazyCell, Value};

/// What a frame may use while it takes a step.
pub(crate) struct Host<'a> {
    pub(crate) shared: &'a mut SharedState,
    pub(crate) strand: &'a mut Strand,
    pub(crate) stack: &'a mut Vec<Value>,
}

impl Host<'_> {
    /// Makes room for the function below the arguments that are pushed next. Arguments go straight to the stack,
    /// because moving values about is what a short call spends its time with.
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

/// What is to be done next.
pub(crate) enum Step {
    /// The frame is done and gives this value.
    Return(Value),
    /// Calls a function; the frame goes on with its result.
    Call(Value, Vec<Value>),
    /// Calls [`Work::function`] with so many arguments, which [`Host::begin_call`] and pushes have put on the stack.
    /// This is cheap if the function has just returned.
    Repeat(usize),
    /// Calls a function in place of the frame.
    Become(Value, Vec<Value>),
    /// Realises a cell; the frame goes on without a value.
    Realise(Arc<LazyCell>),
    /// Runs another frame; this one goes on with its result.
    Push(Box<dyn Work>),
    /// The frame goes on at once, after the meter has been looked at.
    Pause,
    /// The frame is done without a value: whoever waited for it tries again.
    Retry,
    /// Throws.
    Throw(Value),
    /// Asks the host for something; the frame goes on with the answer.
    Ask(Box<Request>),
    /// Runs calls side by side; the frame goes on with the vector of their results.
    Fork(Vec<(Value, Vec<Value>)>),
    /// Ends the program.
    End(Signal, Value),
}

/// How a program ended itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// `(return value)`
    Return,
    /// `(fail value)`
    Fail,
}

/// A frame written in Rust.
pub(crate) trait Work: Send + Sync {
    /// Goes on, with the value that was waited for, if any.
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step>;

    /// Told that an error passes through. A step makes the error stop here.
    fn failed(&mut self, _error: &Error) -> Option<Step> {
        None
    }

    /// Whether the frame has counted itself among those that realise cells of outer fibers.
    fn leaves_foreign(&self) -> bool {
        false
    }

    /// Takes the result of [`Work::function`] and puts the arguments of its next call on the stack, if that is all there is to
    /// do and there are as many arguments as `wanted`. Gives whether it has. If not, nothing has changed, and the result is given
    /// to [`Work::step`]. What is charged is what a step would have charged.
    fn again(&mut self, _host: &mut Host<'_>, _result: &mut Value, _wanted: usize) -> bool {
        false
    }

    /// The function the frame calls over and over.
    fn function(&self) -> Option<&Value> {
        None
    }

    /// Every value the frame holds, for walks over everything that is alive.
    fn each(&self, look: &mut dyn FnMut(&Value));
}
