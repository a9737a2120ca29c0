//! Errors of sessions and snapshots.

use super::slice::{SlicePolicy, UpcastError};
use crate::id::MessageId;
use crate::json::LimitExceeded;
use crate::object::ObjectId;
use crate::storable::NotStorable;

/// Lists the first of many objects for an error text.
fn list(objects: &[ObjectId]) -> String {
    let mut shown: Vec<String> = objects.iter().take(3).map(ObjectId::to_string).collect();
    if objects.len() > shown.len() {
        shown.push(format!("and {} more", objects.len() - shown.len()));
    }
    shown.join(", ")
}

/// Any error of a reducer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A session refused an operation. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A reducer failed, so the dispatch failed.
    #[error("the reducer of {event} for slice {slice:?} failed")]
    Reducer {
        /// The slice that the reducer is registered for.
        slice: String,
        /// Type of the event.
        event: &'static str,
        /// Error of the reducer.
        #[source]
        source: BoxError,
    },
    /// A reducer panicked when an event was reduced again, outside of its dispatch.
    #[error("a reducer panicked: {message}")]
    Panicked {
        /// Message of the panic.
        message: String,
    },
    /// The event is not a slice item, and no reducer is registered for it.
    #[error("no reducer is registered for {event}; register one, or derive Slice for it")]
    NoReducer {
        /// Type of the event.
        event: &'static str,
    },
    /// Two types use one stored name.
    #[error("slice {slice:?} holds items of another type than {wanted}; two types must not share a name")]
    TypeClash {
        /// The stored name.
        slice: String,
        /// The requested type.
        wanted: &'static str,
    },
    /// A stored item does not parse as the requested type. It remains stored unchanged.
    #[error("a stored item of slice {slice:?} does not parse")]
    Decode {
        /// The stored name.
        slice: String,
        /// Reason for the failure.
        #[source]
        source: serde_json::Error,
    },
    /// A stored item of an older version could not be upcast.
    #[error("a stored item of slice {slice:?} could not be brought from version {version} to the next")]
    Upcast {
        /// The stored name.
        slice: String,
        /// Version whose upcaster failed.
        version: u32,
        /// Error of the upcaster.
        #[source]
        source: UpcastError,
    },
    /// A stored item was written by a newer program.
    #[error("slice {slice:?} was stored in version {stored}, but this program knows only up to {known}")]
    NewerVersion {
        /// The stored name.
        slice: String,
        /// Version of the item.
        stored: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// An item cannot be written as JSON.
    #[error("an item of slice {slice:?} cannot be written as JSON")]
    Encode {
        /// The stored name.
        slice: String,
        /// Reason for the failure.
        #[source]
        source: serde_json::Error,
    },
    /// An item can be written as JSON, but its type cannot read it.
    #[error("an item of slice {slice:?} could be written as JSON, but not be read again")]
    Unreadable {
        /// The stored name.
        slice: String,
        /// Reason for the failure.
        #[source]
        source: serde_json::Error,
    },
    /// An item could be written, but would change in storage.
    #[error("an item of slice {slice:?} cannot be stored")]
    NotStorable {
        /// The stored name.
        slice: String,
        /// Reason for the failure.
        #[source]
        source: NotStorable,
    },
    /// A cache could not be computed.
    #[error("the cache slice {slice:?} could not be computed")]
    Cache {
        /// The stored name.
        slice: String,
        /// Error of the function that computes it.
        #[source]
        source: BoxError,
    },
    /// A change of a Journal slice did more than append.
    #[error("slice {slice:?} is a journal: it only grows, and only a rewind cuts it")]
    JournalOnlyGrows {
        /// The stored name.
        slice: String,
    },
    /// A patch removes an item that does not exist.
    #[error("slice {slice:?} has {length} items, so there is none at position {position} to remove")]
    PatchOutOfRange {
        /// The stored name.
        slice: String,
        /// Position of the removal.
        position: usize,
        /// Length of the slice.
        length: usize,
    },
    /// A draft seeds, clears or replaces a slice that changed since the draft was opened.
    #[error("slice {slice:?} changed since the draft was opened, and the draft overwrites it")]
    Conflict {
        /// The stored name.
        slice: String,
    },
    /// The session changed between the preparation of a commit and its application.
    #[error("the session changed since the commit was prepared; prepare it again")]
    StalePreparation,
}

