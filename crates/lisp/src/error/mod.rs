//! The one error of this crate: a kind with a stable name, a message, a place and a hint.
//!
//! Reader, compiler, machine and library all fail with [`Error`]. It knows where in the source something went wrong
//! as a span; whoever holds the source calls [`Error::locate`] once, after which the error can be rendered without it.
//! [`Error::render`] gives the one text that a person sees in a terminal and a model sees in its next message. No
//! text in here mentions the host: no Rust types, no addresses, no file names.

mod kind;
mod location;
mod suggest;

use std::fmt;

pub use kind::ErrorKind;
pub use location::{Location, Span};
pub use suggest::did_you_mean;

/// What a fallible operation of this crate gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something that went wrong in a program, and where.
///
/// The contents are boxed, because results carrying an error are returned everywhere and should stay small.
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
    /// An error of this kind that does not know its place yet.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Details { kind, message: message.into(), span: None, hint: None, location: None }))
    }

    /// The same error at a place. The first place given is kept: it is the innermost one.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    /// The same error with advice on what to write instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same error with line, column and the offending line, taken from the source its span refers to. An error
    /// that has been located stays as it is, so that the innermost source wins.
    #[must_use]
    pub fn locate(mut self, source: &str) -> Self {
        if self.0.location.is_none()
            && let Some(span) = self.0.span
        {
            self.0.location = Some(Location::find(source, span));
        }
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What went wrong, in one sentence without a full stop.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it went wrong, if that is known.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// What might be written instead.
    pub fn advice(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Line and column, once the error has been located.
    pub fn location(&self) -> Option<&Location> {
        self.0.location.as_ref()
    }

    /// The line, counted from 1, once the error has been located.
    pub fn line(&self) -> Option<u32> {
        self.0.location.as_ref().map(|location| location.line)
    }

    /// The column in Unicode scalars, counted from 1, once the error has been located.
    pub fn column(&self) -> Option<u32> {
        self.0.location.as_ref().map(|location| location.column)
    }

    /// The whole text for a person or a model: kind and message, the line with a caret below, the hint.
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
