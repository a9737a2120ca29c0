//! One running server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::ports::{BoxFuture, PersonAnswer, PersonQuestion, ProcessSpec};
use backstitch_runtime::{ServerProcess, ServerStreams, SystemClock, fresh_ids};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest,
    RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RunningService, ServiceError};
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Map, Value};

use super::address::{of_handshake, transport};
use super::environment::reduced;
use super::error::ClientError;
use super::lines::LineTransport;
use super::listing::ToolListing;
use super::progress::ClientSide;
use super::spec::{AddressSpec, ProgramSpec, ServerPlace, ServerSpec};
use super::stderr::KeptStderr;

/// Time limit of the handshake and of the list of tools, unless the specification has a time limit. A package manager
/// may have to download the server first.
const START: Duration = Duration::from_secs(120);

/// How long a server that failed has for its last words, before it is killed and after.
const ENDING: Duration = Duration::from_secs(1);

/// Key of `_meta` with which a server recognizes a call that is repeated.
const CALL_ID: &str = "callId";

/// The most characters of an error. Some servers answer with whole pages.
const LONGEST_ERROR: usize = 1000;

/// The shortest time between two reports of progress.
const PAUSE: Duration = Duration::from_millis(100);

type Service = RunningService<RoleClient, ClientSide>;

/// A running server. Dropping it kills its processes.
pub(super) struct Connection {
    // Dropped first, so that the server sees the end of its input before it is killed.
    service: Service,
    stderr: KeptStderr,
    pub(super) listing: ToolListing,
    /// The processes of a program that was started here.
    process: Mutex<Option<ServerProcess>>,
    /// Whether the server is a program that was started here.
    pub(super) is_program: bool,
    /// Whether the list of tools was compared with the pinned one.
    is_compared: AtomicBool,
}

impl Connection {
    /// Starts or reaches the server, makes the handshake and lists the tools.
    pub(super) async fn open(spec: &ServerSpec) -> Result<Self, ClientError> {
        Self::open_with(spec, ENDING).await
    }

    /// Opens it with so much time for the last words of a server that fails.
    async fn open_with(spec: &ServerSpec, ending: Duration) -> Result<Self, ClientError> {
        let limit = spec.timeout.unwrap_or(START);
        let (stderr, process, opened) = match &spec.place {
            ServerPlace::Program(program) => {
                let (process, streams) = start_server(spec, program).await?;
                let stderr = KeptStderr::of(streams.stderr);
                let opening = async {
                    let pipes = LineTransport::new(streams.stdout, streams.stdin);
                    let service = ClientSide::of(spec).serve(pipes).await;
                    list_tools(service.map_err(|error| of_handshake(&error))?).await
                };
                let opened = tokio::time::timeout(limit, opening).await;
                (stderr, Some(process), opened)
            }
            ServerPlace::Address(address) => {
                let opened = tokio::time::timeout(limit, connect(spec, address)).await;
                (KeptStderr::default(), None, opened)
            }
        };
        let server = || spec.name.clone();
        let (service, listing) = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(reason)) => {
                let reason = shown(spec, &reason);
                let stderr = last_words(&stderr, &Mutex::new(process), ending).await;
                return Err(ClientError::Protocol { server: server(), reason, stderr });
            }
            Err(_) => {
                let seconds = limit.as_secs_f64();
                return Err(ClientError::Timeout { server: server(), seconds, stderr: stderr.shown() });
            }
        };
        let is_program = process.is_some();
        let process = Mutex::new(process);
        Ok(Self { service, stderr, listing, process, is_program, is_compared: AtomicBool::new(false) })
    }

    /// Lists the tools again: a server may change them at any time.
    pub(super) async fn list_again(&self, spec: &ServerSpec) -> Result<ToolListing, ClientError> {
        let (limit, server) = (spec.timeout.unwrap_or(START), spec.name.clone());
        match tokio::time::timeout(limit, ToolListing::read(self.service.peer())).await {
            Ok(Ok(listing)) => Ok(listing),
            Ok(Err(reason)) => {
                let reason = shown(spec, &reason);
                Err(ClientError::Protocol { server, reason, stderr: self.stderr.shown() })
            }
            Err(_) => {
                let (seconds, stderr) = (limit.as_secs_f64(), self.stderr.shown());
                Err(ClientError::Timeout { server, seconds, stderr })
            }
        }
    }

    /// Returns the other side.
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// True for the first caller, who compares the tools with the pinned ones.
    pub(super) fn is_first_use(&self) -> bool {
        !self.is_compared.swap(true, Ordering::SeqCst)
    }

    /// True if the server has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.service.is_closed()
    }

    /// Kills the processes of the server.
    pub(super) fn kill(&self) {
        kill(&self.process);
    }

    /// Returns the end of the standard error of a server that no longer answers, for an error message. It is killed if it does not
    /// end by itself.
    pub(super) async fn last_words(&self) -> String {
        last_words(&self.stderr, &self.process, ENDING).await
    }

    /// Calls a tool. `id` identifies the call for a server that remembers its calls. The progress that the server
    /// reports is passed on, and its questions are asked.
    pub(super) async fn call<'a>(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        id: String,
        report: impl Fn(String, Option<f64>),
        ask: impl Fn(PersonQuestion) -> BoxFuture<'a, PersonAnswer>,
    ) -> Result<CallToolResult, ServiceError> {
        let mut call = CallToolRequestParams::new(name.to_owned());
        call.arguments = Some(arguments);
        let mut meta = RequestMetaObject::default();
        meta.insert(CALL_ID.to_owned(), Value::String(id));
        call.meta = Some(meta);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call));
        let peer = self.service.peer();
        // Before the call is sent, since the server may ask at once.
        let mut questions = self.service.service().questions.of_call();
        let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let mut progress = self.service.service().of_call(sent.progress_token.clone());
        let mut guard = CancelUnlessAnswered { peer: peer.clone(), request: Some(sent.id.clone()) };
        let mut answer = std::pin::pin!(sent.await_response());
        let answered = loop {
            tokio::select! {
                biased;
                answered = &mut answer => break answered,
                mut waiting = questions.next() => tokio::select! {
                    biased;
                    answered = &mut answer => break answered,
                    // The server does not wait any more.
                    () = waiting.answer.closed() => {}
                    given = ask(waiting.question.clone()) => {
                        let _ = waiting.answer.send(given);
                    }
                },
                (text, fraction) = progress.next() => {
                    report(text, fraction);
                    tokio::select! {
                        biased;
                        answered = &mut answer => break answered,
                        () = tokio::time::sleep(PAUSE) => {}
                    }
                }
            }
        };
        guard.request = None;
        match answered? {
            ServerResult::CallToolResult(result) => Ok(result),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }
}

