//! Budgets: limits on what an agent may spend, and amounts that it has spent.
//!
//! An amount is reserved before each request and each call, and settled after it. Reservations and charges
//! are records of the journal. Neither a failed call nor a rewind rolls them back.

use serde::{Deserialize, Serialize};

use crate::id::ReservationId;

/// Amounts of each kind of cost.
///
/// `input_tokens` are all tokens sent and `output_tokens` all tokens received, with every provider. The other
/// three token counts are parts of these two, so a limit on tokens means the same with and without a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Amounts {
    /// Tokens sent to a model, including those that its provider read from or wrote to a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub input_tokens: u64,
    /// The part of `input_tokens` that was read from a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// The part of `input_tokens` that was written to a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens received from a model, including reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_tokens: u64,
    /// The part of `output_tokens` spent on reasoning, if the provider reports it.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// Money, in millionths of the unit of the prices.
    #[serde(skip_serializing_if = "is_zero")]
    pub money_micros: u64,
    /// Answers of policies.
    #[serde(skip_serializing_if = "is_zero")]
    pub turns: u64,
    /// Calls of options.
    #[serde(skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// Active time, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub millis: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Amounts {
    /// Zero of every kind.
    pub const ZERO: Self = Self {
        input_tokens: 0,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
        output_tokens: 0,
        reasoning_tokens: 0,
        money_micros: 0,
        turns: 0,
        calls: 0,
        millis: 0,
    };

    /// One answer of a policy.
    pub const ONE_TURN: Self = Self { turns: 1, ..Self::ZERO };

    /// The amounts that have a limit, in the order of [`DIMENSIONS`].
    fn limited(self) -> [u64; DIMENSIONS.len()] {
        let Self { input_tokens, output_tokens, money_micros, turns, calls, millis, .. } = self;
        [input_tokens, output_tokens, self.total_tokens(), money_micros, turns, calls, millis]
    }

    /// Returns the sum; it saturates at the largest number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with_each(other, u64::saturating_add)
    }

    /// Returns the difference; it saturates at zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.with_each(other, u64::saturating_sub)
    }

    fn with_each(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            input_tokens: combine(self.input_tokens, other.input_tokens),
            cache_read_tokens: combine(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: combine(self.cache_write_tokens, other.cache_write_tokens),
            output_tokens: combine(self.output_tokens, other.output_tokens),
            reasoning_tokens: combine(self.reasoning_tokens, other.reasoning_tokens),
            money_micros: combine(self.money_micros, other.money_micros),
            turns: combine(self.turns, other.turns),
            calls: combine(self.calls, other.calls),
            millis: combine(self.millis, other.millis),
        }
    }

    /// Tokens of both directions.
    pub fn total_tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The part of `input_tokens` that was neither read from nor written to a cache.
    pub fn uncached_tokens(self) -> u64 {
        self.input_tokens.saturating_sub(self.cache_read_tokens).saturating_sub(self.cache_write_tokens)
    }
}

/// An amount that is held back for work that has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Id by which the reservation is settled.
    pub id: ReservationId,
    /// Amounts held back.
    pub amounts: Amounts,
}

/// Upper limits on spending. An absent limit allows any amount.
///
/// ```
/// use backstitch_core::budget::{Amounts, Limits};
///
/// let limits = Limits { total_tokens: Some(200_000), turns: Some(40), ..Limits::default() };
/// let spent = Amounts { input_tokens: 150_000, turns: 10, ..Amounts::ZERO };
/// assert!(limits.check(spent).is_ok());
/// assert_eq!(limits.left_after(spent).total_tokens, Some(50_000));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Tokens sent to a model, cached or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens received from a model, including reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens of both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Money, in millionths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money_micros: Option<u64>,
    /// Answers of policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Calls of options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Active time, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
}

/// Name of the limit of money.
const MONEY: &str = "in money";

/// Names of the limits, in the order of their fields.
const DIMENSIONS: [&str; 7] =
    ["input tokens", "output tokens", "tokens", MONEY, "turns", "calls", "milliseconds"];

