//! The conformance suite detects stores that break their guarantees.
//!
//! Each [`Fault`] is a mistake that a backend could make. The subject of these tests is the suite: it must
//! name at least the property that the mistake breaks.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxId, InboxItem, Position, Record, SessionSummary};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    BoxFuture, ChangingSessions, ClaimMode, ErasureMode, FenceToken, ForkRemoval, ListedChanges, Owner,
    Redaction, RedactionReport, Removal, RemovalReport, SavedSnapshot, SessionClaim, SessionCursor,
    SessionPage, SessionQuery, Store, StoreError,
};
use backstitch_store::MemoryStore;

use crate::conformance::{PROPERTIES, run_all};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Every writer is accepted as the holder.
    IgnoresFences,
    /// A batch is appended regardless of the expected position.
    IgnoresPositions,
    /// The position is checked first, and the batch is written later.
    ChecksBeforeTheLock,
    /// A batch is written record by record.
    WritesInParts,
    /// Objects are written before the batch is checked, and stay.
    KeepsObjectsOfRefused,
    /// Objects are not stored at all.
    LosesObjects,
    /// A late release frees the session.
    ReleasesForOthers,
    /// Every owner with the holder's name counts as the holder.
    TrustsNames,
    /// Sessions are listed by their ids.
    SortsSessions,
    /// A read returns one record more than its limit.
    ReadsTooMuch,
    /// A session that does not exist is read as an empty one.
    InventsSessions,
    /// Items are taken before the batch is checked, and are gone if it is refused.
    TakesTooEarly,
    /// Items stay in the inbox after they were taken.
    TakesNothing,
    /// Any caller may save a snapshot.
    SavesForAnyone,
    /// The first snapshot is kept, not the latest.
    KeepsTheFirstSnapshot,
    /// A redaction is reported and not done.
    RedactsNothing,
    /// A removal is reported and not done.
    RemovesNothing,
    /// Forks are removed without being asked for.
    RemovesForks,
    /// Summaries are written before the batch is checked, and stay.
    KeepsSummariesOfRefused,
    /// A batch without a summary leaves the one before it.
    KeepsStaleSummaries,
    /// Any summary is put, whatever position it describes.
    PutsAnySummary,
    /// Changed paths are put, whatever position they describe.
    PutsAnyChanges,
    /// Calls whose paths are not listed count as calls that changed nothing.
    ForgetsUnlistedCalls,
    /// A page is cut before its sessions are selected by status.
    SelectsAfterTheLimit,
    /// Claims and inboxes are not joined.
    JoinsNothing,
    /// A cursor counts the sessions before it.
    CountsAsCursor,
}

struct Broken {
    fault: Fault,
    inner: MemoryStore,
    /// Latest claim to each session.
    claims: Mutex<Vec<SessionClaim>>,
    objects: Mutex<Vec<Object>>,
    summaries: Mutex<HashMap<SessionId, SessionSummary>>,
}

impl Broken {
    fn new(fault: Fault) -> Self {
        let (claims, objects, summaries) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { fault, inner: MemoryStore::new(), claims, objects, summaries }
    }

    fn latest(&self, session: SessionId) -> Option<SessionClaim> {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.iter().rev().find(|held| held.session == session).cloned()
    }

