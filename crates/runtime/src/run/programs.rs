//! Sessions of programs that have their own loop: those whose reports are recorded ([`ObservedSession`]), and those whose
//! calls run here ([`OutsideCalls`]). This process holds them until they are released.

use backstitch_core::ports::BoxFuture;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::message::PolicyName;

use crate::agent::Agent;
use crate::error::{Result, RuntimeError};
use crate::observed::ObservedSession;
use crate::outside::{OutsideCalls, OutsideMemory};
use crate::runtime::{Runtime, SessionOptions};

impl Runtime {
    /// Opens a session whose work another program does, to record its reports. Fails with the code `session_held` while
    /// another process holds it. [`Runtime::create_observed`] creates one.
    pub fn open_observed(
        &self,
        session: SessionId,
        program: PolicyName,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<ObservedSession>> {
        Box::pin(async move { Ok(ObservedSession::new(self.open_idle(session, options).await?, program)) })
    }

    /// Opens a session for the calls of a program outside, with the tools of an agent. If the options name its id, a session
    /// that does not exist is created with their tags, and stored with its first call. `memory` is what
    /// [`OutsideCalls::memory`] returned before the session was released. If the session cannot be prepared, it is released.
    pub fn open_outside<'a>(
        &'a self,
        session: SessionId,
        agent: &'a Agent,
        options: SessionOptions,
        memory: Option<OutsideMemory>,
    ) -> BoxFuture<'a, Result<Arc<OutsideCalls>>> {
        Box::pin(async move {
            let SessionOptions { workspace, tags, id, .. } = options;
            let known = SessionOptions { workspace: workspace.clone(), ..SessionOptions::default() };
            let driver = match self.open(session, agent.clone(), known).await {
                Err(RuntimeError::SessionNotFound { .. }) if id == Some(session) => {
                    let new = SessionOptions {
                        workspace,
                        tags,
                        id,
                        stored_with_mission: true,
                        ..SessionOptions::default()
                    };
                    self.create(agent.clone(), new).await?
                }
                opened => opened?,
            };
            let live = driver.session().clone();
            let opened = OutsideCalls::open_again(driver, memory).await;
            if opened.is_err() {
                live.release().await?;
            }
            opened
        })
    }
}
