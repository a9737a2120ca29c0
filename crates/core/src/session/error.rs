//! What can go wrong with a session.

use super::slice::{SlicePolicy, UpcastError};
use crate::id::MessageId;
use crate::json::LimitExceeded;
use crate::object::ObjectId;
use crate::storable::NotStorable;

/// The first of many objects, for a message.
fn list(objects: &[ObjectId]) -> String {
    let mut shown: Vec<String> = objects.iter().take(3).map(ObjectId::to_string).collect();
    if objects.len() > shown.len() {
        shown.push(format!("and {} more", objects.len() - shown.len()));
    }
    shown.join(", ")
}

/// Any error, as reducers may give it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A session refused an operation. Nothing was changed by it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A reducer failed, and with it the dispatch.
    #[error("the reducer of {event} for slice {slice:?} failed")]
    Reducer {
        /// The slice that the reducer was registered for.
        slice: String,
        /// The event's type.
        event: &'static str,
        /// What it said.
        #[source]
        source: BoxError,
    },
    /// A reducer panicked where an event was reduced again, outside of whatever dispatched it.
    #[error("a reducer panicked: {message}")]
    Panicked {
        /// What it said.
        message: String,
    },
    /// Nothing would have happened: the event is no slice item, and no reducer is registered for it.
    #[error("no reducer is registered for {event}; register one, or derive Slice for it")]
    NoReducer {
        /// The event's type.
        event: &'static str,
    },
    /// Two types use one stored name.
    #[error("slice {slice:?} holds items of another type than {wanted}; two types must not share a name")]
    TypeClash {
        /// The stored name.
        slice: String,
        /// The type that was asked for.
        wanted: &'static str,
    },
    /// A stored item does not parse as the type that was asked for. It stays stored as it is.
    #[error("a stored item of slice {slice:?} does not parse")]
    Decode {
        /// The stored name.
        slice: String,
        /// Where the two disagree.
        #[source]
        source: serde_json::Error,
    },
    /// A stored item of an older version could not be brought to this one.
    #[error("a stored item of slice {slice:?} could not be brought from version {version} to the next")]
    Upcast {
        /// The stored name.
        slice: String,
        /// The version that could not be left.
        version: u32,
        /// What the upcaster said.
        #[source]
        source: UpcastError,
    },
    /// A stored item was written by a newer program.
    #[error("slice {slice:?} was stored in version {stored}, but this program knows only up to {known}")]
    NewerVersion {
        /// The stored name.
        slice: String,
        /// The version of the item.
        stored: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// An item cannot be written as JSON.
    #[error("an item of slice {slice:?} cannot be written as JSON")]
    Encode {
        /// The stored name.
        slice: String,
        /// What stands in the way.
        #[source]
        source: serde_json::Error,
    },
    /// An item can be written as JSON, but its type does not read what was written.
    #[error("an item of slice {slice:?} could be written as JSON, but not be read again")]
    Unreadable {
        /// The stored name.
        slice: String,
        /// Where the two disagree.
        #[source]
        source: serde_json::Error,
    },
    /// An item could be written, but would not come back as it is.
    #[error("an item of slice {slice:?} cannot be stored")]
    NotStorable {
        /// The stored name.
        slice: String,
        /// What stands in the way.
        #[source]
        source: NotStorable,
    },
    /// A cache could not be computed.
    #[error("the cache slice {slice:?} could not be computed")]
    Cache {
        /// The stored name.
        slice: String,
        /// What its function said.
        #[source]
        source: BoxError,
    },
    /// A Journal slice was to be changed by something else than adding to its end.
    #[error("slice {slice:?} is a journal: it only grows, and only a rewind cuts it")]
    JournalOnlyGrows {
        /// The stored name.
        slice: String,
    },
    /// A patch removes what is not there.
    #[error("slice {slice:?} has {length} items, so there is none at position {position} to remove")]
    PatchOutOfRange {
        /// The stored name.
        slice: String,
        /// The position that was to be removed.
        position: usize,
        /// How many items the slice has.
        length: usize,
    },
    /// A draft seeds, clears or replaces a slice that someone else changed since the draft was opened.
    #[error("slice {slice:?} changed since the draft was opened, and the draft overwrites it")]
    Conflict {
        /// The stored name.
        slice: String,
    },
    /// The session changed between preparing a commit and carrying it out.
    #[error("the session changed since the commit was prepared; prepare it again")]
    StalePreparation,
}

