//! The declaration of a tool: plain data, without its code.
//!
//! A [`ToolSpec`] holds what a model reads (name, description, parameters) and what the runtime has to know:
//! the effect class of the tool, its use of files and of snapshotable resources, approval, and a time limit.
//! Ports carry it, so it depends on none of them; [`tool`](crate::tool) adds the handler.

mod name;
mod rights;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use name::{InvalidToolName, ToolName};
pub use rights::{CommandLimit, asks_for_rights};

use crate::digest::Digest;
use crate::journal::Effect;

/// A tool's use of the workspace's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceUse {
    /// The tool uses no files.
    None,
    /// The tool reads files, concurrently with other readers.
    Read,
    /// The tool changes files, exclusively. Only this costs a scan and a snapshot.
    Write,
}

impl WorkspaceUse {
    /// The default: pure tools read, all others write.
    pub fn default_of(effect: Effect) -> Self {
        if effect.only_reads() { Self::Read } else { Self::Write }
    }
}

/// A tool's use of the session's snapshotable resources.
///
/// It is declared in addition to the use of files, and one hold covers both: readers share it, a writer is
/// exclusive, and it is granted in the order of the calls of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceUse {
    /// The tool uses no resources. This is the default.
    #[default]
    None,
    /// The tool reads resources, concurrently with other readers.
    Read,
    /// The tool changes resources, exclusively.
    Write,
}

impl ResourceUse {
    /// Returns whether no resources are used.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Whether a person has to approve each call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Calls run without approval, unless the mode of the agent asks.
    #[default]
    NotNeeded,
    /// Calls run without approval, also in a mode that would ask. What a mode refuses stays refused.
    Waived,
    /// A person has to approve each call.
    Needed,
}

/// An example call for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolExample {
    /// Purpose of the call.
    pub description: String,
    /// Arguments of the call.
    pub arguments: Map<String, Value>,
    /// Expected result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// The declaration of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name by which the model calls it.
    pub name: ToolName,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the parameters, an object.
    pub parameters: Value,
    /// JSON Schema of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Effect class.
    pub effect: Effect,
    /// Use of files.
    pub workspace: WorkspaceUse,
    /// Use of snapshotable resources.
    #[serde(default, skip_serializing_if = "ResourceUse::is_none")]
    pub resources: ResourceUse,
    /// Whether a person has to approve each call.
    #[serde(default)]
    pub approval: Approval,
    /// The argument by which a call asks for more rights than the tool has. With it, the call is external, and a person
    /// has to approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights_argument: Option<String>,
    /// What its commands may change, if it runs commands in a sandbox. Modes treat them apart from other tools, because the
    /// sandbox holds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<CommandLimit>,
    /// The argument with the address that a call reads over the network. Such a call changes nothing, but its address leaves
    /// the machine: modes ask about it, and rules are about its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_argument: Option<String>,
    /// Time limit of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Example calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ToolExample>,
}

impl ToolSpec {
    /// Declares a tool without parameters, with the default effect class, the most careful one.
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
            rights_argument: None,
            commands: None,
            address_argument: None,
            timeout: None,
            examples: Vec::new(),
        }
    }

    /// Returns whether a call asks for more rights than the tool has.
    pub fn asks_for_rights(&self, arguments: &Map<String, Value>) -> bool {
        let given = self.rights_argument.as_ref().and_then(|name| arguments.get(name));
        given.is_some_and(asks_for_rights)
    }

    /// Returns the effect of a call: that of the tool, unless the call asks for more rights.
    pub fn effect_of(&self, arguments: &Map<String, Value>) -> Effect {
        if self.asks_for_rights(arguments) { Effect::External } else { self.effect }
    }

    /// Returns the strongest effect that a call can have.
    pub fn strongest_effect(&self) -> Effect {
        if self.rights_argument.is_some() { Effect::External } else { self.effect }
    }

    /// Computes a digest of the contract: everything that a model received and may rely on.
    pub fn contract_digest(&self) -> Result<Digest, serde_json::Error> {
        Digest::of_json(&(&self.name, &self.description, &self.parameters, &self.output))
    }
}

/// The schema of a tool without parameters.
pub(crate) fn no_parameters() -> Value {
    serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false})
}
