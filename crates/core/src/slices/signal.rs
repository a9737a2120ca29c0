//! Signals from outside that no call has waited for yet.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::extra::Extra;
use crate::session::Slice;

/// A signal that arrived. It is removed by the first wait for its name, in the batch that records the end of the wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceivedSignal {
    /// The name that waits refer to.
    pub name: String,
    /// The value that the wait returns.
    #[serde(default)]
    pub value: Value,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for ReceivedSignal {
    const NAME: &'static str = "received_signal";
}
