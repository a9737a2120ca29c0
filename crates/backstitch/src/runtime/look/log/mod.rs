//! The records of a session, including those before a rewind.
//!
//! Records are read page by page, so that a long journal begins at once.

mod files;
mod filter;

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use backstitch_runtime::{
    EventStream, RuntimeError, SessionEvent, is_saved_piece, load_view, read_records, readable_record,
};

pub use filter::{LogFilter, cost, is_failure, money};

use super::changes::is_at_or_below;
use super::waiting::decision_about;
use crate::id::CallId;
use crate::journal::{CallChanges, Position, Record, RecordBody};
use crate::message::Content;
use crate::report::{LogLine, PendingDecision, Version};
use crate::runtime::Runtime;
use crate::view::{Call, JournalView};
use files::CallFiles;

/// How many records are read at a time.
const PAGE: usize = 500;

/// The selected records of a session, in order.
pub struct SessionLog {
    runtime: Runtime,
    filter: LogFilter,
    view: JournalView,
    /// The positions that are visible at the head.
    visible: Vec<Range<Position>>,
    files: CallFiles,
    /// The calls that changed the file of the filter, once they are known.
    calls: Option<HashSet<CallId>>,
    /// The next record that is read.
    next: Position,
    /// The record after the last one that is read, unless new ones are waited for.
    end: Position,
    page: VecDeque<Record>,
    /// New records, once they are waited for.
    events: Option<EventStream>,
    /// Whether the session has ended, stopped or paused since then.
    has_ended: bool,
}

/// A record of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// The record.
    pub record: Arc<Record>,
    /// Its branch.
    pub branch: u64,
    /// Whether it is still visible.
    pub is_visible: bool,
    /// The line for people.
    pub text: String,
    /// Of a pause: the decision that it is about.
    pub decision: Option<PendingDecision>,
}

impl Runtime {
    /// Returns the records of a session that a filter selects. `head` is its view at its head.
    pub fn log(&self, head: JournalView, filter: LogFilter) -> SessionLog {
        SessionLog {
            runtime: self.clone(),
            filter,
            visible: head.lineage().visible(head.head()),
            end: head.head(),
            view: head,
            files: CallFiles::default(),
            calls: None,
            next: Position::START,
            page: VecDeque::new(),
            events: None,
            has_ended: false,
        }
    }
}

impl SessionLog {
    /// Begins with a record.
    pub fn start_at(&mut self, position: Position) {
        (self.next, self.page) = (position, VecDeque::new());
    }

    /// Ends before a record.
    pub fn end_at(&mut self, position: Position) {
        self.end = position.min(self.view.head());
    }

    /// Begins with the last records: the last `limit` of those that are selected.
    pub async fn skip_to_last(&mut self, limit: usize) -> Result<(), RuntimeError> {
        self.find_calls().await?;
        let (mut end, mut left) = (self.end.number(), limit);
        (self.next, self.page) = (self.end, VecDeque::new());
        while end > 0 && left > 0 {
            let start = end.saturating_sub(PAGE as u64);
            self.next = Position::new(start);
            for record in self.read(self.next, Position::new(end)).await?.iter().rev() {
                if self.is_of_file(record) && self.is_selected(record) {
                    left -= 1;
                }
                if left == 0 {
                    self.next = record.position;
                    break;
                }
            }
            end = start;
        }
        Ok(())
    }

    /// Returns the next selected record; `None` at the head.
    pub async fn next(&mut self) -> Result<Option<LogEntry>, RuntimeError> {
        self.find_calls().await?;
        loop {
            let Some(record) = self.page.pop_front() else {
                let end = self.end.min(self.next.after(PAGE));
                self.page = self.read(self.next, end).await?.into();
                match self.page.back() {
                    Some(last) => self.next = last.position.next(),
                    None => return Ok(None),
                }
                continue;
            };
            if let Some(entry) = self.entry(Arc::new(record)).await? {
                return Ok(Some(entry));
            }
        }
    }

