//! One guarded run of a handler.
//!
//! The handler runs in a task of its own, so that a panic ends only the handler. It may have to stop: for its
//! own timeout, the evaluation's deadline, a cancellation, a lost claim, or because its caller was dropped.
//! Then its context is revoked first, so that it has no further effects. After that it is notified, aborted
//! and waited for, and so are its processes. Files are restored only after it has ended. If it does not end
//! within the grace period, that is reported, and the session cannot continue.
//!
//! The caller of a running call is a [`Waiter`]: the call ends when the caller is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::ports::BoxFuture;
use backstitch_core::session::{Draft, SessionError};
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolOutcome, ToolResult};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::after;
use crate::fence::panic_message;
use crate::process::Processes;

/// How long a stopped handler may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// The shortest time after which a time limit is looked at again.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// The outcome of a run.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    /// The handler succeeded. The draft has its changes.
    Answered(Box<ToolResult>, Box<Draft>),
    /// The handler failed. The draft still has its logs.
    Failed(ToolError, Option<Box<Draft>>),
    /// The handler panicked with this message.
    Panicked(String, Option<Box<Draft>>),
    Stopped(Stop, Option<Box<Draft>>),
    /// The handler, or a process that it started, does not end.
    Stuck(String),
}

/// Why a handler was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It exceeded the time limit of its tool.
    Timeout,
    /// The evaluation's deadline has passed.
    Deadline,
    Cancelled,
    /// Its caller was dropped.
    Abandoned,
    /// It waits for a time or a signal.
    Waits,
    /// Another process may have the session.
    LeaseOver,
}

/// Limits of one run.
pub(super) struct Bounds {
    pub(super) timeout: Option<Duration>,
    pub(super) person_time: Arc<PersonTime>,
    pub(super) deadline: Option<Duration>,
    pub(super) cancel: CancellationToken,
    pub(super) waiter: Arc<Waiter>,
    /// Notifies the handler that it has to stop.
    pub(super) stop: CancellationToken,
    /// Cancelled when the handler waits.
    pub(super) waits: CancellationToken,
    /// Cancelled when another process may have the session.
    pub(super) lease_over: CancellationToken,
    pub(super) processes: Arc<Processes>,
    pub(super) grace: Option<Duration>,
}

/// The time for which a handler waited for a person. It does not count towards the time limit of its tool.
#[derive(Debug, Default)]
pub(super) struct PersonTime(Mutex<PersonWaits>);

#[derive(Debug, Default)]
struct PersonWaits {
    /// The questions that are open.
    open: usize,
    /// When the first of them was asked.
    since: Option<Instant>,
    /// The time of those that have ended.
    ended: Duration,
}

impl PersonTime {
    /// Notes that a question begins or ends.
    pub(super) fn set_waiting(&self, is_waiting: bool) {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waits.open = if is_waiting { waits.open + 1 } else { waits.open.saturating_sub(1) };
        if waits.open > 0 {
            waits.since.get_or_insert_with(Instant::now);
        } else if let Some(since) = waits.since.take() {
            waits.ended += since.elapsed();
        }
    }

