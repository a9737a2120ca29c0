//! The values of programs.
//!
//! A [`Value`] is sixteen bytes and cheap to clone: larger contents are shared. Values are immutable, except
//! that a lazy cell is realised in place, which no program can observe. There are no cycles between values:
//! an atom is the number of a cell of the memory, a function that calls itself finds itself through its
//! frame, and a global through its slot.
//!
//! Every collection stores a bound on its nesting depth, so recursion over values is bounded by the limit
//! that was checked when they were built, and dropping one never overflows the stack (see [`Shape`] and
//! `reclaim`).

mod atom;
mod compare;
mod cursor;
mod custom;
mod equality;
mod exception;
mod function;
mod hash;
pub(crate) mod integers;
mod lazy;
mod list;
mod map;
pub(crate) mod number;
mod order;
mod ratio;
mod reclaim;
mod sequence;
mod set;
mod shape;
mod temporal;
mod text;
mod vector;

use std::sync::Arc;

pub use atom::AtomRef;
pub(crate) use atom::DELAY;
pub use compare::compare;
pub use cursor::{Cursor, CursorStep};
pub use equality::equal;
pub(crate) use equality::identical;
pub use exception::Exception;
pub use function::{Closure, Stamp};
pub(crate) use hash::hash;
pub use lazy::LazyCell;
pub(crate) use lazy::{Each, Thunk};
pub use list::{List, ListNode};
pub use map::Map;
use num_bigint::BigInt;
pub use ratio::Ratio;
pub use sequence::Sequence;
pub use set::Set;
pub(crate) use shape::Shape;
pub use temporal::{Temporal, TimeUnit, Zone};
pub use text::{Keyword, Symbol, Text};
pub use vector::Vector;

use crate::library::Native;

/// A regular expression: its source and its compiled form.
#[derive(Debug)]
pub struct Pattern {
    /// The pattern as it was written.
    pub source: Box<str>,
    /// The compiled pattern.
    pub(crate) regex: crate::library::CompiledPattern,
}

/// A value of the language.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Value {
    /// `nil`
    #[default]
    Nil,
    /// `true`, `false`
    Boolean(bool),
    /// A 64 bit integer.
    Integer(i64),
    /// A double.
    Float(f64),
    /// A character.
    Character(char),
    /// An integer of any size. It may be small: `1N` stays big.
    BigInteger(Arc<BigInt>),
    /// An exact fraction in lowest terms, the denominator at least 2.
    Ratio(Arc<Ratio>),
    /// A string.
    String(Text),
    /// A keyword.
    Keyword(Keyword),
    /// A symbol.
    Symbol(Symbol),
    /// A linked list, or a value prepended to another sequence by `cons`. The empty list too.
    List(List),
    /// A view into a vector or a range of integers, possibly continued by another sequence.
    Sequence(Sequence),
    /// A lazy sequence.
    Lazy(Arc<LazyCell>),
    /// A vector, or an entry of a map.
    Vector(Vector),
    /// A map.
    Map(Map),
    /// A set.
    Set(Set),
    /// A function written in the language.
    Closure(Arc<Closure>),
    /// A function of the library.
    Native(&'static Native),
    /// A tool, as a function.
    Tool(Symbol),
    /// A reference to a definition: `#'name`.
    Var(Symbol),
    /// An atom: the number of a cell of the memory.
    Atom(AtomRef),
    /// A regular expression.
    Regex(Arc<Pattern>),
    /// A date, an instant or a duration.
    Temporal(Arc<Temporal>),
    /// An exception: created by `ex-info` and bound by `catch`.
    Exception(Arc<Exception>),
    /// A value that ends a reduction, created by `reduced`.
    Reduced(Arc<Value>),
}

impl Value {
    /// Creates a string.
    pub fn string(text: impl Into<Box<str>>) -> Value {
        Value::String(Text::new(text))
    }

    /// Creates a keyword from its name without the colon.
    pub fn keyword(name: impl Into<Box<str>>) -> Value {
        Value::Keyword(Keyword::new(name))
    }

