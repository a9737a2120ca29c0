//! The loop that executes instructions.
//!
//! Nothing in here recurses: calling a function pushes a frame, and so does everything a library function wants to
//! have called. An instruction whose operands must be realised first is executed again when they are.

use std::cmp::Ordering;
use std::sync::Arc;

use super::fiber::{CodeFrame, Exit, Fiber, Frame, Handler, Pending};
use super::request::{Request, TaskRecord};
use super::shared::Shared;
use super::work::{Host, Step};
use crate::compile::{Capture, NO_DOC, Op};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{CallContext, Native, Realise, Run};
use crate::value::{Closure, Map, Sequence, Set, Symbol, Thunk, Value, Vector, number};

/// How the execution of code goes on.
enum Flow {
    /// With something other than the next instruction.
    Pending(Pending),
    Exit(Exit),
}

impl Fiber {
    /// Runs until the fiber is done or has to wait.
    pub(crate) fn execute(&mut self, shared: &mut Shared) -> Exit {
        loop {
            match std::mem::replace(&mut self.pending, Pending::Run) {
                Pending::Run => {
                    let Some(Frame::Code(frame)) = self.frames.pop() else {
                        self.pending = Pending::Raise(Error::new(ErrorKind::Internal, "no code to run").into());
                        continue;
                    };
                    match self.run_code(frame, shared) {
                        Flow::Pending(pending) => self.pending = pending,
                        Flow::Exit(exit) => return exit,
                    }
                }
                Pending::Invoke(count) => match self.invoke(count, shared) {
                    Ok(step) => {
                        if let Some(exit) = self.take_step(step, shared) {
                            return exit;
                        }
                    }
                    Err(error) => self.pending = Pending::Raise(error.into()),
                },
                Pending::Deliver(value) => match self.frames.pop() {
                    None => {
                        self.pending = Pending::Done(Ok(value));
                        return Exit::Done;
                    }
                    Some(Frame::Code(frame)) => {
                        self.stack.push(value);
                        self.frames.push(Frame::Code(frame));
                    }
                    Some(Frame::Native(work, floor)) => {
                        if shared.meter.is_pressed() {
                            self.frames.push(Frame::Native(work, floor));
                            self.pending = Pending::Deliver(value);
                            return Exit::Collect;
                        }
                        if let Some(exit) = self.step_work(work, floor, Some(value), shared) {
                            return exit;
                        }
                    }
                },
                Pending::Resume => match self.frames.pop() {
                    None => {
                        self.pending = Pending::Done(Ok(Value::Nil));
                        return Exit::Done;
                    }
                    Some(Frame::Code(frame)) => self.frames.push(Frame::Code(frame)),
                    Some(Frame::Native(work, floor)) => {
                        if let Some(exit) = self.step_work(work, floor, None, shared) {
                            return exit;
                        }
                    }
                },
                Pending::Raise(raised) => {
                    if !self.unwind(raised) {
                        return Exit::Done;
                    }
                }
                Pending::Waiting(request) => {
                    self.pending = Pending::Waiting(request);
                    return Exit::Waiting;
                }
                Pending::Joining => {
                    self.pending = Pending::Joining;
                    return Exit::Waiting;
                }
                Pending::Done(result) => {
                    self.pending = Pending::Done(result);
                    return Exit::Done;
                }
            }
        }
    }

    /// Lets a frame written in Rust take a step.
    fn step_work(
        &mut self,
        mut work: Box<dyn super::work::Work>,
        floor: usize,
        incoming: Option<Value>,
        shared: &mut Shared,
    ) -> Option<Exit> {
        self.stack.truncate(floor);
        let charged = shared.meter.work(1);
        let mut host = Host { shared, strand: &mut self.strand };
        let step = match charged.and_then(|()| work.step(&mut host, incoming)) {
            Ok(step) => step,
            Err(error) if error.kind() == ErrorKind::MemoryExceeded && shared.meter.was_refused() => {
                self.frames.push(Frame::Native(work, floor));
                self.pending = Pending::Resume;
                return Some(Exit::Collect);
            }
            Err(error) => {
                self.frames.push(Frame::Native(work, floor));
                self.pending = Pending::Raise(error.into());
                return None;
            }
        };
        match step {
            Step::Return(_) | Step::Become(..) | Step::Retry | Step::End(..) => {}
            _ => self.frames.push(Frame::Native(work, floor)),
        }
        self.take_step(step, shared)
    }

