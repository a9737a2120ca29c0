//! The declaration of a tool: plain data, without the code behind it.
//!
//! A [`ToolSpec`] holds what a model reads (name, description, parameters) and what the runtime has to know: the effect of the tool on
//! the world, its use of files and of snapshotable resources, approval, and a time limit. Ports carry it, so it depends on none of them;
//! [`tool`](crate::tool) adds the handler.

mod name;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use name::{InvalidToolName, ToolName};

use crate::digest::Digest;
use crate::journal::Effect;

/// Whether a tool uses the files of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceUse {
    /// It does not.
    None,
    /// It reads them, beside others that do.
    Read,
    /// It changes them, alone; only this costs a scan and a snapshot.
    Write,
}

impl WorkspaceUse {
    /// What holds unless a tool says otherwise: pure tools read, all others write.
    pub fn default_of(effect: Effect) -> Self {
        match effect {
            Effect::Pure => Self::Read,
            Effect::Workspace | Effect::Idempotent | Effect::External => Self::Write,
        }
    }
}

/// Whether a tool uses the snapshotable resources of its session.
///
/// It is declared beside the use of files, and one hold covers both: readers share it, a writer has it alone, and it is granted
/// in the order of the calls of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceUse {
    /// It does not. This holds unless a tool declares something else.
    #[default]
    None,
    /// It reads them, beside other readers.
    Read,
    /// It changes them, alone.
    Write,
}

impl ResourceUse {
    /// Whether nothing is used.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Whether a person has to approve each call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Nobody has to.
    #[default]
    NotNeeded,
    /// Someone has to, each time.
    Needed,
}

/// A call as it may look, for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolExample {
    /// When one would make it.
    pub description: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// What it would give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// What is known of a tool before it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: ToolName,
    /// What it does, for the model.
    pub description: String,
    /// Its parameters, as a JSON Schema of an object.
    pub parameters: Value,
    /// Its result, as a JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What it may do to the world.
    pub effect: Effect,
    /// Whether it uses files.
    pub workspace: WorkspaceUse,
    /// Whether it uses snapshotable resources.
    #[serde(default, skip_serializing_if = "ResourceUse::is_none")]
    pub resources: ResourceUse,
    /// Whether a person has to approve each call.
    #[serde(default)]
    pub approval: Approval,
    /// How long a call may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Calls as they may look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ToolExample>,
}

impl ToolSpec {
    /// A tool without parameters whose effect is not declared, and so taken for the worst.
    pub fn new(name: ToolName, description: impl Into<String>) -> Self {
        Self {
            name,
            description: description.into(),
            parameters: no_parameters(),
            output: None,
            effect: Effect::default(),
            workspace: WorkspaceUse::default_of(Effect::default()),
            resources: ResourceUse::default(),
            approval: Approval::default(),
            timeout: None,
            examples: Vec::new(),
        }
    }

    /// A digest of the contract: what a model was told and what it may rely on.
    pub fn contract_digest(&self) -> Result<Digest, serde_json::Error> {
        Digest::of_json(&(&self.name, &self.description, &self.parameters, &self.output))
    }
}

/// The schema of a tool without parameters.
pub(crate) fn no_parameters() -> Value {
    serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false})
}
