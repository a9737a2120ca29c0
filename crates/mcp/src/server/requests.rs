//! The running requests of a connection, and how a client cancels them.
//!
//! The SDK cancels the token of a request for several reasons: the client said so, the connection ended, or the server
//! stops. Only the first one is a wish of the client, so it is noted here. An exception are requests over HTTP since
//! revision 2026-07-28, in which closing the response is the way to cancel a request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ProtocolVersion, RequestId};
use rmcp::service::RequestContext;
use tokio_util::sync::CancellationToken;

/// The running requests of one connection. Clones share them.
#[derive(Clone, Default)]
pub(super) struct RunningRequests {
    tokens: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
    /// Whether each request of the newest revision is a connection of its own.
    is_http: bool,
}

/// A running request. Its entry is removed with it.
pub(super) struct RunningRequest {
    requests: RunningRequests,
    id: RequestId,
    token: CancellationToken,
}

impl RunningRequests {
    /// Returns those of a connection over HTTP.
    pub(super) fn of_http() -> Self {
        Self { is_http: true, ..Self::default() }
    }

    /// Enters a request.
    pub(super) fn enter(&self, context: &RequestContext<RoleServer>) -> RunningRequest {
        let is_own = self.is_http && is_newest(context);
        let token = if is_own { context.ct.clone() } else { CancellationToken::new() };
        // The notification may have been handled before the request.
        if context.ct.is_cancelled() {
            token.cancel();
        }
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(context.id.clone(), token.clone());
        drop(tokens);
        RunningRequest { requests: self.clone(), id: context.id.clone(), token }
    }

    /// Notes that the client cancels a request.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(token) = self.tokens.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            token.cancel();
        }
    }
}

/// Whether a request is of revision 2026-07-28 or a later one, which have no requests of the server.
pub(super) fn is_newest(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

impl RunningRequest {
    /// Completes when the client cancels the request.
    pub(super) async fn cancelled(&self) {
        self.token.cancelled().await;
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.requests.tokens.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
