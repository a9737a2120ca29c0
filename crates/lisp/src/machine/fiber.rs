//! A thread of control: frames, operands and handlers. The program is one, each branch of `pmap` another.

use std::sync::Arc;

use super::random::Random;
use super::request::{CallPath, Request};
use super::work::{Signal, Work};
use crate::error::Error;
use crate::value::{Closure, Stamp, Value};

/// A call of a function written in the language.
pub(crate) struct CodeFrame {
    pub(crate) closure: Arc<Closure>,
    /// Which body of the function: an index, or the number of them for the variadic one.
    pub(crate) arity: u32,
    pub(crate) pc: usize,
    /// Where its locals begin on the stack. The function itself lies one below.
    pub(crate) base: usize,
}

/// A frame.
pub(crate) enum Frame {
    Code(CodeFrame),
    /// A frame written in Rust, and how high the stack was before it.
    Native(Box<dyn Work>, usize),
}

/// Where an exception goes.
pub(crate) struct Handler {
    /// The index of the frame.
    pub(crate) frame: usize,
    pub(crate) pc: usize,
    pub(crate) height: usize,
}

/// An error on its way out, with the value that was thrown, if the program threw one.
pub(crate) struct ThrownError {
    pub(crate) error: Error,
    pub(crate) thrown: Option<Value>,
}

impl From<Error> for ThrownError {
    fn from(error: Error) -> Self {
        Self { error, thrown: None }
    }
}

/// What a fiber does next.
pub(crate) enum FiberState {
    /// Executes the code frame on top.
    Run,
    /// Calls: the function and so many arguments lie on the stack.
    Invoke(usize),
    /// Gives a value to the frame on top.
    Deliver(Value),
    /// Lets the frame on top go on without a value.
    Resume,
    Raise(ThrownError),
    /// Waits for the host.
    Waiting(Box<Request>),
    /// Waits for its branches.
    Joining,
    Done(Result<Value, ThrownError>),
}

/// Why a fiber stopped.
pub(crate) enum Exit {
    Done,
    Waiting,
    Fork(Vec<(Value, Vec<Value>)>),
    /// The meter asks to look what is alive.
    Collect,
    End(Signal, Value),
}

/// What distinguishes a fiber from others.
pub(crate) struct Strand {
    pub(crate) id: u32,
    /// The fibers that wait for this one, outermost first.
    pub(crate) ancestors: Arc<[u32]>,
    pub(crate) branches: Arc<[(u32, u32)]>,
    /// Requests made so far.
    pub(crate) requests: u32,
    /// Forks made so far.
    pub(crate) forks: u32,
    pub(crate) random: Random,
    pub(crate) next_stamp: u64,
    pub(crate) prints: Vec<String>,
    /// How many cells of outer fibers are being realised: no effects are allowed in there.
    pub(crate) foreign: u32,
    /// Atoms made in this fiber, which it may change.
    pub(crate) own_atoms: Vec<u64>,
}

impl Strand {
    pub(crate) fn stamp(&mut self) -> Stamp {
        let stamp = Stamp(self.next_stamp);
        self.next_stamp = self.next_stamp.wrapping_add(1);
        stamp
    }

    /// The name of the next request.
    pub(crate) fn path(&mut self) -> CallPath {
        self.requests += 1;
        CallPath { branches: self.branches.clone(), count: self.requests - 1 }
    }

    pub(crate) fn is_branch(&self) -> bool {
        !self.ancestors.is_empty()
    }
}

/// A thread of control.
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

    /// Every value the fiber holds.
    pub(crate) fn each(&self, look: &mut dyn FnMut(&Value)) {
        self.stack.iter().for_each(&mut *look);
        for frame in &self.frames {
            match frame {
                Frame::Code(frame) => frame.closure.captured().iter().for_each(&mut *look),
                Frame::Native(work, _) => work.each(look),
            }
        }
        match &self.pending {
            FiberState::Deliver(value) | FiberState::Done(Ok(value)) => look(value),
            FiberState::Raise(ThrownError { thrown: Some(value), .. }) => look(value),
            FiberState::Waiting(request) => match &**request {
                Request::Tool(call) => look(&call.arguments),
                Request::Record(record) => look(&record.value),
            },
            _ => {}
        }
    }
}
