//! Workers: processes that drive the sessions of a queue.
//!
//! A [`Worker`] takes sessions whose agents it knows, drives each until it waits or ends ([`Runtime::drive`]), and gives it back. A session
//! that waits needs no worker; an item in its inbox or its time makes it ready again. Sessions of workers that have ended are taken
//! by others. An error that stops a session is retried with growing delays, and after the last one the session leaves the queue as
//! failed, with the reason. Its journal is not changed by that, so it can be resumed or enqueued again.
//!
//! The agents of a worker are those of its runtime ([`Runtime::with_agents`]). Sessions of other agents are left alone, and reported
//! once. Workers also start the sessions of [schedules](crate::ScheduleOptions).

mod enqueue;
mod event;
mod look;
mod schedule;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::StopReason;
use backstitch_core::ports::{BoxFuture, Queue, QueueRest, StoreError, TakeRequest, TakenSession};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use enqueue::{EnqueueOptions, EnqueuedSession};
pub use event::WorkerEvent;
pub use schedule::{ScheduleList, ScheduleOptions, ScheduledSession};

use look::WorkerContext;

use crate::agent::Backoff;
use crate::entropy;
use crate::error::{Result, RuntimeError};
use crate::run::Rest;
use crate::runtime::{Runtime, SessionOptions};

/// The longest pause between two readings of the queue, before jitter.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// Times after which a session is tried again whose directory or claim another process has.
const BUSY: Backoff =
    Backoff { retries: u32::MAX, first: Duration::from_secs(2), longest: Duration::from_secs(30) };

/// The most sessions of which it is known that something that they need is in use.
const MOST_BUSY: usize = 1_000;

/// Time after which a session is tried again whose agent is not known, though others of the same name are.
const UNKNOWN: Duration = Duration::from_secs(10);

/// How often a release is tried that the store did not accept, after the worker was stopped. Before that it is tried until the store
/// accepts it, since no other worker takes the session as long as this one lives.
const RELEASES: u32 = 5;

/// Options of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerOptions {
    /// The most sessions at a time; at least one.
    pub concurrency: usize,
    /// Interval at which the queue is read, with jitter. It is half as long again while the store gives hints.
    pub poll: Duration,
    /// Retries of a session that an error has stopped, and the delays before them.
    pub retries: Backoff,
    /// Time that running sessions have to reach an end or a pause after the worker was asked to stop. Then they are paused, and
    /// other workers continue them.
    pub grace: Duration,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        let retries =
            Backoff { retries: 5, first: Duration::from_secs(5), longest: Duration::from_secs(300) };
        Self { concurrency: 4, poll: Duration::from_secs(1), retries, grace: Duration::from_secs(30) }
    }
}

/// Drives the sessions of a queue.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_runtime::{Agent, AgentRegistry, EnqueueOptions, Runtime, Worker, WorkerEvent};
/// use backstitch_store::MemoryStore;
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let policy = backstitch_providers::ScriptedPolicy::from_toml("[[reply]]\ntext = 'Mended.'")?;
/// let agent = Agent::new("tailor").policy(policy);
/// let store = Arc::new(MemoryStore::new());
/// let agents = AgentRegistry::new([agent.clone()]);
/// let runtime = Runtime::new(store.clone()).with_queue(store).with_agents(Arc::new(agents));
/// runtime.enqueue(&agent, "Mend the coat.", EnqueueOptions::default()).await?;
///
/// let stop = CancellationToken::new();
/// let rested = stop.clone();
/// let worker = Worker::new(runtime).with_report(move |event| {
///     if let WorkerEvent::Rested { .. } = event {
///         rested.cancel();
///     }
/// });
/// worker.run(stop).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Worker {
    runtime: Runtime,
    options: WorkerOptions,
    report: Arc<dyn Fn(WorkerEvent) + Send + Sync>,
    /// Agents that are not known here, each reported once.
    unknown: Arc<Mutex<BTreeSet<String>>>,
    /// Why schedules could not be applied, each reason reported once.
    refused: Arc<Mutex<BTreeMap<String, String>>>,
    /// How often in a row sessions could not be driven because something is in use.
    busy: Arc<Mutex<BTreeMap<SessionId, u32>>>,
}

impl Worker {
    /// Creates a worker of a runtime with a queue and with agents.
    pub fn new(runtime: Runtime) -> Self {
        Self {
            runtime,
            options: WorkerOptions::default(),
            report: Arc::new(|_| {}),
            unknown: Arc::default(),
            refused: Arc::default(),
            busy: Arc::default(),
        }
    }

    /// Sets the options.
    pub fn with_options(self, options: WorkerOptions) -> Self {
        Self { options, ..self }
    }

    /// Calls a function for everything that the worker does.
    pub fn with_report(self, report: impl Fn(WorkerEvent) + Send + Sync + 'static) -> Self {
        Self { report: Arc::new(report), ..self }
    }

