//! Sections of a prompt: those that an agent has opened or closed, and summaries of what it learnt about its workspace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::extra::Extra;
use crate::session::{Slice, SlicePolicy};

/// Shown extent of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// The whole section is shown, and its tools are offered.
    Full,
    /// Only the summary is shown.
    Summary,
}

/// Visibilities of sections that replace those of the prompt. The slice holds at most one item, with all overrides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VisibilityOverrides {
    overrides: BTreeMap<String, Visibility>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for VisibilityOverrides {
    const NAME: &'static str = "visibility_overrides";
}

impl VisibilityOverrides {
    /// Returns the override of the section at this path (its keys from the outermost, joined by dots).
    pub fn get(&self, path: &str) -> Option<Visibility> {
        self.overrides.get(path).copied()
    }

    /// Overrides the visibility of a section.
    pub fn set(&mut self, path: impl Into<String>, visibility: Visibility) {
        self.overrides.insert(path.into(), visibility);
    }

    /// Removes an override, so that the prompt decides again.
    pub fn remove(&mut self, path: &str) {
        self.overrides.remove(path);
    }

    /// Iterates over all overrides, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Visibility)> {
        self.overrides.iter().map(|(path, visibility)| (path.as_str(), *visibility))
    }
}

/// A description of the workspace for one section of the prompt. The latest item of each section counts;
/// insert it with [`upsert_by`](crate::session::upsert_by) and the section's key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkspaceDigest {
    /// The section that shows the description.
    pub section_key: String,
    /// Summary of a few lines.
    pub summary: String,
    /// The whole description.
    pub body: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for WorkspaceDigest {
    const NAME: &'static str = "workspace_digest";
    const POLICY: SlicePolicy = SlicePolicy::Cache;
}

impl WorkspaceDigest {
    /// Creates a digest for a section.
    pub fn new(section_key: impl Into<String>, summary: impl Into<String>, body: impl Into<String>) -> Self {
        let (section_key, summary, body) = (section_key.into(), summary.into(), body.into());
        Self { section_key, summary, body, extra: Extra::default() }
    }
}
