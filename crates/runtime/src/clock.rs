//! The system's clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use backstitch_core::time::{Clock, Timestamp};

/// The system's clock.
///
/// Its timestamps follow the system's time, which may be set back. Its monotonic readings count from its
/// creation.
#[derive(Debug, Clone)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// Creates a clock whose monotonic readings start now.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        timestamp(SystemTime::now())
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }

    fn booted_at(&self) -> Option<Timestamp> {
        let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
        let seconds: f64 = uptime.split(' ').next()?.parse().ok()?;
        let uptime = Duration::try_from_secs_f64(seconds).ok()?;
        SystemTime::now().checked_sub(uptime).map(timestamp)
    }
}

/// Completes after a duration. Never completes without one.
pub(crate) async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// Converts a time to microseconds. A time that a [`Timestamp`] cannot hold, some thousands of years away,
/// becomes 1970: a clock that is this wrong must not stop anything.
fn timestamp(time: SystemTime) -> Timestamp {
    let micros = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).ok(),
        // Rounded away from 1970, so that times before it are cut in the same direction as those after it.
        Err(before) => i64::try_from(before.duration().as_nanos().div_ceil(1_000)).ok().map(|micros| -micros),
    };
    micros.and_then(|micros| Timestamp::from_unix_micros(micros).ok()).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_cut_to_the_microsecond() {
        let text = |time: SystemTime| timestamp(time).to_string();
        assert_eq!(text(UNIX_EPOCH), "1970-01-01T00:00:00.000000Z");
        assert_eq!(text(UNIX_EPOCH + Duration::from_nanos(1_999)), "1970-01-01T00:00:00.000001Z");
        assert_eq!(text(UNIX_EPOCH - Duration::from_nanos(1_999)), "1969-12-31T23:59:59.999998Z");
        assert_eq!(text(UNIX_EPOCH + Duration::from_secs(1 << 45)), "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn monotonic_readings_never_go_back() {
        let clock = SystemClock::new();
        let mut last = clock.monotonic();
        for _ in 0..10_000 {
            let now = clock.monotonic();
            assert!(now >= last, "{now:?} after {last:?}");
            last = now;
        }
        assert!(clock.clone().monotonic() >= last);
    }

    #[test]
    fn the_moment_is_that_of_the_system() {
        let before = timestamp(SystemTime::now());
        let moment = SystemClock::new().now();
        assert!(moment.since(before) < Duration::from_secs(60), "{before} {moment}");
        assert!(moment > "2025-01-01T00:00:00Z".parse().unwrap(), "{moment}");
    }
}
