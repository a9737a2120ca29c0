//! Sections of a prompt that an agent has opened or closed.
//!
//! The slice holds at most one item, with all overrides.

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

/// Visibilities of sections that replace those of the prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VisibilityOverrides {
    overrides: BTreeMap<String, Visibility>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for VisibilityOverrides {
    const NAME: &'static str = "visibility_overrides";
    const POLICY: SlicePolicy = SlicePolicy::State;
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
