//! Work that blocks: reading and writing a store.
//!
//! It is done on threads of its own, so that it never keeps the server from others, and only so much at a time. A place is free again
//! when the work has ended, not when its request was dropped: a client that disconnects and asks again cannot start more work than one that
//! waits.

use std::sync::Arc;
use std::time::Duration;

use backstitch::code::ErrorCode;
use backstitch::ports::{AnyValue, BoxFuture};
use http::StatusCode;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::problem::Problem;

/// Places for work.
#[derive(Clone)]
pub(crate) struct Work {
    places: Arc<Semaphore>,
    wait: Duration,
}

impl Work {
    pub(crate) fn new(places: usize, wait_seconds: u64) -> Self {
        Self { places: Arc::new(Semaphore::new(places.max(1))), wait: Duration::from_secs(wait_seconds) }
    }

    /// Does work once there is a place for it. It continues to its end, even if the caller is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        self.run_any(AnyValue::of_future(work)).await?.into_value()
    }

    async fn run_any(&self, work: BoxFuture<'static, AnyValue>) -> Result<AnyValue, Problem> {
        let waiting = tokio::time::timeout(self.wait, self.places.clone().acquire_owned());
        let Ok(Ok(place)) = waiting.await else {
            let detail = "too many requests are being answered";
            return Err(Problem::busy(StatusCode::SERVICE_UNAVAILABLE, detail));
        };
        let handle = Handle::current();
        let task = tokio::task::spawn_blocking(move || {
            let _place = place;
            handle.block_on(work)
        });
        task.await.map_err(|error| {
            tracing::error!(%error, "the answer to a request failed");
            Problem::new(ErrorCode::Internal, "the answer could not be computed")
        })
    }

    /// The number of free places.
    pub(crate) fn free(&self) -> usize {
        self.places.available_permits()
    }
}
