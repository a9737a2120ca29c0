//! Sections, as they are written down.

use std::fmt;
use std::sync::Arc;

use crate::session::{Session, SessionError};
use crate::slices::Visibility;
use crate::tool::Tool;

/// Says whether a section is there.
pub(super) type EnabledFn = Arc<dyn Fn(&Session) -> Result<bool, SessionError> + Send + Sync>;

/// Says how much of a section is shown.
pub(super) type Selector = Arc<dyn Fn(&Session) -> Result<Visibility, SessionError> + Send + Sync>;

/// A section of a prompt: a heading, a text, tools, and sections below it.
///
/// A key is unique among its neighbours; the keys from the outermost on, joined by dots, are the section's path.
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

/// Where the text of a section comes from.
#[derive(Clone)]
pub(super) enum Body {
    /// It is written down.
    Text(String),
    /// It is the session's digest for this section; until there is one, it is what is written down.
    Digest(String),
}

impl Section {
    /// A section without text.
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

    /// Says what the section says. `$field` is a parameter, and `$$` the sign itself.
    #[must_use]
    pub fn body(mut self, body: impl Into<String>) -> Self {
        self.body = Body::Text(body.into());
        self
    }

    /// Shows what the session holds as the [digest](crate::slices::WorkspaceDigest) of this section (by its path), shown in
    /// short as the digest's summary; until there is one, this text.
    #[must_use]
    pub fn workspace_digest(mut self, otherwise: impl Into<String>) -> Self {
        self.body = Body::Digest(otherwise.into());
        self
    }

    /// Gives a summary, which is shown where the section is closed. It is open unless somebody closes it.
    #[must_use]
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Shows this summary in place of the section until somebody opens it.
    #[must_use]
    pub fn summarised(self, summary: impl Into<String>) -> Self {
        self.summary(summary).visibility(Visibility::Summary)
    }

    /// Says how much is shown, unless the session overrides it.
    #[must_use]
    pub fn visibility(mut self, visibility: Visibility) -> Self {
        self.visibility = visibility;
        self
    }

    /// Says how much is shown, by the session, unless that overrides it. It is asked when an evaluation starts, and must depend on the
    /// session alone. A section that may be closed needs a summary.
    #[must_use]
    pub fn visibility_by(
        mut self,
        selector: impl Fn(&Session) -> Result<Visibility, SessionError> + Send + Sync + 'static,
    ) -> Self {
        self.selector = Some(Arc::new(selector));
        self
    }

    /// Says when the section is there. It is asked when an evaluation starts, and must depend on the session alone.
    #[must_use]
    pub fn enabled_when(
        mut self,
        enabled: impl Fn(&Session) -> Result<bool, SessionError> + Send + Sync + 'static,
    ) -> Self {
        self.enabled = Some(Arc::new(enabled));
        self
    }

    /// Offers a tool where the section is shown in full.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Offers tools where the section is shown in full.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds a section below.
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
