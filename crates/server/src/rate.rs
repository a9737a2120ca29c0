//! A limit of requests in a second.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// Lets a number of requests through in a second, and twice as many at once after a while without any.
pub(crate) struct Rate {
    per_second: f64,
    level: Mutex<Level>,
}

struct Level {
    tokens: f64,
    since: Instant,
}

impl Rate {
    pub(crate) fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second.max(1));
        Self { per_second, level: Mutex::new(Level { tokens: 2.0 * per_second, since: Instant::now() }) }
    }

    /// Returns whether a request is let through now.
    pub(crate) fn admits(&self) -> bool {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.duration_since(level.since).as_secs_f64() * self.per_second;
        level.tokens = (level.tokens + gained).min(2.0 * self.per_second);
        level.since = now;
        let is_admitted = level.tokens >= 1.0;
        if is_admitted {
            level.tokens -= 1.0;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_are_let_through_at_a_rate() {
        let rate = Rate::new(10);
        assert_eq!((0..100).filter(|_| rate.admits()).count(), 20, "twice as many at once");
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!((0..100).filter(|_| rate.admits()).count(), 5);
    }
}
