//! Whether a tool uses the snapshotable resources of its session.

use serde::{Deserialize, Serialize};

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
