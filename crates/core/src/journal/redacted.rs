//! The record of a redaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Position;
use crate::extra::Extra;
use crate::object::ObjectId;

/// A value was removed from records before this one, or from objects. The value itself is recorded nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordsRedacted {
    /// The records of this session whose texts were changed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub positions: Vec<Position>,
    /// The number of replacements in these records.
    #[serde(default)]
    pub replacements: u64,
    /// The objects whose content was removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectRedacted>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An object whose content was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRedacted {
    /// Names the object.
    pub object: ObjectId,
    /// The redacted copy that records name instead, if there is one. Files of a workspace have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<ObjectId>,
}

impl RecordsRedacted {
    /// The redacted copies of objects.
    pub fn replacements(&self) -> impl Iterator<Item = ObjectId> {
        self.objects.iter().filter_map(|redacted| redacted.replacement)
    }
}
