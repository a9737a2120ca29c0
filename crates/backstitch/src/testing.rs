//! Runs one tool in memory, for tests of tools.
//!
//! ```
//! use backstitch::prelude::*;
//! use backstitch::testing::ToolTest;
//! use serde_json::json;
//!
//! /// Greets a person.
//! #[tool(effect = "pure")]
//! async fn greet(
//!     /// The name.
//!     name: String,
//! ) -> Result<String, ToolError> {
//!     Ok(format!("Hello, {name}!"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tested = ToolTest::new().call(greet(), json!({"name": "Ada"})).await?;
//! assert!(tested.succeeded());
//! assert_eq!(tested.text(), "Hello, Ada!");
//! # Ok(())
//! # }
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use backstitch_filesystem::{MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{Agent, DriveOutcome, FunctionPolicy, Runtime, RuntimeError, SystemClock};
use backstitch_store::MemoryStore;
use serde_json::Value;

use crate::execution::Resources;
use crate::journal::{Effect, PauseReason, Role};
use crate::message::{Arguments, PolicyName};
use crate::ports::{FilePath, Filesystem, PolicyAnswer, WriteMode};
use crate::session::{BoxError, Items, SessionError, Slice};
use crate::tool::{ContextError, Tool, ToolContext, ToolResult, WorkspaceUse};
use crate::view::JournalView;

/// Name of the tool that creates the initial state of a test.
const SEED: &str = "seed_state_of_test";

type Seed = Box<dyn FnOnce(&ToolContext) -> Result<(), ContextError> + Send>;

/// A test could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolTestError {
    /// The call could not be run to its end.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A file of the test cannot be written.
    #[error("{path:?} cannot be a file of the test")]
    File {
        /// The path.
        path: String,
        /// Why it cannot be written.
        #[source]
        source: BoxError,
    },
}

/// A test of a tool with files and state, without a model, a durable store or a directory.
#[derive(Default)]
pub struct ToolTest {
    files: Vec<(String, Vec<u8>)>,
    state: Vec<Seed>,
    resources: Option<Arc<dyn Fn() -> Resources + Send + Sync>>,
}

impl ToolTest {
    /// Creates a test without files and state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file to the workspace.
    #[must_use]
    pub fn file(mut self, path: impl Into<String>, content: impl AsRef<[u8]>) -> Self {
        self.files.push((path.into(), content.as_ref().to_owned()));
        self
    }

    /// Adds an item to the initial state.
    #[must_use]
    pub fn state<S: Slice>(mut self, item: S) -> Self {
        self.state.push(Box::new(move |context| context.append(item)));
        self
    }

    /// Sets the resources of the session.
    #[must_use]
    pub fn resources(mut self, resources: impl Fn() -> Resources + Send + Sync + 'static) -> Self {
        self.resources = Some(Arc::new(resources));
        self
    }

    /// Calls the tool once, as a model would. A call that needs approval is approved.
    pub async fn call(
        self,
        tool: impl Into<Tool>,
        arguments: Value,
    ) -> Result<ToolTestReport, ToolTestError> {
        let store = Arc::new(MemoryStore::new());
        let files = Arc::new(MemoryFilesystem::new());
        for (path, content) in &self.files {
            let written = FilePath::new(path).map_err(BoxError::from).and_then(|path| {
                files.write_bytes(&path, content, WriteMode::Overwrite).map_err(BoxError::from)
            });
            written.map_err(|source| ToolTestError::File { path: path.clone(), source })?;
        }
        let workspace = Arc::new(MemoryWorkspace::new(files.clone(), store.clone()));
        let tool = tool.into();
        let (name, text) = (tool.name().to_string(), arguments.to_string());
        let caller =
            FunctionPolicy::new(PolicyName::new("test").map_err(RuntimeError::from)?, move |question| {
                let answer = match question.turn {
                    1 => PolicyAnswer::default().call(SEED, Arguments::from_text("{}")),
                    2 => PolicyAnswer::default().call(&*name, Arguments::from_text(&*text)),
                    _ => PolicyAnswer::text("done"),
                };
                async move { Ok(answer) }
            });
        let tools = [seed(self.state), tool];
        let mut agent = Agent::new("testing/tool").policy(caller).tools(tools).workspace(workspace);
        if let Some(resources) = self.resources {
            agent = agent.resources(move || resources());
        }
        let runtime = Runtime::new(store);
        let mut run = runtime.start(&agent, "test").await?;
        while let DriveOutcome::Paused { reason: PauseReason::Approval, call: Some(call), .. } =
            run.outcome().await?
        {
            runtime.approve(run.session(), call).await?;
            run = runtime.resume(run.session(), &agent).await?;
        }
        let ended = run.outcome().await?;
        Ok(ToolTestReport { view: runtime.view(run.session()).await?, files, ended })
    }
}

fn seed(state: Vec<Seed>) -> Tool {
    let state = Mutex::new(state);
    let tool = Tool::builder(SEED, "Creates the initial state of a test.");
    let tool = tool.expect("invariant: the name is one").effect(Effect::Pure).workspace(WorkspaceUse::None);
    tool.handler(move |context: ToolContext, (): ()| {
        let seeds = std::mem::take(&mut *state.lock().unwrap_or_else(PoisonError::into_inner));
        async move {
            for seed in seeds {
                seed(&context)?;
            }
            Ok(ToolResult::ok("created"))
        }
    })
}

/// The outcome of a call.
#[derive(Debug)]
pub struct ToolTestReport {
    view: JournalView,
    files: Arc<MemoryFilesystem>,
    ended: DriveOutcome,
}

impl ToolTestReport {
    /// Whether the call succeeded. A failed call leaves files and state unchanged.
    pub fn succeeded(&self) -> bool {
        self.result().is_some_and(|(success, _)| success)
    }

    /// Returns the result as the model reads it: the value of the tool, or its error.
    pub fn text(&self) -> String {
        self.result().map(|(_, text)| text).unwrap_or_default()
    }

    /// Returns how the session of the test ended; a pause if the tool waits for anything but an approval.
    pub fn outcome(&self) -> &DriveOutcome {
        &self.ended
    }

    /// Returns the text of a file after the call; `None` if it does not exist or is not UTF-8.
    pub fn file(&self, path: &str) -> Option<String> {
        let path = FilePath::new(path).ok()?;
        String::from_utf8(self.files.read_bytes(&path).ok()?).ok()
    }

    /// Returns the items of a slice after the call.
    pub fn all<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        self.view.session(Arc::new(SystemClock::new())).all::<S>()
    }

    /// Returns the view of the whole journal.
    pub fn view(&self) -> &JournalView {
        &self.view
    }

    fn result(&self) -> Option<(bool, String)> {
        let transcript = self.view.transcript().ok()?;
        let mut all = transcript.all().iter();
        let last = all.rfind(|message| message.role() == Role::Tool && message.turn == 2)?;
        let success = last.message.option_result().is_some_and(|result| result.error_type.is_none());
        Some((success, last.content()))
    }
}
