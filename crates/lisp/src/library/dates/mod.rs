//! Dates, instants and durations: the part of `java.time` and `java.util.Date` that programs of agents use.
//!
//! Time zones have a fixed offset from UTC, and the only clock is the start time of the program, so time does
//! not change while it runs. Texts are ISO 8601; `java.util.Date.` also takes the dates of mail headers.

pub(super) mod amounts;
pub(super) mod civil;
mod functions;
pub(super) mod months;
mod pattern;
mod text;
pub(super) mod zones;

use std::sync::Arc;

use amounts::{move_by, shift};
pub(crate) use civil::enumerated;
use civil::{date_of, date_or_month, parse};
use functions::{duration_between, duration_of, epoch_day, in_units, local_date_of, new_date, ordered};
use pattern::Fields;
pub(crate) use pattern::{DAYS, MONTHS};
pub(crate) use text::parse_tagged;
use text::{parse_date, parse_duration, parse_instant, parse_uuid};
use zones::instant;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use super::strings::string as text;
use super::{Arity, Constant, Native, type_error};
use crate::error::{Error, Result};
use crate::value::{Temporal, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("LocalDate/parse", Arity::between(1, 2), &[], |c, a| {
        Ok(temporal(Temporal::LocalDate(parse(c.name, a, parse_date, Fields::date)?)))
    }),
    Native::leaf("LocalDate/of", Arity::exactly(3), &[], local_date_of),
    Native::binary("LocalDate/ofYearDay", |c, a| {
        let (year, day) = (integer(c.name, &a[0])?, integer(c.name, &a[1])?);
        let date = || {
            let first = civil_date(year, 1, 1)?;
            let date = first.checked_add(Span::new().try_days(day.checked_sub(1)?).ok()?).ok()?;
            (date.year() == first.year()).then_some(date)
        };
        let none = || Error::argument(format!("the year {year} has no day {day}"));
        Ok(temporal(Temporal::LocalDate(date().ok_or_else(none)?)))
    }),
    Native::unary("LocalDate/ofEpochDay", |c, a| {
        let days = Span::new().try_days(integer(c.name, &a[0])?).map_err(|_| out_of_range())?;
        let date = jiff::civil::date(1970, 1, 1).checked_add(days).map_err(|_| out_of_range())?;
        Ok(temporal(Temporal::LocalDate(date)))
    }),
    Native::leaf("LocalDate/now", Arity::between(0, 1), &[], |c, a| {
        Ok(temporal(Temporal::LocalDate(zones::now(c.name, c, a)?.0.date())))
    }),
    Native::unary("Instant/parse", |c, a| {
        Ok(temporal(Temporal::Instant(parse_instant(text(c.name, &a[0])?)?)))
    }),
    Native::unary("Instant/ofEpochMilli", |c, a| {
        Ok(temporal(Temporal::Instant(instant_of(integer(c.name, &a[0])?)?)))
    }),
    Native::unary("Instant/ofEpochSecond", |c, a| {
        let seconds = integer(c.name, &a[0])?;
        Ok(temporal(Temporal::Instant(Timestamp::from_second(seconds).map_err(|_| out_of_range())?)))
    }),
    Native::leaf("Instant/now", Arity::exactly(0), &[], |c, _| {
        Ok(temporal(Temporal::Instant(instant_of(c.now)?)))
    }),
    Native::binary("Duration/between", duration_between),
    Native::unary("Duration/parse", |c, a| {
        Ok(temporal(Temporal::Duration(parse_duration(text(c.name, &a[0])?)?)))
    }),
    Native::unary("Duration/ofDays", |c, a| duration_of(c.name, a, 86_400_000)),
    Native::unary("Duration/ofHours", |c, a| duration_of(c.name, a, 3_600_000)),
    Native::unary("Duration/ofMinutes", |c, a| duration_of(c.name, a, 60_000)),
    Native::unary("Duration/ofSeconds", |c, a| duration_of(c.name, a, 1_000)),
    Native::unary("Duration/ofMillis", |c, a| duration_of(c.name, a, 1)),
    Native::leaf("Date.", Arity::between(0, 1), &[], new_date),
    Native::unary("Date/from", |c, a| Ok(temporal(Temporal::Date(instant(c.name, &a[0])?.as_millisecond())))),
    Native::leaf("System/currentTimeMillis", Arity::exactly(0), &[], |c, _| Ok(Value::Integer(c.now))),
    Native::unary(".getTime", |c, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::Date(milliseconds)) => Ok(Value::Integer(*milliseconds)),
        _ => Err(c.type_error("a date", &arguments[0])),
    }),
    Native::leaf(".toInstant", Arity::between(1, 2), &[], |c, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::LocalDateTime(found)) => {
            let offset = arguments.get(1).ok_or_else(|| {
                c.type_error("a date-time with an offset", &arguments[0])
                    .hint("name the offset of its clock: `(.toInstant d ZoneOffset/UTC)`")
            })?;
            let found = zones::at_offset(*found, zones::offset(c.name, offset)?, 0)?;
            let zoned = found.to_zoned(TimeZone::UTC).map_err(|_| out_of_range())?;
            Ok(temporal(Temporal::Instant(zoned.timestamp())))
        }
        Some(Temporal::Date(milliseconds)) => Ok(temporal(Temporal::Instant(instant_of(*milliseconds)?))),
        other => match other.and_then(zones::instant_of_stamp) {
            Some(instant) => Ok(temporal(Temporal::Instant(instant?))),
            None => Err(c.type_error("a date", &arguments[0])),
        },
    }),
    Native::unary(".toEpochMilli", |c, a| Ok(Value::Integer(instant(c.name, &a[0])?.as_millisecond()))),
    Native::unary(".getEpochSecond", |c, a| Ok(Value::Integer(instant(c.name, &a[0])?.as_second()))),
    Native::binary(".isBefore", |c, a| ordered(c.name, a, std::cmp::Ordering::Less)),
    Native::binary(".isAfter", |c, a| ordered(c.name, a, std::cmp::Ordering::Greater)),
    Native::binary(".isEqual", |c, a| ordered(c.name, a, std::cmp::Ordering::Equal)),
    Native::binary(".before", |c, a| ordered(c.name, a, std::cmp::Ordering::Less)),
    Native::binary(".after", |c, a| ordered(c.name, a, std::cmp::Ordering::Greater)),
    Native::binary(".plusDays", |c, a| shift(c.name, a, 0, 1)),
    Native::binary(".minusDays", |c, a| shift(c.name, a, 0, -1)),
    Native::binary(".plusWeeks", |c, a| shift(c.name, a, 0, 7)),
    Native::binary(".minusWeeks", |c, a| shift(c.name, a, 0, -7)),
    Native::binary(".plusMonths", |c, a| shift(c.name, a, 1, 0)),
    Native::binary(".minusMonths", |c, a| shift(c.name, a, -1, 0)),
    Native::binary(".plusYears", |c, a| shift(c.name, a, 12, 0)),
    Native::binary(".minusYears", |c, a| shift(c.name, a, -12, 0)),
    Native::binary(".plusHours", |c, a| move_by(c.name, a, 3_600_000)),
    Native::binary(".minusHours", |c, a| move_by(c.name, a, -3_600_000)),
    Native::binary(".plusMinutes", |c, a| move_by(c.name, a, 60_000)),
    Native::binary(".minusMinutes", |c, a| move_by(c.name, a, -60_000)),
    Native::binary(".plusSeconds", |c, a| move_by(c.name, a, 1_000)),
    Native::binary(".minusSeconds", |c, a| move_by(c.name, a, -1_000)),
    Native::binary(".plusMillis", |c, a| move_by(c.name, a, 1)),
    Native::binary(".minusMillis", |c, a| move_by(c.name, a, -1)),
    Native::unary(".toEpochDay", |c, a| Ok(Value::Integer(epoch_day(date_of(c.name, &a[0])?)))),
    Native::unary(".getYear", |c, a| Ok(Value::Integer(date_or_month(c.name, &a[0])?.year().into()))),
    Native::unary(".getMonthValue", |c, a| Ok(Value::Integer(date_or_month(c.name, &a[0])?.month().into()))),
    Native::unary(".getDayOfMonth", |c, a| Ok(Value::Integer(date_of(c.name, &a[0])?.day().into()))),
    Native::unary(".getDayOfYear", |c, a| Ok(Value::Integer(date_of(c.name, &a[0])?.day_of_year().into()))),
    Native::unary(".lengthOfMonth", |c, a| {
        Ok(Value::Integer(date_or_month(c.name, &a[0])?.days_in_month().into()))
    }),
    Native::unary(".lengthOfYear", |c, a| {
        Ok(Value::Integer(plain_date(c.name, &a[0])?.days_in_year().into()))
    }),
    Native::unary(".isLeapYear", |c, a| Ok(Value::Boolean(plain_date(c.name, &a[0])?.in_leap_year()))),
    Native::unary(".toNanos", |c, a| in_units(c.name, a, 1)),
    Native::unary(".toMillis", |c, a| in_units(c.name, a, 1_000_000)),
    Native::unary(".toSeconds", |c, a| in_units(c.name, a, 1_000_000_000)),
    Native::unary(".getSeconds", |c, a| in_units(c.name, a, 1_000_000_000)),
    Native::unary(".toMinutes", |c, a| in_units(c.name, a, 60_000_000_000)),
    Native::unary(".toHours", |c, a| in_units(c.name, a, 3_600_000_000_000)),
    Native::unary(".toDays", |c, a| in_units(c.name, a, 86_400_000_000_000)),
    Native::unary("inst-ms", |c, a| match as_temporal(&a[0]) {
        Some(Temporal::Instant(instant)) => Ok(Value::Integer(instant.as_millisecond())),
        Some(Temporal::Date(milliseconds)) => Ok(Value::Integer(*milliseconds)),
        _ => Err(c.type_error("an instant", &a[0])),
    }),
    Native::unary("parse-uuid", |c, arguments| match &arguments[0] {
        Value::String(text) => Ok(parse_uuid(text).map_or(Value::Nil, temporal)),
        other => Err(c.type_error("a string", other)),
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

/// A local date, or the first day of a month of a year.
fn plain_date(function: &str, value: &Value) -> Result<Date> {
    match as_temporal(value) {
        Some(Temporal::LocalDate(date) | Temporal::YearMonth(date)) => Ok(*date),
        _ => Err(type_error(function, "a local date", value)),
    }
}

/// The date of a year, a month and a day, if there is one.
fn civil_date(year: i64, month: i64, day: i64) -> Option<Date> {
    Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()
}

/// The time of an hour, a minute, a second and a nanosecond, if there is one.
fn civil_time([hour, minute, second, nanosecond]: [i64; 4]) -> Option<Time> {
    let (hour, minute, second) = (hour.try_into().ok()?, minute.try_into().ok()?, second.try_into().ok()?);
    Time::new(hour, minute, second, nanosecond.try_into().ok()?).ok()
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
    Error::argument("a date beyond the years -9999 to 9999")
}

fn instant_of(milliseconds: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(milliseconds).map_err(|_| out_of_range())
}

/// Returns the random UUID (version 4) of these bits.
pub(crate) fn random_uuid(bits: u128) -> Value {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let text = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    temporal(Temporal::Uuid(text.into()))
}