/// A stored snapshot or conversation could not be read, or no session can start from it. Nothing was stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotRestoreError {
    /// Items of a slice do not parse as the type that is known here, or were written by a newer program.
    #[error("slice {slice:?} of the snapshot cannot be read")]
    Slice {
        /// The stored name.
        slice: String,
        /// What is wrong with it.
        #[source]
        source: Box<SessionError>,
    },
    /// What it says does not make sense: messages are missing or out of place, or records do not belong to them.
    #[error("what the snapshot holds does not fit together")]
    Inconsistent(#[source] BoxError),
    /// It cannot be recorded as the beginning of a session.
    #[error("the snapshot cannot be recorded")]
    NotRecordable(#[source] BoxError),
    /// It refers to content that neither it nor the store holds. Export it with its content.
    #[error("the snapshot refers to content that neither it nor the store holds: {}", list(objects))]
    MissingContent {
        /// The objects.
        objects: Vec<ObjectId>,
    },
    /// The plain fields of a message of a conversation and the messages that it was made from say different things.
    #[error("the {field} of message {message} is not what the messages say that it was made from")]
    Disagreement {
        /// The message.
        message: MessageId,
        /// The field.
        field: &'static str,
    },
    /// It is too large or too deep.
    #[error("the snapshot exceeds a limit")]
    Limit(#[from] LimitExceeded),
    /// It is not JSON, or not of the shape of a snapshot.
    #[error("the snapshot does not parse")]
    Malformed(#[from] serde_json::Error),
    /// It has a version that this program does not know, so a newer program wrote it, or nobody did.
    #[error("the snapshot has version {stored}, but this program knows {known}")]
    UnknownVersion {
        /// The version of the snapshot.
        stored: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// One slice stands in it twice.
    #[error("the snapshot holds slice {slice:?} twice")]
    DuplicateSlice {
        /// The stored name.
        slice: String,
    },
    /// The list of item versions does not fit the list of items.
    #[error("slice {slice:?} of the snapshot has {items} items but {versions} item versions")]
    ItemVersions {
        /// The stored name.
        slice: String,
        /// How many items there are.
        items: usize,
        /// How many versions there are.
        versions: usize,
    },
    /// An item could not be stored again as it is.
    #[error("an item of slice {slice:?} of the snapshot cannot be stored")]
    NotStorable {
        /// The stored name.
        slice: String,
        /// What stands in the way.
        #[source]
        source: NotStorable,
    },
    /// A slice stands in it whose policy it says it did not capture.
    #[error("the snapshot holds slice {slice:?}, but says that it captured no {policy} slices")]
    NotCaptured {
        /// The stored name.
        slice: String,
        /// The slice's policy.
        policy: SlicePolicy,
    },
    /// A slice's entry and the snapshot's table of policies disagree.
    #[error("slice {slice:?} of the snapshot is {entry} by its entry and {table} by the table of policies")]
    PolicyDisagrees {
        /// The stored name.
        slice: String,
        /// What the entry says.
        entry: SlicePolicy,
        /// What the table says.
        table: SlicePolicy,
    },
}

/// A snapshot does not fit the session that it was to be restored into. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotMismatchError {
    /// The snapshot was taken without the State slices, so there is nothing to go back to.
    #[error("the snapshot holds no State slices; take one with the default policies")]
    WithoutState,
    /// Logs were to be restored from a snapshot that does not hold them, which would wipe them.
    #[error(
        "the snapshot holds no Log slices, so restoring logs from it would wipe them; keep the logs, or take a snapshot of all slices"
    )]
    WouldWipeLogs,
    /// The transcript is to be cut to one that the snapshot does not hold.
    #[error("the snapshot holds no Journal slices, so the transcript cannot be cut to it")]
    WithoutJournal,
    /// The snapshot's transcript and the session's are of two conversations: neither goes on where the other ends.
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
        /// What is wrong with it.
        #[source]
        source: Box<SessionError>,
    },
}
