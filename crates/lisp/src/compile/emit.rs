//! From the tree to instructions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::code::{Body, Capture, Case, NO_DOC, Op, Proto};
use super::node::{Binding, Expr, FunctionNode, NodeKind, Slot};
use super::purity::{known_pure, native_is_pure};
use crate::error::{Error, ErrorKind, Result};
use crate::library::Native;
use crate::reader::Span;
use crate::value::Value;

/// The function whose body is being compiled.
pub(crate) struct Frame {
    pub(crate) parameters: u16,
    pub(crate) variadic: bool,
    pub(crate) slots: u16,
    pub(crate) source: Option<Arc<str>>,
}

/// Compiles the body of a function. `entry` is the target of its `recur`.
pub(crate) fn emit(mut node: Expr, frame: Frame) -> Result<Body> {
    super::liveness::mark(&mut node);
    let (ops, spans) = (Vec::with_capacity(16), Vec::with_capacity(16));
    let mut emitter = Emitter { ops, spans, ..Emitter::default() };
    let span = node.span;
    emitter.node(node)?;
    emitter.push(Op::Return, span);
    Ok(Body {
        ops: emitter.ops.into(),
        spans: emitter.spans.into(),
        constants: emitter.constants.into(),
        protos: emitter.protos.into(),
        cases: emitter.cases.into(),
        parameters: frame.parameters,
        variadic: frame.variadic,
        slots: frame.slots,
        pure: !emitter.impure,
        source: frame.source,
    })
}

#[derive(Default)]
struct Emitter {
    ops: Vec<Op>,
    spans: Vec<Span>,
    constants: Vec<Value>,
    protos: Vec<Proto>,
    cases: Vec<Case>,
    /// The start of each enclosing loop, innermost last.
    loops: Vec<u32>,
    impure: bool,
}

impl Emitter {
    fn push(&mut self, op: Op, span: Span) -> usize {
        self.ops.push(op);
        self.spans.push(span);
        self.ops.len() - 1
    }

    fn add(&mut self, op: Op, span: Span) {
        self.push(op, span);
    }

    fn add_impure(&mut self, op: Op, span: Span) {
        self.impure = true;
        self.push(op, span);
    }

    fn collection(&mut self, nodes: Vec<Expr>, op: fn(u32) -> Op, span: Span) -> Result<()> {
        let count = nodes.len() as u32;
        nodes.into_iter().try_for_each(|node| self.node(node))?;
        self.push(op(count), span);
        Ok(())
    }

    fn here(&self) -> u32 {
        self.ops.len() as u32
    }

    /// Sets the target of a forward jump to the next instruction.
    fn land(&mut self, jump: usize) {
        let here = self.here();
        match &mut self.ops[jump] {
            Op::Jump(target)
            | Op::JumpIfFalse(target)
            | Op::JumpIfFalseOrPop(target)
            | Op::JumpIfTrueOrPop(target)
            | Op::PushHandler(target)
            | Op::TaskBegin(target)
            | Op::JumpUnlessClass { target, .. } => *target = here,
            _ => {}
        }
    }

    fn constant(&mut self, value: Value) -> u32 {
        self.constants.push(value);
        self.constants.len() as u32 - 1
    }

    fn all(&mut self, nodes: Vec<Expr>) -> Result<u16> {
        let count = u16::try_from(nodes.len())
            .ok()
            .filter(|count| *count < u16::MAX)
            .ok_or_else(|| Error::new(ErrorKind::InvalidForm, "too many arguments in one form"))?;
        for node in nodes {
            self.node(node)?;
        }
        Ok(count)
    }

