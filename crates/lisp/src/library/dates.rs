//! Dates, instants and durations: the part of `java.time` and `java.util.Date` that programs of agents use.
//!
//! There is no time zone but UTC, and the only clock is the reading the program was started with, so time stands
//! still while it runs. Texts are ISO 8601; `java.util.Date.` also takes the dates of mail headers.

use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use super::{Arity, CallContext, Constant, Native, type_error};
use crate::error::{Error, ErrorKind, Result};
use crate::reader::Tag;
use crate::value::{Temporal, Value};

/// The functions of this module.
pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("LocalDate/parse", Arity::exactly(1), &[], local_date_parse),
    Native::leaf("LocalDate/of", Arity::exactly(3), &[], local_date_of),
    Native::leaf("LocalDate/ofEpochDay", Arity::exactly(1), &[], local_date_of_epoch_day),
    Native::leaf("LocalDate/now", Arity::exactly(0), &[], |context, _| {
        Ok(temporal(Temporal::LocalDate(instant_of(context.now())?.to_zoned(TimeZone::UTC).date())))
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
    Native::leaf(".toInstant", Arity::exactly(1), &[], |_, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::Date(milliseconds)) => Ok(temporal(Temporal::Instant(instant_of(*milliseconds)?))),
        _ => Err(type_error(".toInstant", "a date", &arguments[0])),
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
    Native::leaf(".plusSeconds", Arity::exactly(2), &[], |_, a| move_by(".plusSeconds", a, 1_000)),
    Native::leaf(".minusSeconds", Arity::exactly(2), &[], |_, a| move_by(".minusSeconds", a, -1_000)),
    Native::leaf(".plusMillis", Arity::exactly(2), &[], |_, a| move_by(".plusMillis", a, 1)),
    Native::leaf(".minusMillis", Arity::exactly(2), &[], |_, a| move_by(".minusMillis", a, -1)),
    Native::leaf(".toEpochDay", Arity::exactly(1), &[], |_, a| on_date(".toEpochDay", a, epoch_day)),
    Native::leaf(".getYear", Arity::exactly(1), &[], |_, a| {
        on_date(".getYear", a, |date| i64::from(date.year()))
    }),
    Native::leaf(".getMonthValue", Arity::exactly(1), &[], |_, a| {
        on_date(".getMonthValue", a, |date| i64::from(date.month()))
    }),
    Native::leaf(".getDayOfMonth", Arity::exactly(1), &[], |_, a| {
        on_date(".getDayOfMonth", a, |date| i64::from(date.day()))
    }),
    Native::leaf(".getDayOfYear", Arity::exactly(1), &[], |_, a| {
        on_date(".getDayOfYear", a, |date| i64::from(date.day_of_year()))
    }),
    Native::leaf(".lengthOfMonth", Arity::exactly(1), &[], |_, a| {
        on_date(".lengthOfMonth", a, |date| i64::from(date.days_in_month()))
    }),
    Native::leaf(".isLeapYear", Arity::exactly(1), &[], |_, arguments| match as_temporal(&arguments[0]) {
        Some(Temporal::LocalDate(date)) => Ok(Value::Boolean(date.in_leap_year())),
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

/// The plain values of this module.
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

fn integer(function: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Integer(value) => Ok(*value),
        Value::BigInteger(value) => i64::try_from(&**value).map_err(|_| out_of_range()),
        // Java casts: the fraction is cut off, and NaN is 0.
        Value::Float(value) => Ok(*value as i64),
        Value::Ratio(value) => i64::try_from(value.truncate()).map_err(|_| out_of_range()),
        other => Err(type_error(function, "an integer", other)),
    }
}

fn out_of_range() -> Error {
    Error::new(ErrorKind::InvalidArgument, "a date beyond the years -9999 to 9999")
}

fn instant_of(milliseconds: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(milliseconds).map_err(|_| out_of_range())
}

fn unreadable(what: &str, text: &str, example: &str) -> Error {
    let shown: String = text.chars().take(40).collect();
    Error::new(ErrorKind::InvalidText, format!("{shown:?} is not {what}"))
        .hint(format!("it is written like {example:?}"))
}

fn text<'a>(function: &str, value: &'a Value) -> Result<&'a str> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(type_error(function, "a string", other)),
    }
}

