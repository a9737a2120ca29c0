//! The single writer of a process, with group commit.
//!
//! Every write is a piece of work in a queue. A caller that finds no leader *leads*: it takes all queued
//! work, runs it in one transaction and commits, with one sync for all. Concurrent callers queue; when the
//! leader is done, the first of them leads next. So a lone append is written by its own thread at once, and
//! concurrent appends share syncs.
//!
//! There is no background thread. The leader blocks its thread while it commits, for about one sync; the
//! others wait as pending futures. The futures depend on no runtime. When several sessions write in turns, a
//! leader yields once before it starts, so that others can queue even if all tasks share one thread.
//!
//! Refused work (a wrong position, a stale fence) has written nothing and does not affect the rest. When
//! SQLite itself fails, the transaction is rolled back and each piece is retried alone, so that only the
//! failing ones fail.
//!
//! Work that need not survive the end of the machine waits for no sync of its own, unless it shares a commit with other work. Its
//! pages lie in the log, and the sync of the next commit includes them.
//!
//! A commit is acknowledged only while the store's paths name the files that it went to (`watch`).
//!
//! A future that is dropped before a leader took its work leaves nothing behind. If it is dropped later, the
//! work is done completely or not at all.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::ports::StoreError;
use rusqlite::Connection;

use super::counters::Counters;
use super::error::Failure;
use super::options::SqliteOptions;
use super::slot::{Slot, SlotOutcome};
use super::watch::WatchedFiles;

/// Serialises all writes of one open store in this process.
pub(super) struct Writer {
    queue: Mutex<Queue>,
    connection: Arc<Mutex<Connection>>,
    /// `None` for a store in memory.
    files: Option<Arc<WatchedFiles>>,
    /// Length of the log, in pages, after the last commit that wrote something. Reading it resets it to zero.
    pages: Arc<AtomicU32>,
    /// Whether commits of the connection wait for no sync at present.
    is_relaxed: AtomicBool,
    checkpoint_pages: u32,
    transaction_bytes: u64,
    counters: Mutex<Counters>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<dyn Work>>,
    /// True while there is a leader or a queued caller was made leader.
    led: bool,
    /// Session of the latest submitted work.
    last: Option<SessionId>,
}

/// When a commit is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitSync {
    /// Before it is acknowledged.
    Now,
    /// Together with the next commit that is synced.
    WithNext,
}

/// A piece of work, with the type of its result erased.
trait Work: Send {
    /// Runs the work inside a transaction. An error means that the transaction must be rolled back.
    fn run(&mut self, connection: &Connection) -> Result<(), Failure>;
    /// Delivers the outcome after the commit, or the error of the failed transaction.
    fn settle(&mut self, committed: Result<(), StoreError>);
    /// Makes the submitter the leader. The caller must wake the returned waker.
    fn lead(&self) -> Option<Waker>;
    /// Identifies the work as long as it exists.
    fn key(&self) -> usize;
    /// Estimated number of bytes that it writes.
    fn bytes(&self) -> u64;
    /// When its commit is synced.
    fn sync(&self) -> CommitSync;
}

struct Piece<T, F> {
    run: F,
    bytes: u64,
    sync: CommitSync,
    outcome: Option<Result<T, StoreError>>,
    slot: Arc<Slot<T>>,
    settled: bool,
}

