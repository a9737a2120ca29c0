//! Ports: traits for everything outside of the process.
//!
//! Each trait is defined together with the plain data that it carries. Adapters live in crates of their own,
//! and every adapter of a port passes the same conformance suite. Asynchronous traits are object-safe and
//! return boxed futures that depend on no runtime.

mod any_value;
mod erasure;
mod filesystem;
mod index;
mod merge;
mod path;
mod person;
mod policy;
mod process;
mod query;
mod queue;
mod request_body;
mod reversal;
mod sandbox;
mod store;
mod store_admin;
mod store_error;
mod workspace;

use std::pin::Pin;

pub use any_value::AnyValue;
pub use erasure::{
    Erasure, ErasureMode, ForkRemoval, RedactedSession, Redaction, RedactionReport, Removal, RemovalReport,
    RemovedSession,
};
pub use filesystem::{
    Access, DirectoryEntry, FileKind, Filesystem, FilesystemError, FilesystemLimits, Recursion, Stat,
    WriteMode,
};
pub use index::{
    ChangingSessions, IndexedSession, IndexedStatus, ListedChanges, OriginKind, SessionPresence,
    UnknownStatus,
};
pub use merge::{
    ConflictKind, ConflictResolution, IgnoredPaths, MergeConflict, MergedCapture, WorkspaceMerge,
};
pub use path::{FilePath, InvalidPath};
pub use person::{
    FieldKind, FieldOption, MisfitValue, PersonAnswer, PersonPort, PersonQuestion, QuestionField, TextForm,
    WantedAnswer,
};
pub use policy::{
    AnsweredCall, Delta, Deltas, FailedRequest, MediaBytes, ModelIdentity, Policy, PolicyAnswer, PolicyError,
    PolicyRequest, RequestInfo, wait_text,
};
pub use process::{OutputCaps, ProcessError, ProcessExit, ProcessOutcome, ProcessOutput, ProcessSpec};
pub use query::{SessionCursor, SessionOrder, SessionPage, SessionQuery, TimeRange};
pub use queue::{
    Queue, QueueCount, QueueLimit, QueuePage, QueueQuery, QueueRest, QueueState, QueuedSession, Schedule,
    TakeRequest, TakenSession, check_queue_entry, check_queue_word,
};
pub use request_body::{RequestBody, RequestMemo};
pub use reversal::{OwnStep, Reversal, ReversalConflicts, ReversalPlan, ReversedCapture};
pub use sandbox::{
    CommandNeeds, InvalidSandbox, SECRET_PLACES, Sandbox, SandboxMode, SandboxRefusal, SandboxSockets,
    UnknownSandbox, is_place,
};
pub use store::{
    ClaimMode, FenceToken, Owner, Process, SavedSnapshot, SessionClaim, Store, check_batch, content_of,
    fetch_large, hydrate,
};
pub use store_admin::{
    BackupProgress, BundleError, BundleReport, Expiry, Finding, FreedSpace, GcMode, GcReport, ImportChanges,
    LostTail, ObjectsSize, OpenBundle, OpenError, Progress, Retention, RowSink, SalvageReport,
    SalvagedSession, SelectError, SelectLimits, SelectedRows, SessionRole, SessionSize, SqlValue, StoreAdmin,
    StoreLocation, StoreSize, TransferOutcome, TransferProgress, TransferReport, TransferStep,
    TransferredSession, UnfinishedNote, VerifyReport,
};
pub use store_error::{Damage, StoreError};
pub use workspace::{
    ChangeKind, GraftedCapture, GuardMode, GuardOutcome, MovedBranch, ObjectFacts, ObjectOverlay, Objects,
    PathChange, RepositoryChange, RescueCapture, RestoreReport, StoredMark, UncoveredPath, UncoveredReason,
    Workspace, WorkspaceCapture, WorkspaceError, directory_holder,
};

pub use crate::journal::Finish;

/// A future that a port returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
