//! The instructions: what each of them does to the stack.
//!
//! An instruction whose operands must be realised first is executed again when they are; so is one that ran into the
//! limit on memory before it has been looked what is alive. Until an instruction has done its work, its operands stay
//! on the stack.

use std::cmp::Ordering;
use std::sync::Arc;

use super::execute::{context, unrealised};
use super::fiber::{CodeFrame, Exit, Fiber, Frame, Handler, Pending, Raised};
use super::request::{Request, TaskRecord};
use super::shared::Shared;
use super::work::{Host, Step};
use crate::compile::{Capture, NO_DOC, Op};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Realise, Run};
use crate::value::{Closure, Map, Set, Symbol, Thunk, Value, Vector, number};

/// What is to be done after some instructions of a frame.
enum Next {
    /// Calls the closure below so many arguments.
    Enter(usize),
    /// Calls whatever lies below so many arguments.
    Invoke(usize),
    Return(Value),
    Raise(Box<Raised>),
    /// Runs a frame written in Rust.
    Work(Box<dyn super::work::Work>),
    Step(Box<Step>),
    Collect,
    Record(Box<TaskRecord>, Value),
}

/// How the execution of code goes on.
pub(super) enum Flow {
    /// With something other than the next instruction.
    Pending(Pending),
    Exit(Exit),
}

