//! The parts of dates that `%t` writes.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::value::{Temporal, Value};

/// Formats the part of a date that a letter names, in UTC. `None` if the value is not a date, lacks that
/// part, or the letter is unknown. An integer counts milliseconds, and a local date has no time of day.
pub(super) fn part(value: &Value, letter: char) -> Option<String> {
    let (zoned, has_time) = match value {
        Value::Integer(milliseconds) => (Timestamp::from_millisecond(*milliseconds).ok()?, true),
        Value::Temporal(temporal) => match &**temporal {
            Temporal::Date(milliseconds) => (Timestamp::from_millisecond(*milliseconds).ok()?, true),
            Temporal::LocalDate(date) => (date.to_zoned(TimeZone::UTC).ok()?.timestamp(), false),
            _ => return None,
        },
        _ => return None,
    };
    let zoned = zoned.to_zoned(TimeZone::UTC);
    let of_time = "HIklMSLNpRTrscQzZ".contains(letter);
    if of_time && !has_time {
        return None;
    }
    let format = match letter {
        'Y' | 'y' | 'm' | 'd' | 'B' | 'b' | 'A' | 'a' | 'H' | 'I' | 'M' | 'S' | 'j' | 'C' => {
            &format!("%{letter}")
        }
        'h' => "%b",
        'e' => return Some(zoned.day().to_string()),
        'k' => return Some(zoned.hour().to_string()),
        'l' => return Some(((zoned.hour() + 11) % 12 + 1).to_string()),
        'L' => return Some(format!("{:03}", zoned.millisecond())),
        'N' => return Some(format!("{:09}", zoned.subsec_nanosecond())),
        'p' => return Some(if zoned.hour() < 12 { "am" } else { "pm" }.to_owned()),
        's' => return Some(zoned.timestamp().as_second().to_string()),
        'Q' => return Some(zoned.timestamp().as_millisecond().to_string()),
        'F' => "%Y-%m-%d",
        'D' => "%m/%d/%y",
        'T' => "%H:%M:%S",
        'R' => "%H:%M",
        'r' => "%I:%M:%S %p",
        'c' => "%a %b %d %H:%M:%S UTC %Y",
        'z' => "+0000",
        'Z' => "UTC",
        _ => return None,
    };
    Some(zoned.strftime(format).to_string())
}
