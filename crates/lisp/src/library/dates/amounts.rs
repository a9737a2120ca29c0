//! `Period`, and the methods that add, subtract and cut amounts of any unit.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Span, Timestamp};

use super::functions::epoch_day;
use super::text::parse_period;
use super::{as_temporal, at_civil, civil_of, integer, out_of_range, temporal, text};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, Constant, Native, type_error};
use crate::value::{Temporal, TimeUnit, Value};

const DAY: i128 = 86_400_000_000_000;

pub(crate) const NATIVES: &[Native] = &[
    Native::unary("Period/parse", |c, a| parse_period(text(c.name, &a[0])?).map(temporal)),
    Native::leaf("Period/of", Arity::exactly(3), &[], |c, a| {
        Ok(period([part(c.name, &a[0], 1)?, part(c.name, &a[1], 1)?, part(c.name, &a[2], 1)?]))
    }),
    Native::unary("Period/ofDays", |c, a| Ok(period([0, 0, part(c.name, &a[0], 1)?]))),
    Native::unary("Period/ofWeeks", |c, a| Ok(period([0, 0, part(c.name, &a[0], 7)?]))),
    Native::unary("Period/ofMonths", |c, a| Ok(period([0, part(c.name, &a[0], 1)?, 0]))),
    Native::unary("Period/ofYears", |c, a| Ok(period([part(c.name, &a[0], 1)?, 0, 0]))),
    Native::binary("Period/between", |c, a| period_between(c.name, &a[0], &a[1])),
    Native::unary(".getYears", |c, a| Ok(Value::Integer(parts(c.name, &a[0])?[0].into()))),
    Native::unary(".getMonths", |c, a| Ok(Value::Integer(parts(c.name, &a[0])?[1].into()))),
    Native::unary(".getDays", |c, a| Ok(Value::Integer(parts(c.name, &a[0])?[2].into()))),
    Native::unary(".toTotalMonths", |c, a| {
        let [years, months, _] = parts(c.name, &a[0])?.map(i64::from);
        Ok(Value::Integer(years * 12 + months))
    }),
    Native::leaf(".plus", Arity::between(2, 3), &[], |c, a| add(c.name, a, 1)),
    Native::leaf(".minus", Arity::between(2, 3), &[], |c, a| add(c.name, a, -1)),
    Native::binary(".truncatedTo", |_, a| truncate(&a[0], &a[1])),
];

pub(crate) const CONSTANTS: &[Constant] = &[("Period/ZERO", || period([0; 3]))];

fn period(parts: [i32; 3]) -> Value {
    temporal(Temporal::Period(parts))
}

fn part(function: &str, value: &Value, times: i64) -> Result<i32> {
    let count = integer(function, value)?.checked_mul(times).and_then(|count| i32::try_from(count).ok());
    count.ok_or_else(|| Error::new(ErrorKind::Arithmetic, format!("{function}: integer overflow")))
}

/// The years, months and days of a period.
fn parts(function: &str, value: &Value) -> Result<[i32; 3]> {
    match as_temporal(value) {
        Some(Temporal::Period(parts)) => Ok(*parts),
        _ => Err(type_error(function, "a period", value)),
    }
}

/// Years, months and days from one date to another.
pub(super) fn period_between(function: &str, from: &Value, to: &Value) -> Result<Value> {
    let date = |value: &Value| match as_temporal(value) {
        Some(Temporal::LocalDate(date)) => Ok(*date),
        _ => Err(type_error(function, "a local date", value)),
    };
    let (from, to) = (date(from)?, date(to)?);
    let month = |date: Date| i64::from(date.year()) * 12 + i64::from(date.month());
    let (mut months, mut days) = (month(to) - month(from), i64::from(to.day()) - i64::from(from.day()));
    if months > 0 && days < 0 {
        months -= 1;
        let span = Span::new().try_months(months).map_err(|_| out_of_range())?;
        days = epoch_day(to) - epoch_day(from.checked_add(span).map_err(|_| out_of_range())?);
    } else if months < 0 && days > 0 {
        months += 1;
        days -= i64::from(to.days_in_month());
    }
    let part = |count: i64| i32::try_from(count).map_err(|_| out_of_range());
    Ok(period([part(months / 12)?, part(months % 12)?, part(days)?]))
}

/// An amount of time to add.
#[derive(Clone, Copy)]
enum Amount {
    Calendar { months: i64, days: i64 },
    Nanoseconds(i128),
}

