//! The tree between forms and instructions: special forms reduced to a few, names resolved.

use std::sync::Arc;

use super::code::{Capture, Code};
use crate::library::Native;
use crate::reader::Span;
use crate::value::Value;

/// A local variable of a function: its slot.
pub(crate) type Slot = u16;

/// An expression and where it stands.
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) span: Span,
}

/// The kinds of expression that are left after expansion.
pub(crate) enum NodeKind {
    Constant(Value),
    /// A local. `last` is set where no later expression reads it.
    Local {
        slot: Slot,
        last: bool,
    },
    Captured(u16),
    Sibling(u16),
    /// A bare name that is defined, or will be.
    Global(u32),
    /// The same with `user/` before it, which means nothing else if it is not defined.
    Definition(u32),
    /// Whether a name is defined.
    IsDefined(u32),
    Data(u32),
    If(Box<[Node; 3]>),
    /// Pairs of test and result, then what is given if no test holds.
    Cond(Vec<(Node, Node)>, Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Do(Vec<Node>),
    Let(Vec<Binding>, Box<Node>),
    Loop {
        first: Slot,
        initial: Vec<Node>,
        body: Box<Node>,
    },
    Recur {
        first: Slot,
        arguments: Vec<Node>,
        of_loop: bool,
    },
    Call(Box<Node>, Vec<Node>),
    CallNative(&'static Native, Vec<Node>),
    CallTool(Box<str>, Vec<Node>),
    Function(FunctionNode),
    Group {
        functions: FunctionNode,
        first: Slot,
        count: u16,
        body: Box<Node>,
    },
    Lazy(FunctionNode),
    Vector(Vec<Node>),
    Map(Vec<Node>),
    Set(Vec<Node>),
    Case {
        value: Box<Node>,
        clauses: Vec<(Vec<Value>, Node)>,
        otherwise: Box<Node>,
    },
    Try {
        body: Box<Node>,
        catches: Vec<(Box<str>, Slot, Node)>,
        finally: Option<(Slot, Slot, Box<Node>)>,
    },
    Define {
        global: u32,
        doc: Option<Value>,
        value: Option<Box<Node>>,
    },
    Task(Box<Node>, Box<Node>),
}

/// What a `let` binds.
pub(crate) enum Binding {
    /// A value in a slot.
    One(Slot, Node),
    /// The items of a sequence in consecutive slots, the rest in the last one if wanted.
    Spread { value: Node, first: Slot, count: u16, rest: bool },
}

/// A compiled function and where its captured values come from.
pub(crate) struct FunctionNode {
    pub(crate) code: Arc<Code>,
    pub(crate) captures: Vec<Capture>,
}

impl Node {
    pub(crate) fn new(kind: NodeKind, span: Span) -> Self {
        Self { kind, span }
    }

    pub(crate) fn constant(value: Value, span: Span) -> Self {
        Self::new(NodeKind::Constant(value), span)
    }
}
