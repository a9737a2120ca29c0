//! A way of calling tools, as the suite sees it.

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
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
}

impl CallSpec {
    /// A call of this tool with these arguments.
    pub fn new(name: &str, arguments: Value) -> Self {
        Self { name: name.to_owned(), arguments }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport {
    /// The call.
    pub call_id: CallId,
    /// How.
    pub ending: CallConclusion,
}

/// How a call ended, as far as all callers can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallConclusion {
    /// What it did stands.
    Succeeded,
    /// All that it did is rolled back, and the model is told.
    Failed,
    /// Sections have to be open first: it counts as never made.
    VisibilityExpansion,
}

/// A way of calling tools on a session with files.
pub trait ToolCaller {
    /// Makes the calls of one turn, and gives how each ended, in the order of the calls.
    fn turn(&self, calls: Vec<CallSpec>) -> Vec<CallReport>;

    /// All state as it is now: the State slices and every resource, the files among them. The transcript is not part of it.
    fn state(&self) -> CompositeSnapshot;

    /// What the model was told of its calls, in the order in which that was recorded.
    fn results(&self) -> Vec<OptionResult>;

    /// How far a call has come, and whether it was started and has no outcome.
    fn status(&self, call: CallId) -> (CallStatus, bool);

    /// Looks at the session.
    fn look(&self, look: &mut dyn FnMut(&Session));

    /// The files.
    fn filesystem(&self) -> Arc<dyn Filesystem>;

    /// Takes the session back to before a call.
    fn go_back_to(&self, call: CallId) -> Result<(), BoxError>;

    /// Makes a call, polls it so many times and drops it. Gives the call, and whether it had ended by then.
    fn abandon(&self, call: CallSpec, polls: usize) -> (CallId, bool);
}

/// Opens sessions whose tools are called in one way.
pub trait CallerFactory {
    /// A new session with these tools, with the reducers of [`set_up`](super::set_up), with files, of which there are none yet, and with a
    /// [`Counter`](super::Counter).
    fn open(&self, tools: Vec<Tool>) -> Box<dyn ToolCaller>;
}

impl<F: Fn(Vec<Tool>) -> Box<dyn ToolCaller>> CallerFactory for F {
    fn open(&self, tools: Vec<Tool>) -> Box<dyn ToolCaller> {
        self(tools)
    }
}
