//! The caller of a running call, and the end of the call when the caller is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// Represents the caller of a running call. It is gone once the future of the call is dropped.
pub(super) struct Waiter {
    /// Cancelled with the runner, and when the caller is gone.
    stop: CancellationToken,
    is_gone: AtomicBool,
}

impl Waiter {
    pub(super) fn new(runner: &CancellationToken) -> Arc<Self> {
        Arc::new(Self { stop: runner.child_token(), is_gone: AtomicBool::new(false) })
    }

    /// Marks the caller as gone.
    pub(super) fn leave(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
        self.stop.cancel();
    }

    /// True if the caller is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    /// Returns the token that stops the call's child session: with the runner, or when the caller is gone.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Completes when the caller is gone.
    pub(super) async fn wait_until_gone(&self) {
        self.stop.cancelled().await;
        if !self.is_gone() {
            std::future::pending::<()>().await;
        }
    }
}
