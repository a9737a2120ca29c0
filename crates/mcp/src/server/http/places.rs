//! The places of a server: for requests whose token was seen, and for streams of events, which stay open.
//!
//! A connection has no place before its token was seen. Such connections are limited too, in time and in number: the
//! oldest one makes room for a new one, so that they cannot keep others out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The most requests at a time. Others wait.
const MOST_REQUESTS: usize = 256;

/// The most streams of events at a time.
const MOST_STREAMS: usize = 256;

/// The most connections whose token was not seen yet.
const MOST_STRANGERS: usize = 256;

/// Time within which the token of a connection has to be seen.
pub(super) const INTRODUCTION: Duration = Duration::from_secs(10);

/// Time that a request waits for a place.
const WAIT: Duration = Duration::from_secs(30);

/// The places of a server. Clones share them.
#[derive(Clone)]
pub(super) struct Places {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    strangers: Arc<Mutex<VecDeque<Stranger>>>,
}

/// A connection, as long as it is open.
#[derive(Clone)]
pub(super) struct Stranger {
    is_known: Arc<AtomicBool>,
    leave: CancellationToken,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(MOST_REQUESTS)),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            strangers: Arc::default(),
        }
    }
}

impl Places {
    /// Enters a new connection. The oldest one without a token leaves if there are too many.
    pub(super) fn enter(&self) -> Stranger {
        let new = Stranger { is_known: Arc::default(), leave: CancellationToken::new() };
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are known, or gone.
        strangers.retain(|one| !one.is_known() && !one.leave.is_cancelled());
        while strangers.len() >= MOST_STRANGERS
            && let Some(oldest) = strangers.pop_front()
        {
            oldest.leave.cancel();
        }
        strangers.push_back(new.clone());
        new
    }

    /// Returns a place for a request. `None` if none is free for too long.
    pub(super) async fn for_request(&self) -> Option<OwnedSemaphorePermit> {
        tokio::time::timeout(WAIT, self.requests.clone().acquire_owned()).await.ok()?.ok()
    }

    /// Returns a place for a stream of events. `None` if there is none.
    pub(super) fn for_stream(&self) -> Option<OwnedSemaphorePermit> {
        self.streams.clone().try_acquire_owned().ok()
    }
}

impl Stranger {
    /// Notes that the token was seen.
    pub(super) fn introduce(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Notes that the connection has ended.
    pub(super) fn end(&self) {
        self.leave.cancel();
    }

    /// Completes when the connection has to be closed, because its token was not seen in time.
    pub(super) async fn wait_for_overstay(&self) {
        tokio::select! {
            () = self.leave.cancelled() => {}
            () = tokio::time::sleep(INTRODUCTION) => {}
        }
        if self.is_known() {
            std::future::pending::<()>().await;
        }
    }
}
