//! Operations in tasks of the runtime.
//!
//! A caller may be dropped at any await point, as a server drops the request of a client that has disconnected. So
//! what claims a session runs in a task of the runtime: it completes and releases the session, whether its caller
//! waits or not. Operations on one session in one process wait for each other; a run that drives the session is not
//! waited for.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{AnyValue, BoxFuture, Store};
use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinError;
use tracing::Instrument as _;

use crate::error::{Result, RuntimeError};
use crate::fence::{catch_panic, off_thread};
use crate::live::LiveSession;
use crate::runtime::Runtime;

impl Runtime {
    /// Runs an operation to its end, even if the caller is dropped.
    pub(crate) async fn in_task<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.complete(AnyValue::of_future(operation)).await?.into_value()
    }

    fn complete(&self, operation: BoxFuture<'static, AnyValue>) -> BoxFuture<'_, Result<AnyValue>> {
        Box::pin(async move {
            let handle = async_runtime()?;
            let (operation, tasks) = (operation.in_current_span(), handle.clone());
            // Reading and folding a long journal would keep an async thread from its other tasks.
            let task = self.registry.tasks.spawn_blocking_on(move || tasks.block_on(operation), &handle);
            task.await.map_err(failed_task)
        })
    }

    /// Reads from the store, away from the async threads.
    pub(crate) async fn read_off_thread<T, F>(
        &self,
        read: impl FnOnce(Arc<dyn Store>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send,
    {
        let store = self.store().clone();
        match Handle::try_current() {
            Ok(tasks) => {
                let reading: Box<dyn FnOnce() -> AnyValue + Send> =
                    Box::new(move || tasks.block_on(AnyValue::of_future(read(store))));
                off_thread(reading).await.map_err(failed_task)?.into_value()
            }
            Err(_) => read(store).await,
        }
    }

    /// Opens a session in a task. If the caller is dropped, the session is released.
    pub(crate) async fn open_in_task(
        &self,
        opening: impl Future<Output = Result<Arc<LiveSession>>> + Send + 'static,
    ) -> Result<Arc<LiveSession>> {
        self.open_boxed(Box::pin(opening)).await
    }

    async fn open_boxed(
        &self,
        opening: BoxFuture<'static, Result<Arc<LiveSession>>>,
    ) -> Result<Arc<LiveSession>> {
        let handle = async_runtime()?;
        let (give, opened) = oneshot::channel();
        let opening = async move {
            let opened = AssertUnwindSafe(opening).catch_unwind().await;
            let opened = opened.unwrap_or(Err(RuntimeError::DriverPanicked));
            let _ = give.send(opened.map(UnclaimedSession::new));
        };
        // A long journal is read and folded away from the async threads.
        let opening: BoxFuture<'static, ()> = Box::pin(opening.in_current_span());
        let tasks = handle.clone();
        self.registry.tasks.spawn_blocking_on(move || tasks.block_on(opening), &handle);
        opened.await.unwrap_or(Err(RuntimeError::ShuttingDown)).map(UnclaimedSession::into_session)
    }

    /// Opens a session, performs one operation on it, and releases it.
    pub(crate) async fn operate<T, F>(
        &self,
        session: SessionId,
        opening: impl Future<Output = Result<Arc<LiveSession>>> + Send + 'static,
        operation: impl FnOnce(Arc<LiveSession>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let registry = self.registry.clone();
        self.in_task(async move {
            let _alone = registry.operation(session).await;
            perform(opening.await?, operation).await
        })
        .await
    }
}

/// Performs one operation on an open session, and releases it.
pub(super) async fn perform<T, F>(
    live: Arc<LiveSession>,
    operation: impl FnOnce(Arc<LiveSession>) -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let done = AssertUnwindSafe(operation(live.clone())).catch_unwind().await;
    let released = live.release().await;
    let done = done.unwrap_or(Err(RuntimeError::DriverPanicked))?;
    released?;
    Ok(done)
}

/// Returns the error of a task that returned nothing.
fn failed_task(join: JoinError) -> RuntimeError {
    if join.is_panic() { RuntimeError::DriverPanicked } else { RuntimeError::ShuttingDown }
}

/// Returns the async runtime of the caller.
pub(super) fn async_runtime() -> Result<Handle> {
    let handle = Handle::try_current().map_err(|_| RuntimeError::NoAsyncRuntime)?;
    // A timer cannot be made without the time driver, and nothing else says whether there is one.
    catch_panic(|| drop(tokio::time::sleep(Duration::ZERO))).map_err(|_| RuntimeError::NoAsyncRuntime)?;
    Ok(handle)
}

/// A session that its caller has not received yet.
struct UnclaimedSession(Option<Arc<LiveSession>>);

impl UnclaimedSession {
    fn new(live: Arc<LiveSession>) -> Self {
        Self(Some(live))
    }

    fn into_session(mut self) -> Arc<LiveSession> {
        self.0.take().expect("invariant: a session is taken once")
    }
}

impl Drop for UnclaimedSession {
    fn drop(&mut self) {
        if let (Some(live), Ok(handle)) = (self.0.take(), Handle::try_current()) {
            handle.spawn(async move {
                if let Err(error) = live.release().await {
                    tracing::warn!(session = %live.id(), %error, "a session could not be released");
                }
            });
        }
    }
}
