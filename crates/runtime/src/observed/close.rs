//! The end of calls: by a report, or by a barrier.

use backstitch_core::id::CallId;
use backstitch_core::journal::{CallFinished, CallVerdict, Note};
use backstitch_core::message::OptionResult;
use backstitch_core::text::one_line;
use backstitch_core::view::{Call, JournalView};
use serde_json::{Value, json};

use super::record::{observed_agent, turn_of};
use super::{GAP, ObservedResult, SeenFiles, turns};
use crate::content::{result_message, storable};
use crate::error::Result;
use crate::events::short;
use crate::live::Commit;

/// The most characters of a result in lists.
const SUMMARY: usize = 80;

/// The tools with which programs run sub-agents.
const DELEGATING: [&str; 3] = ["Agent", "Task", "spawn_agent"];

/// Calls to be closed, and those that overlap with them.
pub(super) struct EndedCalls {
    calls: Vec<CallId>,
    /// The reported result; none at a barrier.
    result: Option<ObservedResult>,
    /// Calls that stay open.
    others: Vec<CallId>,
}

impl EndedCalls {
    /// Closes all open calls.
    pub(super) fn all(view: &JournalView) -> Self {
        Self::those(view, |_| true, None)
    }

    /// Closes the open calls of a sub-agent.
    pub(super) fn of_agent(view: &JournalView, agent: &str) -> Self {
        Self::those(view, |call| observed_agent(call) == Some(agent), None)
    }

    /// Closes one call with its result.
    pub(super) fn one(view: &JournalView, id: CallId, result: ObservedResult) -> Self {
        Self::those(view, |call| call.call_id == id, Some(result))
    }

    fn those(view: &JournalView, which: impl Fn(&Call) -> bool, result: Option<ObservedResult>) -> Self {
        let (ended, open): (Vec<&Call>, Vec<&Call>) =
            view.calls().filter(|call| call.is_open()).partition(|call| which(call));
        let ids = |calls: Vec<&Call>| calls.into_iter().map(|call| call.call_id).collect();
        Self { calls: ids(ended), result, others: ids(open) }
    }

    /// Records the ends of the calls.
    pub(super) fn record(self, commit: &mut Commit<'_>, seen: Option<&SeenFiles>) -> Result<()> {
        let view = commit.view();
        let Self { calls, result, others } = self;
        note_overlap(commit, view, &calls, &others, seen);
        for id in calls {
            let Some(call) = view.call(id) else { continue };
            let turn = turn_of(call).unwrap_or_else(|| turns(view, call.evaluation_id).max(1));
            let outcome = result.as_ref().map(|result| result.outcome.clone());
            let started = call.intent.as_ref().map(|intent| intent.at);
            let since = started.map_or(0, |started| commit.time().since(started).as_micros());
            let elapsed = result.as_ref().and_then(|result| result.elapsed_micros);
            let name = call.name.clone();
            if outcome.is_none() {
                commit
                    .push(Note::new(GAP, format!("{name} has no reported end; its files are those of now")));
            }
            let before = call.intent.as_ref().and_then(|intent| intent.record.root);
            let changes = seen.zip(before).and_then(|(seen, before)| seen.changes.get(&before).cloned());
            let (payload, summary) = payload(id, &name, outcome);
            commit.say(call.evaluation_id, turn, result_message(payload, Some(turn)))?;
            commit.push(CallFinished {
                root: seen.map(|seen| seen.files.root),
                coverage: seen.and_then(|seen| seen.files.coverage),
                changes,
                elapsed_micros: elapsed.unwrap_or_else(|| u64::try_from(since).unwrap_or(u64::MAX)),
                summary: Some(summary),
                ..CallFinished::new(id, CallVerdict::Succeeded)
            });
        }
        Ok(())
    }
}

