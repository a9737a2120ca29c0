//! What programs are compiled to: instructions for a stack machine, with every name resolved.
//!
//! A function call occupies a piece of the value stack: the function, its arguments, its other locals, and above them
//! the operands of whatever is being computed. Locals are indices into that piece, captured values indices into the
//! closure, globals indices into the memory. Nothing is looked up by name while a program runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::library::Native;
use crate::reader::Span;
use crate::value::{Symbol, Value};

/// An instruction. Operands are taken from the top of the stack, results are put there.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    Nil,
    True,
    False,
    Integer(i64),
    Constant(u32),
    Local(u16),
    /// A local that is not needed any more: its value leaves the slot, so that it can be changed in place.
    TakeLocal(u16),
    Captured(u16),
    /// A function of the same group, this one included.
    Sibling(u16),
    Global(u32),
    Definition(u32),
    IsDefined(u32),
    Data(u32),
    SetLocal(u16),
    Pop,
    Jump(u32),
    JumpIfFalse(u32),
    /// `and`: leaves a false value and jumps, or drops a true one.
    JumpIfFalseOrPop(u32),
    /// `or`: leaves a true value and jumps, or drops a false one.
    JumpIfTrueOrPop(u32),
    Call(u16),
    /// Calls a constant keyword with one argument: two instructions in one.
    Lookup(u32),
    CallNative(&'static Native, u16),
    CallTool(u32, u16),
    Return,
    Closure(u32),
    /// Makes all functions of a `letfn` and stores them in slots from this one on.
    Group(u32, u16),
    /// Makes a lazy cell of a function of no arguments.
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
    /// These have a constant as their second operand: two instructions in one.
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
    /// Moves as many operands into the slots from the first one on, and jumps back.
    Recur {
        slot: u16,
        count: u16,
        target: u32,
    },
    /// Takes a sequence apart: pushes so many items, and the rest if wanted.
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

/// No docstring.
pub(crate) const NO_DOC: u32 = u32::MAX;

/// The body of one arity.
pub(crate) struct Body {
    pub(crate) ops: Box<[Op]>,
    pub(crate) spans: Box<[Span]>,
    pub(crate) constants: Box<[Value]>,
    pub(crate) protos: Box<[Proto]>,
    pub(crate) cases: Box<[Case]>,
    /// Named parameters, without the one that takes the rest.
    pub(crate) parameters: u16,
    pub(crate) variadic: bool,
    /// Locals, parameters included.
    pub(crate) slots: u16,
    /// Whether a call can do nothing but compute: no tools, prints, atoms, globals, and no unknown functions.
    pub(crate) pure: bool,
    /// The text the spans refer to; nothing for the library's own code, which errors do not point into.
    pub(crate) source: Option<Arc<str>>,
}

/// The branches of a `case`.
pub(crate) struct Case {
    pub(crate) targets: BTreeMap<Value, u32>,
    pub(crate) otherwise: u32,
}

/// A function as it stands in the code around it: what to make a closure of.
pub(crate) struct Proto {
    pub(crate) code: Arc<Code>,
    pub(crate) captures: Box<[Capture]>,
}

/// Where the maker of a closure finds a value to capture.
#[derive(Clone, Copy)]
pub(crate) enum Capture {
    Local(u16),
    TakeLocal(u16),
    Captured(u16),
    Sibling(u16),
}

/// One function: its arities.
pub(crate) struct Function {
    pub(crate) name: Option<Symbol>,
    pub(crate) fixed: Vec<Body>,
    pub(crate) variadic: Option<Body>,
    /// The parameters of each arity as they were written, for people: `[x & more]`.
    pub(crate) parameters: Vec<Box<str>>,
    /// Where the whole form stands in the source.
    pub(crate) span: Span,
}

/// What one or several functions that know each other were compiled to.
pub(crate) struct Code {
    pub(crate) functions: Vec<Function>,
    pub(crate) captured_names: Vec<Box<str>>,
    pub(crate) origin: Origin,
}

/// Where code comes from.
#[derive(Clone)]
pub(crate) enum Origin {
    /// A program, with its text.
    Program(Arc<str>),
    /// The library: the number of the code among all code of the library.
    Library(u32),
}

impl Function {
    /// Which body takes so many arguments: its index, or the number of fixed ones for the variadic one.
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
