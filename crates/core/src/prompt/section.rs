//! Definitions of sections.

use std::fmt;
use std::sync::Arc;

use crate::session::{Session, SessionError};
use crate::slices::Visibility;
use crate::tool::Tool;

/// Decides whether a section is enabled.
pub(super) type EnabledFn = Arc<dyn Fn(&Session) -> Result<bool, SessionError> + Send + Sync>;

/// Decides how much of a section is shown.
pub(super) type Selector = Arc<dyn Fn(&Session) -> Result<Visibility, SessionError> + Send + Sync>;

/// A section of a prompt: a heading, a text, tools, and sections below it.
///
/// A key is unique among its siblings. The keys from the outermost section, joined by dots, are the section's
/// path.
#[derive(Clone)]
pub struct Section {
    pub(super) key: String,
    pub(super) title: String,
    pub(super) body: Body,
    pub(super) summary: Option<String>,
    pub(super) visibility: Visibility,
    pub(super) selector: Option<Selector>,
    pub(super) enabled: Option<EnabledFn>,
    pub(super) tools: Vec<Tool>,
    pub(super) children: Vec<Section>,
}

/// Source of the text of a section.
#[derive(Clone)]
pub(super) enum Body {
    /// A fixed text.
    Text(String),
    /// The session's digest for this section, or this text until there is one.
    Digest(String),
}

impl Section {
    /// Creates a section without text.
    pub fn new(key: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            title: title.into(),
            body: Body::Text(String::new()),
            summary: None,
            visibility: Visibility::Full,
            selector: None,
            enabled: None,
            tools: Vec::new(),
            children: Vec::new(),
        }
    }

    /// Sets the text. `$field` is a parameter, and `$$` is a literal `$`.
    #[must_use]
    pub fn body(mut self, body: impl Into<String>) -> Self {
        self.body = Body::Text(body.into());
        self
    }

    /// Shows the session's [digest](crate::slices::WorkspaceDigest) of this section (by its path), or the
    /// digest's summary if the section is closed. Until there is a digest, this text is shown.
    #[must_use]
    pub fn workspace_digest(mut self, otherwise: impl Into<String>) -> Self {
        self.body = Body::Digest(otherwise.into());
        self
    }

    /// Sets the summary that is shown while the section is closed. The section is open by default.
    #[must_use]
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Sets the summary, and closes the section by default.
    #[must_use]
    pub fn summarised(self, summary: impl Into<String>) -> Self {
        self.summary(summary).visibility(Visibility::Summary)
    }

    /// Sets the shown extent. The session may override it.
    #[must_use]
    pub fn visibility(mut self, visibility: Visibility) -> Self {
        self.visibility = visibility;
        self
    }

    /// Chooses the shown extent by the session, which may also override it. The function is called when an
    /// evaluation starts, and must depend on the session alone. A section that may be closed needs a summary.
    #[must_use]
    pub fn visibility_by(
        mut self,
        selector: impl Fn(&Session) -> Result<Visibility, SessionError> + Send + Sync + 'static,
    ) -> Self {
        self.selector = Some(Arc::new(selector));
        self
    }

    /// Enables the section only under a condition. The function is called when an evaluation starts, and must
    /// depend on the session alone.
    #[must_use]
    pub fn enabled_when(
        mut self,
        enabled: impl Fn(&Session) -> Result<bool, SessionError> + Send + Sync + 'static,
    ) -> Self {
        self.enabled = Some(Arc::new(enabled));
        self
    }

    /// Offers a tool while the section is shown in full.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Offers tools while the section is shown in full.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds a child section.
    #[must_use]
    pub fn child(mut self, section: Section) -> Self {
        self.children.push(section);
        self
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Section")
            .field("key", &self.key)
            .field("title", &self.title)
            .field("visibility", &self.visibility)
            .field("children", &self.children)
            .finish_non_exhaustive()
    }
}
