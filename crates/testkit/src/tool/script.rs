//! Tools whose behaviour is determined by their arguments.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use backstitch_core::journal::Effect;
use backstitch_core::ports::{BoxFuture, Filesystem, FilesystemError, Recursion, WriteMode};
use backstitch_core::session::{Draft, Event, Session, SessionError, Slice, SliceOp, SlicePolicy};
use backstitch_core::tool::{
    ResourceUse, Tool, ToolContext, ToolError, ToolHandler, ToolOutcome, ToolResult, WorkspaceUse,
};
use backstitch_filesystem::FilePath;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Counter;
use crate::sample::{Remark, Task};

/// One action of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Adds a task.
    Append(String),
    /// Replaces all tasks by this one.
    Seed(String),
    /// Drops all tasks.
    Clear,
    /// Drops the tasks with this key.
    ClearWhere(String),
    /// Logs a remark.
    Log(String),
    /// Writes a file, with its text.
    Write(String, String),
    /// Appends to a file.
    Extend(String, String),
    /// Deletes a file, or a directory with its content, if it exists.
    Delete(String),
    /// Creates this many files in a directory.
    Fill(String, usize),
    /// Changes the counter. The result depends on the order of the changes.
    Count(u64),
    /// Claims the only seat. Concurrent calls all find it free, and all but one are refused at their commit.
    Claim(String),
    /// Claims the only seat; the reducer panics instead of refusing.
    ClaimOrPanic(String),
    /// Adds an item that cannot be written as JSON, and returns the error.
    Unstorable,
    /// Tries to add such an item, to state and to a log, and ignores the errors.
    TryUnstorable,
    /// Yields to other tasks once.
    Yield,
}

/// An item of a `State` slice: the holder of the only seat. The reducer refuses all but the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// The name of the holder.
    pub by: String,
    /// Whether the reducer panics instead of refusing.
    pub or_panic: bool,
}

impl Slice for Seat {
    const NAME: &'static str = "sample/seat";
}

/// An item of a `State` slice: a number that JSON may not be able to represent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure(pub f64);

impl Slice for Measure {
    const NAME: &'static str = "sample/measure";
}

/// An item of a `Log` slice: a number that JSON may not be able to represent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading(pub f64);

impl Slice for Reading {
    const NAME: &'static str = "sample/reading";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

/// An event that the reducer of every session rejects.
#[derive(Debug, Clone, Copy)]
enum RefusedChange {
    Refused,
    Panics,
}

impl Event for RefusedChange {}

/// Registers the reducers that the scripted tools need.
pub fn set_up(session: &mut Session) {
    session.register::<Seat, Seat>(|seats, seat, _| match (seats.is_empty(), seat.or_panic) {
        (true, _) => Ok(SliceOp::Append(seat.clone())),
        (false, false) => Err("the seat is taken".into()),
        (false, true) => panic!("the seat is taken"),
    });
    session.register::<Task, RefusedChange>(|_, event, _| match **event {
        RefusedChange::Refused => Err("it is not welcome".into()),
        RefusedChange::Panics => panic!("it is not welcome"),
    });
}

/// The outcome of a scripted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It succeeds.
    Success,
    /// It returns an error.
    Error,
    /// It returns an unsuccessful result.
    Unsuccessful,
    /// It rejects its arguments.
    Validation,
    /// It panics.
    Panic,
    /// It requires sections to be opened.
    Expansion,
    /// It does not end, and is stopped by its timeout.
    Hang,
    /// It succeeds, with an event that a reducer refuses.
    EventRefused,
    /// It succeeds, with an event that makes a reducer panic.
    EventPanics,
}

impl Outcome {
    /// The failures that add an error to the transcript.
    pub const FAILURES: [Self; 7] = [
        Self::Error,
        Self::Unsuccessful,
        Self::Validation,
        Self::Panic,
        Self::Hang,
        Self::EventRefused,
        Self::EventPanics,
    ];
}

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

/// The acts and the outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The actions, in order.
    pub acts: Vec<Act>,
    /// The outcome after the actions.
    pub outcome: Outcome,
}

impl Script {
    /// A script of these acts and this outcome.
    pub fn new(acts: impl IntoIterator<Item = Act>, outcome: Outcome) -> Self {
        Self { acts: acts.into_iter().collect(), outcome }
    }

    /// A call of a tool with this script. A call that hangs uses a tool with a short timeout; the timeout of
    /// the others is long enough for a busy machine.
    pub fn asked(&self, tool: &str) -> CallSpec {
        let tool = if self.outcome == Outcome::Hang { "act_briefly" } else { tool };
        CallSpec::new(tool, serde_json::to_value(self).expect("a script can be written"))
    }
}