    fn node(&mut self, node: Expr) -> Result<()> {
        let span = node.span;
        match node.kind {
            NodeKind::Constant(value) => {
                let op = match value {
                    Value::Nil => Op::Nil,
                    Value::Boolean(true) => Op::True,
                    Value::Boolean(false) => Op::False,
                    Value::Integer(value) => Op::Integer(value),
                    value => Op::Constant(self.constant(value)),
                };
                self.push(op, span);
            }
            NodeKind::Local { slot, last: true } => self.add(Op::TakeLocal(slot), span),
            NodeKind::Local { slot, last: false } => self.add(Op::Local(slot), span),
            NodeKind::Captured(index) => self.add(Op::Captured(index), span),
            NodeKind::Sibling(index) => self.add(Op::Sibling(index), span),
            NodeKind::Global(index) => self.add_impure(Op::Global(index), span),
            NodeKind::Definition(index) => self.add_impure(Op::Definition(index), span),
            NodeKind::IsDefined(index) => self.add_impure(Op::IsDefined(index), span),
            NodeKind::Data(index) => self.add(Op::Data(index), span),
            NodeKind::Cond(clauses, otherwise) => {
                let mut ends = Vec::new();
                for (test, result) in clauses {
                    self.node(test)?;
                    let to_next = self.push(Op::JumpIfFalse(0), span);
                    self.node(result)?;
                    ends.push(self.push(Op::Jump(0), span));
                    self.land(to_next);
                }
                self.node(*otherwise)?;
                ends.into_iter().for_each(|end| self.land(end));
            }
            NodeKind::And(nodes) => self.short_circuit(nodes, Op::JumpIfFalseOrPop(0), span)?,
            NodeKind::Or(nodes) => self.short_circuit(nodes, Op::JumpIfTrueOrPop(0), span)?,
            NodeKind::Do(nodes) => {
                let last = nodes.len().saturating_sub(1);
                if nodes.is_empty() {
                    self.push(Op::Nil, span);
                }
                for (index, node) in nodes.into_iter().enumerate() {
                    self.node(node)?;
                    if index < last {
                        self.push(Op::Pop, span);
                    }
                }
            }
            NodeKind::Let(bindings, body) => {
                for binding in bindings {
                    self.binding(binding, span)?;
                }
                self.node(*body)?;
            }
            NodeKind::Loop { first, initial, body } => {
                let count = self.all(initial)?;
                for slot in (first..first + count).rev() {
                    self.push(Op::SetLocal(slot), span);
                }
                self.loops.push(self.here());
                self.node(*body)?;
                self.loops.pop();
            }
            NodeKind::Recur { first, arguments, of_loop } => {
                let count = self.all(arguments)?;
                let target = if of_loop { self.loops.last().copied().unwrap_or(0) } else { 0 };
                self.push(Op::Recur { slot: first, count, target }, span);
            }
            NodeKind::Call(function, arguments) => {
                // The effects of a called function are known only if it belongs to the library.
                if !known_pure(&function, &arguments) {
                    self.impure = true;
                }
                match function.kind {
                    NodeKind::Constant(key @ Value::Keyword(_)) if arguments.len() == 1 => {
                        self.all(arguments)?;
                        let key = self.constant(key);
                        self.push(Op::Lookup(key), span);
                    }
                    _ => {
                        self.node(*function)?;
                        let count = self.all(arguments)?;
                        self.push(Op::Call(count), span);
                    }
                }
            }
            NodeKind::CallNative(native, arguments) => self.call_native(native, arguments, span)?,
            NodeKind::CallTool(name, arguments) => {
                self.impure = true;
                let name = self.constant(Value::string(name));
                let count = self.all(arguments)?;
                self.push(Op::CallTool(name, count), span);
            }
            NodeKind::Function(function) => {
                let proto = self.proto(function);
                self.push(Op::Closure(proto), span);
            }
            NodeKind::Lazy(function) => {
                let proto = self.proto(function);
                self.push(Op::Lazy(proto), span);
            }
            NodeKind::Group { functions, first, body, .. } => {
                let proto = self.proto(functions);
                self.push(Op::Group(proto, first), span);
                self.node(*body)?;
            }
            NodeKind::Vector(nodes) => self.collection(nodes, Op::Vector, span)?,
            NodeKind::Map(nodes) => self.collection(nodes, Op::Map, span)?,
            NodeKind::Set(nodes) => self.collection(nodes, Op::Set, span)?,
            NodeKind::Case { value, clauses, otherwise } => {
                self.node(*value)?;
                let case = self.cases.len();
                self.cases.push(Case { targets: BTreeMap::new(), otherwise: 0 });
                self.push(Op::Case(case as u32), span);
                let mut ends = Vec::new();
                for (constants, result) in clauses {
                    let here = self.here();
                    self.cases[case].targets.extend(constants.into_iter().map(|constant| (constant, here)));
                    self.node(result)?;
                    ends.push(self.push(Op::Jump(0), span));
                }
                self.cases[case].otherwise = self.here();
                self.node(*otherwise)?;
                ends.into_iter().for_each(|end| self.land(end));
            }
            NodeKind::Try { body, catches, finally } => self.attempt(*body, catches, finally, span)?,
            NodeKind::Define { global, doc, value } => {
                self.impure = true;
                match value {
                    Some(value) => {
                        self.node(*value)?;
                        let doc = doc.map_or(NO_DOC, |doc| self.constant(doc));
                        self.push(Op::Define { global, doc }, span);
                    }
                    // `declare` makes the name known and does nothing else.
                    None => {
                        self.push(Op::Nil, span);
                    }
                }
            }
            NodeKind::Task(id, body) => {
                self.impure = true;
                self.node(*id)?;
                let begin = self.push(Op::TaskBegin(0), span);
                self.node(*body)?;
                self.push(Op::TaskEnd, span);
                self.land(begin);
            }
        }
        Ok(())
    }

    fn short_circuit(&mut self, nodes: Vec<Expr>, jump: Op, span: Span) -> Result<()> {
        let last = nodes.len().saturating_sub(1);
        let mut jumps = Vec::new();
        for (index, node) in nodes.into_iter().enumerate() {
            self.node(node)?;
            if index < last {
                jumps.push(self.push(jump, span));
            }
        }
        jumps.into_iter().for_each(|jump| self.land(jump));
        Ok(())
    }

