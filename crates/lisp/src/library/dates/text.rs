//! Dates, instants and durations as texts.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::error::{Error, ErrorKind, Result};
use crate::reader::Tag;
use crate::value::{Temporal, TimeUnit};

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
            return error.hint("a text with an offset is an instant: `(Instant/parse text)`");
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

pub(super) fn parse_instant(text: &str) -> Result<Timestamp> {
    // Java's `Instant` has a time and an offset, with a `T` between date and time.
    let shaped = text.as_bytes().get(10).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'T'));
    let instant = if shaped { text.parse().ok() } else { None };
    instant.ok_or_else(|| unreadable("an instant", text, "2026-01-02T03:04:05Z"))
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
