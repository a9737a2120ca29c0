//! Summaries of what an agent learnt about its workspace.

use serde::{Deserialize, Serialize};

use crate::extra::Extra;
use crate::session::{Slice, SlicePolicy};

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