/// The value of a tagged literal.
pub(crate) fn parse_tagged(tag: Tag, text: &str) -> Result<Temporal> {
    match tag {
        Tag::Inst => inst(text)
            .map(|instant| Temporal::Date(instant.as_millisecond()))
            .ok_or_else(|| unreadable("an instant", text, "2026-01-02T03:04:05.000-00:00")),
        Tag::Uuid => {
            parse_uuid(text).ok_or_else(|| unreadable("a UUID", text, "123e4567-e89b-12d3-a456-426614174000"))
        }
        Tag::LocalDate => parse_date(text).map(Temporal::LocalDate),
        Tag::Instant => parse_instant(text).map(Temporal::Instant),
        Tag::Duration => parse_duration(text).map(Temporal::Duration),
    }
}

fn parse_date(text: &str) -> Result<Date> {
    // The library also takes basic and full forms, which Java refuses.
    let plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let date = if plain { text.parse().ok() } else { None };
    date.ok_or_else(|| unreadable("a date", text, "2026-01-02"))
}

fn parse_instant(text: &str) -> Result<Timestamp> {
    // An instant of Java has a time and an offset, with a `T` between date and time.
    let shaped = text.as_bytes().get(10).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'T'));
    let instant = if shaped { text.parse().ok() } else { None };
    instant.ok_or_else(|| unreadable("an instant", text, "2026-01-02T03:04:05Z"))
}

/// `PnDTnHnMn.nS`, each part with a sign of its own, as `Duration.parse` reads it.
fn parse_duration(text: &str) -> Result<SignedDuration> {
    duration(&text.to_ascii_uppercase()).ok_or_else(|| unreadable("a duration", text, "PT1H30M"))
}

fn duration(text: &str) -> Option<SignedDuration> {
    let (negative, text) = sign(text);
    let (days, time) = match text.strip_prefix('P')?.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (text.strip_prefix('P')?, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    if !days.is_empty() {
        total += i128::from(whole(days.strip_suffix('D')?)?) * 86_400_000_000_000;
    }
    let mut rest = time;
    for (unit, nanoseconds) in [('H', 3_600_000_000_000i128), ('M', 60_000_000_000)] {
        if let Some((count, after)) = rest.split_once(unit) {
            total = total.checked_add(i128::from(whole(count)?) * nanoseconds)?;
            rest = after;
        }
    }
    if !rest.is_empty() {
        total = total.checked_add(seconds(rest.strip_suffix('S')?)?)?;
    }
    let total = if negative { -total } else { total };
    let nanoseconds = i32::try_from(total % 1_000_000_000).ok()?;
    Some(SignedDuration::new(i64::try_from(total / 1_000_000_000).ok()?, nanoseconds))
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn whole(text: &str) -> Option<i64> {
    let (negative, digits) = sign(text);
    let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let value: i64 = if valid { digits.parse().ok()? } else { return None };
    Some(if negative { -value } else { value })
}

/// Seconds with up to nine digits behind the point, in nanoseconds.
fn seconds(text: &str) -> Option<i128> {
    let (negative, digits) = sign(text);
    let (seconds, fraction) = digits.split_once(['.', ',']).unwrap_or((digits, ""));
    if fraction.len() > 9
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
        || seconds.starts_with(['-', '+'])
    {
        return None;
    }
    let nanoseconds: i128 = format!("{fraction:0<9}").parse().ok()?;
    let total = i128::from(whole(seconds)?) * 1_000_000_000 + nanoseconds;
    Some(if negative { -total } else { total })
}

/// `#inst` takes anything from a year to a full time, UTC where it has no offset.
fn inst(text: &str) -> Option<Timestamp> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant);
    }
    let midnight = |date: Date| date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    match text.len() {
        4 => midnight(Date::new(text.parse().ok()?, 1, 1).ok()?),
        7 => midnight(format!("{text}-01").parse().ok()?),
        10 => midnight(text.parse().ok()?),
        _ => text
            .parse::<jiff::civil::DateTime>()
            .ok()?
            .to_zoned(TimeZone::UTC)
            .ok()
            .map(|zoned| zoned.timestamp()),
    }
}

