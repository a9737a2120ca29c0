//! The calls that run now, by id, so that a repeated one joins the first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::id::CallId;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::{OutsideCall, OutsideError, OutsideResult};
use crate::error::RuntimeError;

pub(super) type CallResult = Result<OutsideResult, Arc<OutsideError>>;
pub(super) type ResultReceiver = watch::Receiver<Option<CallResult>>;

/// The calls that run now.
#[derive(Default)]
pub(super) struct RunningCalls(Arc<Mutex<RunningTable>>);

#[derive(Default)]
struct RunningTable {
    calls: HashMap<CallId, RunningCall>,
    is_closed: bool,
}

struct RunningCall {
    name: String,
    arguments: Map<String, Value>,
    done: ResultReceiver,
}

/// The way to the result of a call.
pub(super) enum CallDone {
    /// The call runs already.
    Joined(ResultReceiver),
    /// The caller has to run it.
    Entered(ResultReceiver, RunningGuard),
}

/// Removes a call when it has ended, also by a panic.
pub(super) struct RunningGuard {
    table: Arc<Mutex<RunningTable>>,
    id: CallId,
    sender: watch::Sender<Option<CallResult>>,
}

impl RunningGuard {
    /// Publishes the result.
    pub(super) fn leave(self, result: CallResult) {
        self.sender.send_replace(Some(result));
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).calls.remove(&self.id);
    }
}

impl RunningCalls {
    /// Enters a call, or joins the same one.
    pub(super) fn enter(&self, id: CallId, call: &OutsideCall) -> Result<CallDone, Arc<OutsideError>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = table.calls.get(&id) {
            if known.name != call.name || known.arguments != call.arguments {
                return Err(Arc::new(OutsideError::Reused { id: call.id.clone().unwrap_or_default() }));
            }
            return Ok(CallDone::Joined(known.done.clone()));
        }
        if table.is_closed {
            return Err(Arc::new(OutsideError::Closed));
        }
        let (sender, done) = watch::channel(None);
        let (name, arguments) = (call.name.clone(), call.arguments.clone());
        table.calls.insert(id, RunningCall { name, arguments, done: done.clone() });
        Ok(CallDone::Entered(done, RunningGuard { table: self.0.clone(), id, sender }))
    }

    pub(super) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).calls.len()
    }
}

/// Waits for the result of a call.
pub(super) async fn wait(mut done: ResultReceiver) -> CallResult {
    match done.wait_for(Option::is_some).await {
        Ok(result) => result.clone().unwrap_or_else(|| Err(Arc::new(OutsideError::Closed))),
        Err(_) => Err(Arc::new(RuntimeError::ShuttingDown.into())),
    }
}
