//! The suite that every store passes.
//!
//! Each property is a function that takes an empty store, and panics if the store breaks it. The tests of a
//! store call `store_conformance!(make)`, where `make` creates such a store. That generates one test for each
//! property, so that the test runner names a failing one. [`run_all`] does the same without a test runner.
//!
//! Properties of concurrent use have real threads: a store has to keep its guarantees in any order of
//! execution.

/// Asserts that an operation fails with such an error.
macro_rules! assert_fails {
    ($done:expr, $error:pat $(if $guard:expr)?) => {
        match $done {
            Err($error) $(if $guard)? => {}
            other => panic!("{}: {other:?}", stringify!($done)),
        }
    };
}

pub(crate) mod admin;
mod append;
mod changes;
mod claim;
mod concurrent;
mod inbox;
mod index;
mod object;
mod query;
pub(crate) mod queue;
mod read;
mod redact;
mod remove;
mod snapshot;

use std::panic::{AssertUnwindSafe, catch_unwind};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Origin, Position, Record, RecordBody, SessionCreated};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{ClaimMode, FenceToken, Owner, SessionClaim, Store, StoreError};
use backstitch_testkit::{block_on, sample};

pub(crate) use append::*;
pub(crate) use changes::*;
pub(crate) use claim::*;
pub(crate) use concurrent::*;
pub(crate) use inbox::*;
pub(crate) use index::*;
pub(crate) use object::*;
pub(crate) use query::*;
pub(crate) use read::*;
pub(crate) use redact::*;
pub(crate) use remove::*;
pub(crate) use snapshot::*;

/// Calls a macro with the names of all properties, after the other arguments.
macro_rules! store_properties {
    ($macro:path, $($given:tt)*) => {
        $macro! { $($given)*
            every_kind_of_record_comes_back
            positions_are_dense
            an_empty_batch_is_refused
            a_bad_beginning_leaves_nothing
            a_batch_with_a_missing_object_leaves_nothing
            an_unexpected_position_is_a_conflict_that_names_the_right_one
            a_thousand_small_batches_stay_in_order
            sessions_do_not_interfere
            a_journal_folds_to_what_was_appended
            a_session_is_written_by_its_holder_only
            a_held_session_is_refused_with_the_name_of_its_holder
            a_claim_that_was_taken_over_writes_nothing
            a_claim_that_was_released_writes_nothing
            fences_grow_over_claim_and_release
            a_release_that_comes_too_late_changes_nothing
            a_stale_fence_counts_before_a_wrong_position
            a_claim_is_current_until_it_is_replaced_or_released
            a_claim_creates_no_session
            ranges_are_cut_at_both_ends
            an_unknown_session_is_not_found
            notes_are_found_among_other_records
            sessions_are_listed_in_the_order_of_their_creation
            objects_are_read_as_they_were_stored
            an_object_is_stored_once
            objects_are_shared_between_sessions
            objects_of_refused_batches_are_not_stored
            large_contents_come_back
            items_wait_in_the_order_in_which_they_were_sent
            anybody_may_send_to_a_session_that_exists
            an_item_is_taken_with_the_batch_and_once
            a_batch_that_takes_what_does_not_wait_leaves_nothing
            a_refused_batch_takes_nothing
            items_that_would_not_come_back_are_refused
            a_snapshot_replaces_the_one_before
            a_snapshot_is_saved_by_the_holder_only
            a_snapshot_stands_no_later_than_the_head
            a_redacted_value_is_gone_from_records
            changed_paths_are_redacted
            large_content_is_redacted_by_a_copy
            files_are_redacted_and_names_are_reported
            a_redaction_concerns_the_whole_family
            sessions_that_share_objects_are_listed
            a_held_session_is_not_redacted
            a_dry_run_of_a_redaction_changes_nothing
            a_second_redaction_finds_nothing
            snapshots_are_deleted_and_inbox_items_redacted
            a_redacted_session_continues
            an_unknown_session_is_not_redacted
            a_removed_session_is_gone
            a_session_with_forks_is_removed_only_with_them
            sub_agents_are_removed_with_their_session
            a_held_session_is_not_removed
            a_removed_session_can_be_created_again
            a_dry_run_of_a_removal_changes_nothing
            an_unknown_session_is_not_removed
            a_summary_is_stored_with_its_batch
            a_batch_without_a_summary_leaves_its_session_unindexed
            a_refused_batch_leaves_the_summary
            a_summary_of_another_head_is_ignored
            only_a_summary_of_the_head_is_put
            summaries_come_back_as_they_were_written
            unindexed_sessions_are_listed_in_order
            readers_see_the_summary_of_the_head
            changed_paths_are_listed_with_the_end_of_their_call
            a_refused_batch_lists_no_paths
            changed_paths_are_put_at_the_head_only
            sessions_are_found_by_the_paths_that_they_changed
            changed_paths_are_removed_and_redacted_with_their_session
            queries_select_by_every_condition
            conditions_of_a_query_are_combined
            statuses_follow_from_claims_and_inboxes
            pages_are_full_whatever_is_selected
            a_cursor_stays_valid_while_sessions_are_added
            a_cursor_of_another_store_is_refused
            of_two_writers_exactly_one_wins
            an_item_is_taken_by_one_of_two
            readers_see_whole_batches
            readers_find_the_objects_of_what_they_read
            of_many_claims_one_is_granted
            takeovers_at_once_leave_one_holder
            sessions_are_written_side_by_side
        }
    };
}

macro_rules! list_properties {
    ($($property:ident)*) => {
        /// All properties, by name.
        pub(crate) const PROPERTIES: &[(&str, fn(&dyn Store))] = &[$((stringify!($property), $property)),*];
    };
}

