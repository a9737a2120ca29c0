//! Requests of a program to its host, and their paths.

use std::fmt;
use std::sync::Arc;

use crate::value::Value;

/// The path of a request: the branches of `pmap` and `pcalls` around it, then its number within the
/// innermost.
///
/// The same program with the same inputs and answers makes the same requests under the same paths.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallPath {
    /// For each enclosing fork, outermost first: the number of the fork in its branch, then the branch.
    pub branches: Arc<[(u32, u32)]>,
    /// The number of the request in its branch, counted from 0.
    pub count: u32,
}

impl fmt::Display for CallPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fork, branch) in self.branches.iter() {
            write!(f, "{fork}.{branch}/")?;
        }
        write!(f, "{}", self.count)
    }
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Identifies the call in [`Machine::resume`](super::Machine::resume).
    pub path: CallPath,
    /// The name as the host declared it.
    pub name: Arc<str>,
    /// The arguments: a map from the tool's parameter names, as strings. Everything in it is realised.
    pub arguments: Value,
}

/// A finished task to record under its id before the program continues.
#[derive(Clone, Debug)]
pub struct TaskRecord {
    /// Identifies the request in [`Machine::resume`](super::Machine::resume).
    pub path: CallPath,
    /// The first argument of `task`.
    pub id: Value,
    /// The realised value of the task.
    pub value: Value,
}

/// A pending request of a program.
#[derive(Clone, Debug)]
pub enum Request {
    /// Waits for the result of a tool.
    Tool(ToolCall),
    /// Waits until the value of a task is recorded. Any answer will do.
    Record(TaskRecord),
}

impl Request {
    /// Returns the path of the request.
    pub fn path(&self) -> &CallPath {
        match self {
            Request::Tool(call) => &call.path,
            Request::Record(record) => &record.path,
        }
    }
}
