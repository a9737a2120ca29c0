//! The values that operations of [`Runtime`](crate::Runtime) return. As JSON, each is what the command prints with `--json`.
//!
//! The JSON is stable: fields may be added, and those that exist keep their names and meanings. A missing value is `null`, unless
//! its field says that it is left out. Text for people is made from the same values, by the program that prints them.

mod history;
mod look;
mod people;
mod store;

pub use backstitch_runtime::{IndexCheck, Version};
pub use history::{
    ApplyReport, DiscardedEffect, FileRestoreReport, ForkReport, RestoredChange, RestoredEvent, RestoredFile,
    RestoredFiles, RewindReport,
};
pub use look::{
    CallAttempt, CallDecision, CallLine, CallPause, CallReport, CallState, CallStep, ChangedFile, DiffReport,
    EvaluationReport, FileDetail, FileReport, LastStop, ListOptions, ListedSession, LogLine, MessageCounts,
    ModelUsage, PendingDecision, QueryRow, RecordEntry, RenderedRequest, RequestEntry, RequestError,
    RequestForm, RequestReport, SessionList, SessionParts, SessionReport, UnreadableEntry, UsageKey,
    UsageReport, UsageRow, UsageSum,
};
pub use people::{ApprovalOutcome, DecidedCall, DecisionReport, ResolutionReport, SentItem};
pub use store::{
    BundleExport, GitExport, GitOmission, MarkdownExport, RedactedRecords, SessionCopy, SessionImport,
    SessionRedaction, SessionRemoval, SessionTransfer, StoreBackup, StoreCheck, StoreCollection,
    StoreSalvage, UncoveredFile, WrongSnapshot,
};
