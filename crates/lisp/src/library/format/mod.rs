//! `format`: Java's `String.format`.
//!
//! Conversions `%s %d %f %e %g %x %o %b %c %h %t %n %%` and their capitals, with `1$` and `<` indices, the
//! flags `- + 0 , ( #` and space, width and precision. As in Java, `%d` takes integers and `%f` takes
//! doubles, and neither takes the other. Hexadecimal doubles (`%a`) are refused by name, as is `%h` of a
//! value whose hash differs from Java's.

mod dates;
mod decimal;
mod directive;

use directive::Directive;

use super::strings::str_of;
use super::{Arity, CallContext, Native, Realise, type_error};
use crate::error::{Error, Result};
use crate::value::Value;

const DEEP: &[Realise] = &[Realise::Deep];

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("format", Arity::at_least(1), DEEP, format),
    Native::leaf("String/format", Arity::at_least(1), DEEP, format),
];

fn format(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let Value::String(template) = &arguments[0] else {
        return Err(type_error("format", "a format string", &arguments[0]));
    };
    let values = &arguments[1..];
    let mut out = String::with_capacity(template.len());
    let mut rest = template.as_str();
    let mut next = 0;
    let mut last = None;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let (directive, length) = Directive::parse(&rest[at..])?;
        rest = &rest[at + length..];
        context.work(1)?;
        context.limits.check_string(directive.width.unwrap_or(0).max(directive.precision.unwrap_or(0)))?;
        let text = match directive.conversion {
            'n' => "\n".to_owned(),
            '%' => directive.pad("%".to_owned()),
            _ => {
                let index = directive.index.resolve(&mut next, last)?;
                last = Some(index);
                let Some(value) = values.get(index) else {
                    let hint = format!("the format string needs {}, {} given", index + 1, values.len());
                    let message = format!("format: no argument for `{}`", directive.text);
                    return Err(Error::argument(message).hint(hint));
                };
                convert(context, &directive, value)?
            }
        };
        out.push_str(&text);
        context.limits.check_string(out.len())?;
    }
    out.push_str(rest);
    context.string(out)
}

fn convert(context: &mut CallContext<'_>, directive: &Directive<'_>, value: &Value) -> Result<String> {
    let text = match directive.conversion.to_ascii_lowercase() {
        'b' => directive.cut(if value.is_truthy() { "true" } else { "false" }),
        's' => match value {
            Value::Nil => directive.cut("null"),
            other => directive.cut(&str_of(context, other)?),
        },
        _ if value.is_nil() => directive.cut("null"),
        'c' => match value {
            Value::Character(character) => character.to_string(),
            other => return Err(mismatch(directive, "a character", other)),
        },
        'h' => match hash(value) {
            Some(hash) => format!("{hash:x}"),
            None => return Err(mismatch(directive, "a string, a number or a character", value)),
        },
        't' => match dates::part(value, directive.part) {
            Some(text) => text,
            None => return Err(mismatch(directive, "a date that has this part", value)),
        },
        'd' => return directive.integer(value).ok_or_else(|| mismatch(directive, "an integer", value)),
        'x' | 'o' => {
            let text = directive.radix(value).ok_or_else(|| mismatch(directive, "an integer", value))?;
            return Ok(directive.capitals(text));
        }
        'f' | 'e' | 'g' => match value {
            Value::Float(float) => return Ok(directive.capitals(directive.float(*float))),
            other => return Err(mismatch(directive, "a double", other)),
        },
        _ => String::new(),
    };
    Ok(directive.capitals(directive.pad(text)))
}

/// Returns Java's hash of the value, for the values whose hash is the same here.
fn hash(value: &Value) -> Option<u32> {
    let of_bits = |bits: u64| (bits ^ (bits >> 32)) as u32;
    Some(match value {
        Value::String(text) => {
            text.encode_utf16().fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
        }
        Value::Integer(value) => of_bits(*value as u64),
        Value::Float(value) => of_bits(value.to_bits()),
        Value::Character(character) => u32::from(*character),
        Value::Boolean(value) => {
            if *value {
                1231
            } else {
                1237
            }
        }
        _ => return None,
    })
}

fn mismatch(directive: &Directive<'_>, expected: &str, value: &Value) -> Error {
    let message = format!("format: `{}` takes {expected}, got {}", directive.text, value.type_name());
    let error = Error::argument(message);
    match (expected, value) {
        ("a double", Value::Integer(_) | Value::BigInteger(_) | Value::Ratio(_)) => {
            error.hint("convert it with `(double x)`")
        }
        ("an integer", Value::Float(_) | Value::Ratio(_)) => {
            error.hint("use `%.0f` or `%s`, or convert it with `(long x)` or `(Math/round x)`")
        }
        _ => error,
    }
}
