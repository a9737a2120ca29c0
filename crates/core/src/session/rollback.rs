//! Rollback and rewind to a snapshot.
//!
//! | policy | [`rollback`](Session::rollback) | [`rollback_with_logs`](Session::rollback_with_logs) | [`rewind_to`](Session::rewind_to) |
//! |---|---|---|---|
//! | State | as in the snapshot | as in the snapshot | as in the snapshot |
//! | Log | kept | as in the snapshot | kept |
//! | Cache | dropped, or as in the snapshot if it captured caches | the same | the same |
//! | Journal | kept | kept | as in the snapshot |
//!
//! A session whose Journal slices are empty takes them from the snapshot in every case, so that a snapshot
//! can be loaded into a fresh session. If the snapshot and the session have different policies for a slice,
//! that of the snapshot counts. Everything is checked before anything is changed. Data of the snapshot must
//! parse if its type is registered. A snapshot of another conversation is refused: its transcript must be the
//! beginning of the session's own or, for a rewind, the other way round, so that a rewind can be undone as
//! long as no message was added since then.

use std::sync::Arc;

use super::Session;
use super::cell::Cell;
use super::error::{SessionError, SnapshotMismatchError, SnapshotRestoreError};
use super::slice::SlicePolicy;
use super::snapshot::Snapshot;

#[derive(Clone, Copy, PartialEq)]
enum Logs {
    Keep,
    Restore,
}

#[derive(Clone, Copy, PartialEq)]
enum Transcript {
    Keep,
    Cut,
}

impl Session {
    /// Undoes all changes since the snapshot, as for a failed call. Logs and transcript are kept.
    pub fn rollback(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotMismatchError> {
        self.restore_to(snapshot, Logs::Keep, Transcript::Keep)
    }

    /// Does the same as [`rollback`](Self::rollback), and restores logs. Fails if the snapshot holds no logs,
    /// since that would delete them.
    pub fn rollback_with_logs(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotMismatchError> {
        self.restore_to(snapshot, Logs::Restore, Transcript::Keep)
    }

    /// Restores the session to the time of the snapshot, including its transcript. Logs are kept.
    pub fn rewind_to(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotMismatchError> {
        self.restore_to(snapshot, Logs::Keep, Transcript::Cut)
    }

    fn restore_to(
        &mut self,
        snapshot: &Snapshot,
        logs: Logs,
        transcript: Transcript,
    ) -> Result<(), SnapshotMismatchError> {
        if !snapshot.captured.contains(&SlicePolicy::State) {
            return Err(SnapshotMismatchError::WithoutState);
        }
        if logs == Logs::Restore && !snapshot.captured.contains(&SlicePolicy::Log) {
            return Err(SnapshotMismatchError::WouldWipeLogs);
        }
        if transcript == Transcript::Cut && !snapshot.captured.contains(&SlicePolicy::Journal) {
            return Err(SnapshotMismatchError::WithoutJournal);
        }

        let mut state = snapshot.state.clone();
        for (name, held) in snapshot.state.cells() {
            let policy = held.policy();
            let captured = snapshot.captured.contains(&policy);
            let current = self.state.cell(name).filter(|current| current.len() > 0);
            let restored = match policy {
                SlicePolicy::State => true,
                SlicePolicy::Log => logs == Logs::Restore,
                SlicePolicy::Cache => captured,
                SlicePolicy::Journal => transcript == Transcript::Cut || (captured && current.is_none()),
            };
            let kept = match policy {
                SlicePolicy::Log | SlicePolicy::Journal => current,
                SlicePolicy::State | SlicePolicy::Cache => None,
            };
            if policy == SlicePolicy::Journal
                && captured
                && let Some(current) = current
            {
                check_transcript(name, current, held, transcript)?;
            }
            match kept {
                _ if restored => {
                    let decoded = self.decode(name, held)?;
                    if !Arc::ptr_eq(&decoded, held) {
                        state.put(name.clone(), decoded);
                    }
                }
                Some(current) if Arc::ptr_eq(current, held) => {}
                Some(current) => state.put(name.clone(), current.clone()),
                None => state.remove(name),
            }
        }
        for (name, current) in self.state.cells() {
            if snapshot.state.cell(name).is_some() {
                continue;
            }
            let kept = match snapshot.policy_of(name).unwrap_or(current.policy()) {
                SlicePolicy::State | SlicePolicy::Cache => false,
                SlicePolicy::Log => logs == Logs::Keep,
                SlicePolicy::Journal => transcript == Transcript::Keep,
            };
            if kept {
                state.put(name.clone(), current.clone());
            }
        }
        self.forget_computed();
        self.set_state(state);
        Ok(())
    }

    /// Refuses slices whose items do not parse as the registered types.
    pub fn check_slices(&self) -> Result<(), SnapshotRestoreError> {
        for (name, cell) in self.state.cells() {
            let checked = self.registry.decode(name, cell);
            checked.map_err(|source| SnapshotRestoreError::Slice {
                slice: name.to_string(),
                source: Box::new(source),
            })?;
        }
        Ok(())
    }

    /// Decodes a slice of the snapshot, if its type is registered.
    fn decode(&self, name: &str, held: &Arc<Cell>) -> Result<Arc<Cell>, SnapshotMismatchError> {
        let decoded = self.registry.decode(name, held).and_then(|cell| match self.state.cell(name) {
            Some(current) => cell.decoded_like(current),
            None => Ok(cell),
        });
        decoded.map_err(|source| mismatch(name, source))
    }
}

/// Refuses a snapshot of another conversation.
fn check_transcript(
    name: &str,
    current: &Arc<Cell>,
    held: &Arc<Cell>,
    transcript: Transcript,
) -> Result<(), SnapshotMismatchError> {
    let length = match transcript {
        Transcript::Keep => held.len(),
        Transcript::Cut => held.len().min(current.len()),
    };
    let Some(last) = length.checked_sub(1) else { return Ok(()) };
    // A journal only grows, so within a process it is enough to compare the last item of the snapshot.
    let agree = current.shares(held, last)
        || current.agree(held, 0..length).map_err(|source| mismatch(name, source))?;
    if agree { Ok(()) } else { Err(SnapshotMismatchError::OtherTranscript { slice: name.to_owned() }) }
}

fn mismatch(name: &str, source: SessionError) -> SnapshotMismatchError {
    SnapshotMismatchError::Slice { slice: name.to_owned(), source: Box::new(source) }
}
