//! `OffsetDateTime`, `ZonedDateTime`, `ZoneOffset`, `ZoneId` and `LocalTime`.
//!
//! Zones have one offset: UTC under its names, or hours and minutes. There is no table of regions, whose rules
//! change, so that a program means the same everywhere and at any time.

use jiff::civil::{DateTime, Time};
use jiff::{SignedDuration, Timestamp};

use super::amounts::nanoseconds_of;
use super::civil::{date_of, date_time, parse};
use super::pattern::Fields;
use super::text::{parse_offset_date_time, parse_time, parse_zone, parse_zone_offset, parse_zoned_date_time};
use super::{as_temporal, civil_of, civil_time, instant_of, integer, out_of_range, temporal, text};
use crate::error::{Error, Result};
use crate::library::{Arity, CallContext, Constant, Native, type_error};
use crate::value::{Temporal, Value, Zone};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("OffsetDateTime/parse", Arity::between(1, 2), &[], |c, a| {
        let stamp =
            |fields: &Fields| fields.stamp().map(|(local, offset)| Temporal::OffsetDateTime(local, offset));
        parse(c.name, a, parse_offset_date_time, stamp).map(temporal)
    }),
    Native::leaf("ZonedDateTime/parse", Arity::between(1, 2), &[], |c, a| {
        let stamp = |fields: &Fields| {
            fields.stamp().map(|(local, offset)| Temporal::ZonedDateTime(local, Zone::Offset(offset)))
        };
        parse(c.name, a, parse_zoned_date_time, stamp).map(temporal)
    }),
    Native::binary("OffsetDateTime/of", |c, a| at_offset_of(c.name, a)),
    Native::binary("ZonedDateTime/of", |c, a| at_zone(c.name, a)),
    Native::binary("OffsetDateTime/ofInstant", |c, a| {
        let (local, zone) = local_at(c.name, a)?;
        Ok(temporal(Temporal::OffsetDateTime(local, zone.seconds())))
    }),
    Native::binary("ZonedDateTime/ofInstant", |c, a| at_zone(c.name, a)),
    Native::binary("LocalDateTime/ofInstant", |c, a| {
        Ok(temporal(Temporal::LocalDateTime(local_at(c.name, a)?.0)))
    }),
    Native::binary("LocalDate/ofInstant", |c, a| {
        Ok(temporal(Temporal::LocalDate(local_at(c.name, a)?.0.date())))
    }),
    Native::leaf("OffsetDateTime/now", Arity::between(0, 1), &[], |c, a| {
        let (local, zone) = now(c.name, c, a)?;
        Ok(temporal(Temporal::OffsetDateTime(local, zone.seconds())))
    }),
    Native::leaf("ZonedDateTime/now", Arity::between(0, 1), &[], |c, a| {
        let (local, zone) = now(c.name, c, a)?;
        Ok(temporal(Temporal::ZonedDateTime(local, zone)))
    }),
    Native::leaf("LocalTime/now", Arity::between(0, 1), &[], |c, a| {
        Ok(temporal(Temporal::LocalTime(now(c.name, c, a)?.0.time())))
    }),
    Native::unary("ZoneOffset/of", |c, a| {
        let offset = parse_zone_offset(text(c.name, &a[0])?)?;
        Ok(temporal(Temporal::Zone(Zone::Offset(offset))))
    }),
    Native::unary("ZoneOffset/ofHours", |c, a| {
        let hours = integer(c.name, &a[0])?;
        let seconds = i32::try_from(hours).ok().filter(|hours| hours.abs() <= 18).map(|hours| hours * 3600);
        let refused = || Error::argument("ZoneOffset/ofHours: an offset has at most 18 hours");
        Ok(temporal(Temporal::Zone(Zone::Offset(seconds.ok_or_else(refused)?))))
    }),
    Native::unary("ZoneId/of", |c, a| {
        parse_zone(text(c.name, &a[0])?).map(|zone| temporal(Temporal::Zone(zone)))
    }),
    Native::binary(".atZone", |c, a| at_zone(c.name, a)),
    Native::binary(".atOffset", |c, a| at_offset_of(c.name, a)),
    Native::unary(".toLocalDateTime", |c, a| {
        let local = as_temporal(&a[0]).filter(|found| found.epoch_nanoseconds().is_some()).and_then(civil_of);
        let local = local.ok_or_else(|| c.type_error("a date-time with an offset", &a[0]))?;
        Ok(temporal(Temporal::LocalDateTime(local)))
    }),
    Native::unary(".toLocalTime", |c, a| Ok(temporal(Temporal::LocalTime(date_time(c.name, &a[0])?.time())))),
    Native::unary(".toOffsetDateTime", |c, a| match as_temporal(&a[0]) {
        Some(Temporal::ZonedDateTime(local, zone)) => {
            Ok(temporal(Temporal::OffsetDateTime(*local, zone.seconds())))
        }
        _ => Err(c.type_error("a zoned date-time", &a[0])),
    }),
    Native::unary(".toEpochSecond", |c, a| match as_temporal(&a[0]).and_then(Temporal::epoch_nanoseconds) {
        Some(nanoseconds) => i64::try_from(nanoseconds.div_euclid(1_000_000_000))
            .map(Value::Integer)
            .map_err(|_| out_of_range()),
        None => Err(c.type_error("a date-time with an offset", &a[0])),
    }),
    Native::unary(".getOffset", |c, a| match as_temporal(&a[0]) {
        Some(Temporal::OffsetDateTime(_, offset)) => Ok(temporal(Temporal::Zone(Zone::Offset(*offset)))),
        Some(Temporal::ZonedDateTime(_, zone)) => Ok(temporal(Temporal::Zone(Zone::Offset(zone.seconds())))),
        _ => Err(c.type_error("a date-time with an offset", &a[0])),
    }),
    Native::unary(".getZone", |c, a| match as_temporal(&a[0]) {
        Some(Temporal::ZonedDateTime(_, zone)) => Ok(temporal(Temporal::Zone(zone.clone()))),
        _ => Err(c.type_error("a zoned date-time", &a[0])),
    }),
    Native::binary(".withOffsetSameInstant", |c, a| match (as_temporal(&a[0]), offset(c.name, &a[1])?) {
        (Some(Temporal::OffsetDateTime(local, from)), to) => {
            Ok(temporal(Temporal::OffsetDateTime(at_offset(*local, *from, to)?, to)))
        }
        _ => Err(c.type_error("an offset date-time", &a[0])),
    }),
    Native::binary(".withZoneSameInstant", |c, a| match (as_temporal(&a[0]), zone(c.name, &a[1])?) {
        (Some(Temporal::ZonedDateTime(local, from)), to) => {
            let local = at_offset(*local, from.seconds(), to.seconds())?;
            Ok(temporal(Temporal::ZonedDateTime(local, to.clone())))
        }
        _ => Err(c.type_error("a zoned date-time", &a[0])),
    }),
    Native::leaf("LocalTime/parse", Arity::between(1, 2), &[], |c, a| {
        Ok(temporal(Temporal::LocalTime(parse(c.name, a, parse_time, Fields::time)?)))
    }),
    Native::leaf("LocalTime/of", Arity::between(2, 4), &[], |c, a| {
        let mut parts = [0; 4];
        for (part, value) in parts.iter_mut().zip(a) {
            *part = integer(c.name, value)?;
        }
        let none = || Error::argument("LocalTime/of: there is no such time of day");
        Ok(temporal(Temporal::LocalTime(civil_time(parts).ok_or_else(none)?)))
    }),
    Native::binary(".atDate", |c, a| match as_temporal(&a[0]) {
        Some(Temporal::LocalTime(time)) => {
            let date = date_of(c.name, &a[1])?;
            Ok(temporal(Temporal::LocalDateTime(date.to_datetime(*time))))
        }
        _ => Err(c.type_error("a time of day", &a[0])),
    }),
    Native::unary(".toSecondOfDay", |c, a| match as_temporal(&a[0]) {
        Some(Temporal::LocalTime(time)) => Ok(Value::Integer((nanoseconds_of(*time) / 1_000_000_000) as i64)),
        _ => Err(c.type_error("a time of day", &a[0])),
    }),
];

