//! Functions written in the language: code and captured values.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::{Shape, Value};
use crate::compile::{Body, Code, Function};

/// The creation order of a function, which is also its identity: two functions are equal if their stamps are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp(pub(crate) u64);

impl Stamp {
    /// The bit that marks stamps of branches of `pmap` and `pcalls`. Stamps of the program itself count up
    /// and never reach it.
    const BRANCH: u64 = 1 << 63;

    /// Returns the first stamp of a branch. Stamps of different branches differ whatever the branches do and
    /// in whichever order they run, and those of different forks because `fork` is a stamp of its own.
    pub(crate) fn first_of_branch(fork: Stamp, path: &[(u32, u32)]) -> u64 {
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let start = (0xcbf2_9ce4_8422_2325 ^ fork.0).wrapping_mul(PRIME);
        let hash = path.iter().fold(start, |hash, (fork, branch)| {
            (hash ^ (u64::from(*fork) << 32 | u64::from(*branch))).wrapping_mul(PRIME)
        });
        // Mixed once more, because the last steps of the path must affect all bits.
        let mixed = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 32)) | Self::BRANCH
    }

    /// Returns whether this is a stamp of a branch.
    pub(crate) fn is_of_branch(self) -> bool {
        self.0 >= Self::BRANCH
    }
}

/// A function: code and the captured values of the names around it.
pub struct Closure {
    code: Arc<Code>,
    member: u32,
    captured: Arc<[Value]>,
    stamp: Stamp,
    shape: Shape,
    /// The type of its last result, as an index into [`KINDS`]; 0 before its first call.
    returned: AtomicU8,
}

/// The types of results: the type labels without sizes.
const KINDS: [&str; 14] = [
    "", "nil", "boolean", "integer", "float", "string", "keyword", "list", "map", "set", "fn", "ratio",
    "date", "any",
];

impl Closure {
    pub(crate) fn new(code: Arc<Code>, member: u32, captured: Arc<[Value]>, stamp: Stamp) -> Self {
        let shape = if captured.is_empty() { Shape::EMPTY } else { Shape::of(captured.iter()) };
        Self { code, member, captured, stamp, shape, returned: AtomicU8::new(0) }
    }

    /// Returns a function that was created together with this one: it shares the code and the captured
    /// values.
    pub(crate) fn sibling(&self, member: u32) -> Closure {
        let stamp = Stamp(self.stamp.0.wrapping_sub(u64::from(self.member)).wrapping_add(u64::from(member)));
        let (code, captured) = (self.code.clone(), self.captured.clone());
        Self { code, member, captured, stamp, shape: self.shape, returned: AtomicU8::new(0) }
    }

    /// Returns the same function with other captured values, which have been realised.
    pub(crate) fn with_captured(&self, captured: Arc<[Value]>) -> Closure {
        let mut closure = Self::new(self.code.clone(), self.member, captured, self.stamp);
        closure.returned = AtomicU8::new(self.returned.load(Ordering::Relaxed));
        closure
    }

    /// Returns the index of this function in its code.
    pub(crate) fn member(&self) -> usize {
        self.member as usize
    }

    pub(crate) fn function(&self) -> &Function {
        &self.code.functions[self.member as usize]
    }

    /// Returns one of its bodies, by the number that [`Function::arity`] returns.
    #[inline]
    pub(crate) fn body(&self, arity: u32) -> &Body {
        let function = self.function();
        function
            .fixed
            .get(arity as usize)
            .or(function.variadic.as_ref())
            .expect("invariant: the arity was found")
    }

    /// Returns its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.function().name.as_ref().map(|name| name.full())
    }

    /// Returns the parameters of each of its arities, as they were written: `[x & more]`.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.function().parameters.iter().map(|text| &**text)
    }

    pub(crate) fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// Returns the captured values, in the order of [`Closure::captured_names`].
    pub fn captured(&self) -> &Arc<[Value]> {
        &self.captured
    }

    /// Returns the names of the captured values, in order.
    pub fn captured_names(&self) -> impl Iterator<Item = &str> {
        self.code.captured_names()
    }

    /// Returns its identity.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Returns the type of its last result, without a size: `integer`, `list`. `None` before its first call.
    pub fn returned(&self) -> Option<&'static str> {
        match self.returned.load(Ordering::Relaxed) {
            0 => None,
            kind => KINDS.get(usize::from(kind)).copied(),
        }
    }

    /// Records the type of a result. It is for display only.
    #[inline]
    pub(crate) fn note_returned(&self, value: &Value) {
        let kind = match value {
            Value::Nil => 1,
            Value::Boolean(_) => 2,
            Value::Integer(_) | Value::BigInteger(_) => 3,
            Value::Float(_) => 4,
            Value::String(_) => 5,
            Value::Keyword(_) => 6,
            Value::Vector(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => 7,
            Value::Map(_) => 8,
            Value::Set(_) => 9,
            Value::Closure(_) | Value::Native(_) | Value::Tool(_) => 10,
            Value::Ratio(_) => 11,
            Value::Temporal(_) => 12,
            _ => 13,
        };
        self.returned.store(kind, Ordering::Relaxed);
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }
}
