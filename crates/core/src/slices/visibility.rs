//! Which sections of a prompt an agent has opened or closed.
//!
//! The slice holds one item at most: the latest says everything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::extra::Extra;
use crate::session::{Slice, SlicePolicy};

/// How much of a section is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// All of it, and its tools are offered.
    Full,
    /// Its summary.
    Summary,
}

/// What holds for sections instead of what the prompt says about them.
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
    /// What holds for the section at this path (its keys from the outermost on, joined by dots), when it was overridden.
    pub fn get(&self, path: &str) -> Option<Visibility> {
        self.overrides.get(path).copied()
    }

    /// Overrides what the prompt says about a section.
    pub fn set(&mut self, path: impl Into<String>, visibility: Visibility) {
        self.overrides.insert(path.into(), visibility);
    }

    /// Lets hold again what the prompt says about a section.
    pub fn remove(&mut self, path: &str) {
        self.overrides.remove(path);
    }

    /// All overrides, in the order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Visibility)> {
        self.overrides.iter().map(|(path, visibility)| (path.as_str(), *visibility))
    }
}
