//! Dates, instants and durations: the part of `java.time` and `java.util.Date` that programs of agents use.
//!
//! Time zones have a fixed offset from UTC, and the only clock is the start time of the program, so time does
//! not change while it runs. Texts are ISO 8601; `java.util.Date.` also takes the dates of mail headers.

mod amounts;
mod civil;
mod functions;
mod months;
mod pattern;
mod text;
mod zones;

use std::sync::Arc;

pub(crate) use amounts::{CONSTANTS as AMOUNT_CONSTANTS, NATIVES as AMOUNTS};
pub(crate) use civil::{CONSTANTS as CIVIL_CONSTANTS, NATIVES as CIVIL};
use functions::{
    duration_between, duration_of, duration_parse, epoch_day, in_units, instant_parse, local_date_of,
    local_date_of_epoch_day, local_date_parse, move_by, new_date, on_date, ordered, shift,
};
pub(crate) use months::NATIVES as YEAR_MONTHS;
use months::on_month;
pub(crate) use pattern::{DAYS, MONTHS};
pub(crate) use text::parse_tagged;
use text::parse_uuid;
pub(crate) use zones::{CONSTANTS as ZONE_CONSTANTS, NATIVES as ZONES};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use super::{Arity, Constant, Native, type_error};
use crate::error::{Error, ErrorKind, Result};
use crate::value::{Temporal, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("LocalDate/parse", Arity::between(1, 2), &[], local_date_parse),
    Native::leaf("LocalDate/of", Arity::exactly(3), &[], local_date_of),
    Native::leaf("LocalDate/ofYearDay", Arity::exactly(2), &[], |_, a| {
        let (year, day) = (integer("LocalDate/ofYearDay", &a[0])?, integer("LocalDate/ofYearDay", &a[1])?);
        let date = || {
            let first = jiff::civil::Date::new(i16::try_from(year).ok()?, 1, 1).ok()?;
            let date = first.checked_add(Span::new().try_days(day.checked_sub(1)?).ok()?).ok()?;
            (date.year() == first.year()).then_some(date)
        };
        let none = || Error::new(ErrorKind::InvalidArgument, format!("the year {year} has no day {day}"));
        Ok(temporal(Temporal::LocalDate(date().ok_or_else(none)?)))
    }),
    Native::leaf("LocalDate/ofEpochDay", Arity::exactly(1), &[], local_date_of_epoch_day),
    Native::leaf("LocalDate/now", Arity::between(0, 1), &[], |context, a| {
        Ok(temporal(Temporal::LocalDate(zones::now("LocalDate/now", context, a)?.0.date())))
    }),
    Native::leaf("Instant/parse", Arity::exactly(1), &[], instant_parse),
    Native::leaf("Instant/ofEpochMilli", Arity::exactly(1), &[], |_, arguments| {
        Ok(temporal(Temporal::Instant(instant_of(integer("Instant/ofEpochMilli", &arguments[0])?)?)))
    }),
    Native::leaf("Instant/ofEpochSecond", Arity::exactly(1), &[], |_, arguments| {
        let seconds = integer("Instant/ofEpochSecond", &arguments[0])?;
        Ok(temporal(Temporal::Instant(Timestamp::from_second(seconds).map_err(|_| out_of_range())?)))
    }),
    Native::leaf("Instant/now", Arity::exactly(0), &[], |context, _| {
        Ok(temporal(Temporal::Instant(instant_of(context.now())?)))
    }),
    Native::leaf("Duration/between", Arity::exactly(2), &[], duration_between),
    Native::leaf("Duration/parse", Arity::exactly(1), &[], duration_parse),
    Native::leaf("Duration/ofDays", Arity::exactly(1), &[], |_, a| {
        duration_of("Duration/ofDays", a, 86_400_000)
    }),
    Native::leaf("Duration/ofHours", Arity::exactly(1), &[], |_, a| {
        duration_of("Duration/ofHours", a, 3_600_000)
    }),
    Native::leaf("Duration/ofMinutes", Arity::exactly(1), &[], |_, a| {
        duration_of("Duration/ofMinutes", a, 60_000)
    }),
    Native::leaf("Duration/ofSeconds", Arity::exactly(1), &[], |_, a| {
        duration_of("Duration/ofSeconds", a, 1_000)
    }),
    Native::leaf("Duration/ofMillis", Arity::exactly(1), &[], |_, a| duration_of("Duration/ofMillis", a, 1)),
    Native::leaf("Date.", Arity::between(0, 1), &[], new_date),
    Native::leaf("Date/from", Arity::exactly(1), &[], |_, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::Instant(instant)) => Ok(temporal(Temporal::Date(instant.as_millisecond()))),
        _ => Err(type_error("Date/from", "an instant", &arguments[0])),
    }),
    Native::leaf("System/currentTimeMillis", Arity::exactly(0), &[], |context, _| {
        Ok(Value::Integer(context.now()))
    }),
    Native::leaf(".getTime", Arity::exactly(1), &[], |_, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::Date(milliseconds)) => Ok(Value::Integer(*milliseconds)),
        _ => Err(type_error(".getTime", "a date", &arguments[0])),
    }),
    Native::leaf(".toInstant", Arity::between(1, 2), &[], |_, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::LocalDateTime(found)) => {
            let offset = arguments.get(1).ok_or_else(|| {
                type_error(".toInstant", "a date-time with an offset", &arguments[0])
                    .hint("name the offset of its clock: `(.toInstant d ZoneOffset/UTC)`")
            })?;
            let found = zones::at_offset(*found, zones::offset(".toInstant", offset)?, 0)?;
            let zoned = found.to_zoned(TimeZone::UTC).map_err(|_| out_of_range())?;
            Ok(temporal(Temporal::Instant(zoned.timestamp())))
        }
        Some(Temporal::Date(milliseconds)) => Ok(temporal(Temporal::Instant(instant_of(*milliseconds)?))),
        other => match other.and_then(zones::instant_of_stamp) {
            Some(instant) => Ok(temporal(Temporal::Instant(instant?))),
            None => Err(type_error(".toInstant", "a date", &arguments[0])),
        },
    }),
    Native::leaf(".toEpochMilli", Arity::exactly(1), &[], |_, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::Instant(instant)) => Ok(Value::Integer(instant.as_millisecond())),
        _ => Err(type_error(".toEpochMilli", "an instant", &arguments[0])),
    }),
    Native::leaf(".getEpochSecond", Arity::exactly(1), &[], |_, arguments| {
        match as_temporal(&arguments[0]) {
            Some(Temporal::Instant(instant)) => Ok(Value::Integer(instant.as_second())),
            _ => Err(type_error(".getEpochSecond", "an instant", &arguments[0])),
        }
    }),
    Native::leaf(".isBefore", Arity::exactly(2), &[], |_, a| {
        ordered(".isBefore", a, std::cmp::Ordering::Less)
    }),
    Native::leaf(".isAfter", Arity::exactly(2), &[], |_, a| {
        ordered(".isAfter", a, std::cmp::Ordering::Greater)
    }),
    Native::leaf(".isEqual", Arity::exactly(2), &[], |_, a| {
        ordered(".isEqual", a, std::cmp::Ordering::Equal)
    }),
    Native::leaf(".before", Arity::exactly(2), &[], |_, a| ordered(".before", a, std::cmp::Ordering::Less)),
    Native::leaf(".after", Arity::exactly(2), &[], |_, a| ordered(".after", a, std::cmp::Ordering::Greater)),
    Native::leaf(".plusDays", Arity::exactly(2), &[], |_, a| {
        shift(".plusDays", a, |n| Span::new().try_days(n))
    }),
    Native::leaf(".minusDays", Arity::exactly(2), &[], |_, a| {
        shift(".minusDays", a, |n| Span::new().try_days(n.saturating_neg()))
    }),
    Native::leaf(".plusWeeks", Arity::exactly(2), &[], |_, a| {
        shift(".plusWeeks", a, |n| Span::new().try_weeks(n))
    }),
    Native::leaf(".minusWeeks", Arity::exactly(2), &[], |_, a| {
        shift(".minusWeeks", a, |n| Span::new().try_weeks(n.saturating_neg()))
    }),
    Native::leaf(".plusMonths", Arity::exactly(2), &[], |_, a| {
        shift(".plusMonths", a, |n| Span::new().try_months(n))
    }),
    Native::leaf(".minusMonths", Arity::exactly(2), &[], |_, a| {
        shift(".minusMonths", a, |n| Span::new().try_months(n.saturating_neg()))
    }),
    Native::leaf(".plusYears", Arity::exactly(2), &[], |_, a| {
        shift(".plusYears", a, |n| Span::new().try_years(n))
    }),
    Native::leaf(".minusYears", Arity::exactly(2), &[], |_, a| {
        shift(".minusYears", a, |n| Span::new().try_years(n.saturating_neg()))
    }),
    Native::leaf(".plusHours", Arity::exactly(2), &[], |_, a| move_by(".plusHours", a, 3_600_000)),
    Native::leaf(".minusHours", Arity::exactly(2), &[], |_, a| move_by(".minusHours", a, -3_600_000)),
    Native::leaf(".plusMinutes", Arity::exactly(2), &[], |_, a| move_by(".plusMinutes", a, 60_000)),
    Native::leaf(".minusMinutes", Arity::exactly(2), &[], |_, a| move_by(".minusMinutes", a, -60_000)),
    Native::leaf(".plusSeconds", Arity::exactly(2), &[], |_, a| move_by(".plusSeconds", a, 1_000)),
    Native::leaf(".minusSeconds", Arity::exactly(2), &[], |_, a| move_by(".minusSeconds", a, -1_000)),
    Native::leaf(".plusMillis", Arity::exactly(2), &[], |_, a| move_by(".plusMillis", a, 1)),
    Native::leaf(".minusMillis", Arity::exactly(2), &[], |_, a| move_by(".minusMillis", a, -1)),
    Native::leaf(".toEpochDay", Arity::exactly(1), &[], |_, a| on_date(".toEpochDay", a, epoch_day)),
    Native::leaf(".getYear", Arity::exactly(1), &[], |_, a| {
        on_month(".getYear", a, |date| i64::from(date.year()))
    }),
    Native::leaf(".getMonthValue", Arity::exactly(1), &[], |_, a| {
        on_month(".getMonthValue", a, |date| i64::from(date.month()))
    }),
    Native::leaf(".getDayOfMonth", Arity::exactly(1), &[], |_, a| {
        on_date(".getDayOfMonth", a, |date| i64::from(date.day()))
    }),
    Native::leaf(".getDayOfYear", Arity::exactly(1), &[], |_, a| {
        on_date(".getDayOfYear", a, |date| i64::from(date.day_of_year()))
    }),
    Native::leaf(".lengthOfMonth", Arity::exactly(1), &[], |_, a| {
        on_month(".lengthOfMonth", a, |date| i64::from(date.days_in_month()))
    }),
    Native::leaf(".lengthOfYear", Arity::exactly(1), &[], |_, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::LocalDate(date) | Temporal::YearMonth(date)) => {
            Ok(Value::Integer(date.days_in_year().into()))
        }
        _ => Err(type_error(".lengthOfYear", "a local date", &arguments[0])),
    }),
    Native::leaf(".isLeapYear", Arity::exactly(1), &[], |_, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::LocalDate(date) | Temporal::YearMonth(date)) => {
            Ok(Value::Boolean(date.in_leap_year()))
        }
        _ => Err(type_error(".isLeapYear", "a local date", &arguments[0])),
    }),
    Native::leaf(".toNanos", Arity::exactly(1), &[], |_, a| in_units(".toNanos", a, 1)),
    Native::leaf(".toMillis", Arity::exactly(1), &[], |_, a| in_units(".toMillis", a, 1_000_000)),
    Native::leaf(".toSeconds", Arity::exactly(1), &[], |_, a| in_units(".toSeconds", a, 1_000_000_000)),
    Native::leaf(".getSeconds", Arity::exactly(1), &[], |_, a| in_units(".getSeconds", a, 1_000_000_000)),
    Native::leaf(".toMinutes", Arity::exactly(1), &[], |_, a| in_units(".toMinutes", a, 60_000_000_000)),
    Native::leaf(".toHours", Arity::exactly(1), &[], |_, a| in_units(".toHours", a, 3_600_000_000_000)),
    Native::leaf(".toDays", Arity::exactly(1), &[], |_, a| in_units(".toDays", a, 86_400_000_000_000)),
    Native::leaf("inst?", Arity::exactly(1), &[], |_, arguments| {
        Ok(Value::Boolean(matches!(
            as_temporal(&arguments[0]),
            Some(Temporal::Instant(_) | Temporal::Date(_))
        )))
    }),
    Native::leaf("inst-ms", Arity::exactly(1), &[], |_, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::Instant(instant)) => Ok(Value::Integer(instant.as_millisecond())),
        Some(Temporal::Date(milliseconds)) => Ok(Value::Integer(*milliseconds)),
        _ => Err(type_error("inst-ms", "an instant", &arguments[0])),
    }),
    Native::leaf("uuid?", Arity::exactly(1), &[], |_, arguments| {
        Ok(Value::Boolean(matches!(as_temporal(&arguments[0]), Some(Temporal::Uuid(_)))))
    }),
    Native::leaf("parse-uuid", Arity::exactly(1), &[], |_, arguments| match &arguments[0] {
        Value::String(text) => Ok(parse_uuid(text).map_or(Value::Nil, temporal)),
        other => Err(type_error("parse-uuid", "a string", other)),
    }),
];

