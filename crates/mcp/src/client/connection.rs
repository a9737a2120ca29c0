//! One running server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::ports::ProcessSpec;
use backstitch_runtime::{ServerProcess, ServerStreams, SystemClock, fresh_ids};
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::{RunningService, ServiceError};
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Map, Value};

use super::error::ClientError;
use super::pinned::PinnedTool;
use super::spec::ServerSpec;
use super::stderr::KeptStderr;

/// Time limit of the handshake and of the list of tools. A package manager may have to download the server first.
const START: Duration = Duration::from_secs(120);

/// The most tools of a server.
const MOST_TOOLS: usize = 500;

/// A running server. Dropping it kills its processes.
pub(super) struct Connection {
    // Dropped first, so that the server sees the end of its input before it is killed.
    service: RunningService<RoleClient, ClientConfig>,
    stderr: KeptStderr,
    tools: Vec<PinnedTool>,
    process: Mutex<Option<ServerProcess>>,
}

impl Connection {
    /// Starts the server, makes the handshake and lists the tools.
    pub(super) async fn open(spec: &ServerSpec) -> Result<Self, ClientError> {
        let started = |source| ClientError::Start { server: spec.name.clone(), source };
        let mut process = ProcessSpec::new(spec.command.first().cloned().unwrap_or_default());
        process.arguments = spec.command.iter().skip(1).cloned().collect();
        process.environment = spec.environment.clone();
        process.sandbox = spec.sandbox.clone();
        if spec.directory.is_none() {
            process.directory = None;
        }
        let ids = fresh_ids(Arc::new(SystemClock::default()));
        let mark = ids.map_err(|error| protocol(spec, &error, &KeptStderr::default()))?.next();
        let (process, streams) =
            ServerProcess::start(process, spec.directory.clone(), mark).await.map_err(started)?;
        let ServerStreams { stdin, stdout, stderr } = streams;
        let stderr = KeptStderr::of(stderr);
        let information = Implementation::new("backstitch", env!("CARGO_PKG_VERSION"));
        let client = ClientConfig::new(ClientCapabilities::default(), information);
        let opening = async {
            let service =
                client.serve((stdout, stdin)).await.map_err(|error| protocol(spec, &error, &stderr))?;
            let listed = service.list_all_tools().await.map_err(|error| protocol(spec, &error, &stderr))?;
            Ok((service, listed))
        };
        let (service, listed) = match tokio::time::timeout(START, opening).await {
            Ok(opened) => opened?,
            Err(_) => return Err(timeout(spec, START, &stderr)),
        };
        let tools = listed.iter().take(MOST_TOOLS).map(PinnedTool::of).collect();
        Ok(Self { service, stderr, tools, process: Mutex::new(Some(process)) })
    }

    pub(super) fn tools(&self) -> &[PinnedTool] {
        &self.tools
    }

    /// True if the server has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.service.is_closed()
    }

    /// Kills the processes of the server.
    pub(super) fn kill(&self) {
        drop(self.process.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Returns the end of the server's standard error, for an error message.
    pub(super) fn stderr(&self) -> String {
        self.stderr.shown()
    }

    /// Calls a tool.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, ServiceError> {
        let mut call = CallToolRequestParams::new(name.to_owned());
        call.arguments = Some(arguments);
        self.service.call_tool(call).await
    }
}

fn protocol(spec: &ServerSpec, error: &dyn std::error::Error, stderr: &KeptStderr) -> ClientError {
    ClientError::Protocol { server: spec.name.clone(), reason: error.to_string(), stderr: stderr.shown() }
}

fn timeout(spec: &ServerSpec, limit: Duration, stderr: &KeptStderr) -> ClientError {
    ClientError::Timeout { server: spec.name.clone(), seconds: limit.as_secs(), stderr: stderr.shown() }
}
