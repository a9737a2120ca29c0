//! `LocalDateTime`, `DayOfWeek`, `Month` and `ChronoUnit`, and the parts of dates.

use jiff::Span;
use jiff::civil::{Date, DateTime, Time};

use super::amounts::{duration, nanoseconds_of};
use super::functions::epoch_day;
use super::pattern::{DAYS, DatePattern, Fields, MONTHS};
use super::text::{parse_date_time, unreadable};
use super::{
    as_temporal, at_civil, civil_date, civil_of, civil_time, integer, month_number, out_of_range, temporal,
    text,
};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, Constant, Native, type_error};
use crate::value::{Temporal, TimeUnit, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("LocalDateTime/parse", Arity::between(1, 2), &[], |c, a| {
        Ok(temporal(Temporal::LocalDateTime(parse(c.name, a, parse_date_time, Fields::date_time)?)))
    }),
    Native::leaf("LocalDateTime/of", Arity::between(5, 7), &[], |c, a| {
        let mut parts = [0; 7];
        for (at, (part, value)) in parts.iter_mut().zip(a).enumerate() {
            let read = if at == 1 { month_number } else { integer };
            *part = read(c.name, value)?;
        }
        let [year, month, day, hour, minute, second, nano] = parts;
        let parts = civil_date(year, month, day).zip(civil_time([hour, minute, second, nano]));
        let none = || Error::argument("LocalDateTime/of: there is no such time");
        let (date, time) = parts.ok_or_else(none)?;
        Ok(temporal(Temporal::LocalDateTime(date.to_datetime(time))))
    }),
    Native::leaf("LocalDateTime/now", Arity::between(0, 1), &[], |c, a| {
        Ok(temporal(Temporal::LocalDateTime(super::zones::now(c.name, c, a)?.0)))
    }),
    Native::unary(".toLocalDate", |c, a| Ok(temporal(Temporal::LocalDate(date_time(c.name, &a[0])?.date())))),
    Native::unary(".atStartOfDay", |c, a| {
        let date = date_of(c.name, &a[0])?;
        Ok(temporal(Temporal::LocalDateTime(date.to_datetime(Time::midnight()))))
    }),
    Native::leaf(".atTime", Arity::between(2, 4), &[], |c, a| {
        let date = date_of(c.name, &a[0])?;
        if let [_, time] = a {
            return match as_temporal(time) {
                Some(Temporal::LocalTime(time)) => {
                    Ok(temporal(Temporal::LocalDateTime(date.to_datetime(*time))))
                }
                _ => Err(c.type_error("a time of day", time)),
            };
        }
        let part = |at: usize| a.get(at).map_or(Ok(0), |value| integer(c.name, value));
        let time = civil_time([part(1)?, part(2)?, part(3)?, 0]);
        let none = || Error::argument(".atTime: there is no such time of day");
        Ok(temporal(Temporal::LocalDateTime(date.to_datetime(time.ok_or_else(none)?))))
    }),
    Native::unary(".getHour", |c, a| Ok(Value::Integer(time_of(c.name, &a[0])?.hour().into()))),
    Native::unary(".getMinute", |c, a| Ok(Value::Integer(time_of(c.name, &a[0])?.minute().into()))),
    Native::unary(".getSecond", |c, a| Ok(Value::Integer(time_of(c.name, &a[0])?.second().into()))),
    Native::unary(".getNano", |c, a| {
        let nanoseconds = match as_temporal(&a[0]) {
            Some(Temporal::Instant(instant)) => instant.as_nanosecond(),
            Some(Temporal::Duration(duration)) => duration.as_nanos(),
            _ => nanoseconds_of(time_of(c.name, &a[0])?),
        };
        // The remainder is less than a second.
        Ok(Value::Integer(nanoseconds.rem_euclid(1_000_000_000) as i64))
    }),
    Native::unary(".getDayOfWeek", |c, a| {
        let day = date_of(c.name, &a[0])?.weekday().to_monday_one_offset();
        Ok(temporal(Temporal::DayOfWeek(day)))
    }),
    Native::unary(".getMonth", |c, a| Ok(temporal(Temporal::Month(date_or_month(c.name, &a[0])?.month())))),
    Native::unary("DayOfWeek/of", |c, a| Ok(temporal(Temporal::DayOfWeek(numbered(c.name, &a[0], 7)?)))),
    Native::unary("Month/of", |c, a| Ok(temporal(Temporal::Month(numbered(c.name, &a[0], 12)?)))),
    Native::unary(".getValue", |c, a| match as_temporal(&a[0]) {
        Some(Temporal::DayOfWeek(number) | Temporal::Month(number)) => Ok(Value::Integer((*number).into())),
        _ => Err(c.type_error("a day of the week or a month", &a[0])),
    }),
    Native::unary(".name", |c, a| match as_temporal(&a[0]) {
        Some(named @ (Temporal::DayOfWeek(_) | Temporal::Month(_) | Temporal::Unit(_))) => {
            c.string(crate::printer::temporal_text(named))
        }
        _ => Err(c.type_error("a day of the week or a month", &a[0])),
    }),
    Native::binary(".withDayOfMonth", |c, a| with(c.name, a)),
    Native::binary(".withMonth", |c, a| with(c.name, a)),
    Native::binary(".withYear", |c, a| with(c.name, a)),
    Native::leaf(".between", Arity::exactly(3), &[], |c, a| match as_temporal(&a[0]) {
        Some(Temporal::Unit(unit)) => between(*unit, &a[1], &a[2]),
        _ => Err(c.type_error("a unit such as ChronoUnit/DAYS", &a[0])),
    }),
    Native::leaf(".until", Arity::between(2, 3), &[], |c, a| match a.get(2).map(as_temporal) {
        None => super::amounts::period_between(c.name, &a[0], &a[1]),
        Some(Some(Temporal::Unit(unit))) => between(*unit, &a[0], &a[1]),
        _ => Err(c.type_error("a unit such as ChronoUnit/DAYS", &a[2])),
    }),
    Native::unary("DateTimeFormatter/ofPattern", |c, a| {
        let pattern = text(c.name, &a[0])?;
        DatePattern::parse(pattern)?;
        Ok(temporal(Temporal::Formatter(pattern.as_str().into())))
    }),
    Native::binary(".format", |c, a| {
        // Both the date and the formatter have this method.
        let (value, formatter) = match as_temporal(&a[0]) {
            Some(Temporal::Formatter(_)) => (&a[1], &a[0]),
            _ => (&a[0], &a[1]),
        };
        let fields = match as_temporal(value) {
            Some(Temporal::LocalDate(date)) => Fields::of_date(*date),
            Some(Temporal::LocalDateTime(found)) => Fields::of_date_time(*found),
            Some(Temporal::OffsetDateTime(found, offset)) => {
                Fields::of_date_time(*found).with_offset(*offset)
            }
            Some(Temporal::ZonedDateTime(found, zone)) => {
                Fields::of_date_time(*found).with_offset(zone.seconds())
            }
            Some(Temporal::LocalTime(time)) => Fields::of_time(*time),
            Some(Temporal::YearMonth(first)) => Fields::of_month(*first),
            _ => return Err(c.type_error("a date or a date-time", value)),
        };
        let formatted = pattern_of(c.name, formatter)?.format(&fields)?;
        c.string(formatted)
    }),
];

