//! What operations show of sessions and stores. They change nothing.

mod blame;
mod call;
mod call_pages;
mod changes;
mod files;
mod graph;
mod list;
mod log;
mod pages;
mod request;
mod session;
mod usage;
mod writers;

use serde_json::{Map, Value};

pub use blame::{BlameReport, BlamedCall, BlamedLine};
pub use call::{CallAttempt, CallDecision, CallPause, CallReport, CallState, CallStep, ModelUsage};
pub use call_pages::{CallRow, CallsPage, RequestFailure, RequestRow, RequestsPage};
pub use changes::{ChangesReport, ChangingCall};
pub use files::{ChangedFile, DiffReport, FileDetail, FileReport, MessageCounts};
pub use graph::{ForkEntry, ParentSession, RewindEntry, SessionGraph, SubAgentEntry};
pub use list::{
    ListOptions, ListedSession, NamedSession, PendingSession, SessionList, TaggedSession, UnreadableEntry,
};
pub(crate) use log::sql_json;
pub use log::{LogLine, QueryRow, RecordLine};
pub use pages::{
    ApprovalsPage, ChangesPage, DiffPage, FilesPage, LogPage, PageLimit, PageStart, QueryPage,
    SessionOverview, SessionsPage, SliceCount, StatePage, TranscriptEntry, TranscriptPage, WaitingReport,
    WaitingSession,
};
pub use request::{RenderedRequest, RequestError, RequestForm, RequestReport};
pub use session::{
    CallLine, EvaluationReport, LastStop, PendingDecision, RecordEntry, RequestEntry, SessionParts,
    SessionReport,
};
pub use usage::{UsageKey, UsageReport, UsageRow, UsageSum};
pub use writers::{ItemWriter, SliceDiff, StateDiff, WrittenItem};

/// The schema of a value that is recorded in this form, with the fields of its kind.
type JsonObject = Map<String, Value>;
