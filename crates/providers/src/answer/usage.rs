//! Token usage of answers, in the same amounts for every provider.

use backstitch_core::budget::Amounts;
use backstitch_core::ports::PolicyAnswer;
use serde_json::Value;

use crate::error::ProviderError;

/// JSON pointers to the amounts in the usage that a provider reports.
///
/// Providers count in different ways: some report cached tokens beside the others, some as a part of them,
/// and the same holds for thoughts. [`Amounts`] include everything in `input_tokens` and `output_tokens`, and
/// name the parts separately.
pub(crate) struct UsageFields {
    /// All input tokens, cached ones included. The fields are added up.
    pub(crate) input: &'static [&'static str],
    /// Input tokens read from a cache. The first present field counts.
    pub(crate) cache_read: &'static [&'static str],
    /// Input tokens written to a cache. The first present field counts.
    pub(crate) cache_write: &'static [&'static str],
    /// All output tokens, thoughts included. The fields are added up.
    pub(crate) output: &'static [&'static str],
    /// Output tokens of thoughts. The first present field counts.
    pub(crate) reasoning: &'static [&'static str],
}

/// The maximum number of tokens accepted from one field. A larger number is a mistake, and must not cause an
/// overflow.
const MOST_TOKENS: u64 = 1 << 40;

/// A number of tokens. Some servers write whole numbers as floats.
fn tokens(value: &Value) -> Option<u64> {
    let whole = |number: f64| {
        (number.fract() == 0.0 && (0.0..=MOST_TOKENS as f64).contains(&number)).then_some(number as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

impl UsageFields {
    /// Adds what an answer costs. One that cannot be used costs what it reports.
    pub(crate) fn charge(
        &self,
        usage: &Value,
        answer: Result<PolicyAnswer, ProviderError>,
    ) -> Result<PolicyAnswer, ProviderError> {
        let usage = self.amounts(usage);
        answer.map(|answer| PolicyAnswer { usage, ..answer }).map_err(|error| error.costing(usage))
    }

    /// Reads the amounts of a usage. Missing and non-numeric fields count as 0, and no part exceeds the
    /// total.
    fn amounts(&self, usage: &Value) -> Amounts {
        let number = |pointer: &&str| usage.pointer(pointer).and_then(tokens);
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
