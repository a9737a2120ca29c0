//! Operations whose callers are dropped at an await point: the session stays usable.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use backstitch_core::approval::{ApprovalRule, ApprovalVerdict};
use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Decision, Effect, Note, PauseReason};
use backstitch_core::ports::BoxFuture;
use backstitch_filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{
    Agent, ApplyOptions, DecisionState, ForkOptions, OperationFiles, PointSpec, RewindOptions, Run, Runtime,
    RuntimeError, SessionOptions, Tools,
};
use backstitch_store::SqliteStore;
use serde_json::json;

use crate::history::sew;
use crate::tailor::{reply, scripted};

/// Polls a future up to `limit` times, and drops it if it is not done by then.
pub(crate) async fn polled<T>(mut future: BoxFuture<'_, T>, limit: usize) -> Option<T> {
    let mut polls = 0;
    poll_fn(|context| {
        polls += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if polls == limit => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// An operation on a session.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Rewind,
    Undo,
    Redo,
    Restore,
    Fork,
    AddRule,
    AddNote,
    Decide,
    Resolve,
    OpenIdle,
    Open,
    ForkSession,
    Create,
    Adopt,
    Status,
    Apply,
    UndoApply,
}

const ALL: [Operation; 17] = [
    Operation::Rewind,
    Operation::Undo,
    Operation::Redo,
    Operation::Restore,
    Operation::Fork,
    Operation::AddRule,
    Operation::AddNote,
    Operation::Decide,
    Operation::Resolve,
    Operation::OpenIdle,
    Operation::Open,
    Operation::ForkSession,
    Operation::Create,
    Operation::Adopt,
    Operation::Status,
    Operation::Apply,
    Operation::UndoApply,
];

struct Shop {
    store: Arc<SqliteStore>,
    runtime: Runtime,
    files: Arc<MemoryWorkspace>,
    agent: Agent,
    session: SessionId,
    _directory: tempfile::TempDir,
}

impl Shop {
    /// A session with files that was rewound once.
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(directory.path().join("store.db")).unwrap());
        let files = Arc::new(MemoryWorkspace::new(Arc::new(MemoryFilesystem::new()), store.clone()));
        let turn = |name: &str| reply(name, &[("sew", json!({"name": name}))]);
        let replies = [turn("one"), turn("two"), reply("done", &[])];
        let agent = scripted(replies.into_iter().chain((0..9).map(|_| reply("ok", &[]))).collect())
            .tools(Tools::new([sew(Effect::Workspace, Arc::default())]).unwrap())
            .workspace(files.clone());
        let runtime = Runtime::new(store.clone());
        let run = runtime.start(&agent, "sew").await.unwrap();
        let _ = run.outcome().await.unwrap();
        let session = run.session();
        let options = RewindOptions::within(files.clone());
        runtime.rewind_with(session, PointSpec::Turn(1), options).await.unwrap();
        Self { store, runtime, files, agent, session, _directory: directory }
    }

    fn operation(&self, operation: Operation) -> BoxFuture<'_, bool> {
        let Self { runtime, agent, session, .. } = self;
        let session = *session;
        let rule = ApprovalRule::new(ApprovalVerdict::Ask, "nothing".parse().unwrap());
        let options = SessionOptions::default;
        let files = || RewindOptions::within(self.files.clone());
        Box::pin(async move {
            match operation {
                Operation::Rewind => runtime.rewind_with(session, PointSpec::Start, files()).await.is_ok(),
                Operation::Undo => runtime.undo_with(session, files()).await.is_ok(),
                Operation::Redo => {
                    let undone = runtime.undo_with(session, files()).await;
                    undone.is_ok() && runtime.redo_with(session, files()).await.is_ok()
                }
                Operation::Restore => {
                    let one = [FilePath::new("one").unwrap()];
                    runtime.restore_with(session, PointSpec::Start, one, files()).await.is_ok()
                }
                Operation::Fork => {
                    let elsewhere = ForkOptions::within(self.fork_files());
                    runtime.fork_with(session, PointSpec::Start, elsewhere).await.is_ok()
                }
                Operation::AddRule => runtime.add_approval_rule(session, rule).await.is_ok(),
                Operation::AddNote => runtime.add_note(session, Note::new("tests", "a note")).await.is_ok(),
                // Nothing waits, which is found out once the session is open.
                Operation::Decide => {
                    let decided = runtime.decide(session, None, Decision::Continue, None).await;
                    decided.unwrap_err().code() == ErrorCode::DecisionRefused
                }
                Operation::Resolve => {
                    let resolved = runtime.resolve(session, None).await;
                    resolved.unwrap_err().code() == ErrorCode::DecisionRefused
                }
                Operation::OpenIdle => {
                    runtime.open_idle(session, options()).await.unwrap().release().await.is_ok()
                }
                Operation::Open => {
                    let driver = runtime.open(session, agent.clone(), options()).await.unwrap();
                    driver.session().release().await.is_ok()
                }
                Operation::ForkSession => {
                    let options =
                        SessionOptions { workspace: Some(self.fork_files()), ..SessionOptions::default() };
                    let fork = runtime.fork_session(session, PointSpec::Start, options).await;
                    fork.unwrap().release().await.is_ok()
                }
                Operation::Create => {
                    let driver = runtime.create(agent.clone(), options()).await.unwrap();
                    driver.session().release().await.is_ok()
                }
                Operation::Adopt => {
                    let snapshot = runtime.state(session).await.unwrap().snapshot();
                    let driver = runtime.adopt_snapshot(agent.clone(), &snapshot, options()).await;
                    driver.unwrap().session().release().await.is_ok()
                }
                Operation::Status => runtime.status(session).await.is_ok(),
                // The session works in the directory itself, which is found out once it is open.
                Operation::Apply => {
                    let refused = runtime.apply(session, Self::untouched()).await.unwrap_err();
                    refused.code() == ErrorCode::NotIsolated
                }
                Operation::UndoApply => {
                    let refused = runtime.undo_apply(session, Self::untouched()).await.unwrap_err();
                    refused.code() == ErrorCode::NotIsolated
                }
            }
        })
    }

    fn untouched() -> ApplyOptions {
        ApplyOptions { files: OperationFiles::Untouched, ..ApplyOptions::default() }
    }

    fn fork_files(&self) -> Arc<MemoryWorkspace> {
        Arc::new(MemoryWorkspace::new(Arc::new(MemoryFilesystem::new()), self.store.clone()))
    }
}