pub(crate) const CONSTANTS: &[Constant] = &[
    ("ZoneOffset/UTC", || temporal(Temporal::Zone(Zone::Offset(0)))),
    ("LocalTime/MIDNIGHT", || temporal(Temporal::LocalTime(Time::midnight()))),
    ("LocalTime/NOON", || temporal(Temporal::LocalTime(jiff::civil::time(12, 0, 0, 0)))),
];

/// Moves a local date and time from one offset to another.
pub(super) fn at_offset(local: DateTime, from: i32, to: i32) -> Result<DateTime> {
    let by = SignedDuration::from_secs(i64::from(to) - i64::from(from));
    local.checked_add(by).map_err(|_| out_of_range())
}

/// The local date and time of the program's start in the zone that is given, else in UTC.
pub(super) fn now(function: &str, context: &CallContext<'_>, a: &[Value]) -> Result<(DateTime, Zone)> {
    let zone = match a.first() {
        Some(given) => zone(function, given)?.clone(),
        None => Zone::Utc("UTC".into()),
    };
    Ok((local_of(instant_of(context.now)?, zone.seconds())?, zone))
}

/// The local date and time of an instant.
fn local_of(instant: Timestamp, offset: i32) -> Result<DateTime> {
    at_offset(instant.to_zoned(jiff::tz::TimeZone::UTC).datetime(), 0, offset)
}

