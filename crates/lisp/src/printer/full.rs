//! Printing values in full: `pr-str`, `print-str` and `str`.

use super::scalar::{print_scalar, print_str_scalar};
use crate::effort;
use crate::error::{Error, ErrorKind, Result};
use crate::value::{Cursor, CursorStep, Exception, Value};

/// The style of printing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// `pr`: strings in quotes, characters with a backslash.
    Readable,
    /// `print`: strings and characters as they are, at any depth.
    Raw,
    /// `str`: the value itself as by `toString`, `nil` as nothing; nested values as by `pr`.
    Str,
}

/// Appends a value. Fails once `out` is longer than `most` bytes, having written little more than that.
///
/// A lazy sequence should be realised; a pending rest is printed as `...`.
pub(crate) fn print(value: &Value, style: Style, most: usize, out: &mut String) -> Result<()> {
    effort::check(effort::touch(effort::ITEM))?;
    let before = out.len();
    if style == Style::Str {
        if print_str_scalar(value, out) {
            effort::touch_bytes(out.len() - before);
            return check(out, most);
        }
        if let Value::Exception(exception) = value {
            return print_exception_text(exception, most, out);
        }
        return print(value, Style::Readable, most, out);
    }
    if print_scalar(value, style, out) {
        effort::touch_bytes(out.len() - before);
        return check(out, most);
    }
    match value {
        Value::Vector(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                print(item, style, most, out)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (at, (key, value)) in map.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                print(key, style, most, out)?;
                out.push(' ');
                print(value, style, most, out)?;
            }
            out.push('}');
        }
        Value::Set(set) => {
            out.push_str("#{");
            for (at, item) in set.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                print(item, style, most, out)?;
            }
            out.push('}');
        }
        Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => print_sequence(value, style, most, out)?,
        Value::Exception(exception) => {
            out.push_str("#error {:message ");
            match exception.message() {
                Some(message) => print(&Value::String(message.clone()), Style::Readable, most, out)?,
                None => out.push_str("nil"),
            }
            if !exception.data().is_nil() {
                out.push_str(", :data ");
                print(exception.data(), style, most, out)?;
            }
            if !exception.cause().is_nil() {
                out.push_str(", :cause ");
                print(exception.cause(), style, most, out)?;
            }
            out.push('}');
        }
        Value::Reduced(inner) => {
            out.push_str("#reduced[");
            print(inner, style, most, out)?;
            out.push(']');
        }
        other => {
            out.push_str("#<");
            out.push_str(other.type_name());
            out.push('>');
        }
    }
    check(out, most)
}

fn print_sequence(value: &Value, style: Style, most: usize, out: &mut String) -> Result<()> {
    let mut cursor = Cursor::new(value).unwrap_or(Cursor::End);
    out.push('(');
    let mut first = true;
    loop {
        match cursor.next() {
            CursorStep::Item(item) => {
                if !std::mem::take(&mut first) {
                    out.push(' ');
                }
                print(&item, style, most, out)?;
            }
            CursorStep::End => break,
            CursorStep::Blocked(_) => {
                out.push_str(if first { "..." } else { " ..." });
                break;
            }
        }
    }
    out.push(')');
    check(out, most)
}

/// Writes the `toString` of an exception: its class, its message and, for `ex-info`, its data.
fn print_exception_text(exception: &Exception, most: usize, out: &mut String) -> Result<()> {
    out.push_str(exception.class());
    if let Some(message) = exception.message() {
        out.push_str(": ");
        out.push_str(message);
    }
    if !exception.data().is_nil() {
        out.push(' ');
        print(exception.data(), Style::Readable, most, out)?;
    }
    check(out, most)
}

fn check(out: &str, most: usize) -> Result<()> {
    if out.len() > most {
        return Err(Error::new(ErrorKind::SizeExceeded, format!("a text would be longer than {most} bytes")));
    }
    Ok(())
}
