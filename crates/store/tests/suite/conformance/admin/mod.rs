//! The suite that the administration of every store passes.
//!
//! Each property is a function that takes two empty stores of one kind, because sessions move between stores, and panics if they break it.
//! The tests of a store call `store_admin_conformance!(make)`. A store need not support everything: what it does not support it has to
//! refuse with a code and a hint, and [`unsupported_operations`] lists that, so that the tests of a store can fix the list.

mod expiry;
mod moving;
mod upkeep;

use std::fmt;
use std::path::Path;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::Origin;
use backstitch_core::ports::{
    BundleError, GcMode, OpenBundle, OpenError, Retention, RowSink, SelectError, SelectLimits, SqlValue,
    Store, StoreAdmin, StoreError,
};
use backstitch_testkit::block_on;
use backstitch_testkit::sample::{self, Journal};
use tempfile::TempDir;

use super::{HasStore, Writer, written};

pub(crate) use expiry::*;
pub(crate) use moving::*;
pub(crate) use upkeep::*;

/// Calls a macro with the names of all properties, after the other arguments.
macro_rules! store_admin_properties {
    ($macro:path, $($given:tt)*) => {
        $macro! { $($given)*
            a_new_store_is_sound_and_empty
            verification_counts_what_is_stored
            sizes_are_those_of_the_sessions
            a_collection_deletes_what_no_record_names
            a_collection_that_is_dropped_deletes_nothing
            removed_sessions_are_listed_until_they_are_created_again
            a_deleted_snapshot_leaves_the_journal
            sql_reads_and_does_nothing_else
            age_and_status_decide_about_expiry
            what_others_need_does_not_expire
            a_session_that_is_not_indexed_does_not_expire
            a_backup_is_a_new_file
            the_salvage_of_a_sound_store_is_complete
            a_bundle_moves_a_session
            a_copied_session_is_the_same
            another_session_of_the_same_id_is_a_conflict
            what_a_living_process_writes_is_not_unfinished
            what_is_not_supported_has_a_code_and_a_hint
        }
    };
}

macro_rules! list_properties {
    ($($property:ident)*) => {
        /// All properties, by name.
        pub(crate) const ADMIN_PROPERTIES: &[(&str, AdminProperty)] =
            &[$((stringify!($property), $property)),*];
    };
}

/// A property of two empty stores of one kind.
pub(crate) type AdminProperty = fn(&dyn HasAdmin, &dyn HasAdmin);

store_admin_properties!(list_properties,);

/// A store with both ports, or a value that owns such a store.
pub(crate) trait HasAdmin: HasStore {
    /// The administration of the store.
    fn admin(&self) -> &(dyn StoreAdmin + 'static);

    /// How a statement refers to its first parameter.
    fn first_parameter(&self) -> &'static str {
        "?1"
    }

    /// Opens a bundle that a store of this kind has written. `None` if such stores write none.
    fn open_bundle(&self, path: &Path) -> Option<Box<dyn OpenBundle>> {
        let _ = path;
        None
    }
}

impl<S: Store + StoreAdmin> HasAdmin for S {
    fn admin(&self) -> &(dyn StoreAdmin + 'static) {
        self
    }
}

/// Generates a test for each property of the administration of a store. Its argument is a function that creates an empty store, or a value
/// with such a store ([`HasAdmin`]).
macro_rules! store_admin_conformance {
    (optional $make:expr) => {
        $crate::conformance::admin::store_admin_properties! {
            $crate::conformance::admin::store_admin_tests, (optional $make)
        }
    };
    ($make:expr) => {
        $crate::conformance::admin::store_admin_properties! {
            $crate::conformance::admin::store_admin_tests, ($make)
        }
    };
}

macro_rules! store_admin_tests {
    ((optional $make:expr) $($property:ident)*) => {$(
        #[test]
        fn $property() {
            let (Some(one), Some(two)) = ($make(), $make()) else { return };
            $crate::conformance::admin::$property(&one, &two);
        }
    )*};
    (($make:expr) $($property:ident)*) => {$(
        #[test]
        fn $property() {
            let (one, two) = ($make(), $make());
            $crate::conformance::admin::$property(&one, &two);
        }
    )*};
}