/// Reads `(.plus x duration)`, `(.plus x period)` and `(.plus x count unit)`.
fn amount(function: &str, a: &[Value], sign: i64) -> Result<Amount> {
    let overflow = || Error::new(ErrorKind::Arithmetic, format!("{function}: integer overflow"));
    let calendar = |months: i64, days: i64| Amount::Calendar { months: months * sign, days: days * sign };
    match (as_temporal(&a[1]), a.get(2)) {
        (Some(Temporal::Duration(duration)), None) => {
            Ok(Amount::Nanoseconds(duration.as_nanos() * i128::from(sign)))
        }
        (Some(Temporal::Period([years, months, days])), None) => {
            Ok(calendar(i64::from(*years) * 12 + i64::from(*months), (*days).into()))
        }
        (_, Some(unit)) => {
            let count = integer(function, &a[1])?;
            let Some(Temporal::Unit(unit)) = as_temporal(unit) else {
                return Err(type_error(function, "a unit such as ChronoUnit/DAYS", unit));
            };
            let times = |factor: i64| {
                count.checked_mul(factor).filter(|count| *count != i64::MIN).ok_or_else(overflow)
            };
            match unit {
                TimeUnit::Years => Ok(calendar(times(12)?, 0)),
                TimeUnit::Months => Ok(calendar(times(1)?, 0)),
                TimeUnit::Weeks
                    if matches!(as_temporal(&a[0]), Some(Temporal::Instant(_) | Temporal::Duration(_))) =>
                {
                    Err(unsupported(&a[0], *unit))
                }
                TimeUnit::Weeks => Ok(calendar(0, times(7)?)),
                TimeUnit::Days => Ok(calendar(0, times(1)?)),
                unit => {
                    let length = unit.nanoseconds().unwrap_or(DAY);
                    let total = length.checked_mul(count.into()).ok_or_else(overflow)?;
                    Ok(Amount::Nanoseconds(total * i128::from(sign)))
                }
            }
        }
        _ => Err(type_error(function, "a duration, a period, or a count and a unit", &a[1])),
    }
}

fn unsupported(value: &Value, unit: TimeUnit) -> Error {
    let message = format!("a {} does not have {}", value.type_name(), unit.name().to_lowercase());
    Error::new(ErrorKind::Type, message)
}

fn add(function: &str, a: &[Value], sign: i64) -> Result<Value> {
    let Some(start) = as_temporal(&a[0]) else { return Err(type_error(function, "a date or a time", &a[0])) };
    if let (Temporal::Period(one), Some(Temporal::Period(other)), None) =
        (start, as_temporal(&a[1]), a.get(2))
    {
        let mut sum = *one;
        for (part, other) in sum.iter_mut().zip(other) {
            let other = i64::from(*other) * sign;
            *part = i32::try_from(i64::from(*part) + other).map_err(|_| out_of_range())?;
        }
        return Ok(period(sum));
    }
    let amount = amount(function, a, sign)?;
    // A day of a duration has 24 hours; a period is not one.
    let is_period = matches!(as_temporal(&a[1]), Some(Temporal::Period(_)));
    let start = Some(start).filter(|start| !(is_period && matches!(start, Temporal::Duration(_))));
    moved(start, amount)?.ok_or_else(|| type_error(function, "a date or a time that has this unit", &a[0]))
}

/// Adds months and days, `count` times.
pub(super) fn shift(function: &str, a: &[Value], months: i64, days: i64) -> Result<Value> {
    let count = integer(function, &a[1])?;
    let amount = Amount::Calendar { months: count.saturating_mul(months), days: count.saturating_mul(days) };
    let start = as_temporal(&a[0]).filter(|start| match start {
        Temporal::YearMonth(_) => months != 0,
        Temporal::Duration(_) => days.abs() == 1,
        start => !matches!(start, Temporal::Instant(_)),
    });
    moved(start, amount)?.ok_or_else(|| type_error(function, "a local date", &a[0]))
}

/// Adds milliseconds, `count` times.
pub(super) fn move_by(function: &str, a: &[Value], milliseconds: i64) -> Result<Value> {
    let total = integer(function, &a[1])?.checked_mul(milliseconds).ok_or_else(out_of_range)?;
    let amount = Amount::Nanoseconds(i128::from(total) * 1_000_000);
    moved(as_temporal(&a[0]), amount)?.ok_or_else(|| type_error(function, "an instant or a duration", &a[0]))
}

