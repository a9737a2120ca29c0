//! What differs in the working state between two points, item by item, and who wrote it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, SessionId};
use crate::journal::Position;
use crate::report::Version;

/// The items of the working state that differ between two points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateDiff {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The first point.
    pub from: String,
    /// The second point.
    pub to: String,
    /// The slices that differ.
    pub slices: Vec<SliceDiff>,
    /// Whether items are left out, because there are too many.
    pub is_cut: bool,
}

/// The items of a slice that differ between two points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SliceDiff {
    /// The stored name of the slice.
    pub name: String,
    /// Items of the first point that the second has not.
    pub removed: Vec<Value>,
    /// Items of the second point that the first has not.
    pub added: Vec<WrittenItem>,
}

/// An item, and what wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenItem {
    /// The item.
    pub item: Value,
    /// The record that wrote it last; `null` if that is not known, as for one that a snapshot brought.
    pub writer: Option<ItemWriter>,
}

/// The record that wrote an item of the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemWriter {
    /// The session of the record: for a fork, possibly its parent.
    pub session: SessionId,
    /// The position of the record.
    pub position: Position,
    /// The call that it belongs to; `null` for a change outside of calls.
    pub call: Option<CallId>,
    /// The tool of the call.
    pub tool: Option<String>,
}
