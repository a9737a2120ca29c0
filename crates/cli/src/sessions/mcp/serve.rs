//! `mcp serve`: the tools of an agent for MCP clients.
//!
//! The session of the same agent and directory is continued, so that a client that was restarted finds its calls
//! again. Standard output belongs to the protocol, or over HTTP to the URL; everything for people goes to standard
//! error.

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::agent_file::{AgentDefinition, BuildOptions};
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::message::PolicyName;
use backstitch::ports::{SessionQuery, Workspace};
use backstitch::{Agent, OutsideCalls, RuntimeError, SessionOptions, SystemClock, entropy};
use backstitch_mcp::{ServeError, ToolServer};
use clap::Args;
use tokio_util::sync::CancellationToken;

use super::address::{HttpFlags, OpenAddress};
use super::host::CommandHost;
use crate::common::Common;
use crate::error::CommandError;
use crate::keys;
use crate::sessions::approve::SERVED;
use crate::sessions::definition::{AgentFlags, ModelNeed, changed_tools, definition_of, pinned};
use crate::sessions::holder::{WhenDriven, set_free};
use crate::sessions::place::{OpenStore, short, uncovered};
use crate::sessions::signals::Signals;

/// Tag of the sessions of a server, with the agent's name.
const MCP: &str = SERVED;

#[derive(Args)]
pub(crate) struct Serve {
    /// Session to continue: its id, or at least 4 characters of its beginning or end. Default: the latest one of
    /// this agent and directory, else a new one.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Start a new session.
    #[arg(long, conflicts_with = "session")]
    new: bool,
    #[command(flatten)]
    http: HttpFlags,
    #[command(flatten)]
    agent: AgentFlags,
}

impl Serve {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let address = self.http.open().await?;
        let mut definition = pinned(common, self.agent.definition_for(common, ModelNeed::Optional)?).await?;
        let here = std::env::current_dir()?;
        let place =
            OpenStore::existing_or_new(common, definition.workspace.path.as_deref().unwrap_or(&here))?;
        let common = &common.naming(place.store.path());
        let known = self.known(&place, &definition).await?;
        let id = match known {
            Some(session) => session,
            None => entropy::fresh_ids(Arc::new(SystemClock::new()))?.next(),
        };
        let mut change = None;
        if let Some(session) = known {
            set_free(common, &place, session, WhenDriven::Refuse).await?;
            let recorded = definition_of(&place, &place.view(session).await?, None).await?;
            if !self.agent.names_workspace() {
                definition.workspace.path.clone_from(&recorded.workspace.path);
            }
            if recorded.to_recorded() != definition.to_recorded() {
                change = Some(changed_tools(&recorded, &definition));
            }
        }
        let options = BuildOptions { key: Box::new(keys::key), transport: None };
        let agent = definition.build_for_calls(PolicyName::new(MCP)?, &options)?;
        let agent = agent.with_approval_rules(common.config.approval_rules());
        let workspace = place.workspace(&definition, id)?;
        if let Some(paths) = workspace.as_deref().and_then(uncovered) {
            eprintln!("not covered, so neither captured nor restored: {paths}");
        }
        let files = workspace.map(|workspace| workspace as Arc<dyn Workspace>);
        let calls = opened(&place, agent, &definition, known, id, files).await?;
        if let Some(change) = change {
            calls.session().record(vec![change]).await?;
        }
        let served = serve(common, place, &definition, calls.clone(), address).await;
        let closed = calls.close().await;
        calls.session().release().await?;
        closed?;
        served
    }

    /// Finds the session to continue.
    async fn known(
        &self,
        place: &OpenStore,
        definition: &AgentDefinition,
    ) -> anyhow::Result<Option<SessionId>> {
        if let Some(name) = &self.session {
            return place.session(Some(name)).await.map(Some);
        }
        if self.new {
            return Ok(None);
        }
        let mut query = SessionQuery::roots().with_tag(MCP, &definition.name).with_limit(1);
        if let Some(directory) = &definition.workspace.path {
            query = query.with_workspace(directory.display().to_string());
        }
        let page = place.runtime.sessions(query).await?;
        Ok(page.sessions.first().map(|session| session.id()))
    }
}