fn is_held(run: &Result<Run, RuntimeError>) -> bool {
    run.as_ref().is_err_and(|error| error.code() == ErrorCode::SessionHeld)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_usable_after_any_operation_was_dropped_at_any_await_point() {
    for operation in ALL {
        for limit in 1.. {
            let shop = Shop::new().await;
            let done = polled(shop.operation(operation), limit).await;
            // A session that a caller opens is its own. If that caller is dropped, the claim is released in the background.
            let opens = matches!(operation, Operation::OpenIdle | Operation::Open);
            let mut run = shop.runtime.ask(shop.session, &shop.agent, "sew").await;
            while opens && done.is_none() && is_held(&run) {
                tokio::task::yield_now().await;
                run = shop.runtime.ask(shop.session, &shop.agent, "sew").await;
            }
            match run {
                Ok(run) => drop(run.outcome().await),
                // The rewind has opened the evaluation again.
                Err(error) if error.code() == ErrorCode::EvaluationOpen => {
                    let mut run = shop.runtime.resume(shop.session, &shop.agent).await;
                    while opens && done.is_none() && is_held(&run) {
                        tokio::task::yield_now().await;
                        run = shop.runtime.resume(shop.session, &shop.agent).await;
                    }
                    drop(run.unwrap().outcome().await);
                }
                Err(error) => panic!("{operation:?}, dropped after {limit} polls: {error}"),
            }
            if let Some(done) = done {
                assert!(done, "{operation:?}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_session_that_runs_is_refused_with_one_code() {
    let (agent, ran) = crate::tailor::with_keep(
        scripted(vec![reply("", &[("keep", json!({"text": "wait"}))]), reply("done", &[])]),
        Effect::Workspace,
    );
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(directory.path().join("store.db")).unwrap());
    let runtime = Runtime::new(store);
    let run = runtime.start(&agent, "sew").await.unwrap();
    crate::tailor::until(&ran, 1).await;
    let session = run.session();
    let codes = [
        runtime.ask(session, &agent, "more").await.unwrap_err().code(),
        runtime.resume(session, &agent).await.unwrap_err().code(),
        runtime.rewind(session, PointSpec::Start).await.unwrap_err().code(),
        runtime.undo(session).await.unwrap_err().code(),
        runtime.redo(session).await.unwrap_err().code(),
        runtime.restore(session, PointSpec::Start, []).await.unwrap_err().code(),
        runtime.apply(session, ApplyOptions::default()).await.unwrap_err().code(),
        runtime.undo_apply(session, ApplyOptions::default()).await.unwrap_err().code(),
        runtime.complete_apply(session, None).await.unwrap_err().code(),
    ];
    assert_eq!(codes, [ErrorCode::SessionHeld; 9]);
    // A decision goes to the run, and a rule and a note are recorded with it.
    let decided = runtime.decide(session, None, Decision::Continue, None).await.unwrap();
    assert!(matches!(decided, DecisionState::Sent(_)), "{decided:?}");
    runtime.add_note(session, Note::new("tests", "a note")).await.unwrap();
    run.pause();
    let ended = run.outcome().await.unwrap();
    assert!(
        matches!(ended, backstitch_runtime::DriveOutcome::Paused { reason: PauseReason::Asked, .. }),
        "{ended:?}"
    );
}

#[test]
fn outside_of_tokio_there_is_an_error_and_no_panic() {
    let agent = scripted(vec![reply("done", &[])]);
    let runtime = Runtime::new(Arc::new(backstitch_store::MemoryStore::new()));
    let waker = std::task::Waker::noop();
    let mut starting = Box::pin(runtime.start(&agent, "sew"));
    let polled = starting.as_mut().poll(&mut std::task::Context::from_waker(waker));
    let Poll::Ready(Err(error)) = polled else { panic!("it is driven") };
    assert_eq!(error.code(), ErrorCode::NoAsyncRuntime);
    drop(starting);
    // Without its time driver, tokio cannot wait.
    let timeless = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = timeless.block_on(runtime.start(&agent, "sew")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoAsyncRuntime);
}
