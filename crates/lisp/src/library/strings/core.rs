//! The functions of `clojure.core` that create text and names.

use super::indices::{byte_of, index};
use super::{str_of, string};
use crate::edn::read_edn;
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, CallContext, Native, Realise, type_error};
use crate::printer::{Style, print};
use crate::reader::{ReadLimits, Reader};
use crate::value::{Keyword, Symbol, Value};

const DEEP: &[Realise] = &[Realise::Deep];

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("str", Arity::at_least(0), DEEP, str),
    Native::leaf("pr-str", Arity::at_least(0), DEEP, |c, a| printed(c, a, Style::Readable, "")),
    Native::leaf("prn-str", Arity::at_least(0), DEEP, |c, a| printed(c, a, Style::Readable, "\n")),
    Native::leaf("print-str", Arity::at_least(0), DEEP, |c, a| printed(c, a, Style::Raw, "")),
    Native::leaf("println-str", Arity::at_least(0), DEEP, |c, a| printed(c, a, Style::Raw, "\n")),
    Native::leaf("subs", Arity::between(2, 3), &[], substring),
    Native::unary("name", name),
    Native::unary("namespace", namespace),
    Native::leaf("keyword", Arity::between(1, 2), &[], keyword),
    Native::leaf("symbol", Arity::between(1, 2), &[], symbol),
    Native::unary("read-string", read_string),
    Native::unary("clojure.edn/read-string", |c, a| match &a[0] {
        Value::Nil => Ok(Value::Nil),
        _ => read_string(c, a),
    }),
];

fn str(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    if let [Value::String(_)] = arguments {
        return Ok(arguments[0].clone());
    }
    let most = context.limits.string_bytes;
    let mut text = String::new();
    for value in arguments {
        print(value, Style::Str, most, &mut text)?;
    }
    context.string(text)
}

/// Prints values with a space between them, as the functions `pr` and `print` do.
pub(crate) fn print_all(values: &[Value], style: Style, most: usize) -> Result<String> {
    let mut text = String::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        print(value, style, most, &mut text)?;
    }
    Ok(text)
}

fn printed(context: &mut CallContext<'_>, arguments: &[Value], style: Style, end: &str) -> Result<Value> {
    let mut text = print_all(arguments, style, context.limits.string_bytes)?;
    text.push_str(end);
    context.string(text)
}

pub(super) fn substring(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let function = context.name;
    let text = string(function, &arguments[0])?;
    let start = index(function, &arguments[1])?;
    let from = byte_of(function, text, start)?;
    let to = match arguments.get(2) {
        Some(end) => byte_of(function, text, index(function, end)?)?,
        None => text.len(),
    };
    if from > to {
        let message = format!("{function}: the start {start} lies behind the end");
        return Err(Error::new(ErrorKind::IndexOutOfBounds, message));
    }
    context.string(&text[from..to])
}

fn name(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    match &arguments[0] {
        Value::String(_) => Ok(arguments[0].clone()),
        Value::Keyword(keyword) => context.string(keyword.name()),
        Value::Symbol(symbol) => context.string(symbol.name()),
        other => Err(type_error("name", "a keyword, a symbol or a string", other)),
    }
}

fn namespace(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let namespace = match &arguments[0] {
        Value::Keyword(keyword) => keyword.namespace(),
        Value::Symbol(symbol) => symbol.namespace(),
        other => return Err(type_error("namespace", "a keyword or a symbol", other)),
    };
    namespace.map_or(Ok(Value::Nil), |namespace| context.string(namespace))
}

/// Joins a namespace, which may be `nil`, and a name.
fn full_name(context: &mut CallContext<'_>, namespace: &Value, name: &Value) -> Result<String> {
    fn part<'v>(function: &str, value: &'v Value) -> Result<&'v str> {
        match value {
            Value::String(text) => Ok(text.as_str()),
            Value::Keyword(keyword) => Ok(keyword.full()),
            Value::Symbol(symbol) => Ok(symbol.full()),
            other => Err(type_error(function, "a string", other)),
        }
    }
    let function = context.name;
    let name = part(function, name)?;
    let namespace = match namespace {
        Value::Nil => None,
        namespace => Some(part(function, namespace)?),
    };
    context.text(name.len() + namespace.map_or(0, |namespace| namespace.len() + 1))?;
    Ok(match namespace {
        None => name.to_owned(),
        Some(namespace) => format!("{namespace}/{name}"),
    })
}

fn keyword(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    if let [namespace, name] = arguments {
        return Ok(Value::Keyword(Keyword::new(full_name(context, namespace, name)?)));
    }
    match &arguments[0] {
        Value::Keyword(_) => Ok(arguments[0].clone()),
        Value::String(text) => {
            context.text(text.len())?;
            Ok(Value::keyword(text.as_str()))
        }
        Value::Symbol(symbol) => Ok(Value::keyword(symbol.full())),
        // Clojure returns nil for a value that cannot become a keyword.
        _ => Ok(Value::Nil),
    }
}

fn symbol(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    if let [namespace, name] = arguments {
        return Ok(Value::Symbol(Symbol::new(full_name(context, namespace, name)?)));
    }
    match &arguments[0] {
        Value::Symbol(_) => Ok(arguments[0].clone()),
        Value::String(text) => {
            context.text(text.len())?;
            Ok(Value::symbol(text.as_str()))
        }
        Value::Keyword(keyword) => Ok(Value::symbol(keyword.full())),
        Value::Var(name) => Ok(Value::Symbol(name.clone())),
        other => Err(type_error("symbol", "a string or a keyword", other)),
    }
}

/// Reads the first value of a text without evaluating it.
fn read_string(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let text = string(context.name, &arguments[0])?;
    context.text(text.len())?;
    context.work(text.len())?;
    // The value takes more memory than its text: a form and a value for a few characters.
    context.allocate(text.len().saturating_mul(16))?;
    read_edn_first(text, context)
}

fn read_edn_first(text: &str, context: &CallContext<'_>) -> Result<Value> {
    let limits = context.limits;
    let read = || {
        let reading = ReadLimits::default().with_bytes(limits.string_bytes);
        match Reader::new(text, &reading)?.next_form()? {
            Some(form) => read_edn(form.span.text(text).unwrap_or_default(), limits),
            None => Err(Error::new(ErrorKind::InvalidText, "the text holds no value")),
        }
    };
    read().map_err(|error| without_place(&error))
}

/// Removes the location of an error: a position in a text that the program made is not one in the program.
fn without_place(error: &Error) -> Error {
    let fresh = Error::new(ErrorKind::InvalidText, error.message());
    match error.kind() {
        ErrorKind::InvalidText | ErrorKind::Parse | ErrorKind::IncompleteForm => fresh,
        kind => Error::new(kind, error.message()),
    }
}

/// `.toString` and `String/valueOf`.
pub(super) fn to_string(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let text = str_of(context, &arguments[0])?;
    context.string(text)
}
