//! The summary of a session, computed from its view, and the reason why it is not driven.
//!
//! A summary is made for every batch, so making one costs the same however long the journal is: what would need a scan, such as
//! the first mission, is kept by the fold.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::evaluation::{DriverPresence, SessionStatus};
use super::fold::JournalView;
use super::recorded::JournalEntry;
use crate::id::SessionId;
use crate::journal::{
    EvaluationOutcome, JournalState, Origin, Record, RecordBody, SessionCreated, SessionFailure, SessionName,
    SessionStopped, SessionSummary, TagChange,
};
use crate::pack::packed_structs;
use crate::text::one_line;
use crate::time::Timestamp;

/// What a summary needs beside the other views. It is folded over all records, visible or not.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SummaryFacts {
    /// The agent's name in the definition that the session was created with.
    agent: Option<Arc<str>>,
    /// The directory of the files, where the journal names one.
    directory: Option<Arc<str>>,
    /// The patterns of paths that the directory is opened without.
    excludes: Arc<Vec<String>>,
    /// The name that a person gave the session.
    name: Option<Arc<str>>,
    tags: Arc<BTreeMap<String, String>>,
    /// When the last record was made.
    last_at: Timestamp,
}

packed_structs! {
    SummaryFacts { agent, directory, excludes, name, tags, last_at }
}

impl SummaryFacts {
    /// The facts of a journal that has only its first record. A fork has the excludes of its parent.
    pub(super) fn of(created: &SessionCreated, parent: Option<&Self>, at: Timestamp) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(Arc::from);
        let files = created.agent.get("workspace");
        let own = created.directory.as_deref().map(Arc::from);
        let directory = own.or_else(|| text(files)).or_else(|| text(files?.get("path")));
        let defined = files.and_then(|files| files.get("excludes")).and_then(Value::as_array);
        let excludes = match (defined, parent) {
            (Some(defined), _) => {
                Arc::new(defined.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            (None, Some(parent)) => parent.excludes.clone(),
            (None, None) => Arc::default(),
        };
        let (agent, tags) = (text(created.agent.get("name")), Arc::new(created.tags.clone()));
        Self { agent, directory, excludes, name: None, tags, last_at: at }
    }

    /// Takes in a record, visible or not.
    pub(super) fn fold_record(&mut self, record: &Record) {
        self.last_at = record.at;
        let (directory, excludes) = match &record.body {
            RecordBody::EvaluationStarted(started) => (&started.directory, &started.excludes),
            RecordBody::EvaluationResumed(resumed) => (&resumed.directory, &resumed.excludes),
            RecordBody::Note(note) => {
                if let Some(name) = SessionName::left_by(note) {
                    self.name = name;
                }
                if note.topic == TagChange::TOPIC {
                    TagChange::apply_note(note, Arc::make_mut(&mut self.tags));
                }
                return;
            }
            _ => return,
        };
        if let Some(directory) = directory {
            self.directory = Some(directory.as_str().into());
        }
        if let Some(excludes) = excludes {
            self.excludes = Arc::new(excludes.clone());
        }
    }
}

impl JournalView {
    /// The directory of the session's files, where the journal names one. Going back does not change it.
    pub fn directory(&self) -> Option<&str> {
        self.facts.directory.as_deref()
    }

    /// The patterns of paths that the directory is opened without. Going back does not change them.
    pub fn excludes(&self) -> &[String] {
        &self.facts.excludes
    }

    /// The name that a person gave the session. Going back does not change it, and a fork has its own.
    pub fn name(&self) -> Option<&str> {
        self.facts.name.as_deref()
    }

    /// The tags of the session. Going back does not change them.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.facts.tags
    }

    /// When the last record was made, visible or not.
    pub fn updated_at(&self) -> Timestamp {
        self.facts.last_at
    }

    /// The first thing that a user said, in a line; `None` while nothing was said.
    pub fn mission(&self) -> Option<&str> {
        self.visible.mission.as_deref()
    }

    /// What keeps the latest evaluation from its answer, if something does.
    pub fn failure(&self) -> Option<SessionFailure> {
        let latest = self.latest_evaluation()?;
        let request = latest.requests.back().filter(|request| request.finished.is_none());
        let failed = request.and_then(|request| request.last_failure());
        let (kind, message) = match &latest.finished {
            Some(ended) => {
                let error = ended.record.error.as_ref()?;
                (error.kind.clone(), error.message.clone())
            }
            None => {
                let stopped = self.stopped().and_then(|stop| stop.kind.clone().zip(stop.message.clone()));
                stopped.or_else(|| failed.map(|failed| (failed.kind.clone(), failed.message.clone())))?
            }
        };
        // An error of the store, say, has nothing to do with attempts.
        let attempts = failed.filter(|failed| failed.kind == kind).and(request);
        Some(SessionFailure { kind, message, attempts: attempts.map(|request| request.attempts()) })
    }

