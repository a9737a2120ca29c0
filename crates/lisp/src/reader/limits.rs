//! How much text the reader takes.

/// Limits of reading. Each gives a typed error when it is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Bytes of text.
    pub bytes: usize,
    /// Forms inside forms. Values beyond [`ReadLimits::DEEPEST`] count as that.
    pub depth: usize,
    /// Characters of a number.
    pub number_digits: usize,
}

impl ReadLimits {
    /// The deepest nesting that can be asked for, so that whoever walks forms by recursion stays within a small stack.
    pub const DEEPEST: usize = 1_000;

    /// The same limits with another number of bytes.
    #[must_use]
    pub fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// The same limits with another depth.
    #[must_use]
    pub fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// The same limits with another number of digits.
    #[must_use]
    pub fn with_number_digits(mut self, digits: usize) -> Self {
        self.number_digits = digits;
        self
    }
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { bytes: 16 * 1024 * 1024, depth: 256, number_digits: 10_000 }
    }
}