pub(crate) const CONSTANTS: &[Constant] = &[
    ("DateTimeFormatter/ISO_LOCAL_DATE", || temporal(Temporal::Formatter("yyyy-MM-dd".into()))),
    ("DateTimeFormatter/ISO_DATE", || temporal(Temporal::Formatter("yyyy-MM-dd".into()))),
    ("DateTimeFormatter/BASIC_ISO_DATE", || temporal(Temporal::Formatter("yyyyMMdd".into()))),
    ("DateTimeFormatter/ISO_LOCAL_DATE_TIME", || {
        temporal(Temporal::Formatter("yyyy-MM-dd'T'HH:mm:ss".into()))
    }),
];

/// The constants of the enumerations, such as `DayOfWeek/MONDAY`, `Month/JANUARY` and `ChronoUnit/DAYS`.
pub(crate) fn enumerated() -> impl Iterator<Item = (String, Value)> {
    let days = (1..).zip(DAYS).map(|(day, name)| ("DayOfWeek", name, Temporal::DayOfWeek(day)));
    let months = (1..).zip(MONTHS).map(|(month, name)| ("Month", name, Temporal::Month(month)));
    let units = TimeUnit::NAMES.into_iter().map(|(unit, name)| ("ChronoUnit", name, Temporal::Unit(unit)));
    let all = days.chain(months).chain(units);
    all.map(|(class, name, value)| (format!("{class}/{}", name.to_uppercase()), temporal(value)))
}

