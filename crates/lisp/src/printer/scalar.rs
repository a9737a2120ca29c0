//! Printing values that hold no others.

use std::fmt::Write as _;

use super::full::Style;
use super::number::double_text;
use super::temporal::{literal_text, temporal_text};
use crate::reader::NAMED_CHARACTERS;
use crate::value::integers::count_digits;
use crate::value::{Closure, Value};

/// Writes a string with quotes and Clojure's escapes.
pub(super) fn escape_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\t' => "\\t",
            b'\r' => "\\r",
            0x08 => "\\b",
            0x0c => "\\f",
            _ => continue,
        };
        out.push_str(&text[plain_from..at]);
        out.push_str(escape);
        plain_from = at + 1;
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

fn character(character: char, out: &mut String) {
    out.push('\\');
    match NAMED_CHARACTERS.iter().find(|(named, _)| *named == character) {
        Some((_, name)) => out.push_str(name),
        None => out.push(character),
    }
}

/// Prints a scalar. Returns `false`, having written nothing, for a value that holds others.
pub(super) fn print_scalar(value: &Value, style: Style, out: &mut String) -> bool {
    let readable = style != Style::Raw;
    match value {
        Value::Nil => out.push_str("nil"),
        Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Integer(value) => write_to(out, value),
        Value::BigInteger(value) => {
            write_integer(out, value);
            out.push('N');
        }
        Value::Ratio(value) => {
            write_integer(out, &value.numerator);
            out.push('/');
            write_integer(out, &value.denominator);
        }
        Value::Float(value) if value.is_nan() => out.push_str("##NaN"),
        Value::Float(value) if value.is_infinite() => {
            out.push_str(if *value > 0.0 { "##Inf" } else { "##-Inf" })
        }
        Value::Float(value) => out.push_str(&double_text(*value)),
        Value::Character(value) if readable => character(*value, out),
        Value::Character(value) => out.push(*value),
        Value::String(text) if readable => escape_string(text, out),
        Value::String(text) => out.push_str(text),
        Value::Keyword(name) => {
            out.push(':');
            out.push_str(name.full());
        }
        Value::Symbol(name) => out.push_str(name.full()),
        Value::Var(name) => write_to(out, &format_args!("#'{}", name.full())),
        Value::Regex(pattern) => {
            out.push_str("#\"");
            regex_text(&pattern.source, out);
            out.push('"');
        }
        Value::Temporal(temporal) => {
            out.push('#');
            out.push_str(temporal.tag().name());
            out.push(' ');
            escape_string(&literal_text(temporal), out);
        }
        Value::Native(native) => write_to(out, &format_args!("#fn[{}]", native.name)),
        Value::Tool(name) => write_to(out, &format_args!("#fn[tool/{}]", name.name())),
        Value::Closure(closure) => function(closure, out),
        Value::Atom(atom) => {
            let kind = if atom.is_delay() { "delay" } else { "atom" };
            write_to(out, &format_args!("#{kind}[{}]", atom.number()));
        }
        _ => return false,
    }
    true
}

/// Prints a scalar as `str` does. Returns `false` if `str` prints it as the other styles do.
pub(super) fn print_str_scalar(value: &Value, out: &mut String) -> bool {
    match value {
        Value::Nil => {}
        Value::String(text) => out.push_str(text),
        Value::Character(value) => out.push(*value),
        Value::BigInteger(value) => write_integer(out, value),
        Value::Float(value) => out.push_str(&double_text(*value)),
        Value::Regex(pattern) => out.push_str(&pattern.source),
        Value::Temporal(temporal) => out.push_str(&temporal_text(temporal)),
        _ => return false,
    }
    true
}

/// Prints a function with the parameters of its arities: `#fn[x y]`, `#fn[x | x & more]`.
fn function(closure: &Closure, out: &mut String) {
    out.push_str("#fn[");
    for (at, parameters) in closure.parameters().enumerate() {
        if at > 0 {
            out.push_str(" | ");
        }
        out.push_str(parameters.trim_matches(['[', ']']));
    }
    out.push(']');
}

/// Escapes the quotes of a pattern: one made of a string may hold a quote that no literal could.
fn regex_text(source: &str, out: &mut String) {
    let mut escaped = false;
    for character in source.chars() {
        if character == '"' && !escaped {
            out.push('\\');
        }
        escaped = character == '\\' && !escaped;
        out.push(character);
    }
}

fn write_integer(out: &mut String, value: &num_bigint::BigInt) {
    if !count_digits(value.bits()) {
        write_to(out, value);
    }
}

fn write_to(out: &mut String, value: &dyn std::fmt::Display) {
    // Writing to a string does not fail.
    let _ = write!(out, "{value}");
}
