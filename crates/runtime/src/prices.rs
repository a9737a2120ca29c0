//! What models cost, so that money can be limited.

use std::collections::BTreeMap;

use backstitch_core::budget::Amounts;
use serde::{Deserialize, Serialize};

/// What a model costs, in millionths of a unit of money for a million tokens: 3 of a unit are 3,000,000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of what is sent.
    pub input: u64,
    /// Of what it answers with.
    pub output: u64,
}

impl Price {
    /// What so many tokens cost, rounded up.
    fn of(self, amounts: Amounts) -> u64 {
        let cost = |price: u64, tokens: u64| u128::from(price) * u128::from(tokens);
        let cost = cost(self.input, amounts.input_tokens) + cost(self.output, amounts.output_tokens);
        u64::try_from(cost.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// Prices by model, as a provider names it, or `provider:model` where two have one of the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// The same amounts with what they cost, where that is known and was not told.
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
        let price = |input, output| Price { input, output };
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
}
