//! Dates, instants and durations as texts.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::error::{Error, ErrorKind, Result};
use crate::reader::Tag;
use crate::value::{Temporal, TimeUnit, Zone};

use super::pattern::{DAYS, DatePattern, MONTHS};

/// Parses the text of a tagged literal.
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
        Tag::LocalDateTime => parse_date_time(text).map(Temporal::LocalDateTime),
        Tag::DayOfWeek => named(&DAYS, text)
            .map(Temporal::DayOfWeek)
            .ok_or_else(|| unreadable("a day of the week", text, "MONDAY")),
        Tag::Month => {
            named(&MONTHS, text).map(Temporal::Month).ok_or_else(|| unreadable("a month", text, "JANUARY"))
        }
        Tag::Unit => TimeUnit::from_name(text)
            .map(Temporal::Unit)
            .ok_or_else(|| unreadable("a unit of time", text, "DAYS")),
        Tag::Formatter => DatePattern::parse(text).map(|_| Temporal::Formatter(text.into())),
        Tag::OffsetDateTime => parse_offset_date_time(text),
        Tag::ZonedDateTime => parse_zoned_date_time(text),
        Tag::Zone => parse_zone(text).map(Temporal::Zone),
        Tag::Period => parse_period(text),
        Tag::LocalTime => parse_time(text).map(Temporal::LocalTime),
        Tag::YearMonth => parse_month(text).map(Temporal::YearMonth),
    }
}

/// The number of a name, from 1.
fn named(names: &[&str], text: &str) -> Option<i8> {
    let at = names.iter().position(|name| name.to_uppercase() == text)?;
    i8::try_from(at + 1).ok()
}

/// Parses an ISO date and time without an offset. Seconds may be missing.
pub(super) fn parse_date_time(text: &str) -> Result<DateTime> {
    let shaped = text.as_bytes().get(10).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'T'))
        && text[11..].bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
    let found = if shaped && text.is_ascii() { text.parse().ok() } else { None };
    found.ok_or_else(|| {
        let error = unreadable("a date and a time", text, "2026-01-02T03:04");
        if text.ends_with(['Z', 'z']) || text.contains('+') {
            return error.hint(
                "a text with an offset is read by `(OffsetDateTime/parse text)` or `(Instant/parse text)`",
            );
        }
        error
    })
}

pub(super) fn parse_date(text: &str) -> Result<Date> {
    // The date library also accepts basic and full forms, which Java refuses.
    let plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let date = if plain { text.parse().ok() } else { None };
    date.ok_or_else(|| unreadable("a date", text, "2026-01-02"))
}

/// Parses a month of a year, and returns its first day.
pub(super) fn parse_month(text: &str) -> Result<Date> {
    parse_date(&format!("{text}-01")).map_err(|_| unreadable("a month", text, "2026-01"))
}

pub(super) fn parse_instant(text: &str) -> Result<Timestamp> {
    let found = || {
        let (local, offset) = split_offset(text)?;
        // Java's `Instant` needs seconds, takes a leap second, and has colons in its offset.
        let has_seconds = local.len() >= "2026-01-02T03:04:05".len();
        let is_fit = has_seconds && (!has_leap_second(local) || local.get(11..16) == Some("23:59"));
        let offset = offset_of(offset).filter(|_| is_fit && matches!(offset.len(), 1 | 6 | 9))?;
        let stamp = Temporal::OffsetDateTime(parse_date_time(local).ok()?, offset);
        Timestamp::from_nanosecond(stamp.epoch_nanoseconds()?).ok()
    };
    found().ok_or_else(|| {
        let error = unreadable("an instant", text, "2026-01-02T03:04:05Z");
        match parse_zoned_date_time(text) {
            Ok(_) => error.hint("this text is read by `(.toInstant (ZonedDateTime/parse text))`"),
            Err(_) => error,
        }
    })
}

/// Splits a text before its offset.
fn split_offset(text: &str) -> Option<(&str, &str)> {
    let at = text.get("2026-01-02T".len()..)?.find(['Z', 'z', '+', '-'])?;
    text.split_at_checked("2026-01-02T".len() + at)
}

/// Whether the seconds of a date and time are 60, which the date library takes for 59.
fn has_leap_second(local: &str) -> bool {
    local.get(17..19) == Some("60")
}

/// Parses an ISO date and time with an offset: `Z`, `+01`, `+01:00` or `+01:00:30`.
pub(super) fn parse_offset_date_time(text: &str) -> Result<Temporal> {
    let found = || {
        let (local, offset) = split_offset(text)?;
        let is_fit = local.len() >= "2026-01-02T03:04".len() && !has_leap_second(local);
        let offset = offset_of(offset).filter(|_| is_fit && matches!(offset.len(), 1 | 3 | 6 | 9))?;
        Some(Temporal::OffsetDateTime(parse_date_time(local).ok()?, offset))
    };
    found().ok_or_else(|| {
        let error = unreadable("a date and a time with an offset", text, "2026-01-02T03:04:05+01:00");
        match text.as_bytes() {
            [.., b'+' | b'-', a, b, c, d] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()) => error.hint(
                "an offset without a colon needs a pattern: `(OffsetDateTime/parse text (DateTimeFormatter/ofPattern \"yyyy-MM-dd'T'HH:mm:ssZ\"))`",
            ),
            [.., b']'] => error.hint("a text with a zone in brackets is read by `(ZonedDateTime/parse text)`"),
            _ => error,
        }
    })
}