/// A stored snapshot or conversation could not be read, or no session can start from it. Nothing was stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotRestoreError {
    /// Items of a slice do not parse as the known type, or were written by a newer program.
    #[error("slice {slice:?} of the snapshot cannot be read")]
    Slice {
        /// The stored name.
        slice: String,
        /// Reason for the failure.
        #[source]
        source: Box<SessionError>,
    },
    /// The content is inconsistent: messages are missing or out of place, or records do not belong to them.
    #[error("the content of the snapshot is inconsistent")]
    Inconsistent(#[source] BoxError),
    /// The snapshot cannot be recorded as the start of a session.
    #[error("the snapshot cannot be recorded")]
    NotRecordable(#[source] BoxError),
    /// The snapshot refers to content that neither it nor the store holds. It has to be exported with its
    /// content.
    #[error("the snapshot refers to content that neither it nor the store holds: {}", list(objects))]
    MissingContent {
        /// The missing objects.
        objects: Vec<ObjectId>,
    },
    /// The plain fields of a message in a conversation contradict the messages that it was made from.
    #[error("the {field} of message {message} contradicts the messages that it was made from")]
    Disagreement {
        /// The message.
        message: MessageId,
        /// The contradictory field.
        field: &'static str,
    },
    /// The snapshot is too large or too deep.
    #[error("the snapshot exceeds a limit")]
    Limit(#[from] LimitExceeded),
    /// The snapshot is not JSON, or does not have the fields of a snapshot.
    #[error("the snapshot does not parse")]
    Malformed(#[from] serde_json::Error),
    /// The snapshot has an unknown version. A newer program may have written it.
    #[error("the snapshot has version {stored}, but this program knows {known}")]
    UnknownVersion {
        /// Version of the snapshot.
        stored: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// A slice occurs twice.
    #[error("the snapshot holds slice {slice:?} twice")]
    DuplicateSlice {
        /// The stored name.
        slice: String,
    },
    /// The number of item versions differs from the number of items.
    #[error("slice {slice:?} of the snapshot has {items} items but {versions} item versions")]
    ItemVersions {
        /// The stored name.
        slice: String,
        /// Number of items.
        items: usize,
        /// Number of item versions.
        versions: usize,
    },
    /// An item would change in storage.
    #[error("an item of slice {slice:?} of the snapshot cannot be stored")]
    NotStorable {
        /// The stored name.
        slice: String,
        /// Reason for the failure.
        #[source]
        source: NotStorable,
    },
    /// The snapshot holds a slice of a policy that it claims not to have captured.
    #[error("the snapshot holds slice {slice:?}, but claims to have captured no {policy} slices")]
    NotCaptured {
        /// The stored name.
        slice: String,
        /// Policy of the slice.
        policy: SlicePolicy,
    },
    /// A slice's entry and the snapshot's table of policies disagree.
    #[error("slice {slice:?} of the snapshot is {entry} by its entry and {table} by the table of policies")]
    PolicyDisagrees {
        /// The stored name.
        slice: String,
        /// Policy according to the entry.
        entry: SlicePolicy,
        /// Policy according to the table.
        table: SlicePolicy,
    },
}

/// A snapshot does not fit the session into which it should be restored. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotMismatchError {
    /// The snapshot was taken without State slices, so there is no state to restore.
    #[error("the snapshot holds no State slices; take one with the default policies")]
    WithoutState,
    /// Logs should be restored from a snapshot that does not hold them, which would delete them.
    #[error(
        "the snapshot holds no Log slices, so restoring logs from it would wipe them; keep the logs, or take a snapshot of all slices"
    )]
    WouldWipeLogs,
    /// The transcript should be cut to that of a snapshot that has none.
    #[error("the snapshot holds no Journal slices, so the transcript cannot be cut to it")]
    WithoutJournal,
    /// The transcripts of the snapshot and of the session belong to two conversations: neither continues the
    /// other.
    #[error("the transcript in slice {slice:?} of the snapshot is not the beginning of the session's own")]
    OtherTranscript {
        /// The stored name.
        slice: String,
    },
    /// A slice of the snapshot does not parse as the type that the session holds it as.
    #[error("slice {slice:?} of the snapshot does not fit the session")]
    Slice {
        /// The stored name.
        slice: String,
        /// Reason for the failure.
        #[source]
        source: Box<SessionError>,
    },
}
