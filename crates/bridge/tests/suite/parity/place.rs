//! A directory with a store, a workspace and one session.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use backstitch_core::budget::Limits;
use backstitch_core::id::SessionId;
use backstitch_core::journal::Decision;
use backstitch_core::rng::Seed;
use backstitch_core::tool::{Approval, Tool};
use backstitch_runtime::{Agent, Runtime, SessionOptions, Tools};
use backstitch_store::SqliteStore;
use backstitch_testkit::tool::set_up;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

use super::brittle::{breaking, resources};
use super::{Case, Trouble};

/// Time limit of what has to happen. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory with a store, a workspace and one session.
pub(super) struct Place {
    pub(super) directory: PathBuf,
    pub(super) has_budget: bool,
    store: OnceLock<Arc<SqliteStore>>,
    _owned: Option<TempDir>,
}

impl Place {
    /// The id of the session.
    pub(super) const SESSION: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    pub(super) fn new(case: &Case) -> Self {
        let owned = tempfile::tempdir().unwrap();
        std::fs::create_dir(owned.path().join("files")).unwrap();
        let has_budget = case.trouble == Trouble::Budget;
        Self { directory: owned.path().to_owned(), has_budget, store: OnceLock::new(), _owned: Some(owned) }
    }

    /// The place of another process.
    pub(super) fn at(directory: PathBuf, has_budget: bool) -> Self {
        Self { directory, has_budget, store: OnceLock::new(), _owned: None }
    }

    pub(super) fn session() -> SessionId {
        Self::SESSION.parse().unwrap()
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join("files").join(name)
    }

    pub(super) fn store(&self) -> Arc<SqliteStore> {
        let open = || Arc::new(SqliteStore::open(self.directory.join("store.db")).unwrap());
        self.store.get_or_init(open).clone()
    }

    pub(super) fn runtime(&self) -> Runtime {
        Runtime::new(self.store())
    }

    /// The options of the session: its id, its seed, its workspace and its resources.
    pub(super) fn options(&self) -> SessionOptions {
        let beside = self.directory.join("beside");
        let mut options = OpenOptions::new(self.directory.join("files"), beside, self.store());
        options.locks = Some(self.directory.join("locks"));
        let workspace = Arc::new(HostWorkspace::open(options).unwrap());
        SessionOptions {
            id: Some(Self::session()),
            seed: Some(Seed::new(7)),
            resources: resources(),
            ..SessionOptions::with_workspace(workspace)
        }
    }

    /// The tools: those of the conformance suite, one whose calls need approval, and one after which a resource cannot
    /// be captured.
    pub(super) fn tools() -> Tools {
        let mut tools = backstitch_testkit::tool::tools();
        let mut approved: Tool = tools[0].clone();
        let spec = Arc::make_mut(&mut approved.spec);
        spec.name = backstitch_core::tool::ToolName::new("act_if_approved").unwrap();
        spec.approval = Approval::Needed;
        tools.extend([approved, breaking()]);
        Tools::new(tools).unwrap()
    }

    /// Adds the reducers and the budget of the case to an agent.
    pub(super) fn complete(&self, agent: Agent) -> Agent {
        let agent = agent.set_up(set_up);
        if !self.has_budget {
            return agent;
        }
        agent.budget(Limits { calls: Some(1), ..Limits::default() })
    }

    /// Waits until the call of a cancellation has begun.
    pub(super) fn wait_for_begin(&self) {
        let file = self.file(Case::BEGUN);
        wait("the call begins", || file.exists().then_some(()));
    }

    /// Denies the call that waits, as a person would from another process.
    pub(super) fn deny(&self) {
        let runtime = self.runtime();
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let call = wait("a call waits", || {
            let waiting = tokio.block_on(runtime.waiting_calls(Self::session()));
            waiting.ok()?.first().map(|waiting| waiting.call)
        });
        let denied = Decision::Deny { reason: Some(Case::DENIED.to_owned()) };
        tokio.block_on(runtime.decide(Self::session(), Some(call), denied, Some("ada".to_owned()))).unwrap();
    }
}

/// Waits for something.
fn wait<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A multi-threaded async runtime.
pub(super) fn threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