    fn kept(&self, id: ObjectId) -> Option<Object> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.iter().find(|object| object.id() == id).cloned()
    }

    fn summaries(&self) -> MutexGuard<'_, HashMap<SessionId, SessionSummary>> {
        self.summaries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn append_faultily(
        &self,
        session: SessionId,
        expected: Position,
        mut fence: FenceToken,
        batch: Batch,
    ) -> Result<Position, StoreError> {
        let head = self.inner.head(session).await.unwrap_or(Position::START);
        match self.fault {
            Fault::IgnoresFences => fence = self.latest(session).map_or(fence, |held| held.fence),
            Fault::IgnoresPositions => return self.inner.append(session, head, fence, batch).await,
            Fault::ChecksBeforeTheLock if head == expected => {
                std::thread::sleep(std::time::Duration::from_micros(200));
                let now = self.inner.head(session).await.unwrap_or(Position::START);
                return self.inner.append(session, now, fence, batch).await;
            }
            Fault::WritesInParts if head == expected => {
                let mut next = expected;
                for (index, body) in batch.bodies().iter().enumerate() {
                    let mut part = backstitch_testkit::sample::notes::<String>([]).with(body.clone());
                    for object in batch.objects().iter().filter(|_| index == 0) {
                        part.add_object(object.clone());
                    }
                    next = self.inner.append(session, next, fence, part).await?;
                    std::thread::yield_now();
                }
                return Ok(next);
            }
            Fault::KeepsObjectsOfRefused => {
                let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
                objects.extend(batch.objects().iter().cloned());
            }
            Fault::KeepsSummariesOfRefused | Fault::KeepsStaleSummaries => {
                if let Some(summary) = batch.summary(session, expected) {
                    self.summaries().insert(session, summary.clone());
                }
            }
            Fault::TakesNothing => {
                let waiting = self.inner.inbox(session).await?;
                let position = self.inner.append(session, expected, fence, batch.clone()).await?;
                for (id, item) in waiting {
                    if batch.taken().contains(&id) {
                        self.inner.send(session, item).await?;
                    }
                }
                return Ok(position);
            }
            Fault::TakesTooEarly => {
                if let (Some(held), false) = (self.latest(session), batch.taken().is_empty()) {
                    let mut early = backstitch_testkit::sample::notes(["took something"]);
                    for item in batch.taken() {
                        early.take(*item);
                    }
                    self.inner.append(session, head, held.fence, early).await?;
                }
            }
            _ => {}
        }
        self.inner.append(session, expected, fence, batch).await
    }
}

