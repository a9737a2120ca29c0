//! A thread of control: frames, operands and handlers. The program is one fiber, each branch of `pmap`
//! another.

use std::sync::Arc;

use super::missed::MissedKeys;
use super::prints::PrintLog;
use super::random::Random;
use super::request::{CallPath, Request};
use super::work::{Signal, Work};
use crate::error::Error;
use crate::value::{Closure, Stamp, Value};

/// A call of a function written in the language.
pub(crate) struct CodeFrame {
    pub(crate) closure: Arc<Closure>,
    /// The body of the function: an index, or the number of fixed-arity bodies for the variadic one.
    pub(crate) arity: u32,
    pub(crate) pc: usize,
    /// The start of its locals on the stack. The function itself is one below.
    pub(crate) base: usize,
}

pub(crate) enum Frame {
    Code(CodeFrame),
    /// A frame written in Rust, and the height of the stack before it.
    Native(Box<dyn Work>, usize),
}

/// An exception handler.
pub(crate) struct Handler {
    /// The index of the frame.
    pub(crate) frame: usize,
    pub(crate) pc: usize,
    pub(crate) height: usize,
}

/// A propagating error, with the value that the program threw, if any.
pub(crate) struct ThrownError {
    pub(crate) error: Error,
    pub(crate) thrown: Option<Value>,
}

impl From<Error> for ThrownError {
    fn from(error: Error) -> Self {
        Self { error, thrown: None }
    }
}

/// The next action of a fiber.
pub(crate) enum FiberState {
    /// Executes the code frame on top.
    Run,
    /// Calls the function below this many arguments on the stack.
    Invoke(usize),
    /// Passes a value to the frame on top.
    Deliver(Value),
    /// Resumes the frame on top without a value.
    Resume,
    Raise(ThrownError),
    /// Waits for the host.
    Waiting(Box<Request>),
    /// Waits for its branches.
    Joining,
    Done(Result<Value, ThrownError>),
}

/// The reason why a fiber stopped.
pub(crate) enum Exit {
    Done,
    Waiting,
    Fork(Vec<(Value, Vec<Value>)>),
    /// The meter requests a count of live memory.
    Collect,
    End(Signal, Value),
}

/// The identity of a fiber.
#[derive(Default)]
pub(crate) struct Strand {
    pub(crate) id: u32,
    /// The ancestors of this fiber, outermost first. They wait for it.
    pub(crate) ancestors: Arc<[u32]>,
    pub(crate) branches: Arc<[(u32, u32)]>,
    /// Requests made so far.
    pub(crate) requests: u32,
    /// Forks made so far.
    pub(crate) forks: u32,
    pub(crate) random: Random,
    pub(crate) next_stamp: u64,
    pub(crate) prints: PrintLog,
    /// The number of cells of outer fibers that are being realised. No effects are allowed during that.
    pub(crate) foreign: u32,
    /// Atoms created in this fiber, which it may change.
    pub(crate) own_atoms: Vec<u64>,
    /// Keys that lookups did not find.
    pub(crate) missed: MissedKeys,
}

impl Strand {
    pub(crate) fn stamp(&mut self) -> Stamp {
        let stamp = Stamp(self.next_stamp);
        self.next_stamp = self.next_stamp.wrapping_add(1);
        stamp
    }

    /// Returns the path of the next request.
    pub(crate) fn path(&mut self) -> CallPath {
        self.requests += 1;
        CallPath { branches: self.branches.clone(), count: self.requests - 1 }
    }

    pub(crate) fn is_branch(&self) -> bool {
        !self.ancestors.is_empty()
    }
}

pub(crate) struct Fiber {
    pub(crate) strand: Strand,
    pub(crate) stack: Vec<Value>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) pending: FiberState,
    /// The function that returned last to a frame written in Rust, which may call it again.
    pub(crate) last: Option<Arc<Closure>>,
}

impl Fiber {
    pub(crate) fn new(strand: Strand, function: Value, arguments: Vec<Value>) -> Self {
        let count = arguments.len();
        let mut stack = Vec::with_capacity(32);
        stack.push(function);
        stack.extend(arguments);
        Self {
            strand,
            stack,
            frames: Vec::with_capacity(8),
            handlers: Vec::new(),
            pending: FiberState::Invoke(count),
            last: None,
        }
    }

    /// Visits every value that the fiber refers to.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&Value)) {
        self.stack.iter().for_each(&mut *visit);
        for frame in &self.frames {
            match frame {
                Frame::Code(frame) => frame.closure.captured().iter().for_each(&mut *visit),
                Frame::Native(work, _) => work.each(visit),
            }
        }
        match &self.pending {
            FiberState::Deliver(value) | FiberState::Done(Ok(value)) => visit(value),
            FiberState::Raise(ThrownError { thrown: Some(value), .. }) => visit(value),
            FiberState::Waiting(request) => match &**request {
                Request::Tool(call) => visit(&call.arguments),
                Request::Record(record) => visit(&record.value),
            },
            _ => {}
        }
    }
}