    fn total(&self) -> Duration {
        let waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waits.ended + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Completes when a handler that starts now has worked for longer than a limit. Never completes without one.
    async fn exceed(&self, limit: Option<Duration>) {
        let (Some(limit), began) = (limit, Instant::now()) else { return std::future::pending().await };
        loop {
            let worked = began.elapsed().saturating_sub(self.total());
            let left = limit.saturating_sub(worked);
            if left.is_zero() {
                return;
            }
            // What is left does not shrink while a person is waited for.
            tokio::time::sleep(left.max(SHORTEST_WAIT)).await;
        }
    }
}

/// Runs the handler of a tool. `inside` says what calls that it makes know about this one.
pub(super) async fn run(
    tool: &Tool,
    context: ToolContext,
    arguments: Map<String, Value>,
    bounds: Bounds,
    inside: impl FnOnce(BoxFuture<'static, ToolOutcome>) -> BoxFuture<'static, ToolOutcome>,
) -> AttemptOutcome {
    let handler = tool.handler.clone();
    let given = context.clone();
    let handler = inside(Box::pin(async move { handler.call(given, arguments).await }));
    let mut task = tokio::spawn(handler);
    // If the async runtime shuts down, the effects of the handler must not count.
    let (processes, abort) = (bounds.processes.clone(), task.abort_handle());
    let _guard = StopWhenDropped { context: context.clone(), processes, task: abort };

    let stop = tokio::select! {
        biased;
        ended = &mut task => {
            let ended = attempt_outcome(ended, &context);
            return match bounds.processes.end().await {
                Ok(()) => ended,
                Err(error) => AttemptOutcome::Stuck(error.to_string()),
            };
        }
        () = bounds.waiter.wait_until_gone() => Stop::Abandoned,
        () = bounds.cancel.cancelled() => Stop::Cancelled,
        () = bounds.lease_over.cancelled() => Stop::LeaseOver,
        () = bounds.waits.cancelled() => Stop::Waits,
        () = after(bounds.deadline) => Stop::Deadline,
        () = bounds.person_time.exceed(bounds.timeout) => Stop::Timeout,
    };

    // From here on nothing that the handler does counts, whether it notices or not.
    let draft = context.revoke().map(Box::new);
    bounds.stop.cancel();
    bounds.processes.stop();
    task.abort();
    if tokio::time::timeout(bounds.grace.unwrap_or(GRACE), &mut task).await.is_err() {
        return AttemptOutcome::Stuck(format!("it was stopped ({stop:?}) and does not end"));
    }
    match bounds.processes.end().await {
        Ok(()) => AttemptOutcome::Stopped(stop, draft),
        Err(error) => AttemptOutcome::Stuck(error.to_string()),
    }
}

struct StopWhenDropped {
    context: ToolContext,
    processes: Arc<Processes>,
    task: tokio::task::AbortHandle,
}

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.context.revoke();
        self.processes.stop();
        self.task.abort();
    }
}

fn attempt_outcome(
    ended: Result<ToolOutcome, tokio::task::JoinError>,
    context: &ToolContext,
) -> AttemptOutcome {
    let draft = context.revoke().map(Box::new);
    match (ended, draft) {
        (Ok(Ok(result)), Some(draft)) => AttemptOutcome::Answered(Box::new(result), draft),
        (Ok(Ok(_)), None) => AttemptOutcome::Failed(ToolError::Revoked, None),
        (Ok(Err(error)), draft) => AttemptOutcome::Failed(error, draft),
        (Err(join), draft) => match join.try_into_panic() {
            Ok(payload) => AttemptOutcome::Panicked(panic_message(payload), draft),
            Err(_) => AttemptOutcome::Stopped(Stop::Cancelled, draft),
        },
    }
}

/// Runs code of the session outside of a handler, such as a reducer that reduces again. A panic becomes an
/// error.
pub(super) fn catch_session_panic<T>(
    work: impl FnOnce() -> Result<T, SessionError>,
) -> Result<T, SessionError> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|payload| Err(SessionError::Panicked { message: panic_message(payload) }))
}

/// Represents the caller of a running call. It is gone once the future of the call is dropped.
pub(super) struct Waiter {
    /// Cancelled with the runner, and when the caller is gone.
    pub(super) stop: CancellationToken,
    is_gone: AtomicBool,
}

impl Waiter {
    pub(super) fn new(runner: &CancellationToken) -> Arc<Self> {
        Arc::new(Self { stop: runner.child_token(), is_gone: AtomicBool::new(false) })
    }

    /// Marks the caller as gone.
    pub(super) fn leave(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
        self.stop.cancel();
    }

    /// True if the caller is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    /// Completes when the caller is gone.
    pub(super) async fn wait_until_gone(&self) {
        self.stop.cancelled().await;
        if !self.is_gone() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_person_does_not_count() {
        let (time, began) = (Arc::<PersonTime>::default(), Instant::now());
        let asking = {
            let time = time.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(40)).await;
                time.set_waiting(true);
                tokio::time::sleep(Duration::from_millis(900)).await;
                time.set_waiting(false);
            }
        };
        tokio::join!(asking, time.exceed(Some(Duration::from_millis(60))));
        let millis = began.elapsed().as_millis();
        assert!((960..1000).contains(&millis), "{millis}");
    }
}
