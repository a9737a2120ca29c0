//! The history of the session, as tools: what happened, and ways back.
//!
//! `checkpoints`, `log` and `diff` only read. `rewind`, `undo` and `fork` are recorded like calls, have the
//! identity of calls, and are refused while a call runs.

use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::Store;
use backstitch_runtime::{
    HistoryChangeKind, OutsideCall, OutsideCalls, PointSpec, RewindReport, RuntimeError, describe, load_view,
    read_records,
};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::content::{error_result, failed, object, refusal, result_of};
use super::host::ServerHost;

/// The most entries of a list, unless the client asks for fewer.
const MOST_ENTRIES: usize = 200;

/// A tool about the history of the session.
#[derive(Debug, Clone, Copy)]
pub(super) enum HistoryTool {
    Checkpoints,
    Log,
    Diff,
    Rewind,
    Undo,
    Fork,
}

/// All of them, in the order in which they are offered.
pub(super) const HISTORY_TOOLS: [HistoryTool; 6] = [
    HistoryTool::Checkpoints,
    HistoryTool::Log,
    HistoryTool::Diff,
    HistoryTool::Rewind,
    HistoryTool::Undo,
    HistoryTool::Fork,
];

const POINT: &str = "A point of the session: `before:CALL`, `after:CALL`, `turn:N`, `start`, `head`, or a position of the log.";

impl HistoryTool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Checkpoints => "checkpoints",
            Self::Log => "log",
            Self::Diff => "diff",
            Self::Rewind => "rewind",
            Self::Undo => "undo",
            Self::Fork => "fork",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Checkpoints => {
                "Lists the calls of this session, newest last. The state before and after each call can be compared, restored and forked: `before:CALL` and `after:CALL` name it."
            }
            Self::Log => "Lists what happened in this session, newest last.",
            Self::Diff => "Compares the files, the state and the conversation of this session at two points.",
            Self::Rewind => {
                "Returns this session to a point: its files and its state are restored. Nothing is lost: `undo` takes it back."
            }
            Self::Undo => "Undoes the latest rewind.",
            Self::Fork => {
                "Starts another session from a point, with its own copy of the files in a new directory."
            }
        }
    }

    fn parameters(self) -> Value {
        let text = |description: &str| json!({ "type": "string", "description": description });
        let or_head = text(&format!("{POINT} Default: head."));
        let (properties, required) = match self {
            Self::Checkpoints | Self::Log => {
                let limit = json!({
                    "type": "integer", "minimum": 1, "maximum": MOST_ENTRIES,
                    "description": "The number of entries, the newest ones. Default: 50.",
                });
                (json!({ "limit": limit }), json!([]))
            }
            Self::Diff => (json!({ "from": text(POINT), "to": or_head }), json!(["from"])),
            Self::Rewind => {
                let reason = text("Why, for the log.");
                (json!({ "point": text(POINT), "reason": reason }), json!(["point"]))
            }
            Self::Undo => (json!({}), json!([])),
            Self::Fork => (json!({ "point": or_head }), json!([])),
        };
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }

    pub(super) fn reads_only(self) -> bool {
        matches!(self, Self::Checkpoints | Self::Log | Self::Diff)
    }

    /// Returns the tool as clients see it.
    pub(super) fn offered(self, name: &str) -> Tool {
        let hints = ToolAnnotations::new().open_world(false).read_only(self.reads_only());
        let hints = if self.reads_only() { hints.idempotent(true) } else { hints.destructive(false) };
        Tool::new(name.to_owned(), self.description(), object(&self.parameters())).with_annotations(hints)
    }

    /// Runs a tool that only reads. Nothing is claimed for it.
    pub(super) async fn read(
        self,
        host: &Arc<dyn ServerHost>,
        given: &Map<String, Value>,
    ) -> Result<CallToolResult, ErrorData> {
        let (session, store) = match host.session().await {
            Ok(known) => known,
            Err(error) => return Ok(refusal(&error)),
        };
        let arguments = match HistoryArguments::read(self, given) {
            Ok(arguments) => arguments,
            Err(message) => return Ok(error_result(message)),
        };
        let read = match self {
            Self::Log => log(&*store, session, arguments.limit).await,
            Self::Diff => host.diff(arguments.from, arguments.to).await,
            _ => checkpoints(&*store, session, arguments.limit).await,
        };
        Ok(read.map_or_else(error_result, |value| shown(&value)))
    }

    /// Runs a tool that changes the history.
    pub(super) async fn change(
        self,
        calls: &Arc<OutsideCalls>,
        host: &Arc<dyn ServerHost>,
        call: OutsideCall,
    ) -> Result<CallToolResult, ErrorData> {
        let arguments = match HistoryArguments::read(self, &call.arguments) {
            Ok(arguments) => arguments,
            Err(message) => return Ok(error_result(message)),
        };
        let live = calls.session().clone();
        let host = host.clone();
        let kind = if let Self::Fork = self { HistoryChangeKind::Fork } else { HistoryChangeKind::Rewind };
        let changed = calls.change_history(call, kind, move |history| async move {
            match self {
                Self::Undo => history.undo().await.map(report).map_err(|error| error.to_string()),
                Self::Fork => host.fork(arguments.point.to_string()).await,
                _ => {
                    let done = history.rewind(&arguments.point, arguments.reason).await;
                    done.map(report).map_err(|error| error.to_string())
                }
            }
        });
        match changed.await {
            Ok(done) => Ok(result_of(&live, &done, true).await),
            Err(error) => failed(&error),
        }
    }
}

