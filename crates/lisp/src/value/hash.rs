//! Clojure's `hash`: equal values have equal hashes, on every machine and in every run.
//!
//! The hash follows the value and not its representation: an integer hashes alike in either size, and a
//! sequence of any kind like a vector of the same items. Maps and sets are hashed in their order, which is
//! the same for all equal ones.

use num_traits::ToPrimitive as _;

use super::{Cursor, CursorStep, Temporal, Value};
use crate::effort::{ITEM, touch, touch_bytes};

/// Returns the hash of a value, which must be realised.
pub(crate) fn hash(value: &Value) -> i32 {
    let mut hasher = Hasher(0xcbf2_9ce4_8422_2325);
    hasher.value(value);
    (hasher.0 ^ (hasher.0 >> 32)) as u32 as i32
}

/// FNV-1a over the parts of a value, each after a byte that tags the kind of part.
struct Hasher(u64);

impl Hasher {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        touch_bytes(bytes.len());
        self.byte(kind);
        bytes.iter().for_each(|byte| self.byte(*byte));
        // A terminator that no UTF-8 has, so that two texts and one longer text differ.
        self.byte(0xff);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Nil => self.byte(0),
            Value::Boolean(value) => self.bytes(1, &[u8::from(*value)]),
            Value::Integer(value) => self.bytes(2, &value.to_le_bytes()),
            Value::BigInteger(value) => match value.to_i64() {
                Some(small) => self.bytes(2, &small.to_le_bytes()),
                None => self.bytes(3, &value.to_signed_bytes_le()),
            },
            Value::Ratio(ratio) => {
                self.bytes(4, &ratio.numerator.to_signed_bytes_le());
                self.bytes(4, &ratio.denominator.to_signed_bytes_le());
            }
            // The two zeros are equal. NaN equals nothing, but two sets that contain it may be equal.
            Value::Float(value) => {
                let value = match value {
                    _ if *value == 0.0 => 0.0,
                    _ if value.is_nan() => f64::NAN,
                    other => *other,
                };
                self.bytes(5, &value.to_bits().to_le_bytes());
            }
            Value::Character(value) => self.bytes(6, &u32::from(*value).to_le_bytes()),
            Value::String(text) => self.bytes(7, text.as_bytes()),
            Value::Keyword(name) => self.bytes(8, name.full().as_bytes()),
            Value::Symbol(name) => self.bytes(9, name.full().as_bytes()),
            Value::Var(name) => self.bytes(10, name.full().as_bytes()),
            Value::Tool(name) => self.bytes(11, name.full().as_bytes()),
            Value::Vector(items) => self.items(12, items.iter()),
            Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => self.sequence(value),
            Value::Map(map) => self.items(13, map.iter_by_key().flat_map(|(key, value)| [key, value])),
            Value::Set(set) => self.items(14, set.iter_by_value()),
            Value::Native(native) => self.bytes(15, native.name.as_bytes()),
            Value::Closure(closure) => self.bytes(16, &closure.stamp().0.to_le_bytes()),
            Value::Atom(atom) => self.bytes(17, &atom.number().to_le_bytes()),
            Value::Regex(pattern) => self.bytes(18, pattern.source.as_bytes()),
            Value::Temporal(temporal) => self.temporal(temporal),
            // Two different exceptions may be equal as keys of a set.
            Value::Exception(exception) => self.bytes(20, exception.class().as_bytes()),
            Value::Reduced(inner) => {
                self.byte(21);
                self.value(inner);
            }
        }
    }

    fn temporal(&mut self, temporal: &Temporal) {
        match temporal {
            Temporal::LocalDate(date) => {
                self.bytes(19, &[date.month() as u8, date.day() as u8]);
                self.bytes(19, &date.year().to_le_bytes());
            }
            Temporal::Instant(instant) => self.bytes(22, &instant.as_nanosecond().to_le_bytes()),
            Temporal::Duration(duration) => self.bytes(23, &duration.as_nanos().to_le_bytes()),
            Temporal::Date(millis) => self.bytes(24, &millis.to_le_bytes()),
            Temporal::Uuid(text) => self.bytes(25, text.as_bytes()),
            other => self.bytes(26, crate::printer::temporal_text(other).as_bytes()),
        }
    }

    fn items<'v>(&mut self, kind: u8, items: impl Iterator<Item = &'v Value>) {
        self.byte(kind);
        for item in items {
            if touch(ITEM) {
                break;
            }
            self.value(item);
        }
        self.byte(0xfe);
    }

    fn sequence(&mut self, value: &Value) {
        self.byte(12);
        let mut cursor = Cursor::new(value).unwrap_or(Cursor::End);
        while let CursorStep::Item(item) = cursor.next() {
            if touch(ITEM) {
                break;
            }
            self.value(&item);
        }
        self.byte(0xfe);
    }
}
