//! The limits of a program. Every limit is configurable, and exceeding one is an error of its own kind.

use crate::error::{Error, ErrorKind, Result};

/// The limits of one run of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Steps: one for each instruction and for each item that a library function handles.
    pub fuel: u64,
    /// Bytes of live values that the program has created.
    pub memory_bytes: usize,
    /// The deepest nesting of calls.
    pub stack_depth: usize,
    /// The deepest nesting of values, including functions that capture functions. At most
    /// [`Limits::DEEPEST_NESTING`].
    pub nesting_depth: u32,
    /// Items of one collection.
    pub collection_size: usize,
    /// Bytes of one string.
    pub string_bytes: usize,
    /// Bits of one number.
    pub number_bits: u64,
    /// Calls of `println` and similar functions.
    pub print_calls: usize,
    /// Characters that one call of `println` may print; the rest is cut and marked with `...`.
    pub print_characters_per_call: usize,
    /// Characters that all calls of `println` together may print.
    pub print_characters: usize,
    /// Number of tool calls.
    pub tool_calls: usize,
    /// Concurrent branches of one `pmap` or `pcalls`; the others are queued.
    pub parallelism: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 10_000_000,
            memory_bytes: 64 << 20,
            stack_depth: 10_000,
            nesting_depth: 200,
            collection_size: 1_000_000,
            string_bytes: 4 << 20,
            number_bits: 100_000,
            print_calls: 1_000,
            print_characters_per_call: 2_000,
            print_characters: 200_000,
            tool_calls: 256,
            parallelism: 64,
        }
    }
}

impl Limits {
    /// The deepest nesting of values that any limit allows. Comparing, printing and dropping values recurse
    /// to the depth of their nesting, and this fits on the stack of any thread.
    pub const DEEPEST_NESTING: u32 = 1_000;

    pub(crate) fn check_collection(&self, length: usize) -> Result<()> {
        if length > self.collection_size {
            return Err(self.collection_too_large());
        }
        Ok(())
    }

    #[cold]
    fn collection_too_large(&self) -> Error {
        let limit = self.collection_size;
        Error::new(ErrorKind::SizeExceeded, format!("a collection would have more than {limit} items"))
    }

    pub(crate) fn check_string(&self, bytes: usize) -> Result<()> {
        if bytes > self.string_bytes {
            let limit = self.string_bytes;
            let message = format!("a string would have more than {limit} bytes");
            return Err(Error::new(ErrorKind::SizeExceeded, message));
        }
        Ok(())
    }

    pub(crate) fn check_number(&self, bits: u64) -> Result<()> {
        if bits > self.number_bits {
            let limit = self.number_bits;
            let message = format!("a number would have more than {limit} bits");
            return Err(Error::new(ErrorKind::NumberSizeExceeded, message));
        }
        Ok(())
    }

    /// Returns the effective limit on the nesting of values.
    pub(crate) fn deepest(&self) -> u32 {
        self.nesting_depth.min(Self::DEEPEST_NESTING)
    }

    pub(crate) fn check_depth(&self, depth: u32) -> Result<()> {
        let limit = self.deepest();
        if depth > limit {
            let message = format!("a value would be nested more than {limit} deep");
            return Err(Error::new(ErrorKind::NestingExceeded, message));
        }
        Ok(())
    }
}
