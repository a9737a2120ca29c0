//! Tools as a server listed them.

use backstitch_core::digest::Digest;
use backstitch_core::journal::Effect;
use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a server says about the effects of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// The tool changes nothing.
    #[serde(default)]
    pub read_only: bool,
    /// A repeated call changes nothing more.
    #[serde(default)]
    pub idempotent: bool,
}

/// A tool, as a server listed it when it was pinned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PinnedTool {
    /// The server's name of the tool.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// JSON Schema of the parameters.
    pub parameters: Value,
    /// What the server says about its effects.
    #[serde(default)]
    pub hints: Hints,
}

impl PinnedTool {
    pub(super) fn of(tool: &Tool) -> Self {
        let annotations = tool.annotations.as_ref();
        let hints = Hints {
            read_only: annotations.and_then(|known| known.read_only_hint).unwrap_or_default(),
            idempotent: annotations.and_then(|known| known.idempotent_hint).unwrap_or_default(),
        };
        let described = tool.description.as_deref().filter(|text| !text.trim().is_empty());
        let description = described.or(tool.title.as_deref()).unwrap_or(&tool.name).to_owned();
        Self { name: tool.name.to_string(), description, parameters: tool.schema_as_json_value(), hints }
    }

    /// Returns the effect class that follows from the hints.
    pub fn effect(&self) -> Effect {
        match self.hints {
            Hints { read_only: true, .. } => Effect::Pure,
            Hints { idempotent: true, .. } => Effect::Idempotent,
            Hints { .. } => Effect::External,
        }
    }

    /// Returns the digest of everything that is pinned: the name, the description, the parameters and the hints.
    pub(super) fn digest(&self) -> Digest {
        Digest::of_json(self).expect("invariant: a tool that was read from JSON has a text")
    }

    /// True if a model that knows this tool may call the other one. The description may differ.
    pub(super) fn is_compatible(&self, other: &Self) -> bool {
        let digest = |tool: &Self| Digest::of_json(&(&tool.name, &tool.parameters)).ok();
        digest(self) == digest(other)
    }
}