fn parse_uuid(text: &str) -> Option<Temporal> {
    let groups: Vec<&str> = text.split('-').collect();
    let shaped = groups.len() == 5
        && groups.iter().zip([8, 4, 4, 4, 12]).all(|(group, length)| {
            group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
    shaped.then(|| Temporal::Uuid(text.to_ascii_lowercase().into()))
}

fn local_date_parse(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    parse_date(text("LocalDate/parse", &arguments[0])?).map(|date| temporal(Temporal::LocalDate(date)))
}

fn local_date_of(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let part = |at: usize| integer("LocalDate/of", &arguments[at]);
    let (year, month, day) = (part(0)?, part(1)?, part(2)?);
    let date = || Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok();
    match date() {
        Some(date) => Ok(temporal(Temporal::LocalDate(date))),
        None => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("there is no date {year}-{month:02}-{day:02}"),
        )),
    }
}

fn local_date_of_epoch_day(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let days = integer("LocalDate/ofEpochDay", &arguments[0])?;
    let span = Span::new().try_days(days).map_err(|_| out_of_range())?;
    let date = jiff::civil::date(1970, 1, 1).checked_add(span).map_err(|_| out_of_range())?;
    Ok(temporal(Temporal::LocalDate(date)))
}

fn epoch_day(date: Date) -> i64 {
    jiff::civil::date(1970, 1, 1).until(date).map_or(0, |span| i64::from(span.get_days()))
}

fn instant_parse(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    parse_instant(text("Instant/parse", &arguments[0])?).map(|instant| temporal(Temporal::Instant(instant)))
}

fn duration_parse(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    parse_duration(text("Duration/parse", &arguments[0])?)
        .map(|duration| temporal(Temporal::Duration(duration)))
}

fn duration_of(function: &str, arguments: &[Value], milliseconds: i64) -> Result<Value> {
    let count = integer(function, &arguments[0])?;
    let total = count.checked_mul(milliseconds).ok_or_else(|| {
        Error::new(ErrorKind::Arithmetic, format!("{function}: a duration of {count} is too long"))
    })?;
    Ok(temporal(Temporal::Duration(SignedDuration::from_millis(total))))
}

fn duration_between(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let instant = |value: &Value| match as_temporal(value) {
        Some(Temporal::Instant(instant)) => Ok(*instant),
        Some(Temporal::Date(_)) => Err(type_error("Duration/between", "an instant", value)
            .hint("make an instant of a date with `(.toInstant date)`")),
        Some(Temporal::LocalDate(_)) => {
            Err(Error::new(ErrorKind::Type, "Duration/between: a local date has no time of day")
                .hint("subtract days: `(- (.toEpochDay b) (.toEpochDay a))`"))
        }
        _ => Err(type_error("Duration/between", "an instant", value)),
    };
    let (from, to) = (instant(&arguments[0])?, instant(&arguments[1])?);
    Ok(temporal(Temporal::Duration(to.duration_since(from))))
}

