//! Frames written in Rust: what library functions that call functions do between the calls.

use std::sync::Arc;

use super::fiber::Strand;
use super::request::Request;
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::value::{LazyCell, Value};

/// What a frame may use while it takes a step.
pub(crate) struct Host<'a> {
    pub(crate) shared: &'a mut Shared,
    pub(crate) strand: &'a mut Strand,
}

/// Enters a library function with its arguments, which are realised as far as it declares.
pub(crate) type Enter = fn(&mut Host<'_>, Vec<Value>) -> Result<Step>;

/// What is to be done next.
pub(crate) enum Step {
    /// The frame is done and gives this value.
    Return(Value),
    /// Calls a function; the frame goes on with its result.
    Call(Value, Arguments),
    /// Calls [`Work::function`] again, which is cheap if it has just returned.
    Repeat(Arguments),
    /// Calls a function in place of the frame.
    Become(Value, Arguments),
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

/// Arguments of a call, mostly few.
pub(crate) enum Arguments {
    None,
    One(Value),
    Two(Value, Value),
    Three(Value, Value, Value),
    Many(Vec<Value>),
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

    /// The function the frame calls over and over.
    fn function(&self) -> Option<&Value> {
        None
    }

    /// Every value the frame holds, for walks over everything that is alive.
    fn each(&self, look: &mut dyn FnMut(&Value));
}
