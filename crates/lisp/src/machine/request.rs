//! What a program asks of its host, and under which name.

use std::fmt;
use std::sync::Arc;

use crate::value::Value;

/// The name of a request: the branches of `pmap` and `pcalls` it was made in, then its number within the innermost.
///
/// The same program with the same inputs and answers makes the same requests under the same names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallPath {
    /// For each fork around the request, outermost first: the number of the fork in its branch, then the branch.
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

impl std::str::FromStr for CallPath {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts: Vec<&str> = text.split('/').collect();
        let count = parts.pop().and_then(|count| count.parse().ok()).ok_or(())?;
        let branch = |part: &str| {
            let (fork, branch) = part.split_once('.')?;
            Some((fork.parse().ok()?, branch.parse().ok()?))
        };
        let branches: Option<Vec<(u32, u32)>> = parts.into_iter().map(branch).collect();
        Ok(CallPath { branches: branches.ok_or(())?.into(), count })
    }
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The name of the call.
    pub path: CallPath,
    /// The tool.
    pub name: Arc<str>,
    /// Its arguments: a map with the tool's parameter names, as strings, for keys. Everything in it is realised.
    pub arguments: Value,
}

/// A task that has been done and is to be remembered under its id before the program goes on.
#[derive(Clone, Debug)]
pub struct TaskRecord {
    /// The name of the request.
    pub path: CallPath,
    /// The id of the task.
    pub id: Value,
    /// Its value.
    pub value: Value,
}

/// Something a program waits for.
#[derive(Clone, Debug)]
pub enum Request {
    /// The result of a tool.
    Tool(ToolCall),
    /// That the value of a task has been recorded. Any answer will do.
    Record(TaskRecord),
}

impl Request {
    /// The name of the request.
    pub fn path(&self) -> &CallPath {
        match self {
            Request::Tool(call) => &call.path,
            Request::Record(record) => &record.path,
        }
    }
}
