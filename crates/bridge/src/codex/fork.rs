//! How Codex continues from a point: with a conversation that knows another one up to a turn.
//!
//! Codex has no command for it, so its app-server is asked to begin the new conversation, which `codex resume` then opens. The
//! old one stays as it is.

use std::path::Path;

use backstitch_runtime::EngineError;

use super::server::{AppServer, AppServerSpec};
use super::thread::{Cut, ThreadId, TurnId};

/// A conversation, and where it is cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPlan {
    thread: ThreadId,
    cut: Cut,
}

impl ForkPlan {
    /// Cuts a conversation before a turn, or after it if the turn has ended. Returns `None` for ids that Codex cannot have made.
    pub fn new(conversation: &str, turn: &str, has_ended: bool) -> Option<Self> {
        let (thread, turn) = (ThreadId::new(conversation)?, TurnId::new(turn)?);
        let cut = if has_ended { Cut::After(turn) } else { Cut::Before(turn) };
        Some(Self { thread, cut })
    }

    /// Whether the point lies inside of a turn, so that the conversation begins earlier than it.
    pub fn is_inside(&self) -> bool {
        matches!(self.cut, Cut::Before(_))
    }

    /// Returns the conversation that continues. It is a new one, unless nothing has to be cut off.
    pub async fn conversation(&self, directory: &Path) -> Result<ThreadId, EngineError> {
        let mut server = AppServer::start(AppServerSpec::new(directory)).await?;
        let forked = self.with(&mut server).await;
        server.close().await;
        forked
    }

    async fn with(&self, server: &mut AppServer) -> Result<ThreadId, EngineError> {
        if let Cut::After(turn) = &self.cut
            && server.turns(&self.thread).await?.last() == Some(turn)
        {
            return Ok(self.thread.clone());
        }
        server.fork(&self.thread, &self.cut).await
    }
}