store_properties!(list_properties,);

/// A store, or a value that owns a store and everything that it depends on, such as its directory.
pub(crate) trait HasStore {
    /// The store.
    fn store(&self) -> &dyn Store;
}

impl<S: Store> HasStore for S {
    fn store(&self) -> &dyn Store {
        self
    }
}

/// Generates a test for each property of a store. Its argument is a function that creates an empty store, or
/// a value with such a store ([`HasStore`]). After `optional`, the function returns `None` where there can be no such store.
macro_rules! store_conformance {
    (optional $make:expr) => {
        $crate::conformance::store_properties! { $crate::conformance::store_tests, (optional $make) }
    };
    ($make:expr) => {
        $crate::conformance::store_properties! { $crate::conformance::store_tests, ($make) }
    };
}

macro_rules! store_tests {
    ((optional $make:expr) $($property:ident)*) => {$(
        #[test]
        fn $property() {
            let Some(made) = $make() else { return };
            $crate::conformance::$property($crate::conformance::HasStore::store(&made));
        }
    )*};
    (($make:expr) $($property:ident)*) => {$(
        #[test]
        fn $property() {
            let made = $make();
            $crate::conformance::$property($crate::conformance::HasStore::store(&made));
        }
    )*};
}

pub(crate) use {store_conformance, store_properties, store_tests};

/// Checks all properties, each with a store of its own, and then panics with the names of those that do not
/// hold.
pub(crate) fn run_all<S: Store>(make: impl Fn() -> S) {
    let holds = |property: &fn(&dyn Store)| catch_unwind(AssertUnwindSafe(|| property(&make()))).is_ok();
    let broken: Vec<&str> =
        PROPERTIES.iter().filter(|(_, property)| !holds(property)).map(|(name, _)| *name).collect();
    assert!(broken.is_empty(), "the store breaks {broken:#?}");
}

/// A claimed session, with its next position.
struct Writer<'a> {
    store: &'a dyn Store,
    claim: SessionClaim,
    next: Position,
}

impl<'a> Writer<'a> {
    /// Claims a session that does not exist yet.
    fn claim(store: &'a dyn Store, session: SessionId) -> Self {
        let held = claim(store, session, "writer", ClaimMode::IfFree)
            .expect("a session that is free can be claimed");
        Self { store, claim: held, next: Position::START }
    }

    /// Claims a session and creates it.
    fn create(store: &'a dyn Store, session: SessionId) -> Self {
        let mut writer = Self::claim(store, session);
        writer.append(first_batch(session)).expect("a claimed session can be created");
        writer
    }

    fn session(&self) -> SessionId {
        self.claim.session
    }

    /// Appends a batch at the end of the journal.
    fn append(&mut self, batch: Batch) -> Result<Position, StoreError> {
        self.next = append(self.store, self.session(), self.next, self.claim.fence, batch)?;
        Ok(self.next)
    }

    fn append_all(&mut self, batches: impl IntoIterator<Item = Batch>) {
        for batch in batches {
            self.append(batch).expect("a batch that fits is appended");
        }
    }

    fn records(&self) -> Vec<Record> {
        records(self.store, self.session())
    }

    /// Releases the session, and returns its id.
    fn release(self) -> SessionId {
        let session = self.session();
        block_on(self.store.release(self.claim)).expect("a held session can be released");
        session
    }
}

/// A batch that creates a session.
fn first_batch(session: SessionId) -> Batch {
    first_batch_of(session, Origin::Root)
}

/// A batch that creates a session with this origin.
fn first_batch_of(session: SessionId, origin: Origin) -> Batch {
    let created = SessionCreated { origin, ..sample::created(session) };
    Batch::at(created.created_at).with(created)
}

/// Creates a session with this origin, writes batches, and releases it.
fn written(
    store: &dyn Store,
    seed: u64,
    origin: Origin,
    batches: impl IntoIterator<Item = Batch>,
) -> SessionId {
    let mut writer = Writer::claim(store, sample::session(seed));
    writer.append(first_batch_of(writer.session(), origin)).expect("a claimed session can be created");
    writer.append_all(batches);
    writer.release()
}

fn object(store: &dyn Store, id: ObjectId) -> Option<Object> {
    block_on(store.object(id)).expect("objects can be read")
}

fn claim(
    store: &dyn Store,
    session: SessionId,
    owner: &str,
    mode: ClaimMode,
) -> Result<SessionClaim, StoreError> {
    block_on(store.claim(session, Owner::new(owner), mode))
}

fn append(
    store: &dyn Store,
    session: SessionId,
    expected: Position,
    fence: FenceToken,
    batch: Batch,
) -> Result<Position, StoreError> {
    block_on(store.append(session, expected, fence, batch))
}

fn head(store: &dyn Store, session: SessionId) -> Position {
    block_on(store.head(session)).expect("the head of a session that exists can be read")
}

fn read(store: &dyn Store, session: SessionId, from: u64, limit: usize) -> Vec<Record> {
    block_on(store.read(session, Position::new(from), limit)).expect("a session that exists can be read")
}

/// The whole journal.
fn records(store: &dyn Store, session: SessionId) -> Vec<Record> {
    read(store, session, 0, usize::MAX)
}

/// The texts of the notes among records.
fn texts(records: &[Record]) -> Vec<&str> {
    let notes = records.iter().filter_map(|record| match &record.body {
        RecordBody::Note(note) => Some(note.text.as_str()),
        _ => None,
    });
    notes.collect()
}