/// Parses the same with an optional zone in brackets, in which the time then is.
pub(super) fn parse_zoned_date_time(text: &str) -> Result<Temporal> {
    let (stamp, zone) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((stamp, zone)) => (stamp, Some(parse_zone(zone)?)),
        None => (text, None),
    };
    match parse_offset_date_time(stamp)? {
        Temporal::OffsetDateTime(local, offset) => match zone {
            None => Ok(Temporal::ZonedDateTime(local, Zone::Offset(offset))),
            Some(zone) => {
                let local = super::zones::at_offset(local, offset, zone.seconds())?;
                Ok(Temporal::ZonedDateTime(local, zone))
            }
        },
        other => Ok(other),
    }
}

/// Parses an offset, or one of the names of UTC.
pub(super) fn parse_zone(text: &str) -> Result<Zone> {
    match text {
        "UTC" | "GMT" | "UT" | "Etc/UTC" | "Etc/GMT" | "Zulu" | "Etc/Zulu" | "Etc/UCT" | "UCT" => {
            Ok(Zone::Utc(text.into()))
        }
        _ if text.starts_with(['Z', '+', '-']) => parse_zone_offset(text).map(Zone::Offset),
        _ => Err(Error::argument(format!("the time zone {text:?} is not known"))
            .hint("UTC and offsets such as \"+02:00\" are known, rules of regions and summer time are not")),
    }
}

/// Parses an offset as `ZoneOffset.of` does.
pub(super) fn parse_zone_offset(text: &str) -> Result<i32> {
    offset_of(text).filter(|_| text != "z").ok_or_else(|| {
        Error::argument(format!("ZoneOffset/of: {text:?} is not an offset"))
            .hint("it is written like \"+02:00\" or \"Z\", up to 18 hours")
    })
}

/// The seconds of `Z`, `+h`, `+hh`, `+hhmm`, `+hh:mm`, `+hhmmss` or `+hh:mm:ss`.
pub(super) fn offset_of(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'+' => (false, &text[1..]),
        b'-' => (true, &text[1..]),
        _ => return None,
    };
    let parts: Vec<&str> = match digits.len() {
        1 | 2 => vec![digits],
        4 => vec![digits.get(..2)?, digits.get(2..)?],
        6 => vec![digits.get(..2)?, digits.get(2..4)?, digits.get(4..)?],
        5 | 8 => digits.split(':').collect(),
        _ => return None,
    };
    let mut seconds = 0;
    for (part, unit) in parts.iter().zip([3600, 60, 1]) {
        let is_number =
            part.bytes().all(|byte| byte.is_ascii_digit()) && (part.len() == 2 || digits.len() == 1);
        let number: i32 = if is_number { part.parse().ok()? } else { return None };
        if unit < 3600 && number > 59 {
            return None;
        }
        seconds += number * unit;
    }
    let seconds = if is_negative { -seconds } else { seconds };
    (seconds.abs() <= 18 * 3600).then_some(seconds)
}

/// Parses an ISO time of day. Seconds may be missing.
pub(super) fn parse_time(text: &str) -> Result<Time> {
    let found = match text.get(6..8) {
        Some("60") => None,
        _ if text.len() < "10:15".len() => None,
        _ => parse_date_time(&format!("1970-01-01T{text}")).ok(),
    };
    found.map(DateTime::time).ok_or_else(|| unreadable("a time of day", text, "10:15:30"))
}

/// Parses `PnYnMnWnD`, each part with a sign of its own, as `Period.parse` does.
pub(super) fn parse_period(text: &str) -> Result<Temporal> {
    let found = || {
        let upper = text.to_ascii_uppercase();
        let (is_negative, written) = sign(&upper);
        let mut rest = written.strip_prefix('P').filter(|rest| !rest.is_empty())?;
        let mut counts = [0_i64; 4];
        for (count, unit) in counts.iter_mut().zip(['Y', 'M', 'W', 'D']) {
            if let Some((number, after)) = rest.split_once(unit) {
                *count = whole(number)?;
                rest = after;
            }
        }
        let [years, months, weeks, days] = counts;
        let days = days.checked_add(weeks.checked_mul(7)?)?;
        let part = |count: i64| i32::try_from(if is_negative { count.checked_neg()? } else { count }).ok();
        rest.is_empty().then_some(Temporal::Period([part(years)?, part(months)?, part(days)?]))
    };
    found().ok_or_else(|| unreadable("a period", text, "P1Y2M3D"))
}

/// Parses `PnDTnHnMn.nS`, each part with a sign of its own, as `Duration.parse` does.
pub(super) fn parse_duration(text: &str) -> Result<SignedDuration> {
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

/// Parses seconds with up to nine fractional digits, as nanoseconds.
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

/// Parses an `#inst`: anything from a year to a full time, in UTC if it has no offset.
pub(super) fn inst(text: &str) -> Option<Timestamp> {
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

pub(super) fn parse_uuid(text: &str) -> Option<Temporal> {
    let groups: Vec<&str> = text.split('-').collect();
    let shaped = groups.len() == 5
        && groups.iter().zip([8, 4, 4, 4, 12]).all(|(group, length)| {
            group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
    shaped.then(|| Temporal::Uuid(text.to_ascii_lowercase().into()))
}

pub(super) fn date_text(text: &str) -> Option<Timestamp> {
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

pub(super) fn unreadable(what: &str, text: &str, example: &str) -> Error {
    let shown: String = text.chars().take(40).collect();
    Error::new(ErrorKind::InvalidText, format!("{shown:?} is not {what}"))
        .hint(format!("it is written like {example:?}"))
}
