//! Errors of prompts.

use crate::session::SessionError;
use crate::tool::ToolName;

/// A prompt cannot be built, bound or rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// A name is invalid.
    #[error("{name:?} is not {what}: {reason}")]
    InvalidName {
        /// Kind of name that was expected.
        what: &'static str,
        /// The rejected name.
        name: String,
        /// The rule that the name breaks.
        reason: &'static str,
    },
    /// Two sections have the same path.
    #[error("there are two sections {path:?}; give one of them another key")]
    DuplicateSection {
        /// The path.
        path: String,
    },
    /// Two sections offer tools of one name, or a tool has a reserved name.
    #[error("section {path:?} offers the tool {tool}, and there is another one of that name")]
    DuplicateTool {
        /// The second section.
        path: String,
        /// The tool.
        tool: ToolName,
    },
    /// A section without a summary should be shown as one.
    #[error("section {path:?} is to be shown as a summary, and has none")]
    NoSummary {
        /// The section.
        path: String,
    },
    /// The text of a section is not a valid template.
    #[error("the text of section {path:?} cannot be read")]
    Template {
        /// The section.
        path: String,
        /// Position of the error.
        #[source]
        source: TemplateError,
    },
    /// The parameters cannot be written as JSON.
    #[error("the parameters of the prompt cannot be written as JSON")]
    Parameters(#[source] serde_json::Error),
    /// The parameters are not an object.
    #[error("the parameters of a prompt are an object with a field for each `$field`, and not {found}")]
    NoFields {
        /// Type of the parameters.
        found: &'static str,
    },
    /// A text uses a field that the parameters do not have.
    #[error("section {path:?} names ${field}, and the parameters have no such field")]
    MissingField {
        /// The section.
        path: String,
        /// The field.
        field: String,
    },
    /// The parameters have a field that no text uses.
    #[error("no section names ${field}; the fields are: {}", .known.join(", "))]
    UnknownField {
        /// The field.
        field: String,
        /// The fields that texts use.
        known: Vec<String>,
    },
    /// The condition of a section failed.
    #[error("the condition of section {path:?} failed")]
    Enabled {
        /// The section.
        path: String,
        /// Error of the condition.
        #[source]
        source: SessionError,
    },
    /// The selector of a section failed.
    #[error("the visibility of section {path:?} could not be determined")]
    Visibility {
        /// The section.
        path: String,
        /// Error of the selector.
        #[source]
        source: SessionError,
    },
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A contract cannot be written as JSON.
    #[error("the contract of a tool or of the output cannot be written as JSON")]
    Contract(#[source] serde_json::Error),
}

/// A text is not a valid template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: a `$` is followed by the name of a field, as in `$field` or `${{field}}`; `$$` is the sign itself"
)]
pub struct TemplateError {
    /// Number of the line, from 1.
    pub line: usize,
}
