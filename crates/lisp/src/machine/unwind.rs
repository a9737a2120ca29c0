//! Error propagation: to a handler, to a frame that handles errors, or out of the fiber.

use std::sync::Arc;

use super::fiber::{Fiber, FiberState, Frame, ThrownError};
use crate::error::{Error, ErrorKind};
use crate::value::{Exception, Value};

/// Returns whether a program may catch an error. Exceeding a limit ends the program: its resources are used
/// up.
pub(super) fn is_catchable(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::FuelExceeded
            | ErrorKind::MemoryExceeded
            | ErrorKind::ToolCallLimitExceeded
            | ErrorKind::PrintLimitExceeded
            | ErrorKind::ParallelismExceeded
            | ErrorKind::Stopped
            | ErrorKind::Internal
    )
}

/// Creates a propagating error from a thrown value.
pub(super) fn raise(value: Value) -> ThrownError {
    let error = match &value {
        Value::Exception(exception) => match exception.error() {
            Some(error) => error.clone(),
            None => {
                let message =
                    exception.message().map_or_else(|| exception.class().to_owned(), |text| text.to_string());
                Error::new(exception.kind(), message)
            }
        },
        other => {
            Error::new(ErrorKind::Type, format!("throw: expected an exception, got {}", other.type_name()))
        }
    };
    let thrown = matches!(value, Value::Exception(_)).then_some(value);
    ThrownError { error, thrown }
}

impl Fiber {
    /// Finds the handler of an error. Returns whether there is one; otherwise the fiber is finished.
    pub(super) fn unwind(&mut self, mut raised: ThrownError) -> bool {
        let catchable = is_catchable(&raised.error);
        while let Some(top) = self.frames.len().checked_sub(1) {
            if let Frame::Code(frame) = &mut self.frames[top] {
                // The location of the error is the innermost code of the program itself.
                let body = frame.closure.body(frame.arity);
                if raised.error.location().is_none()
                    && let Some(source) = &body.source
                    && let Some(span) = body.spans.get(frame.pc.saturating_sub(1))
                {
                    raised.error = raised.error.at(*span).locate(source);
                }
                if let Some(handler) = self.handlers.last()
                    && handler.frame == top
                {
                    let (pc, height) = (handler.pc, handler.height);
                    self.handlers.pop();
                    if catchable {
                        frame.pc = pc;
                        self.stack.truncate(height);
                        self.stack.push(exception(raised));
                        self.pending = FiberState::Run;
                        return true;
                    }
                    continue;
                }
            }
            let Some(frame) = self.frames.pop() else { break };
            if let Frame::Native(mut work, floor) = frame {
                let foreign = work.leaves_foreign();
                if work.captures_prints() {
                    self.strand.prints.end_capture();
                }
                raised.error = work.explained(raised.error);
                let recovered = work.recover(&raised.error);
                if foreign {
                    self.strand.foreign = self.strand.foreign.saturating_sub(1);
                }
                if recovered {
                    self.stack.truncate(floor);
                    self.pending = FiberState::Resume;
                    return true;
                }
            }
        }
        self.stack.clear();
        self.handlers.clear();
        self.pending = FiberState::Done(Err(raised));
        false
    }
}

/// Returns the value that `catch` binds.
pub(super) fn exception(raised: ThrownError) -> Value {
    match raised.thrown {
        Some(value) => value,
        None => {
            let class = class_of(raised.error.kind());
            Value::Exception(Arc::new(Exception::caught(raised.error, class)))
        }
    }
}

/// Returns the Java class that corresponds to a kind of error.
fn class_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Arithmetic => "java.lang.ArithmeticException",
        ErrorKind::Type | ErrorKind::NotCallable => "java.lang.ClassCastException",
        ErrorKind::Arity => "clojure.lang.ArityException",
        ErrorKind::IndexOutOfBounds => "java.lang.IndexOutOfBoundsException",
        ErrorKind::InvalidText => "java.lang.NumberFormatException",
        ErrorKind::InvalidArgument | ErrorKind::NoMatchingClause | ErrorKind::InvalidRegex => {
            "java.lang.IllegalArgumentException"
        }
        ErrorKind::Assertion => "java.lang.AssertionError",
        ErrorKind::Tool => "clojure.lang.ExceptionInfo",
        ErrorKind::StackExceeded => "java.lang.StackOverflowError",
        _ => "java.lang.RuntimeException",
    }
}

/// Returns whether an exception is of a class, for `catch` and `instance?`.
pub(crate) fn is_instance(exception: &Value, class: &str) -> bool {
    let Value::Exception(exception) = exception else { return false };
    let wanted = class.rsplit('.').next().unwrap_or(class);
    let own = exception.class().rsplit('.').next().unwrap_or_default();
    let is_error = matches!(own, "AssertionError" | "StackOverflowError" | "Error");
    match wanted {
        "Throwable" | "Object" => true,
        "Error" => is_error,
        "Exception" => !is_error,
        "RuntimeException" => !is_error && own != "Exception" && own != "IOException",
        "IExceptionInfo" => own == "ExceptionInfo",
        wanted if wanted == own => true,
        "IllegalArgumentException" => {
            matches!(own, "ArityException" | "NumberFormatException" | "PatternSyntaxException")
        }
        // In Clojure a wrong argument type is one of several classes, mostly another one for nil.
        "NullPointerException" | "UnsupportedOperationException" => own == "ClassCastException",
        "StringIndexOutOfBoundsException" | "ArrayIndexOutOfBoundsException" => {
            own == "IndexOutOfBoundsException"
        }
        "DateTimeParseException" => own == "NumberFormatException",
        _ => false,
    }
}
