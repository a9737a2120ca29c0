//! Redaction of sessions that a runtime made: a value is removed from wherever it was, and the session resumes.

mod history;
mod leaks;
mod programs;
mod random;
pub(crate) mod remains;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::id::SessionId;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{
    BoxFuture, Erasure, ErasureMode, Owner, Policy, PolicyAnswer, PolicyError, PolicyRequest, Redaction,
    RedactionReport, RequestInfo, Store as _,
};
use backstitch_core::redaction::SensitiveValue;
use backstitch_core::time::Clock as _;
use backstitch_runtime::{Agent, Runtime, SessionOptions, SystemClock};
use backstitch_store::SqliteStore;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

/// A store in a file, and a directory with files.
pub(crate) struct Shop {
    /// The files, and the store.
    directories: [TempDir; 2],
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) runtime: Runtime,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let in_memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let directories = [tempfile::tempdir().unwrap(), in_memory];
        std::fs::create_dir(directories[0].path().join("files")).unwrap();
        let store = Arc::new(SqliteStore::open(directories[1].path().join("store.db")).unwrap());
        Self { directories, runtime: Runtime::new(store.clone()), store }
    }

    /// A path below the workspace.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directories[0].path().join("files").join(name)
    }

    pub(crate) fn options(&self) -> SessionOptions {
        let [root, store] = self.directories.each_ref().map(TempDir::path);
        let mut options = OpenOptions::new(root.join("files"), store, self.store.clone());
        options.locks = Some(root.join("locks"));
        SessionOptions::with_workspace(Arc::new(HostWorkspace::open(options).unwrap()))
    }

    /// Redacts a value. Nothing of it is left in the store.
    pub(crate) async fn redact(&self, session: SessionId, value: &str) -> RedactionReport {
        let redaction = Redaction {
            session,
            value: SensitiveValue::new(value).unwrap(),
            owner: Owner::new("redactor"),
            at: SystemClock::new().now(),
            mode: ErasureMode::Now,
        };
        let report = self.store.redact(redaction).await.unwrap();
        assert_eq!(report.erasure, Erasure::Complete);
        assert!(report.kept.is_empty() && report.file_names.is_empty(), "{report:?}");
        remains::assert_gone(&self.store, value);
        let verified = self.store.verify().unwrap();
        assert!(verified.is_sound(), "{:?}", verified.findings);
        let positions = report.sessions.iter().filter(|one| !one.positions.is_empty());
        for one in positions {
            let named = verified.redacted.iter().find(|(session, _)| *session == one.session);
            assert!(named.is_some_and(|(_, named)| one.positions.iter().all(|at| named.contains(at))));
        }
        report
    }
}

/// Everything that a policy was shown, as text.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The agent, with a policy that notes what it is shown.
    pub(crate) fn of(&self, mut agent: Agent) -> Agent {
        agent.policy = Arc::new(Noting { inner: agent.policy, requests: self.clone() });
        agent
    }
}

struct Noting {
    inner: Arc<dyn Policy>,
    requests: Requests,
}

impl Policy for Noting {
    fn name(&self) -> &PolicyName {
        self.inner.name()
    }

    fn describe(&self, question: &PolicyRequest) -> RequestInfo {
        self.inner.describe(question)
    }

    fn decide(
        &self,
        question: PolicyRequest,
        described: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        let shown = question.shown.iter().map(|message| serde_json::to_string(&**message).unwrap());
        self.requests.0.lock().unwrap_or_else(PoisonError::into_inner).extend(shown);
        self.inner.decide(question, described)
    }
}