    /// Works until the token is cancelled. Then it takes nothing more, and returns once its sessions have reached an end or a pause, or
    /// were paused after the time of [`WorkerOptions::grace`]. [`Runtime::stop`] pauses them at once.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let queue = self.runtime.queue()?.clone();
            let mut running = JoinSet::new();
            let mut recovered = None::<Instant>;
            let mut known = WorkerContext::default();
            while !stop.is_cancelled() && !self.runtime.registry.stop.is_cancelled() {
                while running.try_join_next().is_some() {}
                let mut pause = self.options.poll;
                // A hint comes sooner, so the queue is read less often as long as there are some.
                if queue.has_hints() {
                    pause = pause.saturating_mul(3) / 2;
                }
                let round = async {
                    if recovered.is_none_or(|at| at.elapsed() >= queue.recovery_interval()) {
                        recovered = Some(Instant::now());
                        let sessions = queue.recover().await?;
                        if sessions > 0 {
                            self.report(WorkerEvent::Recovered { sessions });
                        }
                    }
                    if self.is_time_to_look(&*queue, &known) {
                        self.look_around(&*queue, &mut known).await?;
                    }
                    let free = self.options.concurrency.max(1).saturating_sub(running.len());
                    let taken = self.take(&*queue, &known, free).await?;
                    if taken.is_empty()
                        && free > 0
                        && self.may_have_new_agent(&known)
                        && self.look_around(&*queue, &mut known).await?
                    {
                        return self.take(&*queue, &known, free).await;
                    }
                    Ok(taken)
                };
                match round.await {
                    Ok(taken) => {
                        for taken in taken {
                            let (worker, queue) = (self.clone(), queue.clone());
                            running.spawn(async move { worker.work(&*queue, taken).await });
                        }
                    }
                    Err(error @ (StoreError::ReadOnly { .. } | StoreError::Unsupported { .. })) => {
                        return Err(error.into());
                    }
                    Err(error) => {
                        self.report(WorkerEvent::QueueFailed { error: error.to_string() });
                        pause = pause.saturating_mul(5);
                    }
                }
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = self.runtime.registry.stop.cancelled() => {}
                    Some(_) = running.join_next() => {}
                    // A hint makes it faster; without any, the queue is read as often as the options say.
                    () = queue.wait_for_hint(), if running.len() < self.options.concurrency.max(1) => {
                        known.note_hint();
                    }
                    () = tokio::time::sleep(pause.min(LONGEST_PAUSE).mul_f64(0.5 + jitter())) => {}
                }
            }
            self.drain(running).await;
            Ok(())
        })
    }

    async fn take(
        &self,
        queue: &dyn Queue,
        known: &WorkerContext,
        limit: usize,
    ) -> Result<Vec<TakenSession>, StoreError> {
        if limit == 0 || known.names.is_empty() {
            return Ok(Vec::new());
        }
        let (owner, agents) = (self.runtime.owner().clone(), known.names.iter().cloned().collect());
        queue.take(TakeRequest { owner, agents, limit }).await
    }

    /// Waits for the sessions that run, and pauses those that take too long.
    async fn drain(&self, mut running: JoinSet<()>) {
        let ended = async { while running.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.grace, ended).await.is_err() {
            self.runtime.stop(StopReason::Shutdown);
            while running.join_next().await.is_some() {}
        }
    }

    /// Reports an agent that is not known here, once.
    fn note_unknown(&self, agent: &str) {
        let is_new = self.unknown.lock().unwrap_or_else(PoisonError::into_inner).insert(agent.to_owned());
        if is_new {
            self.report(WorkerEvent::UnknownAgent { agent: agent.to_owned() });
        }
    }

    /// Drives a session that was taken, and gives it back.
    async fn work(&self, queue: &dyn Queue, taken: TakenSession) {
        let (session, agent, attempts) = (taken.claim.session, taken.entry.agent.clone(), taken.attempts);
        let rest = if attempts > self.options.retries.retries {
            self.give_up(session, format!("{attempts} attempts ended together with their workers"))
        } else {
            let options = SessionOptions { claim: Some(taken.claim.clone()), ..SessionOptions::default() };
            let announce = || {
                self.busy().remove(&session);
                self.report(WorkerEvent::Taken { session, agent: agent.clone(), attempts });
            };
            match self.runtime.drive_announced(session, options, announce).await {
                Ok(rest) => {
                    if let (Rest::Until { at }, Some(due)) = (&rest, taken.entry.due)
                        && *at <= due
                    {
                        // By the clock of the store that time has come, by this one it has not.
                        tokio::time::sleep(self.options.poll).await;
                    }
                    let queued = self.queue_rest(&rest);
                    self.report(WorkerEvent::Rested { session, rest });
                    queued
                }
                Err(error) => self.after_error(session, &agent, attempts, &error),
            }
        };
        self.release(queue, taken, rest).await;
    }

    fn queue_rest(&self, rest: &Rest) -> QueueRest {
        match rest {
            Rest::Idle | Rest::Finished | Rest::Failed { .. } => QueueRest::Done,
            Rest::Until { at } => QueueRest::Wait { until: Some(*at) },
            Rest::Signal { .. } | Rest::Person { .. } => QueueRest::Wait { until: None },
            Rest::Stopped => QueueRest::Ready,
        }
    }

    /// Returns what happens to a session that an error stopped.
    fn after_error(&self, session: SessionId, agent: &str, attempts: u32, error: &RuntimeError) -> QueueRest {
        let text = error.to_string();
        match error.code() {
            // If another worker has it, the store refuses the release. It has not if only the lease was over for a moment.
            ErrorCode::ClaimLost => QueueRest::Later { after: self.options.poll },
            ErrorCode::Shutdown => QueueRest::Ready,
            // Others of the same name may be known, so the name is not left out.
            ErrorCode::UnknownAgent => {
                self.note_unknown(agent);
                QueueRest::Later { after: UNKNOWN.mul_f64(0.5 + jitter()) }
            }
            ErrorCode::SessionHeld | ErrorCode::WorkspaceHeld | ErrorCode::GuardBusy => {
                let before = self.note_busy(session);
                if before == 0 {
                    self.report(WorkerEvent::Busy { session, error: text });
                }
                QueueRest::Later { after: BUSY.wait(before, None, jitter()) }
            }
            // A person has to look at it.
            ErrorCode::Poisoned => QueueRest::Wait { until: None },
            code if !may_pass(code) || attempts >= self.options.retries.retries => {
                self.give_up(session, text)
            }
            _ => {
                let after = self.options.retries.wait(attempts, None, jitter());
                self.report(WorkerEvent::Retried { session, error: text.clone(), after });
                QueueRest::Retry { after, reason: text }
            }
        }
    }

    fn busy(&self) -> MutexGuard<'_, BTreeMap<SessionId, u32>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts that a session could not be driven, and returns how often that was so before.
    fn note_busy(&self, session: SessionId) -> u32 {
        let mut busy = self.busy();
        // Those that other workers have driven since are not heard of again.
        if busy.len() >= MOST_BUSY {
            busy.clear();
        }
        let count = busy.entry(session).or_default();
        *count = count.saturating_add(1);
        *count - 1
    }

    fn give_up(&self, session: SessionId, reason: String) -> QueueRest {
        self.report(WorkerEvent::GaveUp { session, error: reason.clone() });
        QueueRest::Fail { reason }
    }

    /// Gives a session back. If the store does not answer for long, its claim ends with this process, or before.
    async fn release(&self, queue: &dyn Queue, taken: TakenSession, rest: QueueRest) {
        let session = taken.claim.session;
        for attempt in 0_u32.. {
            match queue.release(taken.clone(), rest.clone()).await {
                Ok(()) => return,
                Err(StoreError::Fenced { .. } | StoreError::NotFound { .. }) => {
                    return self.report(WorkerEvent::Lost { session });
                }
                Err(error) => {
                    self.report(WorkerEvent::QueueFailed { error: error.to_string() });
                    if attempt >= RELEASES && self.runtime.registry.stop.is_cancelled() {
                        return;
                    }
                    tokio::time::sleep(self.options.poll.saturating_mul(1 << attempt.min(RELEASES))).await;
                }
            }
        }
    }

    fn report(&self, event: WorkerEvent) {
        (self.report)(event);
    }
}

debug_fields!(Worker { options });

/// Whether an error may pass by itself. Others need a person, whatever the time.
fn may_pass(code: ErrorCode) -> bool {
    !matches!(
        code,
        ErrorCode::Auth
            | ErrorCode::OutOfCredit
            | ErrorCode::MissingKey
            | ErrorCode::NoModel
            | ErrorCode::Model
            | ErrorCode::AgentFile
            | ErrorCode::Script
            | ErrorCode::ScriptEnded
            | ErrorCode::InvalidRequest
            | ErrorCode::ContextTooLong
            | ErrorCode::UnsupportedMedia
            | ErrorCode::UnsupportedOption
            | ErrorCode::PromptMismatch
            | ErrorCode::JournalInvalid
            | ErrorCode::StoreDamaged
            | ErrorCode::HistoryLost
            | ErrorCode::GuardedSession
            | ErrorCode::WorkspaceGone
            | ErrorCode::WorkspaceRefused
    )
}

/// Returns a random number below 1.
fn jitter() -> f64 {
    let bytes = entropy::bytes().unwrap_or_default();
    f64::from(u16::from_le_bytes([bytes[0], bytes[1]])) / 65_536.0
}
