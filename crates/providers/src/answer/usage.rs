//! What an answer used, in the same amounts for every provider.

use backstitch_core::budget::Amounts;
use serde_json::Value;

/// Where the amounts stand in the usage that a provider reports, as JSON pointers.
///
/// Providers count in different ways: some report cached tokens beside the others, some inside of them, and the same holds for
/// thoughts. [`Amounts`] have everything in `input_tokens` and `output_tokens`, and tell the parts beside.
pub(crate) struct UsageFields {
    /// All tokens that were sent, cached ones included. The fields are added up.
    pub(crate) input: &'static [&'static str],
    /// The part that was read from a cache. The first field that is there counts.
    pub(crate) cache_read: &'static [&'static str],
    /// The part that was written to a cache. The first field that is there counts.
    pub(crate) cache_write: &'static [&'static str],
    /// All tokens that were answered with, thoughts included. The fields are added up.
    pub(crate) output: &'static [&'static str],
    /// The part that was thought. The first field that is there counts.
    pub(crate) reasoning: &'static [&'static str],
}

/// The most tokens that a provider is believed to have counted: more would be a slip, and must not end in an overflow.
const MOST_TOKENS: u64 = 1 << 40;

impl UsageFields {
    /// The amounts of a usage. Fields that are missing or that are no numbers count as nothing, and no part is more than the whole.
    pub(crate) fn amounts(&self, usage: &Value) -> Amounts {
        let number = |pointer: &&str| usage.pointer(pointer).and_then(Value::as_u64);
        let sum = |pointers: &[&str]| -> u64 {
            pointers.iter().filter_map(number).map(|tokens| tokens.min(MOST_TOKENS)).sum()
        };
        let first = |pointers: &[&str]| pointers.iter().find_map(number).unwrap_or(0);
        let (input_tokens, output_tokens) = (sum(self.input), sum(self.output));
        let cache_read_tokens = first(self.cache_read).min(input_tokens);
        Amounts {
            input_tokens,
            cache_read_tokens,
            cache_write_tokens: first(self.cache_write).min(input_tokens - cache_read_tokens),
            output_tokens,
            reasoning_tokens: first(self.reasoning).min(output_tokens),
            ..Amounts::ZERO
        }
    }
}