/// A number from 1 to `most`.
fn numbered(function: &str, value: &Value, most: i8) -> Result<i8> {
    let number = i8::try_from(integer(function, value)?).ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| Error::argument(format!("{function}: the numbers are 1 to {most}")))
}

/// Reads a text in its usual form, or by a formatter if there is one.
pub(super) fn parse<T>(
    function: &str,
    a: &[Value],
    plain: fn(&str) -> Result<T>,
    of_fields: fn(&Fields) -> Option<T>,
) -> Result<T> {
    let written = text(function, &a[0])?;
    let Some(formatter) = a.get(1) else { return plain(written) };
    let fields = pattern_of(function, formatter)?.read(written);
    fields.and_then(|fields| of_fields(&fields)).ok_or_else(|| match as_temporal(formatter) {
        Some(Temporal::Formatter(pattern)) => {
            unreadable("a date in the form of the pattern", written, pattern)
        }
        _ => unreadable("a date", written, "2026-01-02"),
    })
}

fn pattern_of(function: &str, formatter: &Value) -> Result<DatePattern> {
    match as_temporal(formatter) {
        Some(Temporal::Formatter(pattern)) => DatePattern::parse(pattern),
        _ => Err(type_error(function, "a formatter", formatter)
            .hint("make one with `(DateTimeFormatter/ofPattern \"dd.MM.yyyy\")`")),
    }
}

pub(super) fn date_time(function: &str, value: &Value) -> Result<DateTime> {
    as_temporal(value).and_then(civil_of).ok_or_else(|| type_error(function, "a date-time", value))
}

/// The time of day of a date-time or a local time.
pub(super) fn time_of(function: &str, value: &Value) -> Result<Time> {
    match as_temporal(value) {
        Some(Temporal::LocalTime(time)) => Ok(*time),
        _ => date_time(function, value).map(DateTime::time),
    }
}

/// The date of a local date or a local date-time.
pub(super) fn date_of(function: &str, value: &Value) -> Result<Date> {
    match as_temporal(value) {
        Some(Temporal::LocalDate(date)) => Ok(*date),
        other => match other.and_then(civil_of) {
            Some(local) => Ok(local.date()),
            None => Err(type_error(function, "a local date", value)),
        },
    }
}

/// The date of a value that has one, or the first day of a month of a year.
pub(super) fn date_or_month(function: &str, value: &Value) -> Result<Date> {
    match as_temporal(value) {
        Some(Temporal::YearMonth(first)) => Ok(*first),
        _ => date_of(function, value),
    }
}

/// Replaces a part of a date. A day beyond the end of its month is the last one, but not one that is given.
fn with(function: &str, arguments: &[Value]) -> Result<Value> {
    let date = match function {
        ".withDayOfMonth" => date_of(function, &arguments[0])?,
        _ => date_or_month(function, &arguments[0])?,
    };
    let number = integer(function, &arguments[1])?;
    let none = || Error::argument(format!("{function}: there is no such date"));
    let (year, month, day) = match function {
        ".withDayOfMonth" => (date.year(), date.month(), i8::try_from(number).map_err(|_| none())?),
        ".withMonth" => (date.year(), i8::try_from(number).map_err(|_| none())?, date.day()),
        _ => (i16::try_from(number).map_err(|_| none())?, date.month(), date.day()),
    };
    let last = Date::new(year, month, 1).map_err(|_| none())?.days_in_month();
    let day = if function == ".withDayOfMonth" { day } else { day.min(last) };
    let moved = Date::new(year, month, day).map_err(|_| none())?;
    let found = as_temporal(&arguments[0]);
    Ok(temporal(match (found, found.and_then(civil_of)) {
        (Some(found), Some(local)) => at_civil(found, moved.to_datetime(local.time())),
        (Some(Temporal::YearMonth(_)), None) => Temporal::YearMonth(moved),
        _ => Temporal::LocalDate(moved),
    }))
}

