//! The loop that runs a fiber: it resumes the frame on top with the value that the frame has been waiting
//! for.
//!
//! Nothing in here recurses: calling a function pushes a frame, and so does every call that a library
//! function makes.

use std::sync::Arc;

use super::fiber::{CodeFrame, Exit, Fiber, FiberState, Frame, Strand};
use super::instructions::charge_keys;
use super::run::Flow;
use super::shared::SharedState;
use super::work::{Host, Step, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{CallContext, Native, Realise};
use crate::value::{Closure, Sequence, Value, Vector};

impl Fiber {
    /// Runs until the fiber is finished or has to wait.
    pub(crate) fn execute(&mut self, shared: &mut SharedState) -> Exit {
        loop {
            let exit = match std::mem::replace(&mut self.pending, FiberState::Run) {
                FiberState::Run => match self.frames.pop() {
                    Some(Frame::Code(frame)) => match self.run_code(frame, shared) {
                        Flow::Pending(pending) => {
                            self.pending = pending;
                            None
                        }
                        Flow::Exit(exit) => Some(exit),
                    },
                    _ => self.raise(Error::new(ErrorKind::Internal, "no code to run")),
                },
                FiberState::Invoke(count) => match self.invoke(count, shared) {
                    Ok(step) => self.take_step(step, shared),
                    Err(error) => self.raise(error),
                },
                FiberState::Deliver(value) => self.deliver(Some(value), shared),
                FiberState::Resume => self.deliver(None, shared),
                FiberState::Raise(raised) => (!self.unwind(raised)).then(|| {
                    if let FiberState::Done(Err(raised)) = &mut self.pending {
                        let error = self.strand.missed.explain(raised.error.clone());
                        raised.error = error;
                    }
                    Exit::Done
                }),
                waiting @ (FiberState::Waiting(_) | FiberState::Joining) => {
                    self.pending = waiting;
                    Some(Exit::Waiting)
                }
                done @ FiberState::Done(_) => {
                    self.pending = done;
                    Some(Exit::Done)
                }
            };
            if let Some(exit) = exit {
                return exit;
            }
        }
    }

    fn raise(&mut self, error: Error) -> Option<Exit> {
        self.pending = FiberState::Raise(error.into());
        None
    }

    /// Continues the frame on top, with the value that it waits for if there is one.
    fn deliver(&mut self, value: Option<Value>, shared: &mut SharedState) -> Option<Exit> {
        match self.frames.pop() {
            None => {
                self.pending = FiberState::Done(Ok(value.unwrap_or_default()));
                Some(Exit::Done)
            }
            Some(Frame::Code(frame)) => {
                self.stack.extend(value);
                self.frames.push(Frame::Code(frame));
                None
            }
            Some(frame) if shared.meter.is_pressed() => {
                self.frames.push(frame);
                self.pending = value.map_or(FiberState::Resume, FiberState::Deliver);
                Some(Exit::Collect)
            }
            Some(Frame::Native(work, floor)) => self.step_work(work, floor, value, shared),
        }
    }

    /// Runs a step of a frame written in Rust.
    pub(super) fn step_work(
        &mut self,
        mut work: Box<dyn Work>,
        floor: usize,
        incoming: Option<Value>,
        shared: &mut SharedState,
    ) -> Option<Exit> {
        self.stack.truncate(floor);
        let charged = shared.meter.work(1);
        let mut host = Host { shared, strand: &mut self.strand, stack: &mut self.stack };
        let stepped = charged.and_then(|()| work.step(&mut host, incoming));
        let step = match shared.meter.pay().and(stepped) {
            Ok(step) => step,
            Err(error) => {
                self.frames.push(Frame::Native(work, floor));
                if error.kind() == ErrorKind::MemoryExceeded && shared.meter.was_refused() {
                    self.pending = FiberState::Resume;
                    return Some(Exit::Collect);
                }
                return self.raise(error);
            }
        };
        if let Step::Repeat(count) = step {
            // The function that has just returned is called again: its closure is available.
            let last = self.last.take();
            match (work.function(), last) {
                (Some(Value::Closure(function)), Some(last)) if Arc::ptr_eq(function, &last) => {
                    self.frames.push(Frame::Native(work, floor));
                    let entered = self.enter(last, count, shared);
                    self.pending = self.run_entered(entered);
                }
                (function, _) => {
                    let place = self.stack.len() - count - 1;
                    self.stack[place] = function.cloned().unwrap_or_default();
                    self.frames.push(Frame::Native(work, floor));
                    self.pending = FiberState::Invoke(count);
                }
            }
            return None;
        }
        match step {
            Step::Return(_) | Step::Become(..) | Step::BecomeWithRest(..) | Step::Retry | Step::End(..) => {}
            _ => self.frames.push(Frame::Native(work, floor)),
        }
        self.take_step(step, shared)
    }

    /// Executes a step. The frame on top waits for its result.
    pub(super) fn take_step(&mut self, step: Step, shared: &mut SharedState) -> Option<Exit> {
        self.pending = match step {
            Step::Return(value) => match shared.limits.check_depth(value.depth()) {
                Ok(()) => FiberState::Deliver(value),
                Err(error) => FiberState::Raise(error.into()),
            },
            Step::Call(function, arguments) | Step::Become(function, arguments) => {
                let (function, closure) = match function {
                    Value::Closure(closure) => (Value::Nil, Some(closure)),
                    other => (other, None),
                };
                self.stack.push(function);
                let count = arguments.len();
                self.stack.extend(arguments);
                match closure.map(|closure| self.enter(closure, count, shared)) {
                    Some(entered) => self.run_entered(entered),
                    None => FiberState::Invoke(count),
                }
            }
            Step::BecomeWithRest(closure, arguments, rest) => {
                self.stack.push(Value::Nil);
                let entered = self.enter_with_rest(closure, arguments, rest, shared);
                self.run_entered(entered)
            }
            Step::Realise(cell) => match super::realise::start(cell, &mut self.strand) {
                Ok(work) => {
                    self.frames.push(Frame::Native(work, self.stack.len()));
                    self.check_depth(shared)
                }
                Err(error) => FiberState::Raise(error.into()),
            },
            Step::Push(work) => {
                self.frames.push(Frame::Native(work, self.stack.len()));
                self.check_depth(shared)
            }
            Step::Retry | Step::Pause => FiberState::Resume,
            // Only a frame can repeat its call, and that is handled before this point.
            Step::Repeat(_) => FiberState::Raise(Error::new(ErrorKind::Internal, "nothing to repeat").into()),
            Step::Throw(value) => FiberState::Raise(super::unwind::raise(value)),
            Step::Ask(request) => {
                self.pending = FiberState::Waiting(request);
                return Some(Exit::Waiting);
            }
            Step::Fork(branches) => {
                self.pending = FiberState::Joining;
                return Some(Exit::Fork(branches));
            }
            Step::End(signal, value) => return Some(Exit::End(signal, value)),
        };
        None
    }

    #[inline]
    fn run_entered(&mut self, entered: Result<CodeFrame>) -> FiberState {
        match entered {
            Ok(frame) => {
                self.frames.push(Frame::Code(frame));
                FiberState::Run
            }
            Err(error) => FiberState::Raise(error.into()),
        }
    }

    pub(super) fn check_depth(&self, shared: &SharedState) -> FiberState {
        match self.check_frames(shared) {
            Ok(()) => FiberState::Resume,
            Err(error) => FiberState::Raise(error.into()),
        }
    }

    /// Returns an error if there are too many frames.
    #[inline]
    fn check_frames(&self, shared: &SharedState) -> Result<()> {
        // Locals are on the value stack: deep recursion with many locals must not exhaust memory either.
        if self.frames.len() < shared.limits.stack_depth && self.stack.len() < shared.limits.memory_bytes / 64
        {
            return Ok(());
        }
        let message = format!("calls are nested more than {} deep", shared.limits.stack_depth);
        Err(Error::new(ErrorKind::StackExceeded, message)
            .hint("use loop/recur, reduce or iterate instead of recursion"))
    }

    /// Calls the function below the `count` arguments on top of the stack. The waiting frame is on top.
    fn invoke(&mut self, count: usize, shared: &mut SharedState) -> Result<Step> {
        let floor = self.stack.len() - count - 1;
        let mut is_first = true;
        while let Value::Var(name) = &self.stack[floor] {
            // A var may refer to another var, and finally to itself: following them must end.
            if !std::mem::take(&mut is_first) {
                shared.meter.work(1)?;
            }
            self.stack[floor] = shared.global_named(name.full())?;
        }
        match &self.stack[floor] {
            Value::Closure(closure) => {
                let closure = closure.clone();
                let frame = self.enter(closure, count, shared)?;
                self.frames.push(Frame::Code(frame));
                // `Resume` finds the code frame on top and runs it.
                Ok(Step::Retry)
            }
            Value::Native(native) => {
                let native = *native;
                let arguments = self.stack.split_off(floor + 1);
                self.stack.truncate(floor);
                let mut host = Host { shared, strand: &mut self.strand, stack: &mut self.stack };
                super::natives::call(native, arguments, &mut host)
            }
            Value::Tool(name) => {
                let name = name.clone();
                let arguments = self.stack.split_off(floor + 1);
                self.stack.truncate(floor);
                Ok(Step::Push(Box::new(super::tools::CallTool::new(name.full(), arguments))))
            }
            _ => {
                charge_keys(&self.stack[floor + 1..], shared)?;
                let value = super::invoke::call_data(&self.stack[floor..], &mut self.strand.missed)?;
                shared.meter.pay()?;
                self.stack.truncate(floor);
                Ok(Step::Return(value))
            }
        }
    }

    /// Creates a frame for a call of a closure with the `count` arguments on top of the stack.
    #[inline]
    pub(super) fn enter(
        &mut self,
        closure: Arc<Closure>,
        count: usize,
        shared: &mut SharedState,
    ) -> Result<CodeFrame> {
        let Some(arity) = closure.function().arity(count) else {
            return Err(super::invoke::wrong_arity(&closure, count));
        };
        let body = closure.body(arity);
        let base = self.stack.len() - count;
        if body.variadic {
            let fixed = usize::from(body.parameters);
            let rest = if count > fixed {
                let rest = self.stack.split_off(base + fixed);
                shared.meter.note(96 + 16 * rest.len());
                Sequence::of(Vector::from(rest), 0).map_or(Value::Nil, Value::Sequence)
            } else {
                Value::Nil
            };
            self.stack.push(rest);
        }
        self.make_room(base + usize::from(body.slots), shared)?;
        Ok(CodeFrame { closure, arity, pc: 0, base })
    }

    /// Makes room for the local names of a frame up to a height of the stack.
    #[inline]
    fn make_room(&mut self, height: usize, shared: &SharedState) -> Result<()> {
        if self.stack.len() < height {
            self.stack.resize(height, Value::Nil);
        }
        self.check_frames(shared)
    }

    /// Creates a frame for a call of a closure whose rest parameter has this value.
    fn enter_with_rest(
        &mut self,
        closure: Arc<Closure>,
        arguments: Vec<Value>,
        rest: Value,
        shared: &mut SharedState,
    ) -> Result<CodeFrame> {
        let Some(body) = &closure.function().variadic else {
            return Err(super::invoke::wrong_arity(&closure, arguments.len() + 1));
        };
        let base = self.stack.len();
        let height = base + usize::from(body.slots);
        let arity = closure.function().fixed.len() as u32;
        self.stack.extend(arguments);
        self.stack.push(rest);
        self.make_room(height, shared)?;
        Ok(CodeFrame { closure, arity, pc: 0, base })
    }
}

/// Creates the context of a leaf function.
pub(super) fn context<'a>(
    name: &'static str,
    shared: &'a mut SharedState,
    strand: &'a mut Strand,
) -> CallContext<'a> {
    let (limits, meter, now) = (&shared.limits, &mut shared.meter, shared.now);
    CallContext { name, limits, meter, random: &mut strand.random, now, only_notes: false }
}

