//! Garbage collection: deletes unreachable objects.
//!
//! The first phase marks everything that must stay, without any lock. Then, in transactions of limited size and under a lock that waits for appends with objects, it marks what
//! was written since then and deletes the rest, each object after those that name it. Objects that are younger than an age stay, with everything below them: a program
//! may have captured them and not yet appended. An append by a session that was claimed before content was removed checks that what it names still exists.

use std::collections::HashSet;
use std::time::Duration;

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{GcMode, GcReport, Retention, StoreError};

use super::contents::PostgresContents;
use super::error::Failure;
use super::link::Link;
use super::objects::{self, begin_removing, count_removal, id_in};
use super::schema::get;
use super::server::parameters;
use crate::garbage::{DeletedObject, SessionFiles, Sweep};
use crate::packed::Presence;
use crate::reach::Walk;

/// Age of parts that belong to no object before they are deleted: their writer may not be done.
const PARTS_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// What a collection does.
pub(super) struct Collection<'a> {
    pub(super) retention: Retention,
    pub(super) mode: GcMode,
    /// Sessions that count as removed.
    pub(super) without: &'a HashSet<SessionId>,
    /// Age below which an object stays.
    pub(super) age: Duration,
}

/// Collects garbage.
pub(super) fn collect(link: &Link<'_>, collection: &Collection<'_>) -> Result<GcReport, StoreError> {
    let mut sessions = SessionFiles::without(collection.without.clone());
    // The states of all objects are read once, and later steps look at what is new: appends with objects wait while one of them lasts.
    let contents = PostgresContents::new(link);
    let mut walk = Walk::new(&contents);
    mark(link, &contents, &mut sessions, &mut walk, collection)?;
    if collection.mode == GcMode::DryRun {
        return Ok(sessions.sweep(&contents, &walk)?.report());
    }
    crash_point!("gc.marked");
    let limit = link.server().options.transaction_bytes;
    let mut sweep = None::<Sweep>;
    loop {
        let is_done = link.transact(|| {
            begin_removing(link)?;
            // Records that were written since the first phase may need objects that were about to be deleted.
            mark(link, &contents, &mut sessions, &mut walk, collection)?;
            let sweep = match &mut sweep {
                Some(sweep) => sweep,
                None => sweep.insert(sessions.sweep(&contents, &walk)?),
            };
            let deleted = sweep.next_objects(&walk.seen, limit);
            delete(link, &deleted)?;
            crash_point!("gc.swept");
            if !deleted.is_empty() {
                count_removal(link)?;
            }
            contents.forget(deleted.iter().map(|one| one.id));
            Ok::<_, Failure>(sweep.is_done())
        })?;
        if is_done {
            break;
        }
    }
    delete_stray_parts(link)?;
    Ok(sweep.map(|sweep| sweep.report()).unwrap_or_default())
}

/// Marks everything that stays.
fn mark(
    link: &Link<'_>,
    contents: &PostgresContents<'_>,
    sessions: &mut SessionFiles,
    walk: &mut Walk<'_>,
    collection: &Collection<'_>,
) -> Result<(), Failure> {
    sessions.read_on(contents, walk)?;
    sessions.divide(collection.retention, walk)?;
    young(link, collection.age)?.into_iter().try_for_each(|id| walk.add(id))?;
    Ok(())
}

/// Objects that are younger than an age, or were stored again.
fn young(link: &Link<'_>, age: Duration) -> Result<Vec<ObjectId>, Failure> {
    if age.is_zero() {
        return Ok(Vec::new());
    }
    let sql = "SELECT id FROM {schema}.objects WHERE touched_at > now() - pg_catalog.make_interval(secs => $1) AND encoding IN (0, 1)";
    let rows = link.query(sql, parameters![age.as_secs_f64() => FLOAT8])?;
    rows.iter().map(|row| id_in(get(row, 0)?)).collect()
}

/// Deletes objects. Those that records name leave marks.
fn delete(link: &Link<'_>, deleted: &[DeletedObject]) -> Result<(), Failure> {
    let ids = |leaves_mark: bool| -> Vec<Vec<u8>> {
        let those = deleted.iter().filter(|one| one.leaves_mark == leaves_mark);
        those.map(|one| one.id.as_bytes().to_vec()).collect()
    };
    let (marked, gone) = (ids(true), ids(false));
    if !marked.is_empty() {
        objects::leave_marks(link, &marked, Presence::Pruned)?;
    }
    if !gone.is_empty() {
        objects::delete(link, &gone)?;
    }
    Ok(())
}

/// Deletes parts that belong to no object: their writer was killed, or another one was first.
fn delete_stray_parts(link: &Link<'_>) -> Result<(), Failure> {
    let sql = "DELETE FROM {schema}.object_parts p WHERE p.written_at < now() - pg_catalog.make_interval(secs => $1)
        AND NOT EXISTS (SELECT FROM {schema}.objects o WHERE o.part_set = p.part_set)";
    link.query(sql, parameters![PARTS_AGE.as_secs_f64() => FLOAT8]).map(drop)
}
