//! Finds duplicate keys of a map literal and duplicate items of a set literal.
//!
//! Clojure refuses these while reading, by the equality of the values: `#{1 1N}` and `#{[1] (1)}` hold
//! duplicates, `#{1 1.0}` and `#{#"a" #"a"}` do not. Small literals of plain keys are compared one by one;
//! all others are compared by a 128 bit fingerprint, which keeps large and nested literals linear.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use num_bigint::BigInt;

use super::form::{Form, FormKind, Name};

/// The most keys that are compared pairwise, which is faster than hashing up to here.
const FEW: usize = 16;

/// Returns the second of two equal forms among every `step`-th of `items`, starting with the first.
pub(super) fn find(items: &[Form], step: usize) -> Option<&Form> {
    let count = items.len() / step;
    if count < 2 {
        return None;
    }
    if count <= FEW && items.iter().step_by(step).all(is_plain) {
        let keys = || items.iter().step_by(step);
        return keys()
            .enumerate()
            .find(|(at, key)| keys().take(*at).any(|other| same_plain(key, other)))
            .map(|(_, key)| key);
    }
    let mut seen = HashSet::with_capacity(count);
    items.iter().step_by(step).find(|key| fingerprint(key).is_some_and(|print| !seen.insert(print)))
}

fn is_plain(form: &Form) -> bool {
    matches!(
        form.kind,
        FormKind::Keyword(_) | FormKind::Symbol(_) | FormKind::String(_) | FormKind::Integer(_)
    )
}

fn same_plain(one: &Form, other: &Form) -> bool {
    match (&one.kind, &other.kind) {
        (FormKind::Keyword(a), FormKind::Keyword(b)) | (FormKind::Symbol(a), FormKind::Symbol(b)) => {
            same_name(a, b)
        }
        (FormKind::String(a), FormKind::String(b)) => a == b,
        (FormKind::Integer(a), FormKind::Integer(b)) => a == b,
        _ => false,
    }
}

fn same_name(a: &Name, b: &Name) -> bool {
    // Equal names of one text share storage, so the pointers nearly always decide.
    std::ptr::eq(a.full(), b.full()) || a == b
}

/// Returns a number that equal forms share and others do not, with a collision probability of 2^-128. `None`
/// for a form that does not equal itself.
fn fingerprint(form: &Form) -> Option<u128> {
    let print = match &form.kind {
        FormKind::Nil => digest("nil", ()),
        FormKind::Boolean(value) => digest("boolean", value),
        FormKind::Integer(value) => digest("integer", BigInt::from(*value)),
        FormKind::BigInteger(value) => digest("integer", value),
        FormKind::Ratio(value) => digest("ratio", value),
        FormKind::Double(value) if value.is_nan() => return None,
        // Adding zero makes the negative zero positive.
        FormKind::Double(value) => digest("double", (value + 0.0).to_bits()),
        FormKind::Character(value) => digest("character", value),
        FormKind::String(value) => digest("string", value),
        FormKind::Regex(_) => return None,
        FormKind::Keyword(value) => digest("keyword", value),
        FormKind::Symbol(value) => digest("symbol", value),
        FormKind::Tagged(tag, text) => digest("tagged", (tag, text)),
        FormKind::List(items) | FormKind::Vector(items) => {
            digest("sequence", items.iter().map(fingerprint).collect::<Option<Vec<_>>>()?)
        }
        FormKind::Set(items) => {
            let sum =
                items.iter().map(fingerprint).try_fold(0u128, |sum, print| Some(sum.wrapping_add(print?)))?;
            digest("set", (items.len(), sum))
        }
        FormKind::Map(items) => {
            let sum = items.chunks_exact(2).try_fold(0u128, |sum, entry| {
                let entry = digest("entry", (fingerprint(&entry[0])?, fingerprint(&entry[1])?));
                Some(sum.wrapping_add(entry))
            })?;
            digest("map", (items.len(), sum))
        }
    };
    Some(print)
}

fn digest(kind: &str, content: impl Hash) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, kind, &content).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
