//! The one writer of a process, which commits for many at once.
//!
//! All that writes is a piece of work, and pieces queue. Whoever finds nobody writing *leads*: it takes everything that has
//! queued, runs it in one transaction and commits, which is one sync for all. Meanwhile others queue up; when the leader is
//! done, the first of them leads next. So a lone append is written by its own thread at once, and many at once share syncs.
//!
//! There is no thread behind this. The leader blocks its thread while it commits, for about as long as a sync takes; the
//! others wait as futures do. Futures name no runtime. When several sessions write in turns, a leader first lets others run
//! once, so that they can queue even where all tasks share one thread.
//!
//! Work that is refused (a wrong position, a stale fence) has written nothing, and does not disturb the rest. When SQLite
//! itself fails, the transaction is rolled back and each piece is tried alone, so that only those fail that have to.
//!
//! A commit is acknowledged only while the store's paths name the files that it went to (`watch`).
//!
//! A future that is dropped before its work was taken leaves nothing behind; later, the work is done or not, as a whole.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::ports::StoreError;
use rusqlite::Connection;

use super::counters::AtomicCounters;
use super::error::Failure;
use super::options::SqliteOptions;
use super::slot::{Slot, SlotOutcome};
use super::watch::WatchedFiles;

/// Writes, for all of a process that has the store open.
pub(super) struct Writer {
    queue: Mutex<Queue>,
    connection: Mutex<Connection>,
    files: Arc<WatchedFiles>,
    /// How many pages the log had after the last commit that wrote something; zero when there was none since it was read.
    pages: Arc<AtomicU32>,
    checkpoint_pages: u32,
    transaction_bytes: u64,
    counting: AtomicCounters,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<dyn Work>>,
    /// Whether somebody leads, or was told to.
    led: bool,
    /// Who wrote last.
    last: Option<SessionId>,
}

/// A piece of work, whatever it gives.
trait Work: Send {
    /// Does the work inside of a transaction. An error means that the transaction is worth nothing any more.
    fn run(&mut self, connection: &Connection) -> Result<(), Failure>;
    /// Hands over what came of it, once it is durable, or the error that made it worth nothing.
    fn settle(&mut self, committed: Result<(), StoreError>);
    /// Tells whoever waits that it leads; it has to be woken.
    fn lead(&self) -> Option<Waker>;
    /// A number that is only this work's while it exists.
    fn key(&self) -> usize;
    /// About how many bytes it writes.
    fn bytes(&self) -> u64;
}

struct Piece<T, F> {
    run: F,
    bytes: u64,
    outcome: Option<Result<T, StoreError>>,
    slot: Arc<Slot<T>>,
    settled: bool,
}

