//! Entropy of the operating system.
//!
//! Only ids and seeds of new sessions come from here. All other random values of a session derive from its
//! seed, so that it can be repeated.

use std::sync::Arc;

use backstitch_core::id::IdStream;
use backstitch_core::rng::Seed;
use backstitch_core::time::Clock;

/// A failure of the operating system's random number generator.
#[derive(Debug, thiserror::Error)]
#[error("cannot read random bytes from the operating system")]
pub struct EntropyError {
    #[from]
    source: getrandom::Error,
}

/// Returns 32 unpredictable bytes.
pub fn bytes() -> Result<[u8; 32], EntropyError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Returns a random seed for a new session.
pub fn seed() -> Result<Seed, EntropyError> {
    Ok(Seed::new(getrandom::u64()?))
}

/// Returns a stream of ids for new sessions, with a random seed of its own.
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
