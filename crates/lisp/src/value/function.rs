//! Functions written in the language: code and what it captured.

use std::sync::Arc;

use super::{Shape, Value};
use crate::compile::{Code, Function};

/// When a function was made, which is also its identity: two functions are equal if their stamps are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp(pub(crate) u64);

/// A function: code and the values of the names around it that it uses.
pub struct Closure {
    code: Arc<Code>,
    member: u32,
    captured: Arc<[Value]>,
    stamp: Stamp,
    shape: Shape,
}

impl Closure {
    pub(crate) fn new(code: Arc<Code>, member: u32, captured: Arc<[Value]>, stamp: Stamp) -> Self {
        let shape = if captured.is_empty() { Shape::EMPTY } else { Shape::of(captured.iter()) };
        Self { code, member, captured, stamp, shape }
    }

    /// A function that was made together with this one: it shares the code and what was captured.
    pub(crate) fn sibling(&self, member: u32) -> Closure {
        let stamp = Stamp(self.stamp.0.wrapping_sub(u64::from(self.member)).wrapping_add(u64::from(member)));
        Self { code: self.code.clone(), member, captured: self.captured.clone(), stamp, shape: self.shape }
    }

    /// Which of the functions of its code this is.
    pub(crate) fn member(&self) -> usize {
        self.member as usize
    }

    /// Its arities.
    pub(crate) fn function(&self) -> &Function {
        &self.code.functions[self.member as usize]
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.function().name.as_ref().map(|name| name.full())
    }

    /// The parameters of each of its arities, as they were written: `[x & more]`.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.function().parameters.iter().map(|text| &**text)
    }

    /// What it was compiled to.
    pub fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// The captured values, in the order of [`Code::captured_names`].
    pub fn captured(&self) -> &Arc<[Value]> {
        &self.captured
    }

    /// Its identity.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }
}
