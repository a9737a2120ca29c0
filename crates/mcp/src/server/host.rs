//! What the server needs from the program that it runs in: the tools, and the session for the time of a call.
//!
//! The session and its directory are claimed for the time of a call only, so that other clients, other sessions and
//! other programs can use them in between. A reason why there are no tools, or no session, is a result for the client,
//! not the end of the server.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::ports::{BoxFuture, Store};
use backstitch_core::tool::ToolSpec;
use backstitch_runtime::OutsideCalls;
use serde_json::Value;

/// A future of a [`ServerHost`].
pub type HostFuture<'a, T> = BoxFuture<'a, T>;

/// A session, and the store that holds it.
pub type StoredSession = (SessionId, Arc<dyn Store>);

/// Why a client gets no tools, or a call no session.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// The code that `explain` knows.
    pub code: ErrorCode,
    /// The reason, and what to do.
    pub message: String,
}

/// The tools that a server offers.
#[derive(Debug, Clone)]
pub struct ToolOffer {
    /// The name of the agent.
    pub name: String,
    /// The tools of the agent.
    pub tools: Vec<Arc<ToolSpec>>,
    /// What the model of the client reads about the server.
    pub instructions: Option<String>,
}

/// The program that a server runs in.
pub trait ServerHost: Send + Sync + 'static {
    /// Waits until the tools are known. A failure may be followed by success.
    fn offer(&self) -> HostFuture<'_, Result<ToolOffer, HostError>>;

    /// Claims the session of a call, and waits for others that hold it. `id` is the client's own id of the call: one
    /// that is known in another session of the same agent and directory belongs there.
    fn open(&self, id: Option<String>) -> HostFuture<'_, Result<OpenCalls, HostError>>;

    /// Returns the session and its store, to read its history. It may have no records yet.
    fn session(&self) -> HostFuture<'_, Result<StoredSession, HostError>>;

    /// Compares the files, the state and the conversation of two points. An error is a text for the client.
    fn diff(&self, from: String, to: String) -> HostFuture<'_, Result<Value, String>>;

    /// Starts another session from a point. An error is a text for the client.
    fn fork(&self, point: String) -> HostFuture<'_, Result<Value, String>>;

    /// Reports that a call waits for approval, and returns a text that says where it can be approved.
    fn waits(&self, session: SessionId, call: CallId, name: &str) -> String;
}

/// Releases the session of a call.
type Closer = Box<dyn FnOnce(Arc<OutsideCalls>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A session that is claimed for a call.
pub struct OpenCalls {
    calls: Arc<OutsideCalls>,
    closer: Option<Closer>,
}

impl OpenCalls {
    /// A session that stays claimed.
    pub fn held(calls: Arc<OutsideCalls>) -> Self {
        Self { calls, closer: None }
    }

    /// A session that `closer` releases.
    pub fn new(
        calls: Arc<OutsideCalls>,
        closer: impl FnOnce(Arc<OutsideCalls>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self { calls, closer: Some(Box::new(closer)) }
    }

    /// Returns the calls of the session.
    pub fn calls(&self) -> &Arc<OutsideCalls> {
        &self.calls
    }

    /// Releases the session, unless other calls use it.
    pub async fn close(mut self) {
        if let Some(closer) = self.closer.take() {
            let calls = self.calls.clone();
            drop(self);
            closer(calls).await;
        }
    }
}

impl Drop for OpenCalls {
    fn drop(&mut self) {
        if let (Some(closer), Ok(runtime)) = (self.closer.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(closer(self.calls.clone()));
        }
    }
}

/// The host of an engine: its session is held by this process, and has no history tools.
pub(super) struct HeldHost(pub(super) Arc<OutsideCalls>);

impl ServerHost for HeldHost {
    fn offer(&self) -> HostFuture<'_, Result<ToolOffer, HostError>> {
        Box::pin(async move {
            let agent = self.0.driver().agent();
            let tools: Vec<Arc<ToolSpec>> = agent.tools.iter().map(|tool| tool.spec.clone()).collect();
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            // Some programs hide the tools until their model searches for them, and show only this.
            let instructions = (!names.is_empty()).then(|| format!("Tools: {}.", names.join(", ")));
            Ok(ToolOffer { name: agent.key.clone(), tools, instructions })
        })
    }

    fn open(&self, _: Option<String>) -> HostFuture<'_, Result<OpenCalls, HostError>> {
        Box::pin(async move { Ok(OpenCalls::held(self.0.clone())) })
    }

    fn session(&self) -> HostFuture<'_, Result<(SessionId, Arc<dyn Store>), HostError>> {
        Box::pin(async move { Ok((self.0.session().id(), self.0.session().store().clone())) })
    }

    fn diff(&self, _: String, _: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async { Err("an engine cannot compare points of its session".to_owned()) })
    }

    fn fork(&self, _: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async { Err("an engine cannot fork its session".to_owned()) })
    }

    fn waits(&self, _: SessionId, _: CallId, name: &str) -> String {
        format!("{name} waits for approval")
    }
}