impl Store for Broken {
    fn claim(
        &self,
        session: SessionId,
        owner: Owner,
        mut mode: ClaimMode,
    ) -> BoxFuture<'_, Result<SessionClaim, StoreError>> {
        Box::pin(async move {
            if self.fault == Fault::TrustsNames && self.inner.holder(session).await?.as_ref() == Some(&owner)
            {
                mode = ClaimMode::TakeOver;
            }
            let held = self.inner.claim(session, owner, mode).await?;
            self.claims.lock().unwrap_or_else(PoisonError::into_inner).push(held.clone());
            Ok(held)
        })
    }

    fn release(&self, held: SessionClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        match (self.fault, self.latest(held.session)) {
            (Fault::ReleasesForOthers, Some(latest)) => self.inner.release(latest),
            _ => self.inner.release(held),
        }
    }

    fn holder(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Owner>, StoreError>> {
        self.inner.holder(session)
    }

    fn is_current(&self, session: SessionId, fence: FenceToken) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.is_current(session, fence)
    }

    fn append(
        &self,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
    ) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(self.append_faultily(session, expected, fence, batch))
    }

    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.inner.head(session)
    }

    fn read(
        &self,
        session: SessionId,
        from: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            let limit = limit.saturating_add(usize::from(self.fault == Fault::ReadsTooMuch));
            match self.inner.read(session, from, limit).await {
                Err(StoreError::NotFound { .. }) if self.fault == Fault::InventsSessions => Ok(Vec::new()),
                found => found,
            }
        })
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let mut sessions = self.inner.sessions().await?;
            if self.fault == Fault::SortsSessions {
                sessions.sort();
            }
            Ok(sessions)
        })
    }

    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, StoreError>> {
        Box::pin(async move {
            let kept = self.kept(id);
            match self.fault {
                Fault::LosesObjects => Ok(None),
                _ if kept.is_some() => Ok(kept),
                _ => self.inner.object(id).await,
            }
        })
    }

    fn send(&self, session: SessionId, item: InboxItem) -> BoxFuture<'_, Result<InboxId, StoreError>> {
        self.inner.send(session, item)
    }

    fn inbox(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<(InboxId, InboxItem)>, StoreError>> {
        self.inner.inbox(session)
    }

    fn save_snapshot(
        &self,
        session: SessionId,
        mut fence: FenceToken,
        position: Position,
        bytes: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            match self.fault {
                Fault::SavesForAnyone => fence = self.latest(session).map_or(fence, |held| held.fence),
                Fault::KeepsTheFirstSnapshot if self.inner.snapshot(session).await?.is_some() => {
                    return Ok(());
                }
                _ => {}
            }
            self.inner.save_snapshot(session, fence, position, bytes).await
        })
    }

    fn snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SavedSnapshot>, StoreError>> {
        self.inner.snapshot(session)
    }

    fn redact(&self, mut redaction: Redaction) -> BoxFuture<'_, Result<RedactionReport, StoreError>> {
        if self.fault == Fault::RedactsNothing {
            redaction.mode = ErasureMode::DryRun;
        }
        self.inner.redact(redaction)
    }

    fn remove(&self, mut removal: Removal) -> BoxFuture<'_, Result<RemovalReport, StoreError>> {
        match self.fault {
            Fault::RemovesNothing => removal.mode = ErasureMode::DryRun,
            Fault::RemovesForks => removal.forks = ForkRemoval::Include,
            _ => {}
        }
        self.inner.remove(removal)
    }

    fn query(&self, mut query: SessionQuery) -> BoxFuture<'_, Result<SessionPage, StoreError>> {
        Box::pin(async move {
            match self.fault {
                Fault::SelectsAfterTheLimit => {
                    let statuses = std::mem::take(&mut query.statuses);
                    let mut page = self.inner.query(query).await?;
                    page.sessions.retain(|one| statuses.is_empty() || statuses.contains(&one.status()));
                    Ok(page)
                }
                Fault::JoinsNothing => {
                    let mut page = self.inner.query(query).await?;
                    for one in &mut page.sessions {
                        (one.holder, one.has_waiting) = (None, false);
                    }
                    Ok(page)
                }
                Fault::CountsAsCursor => {
                    let unknown = |_| StoreError::UnknownCursor { cursor: "?".to_owned() };
                    let cursor = query.after.take().map(|cursor| cursor.as_str().parse::<usize>());
                    let (skipped, limit) = (cursor.transpose().map_err(unknown)?.unwrap_or(0), query.limit);
                    query.limit = usize::MAX;
                    let mut page = self.inner.query(query).await?;
                    let end = (skipped + limit).min(page.sessions.len());
                    let more = end < page.sessions.len();
                    page.next = more.then(|| SessionCursor::new(end.to_string()));
                    page.sessions = page.sessions[skipped.min(end)..end].to_vec();
                    Ok(page)
                }
                _ => self.inner.query(query).await,
            }
        })
    }

    fn count(&self, query: SessionQuery) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.count(query)
    }

    fn summary(&self, session: SessionId) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>> {
        Box::pin(async move {
            let found = self.inner.summary(session).await?;
            Ok(self.summaries().get(&session).cloned().or(found))
        })
    }

    fn unindexed(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.inner.unindexed(limit)
    }

    fn put_summary(&self, summary: SessionSummary) -> BoxFuture<'_, Result<bool, StoreError>> {
        if self.fault == Fault::PutsAnySummary {
            self.summaries().insert(summary.session, summary.clone());
        }
        self.inner.put_summary(summary)
    }

    fn changes(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Vec<ListedChanges>>, StoreError>> {
        self.inner.changes(session)
    }

    fn put_changes(
        &self,
        session: SessionId,
        head: Position,
        listed: Vec<ListedChanges>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let head = match self.fault {
                Fault::PutsAnyChanges => self.inner.head(session).await?,
                _ => head,
            };
            self.inner.put_changes(session, head, listed).await
        })
    }

    fn changing_sessions(&self, path: &str) -> BoxFuture<'_, Result<ChangingSessions, StoreError>> {
        let path = path.to_owned();
        Box::pin(async move {
            let mut found = self.inner.changing_sessions(&path).await?;
            if self.fault == Fault::ForgetsUnlistedCalls {
                found.possible.clear();
            }
            Ok(found)
        })
    }
}

