//! The third port: the queue.
//!
//! The queue is one table. A session that a worker holds stays in it, so that its entry is there when the worker ends. Whether
//! the worker lives, the lock of its claim tells (`claims`). All changes are write transactions, which SQLite serialises across
//! processes, so of two workers one takes a session, and an item is delivered before or after a release, never beside it.
//!
//! | module | responsibility |
//! |---|---|
//! | `entries` | entries, keys |
//! | `take` | taking, releasing and recovering sessions |
//! | `list` | pages, counts, limits and schedules |

mod entries;
mod list;
mod take;

use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxItem, QueueEntry};
use backstitch_core::ports::{
    BoxFuture, Queue, QueueCount, QueueLimit, QueuePage, QueueQuery, QueueRest, Schedule, StoreError,
    TakeRequest, TakenSession, check_queue_entry, check_queue_word,
};
use backstitch_core::time::Timestamp;
use rusqlite::Connection;

pub(super) use entries::{check_key, copy, forget, forget_reason, put};

use super::error::Failure;
use super::inbox::Letter;
use super::keys::number_of;
use super::store::SqliteStore;
use crate::queue_rows::ReleasedRow;

/// How often workers look for sessions of others that have ended. Each look reads a few lock files.
const RECOVERY: Duration = Duration::from_secs(2);

impl SqliteStore {
    fn inspect<'a, T: Send + 'a>(
        &'a self,
        read: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move { self.readers.at_once(read) })
    }

    /// Changes the queue in a transaction of its own.
    fn change<'a, T: Send + 'a>(
        &'a self,
        checked: Result<(), StoreError>,
        write: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            checked?;
            self.writer()?.transact(write).map_err(|error| self.explain(error))
        })
    }
}

impl Queue for SqliteStore {
    fn enqueue(&self, session: SessionId, entry: QueueEntry) -> BoxFuture<'_, Result<SessionId, StoreError>> {
        Box::pin(async move {
            check_queue_entry(&entry)?;
            self.write_with(session, 0, move |connection| entries::enqueue(connection, session, &entry)).await
        })
    }

    fn keyed(&self, key: &str) -> BoxFuture<'_, Result<Option<SessionId>, StoreError>> {
        let key = key.to_owned();
        self.inspect(move |connection| entries::keyed(connection, &key))
    }

    fn take(&self, request: TakeRequest) -> BoxFuture<'_, Result<Vec<TakenSession>, StoreError>> {
        Box::pin(async move {
            let take = |connection: &Connection| take::take(&self.locks, connection, &request);
            let held = self.change(Ok(()), take).await?;
            let kept = held.into_iter().map(|(taken, held)| {
                self.locks.keep(&taken.claim, held);
                taken
            });
            Ok(kept.collect())
        })
    }

    fn release(&self, taken: TakenSession, rest: QueueRest) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (session, fence) = (taken.claim.session, taken.claim.fence);
            let row = ReleasedRow::new(rest);
            let release = move |connection: &Connection| take::release(connection, &taken, &row);
            let released = self.write_with(session, 0, release).await;
            if matches!(released, Ok(()) | Err(StoreError::Fenced { .. })) {
                self.locks.let_go(session, fence);
            }
            released
        })
    }

    fn deliver(
        &self,
        session: SessionId,
        once: &str,
        item: InboxItem,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let once = once.to_owned();
        Box::pin(async move {
            check_queue_word("word", &once)?;
            let letter = Letter::new(session, &item)?;
            let deliver = move |connection: &Connection| {
                let number = number_of(connection, &session.to_string())?;
                let number = number.ok_or(StoreError::NotFound { session })?;
                let is_first = entries::note_delivery(connection, number, &once)?;
                if is_first {
                    letter.write(connection)?;
                }
                Ok(is_first)
            };
            self.write_with(session, 0, deliver).await
        })
    }

    fn recover(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            // Most of the time there is nothing to write.
            let found = self.readers.at_once(|connection| take::abandoned(&self.locks, connection))?;
            if found.is_empty() {
                return Ok(0);
            }
            self.change(Ok(()), |connection| take::recover(&self.locks, connection)).await
        })
    }

    fn recovery_interval(&self) -> Duration {
        RECOVERY
    }

    fn dequeue(&self, session: SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.write_with(session, 0, move |connection| entries::dequeue(connection, session)))
    }

    fn retry(&self, session: SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.write_with(session, 0, move |connection| entries::retry(connection, session)))
    }

    fn next_due(&self, agents: Vec<String>) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        self.inspect(move |connection| list::next_due(connection, &agents))
    }

    fn queued(&self, query: QueueQuery) -> BoxFuture<'_, Result<QueuePage, StoreError>> {
        self.inspect(move |connection| list::page(connection, &query))
    }

    fn counts(&self) -> BoxFuture<'_, Result<Vec<QueueCount>, StoreError>> {
        self.inspect(list::counts)
    }

    fn set_limit(&self, tag: &str, most: Option<u32>) -> BoxFuture<'_, Result<(), StoreError>> {
        let (checked, tag) = (check_queue_word("tag", tag), tag.to_owned());
        self.change(checked, move |connection| list::set_limit(connection, &tag, most))
    }

    fn limits(&self) -> BoxFuture<'_, Result<Vec<QueueLimit>, StoreError>> {
        self.inspect(list::limits)
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<(), StoreError>> {
        let checked = check_queue_word("schedule", &schedule.name);
        self.change(checked, move |connection| list::put_schedule(connection, &schedule))
    }

    fn remove_schedule(&self, name: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        let name = name.to_owned();
        self.change(Ok(()), move |connection| list::remove_schedule(connection, &name))
    }

    fn schedules(&self) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        self.inspect(list::schedules)
    }

    fn advance_schedule(
        &self,
        name: &str,
        due: Timestamp,
        next: Timestamp,
        session: SessionId,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let name = name.to_owned();
        self.change(Ok(()), move |connection| list::advance_schedule(connection, &name, (due, next), session))
    }
}