    /// Does what a step asks for. The frame on top is the one that waits for its result.
    fn take_step(&mut self, step: Step, shared: &mut Shared) -> Option<Exit> {
        self.pending = match step {
            Step::Return(value) => match shared.limits.check_depth(value.depth()) {
                Ok(()) => Pending::Deliver(value),
                Err(error) => Pending::Raise(error.into()),
            },
            Step::Call(function, arguments) | Step::Become(function, arguments) => {
                self.stack.push(function);
                Pending::Invoke(arguments.push(&mut self.stack))
            }
            Step::Realise(cell) => match super::realise::start(cell, &mut self.strand, shared) {
                Ok(work) => {
                    self.frames.push(Frame::Native(work, self.stack.len()));
                    self.check_depth(shared)
                }
                Err(error) => Pending::Raise(error.into()),
            },
            Step::Push(work) => {
                self.frames.push(Frame::Native(work, self.stack.len()));
                self.check_depth(shared)
            }
            Step::Retry => Pending::Resume,
            Step::Throw(value) => Pending::Raise(super::unwind::raise(value)),
            Step::Ask(request) => {
                self.pending = Pending::Waiting(request);
                return Some(Exit::Waiting);
            }
            Step::Fork(branches) => {
                self.pending = Pending::Joining;
                return Some(Exit::Fork(branches));
            }
            Step::End(signal, value) => return Some(Exit::End(signal, value)),
        };
        None
    }

    fn check_depth(&self, shared: &Shared) -> Pending {
        match self.too_deep(shared) {
            Some(error) => Pending::Raise(error.into()),
            None => Pending::Resume,
        }
    }

    /// The error for too many frames, if there are.
    #[inline]
    fn too_deep(&self, shared: &Shared) -> Option<Error> {
        // Locals lie on the value stack: many of them in deep recursion must not eat all memory either.
        if self.frames.len() < shared.limits.stack_depth && self.stack.len() < shared.limits.memory_bytes / 64 {
            return None;
        }
        Some(
            Error::new(ErrorKind::StackExceeded, format!("calls are nested more than {} deep", shared.limits.stack_depth))
                .hint("use loop/recur, reduce or iterate instead of recursion"),
        )
    }

    /// Calls the function that lies below so many arguments on top of the stack. The waiting frame is on top.
    fn invoke(&mut self, count: usize, shared: &mut Shared) -> Result<Step> {
        let floor = self.stack.len() - count - 1;
        match &self.stack[floor] {
            Value::Closure(closure) => {
                let frame = self.enter(closure.clone(), count, shared)?;
                self.frames.push(Frame::Code(frame));
                // `Resume` finds the code frame on top and runs it.
                Ok(Step::Retry)
            }
            Value::Native(native) => {
                let native = *native;
                let arguments = self.stack.split_off(floor + 1);
                self.stack.truncate(floor);
                super::natives::call(native, arguments, shared, &mut self.strand)
            }
            Value::Var(name) => {
                let function = shared.global_named(name.full())?;
                self.stack[floor] = function;
                self.invoke(count, shared)
            }
            Value::Tool(name) => {
                let name = name.clone();
                let arguments = self.stack.split_off(floor + 1);
                self.stack.truncate(floor);
                Ok(Step::Push(Box::new(super::tools::CallTool::new(name.full(), arguments))))
            }
            _ => {
                charge_keys(&self.stack[floor + 1..], shared)?;
                let value = super::invoke::call_data(&self.stack[floor..])?;
                self.stack.truncate(floor);
                Ok(Step::Return(value))
            }
        }
    }

    /// A frame for a call of a closure with so many arguments on top of the stack.
    #[inline]
    fn enter(&mut self, closure: Arc<Closure>, count: usize, shared: &mut Shared) -> Result<CodeFrame> {
        let Some(body) = closure.function().body(count) else {
            return Err(super::invoke::wrong_arity(&closure, count));
        };
        let body = body.clone();
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
        self.stack.resize(base + usize::from(body.slots), Value::Nil);
        if let Some(error) = self.too_deep(shared) {
            return Err(error);
        }
        Ok(CodeFrame { closure, body, pc: 0, base })
    }

