//! Reproducible random numbers.
//!
//! Each call gets its own [`Rng`], derived from the session's seed and the call's id. The numbers of a call
//! do not depend on other calls, so a call that runs again draws the same ones. The generator is ChaCha with
//! 8 rounds. It serializes as a seed and a position.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::id::CallId;

/// The seed of all random numbers of a session. It is recorded when the session is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(u64);

impl Seed {
    /// Creates a seed from a number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Creates the generator of one call.
    pub fn rng_for(self, call: CallId) -> Rng {
        let mut hasher = blake3::Hasher::new_derive_key("backstitch 2026 call rng");
        hasher.update(&self.0.to_le_bytes());
        hasher.update(call.as_uuid().as_bytes());
        Rng { inner: ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()) }
    }

    /// Creates the generator of the session outside of any call.
    pub fn rng(self) -> Rng {
        let mut hasher = blake3::Hasher::new_derive_key("backstitch 2026 session rng");
        hasher.update(&self.0.to_le_bytes());
        Rng { inner: ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()) }
    }
}

/// A deterministic random number generator. Not for secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredRng", into = "StoredRng")]
pub struct Rng {
    inner: ChaCha8Rng,
}

impl Rng {
    /// Draws the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }

    /// Draws a number below `bound`, uniformly distributed; zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Widening multiplication. A draw whose low half falls into the uneven remainder is repeated.
        let uneven = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if (wide as u64) >= uneven {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Draws a number from 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Shuffles the items at random.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// Fills the buffer with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.inner.fill_bytes(bytes);
    }
}

#[derive(Serialize, Deserialize)]
struct StoredRng {
    seed: String,
    position: String,
}

impl From<Rng> for StoredRng {
    fn from(rng: Rng) -> Self {
        let seed = rng.inner.get_seed().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { seed, position: rng.inner.get_word_pos().to_string() }
    }
}

impl TryFrom<StoredRng> for Rng {
    type Error = &'static str;

    fn try_from(state: StoredRng) -> Result<Self, Self::Error> {
        let seed = crate::hex::parse(&state.seed).ok_or("the seed of a generator has 64 hex digits")?;
        let position: u128 =
            state.position.parse().map_err(|_| "the position of a generator is a whole number")?;
        let mut inner = ChaCha8Rng::from_seed(seed);
        inner.set_word_pos(position);
        Ok(Self { inner })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn rng(call: u128) -> Rng {
        Seed::new(42).rng_for(CallId::from_uuid(Uuid::from_u128(call)))
    }

    #[test]
    fn a_call_draws_the_same_again_and_other_than_its_neighbour() {
        assert_eq!(rng(1).next_u64(), rng(1).next_u64());
        assert_ne!(rng(1).next_u64(), rng(2).next_u64());
        assert_ne!(Seed::new(42).rng().next_u64(), Seed::new(43).rng().next_u64());
    }

    #[test]
    fn a_stored_generator_goes_on_where_it_stopped() {
        let mut rng = rng(1);
        rng.next_u64();
        let mut stored: Rng = serde_json::from_str(&serde_json::to_string(&rng).unwrap()).unwrap();
        assert_eq!(stored.next_u64(), rng.next_u64());
        assert!(serde_json::from_str::<Rng>(r#"{"seed":"00","position":"1"}"#).is_err());
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut rng = rng(1);
        assert_eq!(rng.below(0), 0);
        let mut counts = [0u32; 6];
        for _ in 0..6_000 {
            counts[rng.below(6) as usize] += 1;
            assert!((0.0..1.0).contains(&rng.unit()));
        }
        assert!(counts.iter().all(|&count| (800..1_200).contains(&count)), "{counts:?}");
        let mut items: Vec<_> = (0..50).collect();
        rng.shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