impl<T, F> Drop for Piece<T, F> {
    /// Reports an error to the submitter if the leader's thread dies with the work.
    fn drop(&mut self) {
        if !self.settled {
            self.slot.settle(Err(StoreError::Backend("the writing thread has died".into())));
        }
    }
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, Failure> + Send> Work for Piece<T, F> {
    fn run(&mut self, connection: &Connection) -> Result<(), Failure> {
        match (self.run)(connection) {
            Err(failure) if is_fatal(&failure.0) => Err(failure),
            outcome => {
                self.outcome = Some(outcome.map_err(StoreError::from));
                Ok(())
            }
        }
    }

    fn settle(&mut self, committed: Result<(), StoreError>) {
        let outcome = match (committed, self.outcome.take()) {
            (Ok(()), Some(outcome)) => outcome,
            (Err(error), _) => Err(error),
            (Ok(()), None) => return,
        };
        self.settled = true;
        self.slot.settle(outcome);
    }

    fn lead(&self) -> Option<Waker> {
        self.slot.lead()
    }

    fn key(&self) -> usize {
        Arc::as_ptr(&self.slot).addr()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn sync(&self) -> CommitSync {
        self.sync
    }
}

/// Returns whether an error means that the transaction failed, as opposed to refused work.
fn is_fatal(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Backend(_)
            | StoreError::Full { .. }
            | StoreError::ReadOnly { .. }
            | StoreError::Busy { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Replaced { .. }
    )
}

impl Writer {
    pub(super) fn new(
        mut connection: Connection,
        files: Option<Arc<WatchedFiles>>,
        options: &SqliteOptions,
    ) -> Result<Self, Failure> {
        let pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&pages);
        let hook = move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
            seen.store(u32::try_from(pages).unwrap_or(1).max(1), Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(hook))?;
        Ok(Self {
            queue: Mutex::default(),
            connection: Arc::new(Mutex::new(connection)),
            files,
            pages,
            is_relaxed: AtomicBool::new(false),
            checkpoint_pages: options.checkpoint_pages,
            transaction_bytes: options.transaction_bytes,
            counters: Mutex::default(),
        })
    }

    /// The connection, for a store whose readers have no other.
    pub(super) fn shared_connection(&self) -> Arc<Mutex<Connection>> {
        Arc::clone(&self.connection)
    }

    pub(super) fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits work that writes about `bytes` bytes to the next group commit, which takes as much work as its limit
    /// allows. The work may run twice, but only one run is committed.
    pub(super) fn submit<T, F>(
        &self,
        session: SessionId,
        bytes: u64,
        sync: CommitSync,
        run: F,
    ) -> SubmitFuture<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let slot = Arc::new(Slot::new());
        let work =
            Box::new(Piece { run, bytes, sync, outcome: None, slot: Arc::clone(&slot), settled: false });
        SubmitFuture { writer: self, slot, session, stage: Stage::New(work) }
    }

    /// Runs a rare and possibly long operation on the connection, with no other writer in this process.
    pub(super) fn alone<T>(
        &self,
        run: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let connection = self.connection();
        let result = self.in_place(&connection, CommitSync::Now, || run(&connection));
        self.after_commit(&connection, CommitSync::Now);
        result
    }

    /// The same in one transaction.
    pub(super) fn transact<T>(
        &self,
        run: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.alone(|connection| transaction(connection, || run(connection)))
    }

    /// Runs a write, and acknowledges it only if the store's paths still name the open files.
    fn in_place<T>(
        &self,
        connection: &Connection,
        sync: CommitSync,
        write: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.set_sync(connection, sync)?;
        let Some(files) = &self.files else { return Ok(write()?) };
        if let Some(replaced) = files.known_replaced() {
            return Err(replaced);
        }
        let result = write();
        if files.are_in_place() { Ok(result?) } else { Err(files.save(connection)) }
    }

    /// Sets whether the next commit waits for a sync. A commit that has to wait for one is not made if that cannot be set.
    fn set_sync(&self, connection: &Connection, sync: CommitSync) -> Result<(), Failure> {
        let is_relaxed = sync == CommitSync::WithNext;
        if self.is_relaxed.load(Ordering::Relaxed) == is_relaxed {
            return Ok(());
        }
        if !connection.is_autocommit() {
            super::sql::execute(connection, "ROLLBACK", [])?;
        }
        connection.pragma_update(None, "synchronous", if is_relaxed { "NORMAL" } else { "FULL" })?;
        self.is_relaxed.store(is_relaxed, Ordering::Relaxed);
        Ok(())
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the connection. If a thread died while it held the lock, the next transaction starts with a
    /// rollback.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes queued work up to the size limit of a transaction. The first piece, which is the leader's own,
    /// always fits.
    fn take(&self) -> Vec<Box<dyn Work>> {
        let mut queue = self.queue();
        let mut bytes = 0_u64;
        let fitting = queue.waiting.iter().take_while(|work| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(work.bytes().max(1));
            is_first || bytes <= self.transaction_bytes
        });
        let count = fitting.count();
        queue.waiting.drain(..count).collect()
    }

    /// Takes queued work and commits it, then passes the lead to the next waiting caller.
    fn lead(&self) {
        let _leading = LeaderGuard(self);
        let mut taken = self.take();
        let sync = match taken.iter().any(|work| work.sync() == CommitSync::Now) {
            true => CommitSync::Now,
            false => CommitSync::WithNext,
        };
        let connection = self.connection();
        let together = self.in_place(&connection, sync, || {
            transaction(&connection, || taken.iter_mut().try_for_each(|work| work.run(&connection)))
        });
        let several = taken.len() > 1;
        // Callers are notified before the checkpoint, which may take longer than the commit.
        match together {
            Err(_) if several => {
                for mut work in taken.drain(..) {
                    let sync = work.sync();
                    let alone = self
                        .in_place(&connection, sync, || transaction(&connection, || work.run(&connection)));
                    work.settle(alone);
                    self.after_commit(&connection, sync);
                }
            }
            Err(error) => {
                if let Some(mut work) = taken.pop() {
                    work.settle(Err(error));
                }
            }
            Ok(()) => {
                taken.drain(..).for_each(|mut work| work.settle(Ok(())));
                self.after_commit(&connection, sync);
            }
        }
    }

