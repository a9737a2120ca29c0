//! A recorded conversation as an editor shows it: messages, calls with their results and changes, and the plan.
//!
//! Only what is visible is replayed, so that a rewind is respected. Thoughts of models are recorded in the form of their provider
//! alone, and are not shown again.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    ContentChunk, MessageId, SessionUpdate, ToolCallStatus, ToolCallUpdateFields,
};
use backstitch::host::readable_message;
use backstitch::journal::{InnerMessage, Role};
use backstitch::view::JournalView;
use backstitch::{Runtime, RuntimeError};

use crate::updates::{plan_of, status_of};
use crate::{calls, diffs};

/// Number of messages that are read at a time.
const AT_ONCE: usize = 64;

/// Replays the conversation of a session.
pub(crate) async fn replay(
    runtime: &Runtime,
    view: &JournalView,
    directory: &Path,
    mut send: impl FnMut(SessionUpdate),
) -> Result<(), RuntimeError> {
    let count = view.message_count();
    for from in (0..count).step_by(AT_ONCE) {
        for message in view.messages(from..count.min(from + AT_ONCE))? {
            let message = readable_message(&*runtime.opened_store().store, &message).await?;
            for update in of_message(runtime, view, directory, &message).await {
                send(update);
            }
        }
    }
    if let Some(plan) = plan_of(runtime, view.session_id()).await {
        send(plan);
    }
    Ok(())
}

async fn of_message(
    runtime: &Runtime,
    view: &JournalView,
    directory: &Path,
    message: &InnerMessage,
) -> Vec<SessionUpdate> {
    if let Some(call) = message.message.option_call() {
        let arguments = calls::arguments_of(message);
        let subject = (call.option_name.as_str(), &arguments);
        let announced = calls::announced(directory, call.invocation_id, subject, None);
        let mut updates = vec![SessionUpdate::ToolCall(announced)];
        // A call that was started and has neither a result nor an end was interrupted.
        if view.call(call.invocation_id).is_some_and(|call| call.is_open()) {
            let text = Some("It was interrupted before it ended.");
            let fields = calls::finished(ToolCallStatus::Failed, text, Vec::new());
            updates.push(SessionUpdate::ToolCallUpdate(calls::update(call.invocation_id, fields)));
        }
        return updates;
    }
    if let Some(result) = message.message.option_result() {
        let known = view.call(result.invocation_id);
        let ends =
            known.and_then(|call| Some((&call.intent.as_ref()?.record, &call.finished.as_ref()?.record)));
        let diffs = match ends {
            Some((started, finished)) => {
                let objects = runtime.opened_store().objects.clone();
                diffs::of_finished(objects, directory, started, finished).await
            }
            None => Vec::new(),
        };
        let fields: ToolCallUpdateFields =
            calls::finished(status_of(result.is_error), Some(&message.content()), diffs);
        return vec![SessionUpdate::ToolCallUpdate(calls::update(result.invocation_id, fields))];
    }
    let text = backstitch::host::message_text(message);
    let is_empty = text.trim().is_empty();
    match message.role() {
        Role::User if !is_empty => {
            let chunk = ContentChunk::new(text.into()).message_id(MessageId::new(user_message_id(message)));
            vec![SessionUpdate::UserMessageChunk(chunk)]
        }
        Role::Assistant if !is_empty => {
            let chunk = ContentChunk::new(text.into()).message_id(MessageId::new(agent_message_id(message)));
            vec![SessionUpdate::AgentMessageChunk(chunk)]
        }
        _ => Vec::new(),
    }
}

/// Returns the id of a message of a person: that of the evaluation that it starts.
pub(crate) fn user_message_id(message: &InnerMessage) -> String {
    message.evaluation_id.to_string()
}

/// Returns the id of an answer.
pub(crate) fn agent_message_id(message: &InnerMessage) -> String {
    format!("{}/{}", message.evaluation_id, message.turn)
}

/// Whether the latest turn has not ended.
pub(crate) fn is_open(view: &JournalView) -> bool {
    view.latest_evaluation().is_some_and(|latest| latest.finished.is_none())
}
