//! The time of the system, for claims and migrations.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backstitch_core::time::Timestamp;

/// Current time.
pub(crate) fn now() -> Timestamp {
    timestamp_of(SystemTime::now())
}

/// Converts a time of the system. A clock that was never set may be before 1970.
fn timestamp_of(time: SystemTime) -> Timestamp {
    let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp::UNIX_EPOCH.saturating_add(since),
        Err(before) => {
            Timestamp::from_unix_micros(-micros(before.duration())).unwrap_or(Timestamp::UNIX_EPOCH)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_is_read() {
        let early = UNIX_EPOCH - Duration::from_secs(60);
        assert_eq!(timestamp_of(early), "1969-12-31T23:59:00Z".parse().unwrap());
    }
}
