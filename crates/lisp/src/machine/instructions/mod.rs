//! The instructions and their effects on the stack.
//!
//! An instruction whose operands must be realised first is executed again after that; so is one that reaches
//! the memory limit before live memory has been counted. Until an instruction is complete, its operands stay
//! on the stack.

mod arithmetic;
mod call;
mod construct;
mod special;

use std::cmp::Ordering;

use super::fiber::{CodeFrame, Fiber, Handler, ThrownError};
use super::request::TaskRecord;
use super::shared::SharedState;
use super::work::{Step, Work};
use crate::compile::Op;
use crate::error::Error;
use crate::value::{Value, number};

pub(super) use call::charge_keys;

/// The action after a run of instructions of a frame.
pub(super) enum FrameExit {
    /// Calls the closure below this many arguments.
    Enter(usize),
    /// Calls the value below this many arguments.
    Invoke(usize),
    Return(Value),
    Raise(Box<ThrownError>),
    /// Runs a frame written in Rust.
    Work(Box<dyn Work>),
    Step(Box<Step>),
    Collect,
    Record(Box<TaskRecord>, Value),
}

/// The reason why an instruction did not lead to the next one.
enum Stop {
    /// It is complete, and this action precedes the next one.
    Then(FrameExit),
    /// It has not begun, and is executed again after this action.
    Retry(FrameExit),
}

impl From<Error> for Stop {
    #[cold]
    fn from(error: Error) -> Self {
        Stop::Then(FrameExit::Raise(Box::new(error.into())))
    }
}

/// The result of an instruction that may not lead to the next one.
type InstructionResult<T = ()> = std::result::Result<T, Stop>;

/// Realises a cell, or everything in a value, before the instruction is executed again.
fn after(work: Option<Box<dyn Work>>) -> InstructionResult {
    match work {
        Some(work) => Err(Stop::Retry(FrameExit::Work(work))),
        None => Ok(()),
    }
}

/// Drops a value. Most values dropped by instructions are plain, and those skip the general drop.
#[inline]
fn let_go(value: Value) {
    match value {
        Value::Nil | Value::Boolean(_) | Value::Integer(_) => std::mem::forget(value),
        value => drop(value),
    }
}

/// Drops the value on top of the stack.
#[inline]
pub(super) fn discard(stack: &mut Vec<Value>) {
    if let Some(value) = stack.pop() {
        let_go(value);
    }
}

/// Replaces a value by another.
#[inline]
fn put(place: &mut Value, value: Value) {
    let_go(std::mem::replace(place, value));
}

