//! Chance from the operating system.
//!
//! Only what has to be different in every session comes from here: a session's id and its seed. From there on a session
//! draws from its own streams, so that it can be repeated.

use std::sync::Arc;

use backstitch_core::id::IdStream;
use backstitch_core::rng::Seed;
use backstitch_core::time::Clock;

/// The operating system gave no entropy.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no entropy")]
pub struct EntropyError {
    #[from]
    source: getrandom::Error,
}

/// Bytes that nobody can predict.
pub fn bytes() -> Result<[u8; 32], EntropyError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// A seed for a new session.
pub fn seed() -> Result<Seed, EntropyError> {
    Ok(Seed::new(getrandom::u64()?))
}

/// A stream of ids for naming new sessions, unlike any other.
pub fn fresh_ids(clock: Arc<dyn Clock>) -> Result<IdStream, EntropyError> {
    Ok(IdStream::from_seed(bytes()?, clock))
}

#[cfg(test)]
mod tests {
    use backstitch_core::id::SessionId;
    use backstitch_core::time::FixedClock;

    use super::*;

    #[test]
    fn two_fresh_streams_differ_even_at_the_same_moment() {
        let clock = Arc::new(FixedClock::default());
        let (one, other) = (fresh_ids(clock.clone()).unwrap(), fresh_ids(clock).unwrap());
        for _ in 0..100 {
            assert_ne!(one.next::<SessionId>(), other.next::<SessionId>());
        }
    }

    #[test]
    fn seeds_and_bytes_are_drawn_anew_each_time() {
        assert_ne!(bytes().unwrap(), bytes().unwrap());
        assert_ne!(seed().unwrap(), seed().unwrap());
    }
}
