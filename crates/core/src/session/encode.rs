//! Lossless encoding of items as JSON.
//!
//! `serde_json` writes values that JSON cannot express as something else: a number that is not finite becomes
//! `null`, a number as a key becomes a string, and of two fields of one name the last one wins. Such an item
//! would be committed, and be a different one, or unreadable, when the session is opened again. [`to_json`]
//! is a `serde_json::to_value` that refuses it instead.
//!
//! One case cannot be detected from the written form alone: `Some` of a value that is written as `null` is
//! read as `None`, unless the type has its own deserializer. The encoding reports whether there is any, and
//! [`keeps_nulls`] compares the item with its decoded form.

use std::cell::Cell;
use std::fmt::Display;

use serde::Serialize;
use serde::ser::{self, Error as _, Serializer};
use serde_json::value::Serializer as Plain;
use serde_json::{Error, Map, Value};

/// The key under which `Some(null)` is written for comparisons.
const MARK: &str = "$some";

/// Encodes an item as JSON, and returns whether it holds a `Some` that is written as `null`.
pub(crate) fn to_json<T: Serialize + ?Sized>(item: &T) -> Result<(Value, bool), Error> {
    let some_null = Cell::new(false);
    let value = item.serialize(LosslessSerializer { marks: false, some_null: &some_null })?;
    Ok((value, some_null.get()))
}

/// Returns whether two items have `Some(null)` at the same places.
pub(super) fn keeps_nulls<T: Serialize + ?Sized>(one: &T, other: &T) -> Result<bool, Error> {
    let some_null = Cell::new(false);
    let marked = |item: &T| item.serialize(LosslessSerializer { marks: true, some_null: &some_null });
    Ok(marked(one)? == marked(other)?)
}

/// Returns whether a value has all fields of another one, with the same values. It may have more.
pub(super) fn holds(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::Object(value), Value::Object(other)) => {
            other.iter().all(|(name, field)| value.get(name).is_some_and(|found| holds(found, field)))
        }
        (Value::Array(value), Value::Array(other)) => {
            value.len() == other.len() && value.iter().zip(other).all(|(value, other)| holds(value, other))
        }
        _ => value == other,
    }
}

/// A JSON serializer that refuses values that JSON would change.
#[derive(Clone, Copy)]
struct LosslessSerializer<'a> {
    /// Whether `Some(null)` is written so that it differs from `None`.
    marks: bool,
    some_null: &'a Cell<bool>,
}

impl<'a> LosslessSerializer<'a> {
    fn list(self, length: Option<usize>, variant: Option<&'static str>) -> ListEncoder<'a> {
        ListEncoder { encoder: self, items: Vec::with_capacity(length.unwrap_or(0).min(1024)), variant }
    }

    fn fields(self, variant: Option<&'static str>) -> FieldEncoder<'a> {
        FieldEncoder { encoder: self, fields: Map::new(), key: None, variant, private: None }
    }
}

fn in_variant(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
        None => value,
    }
}

fn not_finite(number: impl Display) -> Error {
    Error::custom(format!("JSON has no number {number}"))
}

/// Delegates types that need no check.
macro_rules! plain {
    ($($method:ident($kind:ty);)*) => {
        $(fn $method(self, value: $kind) -> Result<Value, Error> {
            Plain.$method(value)
        })*
    };
}

impl<'a> Serializer for LosslessSerializer<'a> {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = ListEncoder<'a>;
    type SerializeTuple = ListEncoder<'a>;
    type SerializeTupleStruct = ListEncoder<'a>;
    type SerializeTupleVariant = ListEncoder<'a>;
    type SerializeMap = FieldEncoder<'a>;
    type SerializeStruct = FieldEncoder<'a>;
    type SerializeStructVariant = FieldEncoder<'a>;

    plain! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_unit_struct(&'static str);
    }

    fn serialize_f32(self, value: f32) -> Result<Value, Error> {
        if value.is_finite() { Plain.serialize_f32(value) } else { Err(not_finite(value)) }
    }

