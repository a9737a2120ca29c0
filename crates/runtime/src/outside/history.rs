//! Changes of history that a caller outside asks for: rewinds, undos, forks.
//!
//! A note that names the call is durable before anything changes. The call and its result follow as messages on the
//! branch that is current afterwards. So a repeated request never changes history a second time: it returns the
//! result, or, after a crash in between, an error that says so.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use backstitch_core::id::CallId;
use backstitch_core::journal::{Note, Position, RecordBody};
use serde_json::{Value, json};

use super::{OutsideCall, OutsideCalls, OutsideError, OutsideResult};
use crate::driver::NewCall;
use crate::error::RuntimeError;
use crate::live::{LiveSession, read_records};

/// Topic of the note that names a change of history.
const TOPIC: &str = "outside";

impl OutsideCalls {
    /// Changes history with `act`, and records the call with its result: a value, or the reason of a refusal. Fails
    /// with [`OutsideError::Busy`] while calls run.
    pub async fn change_history<F, W>(
        self: &Arc<Self>,
        call: OutsideCall,
        act: F,
    ) -> Result<OutsideResult, Arc<OutsideError>>
    where
        F: FnOnce(Arc<LiveSession>) -> W + Send + 'static,
        W: Future<Output = Result<Value, String>> + Send + 'static,
    {
        let calls = self.clone();
        let changed = self.tasks.spawn(async move { calls.change(call, act).await });
        match changed.await {
            Ok(result) => result.map_err(Arc::new),
            Err(join) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
            Err(_) => Err(Arc::new(RuntimeError::ShuttingDown.into())),
        }
    }

    async fn change<F, W>(&self, call: OutsideCall, act: F) -> Result<OutsideResult, OutsideError>
    where
        F: FnOnce(Arc<LiveSession>) -> W,
        W: Future<Output = Result<Value, String>>,
    {
        let id = call.call_id;
        let busy = || OutsideError::Busy { count: self.running().max(1) };
        let _alone = self.gate.try_write().map_err(|_| busy())?;
        if let Some(known) = self.repeated(id, &call).await? {
            return Ok(known);
        }
        if !self.begun.lock().unwrap_or_else(PoisonError::into_inner).insert(id) {
            return Err(OutsideError::Interrupted { id: call.id.unwrap_or_default() });
        }
        // A session that has no call yet is stored with this.
        self.evaluation().await?;
        let note = Note::new(TOPIC, format!("{} was requested", call.name));
        let note = note.with_data(json!({ "call_id": id, "arguments": &call.arguments }));
        self.session().record(vec![note.into()]).await?;
        let before = self.visible_calls().await;
        let result = act(self.session().clone()).await;
        let after = self.visible_calls().await;
        let undone = before.difference(&after).copied();
        self.undone.lock().unwrap_or_else(PoisonError::into_inner).extend(undone);
        self.driver.end_outside_calls("was undone by a rewind to before it").await?;
        let evaluation = self.evaluation().await?;
        let new = NewCall { id, foreign: call.id.as_deref(), name: &call.name, arguments: &call.arguments };
        let message = self.driver.record_outside(evaluation, new, &result).await?;
        Ok(OutsideResult { call: id, message, is_repeated: false })
    }

    async fn visible_calls(&self) -> HashSet<CallId> {
        self.session().state().await.view.calls().map(|call| call.call_id).collect()
    }

    /// Reads which calls were undone by rewinds, and which changes of history were begun.
    pub(super) async fn read_history(&self) -> Result<(), RuntimeError> {
        let live = self.session();
        let visible = self.visible_calls().await;
        let records = match read_records(&**live.store(), live.id(), Position::START, None).await {
            // A new session is stored with its first call.
            Err(RuntimeError::SessionNotFound { .. }) => return Ok(()),
            records => records?,
        };
        let mut undone = self.undone.lock().unwrap_or_else(PoisonError::into_inner);
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            match &record.body {
                RecordBody::MessageAppended(message) => {
                    let call = message.message.option_call().map(|call| call.invocation_id);
                    undone.extend(call.filter(|call| !visible.contains(call)));
                }
                RecordBody::Note(note) if note.topic == TOPIC => {
                    let call: Option<CallId> =
                        note.data.inline().and_then(|data| data.get("call_id")?.as_str()?.parse().ok());
                    begun.extend(call);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
