//! Prices of models, for limits of money.

use std::collections::BTreeMap;

use backstitch_core::budget::Amounts;
use serde::{Deserialize, Serialize};

/// The price of a model, in millionths of a unit of money per million tokens. A price of 3 units is
/// 3,000,000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens that are sent.
    pub input: u64,
    /// Sent tokens that the provider reads from a cache. `None` means the price of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Sent tokens that the provider writes to a cache. `None` means the price of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Tokens of the answer, including reasoning.
    pub output: u64,
}

impl Price {
    /// Returns the cost of these tokens, rounded up. Every token is counted once, at the price of its kind.
    fn of(self, amounts: Amounts) -> u64 {
        let costs = [
            (self.input, amounts.uncached_tokens()),
            (self.cache_read.unwrap_or(self.input), amounts.cache_read_tokens),
            (self.cache_write.unwrap_or(self.input), amounts.cache_write_tokens),
            (self.output, amounts.output_tokens),
        ];
        let cost = costs
            .into_iter()
            .fold(0u128, |sum, (price, tokens)| sum.saturating_add(u128::from(price) * u128::from(tokens)));
        u64::try_from(cost.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// Prices by the provider's name of a model, or by `provider:model` if two providers have models of the same
/// name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// Whether the price of a model is known.
    pub(crate) fn has(&self, provider: &str, model: &str) -> bool {
        self.0.contains_key(&format!("{provider}:{model}")) || self.0.contains_key(model)
    }

    /// Returns the amounts with their cost, if the price is known and the provider did not report a cost.
    pub(crate) fn priced(&self, amounts: Amounts, provider: &str, model: &str) -> Amounts {
        let known = self.0.get(&format!("{provider}:{model}")).or_else(|| self.0.get(model));
        match known {
            Some(price) if amounts.money_micros == 0 => {
                Amounts { money_micros: price.of(amounts), ..amounts }
            }
            _ => amounts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_cost_what_their_model_does_rounded_up() {
        let price = |input, output| Price { input, output, ..Price::default() };
        let prices = Prices(BTreeMap::from([
            ("small".to_owned(), price(1_000_000, 2_000_000)),
            ("mill:small".to_owned(), price(1, 0)),
        ]));
        let amounts = Amounts { input_tokens: 3, output_tokens: 2, ..Amounts::ZERO };
        assert_eq!(prices.priced(amounts, "loom", "small").money_micros, 7);
        assert_eq!(prices.priced(amounts, "mill", "small").money_micros, 1);
        assert_eq!(prices.priced(amounts, "mill", "large").money_micros, 0);
        let told = Amounts { money_micros: 5, ..amounts };
        assert_eq!(prices.priced(told, "loom", "small"), told);
    }

    #[test]
    fn cached_tokens_have_prices_of_their_own() {
        let plain = Price { input: 3_000_000, output: 15_000_000, ..Price::default() };
        let cached = Price { cache_read: Some(300_000), cache_write: Some(3_750_000), ..plain };
        let amounts = Amounts {
            input_tokens: 100_000,
            cache_read_tokens: 99_000,
            cache_write_tokens: 600,
            output_tokens: 1_000,
            reasoning_tokens: 900,
            ..Amounts::ZERO
        };
        // 400 fresh at 3, 99,000 read at 0.3, 600 written at 3.75, 1,000 answered at 15.
        assert_eq!(cached.of(amounts), 1_200 + 29_700 + 2_250 + 15_000);
        // Without prices of their own they cost as much as other input.
        assert_eq!(plain.of(amounts), 300_000 + 15_000);
        let whole = Amounts { cache_read_tokens: 0, cache_write_tokens: 0, ..amounts };
        assert_eq!(plain.of(amounts), plain.of(whole));
        let free = Price { cache_read: Some(0), ..plain };
        assert_eq!(free.of(amounts), 1_200 + 1_800 + 15_000);
    }

    #[test]
    fn costs_do_not_overflow() {
        let price = Price {
            cache_write: Some(u64::MAX),
            ..Price { input: u64::MAX, output: u64::MAX, ..Price::default() }
        };
        let most = u64::MAX;
        let amounts = Amounts {
            input_tokens: most,
            cache_read_tokens: most,
            cache_write_tokens: most,
            output_tokens: most,
            ..Amounts::ZERO
        };
        assert_eq!(price.of(amounts), u64::MAX);
    }

    #[test]
    fn prices_without_a_cache_are_read_as_before() {
        let old: Price = serde_json::from_str(r#"{"input":3,"output":15}"#).unwrap();
        assert_eq!(old, Price { input: 3, output: 15, ..Price::default() });
        assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"input":3,"output":15}"#);
    }
}
