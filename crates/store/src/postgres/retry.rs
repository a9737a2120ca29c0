//! Which failures are retried, and for how long.
//!
//! A statement that only reads, or that the server has rolled back, is repeated until a time that lies inside of a lease. An append whose answer was lost is not
//! repeated before it is known that it was not stored (`outcome`).

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::Failure;

/// First pause between two attempts.
const FIRST: Duration = Duration::from_millis(20);
/// Longest pause between two attempts.
const LONGEST: Duration = Duration::from_millis(1000);

/// Attempts at an operation, until a time.
pub(super) struct Attempts {
    until: Instant,
    pause: Duration,
}

impl Attempts {
    /// Attempts within this time.
    pub(super) fn within(time: Duration) -> Self {
        Self { until: Instant::now() + time, pause: FIRST }
    }

    /// Waits before the next attempt. Returns false if there is no time for one.
    pub(super) async fn wait(&mut self) -> bool {
        if Instant::now() + self.pause >= self.until {
            return false;
        }
        // Different programs retry at different times: the clock is as good as a random number here.
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let part = nanos.map_or(0, |since| since.subsec_nanos() % 512);
        sleep(self.pause / 2 + self.pause * part / 1024).await;
        self.pause = (self.pause * 2).min(LONGEST);
        true
    }
}

/// Repeats an operation that can be repeated without harm while the server is away, or rolls it back.
pub(super) async fn repeat<T, F>(time: Duration, mut run: impl FnMut() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut attempts = Attempts::within(time);
    loop {
        match run().await {
            Err(failure) if failure.is_outage() || failure.is_rolled_back() => {
                if !attempts.wait().await {
                    return Err(failure);
                }
            }
            done => return done,
        }
    }
}