/// Creates the context that a frame passes to library functions.
pub(super) fn frame_context<'a>(name: &'static str, host: &'a mut Host<'_>) -> CallContext<'a> {
    CallContext { only_notes: true, ..context(name, host.shared, host.strand) }
}

/// Returns the frame that realises the arguments of a native function as far as it requires; `None` if they
/// are ready.
#[inline]
pub(super) fn unrealised(
    native: &Native,
    arguments: &[Value],
    shared: &mut SharedState,
) -> Result<Option<Box<dyn Work>>> {
    if native.realise.is_empty() {
        return Ok(None);
    }
    for (index, argument) in arguments.iter().enumerate() {
        match argument {
            Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Keyword(_) => {
                continue;
            }
            _ => {}
        }
        let shape = argument.shape();
        let wanted = match native.realise_at(index) {
            level @ (Realise::Element | Realise::Elements) => match arguments.first() {
                Some(Value::Map(_) | Value::Set(_)) => Realise::Deep,
                _ if level == Realise::Elements => Realise::Spine,
                _ => Realise::Not,
            },
            other => other,
        };
        if wanted == Realise::Deep {
            // A function that reads everything costs as much as there is.
            shared.meter.work(shape.weight() / 8)?;
        }
        if wanted != Realise::Not
            && shape.may_hold_lazy()
            && let Some(work) =
                super::realise::pending(std::slice::from_ref(argument), wanted, shared, false)?
        {
            return Ok(Some(work));
        }
    }
    Ok(None)
}
