//! Rewinding as an extension of the protocol, in the form of `claude-agent-acp`: `_session/rewind_points` and `_session/rewind`.
//!
//! A rewind returns to before a message of the person: the files, the conversation, or both. It is durable once it is answered, and it
//! can be undone (`/undo`).

use agent_client_protocol::{Error, JsonRpcRequest, JsonRpcResponse};
use backstitch::report::RewindReport;
use backstitch::{HistoryStep, RewindScope, RewoundHalf};
use serde::{Deserialize, Serialize};

use crate::error::{invalid, of_runtime};
use crate::session::EditorSession;

/// Asks for the messages that a session can be rewound to.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/rewind_points", response = RewindPointsAnswer)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RewindPointsRequest {
    pub(crate) session_id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RewindPointsAnswer {
    points: Vec<ListedPoint>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedPoint {
    message_id: String,
    /// The answer before it. The first message has none.
    resume_at_message_id: Option<String>,
    text: String,
    /// Its number, from 1.
    index: usize,
}

/// Asks for a rewind to before a message.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/rewind", response = RewindAnswer)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RewindRequest {
    pub(crate) session_id: String,
    message_id: String,
    #[serde(default)]
    mode: RewindMode,
    #[serde(default)]
    dry_run: bool,
}

/// What is rewound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RewindMode {
    #[default]
    Files,
    Conversation,
    Both,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RewindAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<RewoundFiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<RewoundConversation>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RewoundFiles {
    can_rewind: bool,
    /// Absolute paths.
    files_changed: Vec<String>,
    /// Files that others changed too, and that are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_alone: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RewoundConversation {
    rewound: bool,
    messages_dropped: usize,
}

/// Returns the capability, for `_meta` of the answer to `initialize`.
pub(crate) fn capability() -> serde_json::Map<String, serde_json::Value> {
    let modes = serde_json::json!({"rewindSession": {"modes": ["files", "conversation", "both"]}});
    serde_json::Map::from_iter([("claudeCode".to_owned(), modes)])
}

impl EditorSession {
    /// Lists the messages that the session can be rewound to.
    pub(crate) async fn list_rewind_points(&self) -> Result<RewindPointsAnswer, Error> {
        let state = self.idle_state()?;
        if !state.prepared.is_stored {
            return Ok(RewindPointsAnswer { points: Vec::new() });
        }
        let view = state.prepared.runtime.view(self.session).await.map_err(|error| of_runtime(&error))?;
        let points = self.rewind_points(&state, &view).await.map_err(|error| of_runtime(&error))?;
        let listed = points.into_iter().enumerate().map(|(place, point)| ListedPoint {
            message_id: point.message_id,
            resume_at_message_id: point.answer_before,
            text: point.text,
            index: place + 1,
        });
        Ok(RewindPointsAnswer { points: listed.collect() })
    }

    /// Rewinds to before a message. Refused while a turn runs.
    pub(crate) async fn rewind(&self, request: RewindRequest) -> Result<RewindAnswer, Error> {
        let mut state = self.idle_state()?;
        if !state.prepared.is_stored {
            return Err(invalid("the conversation has not begun, so there is nothing to rewind"));
        }
        let view = state.prepared.runtime.view(self.session).await.map_err(|error| of_runtime(&error))?;
        let points = self.rewind_points(&state, &view).await.map_err(|error| of_runtime(&error))?;
        let Some(place) = points.iter().position(|point| point.message_id == request.message_id) else {
            return Err(invalid(
                "`messageId` is not that of a message of this conversation; `_session/rewind_points` lists them",
            ));
        };
        let dropped = points[place..].iter().map(|point| point.messages).sum();
        let only = match request.mode {
            RewindMode::Files => Some(RewoundHalf::Files),
            RewindMode::Conversation => Some(RewoundHalf::Conversation),
            RewindMode::Both => None,
        };
        let scope = RewindScope { only, dry_run: request.dry_run, ..RewindScope::default() };
        let directory = state.files_directory();
        let done = self.step(&mut state, HistoryStep::To(points[place].point.clone()), scope).await?;
        let inside = |path: &str| directory.join(path).to_string_lossy().into_owned();
        Ok(RewindAnswer {
            files: (request.mode != RewindMode::Conversation).then(|| files_of(&done, inside)),
            conversation: (request.mode != RewindMode::Files)
                .then_some(RewoundConversation { rewound: !done.dry_run, messages_dropped: dropped }),
        })
    }
}

fn files_of(done: &RewindReport, inside: impl Fn(&str) -> String) -> RewoundFiles {
    let plan = &done.own_files;
    RewoundFiles {
        can_rewind: true,
        files_changed: plan.changes.iter().map(|change| inside(&change.path)).collect(),
        left_alone: plan.conflicts.iter().map(|conflict| inside(&conflict.path)).collect(),
    }
}