/// Spending would exceed a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the budget of {} {dimension} would be exceeded: {} in all", self.shown(self.limit), self.shown(self.wanted))]
pub struct BudgetExceeded {
    /// Name of the exceeded limit. Amounts of money are in millionths.
    pub dimension: &'static str,
    /// Largest amount allowed.
    pub limit: u64,
    /// Total amount that spending would reach.
    pub wanted: u64,
}

impl BudgetExceeded {
    /// Returns an amount as people write it.
    fn shown(&self, amount: u64) -> String {
        if self.dimension != MONEY {
            return amount.to_string();
        }
        let digits = format!("{}.{:06}", amount / 1_000_000, amount % 1_000_000);
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

impl Limits {
    /// Returns what remains of each limit after these amounts.
    #[must_use]
    pub fn left_after(&self, spent: Amounts) -> Self {
        self.with_each(spent.limited(), |limit, spent| limit.map(|limit| limit.saturating_sub(spent)))
    }

    /// Returns the smaller of each pair of limits.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        self.with_each(other.each(), |one, other| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        })
    }

    /// Divides every limit by the number of shares.
    #[must_use]
    pub fn share(&self, of: u64) -> Self {
        self.with_each([of.max(1); DIMENSIONS.len()], |limit, of| limit.map(|limit| limit / of))
    }

    /// The limits in the order of [`DIMENSIONS`].
    fn each(&self) -> [Option<u64>; DIMENSIONS.len()] {
        let Self { input_tokens, output_tokens, total_tokens, money_micros, turns, calls, millis } = *self;
        [input_tokens, output_tokens, total_tokens, money_micros, turns, calls, millis]
    }

    fn with_each<T: Copy>(
        &self,
        others: [T; DIMENSIONS.len()],
        combine: fn(Option<u64>, T) -> Option<u64>,
    ) -> Self {
        let limits = self.each();
        let [input_tokens, output_tokens, total_tokens, money_micros, turns, calls, millis] =
            std::array::from_fn(|index| combine(limits[index], others[index]));
        Self { input_tokens, output_tokens, total_tokens, money_micros, turns, calls, millis }
    }

    /// Returns the largest amounts within the limits, of each kind that is limited. If only the sum of tokens
    /// is limited, all of them count as input.
    pub fn most(&self) -> Amounts {
        let (mut input, mut output) =
            (self.input_tokens.unwrap_or_default(), self.output_tokens.unwrap_or_default());
        if let Some(total) = self.total_tokens {
            match (self.input_tokens, self.output_tokens) {
                (Some(_), Some(_)) => {
                    input = input.min(total);
                    output = output.min(total - input);
                }
                (Some(_), None) => (input, output) = (input.min(total), total.saturating_sub(input)),
                (None, _) => (input, output) = (total.saturating_sub(output), output.min(total)),
            }
        }
        Amounts {
            input_tokens: input,
            output_tokens: output,
            money_micros: self.money_micros.unwrap_or_default(),
            turns: self.turns.unwrap_or_default(),
            calls: self.calls.unwrap_or_default(),
            millis: self.millis.unwrap_or_default(),
            ..Amounts::ZERO
        }
    }

    /// Refuses amounts that exceed a limit.
    pub fn check(&self, amounts: Amounts) -> Result<(), BudgetExceeded> {
        let limits = DIMENSIONS.into_iter().zip(self.each()).zip(amounts.limited());
        for ((dimension, limit), wanted) in limits {
            if let Some(limit) = limit
                && wanted > limit
            {
                return Err(BudgetExceeded { dimension, limit, wanted });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_before_it_is_exceeded() {
        let limits = Limits { total_tokens: Some(10), ..Limits::default() };
        let amounts = Amounts { input_tokens: 6, output_tokens: 4, ..Amounts::ZERO };
        assert_eq!(limits.check(amounts), Ok(()));
        let more = amounts.plus(Amounts { output_tokens: 1, ..Amounts::ZERO });
        let exceeded = limits.check(more).unwrap_err();
        assert_eq!(exceeded, BudgetExceeded { dimension: "tokens", limit: 10, wanted: 11 });
    }

    #[test]
    fn an_exceeded_limit_of_money_is_written_as_people_do() {
        let limits = Limits { money_micros: Some(1_000_000), ..Limits::default() };
        let exceeded = |money_micros| limits.check(Amounts { money_micros, ..Amounts::ZERO }).unwrap_err();
        let text = exceeded(1_350_000).to_string();
        assert_eq!(text, "the budget of 1 in money would be exceeded: 1.35 in all");
        assert!(exceeded(10_000_001).to_string().ends_with("10.000001 in all"));
    }

    #[test]
    fn what_is_left_of_a_limit_is_never_less_than_nothing() {
        let limits = Limits { total_tokens: Some(10), calls: Some(1), ..Limits::default() };
        let spent = Amounts { input_tokens: 6, output_tokens: 1, calls: 2, millis: 9, ..Amounts::ZERO };
        let left = Limits { total_tokens: Some(3), calls: Some(0), ..Limits::default() };
        assert_eq!(limits.left_after(spent), left);
    }

    #[test]
    fn what_can_be_spent_within_limits_fits_them() {
        let some = [None, Some(0), Some(3), Some(10), Some(100)];
        for input_tokens in some {
            for output_tokens in some {
                for total_tokens in some {
                    let limits = Limits { input_tokens, output_tokens, total_tokens, ..Limits::default() };
                    assert_eq!(limits.check(limits.most()), Ok(()), "{limits:?}");
                    let least = total_tokens.unwrap_or_default();
                    if input_tokens.is_none() || output_tokens.is_none() {
                        assert!(limits.most().total_tokens() >= least, "{limits:?}");
                    }
                }
            }
        }
        let one = Limits { calls: Some(10), total_tokens: Some(7), ..Limits::default() };
        let other = Limits { calls: Some(4), millis: Some(1), ..Limits::default() };
        let both = Limits { calls: Some(4), total_tokens: Some(7), millis: Some(1), ..Limits::default() };
        assert_eq!(one.within(&other), both);
        assert_eq!(both.share(2), Limits { calls: Some(2), total_tokens: Some(3), millis: Some(0), ..one });
    }

    #[test]
    fn a_cache_changes_neither_limits_nor_sums_of_tokens() {
        let limits = Limits { input_tokens: Some(10), total_tokens: Some(14), ..Limits::default() };
        let fresh = Amounts { input_tokens: 10, output_tokens: 4, ..Amounts::ZERO };
        let parts =
            Amounts { cache_read_tokens: 7, cache_write_tokens: 2, reasoning_tokens: 3, ..Amounts::ZERO };
        let cached = fresh.plus(parts);
        assert_eq!(limits.check(cached), Ok(()));
        assert_eq!((cached.total_tokens(), cached.uncached_tokens()), (14, 1));
        assert_eq!(limits.left_after(cached), limits.left_after(fresh));
        assert_eq!(cached.minus(parts), fresh);
    }

    #[test]
    fn amounts_are_stored_without_what_is_nothing_and_older_ones_are_read() {
        let old = r#"{"input_tokens":5,"output_tokens":2,"turns":1}"#;
        let read: Amounts = serde_json::from_str(old).unwrap();
        assert_eq!(read, Amounts { input_tokens: 5, output_tokens: 2, ..Amounts::ONE_TURN });
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
        let cached = Amounts { cache_read_tokens: 4, reasoning_tokens: 1, ..read };
        let stored = serde_json::to_string(&cached).unwrap();
        assert!(stored.contains(r#""cache_read_tokens":4"#) && !stored.contains("cache_write"), "{stored}");
        assert_eq!(serde_json::from_str::<Amounts>(&stored).unwrap(), cached);
    }

    #[test]
    fn sums_do_not_overflow() {
        let most = Amounts { calls: u64::MAX, input_tokens: u64::MAX, ..Amounts::ZERO };
        assert_eq!(most.plus(most), most);
        assert_eq!(most.total_tokens(), u64::MAX);
    }
}
