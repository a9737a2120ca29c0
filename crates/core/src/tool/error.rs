//! Errors of tools.

use std::fmt;

use super::context::ContextError;
use crate::message::Retry;
use crate::session::BoxError;

/// A tool failed. All of its changes are rolled back.
///
/// Any error converts into one by `?`, so handlers need no mapping. For that reason it does not implement
/// [`std::error::Error`]; its [`source`](ToolError::source) does.
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
    /// The tool failed. The model receives the message.
    Failed {
        /// Stable word for the kind of error.
        kind: String,
        /// Error message for the model.
        message: String,
        /// Whether a retry may help.
        retry: Retry,
        /// Underlying error.
        source: Option<BoxError>,
    },
    /// The arguments fit the schema but are not usable. The model receives the message.
    Validation {
        /// The problem and how to fix it.
        message: String,
    },
    /// Sections of the prompt have to be opened first. The call is discarded.
    VisibilityExpansionRequired {
        /// Paths of the sections.
        sections: Vec<String>,
        /// Reason given by the tool.
        reason: String,
    },
    /// The evaluation's deadline has passed: the evaluation ends.
    DeadlineExceeded,
    /// The context was used after it was revoked.
    Revoked,
}

impl ToolError {
    /// Creates a failure with this message.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::of_kind("tool_failed", message)
    }

    /// Creates a failure of this kind with this message.
    pub fn of_kind(kind: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Failed { kind: kind.into(), message: message.to_string(), retry: Retry::Refused, source: None }
    }

    /// Creates a failure that a retry may fix.
    pub fn retryable(kind: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Failed { kind: kind.into(), message: message.to_string(), retry: Retry::Allowed, source: None }
    }

    /// Underlying error.
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

/// Joins the text of an error and those of its causes, for readers who see nothing else.
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
