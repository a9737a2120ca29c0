//! Library functions that are written in Rust, as the compiler and the machine see them.
//!
//! A leaf function never calls back into the evaluator. It declares how far each argument must be realised,
//! so that any of them accepts a lazy sequence whose function calls a tool: the machine realises the
//! arguments first, in frames that can be suspended, and then enters the leaf.

use super::CallContext;
use crate::error::{Error, ErrorKind, Result};
use crate::machine::Enter;
use crate::value::Value;

/// The extent to which an argument must be realised before a leaf is entered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Realise {
    /// Not at all.
    Not,
    /// The first cell of a lazy sequence: enough to see if it is empty, and its first item.
    Next,
    /// All cells of the sequence itself, but not of its items.
    Spine,
    /// Everything if the first argument is a map or a set, whose keys must be realised; otherwise nothing.
    Element,
    /// Everything if the first argument is a map or a set, whose keys must be realised; otherwise all cells
    /// of the sequence.
    Elements,
    /// Everything, at any depth.
    Deep,
}

/// The number of arguments that a function takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arity {
    /// The minimum.
    pub(crate) least: u8,
    /// The maximum; `None` for variadic functions.
    pub(crate) most: Option<u8>,
}

impl Arity {
    pub(crate) const fn exactly(count: u8) -> Self {
        Self { least: count, most: Some(count) }
    }

    pub(crate) const fn between(least: u8, most: u8) -> Self {
        Self { least, most: Some(most) }
    }

    pub(crate) const fn at_least(least: u8) -> Self {
        Self { least, most: None }
    }

    /// Returns whether a call with `count` arguments is valid.
    pub(crate) fn accepts(self, count: usize) -> bool {
        count >= usize::from(self.least) && self.most.is_none_or(|most| count <= usize::from(most))
    }

    /// The error for a call with `count` arguments.
    #[cold]
    pub(crate) fn mismatch(self, name: &str, count: usize) -> Error {
        let expected = match (self.least, self.most) {
            (least, Some(most)) if least == most => format!("{least}"),
            (least, Some(most)) => format!("{least} to {most}"),
            (least, None) => format!("at least {least}"),
        };
        let noun = if expected == "1" { "argument" } else { "arguments" };
        Error::new(ErrorKind::Arity, format!("{name}: wrong number of arguments ({count})"))
            .hint(format!("`{name}` takes {expected} {noun}"))
    }
}

/// The effects of a function besides its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effects {
    /// None: the same arguments give the same result, and the time of the call does not matter.
    Pure,
    /// The effects of the functions that it is given.
    Calls,
    /// Prints, reads or writes atoms, draws random numbers, or ends the program.
    Acts,
}

