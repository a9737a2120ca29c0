//! A way of calling tools, as the conformance suite uses it.

use std::sync::Arc;

use backstitch_core::execution::CompositeSnapshot;
use backstitch_core::id::CallId;
use backstitch_core::message::OptionResult;
use backstitch_core::ports::Filesystem;
use backstitch_core::session::{BoxError, Session};
use backstitch_core::tool::Tool;
use backstitch_core::view::CallStatus;
use serde_json::Value;

/// A call to make.
#[derive(Debug, Clone)]
pub struct CallSpec {
    /// The name of the tool.
    pub name: String,
    /// The arguments, as JSON.
    pub arguments: Value,
}

impl CallSpec {
    /// A call of this tool with these arguments.
    pub fn new(name: &str, arguments: Value) -> Self {
        Self { name: name.to_owned(), arguments }
    }
}

/// A call and its conclusion.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport {
    /// The id of the call.
    pub call_id: CallId,
    /// How the call ended.
    pub ending: CallConclusion,
}

/// How a call ended, in the terms that all callers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallConclusion {
    /// Its changes are committed.
    Succeeded,
    /// Its changes are rolled back, and the model sees an error.
    Failed,
    /// Sections have to be opened first. The call counts as never made.
    VisibilityExpansion,
}

/// A way of calling tools on a session with files.
pub trait ToolCaller {
    /// Makes the calls of one turn, and returns their conclusions, in the order of the calls.
    fn turn(&self, calls: Vec<CallSpec>) -> Vec<CallReport>;

    /// The current state: `State` slices and all resources, including the files. The transcript is not part
    /// of it.
    fn state(&self) -> CompositeSnapshot;

    /// The results in the transcript, in the order in which they were recorded.
    fn results(&self) -> Vec<OptionResult>;

    /// The status of a call, and whether it is open: started and without an outcome.
    fn status(&self, call: CallId) -> (CallStatus, bool);

    /// Passes the session to a function.
    fn inspect(&self, inspect: &mut dyn FnMut(&Session));

    /// The files of the session.
    fn filesystem(&self) -> Arc<dyn Filesystem>;

    /// Rewinds the session to before a call.
    fn rewind_before(&self, call: CallId) -> Result<(), BoxError>;

    /// Makes a call, polls it `polls` times and drops it. Returns its id, and whether it had ended.
    fn abandon(&self, call: CallSpec, polls: usize) -> (CallId, bool);
}

/// Opens sessions with one kind of caller.
pub trait CallerFactory {
    /// Opens a new session with these tools, the reducers of [`set_up`](super::set_up), an empty workspace
    /// and a [`Counter`](super::Counter).
    fn open(&self, tools: Vec<Tool>) -> Box<dyn ToolCaller>;
}

impl<F: Fn(Vec<Tool>) -> Box<dyn ToolCaller>> CallerFactory for F {
    fn open(&self, tools: Vec<Tool>) -> Box<dyn ToolCaller> {
        self(tools)
    }
}
