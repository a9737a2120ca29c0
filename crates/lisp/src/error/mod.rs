//! The error type of this crate: a kind with a stable name, a message, a span and a hint.
//!
//! Reader, compiler, machine and library all fail with [`Error`]. It stores a span of the source; the owner
//! of the source calls [`Error::locate`] once, and then the error can be rendered without the source.
//! [`Error::render`] returns the same text for terminals and for models. No text in here mentions the host:
//! no Rust types, no addresses, no file names.

mod kind;
mod location;
mod suggest;

use std::fmt;

pub use kind::ErrorKind;
pub use location::{Location, Span};
pub use suggest::did_you_mean;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a program, with its location.
///
/// The contents are boxed to keep results small.
#[derive(Clone, PartialEq, Debug)]
pub struct Error(Box<Details>);

#[derive(Clone, PartialEq, Debug)]
struct Details {
    kind: ErrorKind,
    message: String,
    span: Option<Span>,
    hint: Option<String>,
    location: Option<Location>,
}

impl Error {
    /// Creates an error without a location.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Details { kind, message: message.into(), span: None, hint: None, location: None }))
    }

    /// Creates the error of an argument of the right type that a function cannot take.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Adds a span. The first span is kept: it is the innermost one.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    /// Adds advice on what to write instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds line, column and the offending line from the source of its span. An error that is already located
    /// does not change, so that the innermost source wins.
    #[must_use]
    pub fn locate(mut self, source: &str) -> Self {
        if self.0.location.is_none()
            && let Some(span) = self.0.span
        {
            self.0.location = Some(Location::find(source, span));
        }
        self
    }

    /// Sets the location, in place of the one that it has.
    pub(crate) fn located(mut self, location: Location) -> Self {
        self.0.location = Some(location);
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message: one sentence without a full stop.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the span, if it is known.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// Returns the hint: what to write instead.
    pub fn advice(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns line and column, once the error is located.
    pub fn location(&self) -> Option<&Location> {
        self.0.location.as_ref()
    }

    /// Returns the line, counted from 1, once the error is located.
    pub fn line(&self) -> Option<u32> {
        self.0.location.as_ref().map(|location| location.line)
    }

    /// Returns the column in Unicode scalars, counted from 1, once the error is located.
    pub fn column(&self) -> Option<u32> {
        self.0.location.as_ref().map(|location| location.column)
    }

    /// Renders the whole text for a person or a model: kind and message, the line with a caret below, the
    /// hint.
    pub fn render(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)?;
        if let Some(location) = &self.0.location {
            write!(f, "\n{location}")?;
        }
        if let Some(hint) = &self.0.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
