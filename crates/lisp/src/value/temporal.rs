//! The dates, instants and durations of the language.

use std::cmp::Ordering;

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
    /// A UUID; it is no time, but it too is a tagged scalar.
    Uuid(Box<str>),
}

impl Temporal {
    /// Returns the name of the type in messages and types.
    pub fn type_name(&self) -> &'static str {
        match self {
            Temporal::LocalDate(_) | Temporal::Date(_) => "date",
            Temporal::Instant(_) => "instant",
            Temporal::Duration(_) => "duration",
            Temporal::Uuid(_) => "uuid",
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Temporal::LocalDate(_) => 0,
            Temporal::Instant(_) => 1,
            Temporal::Duration(_) => 2,
            Temporal::Date(_) => 3,
            Temporal::Uuid(_) => 4,
        }
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
            (Temporal::LocalDate(a), Temporal::LocalDate(b)) => a.cmp(b),
            (Temporal::Instant(a), Temporal::Instant(b)) => a.cmp(b),
            (Temporal::Duration(a), Temporal::Duration(b)) => a.cmp(b),
            (Temporal::Date(a), Temporal::Date(b)) => a.cmp(b),
            (Temporal::Uuid(a), Temporal::Uuid(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}
