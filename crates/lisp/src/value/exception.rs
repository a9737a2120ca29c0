//! Exceptions: what `ex-info` makes, `throw` throws and `catch` binds.

use super::{Shape, Text, Value};
use crate::error::{Error, ErrorKind};

/// An exception.
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
    /// What `ex-info` makes.
    pub fn info(message: Option<Text>, data: Value, cause: Value) -> Self {
        let shape = Shape::EMPTY.with(&data).with(&cause);
        let class = "clojure.lang.ExceptionInfo";
        Self { kind: ErrorKind::Thrown, class, message, data, cause, shape, error: None }
    }

    /// What `(Exception. "text")` makes.
    pub fn plain(class: &'static str, message: Option<Text>, cause: Value) -> Self {
        let shape = Shape::EMPTY.with(&cause);
        Self { kind: ErrorKind::Thrown, class, message, data: Value::Nil, cause, shape, error: None }
    }

    /// An error of the language, caught.
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

    /// Which kind of error it is; what a program throws itself is [`ErrorKind::Thrown`].
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The Java class that `catch` and `instance?` take it for.
    pub fn class(&self) -> &'static str {
        self.class
    }

    /// What `ex-message` gives.
    pub fn message(&self) -> Option<&Text> {
        self.message.as_ref()
    }

    /// What `ex-data` gives.
    pub fn data(&self) -> &Value {
        &self.data
    }

    /// What `ex-cause` gives.
    pub fn cause(&self) -> &Value {
        &self.cause
    }

    /// The error this was made of, if the program did not make it itself.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }
}
