//! Work that completes even if its caller is dropped.
//!
//! A future may be dropped at any await point: a web server cancels a request, or a `select!` takes another
//! branch. Work that must not stop half-way, such as an append or the end of a call, is owned by a
//! [`DetachedTask`]. It is polled in place, on the task of its caller. If it is dropped before it is done,
//! the rest of it runs as a task of its own.

use std::pin::Pin;
use std::task::{Context, Poll};

use backstitch_core::ports::BoxFuture;
use tokio::runtime::Handle;
use tracing::Instrument as _;

use super::LiveSession;
use crate::error::Result;

/// Receives the rest of the work when the caller is dropped.
type Abandon<T> = Box<dyn FnOnce(BoxFuture<'static, T>) + Send>;

/// Work that completes even if this is dropped.
pub(crate) struct DetachedTask<T> {
    work: Option<BoxFuture<'static, T>>,
    abandon: Option<Abandon<T>>,
}

impl<T: 'static> DetachedTask<T> {
    fn new(
        work: impl Future<Output = T> + Send + 'static,
        abandon: impl FnOnce(BoxFuture<'static, T>) + Send + 'static,
    ) -> Self {
        Self { work: Some(Box::pin(work)), abandon: Some(Box::new(abandon)) }
    }
}

impl<T: Send + 'static> DetachedTask<T> {
    /// Creates work that is not tracked. Other tasks wait for it through what it holds, such as a lock.
    pub(crate) fn plain(work: impl Future<Output = T> + Send + 'static) -> Self {
        let handle = Handle::try_current();
        Self::new(work, move |work| {
            // Without a runtime it is dropped, and leaves the same state as a crash.
            if let Ok(handle) = handle {
                handle.spawn(async move { drop(work.await) });
            }
        })
    }
}

impl<T> Future for DetachedTask<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Removed during the poll, so that work which panics is not polled again.
        let mut work = self.work.take().expect("invariant: it is not polled after it is done");
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => {
                self.work = Some(work);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for DetachedTask<T> {
    fn drop(&mut self) {
        if let (Some(work), Some(abandon)) = (self.work.take(), self.abandon.take()) {
            abandon(work);
        }
    }
}

impl LiveSession {
    /// Creates a task for a running call. If it is dropped, `stop` is called, the rest of it runs in the
    /// background, and the next user of the session waits for that.
    pub(crate) fn call_under_way<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
        stop: impl FnOnce() + Send + 'static,
    ) -> DetachedTask<Result<T>> {
        let (live, handle) = (self.this(), Handle::try_current());
        DetachedTask::new(work, move |work| {
            stop();
            let cut_off = CutOff { live: Some(live.clone()) };
            let Ok(handle) = handle else { return };
            let rest = async move {
                let ended = work.await;
                let live = cut_off.defuse();
                if let Err(error) = ended {
                    tracing::warn!(session = ?live.map(|live| live.id()), %error, "a call whose caller was dropped did not end");
                }
            };
            handle.spawn(live.abandoned.track_future(rest.instrument(tracing::Span::current())));
        })
    }
}

/// Marks a session whose call was aborted by the end of the async runtime. Only the journal knows what the
/// call has left, and the next process that opens the session restores it.
struct CutOff {
    live: Option<std::sync::Arc<LiveSession>>,
}

impl CutOff {
    fn defuse(mut self) -> Option<std::sync::Arc<LiveSession>> {
        self.live.take()
    }
}

impl Drop for CutOff {
    fn drop(&mut self) {
        if let Some(live) = self.live.take() {
            live.condition().cut_off();
        }
    }
}
