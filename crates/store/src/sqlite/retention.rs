//! Which workspace roots are kept.
//!
//! Records are kept forever, and so is whatever they say: texts, results, media. What retention throws away are the files of
//! old boundaries, the roots before and after calls. Whatever it is told, it keeps of each session
//!
//! - the root that its files have now, also after a rewind to an old place;
//! - the roots of calls that have not ended, because recovery puts files back to them;
//! - the root at each place that another session was forked from.

use std::collections::HashMap;
use std::time::Duration;

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{ObservationCause, Origin, Position, Record, RecordBody, WorkspaceRoot};
use backstitch_core::ports::StoreError;
use backstitch_core::time::Timestamp;
use rusqlite::Connection;

use super::error::Failure;
use super::reach::References;
use super::read::texts;

/// How long the files of tool boundaries are kept. A boundary stays if any of the rules keeps it; without a rule all stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    since: Option<Timestamp>,
    boundaries: Option<u64>,
}

impl Retention {
    /// Keeps everything that a record names.
    pub fn keep_all() -> Self {
        Self::default()
    }

    /// Keeps the boundaries of the last days.
    #[must_use]
    pub fn keep_days(self, days: u32) -> Self {
        let days = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        let since = super::now().since(Timestamp::UNIX_EPOCH).saturating_sub(days);
        self.keep_since(Timestamp::UNIX_EPOCH.saturating_add(since))
    }

    /// Keeps the boundaries from a moment on.
    #[must_use]
    pub fn keep_since(self, since: Timestamp) -> Self {
        Self { since: Some(since), ..self }
    }

    /// Keeps the boundaries of the last calls of each session.
    #[must_use]
    pub fn keep_boundaries(self, calls: u64) -> Self {
        Self { boundaries: Some(calls), ..self }
    }
}

/// A record that names workspace roots.
struct Boundary {
    position: Position,
    at: Timestamp,
    roots: Vec<WorkspaceRoot>,
    /// Whether it says how the files are from there on.
    settles: bool,
}

/// What a session's journal says about files.
#[derive(Default)]
pub(super) struct Files {
    boundaries: Vec<Boundary>,
    /// Where each call last started, in the order of the journal.
    started: Vec<(Position, CallId)>,
    open: HashMap<CallId, Position>,
    rewinds: Vec<(Position, Position)>,
    /// Where the journal ends, as far as it was read.
    pub(super) head: Position,
    /// Where the session was forked from.
    pub(super) fork: Option<(SessionId, Position)>,
}

impl Files {
    /// Reads on from where the reading stopped, and passes on what each record names.
    pub(super) fn read_on(
        &mut self,
        connection: &Connection,
        session: SessionId,
        number: i64,
        mut each: impl FnMut(&References) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let from = self.head;
        texts(connection, session, number, from, usize::MAX, |position, text| {
            let record = Record::decode(position, text)
                .map_err(|source| StoreError::BrokenRecord { session, source })?;
            let named = References::in_text(text);
            each(&named)?;
            self.add(&record, named);
            Ok(())
        })
    }

    fn add(&mut self, record: &Record, named: References) {
        let position = record.position;
        self.head = position.next();
        let mut settles = false;
        match &record.body {
            RecordBody::CallStarted(call) => {
                settles = call.root.is_some();
                self.started.push((position, call.call_id));
                self.open.insert(call.call_id, position);
            }
            RecordBody::CallFinished(call) => {
                settles = call.root.is_some();
                self.open.remove(&call.call_id);
            }
            RecordBody::Rewound(rewound) => {
                settles = rewound.root.is_some();
                self.rewinds.push((position, rewound.to));
            }
            // What is found before a restore does not say where the files are after it.
            RecordBody::WorkspaceObserved(observed) => {
                settles = observed.cause != ObservationCause::Interrupted;
            }
            RecordBody::SessionCreated(created) => {
                if let Origin::Fork { session, position } = created.origin {
                    self.fork = Some((session, position));
                }
            }
            _ => {}
        }
        if !named.roots.is_empty() {
            self.boundaries.push(Boundary { position, at: record.at, roots: named.roots, settles });
        }
    }

    /// The roots that stay, and those that go. `forks` are the places that other sessions were forked from.
    pub(super) fn divide(
        &self,
        retention: Retention,
        forks: &[Position],
    ) -> (Vec<WorkspaceRoot>, Vec<WorkspaceRoot>) {
        let all = retention == Retention::keep_all();
        let from = retention.boundaries.and_then(|calls| self.nth_last_call(calls));
        let mut kept: Vec<Position> = self.open.values().copied().collect();
        for cut in forks.iter().copied().chain([self.head]) {
            kept.extend(self.in_effect(cut));
        }
        let stays = |boundary: &&Boundary| {
            all || from.is_some_and(|from| boundary.position >= from)
                || retention.since.is_some_and(|since| boundary.at >= since)
                || kept.contains(&boundary.position)
        };
        let (stay, go): (Vec<_>, Vec<_>) = self.boundaries.iter().partition(stays);
        let roots = |boundaries: Vec<&Boundary>| {
            boundaries.into_iter().flat_map(|boundary| boundary.roots.iter().copied()).collect()
        };
        (roots(stay), roots(go))
    }

    /// Where the last `calls` calls begin.
    fn nth_last_call(&self, calls: u64) -> Option<Position> {
        let mut seen = std::collections::HashSet::new();
        let mut from = None;
        for (position, call) in self.started.iter().rev() {
            if !seen.contains(call) && seen.len() as u64 >= calls {
                return from;
            }
            seen.insert(call);
            from = Some(*position);
        }
        // There are fewer: all of them stay.
        (calls > 0).then_some(Position::START)
    }

    /// The boundaries that say how the files are at a cut: those that are visible there, from the last one back to one that
    /// settles the matter.
    fn in_effect(&self, cut: Position) -> Vec<Position> {
        let mut end = cut;
        let mut found = Vec::new();
        loop {
            let rewind = self.rewinds.iter().rev().find(|(at, _)| *at < end).copied();
            let start = rewind.map_or(Position::START, |(at, _)| at);
            let visible = self.boundaries.iter().rev();
            for boundary in visible.filter(|boundary| (start..end).contains(&boundary.position)) {
                found.push(boundary.position);
                if boundary.settles {
                    return found;
                }
            }
            match rewind {
                Some((_, to)) => end = to,
                None => return found,
            }
        }
    }
}