/// The arguments of a history tool.
struct HistoryArguments {
    limit: usize,
    from: String,
    to: String,
    point: PointSpec,
    reason: Option<String>,
}

impl HistoryArguments {
    fn read(tool: HistoryTool, given: &Map<String, Value>) -> Result<Self, String> {
        let schema = tool.parameters();
        let known = schema["properties"].as_object();
        if let Some(unknown) = given.keys().find(|key| !known.is_some_and(|known| known.contains_key(*key))) {
            return Err(format!("{}: there is no argument {unknown:?}", tool.name()));
        }
        let text = |name: &str| match given.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("{}: {name} has to be a text", tool.name())),
        };
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let point = |name: &str| -> Result<PointSpec, String> {
            let default = (!required.contains(&name.into())).then(|| "head".to_owned());
            let given = text(name)?.or(default);
            let given = given.ok_or_else(|| format!("{}: {name} is missing", tool.name()))?;
            given.parse().map_err(|error: backstitch_runtime::InvalidPoint| error.to_string())
        };
        let limit = given.get("limit").filter(|limit| !limit.is_null());
        let limit = limit.map_or(Some(50), |limit| usize::try_from(limit.as_u64()?).ok());
        let out_of_range = || format!("{}: limit has to be a number from 1 to {MOST_ENTRIES}", tool.name());
        let limit = limit.filter(|limit| (1..=MOST_ENTRIES).contains(limit)).ok_or_else(out_of_range)?;
        Ok(Self {
            limit,
            from: point("from")?.to_string(),
            to: point("to")?.to_string(),
            point: point("point")?,
            reason: text("reason")?,
        })
    }
}

async fn checkpoints(store: &dyn Store, session: SessionId, limit: usize) -> Result<Value, String> {
    let all = match load_view(store, session, None).await {
        Err(RuntimeError::SessionNotFound { .. }) => Vec::new(),
        view => view.map_err(|error| error.to_string())?.checkpoints(),
    };
    let skipped = all.len().saturating_sub(limit);
    let shown = all[skipped..].iter().map(|one| {
        json!({
            "call": one.call_id, "tool": one.tool_name, "status": one.status, "result": one.result_summary,
            "before": format!("before:{}", one.call_id), "after": format!("after:{}", one.call_id),
            "recorded_at": one.recorded_at,
        })
    });
    Ok(json!({ "session": session, "earlier": skipped, "checkpoints": shown.collect::<Value>() }))
}

async fn log(store: &dyn Store, session: SessionId, limit: usize) -> Result<Value, String> {
    let records = match read_records(store, session, Position::START, None).await {
        Err(RuntimeError::SessionNotFound { .. }) => Vec::new(),
        records => records.map_err(|error| error.to_string())?,
    };
    let lines = records.iter().filter_map(|record| {
        Some(json!({ "position": record.position, "at": record.at, "text": describe(record)? }))
    });
    let lines: Vec<Value> = lines.collect();
    let skipped = lines.len().saturating_sub(limit);
    Ok(json!({ "session": session, "earlier": skipped, "log": &lines[skipped..] }))
}

fn report(done: RewindReport) -> Value {
    let files = if done.rescue.is_some() { "restored" } else { "unchanged" };
    json!({ "at": done.at, "to": done.to, "files": files })
}

fn shown(value: &Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(value.to_string())]);
    result.structured_content = Some(value.clone());
    result
}
