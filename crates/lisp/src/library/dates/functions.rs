//! The functions and methods of dates, instants and durations.

use jiff::SignedDuration;
use jiff::civil::Date;

use super::amounts::{duration, nanoseconds_of};
use super::text::{date_text, inst, unreadable};
use super::{as_temporal, civil_date, civil_of, instant_of, integer, month_number, temporal};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{CallContext, type_error};
use crate::value::{Temporal, Value};

pub(super) fn local_date_of(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let part = |at: usize| integer("LocalDate/of", &arguments[at]);
    let (year, month, day) = (part(0)?, month_number("LocalDate/of", &arguments[1])?, part(2)?);
    match civil_date(year, month, day) {
        Some(date) => Ok(temporal(Temporal::LocalDate(date))),
        None => Err(Error::argument(format!("there is no date {year}-{month:02}-{day:02}"))),
    }
}

pub(super) fn epoch_day(date: Date) -> i64 {
    jiff::civil::date(1970, 1, 1).until(date).map_or(0, |span| i64::from(span.get_days()))
}

pub(super) fn duration_of(function: &str, arguments: &[Value], milliseconds: i64) -> Result<Value> {
    let count = integer(function, &arguments[0])?;
    let total = count.checked_mul(milliseconds).ok_or_else(|| {
        Error::new(ErrorKind::Arithmetic, format!("{function}: a duration of {count} is too long"))
    })?;
    Ok(temporal(Temporal::Duration(SignedDuration::from_millis(total))))
}

pub(super) fn duration_between(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let instant = |value: &Value| match as_temporal(value) {
        Some(Temporal::Instant(instant)) => Ok(*instant),
        Some(Temporal::Date(_)) => Err(type_error("Duration/between", "an instant", value)
            .hint("make an instant of a date with `(.toInstant date)`")),
        Some(Temporal::LocalDate(_)) => {
            Err(Error::new(ErrorKind::Type, "Duration/between: a local date has no time of day")
                .hint("count days: `(.between ChronoUnit/DAYS a b)`"))
        }
        _ => Err(type_error("Duration/between", "an instant", value)),
    };
    if let (Some(from), Some(to)) = (as_temporal(&arguments[0]), as_temporal(&arguments[1])) {
        let between = match (from, to, from.epoch_nanoseconds(), to.epoch_nanoseconds()) {
            (Temporal::LocalDateTime(from), Temporal::LocalDateTime(to), ..) => {
                Some(to.duration_since(*from).as_nanos())
            }
            (Temporal::LocalTime(from), Temporal::LocalTime(to), ..) => {
                Some(nanoseconds_of(*to) - nanoseconds_of(*from))
            }
            (_, _, Some(start), Some(end)) if std::mem::discriminant(from) == std::mem::discriminant(to) => {
                Some(end - start)
            }
            (Temporal::Instant(start), _, _, Some(end)) => Some(end - start.as_nanosecond()),
            _ => None,
        };
        if let Some(nanoseconds) = between {
            return Ok(temporal(Temporal::Duration(duration(nanoseconds)?)));
        }
    }
    let (from, to) = (instant(&arguments[0])?, instant(&arguments[1])?);
    Ok(temporal(Temporal::Duration(to.duration_since(from))))
}

/// `java.util.Date.` of nothing, of milliseconds, or of a text in the format of mail headers or `toString`.
pub(super) fn new_date(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let milliseconds = match arguments.first() {
        None => context.now,
        Some(Value::String(text)) => match date_text(text) {
            Some(instant) => instant.as_millisecond(),
            None if inst(text).is_some() => {
                return Err(unreadable("a date for `Date.`", text, "Fri, 2 Jan 2026 03:04:05 GMT")
                    .hint("read ISO 8601 with `(Instant/parse text)` or `(LocalDate/parse text)`"));
            }
            None => return Err(unreadable("a date", text, "Fri, 2 Jan 2026 03:04:05 GMT")),
        },
        Some(value @ (Value::Integer(_) | Value::BigInteger(_))) => integer("Date.", value)?,
        Some(other) => return Err(type_error("Date.", "milliseconds or a text", other)),
    };
    // Every date must be printable.
    instant_of(milliseconds)?;
    Ok(temporal(Temporal::Date(milliseconds)))
}

pub(super) fn ordered(function: &str, arguments: &[Value], wanted: std::cmp::Ordering) -> Result<Value> {
    // A `Date` has `.before` and `.after`, all newer types `.isBefore` and `.isAfter`.
    let of_date = matches!(function, ".before" | ".after");
    let expected = if of_date { "a java.util.Date" } else { "a local date or an instant" };
    let is_ordered = |value: &&Temporal| match value {
        Temporal::Date(_) => of_date,
        Temporal::LocalDate(_) | Temporal::Instant(_) | Temporal::LocalTime(_) | Temporal::YearMonth(_) => {
            !of_date
        }
        value => !of_date && civil_of(value).is_some(),
    };
    let Some(a) = as_temporal(&arguments[0]).filter(is_ordered) else {
        return Err(type_error(function, expected, &arguments[0]));
    };
    match as_temporal(&arguments[1]) {
        Some(b) if std::mem::discriminant(a) == std::mem::discriminant(b) => {
            // Of date-times with an offset, only the instants count.
            let order = match (a.epoch_nanoseconds(), b.epoch_nanoseconds()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a.cmp(b),
            };
            Ok(Value::Boolean(order == wanted))
        }
        _ => Err(type_error(function, &format!("another {}", a.type_name()), &arguments[1])),
    }
}

/// Converts a duration to whole units of `nanoseconds`, with Java's rounding: seconds down, everything else
/// towards zero, units longer than a second by way of the seconds.
pub(super) fn in_units(function: &str, arguments: &[Value], nanoseconds: i128) -> Result<Value> {
    const SECOND: i128 = 1_000_000_000;
    let Some(Temporal::Duration(duration)) = as_temporal(&arguments[0]) else {
        return Err(type_error(function, "a duration", &arguments[0]));
    };
    let total = duration.as_nanos();
    let count = if nanoseconds < SECOND {
        total / nanoseconds
    } else {
        total.div_euclid(SECOND) / (nanoseconds / SECOND)
    };
    i64::try_from(count)
        .map(Value::Integer)
        .map_err(|_| Error::new(ErrorKind::Arithmetic, format!("{function}: integer overflow")))
}
