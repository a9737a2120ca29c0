//! The encodings of basic values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Pack, Packer, UnpackError, Unpacker, packed_as_json, packed_structs, packed_words};
use crate::budget::{Amounts, Limits, Reservation};
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::{CallId, EvaluationId, ReservationId, SessionId};
use crate::json::from_bytes;
use crate::message::{Large, PolicyName};
use crate::object::{ObjectId, ObjectRef};
use crate::payload::{
    CallChanges, CallVerdict, Effect, EvaluationOutcome, Finish, IdempotencyKey, OmittedFile,
    WorkspaceRevision, WorkspaceRoot,
};
use crate::time::Timestamp;

impl Pack for u64 {
    fn pack(&self, to: &mut Packer) {
        to.number(*self);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        from.number()
    }
}

/// Implements [`Pack`] for smaller numbers.
macro_rules! packed_numbers {
    ($($name:ty),*) => {$(
        impl Pack for $name {
            fn pack(&self, to: &mut Packer) {
                to.number(*self as u64);
            }

            fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
                let found = from.number()?;
                Self::try_from(found).map_err(|_| UnpackError::Number { found, expected: stringify!($name) })
            }
        }
    )*};
}
packed_numbers!(u32, usize);

impl Pack for bool {
    fn pack(&self, to: &mut Packer) {
        to.number(u64::from(*self));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        match from.number()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(UnpackError::Number { found, expected: "truth value" }),
        }
    }
}

impl Pack for String {
    fn pack(&self, to: &mut Packer) {
        to.bytes(self.as_bytes());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        from.text().map(Self::from)
    }
}

impl Pack for Arc<str> {
    fn pack(&self, to: &mut Packer) {
        to.bytes(self.as_bytes());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        from.text().map(Self::from)
    }
}

