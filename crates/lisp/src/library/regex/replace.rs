//! Replacing the matches of a pattern, with `$1` for groups as in Java.

use regex::Captures;

use super::next_match;
use crate::error::{Error, Result};
use crate::library::CallContext;
use crate::value::Pattern;

/// A parsed replacement text.
pub(in crate::library) struct Replacement(Vec<Part>);

enum Part {
    Text(String),
    Group(usize),
    Named(String),
}

/// The number of matches to replace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::library) enum Times {
    Once,
    All,
}

impl Replacement {
    /// Parses a replacement: `$1` and `${name}` are groups, a backslash makes the next character literal.
    pub(in crate::library) fn parse(text: &str, pattern: &Pattern) -> Result<Self> {
        let groups = pattern.regex.groups();
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some(escaped) => plain.push(escaped),
                    None => return Err(invalid("it ends in a backslash")),
                },
                '$' => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    match characters.peek().copied() {
                        Some('{') => {
                            characters.next();
                            let name: String =
                                characters.by_ref().take_while(|&character| character != '}').collect();
                            if !pattern.regex.has_group(&name) {
                                return Err(invalid(&format!("there is no group {name:?}")));
                            }
                            parts.push(Part::Named(name));
                        }
                        Some(digit) if digit.is_ascii_digit() => {
                            let mut number = 0;
                            let mut digits = 0;
                            // As many digits as there are groups for, but at least one.
                            while let Some(digit) =
                                characters.peek().and_then(|character| character.to_digit(10))
                            {
                                let longer = number * 10 + digit as usize;
                                if digits > 0 && longer >= groups {
                                    break;
                                }
                                number = longer;
                                digits += 1;
                                characters.next();
                            }
                            if number >= groups {
                                return Err(invalid(&format!("there is no group {number}")));
                            }
                            parts.push(Part::Group(number));
                        }
                        _ => return Err(invalid("`$` is followed by a number")),
                    }
                }
                other => plain.push(other),
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self(parts))
    }

    fn append(&self, captures: &Captures<'_>, out: &mut String) {
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(number) => out.push_str(captures.get(*number).map_or("", |group| group.as_str())),
                Part::Named(name) => out.push_str(captures.name(name).map_or("", |group| group.as_str())),
            }
        }
    }
}

fn invalid(reason: &str) -> Error {
    Error::argument(format!("not a replacement: {reason}"))
        .hint("a plain dollar sign is written `\\\\$`; `clojure.string/re-quote-replacement` does that")
}

/// Returns the text with its matches replaced.
pub(in crate::library) fn replace_matches(
    context: &mut CallContext<'_>,
    text: &str,
    pattern: &Pattern,
    replacement: &Replacement,
    times: Times,
) -> Result<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut from = 0;
    while let Some((captures, next)) = next_match(context, pattern, text, from)? {
        let range = captures.get_match().range();
        out.push_str(&text[copied..range.start]);
        replacement.append(&captures, &mut out);
        context.limits.check_string(out.len())?;
        copied = range.end;
        from = next;
        if times == Times::Once {
            break;
        }
    }
    out.push_str(&text[copied..]);
    Ok(out)
}