    /// What the session is doing, as far as the journal says.
    pub fn journal_state(&self) -> JournalState {
        match self.status(DriverPresence::Absent) {
            SessionStatus::Poisoned => JournalState::Poisoned,
            SessionStatus::Paused { .. } => JournalState::Paused,
            SessionStatus::Interrupted | SessionStatus::New | SessionStatus::Running
                if self.stopped().is_some() =>
            {
                JournalState::Stopped
            }
            SessionStatus::New => JournalState::New,
            SessionStatus::Interrupted | SessionStatus::Running => JournalState::Open,
            SessionStatus::Idle => match self.latest_outcome() {
                Some(EvaluationOutcome::Failed) => JournalState::Failed,
                _ => JournalState::Idle,
            },
        }
    }

    /// Whether the session is a fork that has neither asked nor called anything: everything that it shows is its parent's.
    pub(super) fn is_untouched_fork(&self) -> bool {
        let (id, is_fork) = (self.session_id(), matches!(self.created().origin, Origin::Fork { .. }));
        let has_asked = || {
            let latest = self.latest_evaluation();
            latest.is_some_and(|latest| {
                let request = latest.requests.back();
                latest.started.session == id || request.is_some_and(|last| last.started.point.session == id)
            })
        };
        let has_called = || {
            let mut intents = self.calls().rev().filter_map(|call| call.intent.as_ref());
            intents.any(|intent| intent.point.session == id)
        };
        is_fork && !has_asked() && !has_called()
    }

    /// The summary of the session at this head.
    pub fn summary(&self) -> SessionSummary {
        let line = |text: &str| one_line(text, SessionSummary::MESSAGE_LENGTH);
        let created = self.created();
        let key = || self.latest_evaluation().map(|latest| Arc::from(latest.prompt_key.as_str()));
        SessionSummary {
            version: SessionSummary::VERSION,
            session: created.session_id,
            position: self.head(),
            created_at: created.created_at,
            updated_at: self.facts.last_at,
            state: self.journal_state(),
            pause: self.pause().map(|pause| pause.reason),
            outcome: self.latest_outcome(),
            failure: self
                .failure()
                .map(|failure| SessionFailure { message: line(&failure.message), ..failure }),
            stopped: self.stopped().map(|stopped| SessionStopped {
                message: stopped.message.as_deref().map(line),
                ..stopped.clone()
            }),
            agent: self.facts.agent.clone().or_else(key),
            workspace: self.facts.directory.clone(),
            project: self.isolation().map(|isolated| isolated.record.project.as_str().into()),
            origin: created.origin.clone(),
            name: self.facts.name.clone(),
            tags: self.tags().clone(),
            mission: self.visible.mission.clone().unwrap_or_default(),
            turns: self.visible.turns,
            spent: self.ledger().charged(),
        }
    }

    fn latest_outcome(&self) -> Option<EvaluationOutcome> {
        self.latest_evaluation().and_then(|latest| latest.outcome())
    }
}

/// The last stop of a session. Stops are folded over all records, visible or not: a rewind does not change why a session
/// stopped.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stops {
    last: Option<JournalEntry<SessionStopped>>,
    /// Whether the session has not been driven, ended or rewound since then.
    is_current: bool,
}

packed_structs! {
    Stops { last, is_current }
}

impl Stops {
    /// Applies a record, visible or not.
    pub(super) fn fold_record(&mut self, session: SessionId, record: &Record) {
        match &record.body {
            RecordBody::SessionStopped(stopped) => {
                *self = Self { last: Some(JournalEntry::new(session, record, stopped)), is_current: true };
            }
            RecordBody::EvaluationStarted(_)
            | RecordBody::EvaluationResumed(_)
            | RecordBody::EvaluationFinished(_)
            | RecordBody::Rewound(_) => self.is_current = false,
            _ => {}
        }
    }
}

impl JournalView {
    /// Returns the last recorded stop. It stays when the session is resumed.
    pub fn last_stop(&self) -> Option<&JournalEntry<SessionStopped>> {
        self.stops.last.as_ref()
    }

    /// Returns why the session is not driven, if a stop is recorded and nothing has happened since then. A
    /// session whose process was killed has no such record.
    pub fn stopped(&self) -> Option<&SessionStopped> {
        self.stops.last.as_ref().filter(|_| self.stops.is_current).map(|stop| &*stop.record)
    }
}