/// Creates or opens the session, and ends what an earlier server left open.
async fn opened(
    place: &OpenStore,
    agent: Agent,
    definition: &AgentDefinition,
    known: Option<SessionId>,
    id: SessionId,
    workspace: Option<Arc<dyn Workspace>>,
) -> anyhow::Result<Arc<OutsideCalls>> {
    let options = SessionOptions { workspace, ..SessionOptions::default() };
    let driver = match known {
        Some(session) => place.runtime.open(session, agent, options).await?,
        None => {
            let tags = [(MCP.to_owned(), definition.name.clone())].into();
            let options = SessionOptions { id: Some(id), tags, stored_with_mission: true, ..options };
            place.runtime.create(agent, options).await?
        }
    };
    let live = driver.session().clone();
    match OutsideCalls::open(driver).await {
        Ok(calls) => Ok(calls),
        Err(error) => {
            live.release().await?;
            if !matches!(error.cause(), RuntimeError::EvaluationOpen { .. }) {
                return Err(error.into());
            }
            let message = format!("session {} has not answered yet", short(id));
            let hint =
                format!("`backstitch resume {0}` continues, `backstitch cancel {0}` ends it", short(id));
            Err(CommandError::new(ErrorCode::EvaluationOpen, message).with_hint(hint).into())
        }
    }
}

/// Serves the client until it leaves, or clients over HTTP until a signal.
async fn serve(
    common: &Common,
    place: OpenStore,
    definition: &AgentDefinition,
    calls: Arc<OutsideCalls>,
    address: Option<OpenAddress>,
) -> anyhow::Result<ExitCode> {
    let session = calls.session().id();
    let host = CommandHost { common: common.clone(), place, session };
    let server =
        ToolServer::new(calls.clone(), Arc::new(host), &definition.name, Some(INSTRUCTIONS.to_owned()));
    if !common.quiet {
        eprintln!("session {session}, {} tools", server.tool_names().len());
    }
    let mut signals = Signals::listen().context("signals cannot be handled here")?;
    let stop = CancellationToken::new();
    let is_http = address.is_some();
    let mut serving: Pin<Box<dyn Future<Output = Result<(), ServeError>>>> = match address {
        None => Box::pin(server.serve_stdio(stop.clone())),
        Some(address) => {
            address.announce(&definition.name, common.quiet);
            Box::pin(server.serve_http(address.listener, address.access, stop.clone()))
        }
    };
    let served = tokio::select! {
        served = &mut serving => served,
        _ = signals.next() => {
            eprintln!("stopping: running calls are rolled back");
            calls.stop();
            if is_http {
                // The clients are told how their calls ended.
                calls.settled().await;
            }
            stop.cancel();
            let _ = serving.await;
            return Ok(ExitCode::from(130));
        }
    };
    served.map_err(|error| {
        CommandError::new(ErrorCode::Usage, error.to_string()).with_hint(
            "start it from an MCP client, such as `claude mcp add NAME -- backstitch mcp serve --agent FILE`",
        )
    })?;
    // Calls of a client that is gone are finished, unless a signal stops them or they wait for a decision: the next
    // client could not open the session until a person decides.
    calls.give_up_waiting();
    tokio::select! {
        () = calls.settled() => Ok(ExitCode::SUCCESS),
        _ = signals.next() => {
            calls.stop();
            Ok(ExitCode::from(130))
        }
    }
}

/// What the client's model reads about the server.
const INSTRUCTIONS: &str = "Every call is a transaction: if it fails, its changes to files are rolled back. \
`checkpoints` lists the calls so far; `rewind` returns files and state to before or after one of them, and `undo` takes a rewind back.";
