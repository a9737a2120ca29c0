//! `mcp serve`: the tools of an agent for MCP clients.
//!
//! The session of the same agent and directory is continued, so that a client that was restarted finds its calls
//! again. Standard output belongs to the protocol, or over HTTP to the URL; everything for people goes to standard
//! error.

use std::io::IsTerminal as _;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use backstitch::agent_file::{AgentDefinition, BuildOptions, SERVER_TOKEN_VARIABLE, Span};
use backstitch::id::SessionId;
use backstitch::message::PolicyName;
use backstitch_mcp::{ApprovalBy, ApprovalSettings, ServeError, ToolServer};
use clap::{Args, ValueEnum};
use tokio_util::sync::CancellationToken;

use super::SERVED;
use super::address::{HttpFlags, OpenAddress};
use super::host::CommandHost;
use super::presence::{Presence, sessions};
use super::served::ServedSessions;
use crate::common::Common;
use crate::error::{CommandError, ErrorCode};
use crate::keys;
use crate::open::definition::{AgentFlags, ModelNeed, changed_tools, definition_of, pin_servers};
use crate::open::{OpenStore, Signals};

#[derive(Args)]
pub(crate) struct Serve {
    /// Session to continue: its id, or at least 4 characters of its beginning or end. Default: the latest one of
    /// this agent and directory, else a new one.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Start a new session.
    #[arg(long, conflicts_with = "session")]
    new: bool,
    /// Time that a call waits for others that hold its session or its directory.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    wait: Span,
    #[command(flatten)]
    http: HttpFlags,
    #[command(flatten)]
    approvals: ApprovalFlags,
    #[command(flatten)]
    agent: AgentFlags,
}

impl Serve {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let address = self.http.open().await?;
        let approvals = self.approvals.settings();
        let token = address.as_ref().map(|address| address.token.expose().to_owned());
        let host = Arc::new(CommandHost::new(common.clone(), self, token));
        // A person who starts it learns at once what is wrong. A client learns it from the answers.
        if (address.is_some() || std::io::stdin().is_terminal()) && host.ready().await.is_err() {
            return Err(host.failure().context("the server cannot be prepared")?);
        }
        let server = ToolServer::new(host.clone()).with_approvals(approvals);
        let served = serve(common, &host, server, address).await;
        match host.failure() {
            Some(failure) => Err(failure),
            None => served,
        }
    }

    /// Finds the agent and its session, and restores what an earlier server left.
    pub(super) async fn prepare(
        &self,
        common: &Common,
        token: Option<String>,
    ) -> anyhow::Result<Arc<ServedSessions>> {
        let mut definition =
            pin_servers(common, self.agent.definition_for(common, ModelNeed::Optional)?).await?;
        let here = std::env::current_dir()?;
        let place =
            OpenStore::existing_or_new(common, definition.workspace.path.as_deref().unwrap_or(&here))?;
        let (known, presence) = self.choose_session(&place, &definition).await?;
        let mut change = None;
        if let Some(session) = known {
            let recorded = definition_of(&place, &place.view(session).await?).await?;
            if !self.agent.names_workspace() {
                definition.workspace.path.clone_from(&recorded.workspace.path);
            }
            if recorded.to_recorded() != definition.to_recorded() {
                change = Some(changed_tools(&recorded, &definition));
            }
        }
        let (id, presence) = match (known, presence) {
            (Some(session), presence) => (session, presence),
            (None, _) => {
                let id = place.runtime.new_id()?;
                (id, Presence::take(&place.directory, id).await?)
            }
        };
        let key = move |name: &str| match &token {
            // The tools neither see it nor return it.
            Some(token) if name == SERVER_TOKEN_VARIABLE => Some(token.clone()),
            _ => keys::key(name),
        };
        let options = BuildOptions { key: Box::new(key), transport: None };
        let agent = definition.build_for_calls(PolicyName::new(SERVED)?, &options)?;
        let mut agent = agent.approval_rules(common.config.approval_rules());
        if let Some(mut spec) = agent.workspace_spec() {
            // Clients see the files of the directory itself, so no copy is made.
            spec.in_place = true;
            agent = agent.workspace(spec);
        }
        let tools = agent.tools.iter().count();
        let served = Arc::new(ServedSessions {
            place,
            agent,
            definition,
            own: id,
            sees_siblings: self.session.is_none() && !self.new,
            wait: self.wait.0,
            presence,
            change: Mutex::new(change),
            state: tokio::sync::Mutex::default(),
            siblings: tokio::sync::Mutex::default(),
            changed: tokio::sync::Notify::new(),
        });
        if known.is_some() {
            served.recover().await?;
        }
        if !common.quiet {
            eprintln!("session {id}, {tools} tools and those of the history");
        }
        Ok(served)
    }

    /// Finds the session to continue: the named one, or the latest one that has no other server.
    async fn choose_session(
        &self,
        place: &OpenStore,
        definition: &AgentDefinition,
    ) -> anyhow::Result<(Option<SessionId>, Option<Presence>)> {
        if let Some(name) = &self.session {
            let session = place.session(Some(name)).await?;
            return Ok((Some(session), Presence::take(&place.directory, session).await?));
        }
        if self.new {
            return Ok((None, None));
        }
        let directory = definition.workspace.path.as_deref();
        for session in sessions(&place.runtime, (SERVED, &definition.name), directory).await? {
            if let Some(presence) = Presence::take(&place.directory, session).await? {
                return Ok((Some(session), Some(presence)));
            }
        }
        Ok((None, None))
    }
}

