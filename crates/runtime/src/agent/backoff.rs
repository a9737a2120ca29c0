//! How often, and after which waits, a policy is asked again.

use std::time::Duration;

/// How often, and after which waits, a policy that could not answer is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// How often at most.
    pub retries: u32,
    /// The wait before the second time. It doubles each time.
    pub first: Duration,
    /// The longest wait, unless the policy says how long.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { retries: 3, first: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }
}

impl Backoff {
    /// Asks once, and not again.
    pub const NEVER: Self = Self { retries: 0, first: Duration::ZERO, longest: Duration::ZERO };

    /// How long to wait after a failed attempt, from 0: a half to all of what is due, or what was said and up to a tenth more.
    pub(crate) fn wait(&self, attempt: u32, said: Option<Duration>, chance: f64) -> Duration {
        match said {
            Some(said) => said.saturating_add(said.min(Duration::from_secs(60)).mul_f64(chance / 10.0)),
            None => {
                let due = self.first.saturating_mul(1 << attempt.min(20)).min(self.longest);
                due.mul_f64(0.5 + chance / 2.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_keep_what_was_said() {
        let backoff = Backoff { retries: 9, first: Duration::from_secs(1), longest: Duration::from_secs(10) };
        for (attempt, due) in [(0, 1.0), (1, 2.0), (2, 4.0), (3, 8.0), (4, 10.0), (60, 10.0)] {
            assert_eq!(backoff.wait(attempt, None, 0.0).as_secs_f64(), due / 2.0);
            assert!(backoff.wait(attempt, None, 0.999).as_secs_f64() <= due);
        }
        let said = Some(Duration::from_secs(20));
        assert_eq!(backoff.wait(0, said, 0.0), Duration::from_secs(20));
        assert!(backoff.wait(0, said, 0.999) <= Duration::from_secs(22));
        assert!(backoff.wait(0, Some(Duration::MAX), 0.5) == Duration::MAX);
    }
}
