//! Pages of lists that may be long. Programs that show sessions over a network read them page by page.
//!
//! A list of which any place can be named has `from` and `total`, and `next` is the place at which the following page begins. A list that
//! grows or is searched has cursors: texts that only their own operation reads. A page ends at its limit of rows or of bytes, whichever
//! comes first, so only a missing `next` says that there is nothing more.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JsonObject;
use super::changes::ChangesReport;
use super::files::DiffReport;
use super::graph::RewindEntry;
use super::list::{ListedSession, UnreadableEntry};
use super::log::LogLine;
use super::session::PendingDecision;
use crate::id::SessionId;
use crate::journal::{InnerMessage, Position, WorkspaceRoot};
use crate::report::Version;

/// The most rows and bytes of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// The most rows. Zero counts as one.
    pub rows: usize,
    /// The most bytes of the rows as JSON. A page has at least one row, also if that is larger.
    pub bytes: usize,
}

impl Default for PageLimit {
    fn default() -> Self {
        Self { rows: 100, bytes: 4 * 1024 * 1024 }
    }
}

impl PageLimit {
    /// Counts a row. Returns whether it still belongs to a page that has rows of `bytes` bytes.
    pub(crate) fn takes<T: Serialize>(self, rows: usize, bytes: &mut usize, row: &T) -> bool {
        *bytes += serde_json::to_vec(row).map_or(0, |row| row.len());
        rows == 0 || (rows < self.rows && *bytes <= self.bytes)
    }
}

/// Which part of a list is read: from a place on, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageStart {
    /// From this place on.
    At(usize),
    /// The last rows.
    Last,
}

impl PageStart {
    /// Returns the first place of a page of a list of this length.
    pub(crate) fn place(self, total: usize, limit: PageLimit) -> usize {
        match self {
            Self::At(place) => place.min(total),
            Self::Last => total.saturating_sub(limit.rows.max(1)),
        }
    }
}

/// A page of sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsPage {
    /// Version of the form.
    pub v: Version,
    /// The sessions.
    pub sessions: Vec<ListedSession>,
    /// Sessions that cannot be read. Only the first page lists them.
    pub unreadable: Vec<UnreadableEntry>,
    /// Cursor of the next page. A page without sessions may have one.
    pub next: Option<String>,
}

/// A session without its lists, which have pages of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionOverview {
    /// The session, as lists show it.
    #[serde(flatten)]
    pub listed: ListedSession,
    /// The number of messages of the conversation.
    pub messages: usize,
    /// The number of its calls.
    pub calls: usize,
    /// The number of evaluations.
    pub evaluations: usize,
    /// The number of requests to models.
    pub requests: usize,
    /// Its rewinds, in the order of the journal.
    pub rewinds: Vec<RewindEntry>,
    /// The decisions that it waits for, with those of its sub-agents.
    pub decisions: Vec<PendingDecision>,
    /// What its agent may do that a person should know. Empty for a session of another program.
    pub rights: Vec<String>,
    /// Its files, as far as they are known.
    pub root: Option<WorkspaceRoot>,
}

/// A page of the records of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogPage {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The number of its records.
    pub head: Position,
    /// The selected records.
    pub lines: Vec<LogLine>,
    /// Where the next page begins; `null` at the head.
    pub next: Option<Position>,
    /// Where the page before ends; `null` at the first record.
    pub previous: Option<Position>,
}

/// A page of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptPage {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The number of messages at the point.
    pub total: usize,
    /// The messages.
    pub messages: Vec<TranscriptEntry>,
    /// Cursor of the next page, for `from`; `null` at the end.
    pub next: Option<String>,
    /// Cursor of the page before, for `before`; `null` at the beginning.
    pub previous: Option<String>,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptEntry {
    /// The session whose journal has it. In a fork it may be the parent.
    pub session: SessionId,
    /// Position of its record.
    pub position: Position,
    /// Whether content that is too large for the record is left out, because it is too large for a page too. Left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// The message as it is recorded, with content that is too large for its record.
    #[schemars(with = "JsonObject")]
    pub message: Arc<InnerMessage>,
}

/// The slices of a session at a point, and a page of the items of one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatePage {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The point.
    pub point: String,
    /// The slices that are not empty, without the transcript.
    pub slices: Vec<SliceCount>,
    /// The slice whose items follow.
    pub slice: Option<String>,
    /// Place of the first item.
    pub from: usize,
    /// Items of the slice.
    pub items: Vec<Value>,
    /// Where the next page begins; `null` at the end.
    pub next: Option<usize>,
}

/// A slice and the number of its items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SliceCount {
    /// Its stored name.
    pub name: String,
    /// The number of its items.
    pub count: usize,
}

/// A page of the files of a session at a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesPage {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The point.
    pub point: String,
    /// The number of files.
    pub total: usize,
    /// Place of the first one.
    pub from: usize,
    /// Their paths.
    pub paths: Vec<String>,
    /// Where the next page begins; `null` at the end.
    pub next: Option<usize>,
}

/// What differs between two points of a session, with a page of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffPage {
    /// The differences.
    #[serde(flatten)]
    pub diff: DiffReport,
    /// The number of files that differ.
    pub total: usize,
    /// Place of the first file.
    pub from: usize,
    /// Where the next page begins; `null` at the end.
    pub next: Option<usize>,
}

/// A page of the calls that changed files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangesPage {
    /// The calls.
    #[serde(flatten)]
    pub changes: ChangesReport,
    /// The number of calls that changed something.
    pub total: usize,
    /// Place of the first one.
    pub from: usize,
    /// Where the next page begins; `null` at the end.
    pub next: Option<usize>,
}

/// The decisions that a session waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingReport {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The decisions, with those of its sub-agents.
    pub decisions: Vec<PendingDecision>,
}

/// A page of sessions that wait for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalsPage {
    /// Version of the form.
    pub v: Version,
    /// The sessions.
    pub sessions: Vec<WaitingSession>,
    /// Cursor of the next page.
    pub next: Option<String>,
}

/// A session that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingSession {
    /// The session.
    pub session: ListedSession,
    /// The decisions, with those of its sub-agents.
    pub decisions: Vec<PendingDecision>,
    /// Why they cannot be read.
    pub error: Option<String>,
}

/// The rows of a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryPage {
    /// Version of the form.
    pub v: Version,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows. Bytes are hexadecimal digits.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than the limits allow.
    pub is_cut: bool,
}
