//! The output of the reader: forms, each with its span in the text.
//!
//! A form is syntax, not a value: numbers keep the kind they were written in, maps keep the order of their
//! entries and nothing has been looked up. Short notations are expanded while reading, so the compiler meets
//! only these lists:
//!
//! | text | form |
//! |---|---|
//! | `'x` | `(quote x)` |
//! | `#'x` | `(var x)` |
//! | `@x` | `(clojure.core/deref x)` |
//! | `#(f % %2 %&)` | `(fn* [%1 %2 & %&] (f %1 %2 %&))` |
//!
//! Cloning a form is cheap, because children are shared. Dropping one never recurses, at any depth, so that
//! forms built by expansion need no limit of their own to be safe to drop.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use num_bigint::BigInt;

use crate::error::Span;

/// The name of a symbol or, without its colon, of a keyword. Equal names of one text share their storage.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// Creates a name from its written form, `namespace/name` or `name`.
    pub fn new(full: impl Into<Arc<str>>) -> Self {
        Self(full.into())
    }

    /// Returns the whole text.
    pub fn full(&self) -> &str {
        &self.0
    }

    /// Returns the part before the slash. The name `/` has no namespace.
    pub fn namespace(&self) -> Option<&str> {
        self.slash().map(|at| &self.0[..at])
    }

    /// Returns the part after the slash, or the whole name.
    pub fn name(&self) -> &str {
        self.slash().map_or(&*self.0, |at| &self.0[at + 1..])
    }

    fn slash(&self) -> Option<usize> {
        self.0.bytes().position(|byte| byte == b'/').filter(|&at| at > 0 && at + 1 < self.0.len())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A form with its span.
#[derive(Clone, PartialEq, Debug)]
pub struct Form {
    /// The syntax of the form.
    pub kind: FormKind,
    /// The span in the text. A form made by an expansion has the span of the form that was expanded.
    pub span: Span,
}

impl Form {
    /// Creates a form with a span.
    pub fn new(kind: FormKind, span: Span) -> Self {
        Self { kind, span }
    }

    /// Creates a symbol.
    pub fn symbol(name: &str, span: Span) -> Self {
        Self::new(FormKind::Symbol(Name::new(name)), span)
    }

    /// Creates a list.
    pub fn list(items: impl Into<Forms>, span: Span) -> Self {
        Self::new(FormKind::List(items.into()), span)
    }

    /// Creates a vector.
    pub fn vector(items: impl Into<Forms>, span: Span) -> Self {
        Self::new(FormKind::Vector(items.into()), span)
    }

    /// Returns the whole name if this is a symbol.
    pub fn as_symbol(&self) -> Option<&Name> {
        match &self.kind {
            FormKind::Symbol(name) => Some(name),
            _ => None,
        }
    }

    /// Returns whether this is exactly the symbol `name`.
    pub fn is_symbol(&self, name: &str) -> bool {
        self.as_symbol().is_some_and(|symbol| symbol.full() == name)
    }

    /// Returns the items if this is a list.
    pub fn as_list(&self) -> Option<&[Form]> {
        match &self.kind {
            FormKind::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the items if this is a vector.
    pub fn as_vector(&self) -> Option<&[Form]> {
        match &self.kind {
            FormKind::Vector(items) => Some(items),
            _ => None,
        }
    }
}

/// The kinds of form.
#[derive(Clone, PartialEq, Debug)]
pub enum FormKind {
    /// `nil`
    Nil,
    /// `true`, `false`
    Boolean(bool),
    /// `12`, `0x1f`, `017`, `2r101`: any integer that fits 64 bits and has no suffix.
    Integer(i64),
    /// An integer beyond 64 bits, or any with the suffix `N`.
    BigInteger(Arc<BigInt>),
    /// `1/3`: in lowest terms, the denominator at least 2. `4/2` is read as the integer it is.
    Ratio(Arc<(BigInt, BigInt)>),
    /// `1.5`, `1e9`, `##Inf`, `##-Inf`, `##NaN`
    Double(f64),
    /// `\a`, `\newline`, `\u03bb`, `\o101`
    Character(char),
    /// `"text"`, its escapes resolved.
    String(Arc<str>),
    /// `#"pattern"`, as it was written.
    Regex(Arc<str>),
    /// `:name`, `:namespace/name`, without the colon.
    Keyword(Name),
    /// `name`, `namespace/name`
    Symbol(Name),
    /// `(a b)`
    List(Forms),
    /// `[a b]`
    Vector(Forms),
    /// `{k v}`: alternating keys and values, always an even number. Duplicate keys are refused.
    Map(Forms),
    /// `#{a b}`. Duplicate items are refused.
    Set(Forms),
    /// `#inst "..."`: a known tag and its form, which is always a string.
    Tagged(Tag, Arc<str>),
}

impl FormKind {
    /// Returns the nested forms if this is a collection.
    pub fn children(&self) -> Option<&Forms> {
        match self {
            FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => {
                Some(items)
            }
            _ => None,
        }
    }

    fn children_mut(&mut self) -> Option<&mut Forms> {
        match self {
            FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => {
                Some(items)
            }
            _ => None,
        }
    }
}

/// The tags of tagged literals, in the order of their values. The text is validated when it is converted to a
/// value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Tag {
    /// `#time/date "2026-01-02"`: a `LocalDate`.
    LocalDate,
    /// `#time/instant "2026-01-02T03:04:05Z"`: an `Instant`.
    Instant,
    /// `#time/duration "PT1H"`: a `Duration`.
    Duration,
    /// `#inst "2026-01-02T03:04:05.000Z"`: a `java.util.Date`.
    Inst,
    /// `#uuid "..."`
    Uuid,
    /// `#time/date-time "2026-01-02T03:04"`: a `LocalDateTime`.
    LocalDateTime,
    /// `#time/day-of-week "FRIDAY"`: a `DayOfWeek`.
    DayOfWeek,
    /// `#time/month "JANUARY"`: a `Month`.
    Month,
    /// `#time/unit "DAYS"`: a `ChronoUnit`.
    Unit,
    /// `#time/formatter "dd.MM.yyyy"`: a `DateTimeFormatter`.
    Formatter,
    /// `#time/offset-date-time "2026-01-02T03:04+01:00"`: an `OffsetDateTime`.
    OffsetDateTime,
    /// `#time/zoned-date-time "2026-01-02T03:04Z[UTC]"`: a `ZonedDateTime`.
    ZonedDateTime,
    /// `#time/zone "+01:00"`: a `ZoneOffset` or a `ZoneId`.
    Zone,
    /// `#time/period "P1M"`: a `Period`.
    Period,
    /// `#time/time "10:15"`: a `LocalTime`.
    LocalTime,
    /// `#time/year-month "2026-01"`: a `YearMonth`.
    YearMonth,
}

impl Tag {
    /// All tags as they are written, without the hash.
    pub(crate) const NAMES: [(Tag, &'static str); 16] = [
        (Tag::Inst, "inst"),
        (Tag::Uuid, "uuid"),
        (Tag::LocalDate, "time/date"),
        (Tag::Instant, "time/instant"),
        (Tag::Duration, "time/duration"),
        (Tag::LocalDateTime, "time/date-time"),
        (Tag::DayOfWeek, "time/day-of-week"),
        (Tag::Month, "time/month"),
        (Tag::Unit, "time/unit"),
        (Tag::Formatter, "time/formatter"),
        (Tag::OffsetDateTime, "time/offset-date-time"),
        (Tag::ZonedDateTime, "time/zoned-date-time"),
        (Tag::Zone, "time/zone"),
        (Tag::Period, "time/period"),
        (Tag::LocalTime, "time/time"),
        (Tag::YearMonth, "time/year-month"),
    ];

    /// Returns the tag as it is written, without the hash.
    pub fn name(self) -> &'static str {
        Tag::NAMES.iter().find(|(tag, _)| *tag == self).map_or("", |(_, name)| *name)
    }

    /// Returns the tag with this name.
    pub fn from_name(name: &str) -> Option<Tag> {
        Tag::NAMES.iter().find(|(_, known)| *known == name).map(|(tag, _)| *tag)
    }
}

/// The forms inside a collection: shared when cloned, dropped without recursion.
#[derive(Clone, PartialEq, Debug)]
pub struct Forms(Option<Arc<[Form]>>);

impl Deref for Forms {
    type Target = [Form];

    fn deref(&self) -> &[Form] {
        self.0.as_deref().unwrap_or(&[])
    }
}

impl From<Vec<Form>> for Forms {
    fn from(mut items: Vec<Form>) -> Self {
        Forms::split_off(&mut items, 0)
    }
}

impl<const N: usize> From<[Form; N]> for Forms {
    fn from(items: [Form; N]) -> Self {
        items.into_iter().collect()
    }
}

impl FromIterator<Form> for Forms {
    fn from_iter<I: IntoIterator<Item = Form>>(items: I) -> Self {
        items.into_iter().collect::<Vec<Form>>().into()
    }
}

impl Forms {
    /// Moves the items from `start` on out of `items`, with one allocation of the right size.
    pub(super) fn split_off(items: &mut Vec<Form>, start: usize) -> Self {
        // The empty collection allocates nothing.
        if items.len() <= start { Forms(None) } else { Forms(Some(items.drain(start..).collect())) }
    }

    /// Returns whether dropping these forms would drop others that contain forms.
    fn is_nested(&self) -> bool {
        self.iter().any(|form| form.kind.children().is_some_and(|children| children.0.is_some()))
    }
}

impl Drop for Forms {
    fn drop(&mut self) {
        if !self.is_nested() {
            return;
        }
        // This vector replaces the call stack of a recursive drop.
        let mut pending = vec![self.0.take()];
        while let Some(taken) = pending.pop() {
            let Some(mut shared) = taken else { continue };
            // Only the last owner drops the items; for any other this only decrements the count.
            let Some(items) = Arc::get_mut(&mut shared) else { continue };
            for item in items {
                if let Some(children) = item.kind.children_mut()
                    && children.is_nested()
                {
                    pending.push(children.0.take());
                }
            }
        }
    }
}