pub(crate) use {store_admin_conformance, store_admin_properties, store_admin_tests};

/// An error of the port.
trait AdminError: fmt::Debug + fmt::Display {
    fn code(&self) -> ErrorCode;
    fn hint(&self) -> Option<&'static str>;
}

macro_rules! admin_errors {
    ($($error:ident)*) => {$(
        impl AdminError for $error {
            fn code(&self) -> ErrorCode {
                $error::code(self)
            }

            fn hint(&self) -> Option<&'static str> {
                $error::hint(self)
            }
        }
    )*};
}

admin_errors!(StoreError OpenError BundleError SelectError);

/// Returns a result, unless the store does not support the operation.
fn supported<T, E: AdminError>(done: Result<T, E>) -> Option<Result<T, E>> {
    match &done {
        Err(error) if error.code() == ErrorCode::StoreUnsupported => None,
        _ => Some(done),
    }
}

/// Returns a value, unless the store does not support the operation. Any other error is a failure.
fn value<T, E: AdminError>(done: Result<T, E>) -> Option<T> {
    supported(done).map(|done| done.expect("an operation that is supported succeeds"))
}

fn scratch() -> TempDir {
    TempDir::new().expect("there is room for temporary files")
}

/// Writes a journal, and releases its session.
fn write(store: &dyn Store, journal: &Journal) {
    let mut writer = Writer::claim(store, journal.session);
    writer.append_all(journal.batches.clone());
    writer.release();
}

/// Writes a session with notes, and releases it.
fn write_notes(store: &dyn Store, seed: u64, texts: &[&str]) -> SessionId {
    written(store, seed, Origin::Root, texts.iter().map(|text| sample::notes([*text])))
}

/// Keeps the rows of a query.
#[derive(Default)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<SqlValue>>,
}

impl RowSink for Rows {
    fn columns(&mut self, names: Vec<String>) {
        self.columns = names;
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.rows.push(values);
        true
    }
}

/// Does everything that a store may refuse as unsupported, and returns the names of what it refused so. Panics if such a refusal has no
/// hint, or does not name the store.
pub(crate) fn unsupported_operations(one: &dyn HasAdmin, two: &dyn HasAdmin) -> Vec<&'static str> {
    let scratch = scratch();
    let admin = one.admin();
    let session = write_notes(one.store(), 1, &["one"]);
    let mut refused = Vec::new();
    let mut check = |name: &'static str, error: Option<Box<dyn AdminError>>| {
        let Some(error) = error.filter(|error| error.code() == ErrorCode::StoreUnsupported) else { return };
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{name}: {error} has no hint");
        let text = error.to_string();
        assert!(text.contains(admin.name()) || text.contains(two.admin().name()), "{name}: {text}");
        refused.push(name);
    };
    let retention = Retention::keep_all().keep_boundaries(1);
    check("retention", error_of(block_on(admin.collect(retention, GcMode::DryRun))));
    let (limits, mut rows) = (SelectLimits::default(), Rows::default());
    check("select", error_of(block_on(admin.select("SELECT 1", &[], limits, &mut rows))));
    check("backup", error_of(block_on(admin.backup(&scratch.path().join("backup"), &mut |_| {}))));
    check("salvage", error_of(block_on(admin.salvage(&scratch.path().join("salvaged")))));
    let exported = block_on(admin.export_bundle(session, &scratch.path().join("bundle"), &mut |_| {}));
    check("export_bundle", error_of(exported));
    check("copy_session", error_of(block_on(admin.copy_session(session, two.admin(), &mut |_| {}))));
    refused
}

fn error_of<T>(done: Result<T, impl AdminError + 'static>) -> Option<Box<dyn AdminError>> {
    done.err().map(|error| Box::new(error) as Box<dyn AdminError>)
}