impl Fiber {
    /// Executes instructions until control goes elsewhere.
    pub(super) fn run_code(&mut self, mut frame: CodeFrame, shared: &mut Shared) -> Flow {
        loop {
            match self.run_frame(&mut frame, shared) {
                Next::Enter(count) => {
                    let floor = self.stack.len() - count - 1;
                    let Value::Closure(closure) = std::mem::take(&mut self.stack[floor]) else { continue };
                    match self.enter(closure, count, shared) {
                        Ok(next) => self.frames.push(Frame::Code(std::mem::replace(&mut frame, next))),
                        Err(error) => {
                            self.frames.push(Frame::Code(frame));
                            return Flow::Pending(Pending::Raise(error.into()));
                        }
                    }
                }
                Next::Return(value) => {
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
                                return Flow::Pending(Pending::Deliver(value));
                            }
                            if let Some(exit) = self.step_work(work, floor, Some(value), shared) {
                                return Flow::Exit(exit);
                            }
                            // Mostly the frame calls the next function, which is run right here.
                            match (&self.pending, self.frames.pop()) {
                                (Pending::Run, Some(Frame::Code(next))) => frame = next,
                                (_, top) => {
                                    self.frames.extend(top);
                                    return Flow::Pending(std::mem::replace(&mut self.pending, Pending::Run));
                                }
                            }
                        }
                        None => return Flow::Pending(Pending::Deliver(value)),
                    }
                }
                Next::Invoke(count) => {
                    self.frames.push(Frame::Code(frame));
                    return Flow::Pending(Pending::Invoke(count));
                }
                Next::Raise(raised) => {
                    self.frames.push(Frame::Code(frame));
                    return Flow::Pending(Pending::Raise(*raised));
                }
                Next::Work(work) => {
                    self.frames.push(Frame::Code(frame));
                    self.frames.push(Frame::Native(work, self.stack.len()));
                    return Flow::Pending(self.check_depth(shared));
                }
                Next::Step(step) => {
                    self.frames.push(Frame::Code(frame));
                    return match self.take_step(*step, shared) {
                        Some(exit) => Flow::Exit(exit),
                        None => Flow::Pending(std::mem::replace(&mut self.pending, Pending::Run)),
                    };
                }
                Next::Collect => {
                    self.frames.push(Frame::Code(frame));
                    self.pending = Pending::Run;
                    return Flow::Exit(Exit::Collect);
                }
                Next::Record(record, value) => {
                    self.frames.push(Frame::Code(frame));
                    self.frames
                        .push(Frame::Native(Box::new(super::tools::Recorded(value)), self.stack.len()));
                    self.pending = Pending::Waiting(Box::new(Request::Record(*record)));
                    return Flow::Exit(Exit::Waiting);
                }
            }
        }
    }

    /// Executes the instructions of one frame until something other than the next instruction is to be done.
    fn run_frame(&mut self, frame: &mut CodeFrame, shared: &mut Shared) -> Next {
        let body = frame.closure.body(frame.arity);
        let captured = frame.closure.captured();
        let base = frame.base;
        let mut pc = frame.pc;
        let next = 'run: {
            macro_rules! fail {
                ($error:expr) => {{
                    let error: Error = $error;
                    break 'run Next::Raise(Box::new(error.into()));
                }};
            }
            macro_rules! check {
                ($result:expr) => {
                    match $result {
                        Ok(value) => value,
                        Err(error) => fail!(error),
                    }
                };
            }
            // Executes the current instruction again after a cell, or everything a value holds, has been realised.
            macro_rules! retry_after {
                ($work:expr) => {{
                    let work = $work;
                    pc -= 1;
                    break 'run Next::Work(work);
                }};
            }
            macro_rules! collect {
                () => {{
                    pc -= 1;
                    break 'run Next::Collect;
                }};
            }
            macro_rules! arithmetic {
                ($checked:ident, $slow:path) => {{
                    let top = self.stack.len() - 1;
                    if let [.., Value::Integer(a), Value::Integer(b)] = self.stack.as_mut_slice()
                        && let Some(result) = a.$checked(*b)
                    {
                        *a = result;
                    } else {
                        let result = $slow(&self.stack[top - 1], &self.stack[top], number::Overflow::Fail);
                        let result = check!(result.and_then(|value| sized(value, shared)));
                        self.stack[top - 1] = result;
                    }
                    self.stack.pop();
                }};
            }
            macro_rules! comparison {
                ($name:literal, $holds:expr) => {{
                    let top = self.stack.len() - 1;
                    let order =
                        check!(number::compare_numbers($name, &self.stack[top - 1], &self.stack[top]));
                    let holds: fn(Ordering) -> bool = $holds;
                    self.stack[top - 1] = Value::Boolean(order.is_some_and(holds));
                    self.stack.pop();
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
                        // Most locals are numbers, which need not go the way of everything that can be cloned.
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
                        self.stack[base + usize::from(slot)] = value;
                    }
                    Op::Captured(index) => {
                        let value = captured[usize::from(index)].clone();
                        self.stack.push(value);
                    }
                    Op::Sibling(member) => {
                        let member = u32::from(member);
                        let closure = if member as usize == frame.closure.member() {
                            frame.closure.clone()
                        } else {
                            shared.meter.note(96);
                            Arc::new(frame.closure.sibling(member))
                        };
                        self.stack.push(Value::Closure(closure));
                    }
                    Op::Global(number) => {
                        let value = check!(shared.global(number));
                        self.stack.push(value);
                    }
                    Op::Data(number) => {
                        let value = shared.data(number);
                        self.stack.push(value);
                    }
                    Op::Pop => {
                        self.stack.pop();
                    }
                    Op::Jump(target) => pc = target as usize,
                    Op::JumpIfFalse(target) => {
                        if !self.stack.pop().unwrap_or_default().is_truthy() {
                            pc = target as usize;
                        }
                    }
                    Op::JumpIfFalseOrPop(target) => {
                        if self.stack.last().is_some_and(Value::is_truthy) {
                            self.stack.pop();
                        } else {
                            pc = target as usize;
                        }
                    }
                    Op::JumpIfTrueOrPop(target) => {
                        if self.stack.last().is_some_and(Value::is_truthy) {
                            pc = target as usize;
                        } else {
                            self.stack.pop();
                        }
                    }
                    Op::Call(count) => {
                        if shared.meter.is_pressed() {
                            collect!();
                        }
                        let count = usize::from(count);
                        let floor = self.stack.len() - count - 1;
                        match &self.stack[floor] {
                            Value::Closure(_) => break 'run Next::Enter(count),
                            Value::Keyword(_) | Value::Map(_) | Value::Set(_) => {
                                check!(charge_keys(&self.stack[floor + 1..], shared));
                                let value = check!(super::invoke::call_data(&self.stack[floor..]));
                                self.stack.truncate(floor);
                                self.stack.push(value);
                            }
                            _ => break 'run Next::Invoke(count),
                        }
                    }
                    Op::CallNative(native, count) => {
                        let count = usize::from(count);
                        let floor = self.stack.len() - count;
                        if !native.arity.accepts(count) {
                            fail!(native.arity.mismatch(native.name, count));
                        }
                        if let Some(work) = check!(unrealised(native, &self.stack[floor..], shared)) {
                            retry_after!(work);
                        }
                        match native.run {
                            Run::Leaf(run) => {
                                let mut context = context(shared, &mut self.strand);
                                match run(&mut context, &self.stack[floor..]) {
                                    Ok(value) => {
                                        check!(shared.limits.check_depth(value.depth()));
                                        self.stack.truncate(floor);
                                        self.stack.push(value);
                                    }
                                    Err(error) if is_pressure(&error, shared) => collect!(),
                                    Err(error) => fail!(error),
                                }
                            }
                            Run::Taking(run) => {
                                let mut context = context(shared, &mut self.strand);
                                match run(&mut context, &mut self.stack[floor..]) {
                                    Ok(value) => {
                                        check!(shared.limits.check_depth(value.depth()));
                                        self.stack.truncate(floor);
                                        self.stack.push(value);
                                    }
                                    Err(error) if is_pressure(&error, shared) => collect!(),
                                    Err(error) => fail!(error),
                                }
                            }
                            Run::Frame(enter) => {
                                if shared.meter.is_pressed() {
                                    collect!();
                                }
                                let arguments = self.stack.split_off(floor);
                                let mut host =
                                    Host { shared, strand: &mut self.strand, stack: &mut self.stack };
                                match check!(enter(&mut host, arguments)) {
                                    Step::Return(value) => {
                                        check!(shared.limits.check_depth(value.depth()));
                                        self.stack.push(value);
                                    }
                                    step => break 'run Next::Step(Box::new(step)),
                                }
                            }
                        }
                    }
                    Op::CallTool(name, count) => {
                        let floor = self.stack.len() - usize::from(count);
                        let arguments = self.stack.split_off(floor);
                        let name = match &body.constants[name as usize] {
                            Value::String(name) => name.as_str(),
                            _ => "",
                        };
                        break 'run Next::Work(Box::new(super::tools::CallTool::new(name, arguments)));
                    }
                    Op::Return => {
                        let value = self.stack.pop().unwrap_or_default();
                        if body.source.is_some() {
                            frame.closure.note_returned(&value);
                        }
                        break 'run Next::Return(value);
                    }
                    Op::Closure(index) => {
                        let proto = &body.protos[index as usize];
                        let captured = capture(&mut self.stack, frame, &proto.captures);
                        shared.meter.note(96 + 16 * captured.len());
                        let closure = Closure::new(proto.code.clone(), 0, captured, self.strand.stamp());
                        check!(shared.limits.check_depth(closure.shape().depth()));
                        self.stack.push(Value::Closure(Arc::new(closure)));
                    }
                    Op::Group(index, first) => {
                        let proto = &body.protos[index as usize];
                        let captured = capture(&mut self.stack, frame, &proto.captures);
                        let closure = Closure::new(proto.code.clone(), 0, captured, self.strand.stamp());
                        check!(shared.limits.check_depth(closure.shape().depth()));
                        for member in 0..proto.code.functions.len() {
                            if member > 0 {
                                self.strand.stamp();
                            }
                            shared.meter.note(96);
                            let sibling = Arc::new(closure.sibling(member as u32));
                            self.stack[base + usize::from(first) + member] = Value::Closure(sibling);
                        }
                    }
                    Op::Lazy(index) => {
                        let proto = &body.protos[index as usize];
                        let captured = capture(&mut self.stack, frame, &proto.captures);
                        shared.meter.note(96 + 16 * captured.len());
                        let closure = Closure::new(proto.code.clone(), 0, captured, self.strand.stamp());
                        let thunk = Thunk::Call(Value::Closure(Arc::new(closure)));
                        self.stack.push(shared.cell(thunk, self.strand.id));
                    }
                    Op::Vector(count) => {
                        let items = self.stack.split_off(self.stack.len() - count as usize);
                        shared.meter.note(64 + 16 * items.len());
                        let vector = Vector::from(items);
                        check!(shared.limits.check_depth(vector.shape().depth()));
                        self.stack.push(Value::Vector(vector));
                    }
                    Op::Map(count) => {
                        let floor = self.stack.len() - count as usize;
                        if let Some(work) =
                            check!(super::realise::pending(&self.stack[floor..], Realise::Deep, shared, true))
                        {
                            retry_after!(work);
                        }
                        check!(charge_keys(&self.stack[floor..], shared));
                        shared.meter.note(64 + 64 * count as usize);
                        let mut map = Map::new();
                        let mut items = self.stack.drain(floor..);
                        let mut duplicate = false;
                        while let (Some(key), Some(value)) = (items.next(), items.next()) {
                            duplicate |= map.get_exact(&key).is_some();
                            map.insert(key, value);
                        }
                        drop(items);
                        if duplicate {
                            fail!(Error::new(
                                ErrorKind::InvalidArgument,
                                "a map literal has the same key twice"
                            ));
                        }
                        check!(shared.limits.check_depth(map.shape().depth()));
                        self.stack.push(Value::Map(map));
                    }
                    Op::Set(count) => {
                        let floor = self.stack.len() - count as usize;
                        if let Some(work) = check!(super::realise::pending(
                            &self.stack[floor..],
                            Realise::Deep,
                            shared,
                            false
                        )) {
                            retry_after!(work);
                        }
                        check!(charge_keys(&self.stack[floor..], shared));
                        shared.meter.note(64 + 32 * count as usize);
                        let mut set = Set::new();
                        let mut duplicate = false;
                        for item in self.stack.drain(floor..) {
                            duplicate |= !set.insert(item);
                        }
                        if duplicate {
                            fail!(Error::new(
                                ErrorKind::InvalidArgument,
                                "a set literal has the same item twice"
                            ));
                        }
                        check!(shared.limits.check_depth(set.shape().depth()));
                        self.stack.push(Value::Set(set));
                    }
                    Op::Add => arithmetic!(checked_add, number::add),
                    Op::Subtract => arithmetic!(checked_sub, number::subtract),
                    Op::Multiply => arithmetic!(checked_mul, number::multiply),
                    Op::Less => comparison!("<", Ordering::is_lt),
                    Op::LessOrEqual => comparison!("<=", Ordering::is_le),
                    Op::Greater => comparison!(">", Ordering::is_gt),
                    Op::GreaterOrEqual => comparison!(">=", Ordering::is_ge),
                    Op::Equal => {
                        let top = self.stack.len() - 1;
                        if let Some(work) = check!(super::realise::pending(
                            &self.stack[top - 1..],
                            Realise::Deep,
                            shared,
                            false
                        )) {
                            retry_after!(work);
                        }
                        let (a, b) = (&self.stack[top - 1], &self.stack[top]);
                        check!(shared.meter.work(a.shape().weight().min(b.shape().weight()) / 8));
                        self.stack[top - 1] = Value::Boolean(crate::value::equal(a, b));
                        self.stack.pop();
                    }
                    Op::Increment => {
                        let top = self.stack.len() - 1;
                        if let Value::Integer(value) = self.stack[top]
                            && let Some(result) = value.checked_add(1)
                        {
                            self.stack[top] = Value::Integer(result);
                        } else {
                            let result =
                                number::add(&self.stack[top], &Value::Integer(1), number::Overflow::Fail);
                            self.stack[top] = check!(result.and_then(|value| sized(value, shared)));
                        }
                    }
                    Op::Decrement => {
                        let top = self.stack.len() - 1;
                        if let Value::Integer(value) = self.stack[top]
                            && let Some(result) = value.checked_sub(1)
                        {
                            self.stack[top] = Value::Integer(result);
                        } else {
                            let result = number::subtract(
                                &self.stack[top],
                                &Value::Integer(1),
                                number::Overflow::Fail,
                            );
                            self.stack[top] = check!(result.and_then(|value| sized(value, shared)));
                        }
                    }
                    Op::Not => {
                        let top = self.stack.len() - 1;
                        self.stack[top] = Value::Boolean(!self.stack[top].is_truthy());
                    }
                    Op::IsNil => {
                        let top = self.stack.len() - 1;
                        self.stack[top] = Value::Boolean(self.stack[top].is_nil());
                    }
                    Op::Recur { slot, count, target } => {
                        if shared.meter.is_pressed() {
                            collect!();
                        }
                        let count = usize::from(count);
                        let floor = self.stack.len() - count;
                        let first = base + usize::from(slot);
                        for index in 0..count {
                            let value = std::mem::take(&mut self.stack[floor + index]);
                            self.stack[first + index] = value;
                        }
                        self.stack.truncate(floor);
                        pc = target as usize;
                    }
                    Op::Spread { count, rest } => {
                        let top = self.stack.len() - 1;
                        match check!(super::invoke::spread(&self.stack[top], usize::from(count), rest)) {
                            Ok(items) => {
                                self.stack.pop();
                                self.stack.extend(items);
                            }
                            Err(cell) => {
                                let work = check!(super::realise::start(cell, &mut self.strand, shared));
                                retry_after!(work);
                            }
                        }
                    }
                    Op::Case(index) => {
                        let top = self.stack.len() - 1;
                        if let Some(work) =
                            check!(super::realise::pending(&self.stack[top..], Realise::Deep, shared, false))
                        {
                            retry_after!(work);
                        }
                        check!(charge_keys(&self.stack[top..], shared));
                        let value = self.stack.pop().unwrap_or_default();
                        let case = &body.cases[index as usize];
                        pc = case.targets.get(&value).copied().unwrap_or(case.otherwise) as usize;
                    }
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
                        break 'run Next::Raise(Box::new(super::unwind::raise(exception)));
                    }
                    Op::Define { global, doc } => {
                        if self.strand.is_branch() {
                            fail!(
                                Error::new(
                                    ErrorKind::ForbiddenEffect,
                                    "nothing can be defined inside pmap or pcalls"
                                )
                                .hint("collect the results of pmap and define them afterwards")
                            );
                        }
                        let value = self.stack.pop().unwrap_or_default();
                        let doc = match doc {
                            NO_DOC => None,
                            index => match &body.constants[index as usize] {
                                Value::String(text) => Some(Arc::from(text.as_str())),
                                _ => None,
                            },
                        };
                        shared.meter.note(128);
                        shared.memory.set(global, value, doc);
                        shared.defined.push(global);
                        let name =
                            shared.memory.names.globals.name(global).cloned().unwrap_or_else(|| "".into());
                        self.stack.push(Value::Var(Symbol::new(&*name)));
                    }
                    Op::TaskBegin(end) => {
                        let top = self.stack.len() - 1;
                        if let Some(work) =
                            check!(super::realise::pending(&self.stack[top..], Realise::Deep, shared, false))
                        {
                            retry_after!(work);
                        }
                        let id = &self.stack[top];
                        if !matches!(id, Value::String(_) | Value::Keyword(_)) {
                            fail!(crate::library::type_error("task", "a string as its id", id));
                        }
                        if let Some(known) = shared.journal.get_exact(id).cloned() {
                            self.stack[top] = known;
                            pc = end as usize;
                        }
                    }
                    Op::TaskEnd => {
                        // Below the value lies the id.
                        let top = self.stack.len() - 1;
                        if let Some(work) =
                            check!(super::realise::pending(&self.stack[top..], Realise::Deep, shared, false))
                        {
                            retry_after!(work);
                        }
                        let value = super::finish::harden(&self.stack[top]);
                        let id = self.stack[top - 1].clone();
                        self.stack.truncate(top - 1);
                        shared.journal.insert(id.clone(), value.clone());
                        let record = TaskRecord { path: self.strand.path(), id, value: value.clone() };
                        break 'run Next::Record(Box::new(record), value);
                    }
                }
            }
        };
        frame.pc = pc;
        next
    }
}