/// The instant of a date-time with an offset.
pub(super) fn instant_of_stamp(value: &Temporal) -> Option<Result<Timestamp>> {
    let nanoseconds = value.epoch_nanoseconds()?;
    Some(Timestamp::from_nanosecond(nanoseconds).map_err(|_| out_of_range()))
}

/// The local date and time of an instant in a zone, and the zone.
fn local_at<'v>(function: &str, a: &'v [Value]) -> Result<(DateTime, &'v Zone)> {
    let (instant, zone) = (instant(function, &a[0])?, zone(function, &a[1])?);
    Ok((local_of(instant, zone.seconds())?, zone))
}

pub(super) fn instant(function: &str, value: &Value) -> Result<Timestamp> {
    match as_temporal(value) {
        Some(Temporal::Instant(instant)) => Ok(*instant),
        _ => Err(type_error(function, "an instant", value)),
    }
}

fn zone<'v>(function: &str, value: &'v Value) -> Result<&'v Zone> {
    match as_temporal(value) {
        Some(Temporal::Zone(zone)) => Ok(zone),
        _ => Err(type_error(function, "a zone such as ZoneOffset/UTC", value)),
    }
}

pub(super) fn offset(function: &str, value: &Value) -> Result<i32> {
    match as_temporal(value) {
        Some(Temporal::Zone(Zone::Offset(seconds))) => Ok(*seconds),
        _ => Err(type_error(function, "an offset such as ZoneOffset/UTC", value)),
    }
}

fn at_zone(function: &str, a: &[Value]) -> Result<Value> {
    let zone = zone(function, &a[1])?;
    let local = match as_temporal(&a[0]) {
        Some(Temporal::Instant(instant)) if function != "ZonedDateTime/of" => {
            local_of(*instant, zone.seconds())?
        }
        Some(Temporal::LocalDateTime(local)) if function != "ZonedDateTime/ofInstant" => *local,
        _ => return Err(type_error(function, "an instant or a local date-time", &a[0])),
    };
    Ok(temporal(Temporal::ZonedDateTime(local, zone.clone())))
}

fn at_offset_of(function: &str, a: &[Value]) -> Result<Value> {
    let offset = offset(function, &a[1])?;
    let local = match as_temporal(&a[0]) {
        Some(Temporal::Instant(instant)) if function == ".atOffset" => local_of(*instant, offset)?,
        Some(Temporal::LocalDateTime(local)) => *local,
        _ => return Err(type_error(function, "an instant or a local date-time", &a[0])),
    };
    Ok(temporal(Temporal::OffsetDateTime(local, offset)))
}