pub(crate) const CONSTANTS: &[Constant] = &[
    ("Instant/EPOCH", || temporal(Temporal::Instant(Timestamp::UNIX_EPOCH))),
    ("LocalDate/EPOCH", || temporal(Temporal::LocalDate(jiff::civil::date(1970, 1, 1)))),
    ("Duration/ZERO", || temporal(Temporal::Duration(SignedDuration::ZERO))),
];

fn temporal(value: Temporal) -> Value {
    Value::Temporal(Arc::new(value))
}

fn as_temporal(value: &Value) -> Option<&Temporal> {
    match value {
        Value::Temporal(temporal) => Some(temporal),
        _ => None,
    }
}

/// The local date and time of a value that has both.
fn civil_of(value: &Temporal) -> Option<DateTime> {
    match value {
        Temporal::LocalDateTime(local)
        | Temporal::OffsetDateTime(local, _)
        | Temporal::ZonedDateTime(local, _) => Some(*local),
        _ => None,
    }
}

/// The same kind of value at another local date and time.
fn at_civil(value: &Temporal, local: DateTime) -> Temporal {
    match value {
        Temporal::OffsetDateTime(_, offset) => Temporal::OffsetDateTime(local, *offset),
        Temporal::ZonedDateTime(_, zone) => Temporal::ZonedDateTime(local, zone.clone()),
        _ => Temporal::LocalDateTime(local),
    }
}

fn integer(function: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Integer(value) => Ok(*value),
        Value::BigInteger(value) => i64::try_from(&**value).map_err(|_| out_of_range()),
        // Java casts: the fraction is truncated, and NaN is 0.
        Value::Float(value) => Ok(*value as i64),
        Value::Ratio(value) => i64::try_from(value.truncate()).map_err(|_| out_of_range()),
        other => Err(type_error(function, "an integer", other)),
    }
}

/// A month as a number, or as a constant such as `Month/MARCH`.
fn month_number(function: &str, value: &Value) -> Result<i64> {
    match as_temporal(value) {
        Some(Temporal::Month(number)) => Ok(i64::from(*number)),
        _ => integer(function, value),
    }
}

fn out_of_range() -> Error {
    Error::new(ErrorKind::InvalidArgument, "a date beyond the years -9999 to 9999")
}

fn instant_of(milliseconds: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(milliseconds).map_err(|_| out_of_range())
}

fn text<'a>(function: &str, value: &'a Value) -> Result<&'a str> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(type_error(function, "a string", other)),
    }
}

/// Returns the random UUID (version 4) of these bits.
pub(crate) fn random_uuid(bits: u128) -> Value {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let text = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    temporal(Temporal::Uuid(text.into()))
}
