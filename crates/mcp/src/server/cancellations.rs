//! The requests that the client has cancelled by name.
//!
//! The SDK stops a request when the client cancels it, and also some time after the client is gone. The second is no wish of
//! the client. A client may do both at once: cancel a request and leave. So once it is gone, only its
//! notifications count.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// The requests that the client has cancelled by name.
#[derive(Debug, Default)]
pub(super) struct Cancellations {
    named: Mutex<HashSet<RequestId>>,
    changed: Notify,
}

impl Cancellations {
    /// Forgets a request, whose id begins to be used.
    pub(super) fn forget(&self, id: &RequestId) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Notes that the client cancels a request.
    pub(super) fn add(&self, id: RequestId) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        self.changed.notify_waiters();
    }

    /// Completes when the client has cancelled a request.
    pub(super) async fn of(&self, id: &RequestId) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Before the look, so that nothing is missed between the two.
            changed.as_mut().enable();
            if self.named.lock().unwrap_or_else(PoisonError::into_inner).contains(id) {
                return;
            }
            changed.await;
        }
    }
}