/// The scripted tools: `act` may change files and resources; `think` uses neither, so its calls run
/// concurrently; `count` uses resources but no files; `act_briefly` is `act` with a short timeout.
pub fn tools() -> Vec<Tool> {
    let (long, short) = (Duration::from_secs(300), Duration::from_millis(150));
    vec![
        scripted("act", (WorkspaceUse::Write, ResourceUse::Write), long),
        scripted("think", (WorkspaceUse::None, ResourceUse::None), long),
        scripted("count", (WorkspaceUse::None, ResourceUse::Write), long),
        scripted("act_briefly", (WorkspaceUse::Write, ResourceUse::Write), short),
    ]
}

fn scripted(name: &str, (workspace, resources): (WorkspaceUse, ResourceUse), timeout: Duration) -> Tool {
    let builder = Tool::builder(name, "Performs the given acts.").expect("this is a name");
    builder
        .effect(Effect::Workspace)
        .workspace(workspace)
        .resources(resources)
        .timeout(timeout)
        .parameters(json!({
            "type": "object",
            "properties": {"acts": {"type": "array"}, "outcome": {"type": "string"}},
            "required": ["acts", "outcome"],
            "additionalProperties": false
        }))
        .build(Arc::new(ScriptedHandler))
}

struct ScriptedHandler;

impl ToolHandler for ScriptedHandler {
    fn call(&self, context: ToolContext, arguments: Map<String, Value>) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let script: Script = serde_json::from_value(Value::Object(arguments))?;
            for act in &script.acts {
                if *act == Act::Yield {
                    YieldOnce(false).await;
                } else {
                    perform(&context, act)?;
                }
            }
            match script.outcome {
                Outcome::Success => Ok(ToolResult::ok("done")),
                Outcome::Error => Err(ToolError::new("it did not work")),
                Outcome::Unsuccessful => Ok(ToolResult::failed("it did not work")),
                Outcome::Validation => Err(ToolError::Validation { message: "it makes no sense".into() }),
                Outcome::Panic => panic!("it fell over"),
                Outcome::Expansion => Err(ToolError::VisibilityExpansionRequired {
                    sections: vec!["details".into()],
                    reason: "they are closed".into(),
                }),
                Outcome::Hang => std::future::pending().await,
                Outcome::EventRefused => Ok(ToolResult::ok("done").with_event(RefusedChange::Refused)),
                Outcome::EventPanics => Ok(ToolResult::ok("done").with_event(RefusedChange::Panics)),
            }
        })
    }
}

fn perform(context: &ToolContext, act: &Act) -> Result<(), ToolError> {
    let task = |key: &str| Task { key: key.to_owned(), title: format!("Do {key}"), done: false };
    let session = |work: &dyn Fn(&mut Draft) -> Result<(), SessionError>| {
        context.session(|draft| work(draft)).map_err(ToolError::from)?.map_err(ToolError::from)
    };
    match act {
        Act::Append(key) => session(&|draft| draft.append(task(key)).map(drop)),
        Act::Seed(key) => session(&|draft| draft.seed([task(key)]).map(drop)),
        Act::Clear => session(&|draft| draft.clear::<Task>().map(drop)),
        Act::ClearWhere(key) => session(&|draft| {
            let key = key.clone();
            draft.clear_where(move |task: &Task| task.key == key).map(drop)
        }),
        Act::Claim(by) => session(&|draft| draft.append(Seat { by: by.clone(), or_panic: false }).map(drop)),
        Act::ClaimOrPanic(by) => {
            session(&|draft| draft.append(Seat { by: by.clone(), or_panic: true }).map(drop))
        }
        Act::Unstorable => session(&|draft| draft.append(Measure(f64::NAN)).map(drop)),
        Act::TryUnstorable => {
            assert!(session(&|draft| draft.append(Measure(f64::INFINITY)).map(drop)).is_err());
            assert!(session(&|draft| draft.append(Reading(f64::NAN)).map(drop)).is_err());
            Ok(())
        }
        Act::Log(text) => session(&|draft| draft.append(Remark { text: text.clone() }).map(drop)),
        Act::Write(path, text) => write(context, path, text, WriteMode::Overwrite),
        Act::Extend(path, text) => write(context, path, text, WriteMode::Append),
        Act::Delete(path) => match context.filesystem()?.delete(&FilePath::new(path)?, Recursion::All) {
            Err(FilesystemError::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Act::Fill(directory, count) => (0..*count)
            .try_for_each(|number| write(context, &format!("{directory}/{number}"), "x", WriteMode::Create)),
        Act::Count(by) => {
            let counter = context.resource_mut::<Counter>()?;
            counter.ok_or_else(|| ToolError::new("there is no counter"))?.count(*by);
            Ok(())
        }
        Act::Yield => Ok(()),
    }
}

fn write(context: &ToolContext, path: &str, text: &str, mode: WriteMode) -> Result<(), ToolError> {
    let files: Arc<dyn Filesystem> = context.filesystem()?;
    Ok(files.write_bytes(&FilePath::new(path)?, text.as_bytes(), mode)?)
}

struct YieldOnce(bool);

impl Future for YieldOnce {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
