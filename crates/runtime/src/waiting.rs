//! Calls that wait for a person, and the arguments of calls.

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{ApprovalSubject, PauseReason};
use backstitch_core::message::Large;
use backstitch_core::ports::{BoxFuture, Store, fetch_large};
use backstitch_core::view::{Call, JournalView};
use serde_json::Value;

use crate::content::{arguments_of, with_content};
use crate::error::{Result, RuntimeError};
use crate::live::load_view;

/// A call that waits for a decision of a person.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingCall {
    /// The session that the decision is recorded in: the given one, or a child session of one of its calls.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub name: String,
    /// The arguments that it would run with, or did run with.
    pub arguments: Value,
    /// What has to be decided: whether the call may run, or whether it took effect.
    pub reason: PauseReason,
    /// Details for a person.
    pub detail: String,
    /// Whether a result is recorded that can be used again.
    pub has_offer: bool,
    /// What the person is asked about, if the call needs approval.
    pub subject: Option<ApprovalSubject>,
}

/// The questions about calls that a person was asked, each with what it was about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AskedCalls(Vec<(CallId, Option<ApprovalSubject>)>);

impl AskedCalls {
    /// Returns the first of the calls that wait whose approval was not asked for, and notes it. A question that has ended is asked
    /// again if the call waits with the same subject later.
    pub fn first_new(&mut self, waiting: Vec<WaitingCall>) -> Option<WaitingCall> {
        let about = |call: &WaitingCall| (call.call, call.subject.clone());
        let open: Vec<_> = waiting.iter().map(about).collect();
        self.0.retain(|question| open.contains(question));
        let is_new =
            |call: &WaitingCall| call.reason == PauseReason::Approval && !self.0.contains(&about(call));
        let call = waiting.into_iter().find(is_new)?;
        self.0.push(about(&call));
        Some(call)
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallArguments {
    /// The arguments as the model wrote them: an object, or a text if they are none.
    pub asked: Value,
    /// The arguments that the call was started with, or is about to be, if a person edited them.
    pub edited: Option<Value>,
}

impl CallArguments {
    /// Returns the arguments that the call ran with, or would run with.
    pub fn current(self) -> Value {
        self.edited.unwrap_or(self.asked)
    }
}

/// Returns the arguments of a call. Large ones are fetched from the store.
pub async fn call_arguments(store: &dyn Store, view: &JournalView, call: CallId) -> Result<CallArguments> {
    let known = view.call(call);
    let mut edited = known.and_then(Call::edited_arguments).cloned().map(Value::Object);
    if let Some(intent) = known.and_then(|call| call.intent.as_ref())
        && edited.is_none()
    {
        let mut started = intent.record.clone();
        fetch_large(store, &mut started).await?;
        edited = started.arguments.as_ref().and_then(Large::inline).cloned().map(Value::Object);
    }
    let transcript = view.transcript()?;
    let Some(message) = transcript.message_of(call) else {
        return Ok(CallArguments { asked: Value::Null, edited });
    };
    let message = with_content(store, message).await?;
    Ok(CallArguments { asked: arguments_of(&message), edited })
}

/// Lists the calls of a session and of its sub-agents that wait for a decision, in the order in which they
/// started to wait.
pub(crate) fn waiting_calls(
    store: &dyn Store,
    session: SessionId,
) -> BoxFuture<'_, Result<Vec<WaitingCall>>> {
    Box::pin(async move {
        let view = load_view(store, session, None).await?;
        let mut all = Vec::new();
        for pause in view.pauses() {
            let Some(id) = pause.call_id else { continue };
            let Some(call) = view.call(id) else { continue };
            // The pause names the session that waits, at any depth. Calls of the sessions between wait too.
            if let Some(child) = pause.session {
                let below = waiting_calls(store, call.session().unwrap_or(child)).await;
                match below {
                    Err(RuntimeError::SessionNotFound { .. }) => {}
                    below => {
                        all.extend(below?);
                        continue;
                    }
                }
            }
            all.push(WaitingCall {
                session,
                call: id,
                name: call.name.clone(),
                arguments: call_arguments(store, &view, id).await?.current(),
                reason: pause.reason,
                detail: pause.detail.clone().unwrap_or_default(),
                has_offer: pause.offer.is_some(),
                subject: pause.subject.clone(),
            });
        }
        Ok(all)
    })
}
