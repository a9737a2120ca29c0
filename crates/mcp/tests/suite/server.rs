//! A server in this process: one session in memory, whose only tool takes notes.

use std::sync::{Arc, Mutex, Once, PoisonError};

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::Effect;
use backstitch_core::message::PolicyName;
use backstitch_core::tool::{Tool, ToolContext, ToolResult, WorkspaceUse};
use backstitch_mcp::{
    AccessToken, HostError, HostFuture, HttpAccess, OpenCalls, ServeError, ServerHost, StoredSession,
    ToolOffer, ToolServer,
};
use backstitch_runtime::{Agent, FunctionPolicy, OutsideCalls, Runtime, SessionOptions};
use backstitch_store::MemoryStore;
use backstitch_testkit::mcp::{HttpAnswer, HttpClient, TOKEN, exchange};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Names of the threads of servers that panicked. A connection that panics ends nothing else.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

/// The texts that the tool has noted.
pub(crate) type Notes = Arc<Mutex<Vec<String>>>;

/// A host that holds one session, and has no others.
struct OneSession(Arc<OutsideCalls>);

impl ServerHost for OneSession {
    fn offer(&self) -> HostFuture<'_, Result<ToolOffer, HostError>> {
        let tools = self.0.driver().agent().tools.iter().map(|tool| tool.spec.clone()).collect();
        let offer = ToolOffer { name: "tailor".to_owned(), tools, instructions: None };
        Box::pin(async { Ok(offer) })
    }

    fn open(&self, _: Option<String>) -> HostFuture<'_, Result<OpenCalls, HostError>> {
        Box::pin(async { Ok(OpenCalls::held(self.0.clone())) })
    }

    fn session(&self) -> HostFuture<'_, Result<StoredSession, HostError>> {
        Box::pin(async { Ok((self.0.session().id(), self.0.session().store().clone())) })
    }

    fn diff(&self, _: String, _: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async { Err("there is nothing to compare".to_owned()) })
    }

    fn fork(&self, _: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async { Err("there is no room for a fork".to_owned()) })
    }

    fn waits(&self, _: SessionId, _: CallId, name: &str) -> String {
        format!("{name} waits for approval")
    }
}

/// Creates a session and its server.
pub(crate) async fn tool_server() -> (ToolServer, Notes) {
    let notes = Notes::default();
    let taken = notes.clone();
    let builder = Tool::builder("note", "Takes a note.").unwrap();
    let note = builder.effect(Effect::Workspace).workspace(WorkspaceUse::None).handler(
        move |_: ToolContext, Note { text }: Note| {
            let taken = taken.clone();
            async move {
                taken.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                Ok(ToolResult::ok("noted"))
            }
        },
    );
    let name = PolicyName::new("outside").unwrap();
    let policy = FunctionPolicy::new(name, |_| async { Err("there is no model".into()) });
    let agent = Agent::new("tests/tailor").policy(policy).tools([note]);
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let calls = OutsideCalls::open(driver).await.unwrap();
    (ToolServer::new(Arc::new(OneSession(calls))), notes)
}

/// A handshake, as a message.
pub(crate) fn handshake() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "needle", "version": "1"},
    }})
}

/// A server over HTTP at a free port, with the token [`TOKEN`]. It runs on threads of its own.
pub(crate) struct LocalServer {
    /// `HOST:PORT`.
    pub(crate) address: String,
    threads: tokio::runtime::Runtime,
    name: String,
    served: JoinHandle<Result<(), ServeError>>,
    stop: CancellationToken,
}

impl LocalServer {
    pub(crate) fn start() -> Self {
        remember_panics();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let name = format!("server {address}");
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let threads = builder.worker_threads(2).enable_all().thread_name(&name).build().unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let served = threads.spawn(async move {
            let (server, _) = tool_server().await;
            let access = HttpAccess::new(AccessToken::new(TOKEN).unwrap());
            server.serve_http(TcpListener::from_std(listener).unwrap(), access, stopped).await
        });
        Self { address, threads, name, served, stop }
    }

    pub(crate) fn port(&self) -> String {
        self.address.rsplit(':').next().unwrap().to_owned()
    }

    /// Connects a client with a handshake.
    pub(crate) fn client(&self) -> HttpClient {
        HttpClient::connect(&self.address, &json!({}))
    }

    /// Sends a head and a body, and reads the head of the answer.
    pub(crate) fn exchange(&self, head: &str, body: &[u8]) -> HttpAnswer {
        exchange(&self.address, head, body)
    }

    /// Ends the server. Fails if a part of it has panicked.
    pub(crate) fn end(self) {
        self.stop.cancel();
        self.threads.block_on(self.served).unwrap().unwrap();
        let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!panics.contains(&self.name), "a task of the server panicked");
    }
}

/// Remembers the threads that panic, in addition to what is printed.
fn remember_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            print(panic);
        }));
    });
}
