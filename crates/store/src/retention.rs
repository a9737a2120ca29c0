//! Retention of workspace roots.
//!
//! Records and their content (texts, results, media) are kept forever. Retention prunes the files of old
//! boundaries: the roots before and after calls. Regardless of its rules, it keeps for each session
//!
//! - the root of its current files, also after a rewind to an old position;
//! - the roots of calls that have not ended, because recovery restores them;
//! - the root at each position that another session was forked from;
//! - the roots that the changes of an isolated session are merged with, and those of directories that they were applied to.

use std::collections::{BTreeMap, HashMap};

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    ObservationCause, Origin, Position, Record, RecordBody, TagChange, WorkspaceRoot,
};
use backstitch_core::ports::{Retention, StoreError};
use backstitch_core::time::Timestamp;

use crate::references::References;

/// A record that names workspace roots.
struct Boundary {
    position: Position,
    at: Timestamp,
    roots: Vec<WorkspaceRoot>,
    /// True if its root is the state of the files from there on.
    settles: bool,
    /// True if its roots stay in any case.
    is_pinned: bool,
}

/// Information about files in a session's journal.
#[derive(Default)]
pub(crate) struct Files {
    boundaries: Vec<Boundary>,
    /// Position of the latest start of each call, in journal order.
    started: Vec<(Position, CallId)>,
    open: HashMap<CallId, Position>,
    rewinds: Vec<(Position, Position)>,
    /// Position up to which the journal was read.
    pub(crate) head: Position,
    /// The session's tags.
    tags: BTreeMap<String, String>,
    /// Parent session and position of a fork.
    pub(crate) fork: Option<(SessionId, Position)>,
}

impl Files {
    /// Adds the next record of the journal, and passes what it refers to.
    pub(crate) fn add_text(
        &mut self,
        session: SessionId,
        position: Position,
        text: &str,
        mut each: impl FnMut(&References) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let record =
            Record::decode(position, text).map_err(|source| StoreError::BrokenRecord { session, source })?;
        let named = References::in_text(text);
        each(&named)?;
        self.add(&record, named);
        Ok(())
    }

    fn add(&mut self, record: &Record, named: References) {
        let position = record.position;
        self.head = position.next();
        let (mut settles, mut is_pinned) = (false, false);
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
            // An observation before a restore does not determine the files after it.
            RecordBody::WorkspaceObserved(observed) => {
                settles = observed.cause != ObservationCause::Interrupted;
            }
            RecordBody::SessionCreated(created) => {
                self.tags = created.tags.clone();
                if let Origin::Fork { session, position } = created.origin {
                    self.fork = Some((session, position));
                }
            }
            RecordBody::Note(note) => TagChange::apply_note(note, &mut self.tags),
            RecordBody::WorkspaceIsolated(_) | RecordBody::ApplyStarted(_) => is_pinned = true,
            _ => {}
        }
        if !named.roots.is_empty() {
            let (at, roots) = (record.at, named.roots);
            self.boundaries.push(Boundary { position, at, roots, settles, is_pinned });
        }
    }

    /// Divides the roots into those that stay and those to be pruned. `forks` are the positions from which
    /// other sessions were forked.
    pub(crate) fn divide(
        &self,
        retention: Retention,
        forks: &[Position],
    ) -> (Vec<WorkspaceRoot>, Vec<WorkspaceRoot>) {
        let is_exempt = |tag: &str| !self.tags.contains_key(tag);
        let all = retention == Retention::keep_all() || retention.tag.is_some_and(is_exempt);
        let from = retention.boundaries.and_then(|calls| self.nth_last_call(calls));
        let mut kept: Vec<Position> = self.open.values().copied().collect();
        for cut in forks.iter().copied().chain([self.head]) {
            kept.extend(self.in_effect(cut));
        }
        let stays = |boundary: &&Boundary| {
            all || boundary.is_pinned
                || from.is_some_and(|from| boundary.position >= from)
                || retention.since.is_some_and(|since| boundary.at >= since)
                || kept.contains(&boundary.position)
        };
        let (stay, go): (Vec<_>, Vec<_>) = self.boundaries.iter().partition(stays);
        let roots = |boundaries: Vec<&Boundary>| {
            boundaries.into_iter().flat_map(|boundary| boundary.roots.iter().copied()).collect()
        };
        (roots(stay), roots(go))
    }

    /// Position at which the last `calls` calls begin.
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
        // There are fewer calls: all of them stay.
        (calls > 0).then_some(Position::START)
    }

    /// Boundaries that determine the files at a cut: the visible ones, from the last back to one that settles
    /// the state.
    fn in_effect(&self, cut: Position) -> Vec<Position> {
        let mut end = cut;
        let mut found = Vec::new();
        loop {
            let rewind = self.rewinds.iter().rev().find(|(at, _)| *at < end).copied();
            let start = rewind.map_or(Position::START, |(at, _)| at);
            let visible = self.boundaries.iter().rev();
            let is_of_files =
                |boundary: &&Boundary| !boundary.is_pinned && (start..end).contains(&boundary.position);
            for boundary in visible.filter(is_of_files) {
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