fn kill(process: &Mutex<Option<ServerProcess>>) {
    drop(process.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Reads the standard error of a server that no longer answers to its end, and returns the last lines. The end of its other
/// streams is noticed first, often before the background task has read anything.
async fn last_words(stderr: &KeptStderr, process: &Mutex<Option<ServerProcess>>, ending: Duration) -> String {
    let is_running = process.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    if is_running && !stderr.has_ended_within(ending).await {
        kill(process);
        // A process that left the group of the server may still hold the stream open.
        stderr.has_ended_within(ending).await;
    }
    stderr.shown()
}

/// Notifies the server that a call is cancelled, if it is dropped before its answer.
struct CancelUnlessAnswered {
    peer: Peer<RoleClient>,
    request: Option<RequestId>,
}

impl Drop for CancelUnlessAnswered {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        let peer = self.peer.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let cancelled = CancelledNotificationParam::new(Some(request), None);
                let _ = peer.notify_cancelled(cancelled).await;
            });
        }
    }
}

async fn start_server(
    spec: &ServerSpec,
    program: &ProgramSpec,
) -> Result<(ServerProcess, ServerStreams), ClientError> {
    let mut process = ProcessSpec::new(program.command.first().cloned().unwrap_or_default());
    process.arguments = program.command.iter().skip(1).cloned().collect();
    process.environment = reduced(&program.environment, std::env::vars_os().map(|(name, _)| name));
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

async fn connect(spec: &ServerSpec, address: &AddressSpec) -> Result<(Service, ToolListing), String> {
    let service = ClientSide::of(spec).serve(transport(address)?).await;
    list_tools(service.map_err(|error| of_handshake(&error))?).await
}

async fn list_tools(service: Service) -> Result<(Service, ToolListing), String> {
    let listing = ToolListing::read(service.peer()).await?;
    Ok((service, listing))
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
        // A busy machine may take a second from the end of one stream to that of the other.
        let patience = Duration::from_secs(60);
        let spec = ServerSpec::program("a", ["sh", "-c", script]);
        let opened = Connection::open_with(&spec, patience).await;
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
}
