//! Replacing parts of a text.

use super::{any_text, string};
use crate::error::Result;
use crate::library::regex::{Replacement, Times, groups, next_match, replace_matches};
use crate::library::{Arity, CallContext, Native, Realise, type_error};
use crate::value::Value;

const TEXT: &[Realise] = &[Realise::Deep, Realise::Not];

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("clojure.string/replace", Arity::exactly(3), TEXT, |c, a| replace(c, a, Times::All)),
    Native::leaf("clojure.string/replace-first", Arity::exactly(3), TEXT, |c, a| replace(c, a, Times::Once)),
    Native::leaf("clojure.string/re-quote-replacement", Arity::exactly(1), &[Realise::Deep], |c, a| {
        let text = any_text(c, &a[0])?;
        let quoted = text.replace('\\', "\\\\").replace('$', "\\$");
        c.string(quoted)
    }),
    Native::leaf("clojure.string/match-pieces*", Arity::between(2, 3), &[], match_pieces),
];

fn replace(context: &mut CallContext<'_>, arguments: &[Value], times: Times) -> Result<Value> {
    let function = context.shown();
    let text = any_text(context, &arguments[0])?;
    context.work(text.len() / 64)?;
    let replaced = match (&arguments[1], &arguments[2]) {
        (Value::String(wanted), Value::String(replacement)) => {
            plain(context, &text, wanted, replacement, times)?
        }
        (Value::Character(wanted), Value::Character(replacement)) => {
            let (wanted, replacement) = (wanted.to_string(), replacement.to_string());
            plain(context, &text, &wanted, &replacement, times)?
        }
        (Value::Regex(pattern), Value::String(replacement)) => {
            let replacement = Replacement::parse(replacement, pattern)?;
            replace_matches(context, &text, pattern, &replacement, times)?
        }
        (Value::String(_), other) => return Err(type_error(function, "a string as replacement", other)),
        (Value::Character(_), other) => {
            return Err(type_error(function, "a character as replacement", other));
        }
        (Value::Regex(_), other) => {
            return Err(type_error(function, "a string or a function as replacement", other));
        }
        (other, _) => return Err(type_error(function, "a string, a character or a regex to replace", other)),
    };
    context.string(replaced)
}

/// Replaces literal text. The length is checked before the result is built.
pub(super) fn plain(
    context: &mut CallContext<'_>,
    text: &str,
    wanted: &str,
    replacement: &str,
    times: Times,
) -> Result<String> {
    if times == Times::Once {
        return Ok(text.replacen(wanted, replacement, 1));
    }
    let count = text.matches(wanted).count();
    let length = text.len().saturating_add(count.saturating_mul(replacement.len()));
    context.limits.check_string(length.saturating_sub(count.saturating_mul(wanted.len())))?;
    Ok(text.replace(wanted, replacement))
}

/// Returns alternating text and matches: text, match, text, ..., text. A match has the form that `re-find`
/// returns. With `true` as third argument only the first match is taken.
///
/// Replacement by a function is written in the language on top of this, because only the machine calls
/// functions.
fn match_pieces(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let text = string("match-pieces", &arguments[0])?;
    let Value::Regex(pattern) = &arguments[1] else {
        return Err(type_error("match-pieces", "a regex", &arguments[1]));
    };
    let once = arguments.get(2).is_some_and(Value::is_truthy);
    let mut pieces = Vec::new();
    let mut copied = 0;
    let mut from = 0;
    while let Some((captures, next)) = next_match(context, pattern, text, from)? {
        context.limits.check_collection(pieces.len())?;
        let range = captures.get_match().range();
        pieces.push(context.string(&text[copied..range.start])?);
        pieces.push(groups(context, &captures)?);
        copied = range.end;
        from = next;
        if once {
            break;
        }
    }
    pieces.push(context.string(&text[copied..])?);
    context.vector(pieces)
}
