//! What can be wrong with a prompt.

use crate::session::SessionError;
use crate::tool::ToolName;

/// A prompt cannot be built, bound or rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// A name is none.
    #[error("{name:?} is not {what}: {reason}")]
    InvalidName {
        /// What it should have been.
        what: &'static str,
        /// What was given.
        name: String,
        /// Why it is refused.
        reason: &'static str,
    },
    /// Two sections stand at one path.
    #[error("there are two sections {path:?}; give one of them another key")]
    DuplicateSection {
        /// The path.
        path: String,
    },
    /// Two sections offer tools of one name, or one that is kept for opening sections.
    #[error("section {path:?} offers the tool {tool}, and there is another one of that name")]
    DuplicateTool {
        /// The section that comes second.
        path: String,
        /// The tool.
        tool: ToolName,
    },
    /// A section is to be shown in short, and there is nothing to show.
    #[error("section {path:?} is to be shown as a summary, and has none")]
    NoSummary {
        /// The section.
        path: String,
    },
    /// The text of a section cannot be read.
    #[error("the text of section {path:?} cannot be read")]
    Template {
        /// The section.
        path: String,
        /// What is wrong with it.
        #[source]
        source: TemplateError,
    },
    /// The parameters cannot be written as JSON.
    #[error("the parameters of the prompt cannot be written as JSON")]
    Parameters(#[source] serde_json::Error),
    /// The parameters have no fields.
    #[error("the parameters of a prompt are an object with a field for each `$field`, and not {found}")]
    NoFields {
        /// What they are.
        found: &'static str,
    },
    /// A text names a field that the parameters do not have.
    #[error("section {path:?} names ${field}, and the parameters have no such field")]
    MissingField {
        /// The section.
        path: String,
        /// The field.
        field: String,
    },
    /// The parameters have a field that no text names.
    #[error("no section names ${field}; the fields are: {}", .known.join(", "))]
    UnknownField {
        /// The field.
        field: String,
        /// The fields that are named.
        known: Vec<String>,
    },
    /// Whether a section is there cannot be said.
    #[error("whether section {path:?} is enabled cannot be said")]
    Enabled {
        /// The section.
        path: String,
        /// What its condition ran into.
        #[source]
        source: SessionError,
    },
    /// How much of a section is shown cannot be said.
    #[error("how much of section {path:?} is shown cannot be said")]
    Visibility {
        /// The section.
        path: String,
        /// What its selector ran into.
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

/// A text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: a `$` is followed by the name of a field, as in `$field` or `${{field}}`; `$$` is the sign itself"
)]
pub struct TemplateError {
    /// The line, from 1.
    pub line: usize,
}
