//! A binary encoding of values, for snapshots of views.
//!
//! It is compact and fast, and does not describe itself: the reader has to know the types. It is for caches
//! that carry a version and can be thrown away, never for records. Numbers have a variable length, texts and
//! lists start with their length, and free-form values are JSON. Decoding checks every length before it
//! allocates, and never panics.
//!
//! Structures are encoded by a list of their fields ([`packed_structs`]). A field that is missing in the list
//! is a compile error. The derived implementations of serde cannot be used: records leave out empty fields and
//! flatten unknown ones, so only a format that names its fields can read what they write, and decoding names is
//! what this encoding saves.

mod values;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::json::from_bytes;

/// An error for bytes that do not encode a value of the expected type.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    /// The bytes end in the middle of a value.
    #[error("it ends in the middle of a value")]
    Short,
    /// A number is out of range.
    #[error("{found} is not a {expected}")]
    Number {
        /// The number.
        found: u64,
        /// The expected value.
        expected: &'static str,
    },
    /// A text is not UTF-8, or not of the expected form.
    #[error("a text is not a {expected}")]
    Text {
        /// The expected value.
        expected: &'static str,
    },
    /// A value is not JSON, or not of the expected type.
    #[error("a value does not parse")]
    Json(#[from] serde_json::Error),
}

/// A value with a binary encoding.
pub(crate) trait Pack: Sized {
    /// Encodes the value.
    fn pack(&self, to: &mut Packer);

    /// Decodes a value.
    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError>;
}

/// An encoder.
#[derive(Default)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
    /// The first error.
    failure: Option<serde_json::Error>,
}

impl Packer {
    /// Returns the bytes, or the first error.
    pub(crate) fn finish(self) -> Result<Vec<u8>, serde_json::Error> {
        match self.failure {
            None => Ok(self.bytes),
            Some(failure) => Err(failure),
        }
    }

    /// Adds bytes without their length.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a number in 1 to 10 bytes, the lowest 7 bits first.
    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }

    /// Adds bytes after their length.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Adds a value as JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_vec(value) {
            Ok(text) => self.bytes(&text),
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }

    /// Adds values after their number.
    pub(crate) fn list<'a, T: Pack + 'a>(&mut self, items: impl ExactSizeIterator<Item = &'a T>) {
        self.number(items.len() as u64);
        items.for_each(|item| item.pack(self));
    }
}

/// A decoder.
pub(crate) struct Unpacker<'a> {
    rest: &'a [u8],
}

impl<'a> Unpacker<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the bytes that were not decoded yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the next `length` bytes.
    pub(crate) fn raw(&mut self, length: usize) -> Result<&'a [u8], UnpackError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(UnpackError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Returns the next bytes as an array.
    pub(crate) fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], UnpackError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(UnpackError::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Decodes a number.
    pub(crate) fn number(&mut self) -> Result<u64, UnpackError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let part = u64::from(byte & 0x7f);
            let shifted = part << shift;
            if shifted >> shift != part {
                break;
            }
            number |= shifted;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(UnpackError::Number { found: u64::MAX, expected: "64-bit number" })
    }

    /// Decodes the length of a list whose elements take at least one byte each.
    pub(crate) fn length(&mut self) -> Result<usize, UnpackError> {
        let found = self.number()?;
        match usize::try_from(found) {
            Ok(length) if length <= self.rest.len() => Ok(length),
            _ => Err(UnpackError::Short),
        }
    }

    /// Decodes bytes that follow their length.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], UnpackError> {
        let length = self.length()?;
        self.raw(length)
    }

    /// Decodes a text.
    pub(crate) fn text(&mut self) -> Result<&'a str, UnpackError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| UnpackError::Text { expected: "UTF-8 text" })
    }

    /// Decodes JSON.
    pub(crate) fn json<T: DeserializeOwned>(&mut self) -> Result<T, UnpackError> {
        Ok(from_bytes(self.bytes()?)?)
    }

    /// Decodes values that follow their number.
    pub(crate) fn list<T: Pack, L: FromIterator<T>>(&mut self) -> Result<L, UnpackError> {
        let length = self.length()?;
        (0..length).map(|_| T::unpack(self)).collect()
    }
}

/// Implements [`Pack`] for structures by their fields, all of which have to be listed.
macro_rules! packed_structs {
    ($($name:ty { $($field:ident),* $(,)? })*) => {$(
        impl $crate::pack::Pack for $name {
            fn pack(&self, to: &mut $crate::pack::Packer) {
                let Self { $($field),* } = self;
                $($crate::pack::Pack::pack($field, to);)*
            }

            fn unpack(from: &mut $crate::pack::Unpacker<'_>) -> Result<Self, $crate::pack::UnpackError> {
                $(let $field = $crate::pack::Pack::unpack(from)?;)*
                Ok(Self { $($field),* })
            }
        }
    )*};
}
pub(crate) use packed_structs;

/// Implements [`Pack`] for enums without fields by numbers.
macro_rules! packed_words {
    ($($name:ident { $($variant:ident = $number:literal),* $(,)? })*) => {$(
        impl $crate::pack::Pack for $name {
            fn pack(&self, to: &mut $crate::pack::Packer) {
                to.number(match self { $(Self::$variant => $number),* });
            }

            fn unpack(from: &mut $crate::pack::Unpacker<'_>) -> Result<Self, $crate::pack::UnpackError> {
                match from.number()? {
                    $($number => Ok(Self::$variant),)*
                    found => Err($crate::pack::UnpackError::Number { found, expected: stringify!($name) }),
                }
            }
        }
    )*};
}
pub(crate) use packed_words;

/// Implements [`Pack`] by JSON, for rare and for free-form values.
macro_rules! packed_as_json {
    ($($name:ty),* $(,)?) => {$(
        impl $crate::pack::Pack for $name {
            fn pack(&self, to: &mut $crate::pack::Packer) {
                to.json(self);
            }

            fn unpack(from: &mut $crate::pack::Unpacker<'_>) -> Result<Self, $crate::pack::UnpackError> {
                from.json()
            }
        }
    )*};
}
pub(crate) use packed_as_json;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        let mut packer = Packer::default();
        numbers.iter().for_each(|number| packer.number(*number));
        let bytes = packer.finish().unwrap();
        let mut unpacker = Unpacker::new(&bytes);
        numbers.iter().for_each(|number| assert_eq!(unpacker.number().unwrap(), *number));
        assert!(unpacker.rest().is_empty());
    }

    #[test]
    fn what_is_too_short_or_too_large_is_refused() {
        for bytes in [
            &[][..],
            &[0x80],
            &[0xff; 10],
            &[0xff; 20],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert!(Unpacker::new(bytes).number().is_err(), "{bytes:?}");
        }
        // A length that no memory could hold.
        let mut packer = Packer::default();
        packer.number(u64::MAX / 2);
        let bytes = packer.finish().unwrap();
        assert!(matches!(Unpacker::new(&bytes).bytes(), Err(UnpackError::Short)));
        assert!(matches!(Vec::<u64>::unpack(&mut Unpacker::new(&bytes)), Err(UnpackError::Short)));
        assert!(matches!(Unpacker::new(&[2, 0xc3, 0x28]).text(), Err(UnpackError::Text { .. })));
        assert!(matches!(Unpacker::new(&[1, b'{']).json::<serde_json::Value>(), Err(UnpackError::Json(_))));
    }
}
