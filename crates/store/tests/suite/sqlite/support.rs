//! Helpers of the SQLite tests.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Position, Record, RecordBody};
use backstitch_core::ports::{
    ClaimMode, OpenBundle, Owner, Queue, SessionClaim, Store, StoreAdmin, StoreError,
};
use backstitch_store::{Bundle, SqliteOptions, SqliteStore};
use backstitch_testkit::block_on;
use backstitch_testkit::sample::{self, Journal};
use tempfile::TempDir;

use crate::conformance::HasStore;
use crate::conformance::admin::HasAdmin;
use crate::conformance::queue::HasQueue;

/// A store in a directory that is removed with it.
pub(crate) struct Temporary {
    store: SqliteStore,
    directory: TempDir,
}

impl Temporary {
    pub(crate) fn new() -> Self {
        Self::with(SqliteOptions::default())
    }

    pub(crate) fn with(options: SqliteOptions) -> Self {
        let directory = TempDir::new().expect("there is room for temporary files");
        let store = SqliteStore::open_with(directory.path().join("store.db"), options);
        Self { store: store.expect("a new store can be made"), directory }
    }

    /// Closes the store, and returns the directory and the path of the file.
    pub(crate) fn close(self) -> (TempDir, PathBuf) {
        let path = self.store.path().to_owned();
        drop(self.store);
        (self.directory, path)
    }
}

impl Deref for Temporary {
    type Target = SqliteStore;

    fn deref(&self) -> &SqliteStore {
        &self.store
    }
}

impl HasStore for Temporary {
    fn store(&self) -> &dyn Store {
        &self.store
    }
}

impl HasQueue for Temporary {
    fn queue(&self) -> &dyn Queue {
        &self.store
    }
}

impl HasAdmin for Temporary {
    fn admin(&self) -> &(dyn StoreAdmin + 'static) {
        &self.store
    }

    fn open_bundle(&self, path: &Path) -> Option<Box<dyn OpenBundle>> {
        Some(Box::new(Bundle::open(path, &mut |_| {}).expect("the bundle is sound")))
    }
}

pub(crate) fn claim(
    store: &dyn Store,
    session: SessionId,
    how: ClaimMode,
) -> Result<SessionClaim, StoreError> {
    block_on(store.claim(session, Owner::new("tester"), how))
}

/// A held session and its next position.
pub(crate) struct Writer<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) claim: SessionClaim,
    pub(crate) next: Position,
}

impl<'a> Writer<'a> {
    /// Claims a session and creates it.
    pub(crate) fn create(store: &'a dyn Store, session: SessionId) -> Self {
        let held = claim(store, session, ClaimMode::IfFree).expect("a session that is free can be claimed");
        let mut writer = Self { store, claim: held, next: Position::START };
        let created = sample::created(session);
        writer.append(Batch::at(created.created_at).with(created)).expect("a session can be created");
        writer
    }

    pub(crate) fn append(&mut self, batch: Batch) -> Result<Position, StoreError> {
        let SessionClaim { session, fence, .. } = self.claim;
        self.next = block_on(self.store.append(session, self.next, fence, batch))?;
        Ok(self.next)
    }

    pub(crate) fn session(&self) -> SessionId {
        self.claim.session
    }
}

/// Appends a complete journal, and releases the session.
pub(crate) fn write(store: &dyn Store, journal: &Journal) {
    let held =
        claim(store, journal.session, ClaimMode::IfFree).expect("a session that is free can be claimed");
    let mut next = Position::START;
    for batch in &journal.batches {
        next = block_on(store.append(journal.session, next, held.fence, batch.clone()))
            .expect("a batch that fits is appended");
    }
    block_on(store.release(held)).expect("what is held can be released");
}

pub(crate) fn read(store: &dyn Store, session: SessionId) -> Result<Vec<Record>, StoreError> {
    block_on(store.read(session, Position::START, usize::MAX))
}

/// Texts of the notes of a session.
pub(crate) fn notes(store: &dyn Store, session: SessionId) -> Vec<String> {
    let records = read(store, session).expect("a session that exists can be read");
    let notes = records.iter().filter_map(|record| match &record.body {
        RecordBody::Note(note) => Some(note.text.clone()),
        _ => None,
    });
    notes.collect()
}