/// Charges for values that are about to be compared with keys.
#[inline]
pub(super) fn charge_keys(values: &[Value], shared: &mut Shared) -> Result<()> {
    for value in values {
        match value {
            Value::Map(_) | Value::Keyword(_) | Value::Integer(_) | Value::Nil => {}
            other => shared.meter.work(other.shape().weight() / 8)?,
        }
    }
    Ok(())
}

/// Whether an error only means that the meter wants to look what is alive.
#[inline]
fn is_pressure(error: &Error, shared: &Shared) -> bool {
    error.kind() == ErrorKind::MemoryExceeded && shared.meter.was_refused()
}

/// A number within its limit, accounted for.
fn sized(value: Value, shared: &mut Shared) -> Result<Value> {
    let bits = number::bits(&value);
    if bits > 0 {
        shared.limits.check_number(bits)?;
        shared.meter.work(bits / 64)?;
        shared.meter.note(64 + bits as usize / 8);
    }
    Ok(value)
}

/// The values a closure captures.
fn capture(stack: &mut [Value], frame: &CodeFrame, captures: &[Capture]) -> Arc<[Value]> {
    captures
        .iter()
        .map(|capture| match *capture {
            Capture::Local(slot) => stack[frame.base + usize::from(slot)].clone(),
            Capture::TakeLocal(slot) => std::mem::take(&mut stack[frame.base + usize::from(slot)]),
            Capture::Captured(index) => frame.closure.captured()[usize::from(index)].clone(),
            Capture::Sibling(member) => Value::Closure(Arc::new(frame.closure.sibling(u32::from(member)))),
        })
        .collect()
}
