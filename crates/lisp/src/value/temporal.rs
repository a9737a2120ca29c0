//! The dates, instants and durations of the language.

use std::cmp::Ordering;

use crate::reader::Tag;

/// A date, an instant, a duration or a UUID.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Temporal {
    /// A `java.time.LocalDate`: a day without a place.
    LocalDate(jiff::civil::Date),
    /// A `java.time.Instant`.
    Instant(jiff::Timestamp),
    /// A `java.time.Duration`.
    Duration(jiff::SignedDuration),
    /// A `java.util.Date`: milliseconds since 1970.
    Date(i64),
    /// A UUID, a tagged scalar as times are.
    Uuid(Box<str>),
    /// A `java.time.LocalDateTime`: a day and a time without a place.
    LocalDateTime(jiff::civil::DateTime),
    /// A `java.time.DayOfWeek`, from Monday, which is 1.
    DayOfWeek(i8),
    /// A `java.time.Month`, from January, which is 1.
    Month(i8),
    /// A `java.time.temporal.ChronoUnit`.
    Unit(TimeUnit),
    /// A `java.time.format.DateTimeFormatter`: its pattern.
    Formatter(Box<str>),
    /// A `java.time.OffsetDateTime`: a local day and time, and the offset of its clock from UTC in seconds.
    OffsetDateTime(jiff::civil::DateTime, i32),
    /// A `java.time.ZonedDateTime`, in a zone whose offset does not change.
    ZonedDateTime(jiff::civil::DateTime, Zone),
    /// A `java.time.ZoneOffset` or another `java.time.ZoneId`.
    Zone(Zone),
    /// A `java.time.Period`: years, months and days.
    Period([i32; 3]),
    /// A `java.time.LocalTime`: a time of day without a place.
    LocalTime(jiff::civil::Time),
    /// A `java.time.YearMonth`: the first day of a month.
    YearMonth(jiff::civil::Date),
}

/// A time zone with one offset.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Zone {
    /// An offset from UTC in seconds.
    Offset(i32),
    /// A name of UTC.
    Utc(Box<str>),
}

impl Zone {
    /// Returns its offset from UTC in seconds.
    pub fn seconds(&self) -> i32 {
        match self {
            Zone::Offset(seconds) => *seconds,
            Zone::Utc(_) => 0,
        }
    }
}

/// A unit of time, from the shortest on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TimeUnit {
    /// A nanosecond.
    Nanos,
    /// A millisecond.
    Millis,
    /// A second.
    Seconds,
    /// A minute.
    Minutes,
    /// An hour.
    Hours,
    /// A day.
    Days,
    /// A week.
    Weeks,
    /// A month of the calendar.
    Months,
    /// A year of the calendar.
    Years,
}

impl TimeUnit {
    /// All units with the names of their constants in Java.
    pub(crate) const NAMES: [(TimeUnit, &'static str); 9] = [
        (Self::Nanos, "NANOS"),
        (Self::Millis, "MILLIS"),
        (Self::Seconds, "SECONDS"),
        (Self::Minutes, "MINUTES"),
        (Self::Hours, "HOURS"),
        (Self::Days, "DAYS"),
        (Self::Weeks, "WEEKS"),
        (Self::Months, "MONTHS"),
        (Self::Years, "YEARS"),
    ];

    /// Returns the name of the constant in Java.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(unit, _)| *unit == self).map_or("", |(_, name)| *name)
    }

    /// Returns the unit with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(unit, _)| *unit)
    }

    /// Returns its length, if it has the same on every day.
    pub(crate) fn nanoseconds(self) -> Option<i128> {
        Some(match self {
            Self::Nanos => 1,
            Self::Millis => 1_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Minutes => 60_000_000_000,
            Self::Hours => 3_600_000_000_000,
            Self::Days => 86_400_000_000_000,
            Self::Weeks | Self::Months | Self::Years => return None,
        })
    }
}

impl Temporal {
    /// Returns the name of the type in messages and types.
    pub fn type_name(&self) -> &'static str {
        match self.tag() {
            Tag::Inst => "date",
            tag => tag.name().trim_start_matches("time/"),
        }
    }

    /// Returns the tag of its literal.
    pub(crate) fn tag(&self) -> Tag {
        match self {
            Temporal::LocalDate(_) => Tag::LocalDate,
            Temporal::Instant(_) => Tag::Instant,
            Temporal::Duration(_) => Tag::Duration,
            Temporal::Date(_) => Tag::Inst,
            Temporal::Uuid(_) => Tag::Uuid,
            Temporal::LocalDateTime(_) => Tag::LocalDateTime,
            Temporal::DayOfWeek(_) => Tag::DayOfWeek,
            Temporal::Month(_) => Tag::Month,
            Temporal::Unit(_) => Tag::Unit,
            Temporal::Formatter(_) => Tag::Formatter,
            Temporal::OffsetDateTime(..) => Tag::OffsetDateTime,
            Temporal::ZonedDateTime(..) => Tag::ZonedDateTime,
            Temporal::Zone(_) => Tag::Zone,
            Temporal::Period(_) => Tag::Period,
            Temporal::LocalTime(_) => Tag::LocalTime,
            Temporal::YearMonth(_) => Tag::YearMonth,
        }
    }

    /// Returns the nanoseconds since 1970 of a date and time with an offset.
    pub(crate) fn epoch_nanoseconds(&self) -> Option<i128> {
        let (local, offset) = match self {
            Temporal::OffsetDateTime(local, offset) => (local, *offset),
            Temporal::ZonedDateTime(local, zone) => (local, zone.seconds()),
            _ => return None,
        };
        let epoch = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
        Some(local.duration_since(epoch).as_nanos() - i128::from(offset) * 1_000_000_000)
    }
}

impl PartialOrd for Temporal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Temporal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Temporal::LocalDate(a), Temporal::LocalDate(b))
            | (Temporal::YearMonth(a), Temporal::YearMonth(b)) => a.cmp(b),
            (Temporal::Instant(a), Temporal::Instant(b)) => a.cmp(b),
            (Temporal::Duration(a), Temporal::Duration(b)) => a.cmp(b),
            (Temporal::Date(a), Temporal::Date(b)) => a.cmp(b),
            (Temporal::Uuid(a), Temporal::Uuid(b)) | (Temporal::Formatter(a), Temporal::Formatter(b)) => {
                a.cmp(b)
            }
            (Temporal::LocalDateTime(a), Temporal::LocalDateTime(b)) => a.cmp(b),
            (Temporal::DayOfWeek(a), Temporal::DayOfWeek(b)) | (Temporal::Month(a), Temporal::Month(b)) => {
                a.cmp(b)
            }
            (Temporal::Unit(a), Temporal::Unit(b)) => a.cmp(b),
            (Temporal::OffsetDateTime(a, _), Temporal::OffsetDateTime(b, _)) => {
                self.epoch_nanoseconds().cmp(&other.epoch_nanoseconds()).then(a.cmp(b))
            }
            (Temporal::ZonedDateTime(a, zone), Temporal::ZonedDateTime(b, other_zone)) => {
                let by_instant = self.epoch_nanoseconds().cmp(&other.epoch_nanoseconds());
                by_instant.then(a.cmp(b)).then(zone.cmp(other_zone))
            }
            (Temporal::Zone(a), Temporal::Zone(b)) => a.cmp(b),
            (Temporal::Period(a), Temporal::Period(b)) => a.cmp(b),
            (Temporal::LocalTime(a), Temporal::LocalTime(b)) => a.cmp(b),
            _ => self.tag().cmp(&other.tag()),
        }
    }
}
