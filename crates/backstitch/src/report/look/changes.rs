//! The paths that the calls of a session changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{ChangeCounts, ChangedPath, Position};
use crate::report::Version;
use crate::time::Timestamp;

/// What the calls of a session changed, in the order in which they ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangesReport {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The calls that changed something. Those before a rewind are among them.
    pub calls: Vec<ChangingCall>,
}

/// A call that changed files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangingCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The evaluation that it belongs to, which has the question.
    pub evaluation: EvaluationId,
    /// The turn of the model that asked for it.
    pub turn: u64,
    /// Position of the record that ends it.
    pub position: Position,
    /// When it ended.
    pub at: Timestamp,
    /// False for a call that failed, so that its changes were undone.
    pub kept: bool,
    /// False for a call before a rewind.
    pub visible: bool,
    /// The number of paths by kind of change; `null` if neither the record nor stored files say it.
    pub counts: Option<ChangeCounts>,
    /// The paths; `null` if neither the record nor stored files name them. Contents are named where the record lists the paths,
    /// or would.
    pub files: Option<Vec<ChangedPath>>,
}
