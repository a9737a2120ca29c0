//! The intent of a call, and records while it runs.

use std::sync::Arc;

use backstitch_core::journal::{CallStarted, RecordBody};
use tokio::sync::Mutex;

use crate::error::RuntimeError;
use crate::live::LiveSession;

/// The intent of a call. That of a pure call is not recorded at once, but together with the first record that
/// needs it, at the latest with the last one of the call.
pub(super) struct Intent {
    record: Arc<CallStarted>,
    recorded: Mutex<bool>,
}

impl Intent {
    pub(super) fn new(record: Arc<CallStarted>, recorded: bool) -> Self {
        Self { record, recorded: Mutex::new(recorded) }
    }

    pub(super) fn record(&self) -> &CallStarted {
        &self.record
    }

    /// Returns the intent if it has to be recorded before the call's last records.
    pub(super) async fn outstanding(&self) -> Option<RecordBody> {
        let recorded = *self.recorded.lock().await;
        (!recorded).then(|| RecordBody::CallStarted(self.record.clone()))
    }

    /// Appends records while the call runs, after the intent if that is not recorded yet.
    pub(super) async fn append(
        &self,
        live: &LiveSession,
        bodies: impl IntoIterator<Item = RecordBody>,
    ) -> Result<(), RuntimeError> {
        let mut recorded = self.recorded.lock().await;
        let first = (!*recorded).then(|| RecordBody::CallStarted(self.record.clone()));
        live.record(first.into_iter().chain(bodies).collect()).await?;
        *recorded = true;
        Ok(())
    }
}