    /// Creates a symbol.
    pub fn symbol(name: impl Into<Box<str>>) -> Value {
        Value::Symbol(Symbol::new(name))
    }

    /// Creates a vector.
    pub fn vector(items: Vec<Value>) -> Value {
        Value::Vector(Vector::from(items))
    }

    /// Creates a list.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(List::from(items))
    }

    /// Returns whether the value counts as true: everything but `nil` and `false` does.
    pub fn is_truthy(&self) -> bool {
        !matches!(self, Value::Nil | Value::Boolean(false))
    }

    /// Returns whether this is `nil`.
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Returns the nesting depth: the number of collections on the longest path to an innermost value. 0 for
    /// other values.
    #[inline]
    pub fn depth(&self) -> u32 {
        match self {
            Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::String(_) => 0,
            other => other.shape().depth(),
        }
    }

    /// Returns whether this is or may contain a lazy cell.
    #[inline]
    pub fn may_hold_lazy(&self) -> bool {
        match self {
            Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::String(_) => false,
            other => other.shape().may_hold_lazy(),
        }
    }

    /// Returns the address of a heap value.
    pub(crate) fn address(&self) -> Option<usize> {
        Some(match self {
            Value::BigInteger(number) => Arc::as_ptr(number).addr(),
            Value::Ratio(ratio) => Arc::as_ptr(ratio).addr(),
            Value::String(text) => text.address(),
            Value::Keyword(name) => name.address(),
            Value::Symbol(name) | Value::Var(name) | Value::Tool(name) => name.address(),
            Value::List(list) => list.address(),
            Value::Sequence(sequence) => sequence.address(),
            Value::Lazy(cell) => Arc::as_ptr(cell).addr(),
            Value::Vector(vector) => vector.address(),
            Value::Map(map) => map.address(),
            Value::Set(set) => set.address(),
            Value::Closure(closure) => Arc::as_ptr(closure).addr(),
            Value::Exception(exception) => Arc::as_ptr(exception).addr(),
            Value::Reduced(inner) => Arc::as_ptr(inner).addr(),
            Value::Regex(pattern) => Arc::as_ptr(pattern).addr(),
            Value::Temporal(temporal) => Arc::as_ptr(temporal).addr(),
            _ => return None,
        })
    }

    /// Returns the name of the type in messages: `integer`, `string`, `vector`, `function` and so on.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Boolean(_) => "boolean",
            Value::Integer(_) | Value::BigInteger(_) => "integer",
            Value::Float(_) => "float",
            Value::Ratio(_) => "ratio",
            Value::Character(_) => "char",
            Value::String(_) => "string",
            Value::Keyword(_) => "keyword",
            Value::Symbol(_) => "symbol",
            Value::List(_) => "list",
            Value::Sequence(_) | Value::Lazy(_) => "seq",
            Value::Vector(_) => "vector",
            Value::Map(_) => "map",
            Value::Set(_) => "set",
            Value::Closure(_) | Value::Native(_) | Value::Tool(_) => "function",
            Value::Var(_) => "var",
            Value::Atom(atom) if atom.is_delay() => "delay",
            Value::Atom(_) => "atom",
            Value::Regex(_) => "regex",
            Value::Temporal(temporal) => temporal.type_name(),
            Value::Exception(_) => "exception",
            Value::Reduced(_) => "reduced",
        }
    }
}

macro_rules! conversions {
    ($($from:ty => $create:path;)*) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                $create(value)
            }
        }
    )*};
}

conversions! {
    bool => Value::Boolean;
    i64 => Value::Integer;
    f64 => Value::Float;
    &str => Value::string;
    String => Value::string;
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Nil => f.write_str("nil"),
            Value::Boolean(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Character(value) => write!(f, "{value:?}"),
            Value::String(text) => write!(f, "{text:?}"),
            Value::Keyword(name) => write!(f, ":{name:?}"),
            Value::Symbol(name) => write!(f, "{name:?}"),
            other => write!(f, "#<{}>", other.type_name()),
        }
    }
}