impl Fiber {
    /// Executes the instructions of one frame until an action other than the next instruction is required.
    pub(super) fn run_frame(&mut self, frame: &mut CodeFrame, shared: &mut SharedState) -> FrameExit {
        let body = frame.closure.body(frame.arity);
        let captured = frame.closure.captured();
        let base = frame.base;
        let mut pc = frame.pc;
        let next = 'run: {
            macro_rules! check {
                ($result:expr) => {
                    match $result {
                        Ok(value) => value,
                        Err(error) => {
                            let error: Error = error;
                            break 'run FrameExit::Raise(Box::new(error.into()));
                        }
                    }
                };
            }
            macro_rules! done {
                ($done:expr) => {
                    match $done {
                        Ok(value) => value,
                        Err(Stop::Then(next)) => break 'run next,
                        Err(Stop::Retry(next)) => {
                            pc -= 1;
                            break 'run next;
                        }
                    }
                };
            }
            macro_rules! collect_if_pressed {
                () => {
                    if shared.meter.is_pressed() {
                        pc -= 1;
                        break 'run FrameExit::Collect;
                    }
                };
            }
            macro_rules! arithmetic {
                ($checked:ident, $slow:path) => {
                    if let [.., Value::Integer(a), Value::Integer(b)] = self.stack.as_mut_slice()
                        && let Some(result) = a.$checked(*b)
                    {
                        *a = result;
                        discard(&mut self.stack);
                    } else {
                        check!(self.compute($slow, shared));
                    }
                };
            }
            // The variant with a constant saves an instruction and is charged as the two that it stands for.
            macro_rules! arithmetic_with {
                ($constant:expr, $checked:ident, $slow:path) => {{
                    check!(shared.meter.work(1));
                    if let Some(Value::Integer(a)) = self.stack.last_mut()
                        && let Some(result) = a.$checked($constant)
                    {
                        *a = result;
                    } else {
                        self.stack.push(Value::Integer($constant));
                        check!(self.compute($slow, shared));
                    }
                }};
            }
            macro_rules! comparison {
                ($name:literal, $operator:tt, $holds:expr) => {
                    if let [.., Value::Integer(a), Value::Integer(b)] = self.stack.as_slice() {
                        let holds = *a $operator *b;
                        discard(&mut self.stack);
                        if let Some(place) = self.stack.last_mut() {
                            put(place, Value::Boolean(holds));
                        }
                    } else {
                        check!(self.compare($name, $holds, shared));
                    }
                };
            }
            macro_rules! comparison_with {
                ($constant:expr, $name:literal, $operator:tt, $holds:expr) => {{
                    check!(shared.meter.work(1));
                    match self.stack.last_mut() {
                        Some(Value::Integer(a)) => {
                            let holds = *a $operator $constant;
                            if let Some(place) = self.stack.last_mut() {
                                put(place, Value::Boolean(holds));
                            }
                        }
                        _ => {
                            self.stack.push(Value::Integer($constant));
                            check!(self.compare($name, $holds, shared));
                        }
                    }
                }};
            }
            loop {
                check!(shared.meter.work(1));
                let op = body.ops[pc];
                pc += 1;
                match op {
                    Op::Nil => self.stack.push(Value::Nil),
                    Op::True => self.stack.push(Value::Boolean(true)),
                    Op::False => self.stack.push(Value::Boolean(false)),
                    Op::Integer(value) => self.stack.push(Value::Integer(value)),
                    Op::Constant(index) => self.stack.push(body.constants[index as usize].clone()),
                    Op::Local(slot) => {
                        // Most locals are numbers, which skip the general clone.
                        let value = match &self.stack[base + usize::from(slot)] {
                            Value::Integer(value) => Value::Integer(*value),
                            value => value.clone(),
                        };
                        self.stack.push(value);
                    }
                    Op::TakeLocal(slot) => {
                        let value = std::mem::take(&mut self.stack[base + usize::from(slot)]);
                        self.stack.push(value);
                    }
                    Op::SetLocal(slot) => {
                        let value = self.stack.pop().unwrap_or_default();
                        put(&mut self.stack[base + usize::from(slot)], value);
                    }
                    Op::Captured(index) => {
                        let value = captured[usize::from(index)].clone();
                        self.stack.push(value);
                    }
                    Op::Sibling(member) => self.push_sibling(frame, u32::from(member), shared),
                    Op::Global(number) => {
                        let value = check!(shared.global(number));
                        self.stack.push(value);
                    }
                    Op::IsDefined(number) => {
                        self.stack.push(Value::Boolean(shared.is_defined(number)));
                    }
                    Op::Definition(number) => {
                        let value = check!(shared.definition(number));
                        self.stack.push(value);
                    }
                    Op::Data(number) => {
                        let value = shared.data(number);
                        self.stack.push(value);
                    }
                    Op::Pop => discard(&mut self.stack),
                    Op::Jump(target) => pc = target as usize,
                    Op::JumpIfFalse(target) => {
                        let test = self.stack.pop().unwrap_or_default();
                        if !test.is_truthy() {
                            pc = target as usize;
                        }
                        let_go(test);
                    }
                    Op::JumpIfFalseOrPop(target) => {
                        if self.stack.last().is_some_and(Value::is_truthy) {
                            discard(&mut self.stack);
                        } else {
                            pc = target as usize;
                        }
                    }
                    Op::JumpIfTrueOrPop(target) => {
                        if self.stack.last().is_some_and(Value::is_truthy) {
                            pc = target as usize;
                        } else {
                            discard(&mut self.stack);
                        }
                    }
                    Op::Call(count) => {
                        collect_if_pressed!();
                        let count = usize::from(count);
                        let floor = self.stack.len() - count - 1;
                        match &self.stack[floor] {
                            Value::Closure(_) => break 'run FrameExit::Enter(count),
                            Value::Keyword(_) | Value::Map(_) | Value::Set(_) => {
                                check!(self.call_data(floor, shared));
                            }
                            Value::Native(native) if !native.needs_frame(&self.stack[floor + 1..]) => {
                                let native = *native;
                                done!(self.call_native(native, count, shared));
                                // The result replaces the function.
                                let result = self.stack.pop().unwrap_or_default();
                                put(&mut self.stack[floor], result);
                            }
                            _ => break 'run FrameExit::Invoke(count),
                        }
                    }
                    Op::Lookup(key) => {
                        collect_if_pressed!();
                        check!(self.look_up(&body.constants[key as usize], shared));
                    }
                    Op::CallNative(native, count) => {
                        done!(self.call_native(native, usize::from(count), shared));
                    }
                    Op::CallTool(name, count) => {
                        break 'run self.call_tool(&body.constants[name as usize], usize::from(count));
                    }
                    Op::Return => {
                        let value = self.stack.pop().unwrap_or_default();
                        if body.source.is_some() {
                            frame.closure.note_returned(&value);
                        }
                        break 'run FrameExit::Return(value);
                    }
                    Op::Closure(index) => {
                        check!(self.make_closure(frame, &body.protos[index as usize], shared))
                    }
                    Op::Group(index, first) => {
                        check!(self.make_group(frame, &body.protos[index as usize], first, shared));
                    }
                    Op::Lazy(index) => self.make_lazy(frame, &body.protos[index as usize], shared),
                    Op::Vector(count) => check!(self.make_vector(count as usize, shared)),
                    Op::Map(count) => done!(self.make_map(count as usize, shared)),
                    Op::Set(count) => done!(self.make_set(count as usize, shared)),
                    Op::Add => arithmetic!(checked_add, number::add),
                    Op::Subtract => arithmetic!(checked_sub, number::subtract),
                    Op::Multiply => arithmetic!(checked_mul, number::multiply),
                    Op::AddInteger(value) => arithmetic_with!(value, checked_add, number::add),
                    Op::SubtractInteger(value) => arithmetic_with!(value, checked_sub, number::subtract),
                    Op::MultiplyInteger(value) => arithmetic_with!(value, checked_mul, number::multiply),
                    Op::Less => comparison!("<", <, Ordering::is_lt),
                    Op::LessOrEqual => comparison!("<=", <=, Ordering::is_le),
                    Op::Greater => comparison!(">", >, Ordering::is_gt),
                    Op::GreaterOrEqual => comparison!(">=", >=, Ordering::is_ge),
                    Op::LessInteger(value) => comparison_with!(value, "<", <, Ordering::is_lt),
                    Op::LessOrEqualInteger(value) => comparison_with!(value, "<=", <=, Ordering::is_le),
                    Op::GreaterInteger(value) => comparison_with!(value, ">", >, Ordering::is_gt),
                    Op::GreaterOrEqualInteger(value) => comparison_with!(value, ">=", >=, Ordering::is_ge),
                    Op::Equal => done!(self.equal(shared)),
                    Op::Increment => match self.stack.last_mut() {
                        Some(Value::Integer(value)) if *value < i64::MAX => *value += 1,
                        _ => {
                            self.stack.push(Value::Integer(1));
                            check!(self.compute(number::add, shared));
                        }
                    },
                    Op::Decrement => match self.stack.last_mut() {
                        Some(Value::Integer(value)) if *value > i64::MIN => *value -= 1,
                        _ => {
                            self.stack.push(Value::Integer(1));
                            check!(self.compute(number::subtract, shared));
                        }
                    },
                    Op::Not => {
                        let top = self.stack.len() - 1;
                        let holds = !self.stack[top].is_truthy();
                        put(&mut self.stack[top], Value::Boolean(holds));
                    }
                    Op::IsNil => {
                        let top = self.stack.len() - 1;
                        let holds = self.stack[top].is_nil();
                        put(&mut self.stack[top], Value::Boolean(holds));
                    }
                    Op::Recur { slot, count, target } => {
                        collect_if_pressed!();
                        let count = usize::from(count);
                        let floor = self.stack.len() - count;
                        let first = base + usize::from(slot);
                        for index in (0..count).rev() {
                            let value = self.stack.pop().unwrap_or_default();
                            put(&mut self.stack[first + index], value);
                        }
                        debug_assert_eq!(self.stack.len(), floor);
                        pc = target as usize;
                    }
                    Op::Spread { count, rest } => done!(self.spread(usize::from(count), rest, shared)),
                    Op::Case(index) => pc = done!(self.choose(&body.cases[index as usize], shared)),
                    Op::PushHandler(target) => {
                        let (pc, height) = (target as usize, self.stack.len());
                        self.handlers.push(Handler { frame: self.frames.len(), pc, height });
                    }
                    Op::PopHandler => {
                        self.handlers.pop();
                    }
                    Op::JumpUnlessClass { class, slot, target } => {
                        let exception = &self.stack[base + usize::from(slot)];
                        if let Value::String(class) = &body.constants[class as usize]
                            && !super::unwind::is_instance(exception, class)
                        {
                            pc = target as usize;
                        }
                    }
                    Op::Rethrow(slot) => {
                        let exception = self.stack[base + usize::from(slot)].clone();
                        break 'run FrameExit::Raise(Box::new(super::unwind::raise(exception)));
                    }
                    Op::Define { global, doc } => {
                        check!(self.define(global, body.constants.get(doc as usize), shared))
                    }
                    Op::TaskBegin(end) => {
                        if done!(self.begin_task(shared)) {
                            pc = end as usize;
                        }
                    }
                    Op::TaskEnd => done!(self.end_task(shared)),
                }
            }
        };
        frame.pc = pc;
        next
    }
}