/// The Rust implementation of a library function.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// Reads its arguments.
    Leaf(Leaf),
    /// May take its arguments out of the slice, to change them in place if they have no other owner. It must
    /// not fail after it has taken one.
    Taking(fn(&mut CallContext<'_>, &mut [Value]) -> Result<Value>),
    /// Pushes frames: for functions that call functions, realise lazily or act on the machine.
    Frame(Enter),
}

/// The implementation of a function that reads its arguments.
type Leaf = fn(&mut CallContext<'_>, &[Value]) -> Result<Value>;

/// A library function that is written in Rust.
pub struct Native {
    /// The name: bare for `clojure.core`, `clojure.string/join`, `Math/abs`, `.length`, `java.util.Date.`
    pub name: &'static str,
    pub(crate) arity: Arity,
    /// The required realisation of each argument. The last entry holds for all further ones; an empty list
    /// requires none.
    pub(crate) realise: &'static [Realise],
    pub(crate) effects: Effects,
    pub(crate) run: Run,
    /// The function of the prelude that is called instead if the first argument has a comparator of the
    /// program.
    sorted: Option<&'static str>,
    quick: Option<Quick>,
}

/// The result for two plain numbers; `None` for all other arguments.
type Quick = fn(&Value, &Value) -> Option<Value>;

impl Native {
    const fn new(
        name: &'static str,
        arity: Arity,
        realise: &'static [Realise],
        effects: Effects,
        run: Run,
    ) -> Self {
        Self { name, arity, realise, effects, run, sorted: None, quick: None }
    }

    /// Creates a pure function that reads its arguments.
    pub(crate) const fn leaf(
        name: &'static str,
        arity: Arity,
        realise: &'static [Realise],
        run: Leaf,
    ) -> Self {
        Self::new(name, arity, realise, Effects::Pure, Run::Leaf(run))
    }

    /// Creates a pure function of one argument, which it takes as it is.
    pub(crate) const fn unary(name: &'static str, run: Leaf) -> Self {
        Self::leaf(name, Arity::exactly(1), &[], run)
    }

    /// Creates a pure function of two arguments, which it takes as they are.
    pub(crate) const fn binary(name: &'static str, run: Leaf) -> Self {
        Self::leaf(name, Arity::exactly(2), &[], run)
    }

    /// Creates a pure function that may take its arguments.
    pub(crate) const fn taking(
        name: &'static str,
        arity: Arity,
        realise: &'static [Realise],
        run: fn(&mut CallContext<'_>, &mut [Value]) -> Result<Value>,
    ) -> Self {
        Self::new(name, arity, realise, Effects::Pure, Run::Taking(run))
    }

    /// Names the function of the prelude that replaces this one for maps and sets with a comparator.
    pub(crate) const fn if_sorted(self, name: &'static str) -> Self {
        Self { sorted: Some(name), ..self }
    }

    /// Adds a way to compute the result for two plain numbers, for loops that call the function for each item.
    /// It must give what the function gives, and stand for work that costs no fuel of its own.
    pub(crate) const fn quick(self, quick: Quick) -> Self {
        Self { quick: Some(quick), ..self }
    }

    /// Returns the result for two plain numbers, if the function has a quick way to it.
    #[inline]
    pub(crate) fn of_numbers(&self, a: &Value, b: &Value) -> Option<Value> {
        self.quick.and_then(|quick| quick(a, b))
    }

    /// Returns the name of the function of the prelude to call instead with these arguments.
    #[inline]
    pub(crate) fn replacement(&self, arguments: &[Value]) -> Option<&'static str> {
        let name = self.sorted?;
        arguments.first().and_then(super::comparator_of).map(|_| name)
    }

    /// Returns whether a call with these arguments pushes a frame.
    #[inline]
    pub(crate) fn needs_frame(&self, arguments: &[Value]) -> bool {
        matches!(self.run, Run::Frame(_)) || self.replacement(arguments).is_some()
    }

    /// Creates a function that pushes frames.
    pub(crate) const fn frame(
        name: &'static str,
        arity: Arity,
        realise: &'static [Realise],
        effects: Effects,
        enter: Enter,
    ) -> Self {
        Self::new(name, arity, realise, effects, Run::Frame(enter))
    }

    /// Creates a function that pushes frames, takes its arguments as they are, and has the effects of the
    /// functions that it calls.
    pub(crate) const fn calling(name: &'static str, arity: Arity, enter: Enter) -> Self {
        Self::frame(name, arity, &[], Effects::Calls, enter)
    }

    /// Creates a function that pushes frames, takes its arguments as they are, and acts.
    pub(crate) const fn acting(name: &'static str, arity: Arity, enter: Enter) -> Self {
        Self::frame(name, arity, &[], Effects::Acts, enter)
    }

    /// Returns the required realisation of the argument at an index.
    #[inline]
    pub(crate) fn realise_at(&self, index: usize) -> Realise {
        match self.realise.get(index).or(self.realise.last()) {
            Some(realise) => *realise,
            None => Realise::Not,
        }
    }
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#<function {}>", self.name)
    }
}
