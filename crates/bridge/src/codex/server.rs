//! A running app-server.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::ports::{ProcessError, ProcessSpec};
use backstitch_core::text::one_line;
use backstitch_runtime::{ServerProcess, ServerStreams, SystemClock, fresh_ids};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::error::AppServerError;
use super::hooks::ListedHook;
use super::lines::{Lines, NoLine};
use super::thread::{Cut, ThreadId, TurnId, thread_of, turns_of};
use super::wire::{self, Incoming, RequestId, ServerMessage};

/// How long an answer may take. Codex opens its databases and reads its settings first.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much of its standard error is kept.
const STDERR: usize = 4 * 1024;

/// The most characters of its standard error in a message.
const SHOWN: usize = 300;

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
}

impl AppServerSpec {
    /// Starts `codex` in a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            program: "codex".to_owned(),
            directory: directory.into(),
            settings: Vec::new(),
            environment: BTreeMap::new(),
        }
    }

    /// Uses another directory for all of its settings and conversations.
    #[must_use]
    pub fn with_home(mut self, home: &std::path::Path) -> Self {
        self.environment.insert("CODEX_HOME".to_owned(), Some(home.to_string_lossy().into_owned()));
        self
    }
}

/// An app-server of Codex. Dropping it kills the program and everything that it has started.
pub struct AppServer {
    stdin: ChildStdin,
    lines: Lines<ChildStdout>,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Messages that came while an answer was awaited.
    waiting: VecDeque<ServerMessage>,
    next: u64,
    patience: Duration,
    process: ServerProcess,
}

impl AppServer {
    /// Starts the program, and introduces this client.
    pub async fn start(spec: AppServerSpec) -> Result<Self, AppServerError> {
        let AppServerSpec { program, directory, settings, environment } = spec;
        let mut process = ProcessSpec::new(program.clone()).arg("app-server");
        for setting in settings {
            process = process.arg("-c").arg(setting);
        }
        process.environment = environment;
        let ids = fresh_ids(Arc::new(SystemClock::default()));
        let mark = ids.map_err(|error| AppServerError::Stream(std::io::Error::other(error)))?.next();
        let started = ServerProcess::start(process, Some(directory), mark).await;
        let (process, streams) = started.map_err(|source| match source {
            ProcessError::NotFound { program } => AppServerError::Missing { program },
            source => AppServerError::Start { program, source },
        })?;
        let ServerStreams { stdin, stdout, stderr } = streams;
        let mut server = Self {
            stdin,
            lines: Lines::new(stdout),
            stderr: kept(stderr),
            waiting: VecDeque::new(),
            next: 1,
            patience: PATIENCE,
            process,
        };
        let client =
            json!({"name": "backstitch", "title": "Backstitch", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"clientInfo": client, "capabilities": {"experimentalApi": true}});
        server.request("initialize", params).await?;
        server.write(&wire::notification("initialized")).await?;
        Ok(server)
    }