    /// Counts a commit, if there was one and it was synced, and checkpoints the log once it is long enough.
    fn after_commit(&self, connection: &Connection, sync: CommitSync) {
        let pages = self.pages.swap(0, Ordering::Relaxed);
        if pages == 0 {
            return;
        }
        self.counters().commits += u64::from(sync == CommitSync::Now);
        let is_replaced = self.files.as_ref().is_some_and(|files| files.known_replaced().is_some());
        if pages >= self.checkpoint_pages && !is_replaced {
            self.counters().checkpoints += 1;
            // A failure is harmless: the pages are copied later.
            let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }

    /// Makes the first waiting caller the leader, if there is one.
    fn hand_over(&self, mut queue: MutexGuard<'_, Queue>) {
        let next = queue.waiting.front().map(|next| next.lead());
        queue.led = next.is_some();
        // Waking runs foreign code, so the lock is released first.
        drop(queue);
        if let Some(Some(waker)) = next {
            waker.wake();
        }
    }
}

/// Runs a closure in an immediate transaction, with no writes of other processes in between.
pub(super) fn transaction<T, E: From<Failure>>(
    connection: &Connection,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let execute = |sql: &str| super::sql::execute(connection, sql, []);
    if !connection.is_autocommit() {
        execute("ROLLBACK")?;
    }
    execute("BEGIN IMMEDIATE")?;
    let result = run().and_then(|value| {
        crash_point!("store.before_commit");
        execute("COMMIT")?;
        crash_point!("store.after_commit");
        Ok(value)
    });
    if result.is_err() && !connection.is_autocommit() {
        // The first error is the one to report; a failed rollback is retried before the next transaction.
        let _ = execute("ROLLBACK");
    }
    result
}

/// Marks its thread as the leader, and passes the lead on when dropped.
struct LeaderGuard<'a>(&'a Writer);

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        self.0.hand_over(self.0.queue());
    }
}

/// Future of the outcome of submitted work.
pub(super) struct SubmitFuture<'a, T> {
    writer: &'a Writer,
    slot: Arc<Slot<T>>,
    session: SessionId,
    stage: Stage,
}

enum Stage {
    /// Not yet queued.
    New(Box<dyn Work>),
    /// Queued, and its owner must lead.
    Leading,
    /// Queued, or taken by a leader.
    Waiting,
    Over,
}

impl<T> SubmitFuture<'_, T> {
    /// Queues the work. Returns the next stage, and whether the owner should yield once before it leads.
    fn enter(&mut self, work: Box<dyn Work>) -> (Stage, bool) {
        let mut queue = self.writer.queue();
        queue.waiting.push_back(work);
        let in_turns = queue.last.replace(self.session).is_some_and(|last| last != self.session);
        // A commit to memory has no sync to share.
        let in_turns = in_turns && self.writer.files.is_some();
        if std::mem::replace(&mut queue.led, true) {
            (Stage::Waiting, false)
        } else {
            (Stage::Leading, in_turns)
        }
    }
}

impl<T> Future for SubmitFuture<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.stage, Stage::Over) {
                Stage::New(work) => {
                    let (stage, others_first) = this.enter(work);
                    this.stage = stage;
                    if others_first {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                Stage::Leading => {
                    // The outcome is available afterwards, since the leader's own work was in the queue.
                    this.stage = Stage::Waiting;
                    this.writer.lead();
                }
                Stage::Waiting => match this.slot.poll(context) {
                    Poll::Ready(SlotOutcome::Lead) => this.stage = Stage::Leading,
                    Poll::Ready(SlotOutcome::Done(outcome)) => return Poll::Ready(outcome),
                    Poll::Pending => {
                        this.stage = Stage::Waiting;
                        return Poll::Pending;
                    }
                },
                Stage::Over => return Poll::Pending,
            }
        }
    }
}

impl<T> Drop for SubmitFuture<'_, T> {
    fn drop(&mut self) {
        let leading = match self.stage {
            Stage::New(_) | Stage::Over => return,
            Stage::Leading => true,
            Stage::Waiting => false,
        };
        let mut queue = self.writer.queue();
        let leading = leading || self.slot.is_leading();
        let key = Arc::as_ptr(&self.slot).addr();
        queue.waiting.retain(|work| work.key() != key);
        if leading {
            self.writer.hand_over(queue);
        }
    }
}
