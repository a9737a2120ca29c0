//! How a tool fails.

use std::fmt;

use super::context::ContextError;
use crate::message::Retry;
use crate::session::BoxError;

/// A tool failed. All that it did is rolled back.
///
/// Any error turns into one by `?`, so handlers need no mapping. For that reason it is not itself a
/// [`std::error::Error`]; its [`source`](ToolError::source) is.
///
/// ```
/// use backstitch_core::message::Retry;
/// use backstitch_core::tool::ToolError;
///
/// fn parse(row: &str) -> Result<u32, ToolError> {
///     if row.is_empty() {
///         return Err(ToolError::Validation { message: "`row` is empty; give a number".into() });
///     }
///     Ok(row.parse()?) // any error turns into one
/// }
/// assert!(matches!(parse(""), Err(ToolError::Validation { .. })));
/// assert!(matches!(parse("x"), Err(ToolError::Failed { retry: Retry::Refused, .. })));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolError {
    /// It failed, and the model is told.
    Failed {
        /// A stable word for the kind of error.
        kind: String,
        /// What happened, for the model.
        message: String,
        /// Whether trying again may help.
        retry: Retry,
        /// What lies below.
        source: Option<BoxError>,
    },
    /// The arguments are well-formed but make no sense, and the model is told.
    Validation {
        /// What is wrong and what to do.
        message: String,
    },
    /// Sections of the prompt have to be open first: the call counts as never made.
    VisibilityExpansionRequired {
        /// The sections.
        sections: Vec<String>,
        /// Why.
        reason: String,
    },
    /// The evaluation's deadline has passed: the evaluation ends.
    DeadlineExceeded,
    /// The context was used after it was revoked.
    Revoked,
}

impl ToolError {
    /// A failure with this message.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::of_kind("tool_failed", message)
    }

    /// A failure of this kind with this message.
    pub fn of_kind(kind: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Failed { kind: kind.into(), message: message.to_string(), retry: Retry::Refused, source: None }
    }

    /// A failure that may go away when tried again.
    pub fn retryable(kind: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Failed { kind: kind.into(), message: message.to_string(), retry: Retry::Allowed, source: None }
    }

    /// What lies below.
    pub fn source(&self) -> Option<&BoxError> {
        match self {
            Self::Failed { source, .. } => source.as_ref(),
            _ => None,
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { message, .. } | Self::Validation { message } => formatter.write_str(message),
            Self::VisibilityExpansionRequired { sections, reason } => {
                write!(formatter, "the sections {} have to be open: {reason}", sections.join(", "))
            }
            Self::DeadlineExceeded => formatter.write_str("the evaluation's deadline has passed"),
            Self::Revoked => formatter.write_str("the call has ended"),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let source: BoxError = Box::new(error);
        match source.downcast_ref::<ContextError>() {
            Some(ContextError::Revoked) => return Self::Revoked,
            Some(ContextError::DeadlineExceeded) => return Self::DeadlineExceeded,
            _ => {}
        }
        let message = with_causes(&*source);
        Self::Failed { kind: "tool_failed".to_owned(), message, retry: Retry::Refused, source: Some(source) }
    }
}

/// An error's text with those below it, for a model or a person who sees nothing else.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
