//! Lines of a log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JsonObject;
use crate::journal::Position;
use crate::report::Version;
use crate::time::Timestamp;

/// A record as it was appended, and where it stands in the history of its session. The command prints each as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Version of the form.
    pub v: Version,
    /// Its position.
    pub position: Position,
    /// When it was made.
    pub at: Timestamp,
    /// Its kind.
    pub kind: String,
    /// Version of the kind's data.
    pub version: u32,
    /// Its data, exactly. Large content is named by its object.
    pub data: Value,
    /// Fields of the record that this version does not know. Left out if there are none.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub extra: JsonObject,
    /// Its branch.
    pub branch: u64,
    /// Whether it is still visible.
    pub visible: bool,
    /// The line for people. Its wording is not stable.
    pub text: String,
    /// The tool of the call that a pause is about. Left out of other records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The arguments of the call that a pause is about. Left out of other records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}
