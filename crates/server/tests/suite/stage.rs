//! A server with a store of its own, and agents that are scripted.

use std::path::PathBuf;
use std::sync::Arc;

use backstitch::Runtime;
use backstitch::agent_file::AgentDefinition;
use backstitch::id::SessionId;
use backstitch::ports::BoxFuture;
use backstitch_server::{
    AccessToken, AgentChoice, Agents, HttpAccess, OfferedAgent, Problem, RunnableAgent, Server, ServerLimits,
    ServerOptions,
};
use backstitch_testkit::api::ApiClient;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "silk-thread-of-seven-spools";

/// A server that runs.
pub(crate) struct Stage {
    pub(crate) client: ApiClient,
    pub(crate) runtime: Runtime,
    pub(crate) directory: PathBuf,
    threads: Option<tokio::runtime::Runtime>,
    stop: CancellationToken,
    serving: Option<tokio::task::JoinHandle<()>>,
    _temporary: TempDir,
}

/// What a server may do.
pub(crate) struct StageOptions {
    pub(crate) write: bool,
    pub(crate) limits: ServerLimits,
    /// Replies of the model, as TOML.
    pub(crate) script: String,
}

impl Default for StageOptions {
    fn default() -> Self {
        Self { write: true, limits: ServerLimits::default(), script: script(&["Done."]) }
    }
}

/// A script with these texts.
pub(crate) fn script(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("[[reply]]\ntext = {}\n", Value::from(*text))).collect()
}

/// A script that writes a file, with a question first in the mode `ask`, and then answers.
pub(crate) fn writing_script() -> String {
    let call =
        "[[reply]]\ncall = [{ name = 'write_file', arguments = { path = 'hem.txt', text = \"sewn\\n\" } }]\n";
    format!("{call}{}", script(&["The hem is sewn.", "It is red.", "It is blue."]))
}

impl Stage {
    pub(crate) fn new(options: StageOptions) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().canonicalize().unwrap().join("shop");
        std::fs::create_dir(&directory).unwrap();
        let script = temporary.path().join("script.toml");
        std::fs::write(&script, &options.script).unwrap();
        let threads =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let runtime = {
            let _inside = threads.enter();
            Runtime::at(temporary.path().join("store/store.db")).unwrap()
        };
        let agents = ScriptedAgents { runtime: runtime.clone(), script, directory: directory.clone() };
        let access = HttpAccess::new(AccessToken::new(TOKEN).unwrap());
        let server = Server::new(
            runtime.clone(),
            ServerOptions {
                write: options.write,
                roots: vec![directory.clone()],
                limits: options.limits,
                agents: Arc::new(agents),
                ..ServerOptions::new(access)
            },
        );
        let listener = threads.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stop = CancellationToken::new();
        let serving = threads.spawn(server.serve(listener, stop.clone()));
        Self {
            client: ApiClient::new(address, TOKEN),
            runtime,
            directory,
            threads: Some(threads),
            stop,
            serving: Some(serving),
            _temporary: temporary,
        }
    }

    /// A server that may write, whose model replies with these texts.
    pub(crate) fn with_texts(texts: &[&str]) -> Self {
        Self::new(StageOptions { script: script(texts), ..StageOptions::default() })
    }

    /// Runs a future.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.threads.as_ref().unwrap().block_on(future)
    }

    /// Starts a session, and waits until it is not driven any more.
    pub(crate) fn started(&self, mission: &str) -> String {
        let started = self.client.post("/api/v1/sessions", &json!({ "mission": mission }));
        let session = started["session"].as_str().unwrap().to_owned();
        self.settle(&session);
        session
    }

    /// Waits until a session is not driven any more, and returns its overview.
    pub(crate) fn settle(&self, session: &str) -> Value {
        for _ in 0..6_000 {
            let runs = self.client.get("/api/v1/runs");
            let is_running = runs["runs"].as_array().unwrap().iter().any(|run| run["state"] == "running");
            let overview = self.client.get(&format!("/api/v1/sessions/{session}"));
            if !is_running && overview["holder"].is_null() {
                return overview;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{session} is still driven");
    }

    /// Ends the server, as a signal does.
    pub(crate) fn end(&mut self) {
        self.stop.cancel();
        if let (Some(serving), Some(threads)) = (self.serving.take(), &self.threads) {
            threads.block_on(serving).unwrap();
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// Agents that are scripted, and work in one directory.
struct ScriptedAgents {
    runtime: Runtime,
    script: PathBuf,
    directory: PathBuf,
}

impl ScriptedAgents {
    fn runnable(definition: &AgentDefinition) -> Result<RunnableAgent, Problem> {
        let (mode, directory) = (definition.mode, definition.workspace.path.clone());
        Ok(RunnableAgent { built: definition.build()?, mode, directory })
    }
}

impl Agents for ScriptedAgents {
    fn offered(&self) -> Vec<OfferedAgent> {
        vec![OfferedAgent { name: "tailor".to_owned(), file: None }]
    }

    fn define(&self, choice: AgentChoice) -> BoxFuture<'_, Result<RunnableAgent, Problem>> {
        Box::pin(async move {
            let text = format!(
                "name = 'tailor'\nmodel = 'scripted:{}'\ntools = ['read_file', 'write_file', 'setup_plan']\n",
                self.script.display()
            );
            let mut definition = AgentDefinition::from_toml(&text)?;
            definition.mode = choice.mode;
            definition.workspace.path = Some(choice.directory.unwrap_or_else(|| self.directory.clone()));
            Self::runnable(&definition)
        })
    }

    fn recorded(&self, session: SessionId) -> BoxFuture<'_, Result<RunnableAgent, Problem>> {
        Box::pin(async move { Self::runnable(&self.runtime.recorded_agent(session).await?) })
    }

    fn person(&self) -> Option<String> {
        Some("ada".to_owned())
    }
}
