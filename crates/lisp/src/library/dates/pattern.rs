//! The patterns of `DateTimeFormatter`, for the letters that dates and times have. Names are English.

use jiff::civil::{Date, DateTime, Time};

use super::{civil_date, civil_time};
use crate::error::{Error, ErrorKind, Result};

/// The longest pattern in bytes.
const LONGEST: usize = 200;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(crate) const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A parsed pattern.
pub(super) struct DatePattern(Vec<Part>);

enum Part {
    Literal(String),
    /// A letter, and how often it is repeated.
    Field(char, usize),
}

/// The parts of a date and a time, as far as they are known.
#[derive(Default)]
pub(super) struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    day_of_week: Option<i64>,
    hour: Option<i64>,
    /// From 1 to 12.
    half_day_hour: Option<i64>,
    is_afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    nanosecond: Option<i64>,
    /// The offset from UTC in seconds.
    offset: Option<i32>,
}

impl DatePattern {
    pub(super) fn parse(pattern: &str) -> Result<Self> {
        let invalid = |reason: String| {
            Error::argument(format!("DateTimeFormatter/ofPattern: {reason}"))
                .hint("the letters are y M d D E H h m s S a X x Z; other text stands between single quotes")
        };
        if pattern.len() > LONGEST {
            return Err(invalid(format!("a pattern has at most {LONGEST} bytes")));
        }
        let mut parts: Vec<Part> = Vec::new();
        let literal = |parts: &mut Vec<Part>, character: char| match parts.last_mut() {
            Some(Part::Literal(text)) => text.push(character),
            _ => parts.push(Part::Literal(character.to_string())),
        };
        let mut rest = pattern.chars().peekable();
        while let Some(character) = rest.next() {
            match character {
                '\'' if rest.peek() == Some(&'\'') => {
                    rest.next();
                    literal(&mut parts, '\'');
                }
                '\'' => loop {
                    match rest.next() {
                        Some('\'') if rest.peek() == Some(&'\'') => {
                            rest.next();
                            literal(&mut parts, '\'');
                        }
                        Some('\'') => break,
                        Some(inside) => literal(&mut parts, inside),
                        None => return Err(invalid("a quote is not closed".to_owned())),
                    }
                },
                letter if letter.is_ascii_alphabetic() => {
                    if !"yuMLdDEHhmsSaXxZ".contains(letter) {
                        return Err(invalid(format!("`{letter}` is not a known letter")));
                    }
                    let mut count = 1;
                    while rest.peek() == Some(&letter) {
                        rest.next();
                        count += 1;
                    }
                    let most = match letter {
                        'y' | 'u' => 4,
                        'M' | 'L' | 'E' => 4,
                        'S' => 9,
                        'D' | 'X' | 'x' | 'Z' => 3,
                        'a' => 1,
                        _ => 2,
                    };
                    if count > most {
                        return Err(invalid(format!("`{letter}` is repeated more than {most} times")));
                    }
                    parts.push(Part::Field(letter, count));
                }
                '[' | ']' | '{' | '}' | '#' => {
                    return Err(invalid(format!("`{character}` is not supported")));
                }
                other => literal(&mut parts, other),
            }
        }
        Ok(Self(parts))
    }

    pub(super) fn format(&self, fields: &Fields) -> Result<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Field(letter, count) => {
                    let formatted = fields.formatted(*letter, *count).ok_or_else(|| {
                        Error::new(ErrorKind::Type, format!(".format: the value has no `{letter}`"))
                            .hint("a time of day needs a LocalDateTime: `(.atStartOfDay date)`, and an offset an OffsetDateTime")
                    })?;
                    text.push_str(&formatted);
                }
            }
        }
        Ok(text)
    }

    /// Reads a text; `None` if it does not have this form.
    pub(super) fn read(&self, text: &str) -> Option<Fields> {
        let mut fields = Fields::default();
        let mut rest = text;
        for (at, part) in self.0.iter().enumerate() {
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Field(letter, count) => {
                    // A number of any length ends where its digits do, unless another one follows.
                    let is_followed = matches!(self.0.get(at + 1), Some(Part::Field(next, count)) if !(matches!(next, 'E' | 'a' | 'X' | 'x' | 'Z') || matches!(next, 'M' | 'L') && *count > 2));
                    rest = fields.read(*letter, *count, is_followed, rest)?;
                }
            }
        }
        rest.is_empty().then_some(fields)
    }
}

