//! Whoever waits for a call, and what becomes of the call when nobody does any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// Whoever waits for a call: as long as its future is there, somebody does.
pub(super) struct Waiter {
    /// Cancelled with the runner, and when nobody waits any more.
    stop: CancellationToken,
    is_gone: AtomicBool,
}

impl Waiter {
    pub(super) fn new(runner: &CancellationToken) -> Arc<Self> {
        Arc::new(Self { stop: runner.child_token(), is_gone: AtomicBool::new(false) })
    }

    /// Nobody waits any more.
    pub(super) fn leave(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
        self.stop.cancel();
    }

    /// Whether nobody waits any more.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    /// Stops what works for the call, with the runner or when nobody waits any more.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Completes when nobody waits any more.
    pub(super) async fn left(&self) {
        self.stop.cancelled().await;
        if !self.is_gone() {
            std::future::pending::<()>().await;
        }
    }
}
