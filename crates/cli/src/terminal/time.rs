//! Times for people: in the local time zone, and relative to now.
//!
//! Every time carries its zone. The zone is that of `TZ`, else that of the system, else UTC.

use std::io::{self, IsTerminal as _};
use std::sync::LazyLock;

use backstitch::time::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::TimeZone;

/// The local time zone, which is looked for once.
static ZONE: LazyLock<TimeZone> = LazyLock::new(TimeZone::system);

/// Whether a person reads the output.
static FOR_PERSON: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());

/// The form of RFC 3339, in whole seconds.
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(0));

/// Formats a time in the local time zone: `2026-11-16 09:04:05 +01:00` on a terminal, RFC 3339 elsewhere.
pub(crate) fn local(time: Timestamp) -> String {
    in_zone(time, &ZONE, *FOR_PERSON)
}

fn in_zone(time: Timestamp, zone: &TimeZone, for_person: bool) -> String {
    let Ok(known) = jiff::Timestamp::from_microsecond(time.unix_micros()) else { return time.to_string() };
    if for_person {
        known.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
    } else {
        PRINTER.timestamp_with_offset_to_string(&known, zone.to_offset(known))
    }
}

/// Formats a time relative to now, such as `5 min ago`.
pub(crate) fn relative(time: Timestamp, now: Timestamp) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    // A clock that is slightly ahead is tolerated.
    let (seconds, is_future) = if time > now.saturating_add(std::time::Duration::from_secs(60)) {
        (time.since(now).as_secs(), true)
    } else {
        (now.since(time).as_secs(), false)
    };
    let length = match seconds {
        0..MINUTE => return "now".to_owned(),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        _ if seconds < 2 * DAY => "1 day".to_owned(),
        _ if seconds < 60 * DAY => format!("{} days", seconds / DAY),
        _ if seconds < 730 * DAY => format!("{} months", seconds / (30 * DAY)),
        _ => format!("{} years", seconds / (365 * DAY)),
    };
    if is_future { format!("in {length}") } else { format!("{length} ago") }
}

#[cfg(test)]
mod tests {
    use jiff::tz::{Offset, TimeZone};

    use super::*;

    #[test]
    fn a_local_time_carries_its_zone() {
        let time: Timestamp = "2026-11-16T08:04:05.123456Z".parse().unwrap();
        let zone = || TimeZone::fixed(Offset::from_seconds(5 * 3600 + 1800).unwrap());
        assert_eq!(in_zone(time, &zone(), true), "2026-11-16 13:34:05 +05:30");
        assert_eq!(in_zone(time, &zone(), false), "2026-11-16T13:34:05+05:30");
        assert_eq!(in_zone(time, &TimeZone::UTC, false), "2026-11-16T08:04:05+00:00");
    }

    #[test]
    fn a_relative_time_has_one_unit() {
        let now: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
        let of = |text: &str| relative(text.parse().unwrap(), now);
        assert_eq!(of("2026-11-16T07:59:30Z"), "now");
        assert_eq!(of("2026-11-16T08:00:30Z"), "now");
        assert_eq!(of("2026-11-16T07:55:00Z"), "5 min ago");
        assert_eq!(of("2026-11-16T05:00:01Z"), "2 h ago");
        assert_eq!(of("2026-11-15T05:00:00Z"), "1 day ago");
        assert_eq!(of("2026-11-10T05:00:00Z"), "6 days ago");
        assert_eq!(of("2026-05-10T05:00:00Z"), "6 months ago");
        assert_eq!(of("2020-05-10T05:00:00Z"), "6 years ago");
        assert_eq!(of("2026-11-16T10:30:00Z"), "in 2 h");
    }
}
