//! Time as a value.
//!
//! Code that needs the time asks an injected [`Clock`]. The system clock lives in an IO crate. This module
//! has only the port and [`FixedClock`], which makes a session repeatable byte for byte.
//!
//! A [`Timestamp`] is UTC with microseconds. It is written as RFC 3339 with a fixed width, so that texts sort
//! by time.
//! Nothing in this project is *ordered* by time: order is the position in a journal.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::text_form::{shown_as_text, stored_as_text};

/// A moment in UTC, to the microsecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

shown_as_text!(Timestamp, "format": "date-time");
stored_as_text!(Timestamp, "an RFC 3339 time");

/// The text or number is not a representable time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time: {text:?}")]
pub struct InvalidTimestamp {
    /// The rejected text.
    pub text: String,
}

impl Timestamp {
    /// The start of 1970, UTC.
    pub const UNIX_EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);

    /// Returns the time `micros` microseconds after the start of 1970.
    pub fn from_unix_micros(micros: i64) -> Result<Self, InvalidTimestamp> {
        // By seconds and their fraction, which includes the last second as a whole: a time that was read from text may be in it.
        let fraction = i32::try_from(micros.rem_euclid(1_000_000)).unwrap_or_default() * 1_000;
        jiff::Timestamp::new(micros.div_euclid(1_000_000), fraction)
            .map(Self)
            .map_err(|_| InvalidTimestamp { text: micros.to_string() })
    }

    /// Microseconds since the start of 1970.
    pub fn unix_micros(self) -> i64 {
        self.0.as_microsecond()
    }

    /// Whole milliseconds since the start of 1970; zero before it. UUIDv7 uses this unit.
    pub fn unix_millis(self) -> u64 {
        u64::try_from(self.0.as_millisecond()).unwrap_or(0)
    }

    /// Returns the time `by` later, or the last representable one.
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let sum = self.unix_micros().saturating_add(micros);
        let last = jiff::Timestamp::MAX.as_microsecond();
        Self::from_unix_micros(sum.min(last)).unwrap_or(Self(jiff::Timestamp::MAX))
    }

    /// Returns the time this many days earlier, also before 1970; `None` if it is not representable.
    pub fn days_before(self, days: u32) -> Option<Self> {
        const MICROS_OF_A_DAY: i64 = 24 * 60 * 60 * 1_000_000;
        let micros = self.unix_micros().checked_sub(i64::from(days).checked_mul(MICROS_OF_A_DAY)?)?;
        Self::from_unix_micros(micros).ok()
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.unix_micros().saturating_sub(earlier.unix_micros());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.6}", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Accepts any RFC 3339 text with an offset. Digits below a microsecond are cut off.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidTimestamp { text: text.chars().take(64).collect() };
        let moment: jiff::Timestamp = text.parse().map_err(|_| invalid())?;
        // Flooring rather than truncating keeps moments before 1970 from moving forwards.
        let micros = moment.as_nanosecond().div_euclid(1_000);
        i64::try_from(micros).ok().and_then(|micros| Self::from_unix_micros(micros).ok()).ok_or_else(invalid)
    }
}

/// A source of the current time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time, for records.
    fn now(&self) -> Timestamp;

    /// Returns a reading that never decreases, for measuring durations. Only differences are meaningful.
    fn monotonic(&self) -> Duration;

    /// Returns the time of the last boot, if it is known. Files that changed across a boot may have been
    /// changed by a power loss rather than by a person.
    fn booted_at(&self) -> Option<Timestamp> {
        None
    }
}

/// A clock that stands still until it is advanced.
#[derive(Debug)]
pub struct FixedClock {
    micros: AtomicI64,
}

impl FixedClock {
    /// Creates a clock that shows `time`.
    pub fn at(time: Timestamp) -> Self {
        Self { micros: AtomicI64::new(time.unix_micros()) }
    }

    /// Moves the clock forwards.
    pub fn advance(&self, by: Duration) {
        self.micros.store(self.now().saturating_add(by).unix_micros(), Ordering::SeqCst);
    }
}

impl Default for FixedClock {
    fn default() -> Self {
        Self::at(Timestamp::UNIX_EPOCH)
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_micros(self.micros.load(Ordering::SeqCst)).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn monotonic(&self) -> Duration {
        self.now().since(Timestamp::UNIX_EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_one_width() {
        let whole: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(whole.to_string(), "2026-01-02T03:04:05.000000Z");
        let fine: Timestamp = "2026-01-02T05:04:05.1234569+02:00".parse().unwrap();
        assert_eq!(fine.to_string(), "2026-01-02T03:04:05.123456Z");
        assert!(whole.to_string() < fine.to_string());
    }

    #[test]
    fn the_first_and_the_last_time_are_read_again() {
        let last = Timestamp::UNIX_EPOCH.saturating_add(Duration::MAX);
        assert_eq!(last.saturating_add(Duration::from_micros(1)), last);
        let first: Timestamp = "-009999-01-02T01:59:59Z".parse().unwrap();
        for time in [first, last] {
            assert_eq!(Timestamp::from_unix_micros(time.unix_micros()), Ok(time));
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        assert!(Timestamp::from_unix_micros(last.unix_micros() + 1).is_err());
        assert!(Timestamp::from_unix_micros(i64::MIN).is_err());
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "yesterday", "2026-01-02", "2026-13-02T03:04:05Z", "2026-01-02T03:04:05"] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Timestamp>("12").is_err());
    }

    #[test]
    fn a_fixed_clock_moves_only_when_told() {
        let clock = FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap());
        let before = clock.now();
        assert_eq!(clock.now(), before);
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now().since(before), Duration::from_millis(1500));
        assert_eq!(before.since(clock.now()), Duration::ZERO);
    }
}