    /// Executes instructions until control goes elsewhere.
    fn run_code(&mut self, mut frame: CodeFrame, shared: &mut Shared) -> Flow {
        macro_rules! fail {
            ($error:expr) => {{
                let error: Error = $error;
                self.frames.push(Frame::Code(frame));
                return Flow::Pending(Pending::Raise(error.into()));
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
                frame.pc -= 1;
                let height = self.stack.len();
                self.frames.push(Frame::Code(frame));
                self.frames.push(Frame::Native(work, height));
                return Flow::Pending(self.check_depth(shared));
            }};
        }
        macro_rules! collect {
            () => {{
                frame.pc -= 1;
                self.frames.push(Frame::Code(frame));
                self.pending = Pending::Run;
                return Flow::Exit(Exit::Collect);
            }};
        }
        macro_rules! arithmetic {
            ($checked:ident, $slow:path) => {{
                let top = self.stack.len() - 1;
                if let (Value::Integer(a), Value::Integer(b)) = (&self.stack[top - 1], &self.stack[top])
                    && let Some(result) = a.$checked(*b)
                {
                    self.stack[top - 1] = Value::Integer(result);
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
                let order = check!(number::compare_numbers($name, &self.stack[top - 1], &self.stack[top]));
                let holds: fn(Ordering) -> bool = $holds;
                self.stack[top - 1] = Value::Boolean(order.is_some_and(holds));
                self.stack.pop();
            }};
        }
        macro_rules! enter_frame {
            ($closure:expr, $count:expr) => {{
                let next = check!(self.enter($closure, $count, shared));
                self.frames.push(Frame::Code(std::mem::replace(&mut frame, next)));
            }};
        }

        loop {
            check!(shared.meter.work(1));
            let op = frame.body.ops[frame.pc];
            frame.pc += 1;
            match op {
                Op::Nil => self.stack.push(Value::Nil),
                Op::True => self.stack.push(Value::Boolean(true)),
                Op::False => self.stack.push(Value::Boolean(false)),
                Op::Constant(index) => self.stack.push(frame.body.constants[index as usize].clone()),
                Op::Local(slot) => {
                    let value = self.stack[frame.base + usize::from(slot)].clone();
                    self.stack.push(value);
                }
                Op::TakeLocal(slot) => {
                    let value = std::mem::take(&mut self.stack[frame.base + usize::from(slot)]);
                    self.stack.push(value);
                }
                Op::SetLocal(slot) => {
                    let value = self.stack.pop().unwrap_or_default();
                    self.stack[frame.base + usize::from(slot)] = value;
                }
                Op::Captured(index) => {
                    let value = frame.closure.captured()[usize::from(index)].clone();
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
                Op::Jump(target) => frame.pc = target as usize,
                Op::JumpIfFalse(target) => {
                    if !self.stack.pop().unwrap_or_default().is_truthy() {
                        frame.pc = target as usize;
                    }
                }
                Op::JumpIfFalseOrPop(target) => {
                    if self.stack.last().is_some_and(Value::is_truthy) {
                        self.stack.pop();
                    } else {
                        frame.pc = target as usize;
                    }
                }
                Op::JumpIfTrueOrPop(target) => {
                    if self.stack.last().is_some_and(Value::is_truthy) {
                        frame.pc = target as usize;
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
                        Value::Closure(closure) => {
                            let closure = closure.clone();
                            enter_frame!(closure, count);
                        }
                        Value::Keyword(_) | Value::Map(_) | Value::Set(_) => {
                            check!(charge_keys(&self.stack[floor + 1..], shared));
                            let value = check!(super::invoke::call_data(&self.stack[floor..]));
                            self.stack.truncate(floor);
                            self.stack.push(value);
                        }
                        _ => {
                            self.frames.push(Frame::Code(frame));
                            return Flow::Pending(Pending::Invoke(count));
                        }
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
                            let mut host = Host { shared, strand: &mut self.strand };
                            match check!(enter(&mut host, arguments)) {
                                Step::Return(value) => {
                                    check!(shared.limits.check_depth(value.depth()));
                                    self.stack.push(value);
                                }
                                step => {
                                    self.frames.push(Frame::Code(frame));
                                    return match self.take_step(step, shared) {
                                        Some(exit) => Flow::Exit(exit),
                                        None => Flow::Pending(std::mem::replace(&mut self.pending, Pending::Run)),
                                    };
                                }
                            }
                        }
                    }
                }
                Op::CallTool(name, count) => {
                    let floor = self.stack.len() - usize::from(count);
                    let arguments = self.stack.split_off(floor);
                    let work = match &frame.body.constants[name as usize] {
                        Value::String(name) => Box::new(super::tools::CallTool::new(name, arguments)),
                        _ => Box::new(super::tools::CallTool::new("", arguments)),
                    };
                    self.frames.push(Frame::Code(frame));
                    self.frames.push(Frame::Native(work, floor));
                    return Flow::Pending(self.check_depth(shared));
                }
                Op::Return => {
                    let value = self.stack.pop().unwrap_or_default();
                    self.stack.truncate(frame.base - 1);
                    match self.frames.pop() {
                        Some(Frame::Code(caller)) => {
                            self.stack.push(value);
                            frame = caller;
                        }
                        Some(native) => {
                            self.frames.push(native);
                            return Flow::Pending(Pending::Deliver(value));
                        }
                        None => return Flow::Pending(Pending::Deliver(value)),
                    }
                }
                Op::Closure(index) => {
                    let proto = &frame.body.protos[index as usize];
                    let captured = capture(&mut self.stack, &frame, &proto.captures);
                    shared.meter.note(96 + 16 * captured.len());
                    let closure = Closure::new(proto.code.clone(), 0, captured, self.strand.stamp());
                    check!(shared.limits.check_depth(closure.shape().depth()));
                    self.stack.push(Value::Closure(Arc::new(closure)));
                }
                Op::Group(index, first) => {
                    let proto = &frame.body.protos[index as usize];
                    let captured = capture(&mut self.stack, &frame, &proto.captures);
                    let closure = Closure::new(proto.code.clone(), 0, captured, self.strand.stamp());
                    check!(shared.limits.check_depth(closure.shape().depth()));
                    for member in 0..proto.code.functions.len() {
                        if member > 0 {
                            self.strand.stamp();
                        }
                        shared.meter.note(96);
                        let sibling = Arc::new(closure.sibling(member as u32));
                        self.stack[frame.base + usize::from(first) + member] = Value::Closure(sibling);
                    }
                }
                Op::Lazy(index) => {
                    let proto = &frame.body.protos[index as usize];
                    let captured = capture(&mut self.stack, &frame, &proto.captures);
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
                    if let Some(work) = check!(super::realise::pending(&self.stack[floor..], Realise::Deep, shared, true)) {
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
                        fail!(Error::new(ErrorKind::InvalidArgument, "a map literal has the same key twice"));
                    }
                    check!(shared.limits.check_depth(map.shape().depth()));
                    self.stack.push(Value::Map(map));
                }
                Op::Set(count) => {
                    let floor = self.stack.len() - count as usize;
                    if let Some(work) = check!(super::realise::pending(&self.stack[floor..], Realise::Deep, shared, false)) {
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
                        fail!(Error::new(ErrorKind::InvalidArgument, "a set literal has the same item twice"));
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
                    if let Some(work) =
                        check!(super::realise::pending(&self.stack[top - 1..], Realise::Deep, shared, false))
                    {
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
                        let result = number::add(&self.stack[top], &Value::Integer(1), number::Overflow::Fail);
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
                        let result = number::subtract(&self.stack[top], &Value::Integer(1), number::Overflow::Fail);
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
                    let first = frame.base + usize::from(slot);
                    for index in 0..count {
                        let value = std::mem::take(&mut self.stack[floor + index]);
                        self.stack[first + index] = value;
                    }
                    self.stack.truncate(floor);
                    frame.pc = target as usize;
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
                    if let Some(work) = check!(super::realise::pending(&self.stack[top..], Realise::Deep, shared, false))
                    {
                        retry_after!(work);
                    }
                    check!(charge_keys(&self.stack[top..], shared));
                    let value = self.stack.pop().unwrap_or_default();
                    let case = &frame.body.cases[index as usize];
                    frame.pc = case.targets.get(&value).copied().unwrap_or(case.otherwise) as usize;
                }
                Op::PushHandler(target) => {
                    let (pc, height) = (target as usize, self.stack.len());
                    self.handlers.push(Handler { frame: self.frames.len(), pc, height });
                }
                Op::PopHandler => {
                    self.handlers.pop();
                }
                Op::JumpUnlessClass { class, slot, target } => {
                    let exception = &self.stack[frame.base + usize::from(slot)];
                    if let Value::String(class) = &frame.body.constants[class as usize]
                        && !super::unwind::is_instance(exception, class)
                    {
                        frame.pc = target as usize;
                    }
                }
                Op::Rethrow(slot) => {
                    let exception = self.stack[frame.base + usize::from(slot)].clone();
                    self.frames.push(Frame::Code(frame));
                    return Flow::Pending(Pending::Raise(super::unwind::raise(exception)));
                }
                Op::Define { global, doc } => {
                    if self.strand.is_branch() {
                        fail!(Error::new(ErrorKind::ForbiddenEffect, "nothing can be defined inside pmap or pcalls")
                            .hint("collect the results of pmap and define them afterwards"));
                    }
                    let value = self.stack.pop().unwrap_or_default();
                    let doc = match doc {
                        NO_DOC => None,
                        index => match &frame.body.constants[index as usize] {
                            Value::String(text) => Some(Arc::from(text.as_str())),
                            _ => None,
                        },
                    };
                    shared.meter.note(128);
                    shared.memory.set(global, value, doc);
                    shared.defined.push(global);
                    let name = shared.memory.names.globals.name(global).cloned().unwrap_or_else(|| "".into());
                    self.stack.push(Value::Var(Symbol::new(&*name)));
                }
                Op::TaskBegin(end) => {
                    let top = self.stack.len() - 1;
                    if let Some(work) = check!(super::realise::pending(&self.stack[top..], Realise::Deep, shared, false))
                    {
                        retry_after!(work);
                    }
                    let id = &self.stack[top];
                    if !matches!(id, Value::String(_) | Value::Keyword(_)) {
                        fail!(crate::library::type_error("task", "a string as its id", id));
                    }
                    if let Some(known) = shared.journal.get_exact(id).cloned() {
                        self.stack[top] = known;
                        frame.pc = end as usize;
                    }
                }
                Op::TaskEnd => {
                    // Below the value lies the id.
                    let top = self.stack.len() - 1;
                    if let Some(work) = check!(super::realise::pending(&self.stack[top..], Realise::Deep, shared, false))
                    {
                        retry_after!(work);
                    }
                    let value = super::finish::harden(&self.stack[top]);
                    let id = self.stack[top - 1].clone();
                    self.stack.truncate(top - 1);
                    shared.journal.insert(id.clone(), value.clone());
                    let record = TaskRecord { path: self.strand.path(), id, value: value.clone() };
                    self.frames.push(Frame::Code(frame));
                    self.frames.push(Frame::Native(Box::new(super::tools::Recorded(value)), self.stack.len()));
                    self.pending = Pending::Waiting(Request::Record(record));
                    return Flow::Exit(Exit::Waiting);
                }
            }
        }
    }
}

/// What a leaf is given besides its arguments.
pub(super) fn context<'a>(shared: &'a mut Shared, strand: &'a mut super::fiber::Strand) -> CallContext<'a> {
    let (limits, meter, now) = (&shared.limits, &mut shared.meter, shared.now);
    CallContext { limits, meter, random: &mut strand.random, now, only_notes: false }
}

/// What a frame gives the parts of the library it uses.
pub(super) fn frame_context<'a>(host: &'a mut Host<'_>) -> CallContext<'a> {
    CallContext { only_notes: true, ..context(host.shared, host.strand) }
}

/// Whether an error only means that the meter wants to look what is alive.
#[inline]
fn is_pressure(error: &Error, shared: &Shared) -> bool {
    error.kind() == ErrorKind::MemoryExceeded && shared.meter.was_refused()
}

/// The frame that realises what a native wants realised of its arguments, if anything is left to do.
#[inline]
pub(super) fn unrealised(native: &Native, arguments: &[Value], shared: &mut Shared) -> Result<Option<Box<dyn super::work::Work>>> {
    if native.realise.is_empty() {
        return Ok(None);
    }
    for (index, argument) in arguments.iter().enumerate() {
        match argument {
            Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Keyword(_) => continue,
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
            // What looks at everything costs as much as there is.
            shared.meter.work(shape.weight() / 8)?;
        }
        if wanted != Realise::Not
            && shape.may_hold_lazy()
            && let Some(work) = super::realise::pending(std::slice::from_ref(argument), wanted, shared, false)?
        {
            return Ok(Some(work));
        }
    }
    Ok(None)
}

/// Charges for values that are about to be compared with keys.
#[inline]
fn charge_keys(values: &[Value], shared: &mut Shared) -> Result<()> {
    for value in values {
        match value {
            Value::Map(_) | Value::Keyword(_) | Value::Integer(_) | Value::Nil => {}
            other => shared.meter.work(other.shape().weight() / 8)?,
        }
    }
    Ok(())
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

impl super::work::Arguments {
    /// Puts the arguments on the stack and counts them.
    fn push(self, stack: &mut Vec<Value>) -> usize {
        use super::work::Arguments;
        match self {
            Arguments::None => 0,
            Arguments::One(a) => {
                stack.push(a);
                1
            }
            Arguments::Two(a, b) => {
                stack.extend([a, b]);
                2
            }
            Arguments::Three(a, b, c) => {
                stack.extend([a, b, c]);
                3
            }
            Arguments::Many(arguments) => {
                let count = arguments.len();
                stack.extend(arguments);
                count
            }
        }
    }
}

