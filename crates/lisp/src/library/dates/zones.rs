//! `OffsetDateTime`, `ZonedDateTime`, `ZoneOffset`, `ZoneId` and `LocalTime`.
//!
//! Zones have one offset: UTC under its names, or hours and minutes. There is no table of regions, whose rules
//! change, so that a program means the same everywhere and at any time.

use jiff::civil::{DateTime, Time};
use jiff::{SignedDuration, Timestamp};

use super::civil::{date_of, parse_by, time_of, unfit};
use super::text::{parse_offset_date_time, parse_time, parse_zone, parse_zone_offset, parse_zoned_date_time};
use super::{as_temporal, at_civil, civil_of, instant_of, integer, out_of_range, temporal, text};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, CallContext, Constant, Native, type_error};
use crate::value::{Temporal, Value, Zone};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("OffsetDateTime/parse", Arity::between(1, 2), &[], |_, a| {
        stamp("OffsetDateTime/parse", a, parse_offset_date_time)
    }),
    Native::leaf("ZonedDateTime/parse", Arity::between(1, 2), &[], |_, a| {
        Ok(match stamp("ZonedDateTime/parse", a, parse_zoned_date_time)? {
            Value::Temporal(found) => match &*found {
                Temporal::OffsetDateTime(local, offset) => {
                    temporal(Temporal::ZonedDateTime(*local, Zone::Offset(*offset)))
                }
                _ => Value::Temporal(found),
            },
            other => other,
        })
    }),
    Native::leaf("OffsetDateTime/of", Arity::exactly(2), &[], |_, a| at_offset_of("OffsetDateTime/of", a)),
    Native::leaf("ZonedDateTime/of", Arity::exactly(2), &[], |_, a| at_zone("ZonedDateTime/of", a)),
    Native::leaf("OffsetDateTime/ofInstant", Arity::exactly(2), &[], |_, a| {
        let (instant, zone) =
            (instant("OffsetDateTime/ofInstant", &a[0])?, zone("OffsetDateTime/ofInstant", &a[1])?);
        Ok(temporal(Temporal::OffsetDateTime(local_of(instant, zone.seconds())?, zone.seconds())))
    }),
    Native::leaf("ZonedDateTime/ofInstant", Arity::exactly(2), &[], |_, a| {
        at_zone("ZonedDateTime/ofInstant", a)
    }),
    Native::leaf("LocalDateTime/ofInstant", Arity::exactly(2), &[], |_, a| {
        let (instant, zone) =
            (instant("LocalDateTime/ofInstant", &a[0])?, zone("LocalDateTime/ofInstant", &a[1])?);
        Ok(temporal(Temporal::LocalDateTime(local_of(instant, zone.seconds())?)))
    }),
    Native::leaf("LocalDate/ofInstant", Arity::exactly(2), &[], |_, a| {
        let (instant, zone) = (instant("LocalDate/ofInstant", &a[0])?, zone("LocalDate/ofInstant", &a[1])?);
        Ok(temporal(Temporal::LocalDate(local_of(instant, zone.seconds())?.date())))
    }),
    Native::leaf("OffsetDateTime/now", Arity::between(0, 1), &[], |context, a| {
        let (local, zone) = now("OffsetDateTime/now", context, a)?;
        Ok(temporal(Temporal::OffsetDateTime(local, zone.seconds())))
    }),
    Native::leaf("ZonedDateTime/now", Arity::between(0, 1), &[], |context, a| {
        let (local, zone) = now("ZonedDateTime/now", context, a)?;
        Ok(temporal(Temporal::ZonedDateTime(local, zone)))
    }),
    Native::leaf("LocalTime/now", Arity::between(0, 1), &[], |context, a| {
        Ok(temporal(Temporal::LocalTime(now("LocalTime/now", context, a)?.0.time())))
    }),
    Native::leaf("ZoneOffset/of", Arity::exactly(1), &[], |_, a| {
        let offset = parse_zone_offset(text("ZoneOffset/of", &a[0])?)?;
        Ok(temporal(Temporal::Zone(Zone::Offset(offset))))
    }),
    Native::leaf("ZoneOffset/ofHours", Arity::exactly(1), &[], |_, a| {
        let hours = integer("ZoneOffset/ofHours", &a[0])?;
        let seconds = i32::try_from(hours).ok().filter(|hours| hours.abs() <= 18).map(|hours| hours * 3600);
        let refused =
            || Error::new(ErrorKind::InvalidArgument, "ZoneOffset/ofHours: an offset has at most 18 hours");
        Ok(temporal(Temporal::Zone(Zone::Offset(seconds.ok_or_else(refused)?))))
    }),
    Native::leaf("ZoneId/of", Arity::exactly(1), &[], |_, a| {
        parse_zone(text("ZoneId/of", &a[0])?).map(|zone| temporal(Temporal::Zone(zone)))
    }),
    Native::leaf(".atZone", Arity::exactly(2), &[], |_, a| at_zone(".atZone", a)),
    Native::leaf(".atOffset", Arity::exactly(2), &[], |_, a| at_offset_of(".atOffset", a)),
    Native::leaf(".toLocalDateTime", Arity::exactly(1), &[], |_, a| {
        let local = as_temporal(&a[0]).filter(|found| found.epoch_nanoseconds().is_some()).and_then(civil_of);
        let local =
            local.ok_or_else(|| type_error(".toLocalDateTime", "a date-time with an offset", &a[0]))?;
        Ok(temporal(Temporal::LocalDateTime(local)))
    }),
    Native::leaf(".toLocalTime", Arity::exactly(1), &[], |_, a| {
        match as_temporal(&a[0]).and_then(civil_of) {
            Some(local) => Ok(temporal(Temporal::LocalTime(local.time()))),
            None => Err(type_error(".toLocalTime", "a date-time", &a[0])),
        }
    }),
    Native::leaf(".toOffsetDateTime", Arity::exactly(1), &[], |_, a| match as_temporal(&a[0]) {
        Some(Temporal::ZonedDateTime(local, zone)) => {
            Ok(temporal(Temporal::OffsetDateTime(*local, zone.seconds())))
        }
        _ => Err(type_error(".toOffsetDateTime", "a zoned date-time", &a[0])),
    }),
    Native::leaf(".toEpochSecond", Arity::exactly(1), &[], |_, a| {
        match as_temporal(&a[0]).and_then(Temporal::epoch_nanoseconds) {
            Some(nanoseconds) => i64::try_from(nanoseconds.div_euclid(1_000_000_000))
                .map(Value::Integer)
                .map_err(|_| out_of_range()),
            None => Err(type_error(".toEpochSecond", "a date-time with an offset", &a[0])),
        }
    }),
    Native::leaf(".getOffset", Arity::exactly(1), &[], |_, a| match as_temporal(&a[0]) {
        Some(Temporal::OffsetDateTime(_, offset)) => Ok(temporal(Temporal::Zone(Zone::Offset(*offset)))),
        Some(Temporal::ZonedDateTime(_, zone)) => Ok(temporal(Temporal::Zone(Zone::Offset(zone.seconds())))),
        _ => Err(type_error(".getOffset", "a date-time with an offset", &a[0])),
    }),
    Native::leaf(".getZone", Arity::exactly(1), &[], |_, a| match as_temporal(&a[0]) {
        Some(Temporal::ZonedDateTime(_, zone)) => Ok(temporal(Temporal::Zone(zone.clone()))),
        _ => Err(type_error(".getZone", "a zoned date-time", &a[0])),
    }),
    Native::leaf(".withOffsetSameInstant", Arity::exactly(2), &[], |_, a| {
        match (as_temporal(&a[0]), offset(".withOffsetSameInstant", &a[1])?) {
            (Some(Temporal::OffsetDateTime(local, from)), to) => {
                Ok(temporal(Temporal::OffsetDateTime(at_offset(*local, *from, to)?, to)))
            }
            _ => Err(type_error(".withOffsetSameInstant", "an offset date-time", &a[0])),
        }
    }),
    Native::leaf(".withZoneSameInstant", Arity::exactly(2), &[], |_, a| {
        match (as_temporal(&a[0]), zone(".withZoneSameInstant", &a[1])?) {
            (Some(Temporal::ZonedDateTime(local, from)), to) => {
                let local = at_offset(*local, from.seconds(), to.seconds())?;
                Ok(temporal(Temporal::ZonedDateTime(local, to.clone())))
            }
            _ => Err(type_error(".withZoneSameInstant", "a zoned date-time", &a[0])),
        }
    }),
    Native::leaf("LocalTime/parse", Arity::between(1, 2), &[], |_, a| {
        let written = text("LocalTime/parse", &a[0])?;
        let time = match a.get(1) {
            None => parse_time(written)?,
            Some(formatter) => {
                let fields = parse_by("LocalTime/parse", written, formatter)?;
                fields.time().ok_or_else(|| unfit(written, formatter))?
            }
        };
        Ok(temporal(Temporal::LocalTime(time)))
    }),
    Native::leaf("LocalTime/of", Arity::between(2, 4), &[], |_, a| {
        let mut parts = [0; 4];
        for (part, value) in parts.iter_mut().zip(a) {
            *part = integer("LocalTime/of", value)?;
        }
        let [hour, minute, second, nano] = parts;
        let time = || {
            Time::new(
                hour.try_into().ok()?,
                minute.try_into().ok()?,
                second.try_into().ok()?,
                nano.try_into().ok()?,
            )
            .ok()
        };
        let none = || Error::new(ErrorKind::InvalidArgument, "LocalTime/of: there is no such time of day");
        Ok(temporal(Temporal::LocalTime(time().ok_or_else(none)?)))
    }),
    Native::leaf(".atDate", Arity::exactly(2), &[], |_, a| match as_temporal(&a[0]) {
        Some(Temporal::LocalTime(time)) => {
            let date = date_of(".atDate", &a[1])?;
            Ok(temporal(Temporal::LocalDateTime(date.to_datetime(*time))))
        }
        _ => Err(type_error(".atDate", "a time of day", &a[0])),
    }),
    Native::leaf(".toSecondOfDay", Arity::exactly(1), &[], |_, a| match as_temporal(&a[0]) {
        Some(Temporal::LocalTime(_)) => {
            let time = time_of(".toSecondOfDay", &a[0])?;
            let minutes = i64::from(time.hour()) * 60 + i64::from(time.minute());
            Ok(Value::Integer(minutes * 60 + i64::from(time.second())))
        }
        _ => Err(type_error(".toSecondOfDay", "a time of day", &a[0])),
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
    Ok((local_of(instant_of(context.now())?, zone.seconds())?, zone))
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

fn instant(function: &str, value: &Value) -> Result<Timestamp> {
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

/// Reads a date-time with an offset, by its pattern if there is one.
fn stamp(function: &str, a: &[Value], plain: fn(&str) -> Result<Temporal>) -> Result<Value> {
    let written = text(function, &a[0])?;
    let Some(formatter) = a.get(1) else { return plain(written).map(temporal) };
    let fields = parse_by(function, written, formatter)?;
    let (Some(local), Some(offset)) = (fields.date_time(), fields.offset()) else {
        return Err(unfit(written, formatter));
    };
    Ok(temporal(at_civil(&Temporal::OffsetDateTime(local, offset), local)))
}
