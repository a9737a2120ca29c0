//! Going back to a snapshot.
//!
//! | policy | [`rollback`](Session::rollback) | [`rollback_with_logs`](Session::rollback_with_logs) | [`rewind_to`](Session::rewind_to) |
//! |---|---|---|---|
//! | State | as in the snapshot | as in the snapshot | as in the snapshot |
//! | Log | kept | as in the snapshot | kept |
//! | Cache | dropped | dropped | dropped |
//! | Journal | kept | kept | as in the snapshot |
//!
//! A session whose Journal slices are empty takes them from the snapshot in every case: that is how a snapshot is loaded
//! into a fresh session. Where the snapshot and the session name another policy for a slice, the snapshot's holds.
//! Everything is checked before anything is changed.

use std::sync::Arc;

use super::Session;
use super::error::{SessionError, SnapshotMismatchError};
use super::slice::SlicePolicy;
use super::snapshot::Snapshot;
use super::state::{Cell, State};

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
    /// Undoes what happened since the snapshot, as if a call had never run: logs and transcript are kept.
    pub fn rollback(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotMismatchError> {
        self.go_back(snapshot, Logs::Keep, Transcript::Keep)
    }

    /// The same, but logs are restored as well. Refused when the snapshot holds no logs, since that would wipe them.
    pub fn rollback_with_logs(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotMismatchError> {
        self.go_back(snapshot, Logs::Restore, Transcript::Keep)
    }

    /// Takes the session back to the moment of the snapshot, its transcript included. Logs are kept.
    pub fn rewind_to(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotMismatchError> {
        self.go_back(snapshot, Logs::Keep, Transcript::Cut)
    }

    fn go_back(
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
            let current = self.state.cell(name);
            let captured = snapshot.captured.contains(&held.policy());
            let wanted = match held.policy() {
                SlicePolicy::State => Some(held),
                SlicePolicy::Log if logs == Logs::Restore => Some(held),
                SlicePolicy::Log => current,
                SlicePolicy::Cache => captured.then_some(held),
                SlicePolicy::Journal if transcript == Transcript::Cut => Some(held),
                SlicePolicy::Journal => match current {
                    Some(current) if current.len() > 0 => {
                        if captured {
                            check_beginning(name, current, held)?;
                        }
                        Some(current)
                    }
                    _ => captured.then_some(held),
                },
            };
            self.settle(&mut state, name, held, wanted)?;
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

    /// Puts what is wanted of a slice in the place of what the snapshot holds of it, decoded where its type is known.
    fn settle(
        &self,
        state: &mut State,
        name: &Arc<str>,
        held: &Arc<Cell>,
        wanted: Option<&Arc<Cell>>,
    ) -> Result<(), SnapshotMismatchError> {
        let Some(wanted) = wanted else {
            state.remove(name);
            return Ok(());
        };
        let decoded = self.registry.decode(name, wanted).and_then(|cell| match self.state.cell(name) {
            Some(current) => cell.decoded_like(current),
            None => Ok(cell),
        });
        let decoded = decoded.map_err(|source| mismatch(name, source))?;
        if !Arc::ptr_eq(&decoded, held) {
            state.put(name.clone(), decoded);
        }
        Ok(())
    }
}

/// Refuses a snapshot of another conversation. A journal only grows, so it is enough that the last item of the snapshot
/// stands at the same place.
fn check_beginning(name: &str, current: &Cell, held: &Cell) -> Result<(), SnapshotMismatchError> {
    let Some(last) = held.len().checked_sub(1) else { return Ok(()) };
    match current.agrees_at(held, last).map_err(|source| mismatch(name, source))? {
        true => Ok(()),
        false => Err(SnapshotMismatchError::OtherTranscript { slice: name.to_owned() }),
    }
}

fn mismatch(name: &str, source: SessionError) -> SnapshotMismatchError {
    SnapshotMismatchError::Slice { slice: name.to_owned(), source: Box::new(source) }
}
