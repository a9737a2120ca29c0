//! Work that is finished even if whoever waits for it is dropped.
//!
//! A future may be dropped at any await point: a request of a web server is cut off, a `select!` takes another branch. What must
//! not stop half-way, an append or the end of a call, is owned by a [`DetachedTask`]. It is polled in place, in the order and on the
//! task of whoever waits; and when it is dropped before it is done, the rest of it runs as a task of its own.

use std::pin::Pin;
use std::task::{Context, Poll};

use backstitch_core::ports::BoxFuture;
use tokio::runtime::Handle;
use tracing::Instrument as _;

use super::{LiveSession, LiveStatus};
use crate::error::RuntimeError;

/// What becomes of work that nobody waits for any more.
type Abandon<T> = Box<dyn FnOnce(BoxFuture<'static, T>) + Send>;

/// Work that is finished even if this is dropped.
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
    /// Work that nobody else has to wait for by name: what it holds, such as a lock, makes them wait.
    pub(super) fn plain(work: impl Future<Output = T> + Send + 'static) -> Self {
        let handle = Handle::try_current();
        Self::new(work, move |work| {
            // Where there is no runtime it is dropped, and leaves behind what a crash would.
            if let Ok(handle) = handle {
                handle.spawn(async move { drop(work.await) });
            }
        })
    }
}

impl<T> Future for DetachedTask<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Taken out meanwhile, so that what panics is not polled again.
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
    /// A call under way. If it is dropped, `stop` is called, the rest of it runs in the background, and whoever uses the session
    /// next waits for that.
    pub(crate) fn call_under_way<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RuntimeError>> + Send + 'static,
        stop: impl FnOnce() + Send + 'static,
    ) -> DetachedTask<Result<T, RuntimeError>> {
        let (live, handle) = (self.this(), Handle::try_current());
        DetachedTask::new(work, move |work| {
            stop();
            let cut_off = CutOff { live: Some(live.clone()) };
            let Ok(handle) = handle else { return };
            let rest = async move {
                let ended = work.await;
                let live = cut_off.defuse();
                if let Err(error) = ended {
                    tracing::warn!(session = ?live.map(|live| live.id()), %error, "a call that nobody waited for did not end");
                }
            };
            handle.spawn(live.abandoned.track_future(rest.instrument(tracing::Span::current())));
        })
    }
}

/// Marks a session whose call was cut off by the end of the async runtime: what the call has left is known to the journal alone,
/// and put back by whoever opens the session again.
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
            live.set_status(LiveStatus::AheadOfStore);
        }
    }
}