fn assert_found(fault: Fault, property: &str) {
    let (_, check) = PROPERTIES.iter().find(|(name, _)| *name == property).expect("there is such a property");
    let store = Broken::new(fault);
    let found = catch_unwind(AssertUnwindSafe(|| check(&store)));
    assert!(found.is_err(), "{property} does not find a store that has the fault {fault:?}");
}

#[test]
fn mistakes_are_found() {
    let faults = [
        (Fault::IgnoresFences, "a_claim_that_was_taken_over_writes_nothing"),
        (Fault::IgnoresFences, "takeovers_at_once_leave_one_holder"),
        (Fault::IgnoresPositions, "an_unexpected_position_is_a_conflict_that_names_the_right_one"),
        (Fault::IgnoresPositions, "of_two_writers_exactly_one_wins"),
        (Fault::ChecksBeforeTheLock, "of_two_writers_exactly_one_wins"),
        (Fault::WritesInParts, "a_batch_with_a_missing_object_leaves_nothing"),
        (Fault::WritesInParts, "readers_see_whole_batches"),
        (Fault::KeepsObjectsOfRefused, "objects_of_refused_batches_are_not_stored"),
        (Fault::LosesObjects, "readers_find_the_objects_of_what_they_read"),
        (Fault::ReleasesForOthers, "a_release_that_comes_too_late_changes_nothing"),
        (Fault::TrustsNames, "a_held_session_is_refused_with_the_name_of_its_holder"),
        (Fault::SortsSessions, "sessions_are_listed_in_the_order_of_their_creation"),
        (Fault::ReadsTooMuch, "ranges_are_cut_at_both_ends"),
        (Fault::TakesTooEarly, "a_refused_batch_takes_nothing"),
        (Fault::TakesNothing, "an_item_is_taken_with_the_batch_and_once"),
        (Fault::SavesForAnyone, "a_snapshot_is_saved_by_the_holder_only"),
        (Fault::KeepsTheFirstSnapshot, "a_snapshot_replaces_the_one_before"),
        (Fault::InventsSessions, "an_unknown_session_is_not_found"),
        (Fault::RedactsNothing, "a_redacted_value_is_gone_from_records"),
        (Fault::RedactsNothing, "changed_paths_are_redacted"),
        (Fault::RedactsNothing, "a_held_session_is_not_redacted"),
        (Fault::RemovesNothing, "a_removed_session_is_gone"),
        (Fault::RemovesForks, "a_session_with_forks_is_removed_only_with_them"),
        (Fault::KeepsSummariesOfRefused, "a_refused_batch_leaves_the_summary"),
        (Fault::KeepsStaleSummaries, "a_batch_without_a_summary_leaves_its_session_unindexed"),
        (Fault::PutsAnySummary, "only_a_summary_of_the_head_is_put"),
        (Fault::PutsAnyChanges, "changed_paths_are_put_at_the_head_only"),
        (Fault::ForgetsUnlistedCalls, "sessions_are_found_by_the_paths_that_they_changed"),
        (Fault::SelectsAfterTheLimit, "pages_are_full_whatever_is_selected"),
        (Fault::JoinsNothing, "statuses_follow_from_claims_and_inboxes"),
        (Fault::CountsAsCursor, "a_cursor_stays_valid_while_sessions_are_added"),
    ];
    for (fault, property) in faults {
        assert_found(fault, property);
    }
}

#[test]
fn running_all_properties_names_the_broken_ones() {
    run_all(MemoryStore::new);
    let found = catch_unwind(|| run_all(|| Broken::new(Fault::SortsSessions))).expect_err("one is broken");
    let message = found.downcast_ref::<String>().expect("the panic says what is broken");
    assert!(message.contains("sessions_are_listed_in_the_order_of_their_creation"), "{message}");
    assert!(!message.contains("positions_are_dense"), "{message}");
}
