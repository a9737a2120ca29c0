//! Dates, instants and durations in Java's notation.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::library::{DAYS, MONTHS};
use crate::value::{Temporal, Zone};

/// Returns the text of `toString`, which `str` returns.
pub(crate) fn temporal_text(temporal: &Temporal) -> String {
    match temporal {
        Temporal::LocalDate(date) => date.to_string(),
        Temporal::Instant(instant) => instant_text(*instant),
        Temporal::Duration(duration) => duration_text(*duration),
        Temporal::Date(milliseconds) => match Timestamp::from_millisecond(*milliseconds) {
            Ok(instant) => instant.to_zoned(TimeZone::UTC).strftime("%a %b %d %H:%M:%S UTC %Y").to_string(),
            Err(_) => milliseconds.to_string(),
        },
        Temporal::Uuid(text) => text.to_string(),
        Temporal::LocalDateTime(found) => date_time_text(*found),
        Temporal::DayOfWeek(number) => constant_name(&DAYS, *number),
        Temporal::Month(number) => constant_name(&MONTHS, *number),
        Temporal::Unit(unit) => {
            let name = unit.name();
            format!("{}{}", &name[..1], name[1..].to_lowercase())
        }
        Temporal::Formatter(pattern) => pattern.to_string(),
        Temporal::OffsetDateTime(local, offset) => date_time_text(*local) + &offset_text(*offset),
        Temporal::ZonedDateTime(local, Zone::Offset(offset)) => {
            date_time_text(*local) + &offset_text(*offset)
        }
        Temporal::ZonedDateTime(local, Zone::Utc(name)) => format!("{}Z[{name}]", date_time_text(*local)),
        Temporal::Zone(Zone::Offset(offset)) => offset_text(*offset),
        Temporal::Zone(Zone::Utc(name)) => name.to_string(),
        Temporal::Period(parts) => period_text(*parts),
        Temporal::LocalTime(time) => {
            date_time_text(jiff::civil::date(1970, 1, 1).to_datetime(*time)).split_off("1970-01-01T".len())
        }
        Temporal::YearMonth(first) => first.strftime("%Y-%m").to_string(),
    }
}

/// `ZoneOffset.toString`: `Z`, `+01:00` or `+01:00:30`.
fn offset_text(offset: i32) -> String {
    if offset == 0 {
        return "Z".to_owned();
    }
    let (sign, seconds) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
    let text = format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if seconds % 60 == 0 { text } else { format!("{text}:{:02}", seconds % 60) }
}

/// `Period.toString`: the parts that are not zero, each with its own sign.
fn period_text(parts: [i32; 3]) -> String {
    if parts == [0; 3] {
        return "P0D".to_owned();
    }
    let shown = parts.into_iter().zip(["Y", "M", "D"]).filter(|(count, _)| *count != 0);
    shown.fold("P".to_owned(), |text, (count, unit)| format!("{text}{count}{unit}"))
}

/// The name of a constant of Java: `SUNDAY`.
fn constant_name(names: &[&str], number: i8) -> String {
    let name = usize::try_from(number - 1).ok().and_then(|at| names.get(at));
    name.map(|name| name.to_uppercase()).unwrap_or_default()
}

/// `LocalDateTime.toString`: without seconds if there are none, the fraction in groups of three digits.
fn date_time_text(found: jiff::civil::DateTime) -> String {
    let mut text = found.strftime("%Y-%m-%dT%H:%M").to_string();
    let (second, nanosecond) = (found.second(), found.subsec_nanosecond());
    // Writing to a string does not fail.
    if second != 0 || nanosecond != 0 {
        let _ = write!(text, ":{second:02}");
    }
    match nanosecond {
        0 => {}
        n if n % 1_000_000 == 0 => _ = write!(text, ".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => _ = write!(text, ".{:06}", n / 1_000),
        n => _ = write!(text, ".{n:09}"),
    }
    text
}

/// Returns the text in JSON: ISO 8601, also for a `java.util.Date`, as Clojure's JSON libraries write it.
pub(crate) fn temporal_json(temporal: &Temporal) -> String {
    match temporal {
        Temporal::Date(milliseconds) => match Timestamp::from_millisecond(*milliseconds) {
            Ok(instant) => instant_text(instant),
            Err(_) => milliseconds.to_string(),
        },
        other => temporal_text(other),
    }
}

/// Returns the text of a literal that reads back as the same value.
pub(super) fn literal_text(temporal: &Temporal) -> String {
    match temporal {
        Temporal::Unit(unit) => unit.name().to_owned(),
        Temporal::Date(milliseconds) => match Timestamp::from_millisecond(*milliseconds) {
            Ok(instant) => {
                instant.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%3f-00:00").to_string()
            }
            Err(_) => milliseconds.to_string(),
        },
        other => temporal_text(other),
    }
}

/// `Instant.toString`: seconds always, the fraction in groups of three digits.
fn instant_text(instant: Timestamp) -> String {
    let seconds = instant.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let nanoseconds = instant.as_nanosecond().rem_euclid(1_000_000_000);
    match nanoseconds {
        0 => format!("{seconds}Z"),
        n if n % 1_000_000 == 0 => format!("{seconds}.{:03}Z", n / 1_000_000),
        n if n % 1_000 == 0 => format!("{seconds}.{:06}Z", n / 1_000),
        n => format!("{seconds}.{n:09}Z"),
    }
}

/// `Duration.toString`: hours are the largest unit, and each part has its own sign.
fn duration_text(duration: SignedDuration) -> String {
    let nanoseconds = duration.as_nanos();
    if nanoseconds == 0 {
        return "PT0S".to_owned();
    }
    let seconds = nanoseconds / 1_000_000_000;
    let fraction = nanoseconds % 1_000_000_000;
    let (hours, minutes, rest) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    let mut text = String::from("PT");
    // Writing to a string does not fail.
    if hours != 0 {
        let _ = write!(text, "{hours}H");
    }
    if minutes != 0 {
        let _ = write!(text, "{minutes}M");
    }
    if rest != 0 || fraction != 0 {
        let sign = if rest < 0 || fraction < 0 { "-" } else { "" };
        let _ = write!(text, "{sign}{}", rest.abs());
        if fraction != 0 {
            let digits = format!("{:09}", fraction.abs());
            let _ = write!(text, ".{}", digits.trim_end_matches('0'));
        }
        text.push('S');
    }
    text
}
