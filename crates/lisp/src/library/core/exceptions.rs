//! Functions that create and inspect exceptions.

use std::sync::Arc;

use super::{DEEP, NOT};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, CallContext, Native, type_error};
use crate::printer::{Truncation, to_clojure_without_hidden};
use crate::value::{Exception, Text, Value};

macro_rules! constructors {
    ($($name:literal => $class:literal,)*) => {
        pub(crate) const CONSTRUCTORS: &[Native] =
            &[$(Native::leaf($name, Arity::between(0, 2), NOT, |_, a| plain($class, a)),)*];

        /// The classes of the exceptions that programs can create.
        pub(crate) const THROWABLE: &[&str] = &[$($class,)*];
    };
}

constructors! {
    "Exception." => "java.lang.Exception",
    "RuntimeException." => "java.lang.RuntimeException",
    "IllegalArgumentException." => "java.lang.IllegalArgumentException",
    "IllegalStateException." => "java.lang.IllegalStateException",
    "ArithmeticException." => "java.lang.ArithmeticException",
    "UnsupportedOperationException." => "java.lang.UnsupportedOperationException",
    "IndexOutOfBoundsException." => "java.lang.IndexOutOfBoundsException",
    "NullPointerException." => "java.lang.NullPointerException",
    "NumberFormatException." => "java.lang.NumberFormatException",
    "ClassCastException." => "java.lang.ClassCastException",
    "Error." => "java.lang.Error",
    "AssertionError." => "java.lang.AssertionError",
    "Throwable." => "java.lang.Throwable",
}

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("ex-info", Arity::between(2, 3), NOT, ex_info),
    Native::unary("ex-message", |_, a| Ok(message(&a[0]))),
    Native::unary("ex-data", |_, a| {
        Ok(match &a[0] {
            Value::Exception(exception) => exception.data().clone(),
            _ => Value::Nil,
        })
    }),
    Native::unary("ex-cause", |_, a| Ok(cause(&a[0]))),
    Native::unary(".getMessage", |_, a| Ok(message(&a[0]))),
    Native::unary(".getCause", |_, a| Ok(cause(&a[0]))),
    Native::unary("text-of*", |_, a| match &a[0] {
        Value::String(_) => Ok(a[0].clone()),
        other => Err(type_error("replace", "a string from the function", other)),
    }),
    Native::leaf("no-matching-clause*", Arity::exactly(1), DEEP, |_, a| {
        // A text may be secret, and the message may be shown to a model.
        let text = match &a[0] {
            value @ (Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::Keyword(_)) => {
                to_clojure_without_hidden(value, Truncation::SAMPLE)
            }
            other => format!("a {}", other.type_name()),
        };
        let error = Error::new(ErrorKind::NoMatchingClause, format!("no matching clause: {text}"));
        Err(error.hint("end it with a default"))
    }),
    Native::leaf("assertion-failed*", Arity::between(1, 2), DEEP, |_, a| {
        let text = |value: &Value| match value {
            Value::String(text) => text.to_string(),
            other => format!("{other:?}"),
        };
        let message = match a {
            [form, message] => format!("Assert failed: {}\n{}", text(message), text(form)),
            _ => format!("Assert failed: {}", text(&a[0])),
        };
        Err(Error::new(ErrorKind::Assertion, message))
    }),
];

fn plain(class: &'static str, arguments: &[Value]) -> Result<Value> {
    let message = match arguments.first() {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Nil) | None => None,
        Some(other) => return Err(type_error("an exception", "a string as its message", other)),
    };
    let cause = arguments.get(1).cloned().unwrap_or_default();
    Ok(Value::Exception(Arc::new(Exception::plain(class, message, cause))))
}

fn ex_info(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let message: Option<Text> = match &arguments[0] {
        Value::String(text) => Some(text.clone()),
        Value::Nil => None,
        other => return Err(type_error("ex-info", "a string as its message", other)),
    };
    let data = match &arguments[1] {
        Value::Map(_) => arguments[1].clone(),
        Value::Nil => return Err(Error::argument("ex-info: additional data must be non-nil")),
        other => return Err(type_error("ex-info", "a map as its data", other)),
    };
    let cause = arguments.get(2).cloned().unwrap_or_default();
    Ok(Value::Exception(Arc::new(Exception::info(message, data, cause))))
}

fn message(value: &Value) -> Value {
    match value {
        Value::Exception(exception) => {
            exception.message().map_or(Value::Nil, |text| Value::String(text.clone()))
        }
        _ => Value::Nil,
    }
}

fn cause(value: &Value) -> Value {
    match value {
        Value::Exception(exception) => exception.cause().clone(),
        _ => Value::Nil,
    }
}