    /// Sends a request, and waits for its answer. Messages that come before it are kept for [`AppServer::message`].
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, AppServerError> {
        let wanted = self.next;
        self.next += 1;
        let patience = self.patience;
        let answered = tokio::time::timeout(patience, async {
            self.write(&wire::request(wanted, method, &params)).await?;
            loop {
                match self.incoming().await? {
                    Incoming::Message(message) => self.waiting.push_back(message),
                    // An answer to a request that was given up.
                    Incoming::Answer { id, .. } if id != wanted => {}
                    Incoming::Answer { outcome, .. } => return Ok(outcome),
                }
            }
        })
        .await;
        match answered {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(refusal))) => Err(AppServerError::Refused {
                method: method.to_owned(),
                code: refusal.code,
                message: refusal.message,
            }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(AppServerError::Silent {
                method: method.to_owned(),
                seconds: patience.as_secs(),
                stderr: self.stderr(),
            }),
        }
    }

    /// Returns the next message that the app-server sends by itself. A wait that is cancelled loses nothing.
    pub async fn message(&mut self) -> Result<ServerMessage, AppServerError> {
        if let Some(message) = self.waiting.pop_front() {
            return Ok(message);
        }
        loop {
            if let Incoming::Message(message) = self.incoming().await? {
                return Ok(message);
            }
        }
    }

    /// Answers a request of the app-server.
    pub async fn answer(
        &mut self,
        id: &RequestId,
        outcome: Result<Value, &str>,
    ) -> Result<(), AppServerError> {
        self.write(&wire::answer(id, outcome)).await
    }

    /// Returns the hooks that apply in a directory.
    pub async fn hooks(&mut self, directory: &std::path::Path) -> Result<Vec<ListedHook>, AppServerError> {
        let method = "hooks/list";
        let answer = self.request(method, json!({"cwds": [directory]})).await?;
        ListedHook::all(&answer).ok_or_else(|| incomplete(method, "data"))
    }

    /// Begins a conversation that knows another one up to a cut.
    pub async fn fork(&mut self, thread: &ThreadId, cut: &Cut) -> Result<ThreadId, AppServerError> {
        let method = "thread/fork";
        let answer = self.request(method, cut.params(thread)).await?;
        thread_of(&answer).ok_or_else(|| incomplete(method, "thread.id"))
    }

    /// Returns the turns of a conversation, the oldest first.
    pub async fn turns(&mut self, thread: &ThreadId) -> Result<Vec<TurnId>, AppServerError> {
        let method = "thread/read";
        let answer = self.request(method, json!({"threadId": thread.as_str(), "includeTurns": true})).await?;
        turns_of(&answer).ok_or_else(|| incomplete(method, "thread.turns"))
    }

    /// Closes its input, and waits until it has written everything and ended. After a limit it is killed.
    pub async fn close(self) {
        let Self { stdin, mut lines, mut process, .. } = self;
        drop(stdin);
        let ended = async {
            while lines.next().await.is_ok() {}
            process.exited().await;
        };
        let _ = tokio::time::timeout(Duration::from_secs(5), ended).await;
    }

    async fn write(&mut self, line: &[u8]) -> Result<(), AppServerError> {
        let written = async {
            self.stdin.write_all(line).await?;
            self.stdin.flush().await
        };
        match written.await {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(self.ended().await),
            written => written.map_err(AppServerError::Stream),
        }
    }

    async fn incoming(&mut self) -> Result<Incoming, AppServerError> {
        loop {
            let line = match self.lines.next().await {
                Ok(line) => line,
                Err(NoLine::End) => return Err(self.ended().await),
                Err(NoLine::Read(error)) => return Err(AppServerError::Stream(error)),
                Err(NoLine::Wire(error)) => return Err(AppServerError::Wire(error)),
            };
            if let Some(incoming) = wire::parse(&line).map_err(AppServerError::Wire)? {
                return Ok(incoming);
            }
        }
    }

    async fn ended(&mut self) -> AppServerError {
        // Its last words come with its end.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.process.exited()).await;
        tokio::task::yield_now().await;
        AppServerError::Ended { stderr: self.stderr() }
    }

    fn stderr(&self) -> String {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let last: Vec<&str> =
            text.lines().rev().filter(|line| !line.starts_with("WARNING")).take(5).collect();
        one_line(&last.into_iter().rev().collect::<Vec<_>>().join(" "), SHOWN)
    }
}

fn incomplete(method: &str, field: &'static str) -> AppServerError {
    AppServerError::Incomplete { method: method.to_owned(), field }
}

/// Reads the standard error to its end, and keeps the last part of it.
fn kept(mut stderr: ChildStderr) -> Arc<Mutex<Vec<u8>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let shared = kept.clone();
    tokio::spawn(async move {
        let mut chunk = vec![0; STDERR];
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(chunk.get(..read).unwrap_or_default());
            let old = kept.len().saturating_sub(STDERR);
            kept.drain(..old);
        }
    });
    kept
}
