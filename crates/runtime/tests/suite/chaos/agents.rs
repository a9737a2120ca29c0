//! The sessions: agents whose tools write files, act outside and wait.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::Effect;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::WriteMode;
use backstitch_core::time::Timestamp;
use backstitch_core::tool::{Tool, ToolContext, ToolResult, Wait, WorkspaceUse};
use backstitch_filesystem::FilePath;
use backstitch_providers::{Script, ScriptedPolicy};
use backstitch_runtime::{Agent, AgentRegistry};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::outside::{self, RESULT};
use super::place::Place;
use crate::tailor::reply;

/// The last answer of every session.
pub(crate) const ANSWER: &str = "All is done.";
/// The name of the signal that buyers wait for.
pub(crate) const SIGNAL: &str = "delivered";
/// How long a part of a tool takes, so that faults hit it.
const PART: Duration = Duration::from_millis(60);

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Writes, and acts outside twice.
    Writer,
    /// Acts outside, and waits for a signal.
    Buyer,
    /// Waits for a time.
    Sleeper,
    /// Waits for an approval to act outside.
    Editor,
}

#[derive(Deserialize, JsonSchema)]
struct At {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Writer, Self::Buyer, Self::Sleeper, Self::Editor];

    /// The calls of its turns.
    fn turns(self) -> Vec<Vec<(&'static str, Value)>> {
        let write = |path: &str| ("write", json!({"path": path}));
        let add = || ("add", json!({"path": "log.txt"}));
        let call = |tool: &'static str| (tool, json!({}));
        match self {
            Self::Writer => vec![
                vec![write("one.txt"), write("two.txt")],
                vec![add()],
                vec![call("order")],
                vec![add(), write("three.txt")],
                vec![call("order")],
                vec![add()],
            ],
            Self::Buyer => vec![vec![write("one.txt")], vec![call("buy")], vec![add()], vec![add()]],
            Self::Sleeper => vec![vec![call("order")], vec![call("nap"), write("one.txt")], vec![add()]],
            Self::Editor => vec![vec![add()], vec![call("publish")], vec![add(), write("two.txt")]],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Buyer => "buyer",
            Self::Sleeper => "sleeper",
            Self::Editor => "editor",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn agent(self, place: &Place) -> Agent {
        let mut replies: Vec<_> = self.turns().iter().map(|calls| reply("on", calls)).collect();
        replies.push(reply(ANSWER, &[]));
        let policy = ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies });
        Agent::new(self.name()).policy(policy).workspace(place.path("files")).tools(tools(place))
    }

    /// How many calls act outside.
    pub(crate) fn effects(self) -> usize {
        let is_outside = |tool: &str| matches!(tool, "order" | "buy" | "publish");
        self.turns().iter().flatten().filter(|(tool, _)| is_outside(tool)).count()
    }

    /// The files that a session leaves.
    pub(crate) fn files(self, session: SessionId) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for (tool, arguments) in self.turns().into_iter().flatten() {
            let Some(path) = arguments["path"].as_str() else { continue };
            match tool {
                "write" => drop(files.insert(path.to_owned(), text_of(path, session))),
                _ => files.entry(path.to_owned()).or_default().push_str("a line\n"),
            }
        }
        files
    }
}

fn text_of(path: &str, session: SessionId) -> String {
    format!("the first half of {path},\nand the second half of {session}\n")
}

/// All agents, by their names.
pub(crate) fn registry(place: &Place) -> AgentRegistry {
    AgentRegistry::new(Kind::ALL.map(|kind| kind.agent(place)))
}

fn tools(place: &Place) -> Vec<Tool> {
    let root = Arc::new(place.root.clone());
    vec![write(), add(), outer("order", &root), buy(&root), with_approval(&root), nap()]
}

fn write() -> Tool {
    let builder = Tool::builder("write", "Writes a file.").unwrap().effect(Effect::Workspace);
    builder.handler(|context: ToolContext, at: At| async move {
        let (files, path) = (context.filesystem()?, FilePath::new(&at.path)?);
        let text = text_of(&at.path, context.session_id());
        let (first, rest) = text.as_bytes().split_at(text.len() / 2);
        files.write_bytes(&path, first, WriteMode::Overwrite)?;
        sleep(PART).await;
        files.write_bytes(&path, rest, WriteMode::Append)?;
        Ok(ToolResult::ok("written"))
    })
}

/// Adds a line to a file: a call that was repeated without a restore shows in it.
fn add() -> Tool {
    let builder = Tool::builder("add", "Adds a line.").unwrap().effect(Effect::Workspace);
    builder.handler(|context: ToolContext, at: At| async move {
        let (files, path) = (context.filesystem()?, FilePath::new(&at.path)?);
        let mut text = files.read_bytes(&path).unwrap_or_default();
        text.extend_from_slice(b"a line\n");
        files.write_bytes(&path, &text, WriteMode::Overwrite)?;
        sleep(PART).await;
        Ok(ToolResult::ok("added"))
    })
}

fn outer(name: &'static str, root: &Arc<PathBuf>) -> Tool {
    let root = root.clone();
    let builder = Tool::builder(name, "Acts outside.").unwrap().effect(Effect::External);
    builder.workspace(WorkspaceUse::None).handler(move |context: ToolContext, _: Nothing| {
        let root = root.clone();
        async move {
            sleep(PART).await;
            crash_point!("call.in_handler");
            outside::act(&root, &context)?;
            sleep(PART).await;
            Ok(ToolResult::ok(RESULT))
        }
    })
}

/// Acts outside, and waits for a signal.
fn buy(root: &Arc<PathBuf>) -> Tool {
    let root = root.clone();
    let builder = Tool::builder("buy", "Buys, and waits.").unwrap().effect(Effect::External);
    builder.workspace(WorkspaceUse::None).handler(move |context: ToolContext, _: Nothing| {
        let root = root.clone();
        async move {
            crash_point!("call.in_handler");
            context.step("order", async { outside::act(&root, &context) }).await?;
            context.wait("delivery", Wait::signal(SIGNAL)).await?;
            Ok(ToolResult::ok(RESULT))
        }
    })
}

fn with_approval(root: &Arc<PathBuf>) -> Tool {
    crate::tailor::with_approval(outer("publish", root))
}

/// Waits for a time that does not depend on the clocks of workers: two seconds after the session was enqueued.
fn nap() -> Tool {
    let builder = Tool::builder("nap", "Waits.").unwrap().effect(Effect::Pure).workspace(WorkspaceUse::None);
    builder.handler(|context: ToolContext, _: Nothing| async move {
        let session = context.session_id();
        let bytes = session.as_uuid().as_bytes();
        let millis = bytes[..6].iter().fold(0_i64, |millis, byte| (millis << 8) | i64::from(*byte));
        let until = Timestamp::from_unix_micros((millis + 2000) * 1000).unwrap();
        context.wait("nap", Wait::until(until)).await?;
        Ok(ToolResult::ok("rested"))
    })
}