/// The value that is an amount later; `None` if it does not have the unit.
fn moved(start: Option<&Temporal>, amount: Amount) -> Result<Option<Value>> {
    let Some(start) = start else { return Ok(None) };
    let later = |local: DateTime| match amount {
        Amount::Calendar { months, days } => by_calendar(local, months, days),
        Amount::Nanoseconds(length) => local.checked_add(duration(length)?).map_err(|_| out_of_range()),
    };
    let length = match amount {
        Amount::Nanoseconds(length) => Some(length),
        Amount::Calendar { months: 0, days } => Some(i128::from(days) * DAY),
        Amount::Calendar { .. } => None,
    };
    Ok(Some(temporal(match (start, amount, length) {
        (Temporal::LocalDate(date), Amount::Calendar { .. }, _) => {
            Temporal::LocalDate(later(date.to_datetime(Time::midnight()))?.date())
        }
        (Temporal::YearMonth(first), Amount::Calendar { days: 0, .. }, _) => {
            Temporal::YearMonth(later(first.to_datetime(Time::midnight()))?.date())
        }
        (Temporal::LocalTime(time), Amount::Nanoseconds(length), _) => {
            Temporal::LocalTime(time_at((nanoseconds_of(*time) + length).rem_euclid(DAY)))
        }
        (Temporal::Instant(instant), _, Some(length)) => {
            Temporal::Instant(instant.checked_add(duration(length)?).map_err(|_| out_of_range())?)
        }
        (Temporal::Duration(one), _, Some(length)) => {
            Temporal::Duration(one.checked_add(duration(length)?).ok_or_else(out_of_range)?)
        }
        _ => match civil_of(start) {
            Some(local) => at_civil(start, later(local)?),
            None => return Ok(None),
        },
    })))
}

fn by_calendar(local: DateTime, months: i64, days: i64) -> Result<DateTime> {
    let months = Span::new().try_months(months).map_err(|_| out_of_range())?;
    let days = Span::new().try_days(days).map_err(|_| out_of_range())?;
    local.checked_add(months).and_then(|moved| moved.checked_add(days)).map_err(|_| out_of_range())
}

pub(super) fn duration(nanoseconds: i128) -> Result<SignedDuration> {
    let seconds = i64::try_from(nanoseconds / 1_000_000_000).map_err(|_| out_of_range())?;
    // The remainder is less than a second.
    Ok(SignedDuration::new(seconds, (nanoseconds % 1_000_000_000) as i32))
}

/// The nanoseconds of a time since midnight.
pub(super) fn nanoseconds_of(time: Time) -> i128 {
    let seconds = i128::from(time.hour()) * 3600 + i128::from(time.minute()) * 60 + i128::from(time.second());
    seconds * 1_000_000_000 + i128::from(time.subsec_nanosecond())
}

/// The time at a number of nanoseconds since midnight, which must be within a day.
fn time_at(nanoseconds: i128) -> Time {
    let (seconds, nanosecond) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Time::new(hour as i8, minute as i8, second as i8, nanosecond as i32).unwrap_or_else(|_| Time::midnight())
}

fn truncate(value: &Value, unit: &Value) -> Result<Value> {
    let Some(Temporal::Unit(unit)) = as_temporal(unit) else {
        return Err(type_error(".truncatedTo", "a unit such as ChronoUnit/HOURS", unit));
    };
    let length = unit.nanoseconds().ok_or_else(|| {
        Error::new(ErrorKind::Type, format!(".truncatedTo: {} are too long", unit.name().to_lowercase()))
            .hint("cut to days, and then write `(.withDayOfMonth d 1)`")
    })?;
    let cut = |time: Time| time_at(nanoseconds_of(time) / length * length);
    Ok(temporal(match as_temporal(value) {
        Some(Temporal::LocalTime(time)) => Temporal::LocalTime(cut(*time)),
        Some(Temporal::Instant(instant)) => {
            let nanoseconds = instant.as_nanosecond().div_euclid(length) * length;
            Temporal::Instant(Timestamp::from_nanosecond(nanoseconds).map_err(|_| out_of_range())?)
        }
        Some(Temporal::Duration(found)) => Temporal::Duration(duration(found.as_nanos() / length * length)?),
        found => match found.zip(found.and_then(civil_of)) {
            Some((found, local)) => at_civil(found, local.date().to_datetime(cut(local.time()))),
            None => {
                return Err(type_error(".truncatedTo", "a date-time, an instant or a time of day", value));
            }
        },
    }))
}
