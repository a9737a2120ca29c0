//! What the MCP server needs from the command: the tools, sessions for calls, comparing points, forks, and where to
//! approve calls.

use std::sync::{Arc, Mutex, PoisonError};

use backstitch::id::{CallId, SessionId};
use backstitch::ports::Store;
use backstitch::report::FileDetail;
use backstitch_mcp::{HostError, HostFuture, OpenCalls, ServerHost, ToolOffer};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::serve::Serve;
use super::served::ServedSessions;
use crate::common::Common;
use crate::error::{code_of, message_of};
use crate::history::fork::fork_session;
use crate::open::short;

/// The command, as the server sees it.
pub(super) struct CommandHost {
    common: Common,
    flags: Arc<Serve>,
    /// The token of clients over HTTP.
    token: Option<String>,
    served: Arc<OnceCell<Arc<ServedSessions>>>,
    /// Why there are no tools, so far.
    failure: Mutex<Option<anyhow::Error>>,
}

impl CommandHost {
    pub(super) fn new(common: Common, flags: Serve, token: Option<String>) -> Self {
        Self { common, flags: Arc::new(flags), token, served: Arc::default(), failure: Mutex::default() }
    }

    /// Waits until the agent and its session are known. After a failure, the next request tries again.
    pub(super) async fn ready(&self) -> Result<&Arc<ServedSessions>, HostError> {
        let (served, flags) = (self.served.clone(), self.flags.clone());
        let (common, token) = (self.common.clone(), self.token.clone());
        let prepare = move || async move {
            // On a thread of its own, since the parts of a definition cannot move between threads.
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(flags.prepare(&common, token))).await?
        };
        // A task, so that a request that is gone does not begin a second preparation.
        let prepared = tokio::spawn(async move { served.get_or_try_init(prepare).await.cloned() }).await;
        let failure = prepared.map_err(anyhow::Error::from).flatten().err();
        match (self.served.get(), failure) {
            (Some(served), _) => Ok(served),
            (None, failure) => {
                let error = failure.unwrap_or_else(|| anyhow::anyhow!("the session is not prepared"));
                let reason = reason(&error);
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(reason)
            }
        }
    }

    /// Returns the sessions, if they are known.
    pub(super) fn served(&self) -> Option<&Arc<ServedSessions>> {
        self.served.get()
    }

    /// Returns why there never were any tools.
    pub(super) fn failure(&self) -> Option<anyhow::Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.filter(|_| self.served.get().is_none())
    }
}

impl ServerHost for CommandHost {
    fn offer(&self) -> HostFuture<'_, Result<ToolOffer, HostError>> {
        Box::pin(async move {
            let served = self.ready().await?;
            let tools: Vec<_> = served.agent.tools.iter().map(|tool| tool.spec.clone()).collect();
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            // Some programs hide the tools until their model searches for them, and show only this.
            let instructions =
                format!("{INSTRUCTIONS} Tools of {}: {}.", served.definition.name, names.join(", "));
            Ok(ToolOffer { name: served.definition.name.clone(), tools, instructions: Some(instructions) })
        })
    }

    fn open(&self, id: Option<String>) -> HostFuture<'_, Result<OpenCalls, HostError>> {
        Box::pin(async move {
            let served = self.ready().await?.clone();
            // A task, so that a claim is never left half made by a client that is gone.
            let opened = tokio::spawn(served.open(id)).await;
            opened.map_err(anyhow::Error::from).flatten().map_err(|error| reason(&error))
        })
    }

    fn session(&self) -> HostFuture<'_, Result<(SessionId, Arc<dyn Store>), HostError>> {
        Box::pin(async move {
            let served = self.ready().await?;
            Ok((served.own, served.place.store.clone()))
        })
    }

    fn diff(&self, from: String, to: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let served = self.ready().await.map_err(|error| error.to_string())?;
            let (from, to) = (parsed(&from)?, parsed(&to)?);
            let view = served.place.view(served.own).await.map_err(text)?;
            let report = served.place.runtime.diff(&view, &from, &to, FileDetail::Diffs).await;
            Ok(json!(report.map_err(|error| text(error.into()))?))
        })
    }

    fn fork(&self, point: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let served = self.ready().await.map_err(|error| error.to_string())?;
            let view = served.place.view(served.own).await.map_err(text)?;
            let forked = fork_session(&served.place, &view, parsed(&point)?, None).await.map_err(text)?;
            Ok(json!({
                "session": forked.session, "fork_of": forked.fork_of, "workspace": forked.workspace,
            }))
        })
    }

    fn waits(&self, session: SessionId, call: CallId, name: &str) -> String {
        let (session, call) = (short(session), short(call));
        let store = self.served().map(|served| served.place.address.clone());
        let common = store.map_or_else(|| self.common.clone(), |store| self.common.naming(&store));
        let command = common.hint(format_args!("approve {session} {call}"));
        let text = format!("{name} waits for approval: `{command}` approves it, `deny` refuses it");
        eprintln!("{text}");
        text
    }
}

fn reason(error: &anyhow::Error) -> HostError {
    HostError { code: code_of(error), message: message_of(error) }
}

fn parsed(point: &str) -> Result<backstitch::PointSpec, String> {
    point.parse().map_err(|error| format!("{error}"))
}

fn text(error: anyhow::Error) -> String {
    format!("{error:#}")
}

/// What the client's model reads about the server, before the names of the tools.
const INSTRUCTIONS: &str = "Every call is a transaction: if it fails, its changes to files are rolled back. \
`checkpoints` lists the calls so far; `rewind` returns files and state to before or after one of them, and `undo` takes a rewind back.";
