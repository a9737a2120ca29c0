//! Splitting and joining texts.

use super::{str_of, string, whole_string};
use crate::error::Result;
use crate::library::regex::next_match;
use crate::library::{Arity, CallContext, Native, Realise, type_error};
use crate::printer::{Style, print};
use crate::value::{Cursor, CursorStep, Pattern, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("clojure.string/split", Arity::between(2, 3), &[], split),
    Native::unary("clojure.string/split-lines", split_lines),
    Native::leaf("clojure.string/join", Arity::between(1, 2), &[Realise::Deep], join),
];

fn split(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let text = string("split", &arguments[0])?;
    let Value::Regex(pattern) = &arguments[1] else {
        return Err(type_error("split", "a regex", &arguments[1]).hint("write the separator as `#\",\"`"));
    };
    let limit = arguments.get(2).map_or(Ok(0), |limit| super::indices::index("split", limit))?;
    let parts = split_by(context, text, pattern, limit)?;
    strings(context, parts)
}

/// Splits as Java's `Pattern.split` does. A limit of 0 drops empty parts at the end, a positive limit is the
/// maximum number of parts, a negative one keeps everything.
pub(super) fn split_by<'t>(
    context: &mut CallContext<'_>,
    text: &'t str,
    pattern: &Pattern,
    limit: i64,
) -> Result<Vec<&'t str>> {
    let mut parts = Vec::new();
    let mut copied = 0;
    let mut from = 0;
    while limit <= 0 || (parts.len() as i64) < limit - 1 {
        let Some((captures, next)) = next_match(context, pattern, text, from)? else { break };
        let range = captures.get_match().range();
        from = next;
        // An empty match at the beginning yields no empty part, and one at the end splits nothing off.
        if range.end == 0 || (range.is_empty() && range.start >= text.len()) {
            continue;
        }
        context.limits.check_collection(parts.len())?;
        parts.push(&text[copied..range.start]);
        copied = range.end;
    }
    if parts.is_empty() {
        return Ok(vec![text]);
    }
    parts.push(&text[copied..]);
    if limit == 0 {
        while parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
    }
    Ok(parts)
}

pub(super) fn strings(context: &mut CallContext<'_>, parts: Vec<&str>) -> Result<Value> {
    let mut items = Vec::with_capacity(parts.len());
    for part in parts {
        items.push(context.string(part)?);
    }
    context.vector(items)
}

fn split_lines(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let text = whole_string("split-lines", &arguments[0])?;
    context.work(text.len() / 64)?;
    let mut parts: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    // A carriage return at the very end does not end a line.
    if let (Some(last), true) = (parts.last_mut(), text.ends_with('\r')) {
        *last = &text[text.len() - last.len() - 1..];
    }
    if parts.len() > 1 {
        while parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
    }
    strings(context, parts)
}

pub(super) fn join(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let (separator, items) = match arguments {
        [items] => (String::new(), items),
        [separator, items, ..] => (str_of(context, separator)?, items),
        [] => return Ok(Value::Nil),
    };
    let Some(mut cursor) = Cursor::new(items) else {
        return Err(type_error(context.shown(), "a collection", items));
    };
    let most = context.limits.string_bytes;
    let mut text = String::new();
    let mut first = true;
    while let CursorStep::Item(item) = cursor.next() {
        context.work(1)?;
        if !std::mem::take(&mut first) {
            text.push_str(&separator);
        }
        print(&item, Style::Str, most, &mut text)?;
    }
    context.string(text)
}
