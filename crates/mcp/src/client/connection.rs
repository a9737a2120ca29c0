//! One running server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::ports::ProcessSpec;
use backstitch_runtime::{ServerProcess, ServerStreams, SystemClock, fresh_ids};
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::{RunningService, ServiceError};
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Map, Value};

use super::address::{of_handshake, of_request, transport};
use super::error::ClientError;
use super::pinned::PinnedTool;
use super::spec::{AddressSpec, ProgramSpec, ServerPlace, ServerSpec};
use super::stderr::KeptStderr;

/// Time limit of the handshake and of the list of tools. A package manager may have to download the server first.
const START: Duration = Duration::from_secs(120);

/// How long a server that failed has for its last words, before it is killed and after.
const ENDING: Duration = Duration::from_secs(1);

/// The most tools of a server.
const MOST_TOOLS: usize = 500;

/// The most characters of an error. Some servers answer with whole pages.
const LONGEST_ERROR: usize = 1000;

type Service = RunningService<RoleClient, ClientConfig>;

/// A running server. Dropping it kills its processes.
pub(super) struct Connection {
    // Dropped first, so that the server sees the end of its input before it is killed.
    service: Service,
    stderr: KeptStderr,
    tools: Vec<PinnedTool>,
    /// The processes of a program that was started here.
    process: Mutex<Option<ServerProcess>>,
    is_program: bool,
    /// Whether the list of tools was compared with the pinned one.
    is_compared: AtomicBool,
}

impl Connection {
    /// Starts or reaches the server, makes the handshake and lists the tools.
    pub(super) async fn open(spec: &ServerSpec) -> Result<Self, ClientError> {
        let (stderr, process, opened) = match &spec.place {
            ServerPlace::Program(program) => {
                let (process, streams) = started(spec, program).await?;
                let stderr = KeptStderr::of(streams.stderr);
                let opening = async {
                    let service = client().serve((streams.stdout, streams.stdin)).await;
                    listed(service.map_err(|error| of_handshake(&error))?).await
                };
                let opened = tokio::time::timeout(START, opening).await;
                (stderr, Some(process), opened)
            }
            ServerPlace::Address(address) => {
                let opened = tokio::time::timeout(START, reached(address)).await;
                (KeptStderr::default(), None, opened)
            }
        };
        let server = || spec.name.clone();
        let (service, tools) = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(reason)) => {
                let reason = shown(spec, &reason);
                let stderr = last_words(&stderr, &Mutex::new(process)).await;
                return Err(ClientError::Protocol { server: server(), reason, stderr });
            }
            Err(_) => {
                let seconds = START.as_secs();
                return Err(ClientError::Timeout { server: server(), seconds, stderr: stderr.shown() });
            }
        };
        let is_program = process.is_some();
        let process = Mutex::new(process);
        Ok(Self { service, stderr, tools, process, is_program, is_compared: AtomicBool::new(false) })
    }

    pub(super) fn tools(&self) -> &[PinnedTool] {
        &self.tools
    }

    /// True for the first caller, who compares the tools with the pinned ones.
    pub(super) fn is_first_use(&self) -> bool {
        !self.is_compared.swap(true, Ordering::SeqCst)
    }

    /// True if the server has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.service.is_closed()
    }

    /// Whether the server is a program that was started here.
    pub(super) fn is_program(&self) -> bool {
        self.is_program
    }

    /// Kills the processes of the server.
    pub(super) fn kill(&self) {
        kill(&self.process);
    }

    /// Returns the end of the standard error of a server that no longer answers, for an error message. It is killed if it does not
    /// end by itself.
    pub(super) async fn last_words(&self) -> String {
        last_words(&self.stderr, &self.process).await
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

fn kill(process: &Mutex<Option<ServerProcess>>) {
    drop(process.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Reads the standard error of a server that no longer answers to its end, and returns the last lines. The end of its other
/// streams is noticed first, often before the background task has read anything.
async fn last_words(stderr: &KeptStderr, process: &Mutex<Option<ServerProcess>>) -> String {
    let is_running = process.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    if is_running && !stderr.has_ended_within(ENDING).await {
        kill(process);
        // A process that left the group of the server may still hold the stream open.
        stderr.has_ended_within(ENDING).await;
    }
    stderr.shown()
}

fn client() -> ClientConfig {
    let information = Implementation::new("backstitch", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), information)
}

async fn started(
    spec: &ServerSpec,
    program: &ProgramSpec,
) -> Result<(ServerProcess, ServerStreams), ClientError> {
    let mut process = ProcessSpec::new(program.command.first().cloned().unwrap_or_default());
    process.arguments = program.command.iter().skip(1).cloned().collect();
    process.environment = program.environment.clone();
    process.sandbox = program.sandbox.clone();
    if program.directory.is_none() {
        process.directory = None;
    }
    let ids = fresh_ids(Arc::new(SystemClock::default())).map_err(|error| ClientError::Protocol {
        server: spec.name.clone(),
        reason: error.to_string(),
        stderr: String::new(),
    })?;
    ServerProcess::start(process, program.directory.clone(), ids.next())
        .await
        .map_err(|source| ClientError::Start { server: spec.name.clone(), source })
}

async fn reached(address: &AddressSpec) -> Result<(Service, Vec<PinnedTool>), String> {
    let service = client().serve(transport(address)?).await.map_err(|error| of_handshake(&error))?;
    listed(service).await
}

async fn listed(service: Service) -> Result<(Service, Vec<PinnedTool>), String> {
    let listed = service.list_all_tools().await.map_err(|error| of_request(&error))?;
    let tools = listed.iter().take(MOST_TOOLS).map(PinnedTool::of).collect();
    Ok((service, tools))
}

/// Returns an error without secrets, and not too long.
pub(super) fn shown(spec: &ServerSpec, reason: &str) -> String {
    let reason = spec.secrets().redact(reason);
    match reason.char_indices().nth(LONGEST_ERROR) {
        Some((end, _)) => format!("{} ...", &reason[..end]),
        None => reason.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn error_of(script: &str) -> String {
        let opened = Connection::open(&ServerSpec::program("a", ["sh", "-c", script])).await;
        opened.map(drop).unwrap_err().to_string()
    }

    /// Which of its streams is noticed first differs from run to run.
    #[tokio::test]
    async fn a_server_that_ends_at_once_is_reported_by_its_own_words() {
        for _ in 0..40 {
            let error = error_of("echo I cannot >&2; exit 1").await;
            assert!(error.contains("I cannot"), "{error}");
        }
        let error = error_of("exec <&- >&-; sleep 0.1; echo I cannot >&2").await;
        assert!(error.contains("I cannot"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_stays_after_a_wrong_answer_is_killed() {
        let error = error_of("echo I can >&2; cat; exec sleep 600").await;
        assert!(error.contains("does not answer as expected") && error.contains("I can"), "{error}");
        // The shell does not wait for a process that leaves its group and keeps the stream open.
        let error = error_of("echo I can >&2; setsid sleep 5 & exit 1").await;
        assert!(error.contains("I can"), "{error}");
    }
}
