//! Strings, and the names of keywords and symbols.
//!
//! A string is immutable UTF-8. A program sees Java's length and indices: UTF-16 code units. The length is
//! counted once; if it equals the number of bytes, the text is ASCII and indexing is free.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::effort;

/// The number of code units between two marks.
const UNITS_PER_MARK: usize = 256;

/// An immutable string.
#[derive(Clone)]
pub struct Text(Arc<TextData>);

struct TextData {
    text: Box<str>,
    units: usize,
    /// The position of every [`UNITS_PER_MARK`]th code unit, computed when a text that is not ASCII is first
    /// indexed.
    marks: OnceLock<Box<[Mark]>>,
}

/// A position in a text: the first character that begins at or after a certain code unit.
struct Mark {
    byte: usize,
    unit: usize,
}

impl Text {
    /// Creates a string.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        effort::touch_bytes(text.len());
        let units = if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() };
        Self(Arc::new(TextData { text, units, marks: OnceLock::new() }))
    }

    /// Returns the text as UTF-8.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the length in UTF-16 code units, as Java counts it.
    pub fn units(&self) -> usize {
        self.0.units
    }

    /// Returns whether every character is one byte and one code unit.
    pub fn is_ascii(&self) -> bool {
        self.0.units == self.0.text.len()
    }

    /// Returns the last mark before a position: its byte and its code unit.
    fn mark_before(&self, is_before: impl Fn(&Mark) -> bool) -> (usize, usize) {
        let marks = self.0.marks.get_or_init(|| {
            let mut marks = Vec::with_capacity(self.0.units / UNITS_PER_MARK + 1);
            let mut unit = 0;
            for (byte, character) in self.0.text.char_indices() {
                if unit >= marks.len() * UNITS_PER_MARK {
                    marks.push(Mark { byte, unit });
                }
                unit += character.len_utf16();
            }
            marks.into()
        });
        let after = marks.partition_point(is_before);
        after.checked_sub(1).and_then(|at| marks.get(at)).map_or((0, 0), |mark| (mark.byte, mark.unit))
    }

    /// Returns the byte at which the character of a code unit begins, and the first unit of that character.
    /// The end of the text is a valid position.
    pub(crate) fn place_of_unit(&self, unit: usize) -> Option<(usize, usize)> {
        if unit > self.units() {
            return None;
        }
        if self.is_ascii() {
            return Some((unit, unit));
        }
        let (start, mut at) = self.mark_before(|mark| mark.unit <= unit);
        for (byte, character) in self.as_str()[start..].char_indices() {
            if unit < at + character.len_utf16() {
                return Some((start + byte, at));
            }
            at += character.len_utf16();
        }
        Some((self.as_str().len(), at))
    }

    /// Returns the code unit at a byte, which must be the start of a character.
    pub(crate) fn unit_at(&self, byte: usize) -> usize {
        if self.is_ascii() {
            return byte;
        }
        let (start, unit) = self.mark_before(|mark| mark.byte <= byte);
        unit + self.as_str()[start..byte].chars().map(char::len_utf16).sum::<usize>()
    }

    /// Returns the address of the string, equal for two handles to one string.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Compares by UTF-16 code units, as Java does.
    pub fn order(&self, other: &Text) -> Ordering {
        effort::touch_bytes(self.len().min(other.len()));
        if self.is_ascii() || other.is_ascii() {
            // If one side is ASCII, bytes and code units have the same order.
            return self.as_str().cmp(other.as_str());
        }
        self.as_str().encode_utf16().cmp(other.as_str().encode_utf16())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        if self.len() != other.len() {
            return false;
        }
        // Also charged if it is the same text: fuel does not depend on sharing.
        effort::touch_bytes(self.len());
        Arc::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(Arc<Identifier>);

        impl $name {
            /// Creates a name from its written form, `namespace/name` or `name`, without a colon.
            pub fn new(full: impl Into<Box<str>>) -> Self {
                Self(Arc::new(Identifier::new(full.into())))
            }

            /// Returns the whole text, without a colon.
            pub fn full(&self) -> &str {
                &self.0.full
            }

            /// Returns the part before the slash.
            pub fn namespace(&self) -> Option<&str> {
                self.0.slash.map(|at| &self.0.full[..at as usize])
            }

            /// Returns the part after the slash, or the whole name.
            pub fn name(&self) -> &str {
                self.0.slash.map_or(&*self.0.full, |at| &self.0.full[at as usize + 1..])
            }

            /// Returns the address of the name, equal for two handles to one name.
            pub(crate) fn address(&self) -> usize {
                Arc::as_ptr(&self.0).addr()
            }
        }

        impl PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0, &other.0) || {
                    effort::touch_bytes(self.0.full.len().min(other.0.full.len()));
                    self.0.head == other.0.head && self.0.full == other.0.full
                }
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            /// Orders names without a namespace first, then by namespace, then by name, as Clojure does.
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                if Arc::ptr_eq(&self.0, &other.0) {
                    return Ordering::Equal;
                }
                effort::touch_bytes(self.0.full.len().min(other.0.full.len()));
                match (self.0.slash, other.0.slash) {
                    (None, None) if self.0.head != other.0.head => self.0.head.cmp(&other.0.head),
                    (None, None) => self.0.full.cmp(&other.0.full),
                    _ => (self.namespace(), self.name()).cmp(&(other.namespace(), other.name())),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.full())
            }
        }
    )*};
}

struct Identifier {
    full: Box<str>,
    /// The first eight bytes of the text, filled up with zeros, as a number: numbers that differ have the
    /// order of the texts. It decides nearly all comparisons without a look at the text, which is elsewhere.
    head: u64,
    slash: Option<u32>,
}

impl Identifier {
    fn new(full: Box<str>) -> Self {
        effort::touch_bytes(full.len());
        let slash = full.bytes().position(|byte| byte == b'/').filter(|&at| at > 0 && at + 1 < full.len());
        let mut head = [0; size_of::<u64>()];
        head.iter_mut().zip(full.bytes()).for_each(|(place, byte)| *place = byte);
        Self { head: u64::from_be_bytes(head), slash: slash.and_then(|at| u32::try_from(at).ok()), full }
    }
}

identifiers! {
    /// The name of a keyword.
    Keyword
    /// The name of a symbol.
    Symbol
}