/// `ChronoUnit.between`: whole units from one time to another.
fn between(unit: TimeUnit, from: &Value, to: &Value) -> Result<Value> {
    let unsupported = |value: &Value| {
        let unit = unit.name().to_lowercase();
        Error::new(ErrorKind::Type, format!("a {} is not measured in {unit}", value.type_name()))
    };
    let stamps = as_temporal(from).zip(as_temporal(to)).filter(|(from, to)| {
        from.epoch_nanoseconds().is_some() && std::mem::discriminant(*from) == std::mem::discriminant(*to)
    });
    if let Some((from, to)) = stamps {
        // Both on the clock of the first, whose days count.
        let local = |value: &Temporal| civil_of(value).unwrap_or_default();
        let moved = to.epoch_nanoseconds().unwrap_or(0) - from.epoch_nanoseconds().unwrap_or(0);
        let end = local(from).checked_add(duration(moved)?).map_err(|_| out_of_range())?;
        let (from, to) = (Temporal::LocalDateTime(local(from)), Temporal::LocalDateTime(end));
        return between(unit, &temporal(from), &temporal(to));
    }
    let count = match (as_temporal(from), as_temporal(to)) {
        (Some(Temporal::LocalTime(start)), Some(Temporal::LocalTime(end))) => {
            let unit =
                unit.nanoseconds().filter(|_| unit < TimeUnit::Days).ok_or_else(|| unsupported(from))?;
            (nanoseconds_of(*end) - nanoseconds_of(*start)) / unit
        }
        (Some(Temporal::LocalDate(from_date)), Some(Temporal::LocalDate(to))) => {
            in_dates(unit, *from_date, *to).ok_or_else(|| unsupported(from))?
        }
        (Some(Temporal::YearMonth(first)), Some(Temporal::YearMonth(to))) => {
            let months = Some(unit).filter(|unit| *unit >= TimeUnit::Months);
            months.and_then(|unit| in_dates(unit, *first, *to)).ok_or_else(|| unsupported(from))?
        }
        (Some(Temporal::LocalDateTime(from)), Some(Temporal::LocalDateTime(to))) => {
            match unit.nanoseconds().filter(|_| unit < TimeUnit::Days) {
                Some(unit) => to.duration_since(*from).as_nanos() / unit,
                None => {
                    // A day that has begun and not ended does not count.
                    let mut end = to.date();
                    let step = match (end.cmp(&from.date()), to.time().cmp(&from.time())) {
                        (std::cmp::Ordering::Greater, std::cmp::Ordering::Less) => -1,
                        (std::cmp::Ordering::Less, std::cmp::Ordering::Greater) => 1,
                        _ => 0,
                    };
                    end = end.checked_add(Span::new().days(step)).map_err(|_| out_of_range())?;
                    in_dates(unit, from.date(), end).unwrap_or(0)
                }
            }
        }
        (Some(Temporal::Instant(start)), Some(Temporal::Instant(to))) => {
            let unit = unit.nanoseconds().ok_or_else(|| unsupported(from))?;
            to.duration_since(*start).as_nanos() / unit
        }
        (Some(Temporal::LocalDate(_) | Temporal::LocalDateTime(_) | Temporal::Instant(_)), _) => {
            return Err(type_error(".between", &format!("another {}", from.type_name()), to));
        }
        _ => return Err(type_error(".between", "a local date, a local date-time or an instant", from)),
    };
    i64::try_from(count)
        .map(Value::Integer)
        .map_err(|_| Error::new(ErrorKind::Arithmetic, "ChronoUnit.between: integer overflow"))
}

/// Whole units between two dates; `None` for units of a day.
fn in_dates(unit: TimeUnit, from: Date, to: Date) -> Option<i128> {
    let days = epoch_day(to) - epoch_day(from);
    // Months are counted as Java does: with the day as a fraction of 32 days.
    let packed =
        |date: Date| (i64::from(date.year()) * 12 + i64::from(date.month()) - 1) * 32 + i64::from(date.day());
    let months = (packed(to) - packed(from)) / 32;
    Some(i128::from(match unit {
        TimeUnit::Days => days,
        TimeUnit::Weeks => days / 7,
        TimeUnit::Months => months,
        TimeUnit::Years => months / 12,
        _ => return None,
    }))
}
