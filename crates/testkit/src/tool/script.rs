//! A tool that does what its arguments say.

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

use super::{CallSpec, Counter};
use crate::sample::{Remark, Task};

/// One thing that a call does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Adds a task.
    Append(String),
    /// Puts this task in the place of all.
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
    /// Deletes a file or a directory with all that is in it, if it is there.
    Delete(String),
    /// Makes so many files in a directory.
    Fill(String, usize),
    /// Changes the counter, so that the order of two changes shows.
    Count(u64),
    /// Takes the only seat. Of calls that do so side by side each finds it free, and all but one are refused at their commit.
    Claim(String),
    /// The same, where being refused is a panic of the reducer.
    ClaimOrPanic(String),
    /// Adds an item that cannot be written as JSON, and passes the error on.
    Unstorable,
    /// Tries to add such an item, to state and to a log, and goes on without.
    TryUnstorable,
    /// Lets others go on.
    Yield,
}

/// Working state: who has the only seat. It is refused to everybody but the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// Who has it.
    pub by: String,
    /// Whether the reducer panics instead of refusing.
    pub or_panic: bool,
}

impl Slice for Seat {
    const NAME: &'static str = "sample/seat";
}

/// Working state: a number, which JSON may not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure(pub f64);

impl Slice for Measure {
    const NAME: &'static str = "sample/measure";
}

/// A log of numbers, which JSON may not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading(pub f64);

impl Slice for Reading {
    const NAME: &'static str = "sample/reading";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

/// An event that no session takes.
#[derive(Debug, Clone, Copy)]
enum RefusedChange {
    Refused,
    Panics,
}

impl Event for RefusedChange {}

/// Registers what the reducers of a session have to be for the scripted tools.
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

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It succeeds.
    Success,
    /// It returns an error.
    Error,
    /// It returns a result that says that it did not work.
    Unsuccessful,
    /// It finds its arguments to make no sense.
    Validation,
    /// It panics.
    Panic,
    /// It wants sections to be open.
    Expansion,
    /// It does not end, and is stopped.
    Hang,
    /// It succeeds, with an event that a reducer refuses.
    EventRefused,
    /// It succeeds, with an event that a reducer panics at.
    EventPanics,
}

impl Outcome {
    /// The ways to fail that the model is told of.
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

/// What a call does and how it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What it does.
    pub acts: Vec<Act>,
    /// How it ends.
    pub outcome: Outcome,
}

impl Script {
    /// These acts and this end.
    pub fn new(acts: impl IntoIterator<Item = Act>, outcome: Outcome) -> Self {
        Self { acts: acts.into_iter().collect(), outcome }
    }

    /// The call that does this, of the tool with files or of that without. One that does not end is of a tool that may not
    /// take long; the others may take as long as a busy machine makes them.
    pub fn asked(&self, tool: &str) -> CallSpec {
        let tool = if self.outcome == Outcome::Hang { "act_briefly" } else { tool };
        CallSpec::new(tool, serde_json::to_value(self).expect("a script can be written"))
    }
}

/// The tools: `act`, which may change files and resources, `think`, which has none and so runs beside others, `count`, which has
/// resources and no files, and `act_briefly`, which may not take long.
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
    let builder = Tool::builder(name, "Does what it is told.").expect("this is a name");
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
        Act::ClearWhere(key) => {
            let key = key.clone();
            session(&move |draft| {
                let key = key.clone();
                draft.clear_where(move |task: &Task| task.key == key).map(drop)
            })
        }
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
