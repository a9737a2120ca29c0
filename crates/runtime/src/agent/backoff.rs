//! Retries of policies.

use std::time::Duration;

/// The retries of a policy that could not answer, and the delays between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The most retries of one request.
    pub retries: u32,
    /// The delay before the first retry. It doubles with each further one.
    pub first: Duration,
    /// The longest delay, unless the policy asks for a certain one.
    pub longest: Duration,
}

impl Default for Backoff {
    /// Retries for more than a minute, even with the shortest delays.
    fn default() -> Self {
        Self { retries: 10, first: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }
}

impl Backoff {
    /// No retries.
    pub const NEVER: Self = Self { retries: 0, first: Duration::ZERO, longest: Duration::ZERO };

    /// Returns the delay after a failed attempt, counted from 0, with jitter: 50 to 100 % of the delay that
    /// is due, or 100 to 110 % of the delay that the policy asks for (`minimum`). `jitter` is a random number
    /// below 1.
    pub(crate) fn wait(&self, attempt: u32, minimum: Option<Duration>, jitter: f64) -> Duration {
        match minimum {
            Some(minimum) => {
                minimum.saturating_add(minimum.min(Duration::from_secs(60)).mul_f64(jitter / 10.0))
            }
            None => {
                let due = self.first.saturating_mul(1 << attempt.min(20)).min(self.longest);
                due.mul_f64(0.5 + jitter / 2.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_outlasts_a_minute() {
        let backoff = Backoff::default();
        let shortest = (0..backoff.retries).map(|attempt| backoff.wait(attempt, None, 0.0));
        assert!(shortest.sum::<Duration>() > Duration::from_secs(60));
    }

    #[test]
    fn waits_grow_to_a_limit_and_keep_what_was_said() {
        let backoff = Backoff { retries: 9, first: Duration::from_secs(1), longest: Duration::from_secs(10) };
        for (attempt, due) in [(0, 1.0), (1, 2.0), (2, 4.0), (3, 8.0), (4, 10.0), (60, 10.0)] {
            assert_eq!(backoff.wait(attempt, None, 0.0).as_secs_f64(), due / 2.0);
            assert!(backoff.wait(attempt, None, 0.999).as_secs_f64() <= due);
        }
        let minimum = Some(Duration::from_secs(20));
        assert_eq!(backoff.wait(0, minimum, 0.0), Duration::from_secs(20));
        assert!(backoff.wait(0, minimum, 0.999) <= Duration::from_secs(22));
        assert!(backoff.wait(0, Some(Duration::MAX), 0.5) == Duration::MAX);
    }
}