impl<T: Pack> Pack for Arc<T> {
    fn pack(&self, to: &mut Packer) {
        (**self).pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        T::unpack(from).map(Self::new)
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, to: &mut Packer) {
        self.is_some().pack(to);
        if let Some(value) = self {
            value.pack(to);
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        bool::unpack(from)?.then(|| T::unpack(from)).transpose()
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, to: &mut Packer) {
        self.0.pack(to);
        self.1.pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        Ok((A::unpack(from)?, B::unpack(from)?))
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, to: &mut Packer) {
        to.list(self.iter());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        from.list()
    }
}

impl<T: Pack + Clone> Pack for imbl::Vector<T> {
    fn pack(&self, to: &mut Packer) {
        to.list(self.iter());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        from.list()
    }
}

impl<K: Pack + Ord, V: Pack> Pack for BTreeMap<K, V> {
    fn pack(&self, to: &mut Packer) {
        to.number(self.len() as u64);
        for (key, value) in self {
            key.pack(to);
            value.pack(to);
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        from.list::<(K, V), _>()
    }
}

impl<K: Pack + Ord + Clone, V: Pack + Clone> Pack for imbl::OrdMap<K, V> {
    fn pack(&self, to: &mut Packer) {
        to.number(self.len() as u64);
        for (key, value) in self {
            key.pack(to);
            value.pack(to);
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        from.list::<(K, V), _>()
    }
}

impl Pack for Duration {
    fn pack(&self, to: &mut Packer) {
        to.number(self.as_secs());
        to.number(self.subsec_nanos().into());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        let (seconds, found) = (from.number()?, from.number()?);
        match u32::try_from(found) {
            Ok(nanos) if nanos < 1_000_000_000 => Ok(Self::new(seconds, nanos)),
            _ => Err(UnpackError::Number { found, expected: "part of a second" }),
        }
    }
}

impl Pack for Timestamp {
    fn pack(&self, to: &mut Packer) {
        // The sign is the lowest bit, so that small numbers of either sign are short.
        let micros = self.unix_micros();
        to.number(((micros << 1) ^ (micros >> 63)).cast_unsigned());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        let found = from.number()?;
        let micros = (found >> 1).cast_signed() ^ -(found & 1).cast_signed();
        Self::from_unix_micros(micros).map_err(|_| UnpackError::Number { found, expected: "time" })
    }
}

/// Implements [`Pack`] for values of a fixed number of bytes.
macro_rules! packed_bytes {
    ($($name:ty),*) => {$(
        impl Pack for $name {
            fn pack(&self, to: &mut Packer) {
                to.raw(self.as_bytes());
            }

            fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
                from.array().map(Self::from_bytes)
            }
        }
    )*};
}
packed_bytes!(Digest, ObjectId, Uuid);

/// Implements [`Pack`] for ids.
macro_rules! packed_ids {
    ($($name:ty),*) => {$(
        impl Pack for $name {
            fn pack(&self, to: &mut Packer) {
                self.as_uuid().pack(to);
            }

            fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
                Uuid::unpack(from).map(Self::from_uuid)
            }
        }
    )*};
}
packed_ids!(SessionId, EvaluationId, CallId, ReservationId);

/// Deserializes a value from its text.
fn of_text<'de, T: Deserialize<'de>>(text: &'de str, expected: &'static str) -> Result<T, UnpackError> {
    let text = IntoDeserializer::<serde::de::value::Error>::into_deserializer(text);
    T::deserialize(text).map_err(|_| UnpackError::Text { expected })
}

impl Pack for PolicyName {
    fn pack(&self, to: &mut Packer) {
        to.bytes(self.as_str().as_bytes());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        of_text(from.text()?, "policy name")
    }
}

impl Pack for IdempotencyKey {
    fn pack(&self, to: &mut Packer) {
        to.bytes(self.as_str().as_bytes());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        of_text(from.text()?, "idempotency key")
    }
}

impl Pack for Extra {
    fn pack(&self, to: &mut Packer) {
        // Most structures have no unknown fields.
        match self.is_empty() {
            true => to.bytes(&[]),
            false => to.json(self),
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        let text = from.bytes()?;
        if text.is_empty() { Ok(Self::default()) } else { Ok(from_bytes(text)?) }
    }
}

impl<T: Pack> Pack for Large<T> {
    fn pack(&self, to: &mut Packer) {
        match self {
            Self::Inline(content) => {
                to.number(0);
                content.pack(to);
            }
            Self::Object(reference) => {
                to.number(1);
                reference.pack(to);
            }
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        match from.number()? {
            0 => T::unpack(from).map(Self::Inline),
            1 => ObjectRef::unpack(from).map(Self::Object),
            found => Err(UnpackError::Number { found, expected: "place of content" }),
        }
    }
}

impl Pack for Finish {
    fn pack(&self, to: &mut Packer) {
        to.number(match self {
            Self::Stop => 0,
            Self::Calls => 1,
            Self::Length => 2,
            Self::Filter => 3,
            Self::Pause => 4,
            Self::Other(_) => 5,
            Self::Interrupted => 6,
        });
        if let Self::Other(word) = self {
            word.pack(to);
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        Ok(match from.number()? {
            0 => Self::Stop,
            1 => Self::Calls,
            2 => Self::Length,
            3 => Self::Filter,
            4 => Self::Pause,
            5 => Self::Other(String::unpack(from)?),
            6 => Self::Interrupted,
            found => return Err(UnpackError::Number { found, expected: "reason why an answer ended" }),
        })
    }
}

packed_words! {
    Effect { Pure = 0, Workspace = 1, Idempotent = 2, External = 3 }
    CallVerdict { Succeeded = 0, Failed = 1 }
    EvaluationOutcome { Completed = 0, Failed = 1, Cancelled = 2, Superseded = 3 }
}

packed_structs! {
    ObjectRef { object, length }
    WorkspaceRoot { tree, manifest }
    WorkspaceRevision { root, coverage }
    OmittedFile { path, bytes }
    Amounts {
        input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, money_micros,
        turns, calls, millis,
    }
    Limits { input_tokens, output_tokens, total_tokens, money_micros, turns, calls, millis }
    Reservation { id, amounts }
}

packed_as_json!(Value, Map<String, Value>, CallChanges);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn comes_back<T: Pack + PartialEq + std::fmt::Debug>(value: T) {
        let mut packer = Packer::default();
        value.pack(&mut packer);
        let bytes = packer.finish().unwrap();
        let mut unpacker = Unpacker::new(&bytes);
        assert_eq!(T::unpack(&mut unpacker).unwrap(), value);
        assert!(unpacker.rest().is_empty());
        for end in 0..bytes.len() {
            assert!(T::unpack(&mut Unpacker::new(&bytes[..end])).is_err(), "{value:?} of {end} bytes");
        }
    }

    #[test]
    fn values_come_back_and_no_beginning_of_one_is_another() {
        for micros in [0, 1, -1, 1_767_225_600_000_000, -62_135_596_800_000_000] {
            comes_back(Timestamp::from_unix_micros(micros).unwrap());
        }
        comes_back(Duration::new(7, 999_999_999));
        comes_back(vec![Some("hem".to_owned()), None, Some(String::new())]);
        comes_back(PolicyName::runtime());
        comes_back(Finish::Other("eos".into()));
        comes_back(Finish::Interrupted);
        comes_back(Extra::try_from(serde_json::Map::from_iter([("new".into(), 1.5.into())])).unwrap());
        comes_back(Extra::default());
        comes_back(Large::Inline(serde_json::json!({ "b": [1, 2.5, null], "a": u64::MAX })));
        let object = ObjectRef { object: ObjectId::from_bytes([7; 20]), length: 70_000 };
        comes_back(Large::<Value>::Object(object));
        comes_back(Limits { calls: Some(3), ..Limits::default() });
        comes_back(BTreeMap::from([("a".to_owned(), 1_u32), ("b".to_owned(), u32::MAX)]));
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        assert!(bool::unpack(&mut Unpacker::new(&[2])).is_err());
        assert!(Effect::unpack(&mut Unpacker::new(&[4])).is_err());
        assert!(Finish::unpack(&mut Unpacker::new(&[7])).is_err());
        assert!(PolicyName::unpack(&mut Unpacker::new(&[0])).is_err());
        let mut packer = Packer::default();
        packer.number(1 << 32);
        assert!(u32::unpack(&mut Unpacker::new(&packer.finish().unwrap())).is_err());
    }
}