/// Notes that the changes of overlapping calls cannot be told apart.
fn note_overlap(
    commit: &mut Commit<'_>,
    view: &JournalView,
    ended: &[CallId],
    others: &[CallId],
    seen: Option<&SeenFiles>,
) {
    let all: Vec<&Call> = ended.iter().chain(others).filter_map(|id| view.call(*id)).collect();
    // The call that runs a sub-agent contains the calls of the sub-agent, and changes nothing itself.
    let has_inner = all.iter().any(|call| observed_agent(call).is_some());
    let contains = |call: &Call| has_inner && DELEGATING.contains(&call.name.as_str());
    let all: Vec<&Call> = all.into_iter().filter(|call| !contains(call)).collect();
    let writes = |call: &&&Call| call.intent.as_ref().is_some_and(|intent| intent.record.root.is_some());
    if ended.is_empty() || all.iter().filter(writes).count() < 2 {
        return;
    }
    // Without a change there is nothing to tell apart.
    let now = seen.map(|seen| seen.files.root);
    let root = |call: &Call| call.intent.as_ref().and_then(|intent| intent.record.root);
    if now.is_some() && all.iter().filter(writes).all(|call| root(call) == now) {
        return;
    }
    let names: Vec<String> =
        all.iter().map(|call| format!("{} [{}]", call.name, short(call.call_id))).collect();
    let ids: Vec<CallId> = all.iter().map(|call| call.call_id).collect();
    let text = format!("{} ran at the same time, and share their changes", names.join(" and "));
    commit.push(Note::new("overlap", text).with_data(json!({ "calls": ids })));
}

pub(super) fn payload(
    id: CallId,
    name: &str,
    outcome: Option<Result<Value, String>>,
) -> (OptionResult, String) {
    let failed = |kind: &str, message: String| {
        let mut payload = OptionResult::new(id, name, Value::Null);
        payload.is_error = true;
        payload.error_type = Some(kind.to_owned());
        payload.error_message = Some(message);
        payload
    };
    match outcome {
        Some(Ok(value)) => {
            let summary = one_line(&text_of(&value), SUMMARY);
            (OptionResult::new(id, name, storable(value)), summary)
        }
        Some(Err(message)) => {
            let summary = format!("failed: {}", one_line(&message, SUMMARY));
            (failed("tool_failed", message), summary)
        }
        None => {
            let message = "its end was not reported".to_owned();
            (failed("unreported", message.clone()), message)
        }
    }
}

/// Returns the text of a result that people want to see first.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) => text_of_blocks(value).unwrap_or_else(|| value.to_string()),
        // What Claude Code reports of a file that was read.
        Value::Object(fields) if fields.get("file").is_some_and(Value::is_object) => {
            let file = &fields["file"];
            let text = |name: &str| file.get(name).and_then(Value::as_str).map(str::to_owned);
            text("content").or_else(|| text("filePath")).unwrap_or_else(|| "a file".to_owned())
        }
        Value::Object(fields) => {
            let texts = ["stdout", "stderr", "filePath", "content", "message"];
            let known = texts.iter().filter_map(|name| {
                let field = fields.get(*name)?;
                field.as_str().map(str::to_owned).or_else(|| text_of_blocks(field))
            });
            let known: Vec<String> = known.collect();
            match known.iter().find(|text| !text.is_empty()) {
                Some(text) => text.clone(),
                None if known.is_empty() => value.to_string(),
                None => "no output".to_owned(),
            }
        }
        other => other.to_string(),
    }
}

/// Returns the first text of a list of blocks, as MCP and the programs write them.
fn text_of_blocks(value: &Value) -> Option<String> {
    value.as_array()?.iter().find_map(|block| block.get("text")?.as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_summarized_by_its_text() {
        let summary = |value: Value| text_of(&value);
        assert_eq!(summary(json!({"stdout": "", "stderr": "", "interrupted": false})), "no output");
        assert_eq!(summary(json!({"stdout": "", "stderr": "wrong"})), "wrong");
        assert_eq!(
            summary(json!({"agentId": "a", "content": [{"type": "text", "text": "Mended."}]})),
            "Mended."
        );
        assert_eq!(summary(json!([{"type": "text", "text": "7"}])), "7");
        assert_eq!(summary(json!({"x": 1})), "{\"x\":1}");
        let file = json!({"filePath": "/p/a.txt", "content": "one\n", "numLines": 1});
        assert_eq!(summary(json!({"type": "text", "file": file})), "one\n");
        let image = json!({"filePath": "/p/a.png", "base64": "iVBO"});
        assert_eq!(summary(json!({"type": "image", "file": image})), "/p/a.png");
        assert_eq!(summary(json!([])), "[]");
    }
}
