//! The random source of a program. The host seeds it, so the same seed gives the same numbers.

/// SplitMix64: small, fast, and good enough for `shuffle`. Not for secrets.
#[derive(Clone, Default)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a random source for a branch, independent of the other branches.
    pub(crate) fn branch(&self, index: u64) -> Random {
        let mut random = Random(self.0 ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    /// Returns 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a double from 0 up to 1, exclusive.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an integer from 0 up to `bound`, exclusive.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound.max(1))) >> 64) as u64
    }
}