    /// Waits for the next selected record that is appended after the head; `None` once the session has ended, stopped or paused.
    pub async fn next_new(&mut self) -> Result<Option<LogEntry>, RuntimeError> {
        self.find_calls().await?;
        let session = self.view.session_id();
        while !self.has_ended {
            let events =
                self.events.get_or_insert_with(|| self.runtime.events(session).from(self.view.head()));
            let record = match events.next().await? {
                Some(SessionEvent::Record(record)) => record,
                Some(_) => continue,
                None => break,
            };
            // Only these depend on the view: a rewind changes what is visible, and a pause names a call.
            if matches!(record.body, RecordBody::Rewound(_) | RecordBody::Paused(_)) {
                self.view = self.runtime.view(session).await?;
                self.visible = self.view.lineage().visible(self.view.head());
                self.files = CallFiles::default();
            }
            self.has_ended = matches!(
                record.body,
                RecordBody::EvaluationFinished(_) | RecordBody::Paused(_) | RecordBody::SessionStopped(_)
            );
            self.note_call(&record).await?;
            if let Some(entry) = self.entry(record).await? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Finds the calls that changed the file of the filter, if there is one.
    async fn find_calls(&mut self) -> Result<(), RuntimeError> {
        if let (Some(file), None) = (&self.filter.file, &self.calls) {
            let changes = self.runtime.changes(&self.view, Some(file)).await?;
            self.calls = Some(changes.calls.into_iter().map(|changing| changing.call).collect());
        }
        Ok(())
    }

    /// Notes a call that ended after the head, if it changed the file of the filter.
    async fn note_call(&mut self, record: &Record) -> Result<(), RuntimeError> {
        let (Some(calls), Some(file)) = (&mut self.calls, &self.filter.file) else { return Ok(()) };
        let RecordBody::CallFinished(finished) = &record.body else { return Ok(()) };
        match &finished.changes {
            Some(CallChanges::Paths(paths)) => {
                let is_found = paths.iter().any(|changed| is_at_or_below(&changed.path, file));
                calls.extend(is_found.then_some(finished.call_id));
            }
            // Only the files before and after it name them.
            Some(CallChanges::Counts(_)) => {
                let view = self.runtime.view(self.view.session_id()).await?;
                let changes = self.runtime.changes(&view, Some(file)).await?;
                calls.extend(changes.calls.into_iter().map(|changing| changing.call));
            }
            None => {}
        }
        Ok(())
    }

    /// Whether a record belongs to a call that changed the file of the filter. Without one, every record does.
    fn is_of_file(&self, record: &Record) -> bool {
        let Some(calls) = &self.calls else { return true };
        let call = match &record.body {
            RecordBody::MessageAppended(message) => match &message.message.content {
                Content::OptionCall(call) => Some(call.invocation_id),
                Content::OptionResult(result) => Some(result.invocation_id),
                _ => None,
            },
            RecordBody::CallStarted(started) => Some(started.call_id),
            RecordBody::CallFinished(finished) => Some(finished.call_id),
            RecordBody::Paused(paused) => paused.call_id,
            _ => None,
        };
        call.is_some_and(|call| calls.contains(&call))
    }

    async fn read(&self, from: Position, to: Position) -> Result<Vec<Record>, RuntimeError> {
        read_records(&*self.runtime.store.store, self.view.session_id(), from, Some(to)).await
    }

    /// Whether a record is selected. Pieces of answers that came to their end later are only for those who want all records.
    fn is_selected(&self, record: &Record) -> bool {
        let LogFilter { all, kinds, .. } = &self.filter;
        let hides_pieces = !all && kinds.is_empty();
        self.filter.text(record).is_some() && !(hides_pieces && is_saved_piece(&self.view, record))
    }

    /// Describes a record, if it is selected.
    async fn entry(&mut self, record: Arc<Record>) -> Result<Option<LogEntry>, RuntimeError> {
        let changes = self.files.changes(&*self.runtime.store.objects, &self.view, &record);
        if !self.is_of_file(&record) || !self.is_selected(&record) {
            return Ok(None);
        }
        // The line shows the beginning of a text that is too large for its record.
        let whole = readable_record(&*self.runtime.store.store, &record).await?;
        let Some(mut text) = self.filter.text(&whole) else { return Ok(None) };
        if let Some(changes) = changes {
            text = format!("{text} ({changes})");
        }
        let is_new = record.position >= self.view.head();
        let is_visible = is_new || self.visible.iter().any(|range| range.contains(&record.position));
        let branch = self.view.lineage().branch_of(record.position).0;
        let decision = self.decision_of(&record).await?;
        Ok(Some(LogEntry { record, branch, is_visible, text, decision }))
    }

    /// Returns the decision that a pause is about. A call before a rewind, and one that a person edited later, is looked up in the session as
    /// it was then: a log shows what the person saw.
    async fn decision_of(&self, record: &Record) -> Result<Option<PendingDecision>, RuntimeError> {
        let RecordBody::Paused(paused) = &record.body else { return Ok(None) };
        let store = &*self.runtime.store.store;
        let is_as_asked = |call: &Call| {
            let edited = call.intent.as_ref().and_then(|intent| intent.record.arguments.as_ref());
            call.edited_arguments().is_none() && edited.is_none()
        };
        if paused.call_id.is_none_or(|call| self.view.call(call).is_some_and(is_as_asked)) {
            return decision_about(store, &self.view, paused).await.map(Some);
        }
        let then = load_view(store, self.view.session_id(), Some(record.position.next())).await?;
        decision_about(store, &then, paused).await.map(Some)
    }
}

impl LogEntry {
    /// Returns the record as it was appended: position, time, kind, version of the kind, data, and fields that this version does not
    /// know.
    pub fn line(&self) -> Result<LogLine, RuntimeError> {
        let record = &*self.record;
        let mut stored = serde_json::to_value(record)
            .map_err(|error| RuntimeError::Internal { reason: format!("a record has no JSON: {error}") })?;
        let extra = record.extra.iter().map(|(name, value)| (name.to_owned(), value.clone()));
        let call = self.decision.as_ref().filter(|decision| decision.call.is_some());
        Ok(LogLine {
            v: Version,
            position: record.position,
            at: record.at,
            kind: record.body.kind().to_owned(),
            version: record.version(),
            data: stored["data"].take(),
            extra: extra.collect(),
            branch: self.branch,
            visible: self.is_visible,
            text: self.text.clone(),
            name: call.and_then(|call| call.name.clone()),
            arguments: call.map(|call| call.arguments.clone().unwrap_or_default()),
        })
    }
}
