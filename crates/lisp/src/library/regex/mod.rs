//! Regular expressions: `re-pattern`, `re-find`, `re-matches`, `re-seq`.
//!
//! Patterns are written as in Java and run on an engine whose time is linear in the text. Features that
//! require backtracking are refused when the pattern is compiled. A pattern has a bounded size, and matching
//! is charged by the length of the text.

mod metering;
mod pattern;
mod replace;
mod translate;

pub(crate) use pattern::CompiledPattern;
pub(crate) use pattern::compile_pattern;
use regex::Captures;
pub(super) use replace::{Replacement, Times, replace_matches};

use std::sync::Arc;

use super::{CallContext, Native, type_error};
use crate::error::Result;
use crate::value::{Pattern, Text, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::unary("re-pattern", re_pattern),
    Native::binary("re-find", re_find),
    Native::binary("re-matches", re_matches),
    Native::binary("re-seq", re_seq),
];

/// Compiles a pattern at run time and accounts for it.
pub(super) fn make_pattern(context: &mut CallContext<'_>, source: &str) -> Result<Arc<Pattern>> {
    // Compiling is expensive: it is charged as a hundred steps plus one for each byte.
    context.work(100 + source.len())?;
    let regex = compile_pattern(source)?;
    context.allocate(regex.bytes())?;
    Ok(Arc::new(Pattern { source: source.into(), regex }))
}

fn re_pattern(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Regex(_) => Ok(arguments[0].clone()),
        Value::String(source) => Ok(Value::Regex(make_pattern(context, source)?)),
        other => Err(type_error("re-pattern", "a string", other)),
    }
}

fn pattern_and_text<'a>(function: &str, arguments: &'a [Value]) -> Result<(&'a Pattern, &'a Text)> {
    match (&arguments[0], &arguments[1]) {
        (Value::Regex(pattern), Value::String(text)) => Ok((pattern, text)),
        (Value::Regex(_), other) => Err(type_error(function, "a string to search", other)),
        (Value::String(_), _) => Err(type_error(function, "a regex", &arguments[0])
            .hint("write the pattern as `#\"...\"`, or make one of a string with `re-pattern`")),
        (other, _) => Err(type_error(function, "a regex", other)),
    }
}

/// Charges for the search of the next match from `from` on, and for its groups.
pub(super) fn next_match<'t>(
    context: &mut CallContext<'_>,
    pattern: &Pattern,
    text: &'t str,
    from: usize,
) -> Result<Option<(Captures<'t>, usize)>> {
    context.work(pattern.regex.search_cost(text, from))?;
    let found = pattern.regex.captures_at(text, from);
    if let Some((captures, _)) = &found {
        context.work(pattern.regex.groups_cost(captures.get_match().len()))?;
    }
    Ok(found)
}

/// Returns the groups of a match of the whole text.
pub(super) fn whole_match<'t>(
    context: &mut CallContext<'_>,
    pattern: &Pattern,
    text: &'t str,
) -> Result<Option<Captures<'t>>> {
    // The second search, for the whole text only, may follow all states.
    let Some((captures, _)) = next_match(context, pattern, text, 0)? else { return Ok(None) };
    if captures.get_match().len() == text.len() {
        return Ok(Some(captures));
    }
    context.work(pattern.regex.simulation_cost(text.len()))?;
    Ok(pattern.regex.captures_whole(text))
}

fn re_find(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let (pattern, text) = pattern_and_text("re-find", arguments)?;
    match next_match(context, pattern, text, 0)? {
        Some((captures, _)) => groups(context, &captures),
        None => Ok(Value::Nil),
    }
}

fn re_matches(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let (pattern, text) = pattern_and_text("re-matches", arguments)?;
    match whole_match(context, pattern, text)? {
        Some(captures) => groups(context, &captures),
        None => Ok(Value::Nil),
    }
}

fn re_seq(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let (pattern, text) = pattern_and_text("re-seq", arguments)?;
    let mut found = Vec::new();
    let mut from = 0;
    while let Some((captures, next)) = next_match(context, pattern, text, from)? {
        context.limits.check_collection(found.len())?;
        found.push(groups(context, &captures)?);
        from = next;
    }
    if found.is_empty() { Ok(Value::Nil) } else { context.sequence(found) }
}

/// Converts a match to a value: the text, or a vector of the text and its groups if the pattern has any.
pub(super) fn groups(context: &mut CallContext<'_>, captures: &Captures<'_>) -> Result<Value> {
    if captures.len() == 1 {
        return context.string(captures.get_match().as_str());
    }
    let mut items = Vec::with_capacity(captures.len());
    for group in captures.iter() {
        items.push(match group {
            Some(group) => context.string(group.as_str())?,
            None => Value::Nil,
        });
    }
    context.vector(items)
}
