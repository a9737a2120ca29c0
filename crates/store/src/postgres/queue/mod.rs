//! The third port: the queue.
//!
//! The queue is one table, and a session that a worker holds stays in it, so that its entry is there when the worker ends. A delivery of an item and a release of a
//! session lock the row of the session first: one of them sees what the other did. Workers look at the queue from time to time, and
//! sooner after a hint (`hint`).
//!
//! | module | responsibility |
//! |---|---|
//! | `entries` | entries, keys, wake-ups |
//! | `take` | taking, releasing and recovering sessions |
//! | `list` | pages, counts, limits and schedules |

mod entries;
mod list;
mod take;

use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxItem, QueueEntry};
use backstitch_core::ports::{
    BoxFuture, Queue, QueueCount, QueueLimit, QueuePage, QueueQuery, QueueRest, QueueState, Schedule,
    StoreError, TakeRequest, TakenSession, check_queue_entry, check_queue_word,
};
use backstitch_core::time::Timestamp;

pub(super) use entries::EntryValues;

use super::store::PostgresStore;
use crate::queue_rows::ReleasedRow;

impl Queue for PostgresStore {
    fn enqueue(&self, session: SessionId, entry: QueueEntry) -> BoxFuture<'_, Result<SessionId, StoreError>> {
        self.run_hinting(move |shared| async move {
            check_queue_entry(&entry)?;
            entries::enqueue(&shared, session, entry).await
        })
    }

    fn keyed(&self, key: &str) -> BoxFuture<'_, Result<Option<SessionId>, StoreError>> {
        let key = key.to_owned();
        self.run(move |shared| async move {
            check_queue_word("key", &key)?;
            entries::find_keyed(&shared, &key).await
        })
    }

    fn take(&self, request: TakeRequest) -> BoxFuture<'_, Result<Vec<TakenSession>, StoreError>> {
        self.run(move |shared| async move { take::take(&shared, request).await })
    }

    fn wait_for_hint(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.receive_hint())
    }

    fn has_hints(&self) -> bool {
        self.shared().hints.has_received()
    }

    fn release(&self, taken: TakenSession, rest: QueueRest) -> BoxFuture<'_, Result<(), StoreError>> {
        let row = ReleasedRow::new(rest);
        if row.state == QueueState::Ready && !row.is_done {
            return self.run_hinting(move |shared| async move { take::release(&shared, taken, row).await });
        }
        self.run(move |shared| async move { take::release(&shared, taken, row).await })
    }

    fn deliver(
        &self,
        session: SessionId,
        once: &str,
        item: InboxItem,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let once = once.to_owned();
        self.run_hinting(move |shared| async move {
            check_queue_word("word", &once)?;
            entries::deliver(&shared, session, once, item).await
        })
    }

    fn recover(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.run(|shared| async move { take::recover(&shared).await })
    }

    fn recovery_interval(&self) -> Duration {
        self.shared().server.options.lease / 3
    }

    fn dequeue(&self, session: SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.run(move |shared| async move { entries::dequeue(&shared, session).await })
    }

    fn retry(&self, session: SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.run_hinting(move |shared| async move { entries::retry(&shared, session).await })
    }

    fn next_due(&self, agents: Vec<String>) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        self.run(move |shared| async move { list::next_due(&shared, agents).await })
    }

    fn queued(&self, query: QueueQuery) -> BoxFuture<'_, Result<QueuePage, StoreError>> {
        self.run(move |shared| async move { list::page(&shared, &query).await })
    }

    fn counts(&self) -> BoxFuture<'_, Result<Vec<QueueCount>, StoreError>> {
        self.run(|shared| async move { list::counts(&shared).await })
    }

    fn set_limit(&self, tag: &str, most: Option<u32>) -> BoxFuture<'_, Result<(), StoreError>> {
        let tag = tag.to_owned();
        self.run(move |shared| async move {
            check_queue_word("tag", &tag)?;
            list::set_limit(&shared, &tag, most).await
        })
    }

    fn limits(&self) -> BoxFuture<'_, Result<Vec<QueueLimit>, StoreError>> {
        self.run(|shared| async move { list::limits(&shared).await })
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<(), StoreError>> {
        self.run_hinting(move |shared| async move {
            check_queue_word("schedule", &schedule.name)?;
            list::put_schedule(&shared, schedule).await
        })
    }

    fn remove_schedule(&self, name: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        let name = name.to_owned();
        self.run(move |shared| async move {
            check_queue_word("schedule", &name)?;
            list::remove_schedule(&shared, &name).await
        })
    }

    fn schedules(&self) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        self.run(|shared| async move { list::schedules(&shared).await })
    }

    fn advance_schedule(
        &self,
        name: &str,
        due: Timestamp,
        next: Timestamp,
        session: SessionId,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let name = name.to_owned();
        self.run(move |shared| async move {
            check_queue_word("schedule", &name)?;
            list::advance_schedule(&shared, &name, (due, next), session).await
        })
    }
}