impl<T, F> Drop for Piece<T, F> {
    /// Should the leader die with the work, whoever waits for it is told.
    fn drop(&mut self) {
        if !self.settled {
            self.slot.settle(Err(StoreError::Backend("the thread that wrote has died".into())));
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
}

/// Whether an error says that the transaction failed, and not that the work was refused.
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
        files: Arc<WatchedFiles>,
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
            connection: Mutex::new(connection),
            files,
            pages,
            checkpoint_pages: options.checkpoint_pages,
            transaction_bytes: options.transaction_bytes,
            counting: AtomicCounters::default(),
        })
    }

    pub(super) fn counting(&self) -> &AtomicCounters {
        &self.counting
    }

    /// Does some work, together with what else there is to do. The work may be run twice, and counts once.
    pub(super) fn submit<T, F>(&self, session: SessionId, run: F) -> SubmitFuture<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        self.submit_bytes(session, 0, run)
    }

    /// The same for work that writes about so many bytes. One transaction does as much work as its limit allows.
    pub(super) fn submit_bytes<T, F>(&self, session: SessionId, bytes: u64, run: F) -> SubmitFuture<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let slot = Arc::new(Slot::new());
        let work = Box::new(Piece { run, bytes, outcome: None, slot: Arc::clone(&slot), settled: false });
        SubmitFuture { writer: self, slot, session, stage: Stage::New(work) }
    }

    /// Works with the connection while nobody else writes in this process. For what is rare and may take long.
    pub(super) fn alone<T>(
        &self,
        run: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let connection = self.connection();
        let result = self.in_place(&connection, || run(&connection));
        self.after_commit(&connection);
        result
    }

    /// Writes something, and acknowledges it only if the files are still those that the store's paths name.
    fn in_place<T>(
        &self,
        connection: &Connection,
        write: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        if let Some(replaced) = self.files.known_replaced() {
            return Err(replaced);
        }
        let result = write();
        match self.files.are_in_place() {
            true => Ok(result?),
            false => Err(self.files.save(connection)),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection. Should a thread have died with it, the next transaction begins with a rollback.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what waits, as much as one transaction holds. The first, which is the leader's own, always fits.
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

    /// Takes what waits and commits it. On the way out somebody else leads, if anybody waits.
    fn lead(&self) {
        let _leading = LeaderGuard(self);
        let mut taken = self.take();
        let connection = self.connection();
        let together = self.in_place(&connection, || {
            transaction(&connection, || taken.iter_mut().try_for_each(|work| work.run(&connection)))
        });
        let several = taken.len() > 1;
        // Whoever waits is told before the log is copied, which may take longer than the commit did.
        match together {
            Err(_) if several => {
                for mut work in taken.drain(..) {
                    let alone =
                        self.in_place(&connection, || transaction(&connection, || work.run(&connection)));
                    work.settle(alone);
                    self.after_commit(&connection);
                }
            }
            Err(error) => {
                if let Some(mut work) = taken.pop() {
                    work.settle(Err(error));
                }
            }
            Ok(()) => {
                taken.drain(..).for_each(|mut work| work.settle(Ok(())));
                self.after_commit(&connection);
            }
        }
    }

    /// Counts a commit, if there was one, and copies the log into the file once it is long enough.
    fn after_commit(&self, connection: &Connection) {
        let pages = self.pages.swap(0, Ordering::Relaxed);
        if pages == 0 {
            return;
        }
        self.counting.commits.fetch_add(1, Ordering::Relaxed);
        if pages >= self.checkpoint_pages && self.files.known_replaced().is_none() {
            self.counting.checkpoints.fetch_add(1, Ordering::Relaxed);
            // Nothing depends on it: what could not be copied now will be copied later.
            let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }

    /// Lets the first that waits lead, or nobody.
    fn hand_over(&self, mut queue: MutexGuard<'_, Queue>) {
        let next = queue.waiting.front().map(|next| next.lead());
        queue.led = next.is_some();
        // Waking runs code of others, and is not for times when a lock is held.
        drop(queue);
        if let Some(Some(waker)) = next {
            waker.wake();
        }
    }
}

/// Runs something in a transaction of its own that nobody else's writes can come between.
pub(super) fn transaction<T>(
    connection: &Connection,
    run: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let execute = |sql: &str| connection.prepare_cached(sql).and_then(|mut sql| sql.execute([]));
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
        // The error says what happened; a rollback that fails as well is tried again before the next transaction.
        let _ = execute("ROLLBACK");
    }
    result
}

/// While this exists, its thread leads.
struct LeaderGuard<'a>(&'a Writer);

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        self.0.hand_over(self.0.queue());
    }
}

/// Work that was handed in, as a future of what comes of it.
pub(super) struct SubmitFuture<'a, T> {
    writer: &'a Writer,
    slot: Arc<Slot<T>>,
    session: SessionId,
    stage: Stage,
}

enum Stage {
    /// Not yet in the queue.
    New(Box<dyn Work>),
    /// In the queue, and to be led by its owner.
    Leading,
    /// In the queue, or taken by a leader.
    Waiting,
    Over,
}

impl<T> SubmitFuture<'_, T> {
    /// Queues the work. Whether its owner leads, and should let others run first.
    fn enter(&mut self, work: Box<dyn Work>) -> (Stage, bool) {
        let mut queue = self.writer.queue();
        queue.waiting.push_back(work);
        let in_turns = queue.last.replace(self.session).is_some_and(|last| last != self.session);
        match std::mem::replace(&mut queue.led, true) {
            true => (Stage::Waiting, false),
            false => (Stage::Leading, in_turns),
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
                    // The outcome is there afterwards, since one's own work was in the queue.
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
