//! What the runtime does for a running tool.

use std::sync::Arc;

use backstitch_core::budget::Amounts;
use backstitch_core::extra::Extra;
use backstitch_core::id::CallId;
use backstitch_core::journal::StepFinished;
use backstitch_core::ports::BoxFuture;
use backstitch_core::session::BoxError;
use backstitch_core::tool::{Progress, ToolHost};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::live::LiveSession;
use crate::telemetry::Telemetry;

/// The runtime's side of one call.
pub(super) struct Host {
    live: Arc<LiveSession>,
    telemetry: Telemetry,
    stop: CancellationToken,
}

impl Host {
    pub(super) fn new(live: Arc<LiveSession>, telemetry: Telemetry, stop: CancellationToken) -> Self {
        Self { live, telemetry, stop }
    }
}

impl ToolHost for Host {
    fn recall_step(&self, call: CallId, name: String) -> BoxFuture<'_, Result<Option<Value>, BoxError>> {
        Box::pin(async move {
            let state = self.live.state().await;
            Ok(state.view.call(call).and_then(|call| call.steps.get(&name)).cloned())
        })
    }

    fn record_step(&self, call: CallId, name: String, value: Value) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            // A value that would not come back would make the step run twice.
            backstitch_core::storable::check(&value)?;
            let step = StepFinished { call_id: call, name, value, extra: Extra::default() };
            self.live.record(vec![step.into()]).await.map_err(Into::into)
        })
    }

    fn progress(&self, call: CallId, progress: Progress) {
        self.telemetry.publish_progress(call, progress);
    }

    fn budget_left(&self) -> Option<Amounts> {
        None
    }

    fn cancelled(&self, _: CallId) -> BoxFuture<'_, ()> {
        Box::pin(self.stop.cancelled())
    }
}