impl Fields {
    pub(super) fn of_date(date: Date) -> Self {
        Self {
            year: Some(date.year().into()),
            month: Some(date.month().into()),
            day: Some(date.day().into()),
            day_of_year: Some(date.day_of_year().into()),
            day_of_week: Some(date.weekday().to_monday_one_offset().into()),
            ..Self::default()
        }
    }

    pub(super) fn of_month(first: Date) -> Self {
        Self { year: Some(first.year().into()), month: Some(first.month().into()), ..Self::default() }
    }

    pub(super) fn of_date_time(found: DateTime) -> Self {
        let hour = i64::from(found.hour());
        Self {
            hour: Some(hour),
            half_day_hour: Some((hour + 11) % 12 + 1),
            is_afternoon: Some(hour >= 12),
            minute: Some(found.minute().into()),
            second: Some(found.second().into()),
            nanosecond: Some(found.subsec_nanosecond().into()),
            ..Self::of_date(found.date())
        }
    }

    pub(super) fn of_time(time: Time) -> Self {
        let date = jiff::civil::date(1970, 1, 1);
        let all = Self::of_date_time(date.to_datetime(time));
        Self { year: None, month: None, day: None, day_of_year: None, day_of_week: None, ..all }
    }

    pub(super) fn with_offset(self, seconds: i32) -> Self {
        Self { offset: Some(seconds), ..self }
    }

    /// The date and the time with their offset, if all are known.
    pub(super) fn stamp(&self) -> Option<(DateTime, i32)> {
        self.date_time().zip(self.offset)
    }

    fn formatted(&self, letter: char, count: usize) -> Option<String> {
        let padded = |number: i64| format!("{number:0count$}");
        let name = |names: &[&str], number: i64| {
            let name = names.get(usize::try_from(number - 1).ok()?)?;
            Some(if count > 3 { (*name).to_owned() } else { name.chars().take(3).collect() })
        };
        Some(match letter {
            'y' | 'u' if count == 2 => format!("{:02}", self.year?.rem_euclid(100)),
            'y' | 'u' => padded(self.year?),
            'M' | 'L' if count > 2 => return name(&MONTHS, self.month?),
            'M' | 'L' => padded(self.month?),
            'E' => return name(&DAYS, self.day_of_week?),
            'd' => padded(self.day?),
            'D' => padded(self.day_of_year?),
            'H' => padded(self.hour?),
            'h' => padded(self.half_day_hour?),
            'm' => padded(self.minute?),
            's' => padded(self.second?),
            'S' => format!("{:09}", self.nanosecond?).chars().take(count).collect(),
            'a' => if self.is_afternoon? { "PM" } else { "AM" }.to_owned(),
            'X' if self.offset? == 0 => "Z".to_owned(),
            'X' | 'x' | 'Z' => {
                let offset = self.offset?;
                let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
                let (hours, minutes) = (minutes / 60, minutes % 60);
                match (letter, count) {
                    ('X' | 'x', 1) if minutes == 0 => format!("{sign}{hours:02}"),
                    ('X' | 'x', 3) => format!("{sign}{hours:02}:{minutes:02}"),
                    _ => format!("{sign}{hours:02}{minutes:02}"),
                }
            }
            _ => return None,
        })
    }

