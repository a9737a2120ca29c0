//! Compiled code: instructions for a stack machine, with every name resolved.
//!
//! A function call occupies a piece of the value stack: the function, its arguments, its other locals, and
//! above them the operands of the current expression. Locals are indices into that piece, captured values
//! indices into the closure, globals indices into the memory. Nothing is looked up by name while a program
//! runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::library::Native;
use crate::reader::Span;
use crate::value::{Symbol, Value};

/// An instruction. It pops its operands from the stack and pushes its result.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    Nil,
    True,
    False,
    Integer(i64),
    Constant(u32),
    Local(u16),
    /// Moves a local out of its slot at its last use, so that the value can be changed in place.
    TakeLocal(u16),
    Captured(u16),
    /// A function of the same group, including the running one.
    Sibling(u16),
    Global(u32),
    Definition(u32),
    IsDefined(u32),
    Data(u32),
    SetLocal(u16),
    Pop,
    Jump(u32),
    JumpIfFalse(u32),
    /// `and`: keeps a false value and jumps, or pops a true one.
    JumpIfFalseOrPop(u32),
    /// `or`: keeps a true value and jumps, or pops a false one.
    JumpIfTrueOrPop(u32),
    Call(u16),
    /// Calls a constant keyword with one argument: two instructions in one.
    Lookup(u32),
    CallNative(&'static Native, u16),
    CallTool(u32, u16),
    Return,
    Closure(u32),
    /// Creates all functions of a `letfn` and stores them in consecutive slots from this one on.
    Group(u32, u16),
    /// Creates a lazy cell from a function of no arguments.
    Lazy(u32),
    Vector(u32),
    Map(u32),
    Set(u32),
    Add,
    Subtract,
    Multiply,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    /// Variants with a constant as the second operand: two instructions in one.
    AddInteger(i64),
    SubtractInteger(i64),
    MultiplyInteger(i64),
    LessInteger(i64),
    LessOrEqualInteger(i64),
    GreaterInteger(i64),
    GreaterOrEqualInteger(i64),
    Increment,
    Decrement,
    Not,
    IsNil,
    /// Moves `count` operands into consecutive slots from `slot` on, and jumps back.
    Recur {
        slot: u16,
        count: u16,
        target: u32,
    },
    /// Destructures a sequence: pushes `count` items and, optionally, the rest.
    Spread {
        count: u16,
        rest: bool,
    },
    Case(u32),
    PushHandler(u32),
    PopHandler,
    /// Jumps unless the exception in the slot is of this class.
    JumpUnlessClass {
        class: u32,
        slot: u16,
        target: u32,
    },
    Rethrow(u16),
    Define {
        global: u32,
        doc: u32,
    },
    TaskBegin(u32),
    TaskEnd,
}

/// The index that stands for "no docstring".
pub(crate) const NO_DOC: u32 = u32::MAX;

/// The body of one arity.
pub(crate) struct Body {
    pub(crate) ops: Box<[Op]>,
    pub(crate) spans: Box<[Span]>,
    pub(crate) constants: Box<[Value]>,
    pub(crate) protos: Box<[Proto]>,
    pub(crate) cases: Box<[Case]>,
    /// Number of named parameters, without the rest parameter.
    pub(crate) parameters: u16,
    pub(crate) variadic: bool,
    /// Number of locals, including parameters.
    pub(crate) slots: u16,
    /// True if a call can only compute: no tools, prints, atoms, globals or unknown functions.
    pub(crate) pure: bool,
    /// The text that the spans refer to; `None` for library code, which errors do not point into.
    pub(crate) source: Option<Arc<str>>,
}

/// The branches of a `case`.
pub(crate) struct Case {
    pub(crate) targets: BTreeMap<Value, u32>,
    pub(crate) otherwise: u32,
}

/// A function expression: the template of a closure.
pub(crate) struct Proto {
    pub(crate) code: Arc<Code>,
    pub(crate) captures: Box<[Capture]>,
}

/// The place where a value to capture is found when a closure is created.
#[derive(Clone, Copy)]
pub(crate) enum Capture {
    Local(u16),
    TakeLocal(u16),
    Captured(u16),
    Sibling(u16),
}

pub(crate) struct Function {
    pub(crate) name: Option<Symbol>,
    pub(crate) fixed: Vec<Body>,
    pub(crate) variadic: Option<Body>,
    /// The parameters of each arity as they were written, for display: `[x & more]`.
    pub(crate) parameters: Vec<Box<str>>,
    /// The span of the whole form in the source.
    pub(crate) span: Span,
}

/// The compiled code of one function, or of several that refer to each other.
pub(crate) struct Code {
    pub(crate) functions: Vec<Function>,
    pub(crate) captured_names: Vec<Box<str>>,
    pub(crate) origin: Origin,
}

#[derive(Clone)]
pub(crate) enum Origin {
    /// A program, with its text.
    Program(Arc<str>),
    /// The library, with the index of the code in the library's table.
    Library(u32),
}

impl Function {
    /// Returns whether no body of the function has effects.
    pub(crate) fn is_pure(&self) -> bool {
        self.fixed.iter().chain(&self.variadic).all(|body| body.pure)
    }

    /// Returns the index of the body that accepts `count` arguments; for the variadic body, the number of
    /// fixed-arity bodies.
    #[inline]
    pub(crate) fn arity(&self, count: usize) -> Option<u32> {
        match self.fixed.iter().position(|body| usize::from(body.parameters) == count) {
            Some(index) => Some(index as u32),
            None => {
                let variadic = self.variadic.as_ref()?;
                (count >= usize::from(variadic.parameters)).then_some(self.fixed.len() as u32)
            }
        }
    }
}

impl Code {
    /// The names of the captured values, in order.
    pub(crate) fn captured_names(&self) -> impl Iterator<Item = &str> {
        self.captured_names.iter().map(|name| &**name)
    }
}
