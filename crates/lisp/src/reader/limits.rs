//! The limits of the reader.

/// The limits of reading. Exceeding one is a typed error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Length of the text in bytes.
    pub bytes: usize,
    /// The deepest nesting of forms. Higher values than [`ReadLimits::DEEPEST`] count as that.
    pub depth: usize,
    /// The most characters of a number.
    pub number_digits: usize,
}

impl ReadLimits {
    /// The highest possible depth limit, so that recursion over forms fits in a small stack.
    pub const DEEPEST: usize = 1_000;

    /// Sets the limit of bytes.
    #[must_use]
    pub fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the limit of depth.
    #[must_use]
    pub fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the limit of digits.
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