    fn binding(&mut self, binding: Binding, span: Span) -> Result<()> {
        match binding {
            Binding::One(slot, value) => {
                let span = value.span;
                self.node(value)?;
                self.push(Op::SetLocal(slot), span);
            }
            Binding::Spread { value, first, count, rest } => {
                self.node(value)?;
                self.push(Op::Spread { count, rest }, span);
                for slot in (first..first + count + u16::from(rest)).rev() {
                    self.push(Op::SetLocal(slot), span);
                }
            }
        }
        Ok(())
    }

    fn call_native(&mut self, native: &'static Native, mut arguments: Vec<Expr>, span: Span) -> Result<()> {
        if !native_is_pure(native, &arguments) {
            self.impure = true;
        }
        if let [first, Expr { kind: NodeKind::Constant(Value::Integer(value)), .. }] = &mut arguments[..]
            && let Some(op) = with_integer(native.name, *value)
        {
            let first = std::mem::replace(first, Expr { kind: NodeKind::Constant(Value::Nil), span });
            self.node(first)?;
            self.push(op, span);
            return Ok(());
        }
        let short = match (native.name, arguments.len()) {
            ("+", 2) => Some(Op::Add),
            ("-", 2) => Some(Op::Subtract),
            ("*", 2) => Some(Op::Multiply),
            ("<", 2) => Some(Op::Less),
            ("<=", 2) => Some(Op::LessOrEqual),
            (">", 2) => Some(Op::Greater),
            (">=", 2) => Some(Op::GreaterOrEqual),
            ("=", 2) => Some(Op::Equal),
            ("inc", 1) => Some(Op::Increment),
            ("dec", 1) => Some(Op::Decrement),
            ("not", 1) => Some(Op::Not),
            ("nil?", 1) => Some(Op::IsNil),
            _ => None,
        };
        let count = self.all(arguments)?;
        self.push(short.unwrap_or(Op::CallNative(native, count)), span);
        Ok(())
    }

    fn proto(&mut self, function: FunctionNode) -> u32 {
        self.protos.push(Proto { code: function.code, captures: function.captures.into() });
        self.protos.len() as u32 - 1
    }

    fn attempt(
        &mut self,
        body: Expr,
        catches: Vec<(Box<str>, Slot, Expr)>,
        finally: Option<(Slot, Slot, Box<Expr>)>,
        span: Span,
    ) -> Result<()> {
        let outer = finally.is_some().then(|| self.push(Op::PushHandler(0), span));
        if catches.is_empty() {
            self.node(body)?;
        } else {
            let handler = self.push(Op::PushHandler(0), span);
            self.node(body)?;
            self.push(Op::PopHandler, span);
            let mut ends = vec![self.push(Op::Jump(0), span)];
            self.land(handler);
            // The machine jumps here with the exception on the stack.
            let slot = catches[0].1;
            self.push(Op::SetLocal(slot), span);
            for (class, slot, handler) in catches {
                let class = self.constant(Value::string(class));
                let next = self.push(Op::JumpUnlessClass { class, slot, target: 0 }, span);
                self.node(handler)?;
                ends.push(self.push(Op::Jump(0), span));
                self.land(next);
            }
            self.push(Op::Rethrow(slot), span);
            ends.into_iter().for_each(|end| self.land(end));
        }
        if let (Some(outer), Some((result, thrown, finally))) = (outer, finally) {
            // Both exits run the same instructions; the slot of the exception distinguishes them.
            self.push(Op::PopHandler, span);
            self.push(Op::SetLocal(result), span);
            self.push(Op::Nil, span);
            let normal = self.push(Op::Jump(0), span);
            self.land(outer);
            self.land(normal);
            self.push(Op::SetLocal(thrown), span);
            self.node(*finally)?;
            self.push(Op::Pop, span);
            self.push(Op::Local(thrown), span);
            let done = self.push(Op::JumpIfFalse(0), span);
            self.push(Op::Rethrow(thrown), span);
            self.land(done);
            self.push(Op::TakeLocal(result), span);
        }
        Ok(())
    }
}

/// Returns the instruction for a call whose second argument is a constant, if there is one.
fn with_integer(name: &str, value: i64) -> Option<Op> {
    Some(match name {
        "+" => Op::AddInteger(value),
        "-" => Op::SubtractInteger(value),
        "*" => Op::MultiplyInteger(value),
        "<" => Op::LessInteger(value),
        "<=" => Op::LessOrEqualInteger(value),
        ">" => Op::GreaterInteger(value),
        ">=" => Op::GreaterOrEqualInteger(value),
        _ => return None,
    })
}

impl Capture {
    /// Returns the slot if the node is a local.
    pub(crate) fn slot(self) -> Option<Slot> {
        match self {
            Capture::Local(slot) | Capture::TakeLocal(slot) => Some(slot),
            _ => None,
        }
    }
}
