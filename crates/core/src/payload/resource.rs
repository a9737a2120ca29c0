//! The record of a snapshotable resource.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::extra::Extra;
use crate::message::{Large, large};

/// The state of a snapshotable resource: at the beginning of the session, or after a call that changed it.
///
/// It stands in the batch of what it belongs to: of the first record, or of the end of the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceChanged {
    /// The stored name of the resource.
    pub name: String,
    /// Its state.
    #[serde(flatten, with = "large::state", skip_serializing_if = "Large::is_null")]
    pub state: Large<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ResourceChanged {
    /// The state of the resource with this name.
    pub fn new(name: impl Into<String>, state: Value) -> Self {
        Self { name: name.into(), state: state.into(), extra: Extra::default() }
    }
}