/// Serves the client until it leaves, or clients over HTTP until a signal.
async fn serve(
    common: &Common,
    host: &Arc<CommandHost>,
    server: ToolServer,
    address: Option<OpenAddress>,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("signals cannot be handled here")?;
    let stop = CancellationToken::new();
    let is_http = address.is_some();
    let mut serving: Pin<Box<dyn Future<Output = Result<(), ServeError>>>> = match address {
        None => {
            // The session is prepared while the client begins.
            let host = host.clone();
            tokio::spawn(async move { drop(host.ready().await) });
            Box::pin(server.serve_stdio(stop.clone()))
        }
        Some(address) => {
            let name = host.served().map(|served| served.definition.name.clone());
            address.announce(&name.unwrap_or_default(), common.quiet);
            Box::pin(server.serve_http(address.listener, address.access, stop.clone()))
        }
    };
    let served = tokio::select! {
        served = &mut serving => served,
        _ = signals.next() => {
            eprintln!("stopping: running calls are rolled back");
            if let Some(served) = host.served() {
                served.stop().await;
                if is_http {
                    // The clients learn how their calls ended.
                    served.wait_until_idle().await;
                }
            }
            stop.cancel();
            let _ = serving.await;
            if let Some(served) = host.served() {
                served.wait_until_idle().await;
            }
            return Ok(ExitCode::from(130));
        }
    };
    served.map_err(|error| {
        CommandError::new(ErrorCode::Usage, error.to_string()).with_hint(
            "start it from an MCP client, such as `claude mcp add NAME -- backstitch mcp serve --agent FILE`",
        )
    })?;
    // A client that leaves at once gets the reason in the exit code.
    tokio::select! {
        ready = host.ready() => drop(ready),
        _ = signals.next() => return Ok(ExitCode::from(130)),
    }
    // Calls of a client that is gone are finished, unless a signal stops them or they wait for a decision, which would
    // hold the directory until a person decides.
    let Some(served) = host.served() else { return Ok(ExitCode::SUCCESS) };
    served.give_up_waiting().await;
    tokio::select! {
        () = served.wait_until_idle() => Ok(ExitCode::SUCCESS),
        _ = signals.next() => {
            served.stop().await;
            served.wait_until_idle().await;
            Ok(ExitCode::from(130))
        }
    }
}

#[derive(Args)]
pub(super) struct ApprovalFlags {
    /// Who decides about calls that need approval. Default: client.
    #[arg(long, value_enum, value_name = "WHO")]
    approve_by: Option<Decider>,
    /// Time limit of a decision, after which the call is denied. Default: 5m, and 1h for a client that shows the
    /// question.
    #[arg(long, value_name = "TIME")]
    approval_timeout: Option<Span>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Decider {
    /// The client, if it can show a form. A client may answer by itself, without a person.
    Client,
    /// `approve` and `deny` alone: the client is never asked.
    Inbox,
}

impl ApprovalFlags {
    pub(super) fn settings(&self) -> ApprovalSettings {
        let by = match self.approve_by {
            None | Some(Decider::Client) => ApprovalBy::Client,
            Some(Decider::Inbox) => ApprovalBy::Inbox,
        };
        ApprovalSettings { by, timeout: self.approval_timeout.map(|span| span.0) }
    }
}
