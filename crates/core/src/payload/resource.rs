//! The record of a snapshotable resource.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::extra::Extra;
use crate::message::{Large, large};

/// The state of a snapshotable resource at the start of the session, or after a call that changed it.
///
/// It is in the batch of the first record, or of the end of the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceChanged {
    /// The stored name of the resource.
    pub name: String,
    /// State of the resource after the change.
    #[serde(flatten, with = "large::state", skip_serializing_if = "Large::is_null")]
    pub state: Large<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ResourceChanged {
    /// Creates the record of a state.
    pub fn new(name: impl Into<String>, state: Value) -> Self {
        Self { name: name.into(), state: state.into(), extra: Extra::default() }
    }
}
