//! Which calls wrote the lines of a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::Position;
use crate::report::Version;
use crate::time::Timestamp;

/// The lines of a file with the calls that wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlameReport {
    /// Version of the form.
    pub v: Version,
    /// The file.
    pub file: PathBuf,
    /// Its lines.
    pub lines: Vec<BlamedLine>,
    /// The calls that wrote some of them, the latest first.
    pub calls: Vec<BlamedCall>,
}

impl BlameReport {
    /// Returns the call that wrote a line, if a call did.
    pub fn call_of(&self, line: &BlamedLine) -> Option<&BlamedCall> {
        self.calls.get(line.call?)
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedLine {
    /// Its number, from 1 on.
    pub number: usize,
    /// Its text, without the line end.
    pub text: String,
    /// The call that wrote it, as its place in the list of calls; `null` for a line that no recorded call wrote.
    pub call: Option<usize>,
}

/// A call that wrote lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedCall {
    /// Its session.
    pub session: SessionId,
    /// The path of the file in the directory of the session.
    pub path: String,
    /// The evaluation that it belongs to.
    pub evaluation: EvaluationId,
    /// The beginning of the message that the evaluation answers, in a line.
    pub question: Option<String>,
    /// The turn of the model that asked for it.
    pub turn: u64,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Position of the record that ends it.
    pub position: Position,
    /// When it ended.
    pub at: Timestamp,
}
