//! Transitions between frames: calls, returns, failures and waits.

use std::sync::Arc;

use super::fiber::{CodeFrame, Exit, Fiber, FiberState, Frame};
use super::instructions::{FrameExit, discard};
use super::request::Request;
use super::shared::SharedState;
use super::work::Host;
use crate::value::Value;

/// The continuation after a run of code.
pub(super) enum Flow {
    /// An action other than the next instruction.
    Pending(FiberState),
    Exit(Exit),
}

impl Fiber {
    /// Executes instructions until control leaves the code frames.
    pub(super) fn run_code(&mut self, mut frame: CodeFrame, shared: &mut SharedState) -> Flow {
        loop {
            match self.run_frame(&mut frame, shared) {
                FrameExit::Enter(count) => {
                    let floor = self.stack.len() - count - 1;
                    let Value::Closure(closure) = std::mem::take(&mut self.stack[floor]) else { continue };
                    match self.enter(closure, count, shared) {
                        Ok(next) => self.frames.push(Frame::Code(std::mem::replace(&mut frame, next))),
                        Err(error) => {
                            self.frames.push(Frame::Code(frame));
                            return Flow::Pending(FiberState::Raise(error.into()));
                        }
                    }
                }
                FrameExit::Return(mut value) => {
                    if self.call_again(&mut frame, &mut value, shared) {
                        continue;
                    }
                    self.stack.truncate(frame.base - 1);
                    match self.frames.pop() {
                        Some(Frame::Code(caller)) => {
                            self.stack.push(value);
                            frame = caller;
                        }
                        Some(Frame::Native(work, floor)) => {
                            self.last = Some(frame.closure);
                            if shared.meter.is_pressed() {
                                self.frames.push(Frame::Native(work, floor));
                                return Flow::Pending(FiberState::Deliver(value));
                            }
                            if let Some(exit) = self.step_work(work, floor, Some(value), shared) {
                                return Flow::Exit(exit);
                            }
                            // Usually the frame calls the next function, which runs right here.
                            match (&self.pending, self.frames.pop()) {
                                (FiberState::Run, Some(Frame::Code(next))) => frame = next,
                                (_, top) => {
                                    self.frames.extend(top);
                                    return Flow::Pending(std::mem::replace(
                                        &mut self.pending,
                                        FiberState::Run,
                                    ));
                                }
                            }
                        }
                        None => return Flow::Pending(FiberState::Deliver(value)),
                    }
                }
                FrameExit::Invoke(count) => {
                    self.frames.push(Frame::Code(frame));
                    return Flow::Pending(FiberState::Invoke(count));
                }
                FrameExit::Raise(raised) => {
                    self.frames.push(Frame::Code(frame));
                    return Flow::Pending(FiberState::Raise(*raised));
                }
                FrameExit::Work(work) => {
                    self.frames.push(Frame::Code(frame));
                    self.frames.push(Frame::Native(work, self.stack.len()));
                    return Flow::Pending(self.check_depth(shared));
                }
                FrameExit::Step(step) => {
                    self.frames.push(Frame::Code(frame));
                    return match self.take_step(*step, shared) {
                        Some(exit) => Flow::Exit(exit),
                        None => Flow::Pending(std::mem::replace(&mut self.pending, FiberState::Run)),
                    };
                }
                FrameExit::Collect => {
                    self.frames.push(Frame::Code(frame));
                    self.pending = FiberState::Run;
                    return Flow::Exit(Exit::Collect);
                }
                FrameExit::Record(record, value) => {
                    self.frames.push(Frame::Code(frame));
                    self.frames
                        .push(Frame::Native(Box::new(super::tools::TaskRecording(value)), self.stack.len()));
                    self.pending = FiberState::Waiting(Box::new(Request::Record(*record)));
                    return Flow::Exit(Exit::Waiting);
                }
            }
        }
    }

    /// Lets the frame written in Rust below, whose function has just returned, call it again with the next
    /// arguments. A loop over a long sequence does this nearly always, and here it moves no frames. If any
    /// other action is required, returns false and leaves the result in place.
    #[inline]
    fn call_again(&mut self, frame: &mut CodeFrame, result: &mut Value, shared: &mut SharedState) -> bool {
        let Some(Frame::Native(work, _)) = self.frames.last_mut() else { return false };
        match work.function() {
            Some(Value::Closure(function))
                if Arc::ptr_eq(function, &frame.closure) && !shared.meter.is_pressed() => {}
            _ => return false,
        }
        let body = frame.closure.body(frame.arity);
        while self.stack.len() > frame.base {
            discard(&mut self.stack);
        }
        let mut host = Host { shared, strand: &mut self.strand, stack: &mut self.stack };
        let wanted = if body.variadic { usize::MAX } else { usize::from(body.parameters) };
        if !work.again(&mut host, result, wanted) {
            return false;
        }
        for _ in body.parameters..body.slots {
            self.stack.push(Value::Nil);
        }
        frame.pc = 0;
        true
    }
}
