//! Case, trimming, and other changes of a whole text.

use super::{any_text, is_space, string, whole_string};
use crate::effort::touch_bytes;
use crate::error::Result;
use crate::library::{Arity, CallContext, Native, Realise, type_error};
use crate::value::Value;

const DEEP: &[Realise] = &[Realise::Deep];

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("clojure.string/upper-case", Arity::exactly(1), DEEP, |c, a| {
        changed(c, a, str::to_uppercase)
    }),
    Native::leaf("clojure.string/lower-case", Arity::exactly(1), DEEP, |c, a| {
        changed(c, a, str::to_lowercase)
    }),
    Native::leaf("clojure.string/capitalize", Arity::exactly(1), DEEP, |c, a| changed(c, a, capitalized)),
    Native::unary("clojure.string/reverse", |c, a| {
        let text = whole_string("reverse", &a[0])?;
        c.text(text.len())?;
        Ok(Value::from(text.chars().rev().collect::<String>()))
    }),
    Native::unary("clojure.string/trim", |c, a| trimmed(c, a, |text| text.trim_matches(is_space))),
    Native::unary("clojure.string/triml", |c, a| trimmed(c, a, |text| text.trim_start_matches(is_space))),
    Native::unary("clojure.string/trimr", |c, a| trimmed(c, a, |text| text.trim_end_matches(is_space))),
    Native::unary("clojure.string/trim-newline", |c, a| {
        trimmed(c, a, |text| text.trim_end_matches(['\n', '\r']))
    }),
    Native::unary("clojure.string/blank?", |_, a| match &a[0] {
        Value::Nil => Ok(Value::Boolean(true)),
        other => Ok(Value::Boolean(whole_string("blank?", other)?.chars().all(is_space))),
    }),
    Native::leaf("clojure.string/escape", Arity::exactly(2), &[Realise::Not, Realise::Deep], escape),
];

fn changed(context: &mut CallContext<'_>, arguments: &[Value], change: fn(&str) -> String) -> Result<Value> {
    let text = any_text(context, &arguments[0])?;
    // A change of case makes a character up to three times as long.
    context.text(text.len())?;
    context.string(change(&text))
}

pub(super) fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        None => String::new(),
        Some(first) => first.to_uppercase().chain(characters.as_str().to_lowercase().chars()).collect(),
    }
}

pub(super) fn trimmed(
    context: &mut CallContext<'_>,
    arguments: &[Value],
    trim: fn(&str) -> &str,
) -> Result<Value> {
    let text = string(context.shown(), &arguments[0])?;
    let trimmed = trim(text);
    touch_bytes(text.len() - trimmed.len());
    if trimmed.len() == text.len() { Ok(arguments[0].clone()) } else { context.string(trimmed) }
}

/// Replaces each character that is a key of the map by its value.
fn escape(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let text = whole_string("escape", &arguments[0])?;
    let Value::Map(map) = &arguments[1] else {
        return Err(type_error("escape", "a map from characters to strings", &arguments[1]));
    };
    context.work(text.len())?;
    let most = context.limits.string_bytes;
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match map.get_exact(&Value::Character(character)) {
            Some(replacement) if replacement.is_truthy() => {
                crate::printer::print(replacement, crate::printer::Style::Str, most, &mut escaped)?;
            }
            _ => escaped.push(character),
        }
        context.limits.check_string(escaped.len())?;
    }
    context.string(escaped)
}
