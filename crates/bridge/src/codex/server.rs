//! A running app-server.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::CallId;
use backstitch_core::ports::{ProcessSpec, Sandbox};
use backstitch_runtime::{EngineError, SystemClock, fresh_ids};
use serde_json::{Value, json};

use super::TITLE;
use super::hooks::ListedHook;
use super::thread::{Cut, ThreadId, TurnId, thread_of, turns_of};
use super::wire::{self, IncomingLine, RequestId, ServerMessage};
use crate::process::{ENGINE_VARIABLE, EngineProcess};
use crate::program::Program;

/// How long an answer may take. Codex opens its databases and reads its settings first.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to start an app-server.
#[derive(Debug, Clone)]
pub struct AppServerSpec {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: String,
    /// The directory that it works in.
    pub directory: PathBuf,
    /// Settings in place of those in its files: `-c NAME=VALUE`, with values in TOML.
    pub settings: Vec<String>,
    /// Variables in addition to those of this process.
    pub environment: BTreeMap<String, Option<String>>,
    /// Limits of its processes.
    pub sandbox: Sandbox,
    /// Identifies its processes. By default a new id.
    pub mark: Option<CallId>,
}

impl AppServerSpec {
    /// Starts `codex` in a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        // Hooks of the guard that it starts are about what this process does, and have nothing to record.
        let marked = (ENGINE_VARIABLE.to_owned(), Some(Program::Codex.name().to_owned()));
        Self {
            program: "codex".to_owned(),
            directory: directory.into(),
            settings: Vec::new(),
            environment: BTreeMap::from([marked]),
            sandbox: Sandbox::off(),
            mark: None,
        }
    }

    /// Uses another directory for all of its settings and conversations.
    #[must_use]
    pub fn with_home(mut self, home: &Path) -> Self {
        self.environment.insert("CODEX_HOME".to_owned(), Some(home.to_string_lossy().into_owned()));
        self
    }
}

/// An app-server of Codex. Dropping it kills the program and everything that it has started.
pub struct AppServer {
    pub(super) process: EngineProcess,
    /// Messages that came while an answer was awaited.
    waiting: VecDeque<ServerMessage>,
    next: u64,
    /// What it calls itself, with its version.
    pub(super) agent: Option<String>,
}

impl AppServer {
    /// Starts the program, and introduces this client.
    pub async fn start(spec: AppServerSpec) -> Result<Self, EngineError> {
        let AppServerSpec { program, directory, settings, environment, sandbox, mark } = spec;
        let mut process = ProcessSpec::new(program).arg("app-server").sandbox(sandbox);
        for setting in settings {
            process = process.arg("-c").arg(setting);
        }
        process.environment = environment;
        let failed = |reason: String| EngineError::Start { title: TITLE.to_owned(), reason };
        let mark = match mark {
            Some(mark) => mark,
            None => {
                fresh_ids(Arc::new(SystemClock::default())).map_err(|error| failed(error.to_string()))?.next()
            }
        };
        let process = EngineProcess::start(TITLE, process, directory, mark).await?;
        let mut server = Self { process, waiting: VecDeque::new(), next: 1, agent: None };
        let client =
            json!({"name": "backstitch", "title": "Backstitch", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"clientInfo": client, "capabilities": {"experimentalApi": true}});
        let answer = server.request("initialize", params).await?;
        server.agent = answer.get("userAgent").and_then(Value::as_str).map(str::to_owned);
        server.process.send(wire::notification("initialized"));
        Ok(server)
    }

    /// Sends a request, and waits for its answer. Messages that come before it are kept for [`AppServer::message`].
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, EngineError> {
        let wanted = self.send(method, &params);
        let answered = tokio::time::timeout(PATIENCE, async {
            loop {
                match self.incoming().await? {
                    IncomingLine::Message(message) => self.waiting.push_back(message),
                    // An answer to a request that nobody waits for.
                    IncomingLine::Answer { id, .. } if id != wanted => {}
                    IncomingLine::Answer { outcome, .. } => return Ok(outcome),
                }
            }
        });
        let outcome = answered.await.map_err(|_| {
            protocol(format!("it did not answer `{method}` within {} seconds", PATIENCE.as_secs()))
        })??;
        outcome.map_err(|message| refused(method, &message))
    }

    /// Sends a request whose answer is not awaited.
    pub(super) fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.new_id();
        self.process.send(wire::request(id, method, params));
        id
    }

    /// Returns the id of another request.
    pub(super) fn new_id(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }

    /// Returns the next message that the app-server sends by itself. A wait that is cancelled loses nothing.
    pub async fn message(&mut self) -> Result<ServerMessage, EngineError> {
        if let Some(message) = self.waiting.pop_front() {
            return Ok(message);
        }
        loop {
            if let IncomingLine::Message(message) = self.incoming().await? {
                return Ok(message);
            }
        }
    }

    /// Answers a request of the app-server: with a result, or with the reason why it is refused.
    pub fn answer(&self, id: &RequestId, outcome: Result<Value, &str>) {
        self.process.send(wire::answer(id, outcome));
    }

    /// Returns the hooks that apply in a directory.
    pub async fn hooks(&mut self, directory: &Path) -> Result<Vec<ListedHook>, EngineError> {
        let method = "hooks/list";
        let answer = self.request(method, json!({"cwds": [directory]})).await?;
        ListedHook::all(&answer).ok_or_else(|| incomplete(method, "data"))
    }

    /// Begins a conversation that knows another one up to a cut.
    pub async fn fork(&mut self, thread: &ThreadId, cut: &Cut) -> Result<ThreadId, EngineError> {
        let method = "thread/fork";
        let answer = self.request(method, Value::Object(cut.params(thread))).await?;
        thread_of(&answer).ok_or_else(|| incomplete(method, "thread.id"))
    }

    /// Returns the turns of a conversation, the oldest first.
    pub async fn turns(&mut self, thread: &ThreadId) -> Result<Vec<TurnId>, EngineError> {
        let method = "thread/read";
        let answer = self.request(method, json!({"threadId": thread.as_str(), "includeTurns": true})).await?;
        turns_of(&answer).ok_or_else(|| incomplete(method, "thread.turns"))
    }

    /// Closes its input, gives it some time to end by itself, and ends it with all of its descendants.
    pub async fn close(self) {
        self.process.end().await;
    }

    async fn incoming(&mut self) -> Result<IncomingLine, EngineError> {
        match self.process.next().await? {
            Some(line) => IncomingLine::of(line).ok_or_else(|| {
                protocol("a line is neither a request, nor an answer, nor a notification".to_owned())
            }),
            None => Err(self.process.early_end_error().await),
        }
    }
}

fn protocol(reason: String) -> EngineError {
    EngineError::Protocol { title: TITLE.to_owned(), reason }
}

fn refused(method: &str, message: &str) -> EngineError {
    EngineError::Failed { title: TITLE.to_owned(), message: format!("it refused `{method}`: {message}") }
}

pub(super) fn incomplete(method: &str, field: &str) -> EngineError {
    protocol(format!("its answer to `{method}` has no `{field}`"))
}
