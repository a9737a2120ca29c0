//! The tree between forms and instructions: special forms reduced to a few, names resolved.

use std::sync::Arc;

use super::code::{Capture, Code};
use crate::library::Native;
use crate::reader::Span;
use crate::value::Value;

/// The slot of a local variable in its function.
pub(crate) type Slot = u16;

/// An expression with its span.
pub(crate) struct Expr {
    pub(crate) kind: NodeKind,
    pub(crate) span: Span,
}

/// The kinds of expression that remain after expansion.
pub(crate) enum NodeKind {
    Constant(Value),
    /// A local. `last` is true at its last use.
    Local {
        slot: Slot,
        last: bool,
    },
    Captured(u16),
    Sibling(u16),
    /// A bare name that is defined, or will be.
    Global(u32),
    /// The same, written with `user/`: it has no other meaning if it is not defined.
    Definition(u32),
    /// Tests if a name is defined.
    IsDefined(u32),
    Data(u32),
    /// Pairs of test and result, then the default result.
    Cond(Vec<(Expr, Expr)>, Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Do(Vec<Expr>),
    Let(Vec<Binding>, Box<Expr>),
    Loop {
        first: Slot,
        initial: Vec<Expr>,
        body: Box<Expr>,
    },
    Recur {
        first: Slot,
        arguments: Vec<Expr>,
        of_loop: bool,
    },
    Call(Box<Expr>, Vec<Expr>),
    CallNative(&'static Native, Vec<Expr>),
    CallTool(Box<str>, Vec<Expr>),
    Function(FunctionNode),
    Group {
        functions: FunctionNode,
        first: Slot,
        count: u16,
        body: Box<Expr>,
    },
    Lazy(FunctionNode),
    Vector(Vec<Expr>),
    Map(Vec<Expr>),
    Set(Vec<Expr>),
    Case {
        value: Box<Expr>,
        clauses: Vec<(Vec<Value>, Expr)>,
        otherwise: Box<Expr>,
    },
    Try {
        body: Box<Expr>,
        catches: Vec<(Box<str>, Slot, Expr)>,
        finally: Option<(Slot, Slot, Box<Expr>)>,
    },
    Define {
        global: u32,
        doc: Option<Value>,
        value: Option<Box<Expr>>,
    },
    Task(Box<Expr>, Box<Expr>),
}

/// A binding of `let`.
pub(crate) enum Binding {
    /// One value in a slot.
    One(Slot, Expr),
    /// The items of a sequence in consecutive slots and, optionally, the rest in the last one.
    Spread { value: Expr, first: Slot, count: u16, rest: bool },
}

/// A compiled function and the sources of its captured values.
pub(crate) struct FunctionNode {
    pub(crate) code: Arc<Code>,
    pub(crate) captures: Vec<Capture>,
}

impl Expr {
    pub(crate) fn new(kind: NodeKind, span: Span) -> Self {
        Self { kind, span }
    }

    /// One of two expressions, by a test.
    pub(crate) fn branch([test, then, otherwise]: [Expr; 3], span: Span) -> Self {
        Self::new(NodeKind::Cond(vec![(test, then)], Box::new(otherwise)), span)
    }

    pub(crate) fn constant(value: Value, span: Span) -> Self {
        Self::new(NodeKind::Constant(value), span)
    }
}