    /// Reads one field, and returns the text after it.
    fn read<'t>(&mut self, letter: char, count: usize, is_followed: bool, text: &'t str) -> Option<&'t str> {
        if letter == 'a' {
            let (half, rest) = text.split_at_checked(2)?;
            self.is_afternoon = Some(match half {
                "AM" => false,
                "PM" => true,
                _ => return None,
            });
            return Some(rest);
        }
        if matches!(letter, 'X' | 'x' | 'Z') {
            if letter == 'X'
                && let Some(rest) = text.strip_prefix('Z')
            {
                self.offset = Some(0);
                return Some(rest);
            }
            let length = match (letter, count) {
                ('X' | 'x', 1) if !text.as_bytes().get(3).is_some_and(u8::is_ascii_digit) => 3,
                ('X' | 'x', 3) => 6,
                _ => 5,
            };
            let (written, rest) = text.split_at_checked(length)?;
            self.offset = Some(super::text::offset_of(written)?);
            return Some(rest);
        }
        if letter == 'E' || matches!(letter, 'M' | 'L') && count > 2 {
            let names: &[&str] = if letter == 'E' { &DAYS } else { &MONTHS };
            let shown = |name: &&str| if count > 3 { name.len() } else { 3 };
            let at = names.iter().position(|name| text.starts_with(&name[..shown(name)]))?;
            let number = Some(at as i64 + 1);
            *(if letter == 'E' { &mut self.day_of_week } else { &mut self.month }) = number;
            return Some(&text[shown(&names[at])..]);
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let length = match (count, is_followed) {
            (1, false) => digits.min(9),
            _ => count,
        };
        if length == 0 || digits < length {
            return None;
        }
        let (number, rest) = text.split_at(length);
        let number: i64 = number.parse().ok()?;
        match letter {
            'y' | 'u' if count == 2 => self.year = Some(2000 + number),
            'y' | 'u' => self.year = Some(number),
            'M' | 'L' => self.month = Some(number),
            'd' => self.day = Some(number),
            'D' => self.day_of_year = Some(number),
            'H' => self.hour = Some(number),
            'h' => self.half_day_hour = Some(number),
            'm' => self.minute = Some(number),
            's' => self.second = Some(number),
            'S' => self.nanosecond = Some(number * 10_i64.pow(9 - u32::try_from(length).ok()?)),
            _ => return None,
        }
        Some(rest)
    }

    /// The date, if year, month and day are known and fit.
    pub(super) fn date(&self) -> Option<Date> {
        let year = self.year?;
        let date = match self.day_of_year {
            Some(day) if self.month.is_none() => {
                let first = civil_date(year, 1, 1)?;
                let date = first.checked_add(jiff::Span::new().try_days(day - 1).ok()?).ok()?;
                (date.year() == first.year() && day > 0).then_some(date)?
            }
            _ => civil_date(year, self.month?, self.day?)?,
        };
        let weekday = i64::from(date.weekday().to_monday_one_offset());
        self.day_of_week.is_none_or(|day| day == weekday).then_some(date)
    }

    /// The first day of the month, if year and month are known and the rest fits.
    pub(super) fn month(&self) -> Option<Date> {
        if self.day.is_some() || self.day_of_year.is_some() {
            return Some(self.date()?.first_of_month());
        }
        civil_date(self.year?, self.month?, 1)
    }

    /// The date and the time, if both are known.
    pub(super) fn date_time(&self) -> Option<DateTime> {
        Some(DateTime::from_parts(self.date()?, self.time()?))
    }

    /// The time of day, if it is known.
    pub(super) fn time(&self) -> Option<Time> {
        let hour = match (self.hour, self.half_day_hour, self.is_afternoon) {
            (Some(hour), ..) => hour,
            (None, Some(hour @ 1..=12), Some(is_afternoon)) => hour % 12 + if is_afternoon { 12 } else { 0 },
            _ => return None,
        };
        let part = |part: Option<i64>| part.unwrap_or(0);
        civil_time([hour, part(self.minute), part(self.second), part(self.nanosecond)])
    }
}
