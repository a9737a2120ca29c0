//! Exceptions: created by `ex-info`, thrown by `throw` and bound by `catch`.

use super::{Shape, Text, Value};
use crate::error::{Error, ErrorKind};

/// An exception of the language, with the Java class that `catch` sees.
pub struct Exception {
    kind: ErrorKind,
    class: &'static str,
    message: Option<Text>,
    data: Value,
    cause: Value,
    shape: Shape,
    error: Option<Error>,
}

impl Exception {
    /// Creates the exception of `ex-info`.
    pub fn info(message: Option<Text>, data: Value, cause: Value) -> Self {
        let shape = Shape::EMPTY.with(&data).with(&cause);
        let class = "clojure.lang.ExceptionInfo";
        Self { kind: ErrorKind::Thrown, class, message, data, cause, shape, error: None }
    }

    /// Creates the exception of `(Exception. "text")`.
    pub fn plain(class: &'static str, message: Option<Text>, cause: Value) -> Self {
        let shape = Shape::EMPTY.with(&cause);
        Self { kind: ErrorKind::Thrown, class, message, data: Value::Nil, cause, shape, error: None }
    }

    /// Creates an exception from a caught error of the language.
    pub(crate) fn caught(error: Error, class: &'static str) -> Self {
        Self {
            kind: error.kind(),
            class,
            message: Some(Text::new(error.message())),
            data: Value::Nil,
            cause: Value::Nil,
            shape: Shape::EMPTY,
            error: Some(error),
        }
    }

    /// Returns the kind of error; [`ErrorKind::Thrown`] if the program created the exception.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the Java class for `catch` and `instance?`.
    pub fn class(&self) -> &'static str {
        self.class
    }

    /// Returns the result of `ex-message`.
    pub fn message(&self) -> Option<&Text> {
        self.message.as_ref()
    }

    /// Returns the result of `ex-data`.
    pub fn data(&self) -> &Value {
        &self.data
    }

    /// Returns the result of `ex-cause`.
    pub fn cause(&self) -> &Value {
        &self.cause
    }

    /// Returns the original error, unless the program created the exception.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }
}
