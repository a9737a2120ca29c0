//! Code of users that runs in the runtime: closures of agents and tools, and `Deserialize` of their types.
//!
//! Its panics must not end the task that drives a session, or each resumption would end the same way. They become
//! texts, which are handled like errors of that code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use backstitch_core::ports::{AnyValue, BoxFuture};
use tokio::task::JoinError;

/// Runs code of a user. A panic becomes its message.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(panic_message)
}

/// Runs asynchronous code of a user in a task of its own. A panic becomes its message.
pub(crate) async fn catch_task_panic<F>(
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<F::Output, String>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match tokio::spawn(AnyValue::of_future(async move { work().await })).await {
        Ok(done) => Ok(done.into_value()),
        Err(join) if join.is_panic() => Err(panic_message(join.into_panic())),
        Err(join) => Err(join.to_string()),
    }
}

/// Runs work on a thread where it may block.
pub(crate) fn off_thread(
    work: Box<dyn FnOnce() -> AnyValue + Send>,
) -> BoxFuture<'static, Result<AnyValue, JoinError>> {
    Box::pin(async move { tokio::task::spawn_blocking(work).await })
}

/// Returns what a task returned, or `None` if it was aborted. A panic of the task continues here.
pub(crate) fn joined<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(done) => Some(done),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
