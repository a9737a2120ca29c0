//! Garbage collection: deletes unreachable objects.
//!
//! The first phase marks everything that must stay, in one read snapshot and without blocking writers. Then,
//! in transactions of limited size, the collection marks objects that were written since then and deletes the
//! rest, each object after those that name it. An interrupted collection leaves a store in which every object
//! is complete; the next one finishes the work.
//!
//! A root that a record names and that retention prunes leaves its two ids behind, so that a later read
//! reports `Pruned`. All other deleted objects were named only by such roots, or not at all.
//!
//! Between capturing files and appending their root, a session in another process may rely on objects that
//! are deleted at that moment. Each collection therefore increments a counter, and an append by a session
//! that was claimed before the latest collection checks that all references of its new trees still exist
//! (`append`).

use std::collections::HashSet;

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::ports::{GcMode, GcReport, Retention, StoreError};
use rusqlite::Connection;

use super::contents::SqliteContents;

use super::erase::{self, OverwriteMode};
use super::error::Failure;
use super::generation;
use super::objects::{self, Presence};
use super::sql::execute;
use super::store::SqliteStore;
use crate::garbage::{DeletedObject, SessionFiles, Sweep};
use crate::reach::Walk;

impl SqliteStore {
    /// Deletes all objects that retention does not keep and that are not reachable, or only reports them, and
    /// returns free space to the disk. Fails on a damaged store, because reachability cannot be determined
    /// there: see [`verify`](Self::verify).
    ///
    /// This blocks. Other processes can write between its transactions, each of which is short.
    pub fn gc(&self, retention: Retention, collect: GcMode) -> Result<GcReport, StoreError> {
        self.collect_without(retention, collect, &HashSet::new())
    }

    /// The same while freed space is overwritten.
    pub(super) fn collect_overwriting(&self, retention: Retention) -> Result<GcReport, StoreError> {
        let writer = self.writer()?;
        writer.alone(|connection| erase::overwrite(connection, OverwriteMode::On))?;
        let collected = self.gc(retention, GcMode::Now);
        writer.alone(|connection| erase::overwrite(connection, OverwriteMode::Off))?;
        collected
    }

    /// The same as if these sessions did not exist.
    pub(super) fn collect_without(
        &self,
        retention: Retention,
        collect: GcMode,
        without: &HashSet<SessionId>,
    ) -> Result<GcReport, StoreError> {
        let (mut sessions, seen) = self.readers.at_once(|connection| {
            let contents = SqliteContents(connection);
            let mut walk = Walk::new(&contents);
            let mut sessions = SessionFiles::without(without.clone());
            sessions.read_on(&contents, &mut walk)?;
            sessions.divide(retention, &mut walk)?;
            Ok((sessions, walk.seen))
        })?;
        crash_point!("gc.marked");
        if collect == GcMode::DryRun {
            return self.readers.at_once(|connection| {
                let contents = SqliteContents(connection);
                let walk = Walk::resume(&contents, seen);
                let sweep = sessions.sweep(&contents, &walk)?;
                Ok(sweep.report())
            });
        }
        let (writer, limit) = (self.writer()?, self.options.transaction_bytes);
        let mut seen = Some(seen);
        let mut sweep: Option<Sweep> = None;
        loop {
            let is_done = writer.transact(|connection| {
                // Records that were written since the first phase may need objects that were about to be
                // deleted.
                let contents = SqliteContents(connection);
                let mut walk = Walk::resume(&contents, seen.take().unwrap_or_default());
                sessions.read_on(&contents, &mut walk)?;
                sessions.divide(retention, &mut walk)?;
                let sweep = match &mut sweep {
                    Some(sweep) => sweep,
                    None => sweep.insert(sessions.sweep(&contents, &walk)?),
                };
                let deleted = sweep.next_objects(&walk.seen, limit);
                delete(connection, &deleted)?;
                crash_point!("gc.swept");
                if !deleted.is_empty() {
                    generation::increment(connection)?;
                }
                seen = Some(walk.seen);
                Ok(sweep.is_done())
            })?;
            if is_done {
                break;
            }
        }
        writer.alone(|connection| return_pages(connection, limit))?;
        Ok(sweep.map(|sweep| sweep.report()).unwrap_or_default())
    }
}

/// Returns free pages to the disk in steps, as far as no reader prevents it.
fn return_pages(connection: &Connection, limit: u64) -> Result<(), Failure> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let page = number("page_size")?.max(1);
    let pages = (i64::try_from(limit).unwrap_or(i64::MAX) / page).max(1);
    let mut free = number("freelist_count")?;
    while free > 0 {
        connection.execute_batch(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let left = number("freelist_count")?;
        if left >= free {
            break;
        }
        free = left;
        if free > 0 {
            // Keeps the log short. Pages that cannot be copied now are copied later.
            let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }
    match connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        // A reader prevents it; the next checkpoint will truncate the log.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(()),
        result => Ok(result?),
    }
}

/// Deletes objects. Those that records name leave marks.
fn delete(connection: &Connection, deleted: &[DeletedObject]) -> Result<(), Failure> {
    deleted.iter().try_for_each(|one| match one.leaves_mark {
        true => objects::leave_mark(connection, one.id, Presence::Pruned),
        false => execute(connection, "DELETE FROM objects WHERE id = ?1", [&one.id.as_bytes()[..]]),
    })
}