/// `java.util.Date.` of nothing, of milliseconds, or of a text as mail headers and `toString` write it.
fn new_date(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let milliseconds = match arguments.first() {
        None => context.now(),
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
    // Every date can be printed.
    instant_of(milliseconds)?;
    Ok(temporal(Temporal::Date(milliseconds)))
}

fn date_text(text: &str) -> Option<Timestamp> {
    if let Ok(zoned) = jiff::fmt::rfc2822::parse(text) {
        return Some(zoned.timestamp());
    }
    let in_utc =
        |date: jiff::civil::DateTime| date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    for format in
        ["%a %b %d %H:%M:%S UTC %Y", "%a %b %d %H:%M:%S GMT %Y", "%d %b %Y %H:%M:%S", "%b %d, %Y %H:%M:%S"]
    {
        if let Ok(date) = jiff::civil::DateTime::strptime(format, text) {
            return in_utc(date);
        }
    }
    for format in ["%d %b %Y", "%b %d, %Y"] {
        if let Ok(date) = Date::strptime(format, text) {
            return in_utc(date.to_datetime(jiff::civil::Time::midnight()));
        }
    }
    None
}

fn ordered(function: &str, arguments: &[Value], wanted: std::cmp::Ordering) -> Result<Value> {
    // A `Date` has `.before` and `.after`, everything newer `.isBefore` and `.isAfter`.
    let of_date = matches!(function, ".before" | ".after");
    let expected = if of_date { "a java.util.Date" } else { "a local date or an instant" };
    match (as_temporal(&arguments[0]), as_temporal(&arguments[1])) {
        (Some(a), _) if matches!(a, Temporal::Date(_)) != of_date => {
            Err(type_error(function, expected, &arguments[0]))
        }
        (Some(Temporal::Duration(_) | Temporal::Uuid(_)) | None, _) => {
            Err(type_error(function, expected, &arguments[0]))
        }
        (Some(a), Some(b)) if std::mem::discriminant(a) == std::mem::discriminant(b) => {
            Ok(Value::Boolean(a.cmp(b) == wanted))
        }
        (Some(a), _) => Err(type_error(function, &format!("another {}", a.type_name()), &arguments[1])),
    }
}

/// Moves a date, or an instant by whole days.
fn shift(function: &str, arguments: &[Value], span: fn(i64) -> Result<Span, jiff::Error>) -> Result<Value> {
    let span = span(integer(function, &arguments[1])?).map_err(|_| out_of_range())?;
    match as_temporal(&arguments[0]) {
        Some(Temporal::LocalDate(date)) => {
            Ok(temporal(Temporal::LocalDate(date.checked_add(span).map_err(|_| out_of_range())?)))
        }
        Some(Temporal::Duration(duration)) if function.ends_with("Days") => {
            let hours = i64::from(span.get_days()).saturating_mul(24);
            let moved = duration.checked_add(SignedDuration::from_hours(hours)).ok_or_else(out_of_range)?;
            Ok(temporal(Temporal::Duration(moved)))
        }
        _ => Err(type_error(function, "a local date", &arguments[0])),
    }
}

/// Moves an instant or lengthens a duration.
fn move_by(function: &str, arguments: &[Value], milliseconds: i64) -> Result<Value> {
    let count = integer(function, &arguments[1])?;
    let by = SignedDuration::from_millis(count.checked_mul(milliseconds).ok_or_else(out_of_range)?);
    match as_temporal(&arguments[0]) {
        Some(Temporal::Instant(instant)) => {
            Ok(temporal(Temporal::Instant(instant.checked_add(by).map_err(|_| out_of_range())?)))
        }
        Some(Temporal::Duration(duration)) => {
            Ok(temporal(Temporal::Duration(duration.checked_add(by).ok_or_else(out_of_range)?)))
        }
        _ => Err(type_error(function, "an instant or a duration", &arguments[0])),
    }
}

fn on_date(function: &str, arguments: &[Value], part: fn(Date) -> i64) -> Result<Value> {
    match as_temporal(&arguments[0]) {
        Some(Temporal::LocalDate(date)) => Ok(Value::Integer(part(*date))),
        _ => Err(type_error(function, "a local date", &arguments[0])),
    }
}

/// A duration in whole units of so many nanoseconds, as Java rounds each: seconds down, everything else towards zero,
/// units longer than a second by way of the seconds.
fn in_units(function: &str, arguments: &[Value], nanoseconds: i128) -> Result<Value> {
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
