//! Functions written in the language: code and what it captured.

use std::sync::Arc;

use super::{Shape, Value};
use crate::compile::Code;

/// When a function was made, which is also its identity: two functions are equal if their stamps are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp(pub(crate) u64);

/// A function: code and the values of the names around it that it uses.
pub struct Closure {
    code: Arc<Code>,
    captured: Arc<[Value]>,
    stamp: Stamp,
    shape: Shape,
}

impl Closure {
    pub(crate) fn new(code: Arc<Code>, captured: Arc<[Value]>, stamp: Stamp) -> Self {
        let shape = if captured.is_empty() { Shape::EMPTY } else { Shape::of(captured.iter()) };
        Self { code, captured, stamp, shape }
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