    fn serialize_f64(self, value: f64) -> Result<Value, Error> {
        if value.is_finite() { Plain.serialize_f64(value) } else { Err(not_finite(value)) }
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Error> {
        let value = value.serialize(self)?;
        let is_marked = self.marks && value.as_object().is_some_and(|fields| fields.contains_key(MARK));
        if value.is_null() {
            self.some_null.set(true);
        }
        Ok(if self.marks && (value.is_null() || is_marked) { in_variant(Some(MARK), value) } else { value })
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Error> {
        Plain.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        Ok(in_variant(Some(variant), value.serialize(self)?))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ListEncoder<'a>, Error> {
        Ok(self.list(length, None))
    }

    fn serialize_tuple(self, length: usize) -> Result<ListEncoder<'a>, Error> {
        Ok(self.list(Some(length), None))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<ListEncoder<'a>, Error> {
        Ok(self.list(Some(length), None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<ListEncoder<'a>, Error> {
        Ok(self.list(Some(length), Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<FieldEncoder<'a>, Error> {
        Ok(self.fields(None))
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<FieldEncoder<'a>, Error> {
        let mut fields = self.fields(None);
        // Raw JSON is a struct of this name, whose only field the JSON serializer can read.
        if name.starts_with(crate::storable::PRIVATE_KEYS) {
            fields.private = Some(Plain.serialize_struct(name, length)?);
        }
        Ok(fields)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<FieldEncoder<'a>, Error> {
        Ok(self.fields(Some(variant)))
    }
}

/// An array that is being encoded.
struct ListEncoder<'a> {
    encoder: LosslessSerializer<'a>,
    items: Vec<Value>,
    variant: Option<&'static str>,
}

impl ListEncoder<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.items.push(value.serialize(self.encoder)?);
        Ok(())
    }

    fn done(self) -> Result<Value, Error> {
        Ok(in_variant(self.variant, Value::Array(self.items)))
    }
}

/// An object that is being encoded.
struct FieldEncoder<'a> {
    encoder: LosslessSerializer<'a>,
    fields: Map<String, Value>,
    key: Option<String>,
    variant: Option<&'static str>,
    private: Option<<Plain as Serializer>::SerializeStruct>,
}

impl FieldEncoder<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), Error> {
        let value = value.serialize(self.encoder)?;
        if self.fields.contains_key(&key) {
            return Err(Error::custom(format!("the key {key:?} occurs twice")));
        }
        self.fields.insert(key, value);
        Ok(())
    }

    fn done(self) -> Result<Value, Error> {
        Ok(in_variant(self.variant, Value::Object(self.fields)))
    }
}

/// The serializers of arrays, which differ only in their names.
macro_rules! list_of {
    ($($kind:ident::$method:ident;)*) => {
        $(impl ser::$kind for ListEncoder<'_> {
            type Ok = Value;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.push(value)
            }

            fn end(self) -> Result<Value, Error> {
                self.done()
            }
        })*
    };
}

list_of! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
    SerializeTupleVariant::serialize_field;
}

impl ser::SerializeMap for FieldEncoder<'_> {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        match key.serialize(self.encoder)? {
            Value::String(key) => self.key = Some(key),
            other => return Err(Error::custom(format!("the key {other} is not a string"))),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().ok_or_else(|| Error::custom("a value without a key"))?;
        self.push(key, value)
    }

    fn end(self) -> Result<Value, Error> {
        self.done()
    }
}

macro_rules! fields_of {
    ($($kind:ident),*) => {
        $(impl ser::$kind for FieldEncoder<'_> {
            type Ok = Value;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
                match &mut self.private {
                    Some(private) => ser::SerializeStruct::serialize_field(private, key, value),
                    None => self.push(key.to_owned(), value),
                }
            }

            fn end(self) -> Result<Value, Error> {
                match self.private {
                    Some(private) => ser::SerializeStruct::end(private),
                    None => self.done(),
                }
            }
        })*
    };
}

fields_of!(SerializeStruct, SerializeStructVariant);
