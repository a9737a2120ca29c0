//! What a function of the library that is written in Rust looks like to the compiler and the machine.
//!
//! A leaf never calls back into the evaluator. It says how far each argument must be realised before it is entered,
//! so that a lazy sequence whose function calls a tool may be given to any of them: the machine realises first, by
//! frames that can be suspended, and enters the leaf when everything it may look at lies ready.

use super::CallContext;
use crate::error::{Error, ErrorKind, Result};
use crate::machine::Enter;
use crate::value::Value;

/// How far an argument must be realised before a leaf is entered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Realise {
    /// Not at all.
    Not,
    /// The first cell, if it is a lazy sequence: enough to see whether it is empty and what is first.
    Next,
    /// All cells of the sequence itself, but not what its items hold.
    Spine,
    /// Everything if the first argument is a map or a set, whose keys must be known; else nothing.
    Element,
    /// Everything if the first argument is a map or a set, whose keys must be known; else all cells of the sequence.
    Elements,
    /// Everything, however deep.
    Deep,
}

/// How many arguments a function takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arity {
    /// At least so many.
    pub(crate) least: u8,
    /// At most so many, if there is a bound.
    pub(crate) most: Option<u8>,
}

impl Arity {
    /// Exactly `count`.
    pub(crate) const fn exactly(count: u8) -> Self {
        Self { least: count, most: Some(count) }
    }

    /// From `least` up to `most`.
    pub(crate) const fn between(least: u8, most: u8) -> Self {
        Self { least, most: Some(most) }
    }

    /// At least `least`.
    pub(crate) const fn at_least(least: u8) -> Self {
        Self { least, most: None }
    }

    /// Whether `count` arguments will do.
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

/// What a function does besides computing its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effects {
    /// Nothing: same arguments, same result, and nobody can tell when it ran.
    Pure,
    /// Calls functions it is given, so it does what they do.
    Calls,
    /// Prints, reads or writes atoms, draws random numbers, or ends the program.
    Acts,
}

/// The Rust behind a function of the library.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// Looks at its arguments.
    Leaf(fn(&mut CallContext<'_>, &[Value]) -> Result<Value>),
    /// May take its arguments out of the slice, to change them in place where nobody else holds them. It must not
    /// fail after it has taken one.
    Taking(fn(&mut CallContext<'_>, &mut [Value]) -> Result<Value>),
    /// Pushes frames: for functions that call functions, realise lazily or act on the machine.
    Frame(Enter),
}

/// A function of the library that is written in Rust.
pub struct Native {
    /// Its name: bare for `clojure.core`, `clojure.string/join`, `Math/abs`, `.length`, `java.util.Date.`
    pub name: &'static str,
    /// How many arguments it takes.
    pub(crate) arity: Arity,
    /// How far each argument must be realised; the last entry holds for all further ones, none means not at all.
    pub(crate) realise: &'static [Realise],
    /// What it does besides computing its result.
    pub(crate) effects: Effects,
    /// The Rust behind it.
    pub(crate) run: Run,
}

impl Native {
    /// A pure function that looks at its arguments.
    pub(crate) const fn leaf(
        name: &'static str,
        arity: Arity,
        realise: &'static [Realise],
        run: fn(&mut CallContext<'_>, &[Value]) -> Result<Value>,
    ) -> Self {
        Self { name, arity, realise, effects: Effects::Pure, run: Run::Leaf(run) }
    }

    /// A pure function that may take its arguments.
    pub(crate) const fn taking(
        name: &'static str,
        arity: Arity,
        realise: &'static [Realise],
        run: fn(&mut CallContext<'_>, &mut [Value]) -> Result<Value>,
    ) -> Self {
        Self { name, arity, realise, effects: Effects::Pure, run: Run::Taking(run) }
    }

    /// A function that pushes frames.
    pub(crate) const fn frame(
        name: &'static str,
        arity: Arity,
        realise: &'static [Realise],
        effects: Effects,
        enter: Enter,
    ) -> Self {
        Self { name, arity, realise, effects, run: Run::Frame(enter) }
    }

    /// How far the argument at an index must be realised.
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
