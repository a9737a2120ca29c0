//! Snapshots: the content of a session at one moment.
//!
//! Taking a snapshot is a clone in constant time. By default it captures State and Journal slices, which is
//! enough to resume; [`CaptureOptions`] select others. As JSON ([`super::stored`]) a snapshot outlives the
//! process, including slices of types that the reader does not know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cell::Cell;
use super::error::SessionError;
use super::items::Items;
use super::provenance::CarriedProvenance;
use super::slice::{Slice, SlicePolicy};
use super::state::SliceMap;
use super::{Session, SessionInfo};
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::SnapshotId;
use crate::payload::CarriedObject;
use crate::time::Timestamp;

/// The slices that a snapshot captures, and its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    pub(super) policies: BTreeSet<SlicePolicy>,
    pub(super) tags: BTreeMap<String, String>,
}

impl Default for CaptureOptions {
    /// Selects State and Journal slices, which are needed to resume.
    fn default() -> Self {
        Self::policies([SlicePolicy::State, SlicePolicy::Journal])
    }
}

impl CaptureOptions {
    /// Selects slices of these policies only.
    pub fn policies(policies: impl IntoIterator<Item = SlicePolicy>) -> Self {
        Self { policies: policies.into_iter().collect(), tags: BTreeMap::new() }
    }

    /// Selects slices of all policies.
    pub fn include_all() -> Self {
        Self::policies(SlicePolicy::ALL)
    }

    /// Adds a label to the snapshot, in addition to those of its session.
    #[must_use]
    pub fn tag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(name.into(), value.into());
        self
    }
}

/// The content of a session at one moment.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) id: SnapshotId,
    pub(super) created_at: Timestamp,
    pub(super) info: Arc<SessionInfo>,
    pub(super) captured: BTreeSet<SlicePolicy>,
    pub(super) tags: BTreeMap<String, String>,
    /// The whole state of the session, of which only slices with a captured policy count. It is not filtered,
    /// so that taking a snapshot is cheap.
    pub(super) state: SliceMap,
    /// Policies of slices that a stored snapshot lists but did not capture.
    pub(super) other_policies: BTreeMap<String, SlicePolicy>,
    pub(super) carried: CarriedProvenance,
    pub(super) objects: Vec<CarriedObject>,
    pub(super) extra: Extra,
}

impl Session {
    /// Captures State and Journal slices.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_with(CaptureOptions::default())
    }

    /// Captures the slices that `capture` selects.
    pub fn snapshot_with(&self, capture: CaptureOptions) -> Snapshot {
        Snapshot {
            id: self.ids.next(),
            created_at: self.ids.clock().now(),
            info: self.info.clone(),
            captured: capture.policies,
            tags: capture.tags,
            state: self.state.clone(),
            other_policies: BTreeMap::new(),
            carried: self.carried.clone(),
            objects: Vec::new(),
            extra: Extra::default(),
        }
    }
}

impl Snapshot {
    /// The snapshot's id.
    pub fn id(&self) -> SnapshotId {
        self.id
    }

    /// Time of the capture.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The session that was captured.
    pub fn session(&self) -> &SessionInfo {
        &self.info
    }

    /// Labels of the snapshot itself.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }

    /// The policies whose slices were captured.
    pub fn captured(&self) -> &BTreeSet<SlicePolicy> {
        &self.captured
    }

    /// Returns the captured items of a slice. There are none if the slice does not exist or its policy was
    /// not captured.
    pub fn all<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        self.cell(S::NAME).map_or_else(|| Ok(Items::default()), |cell| cell.items())
    }

    /// Returns the policy of each slice, including those not captured.
    pub fn policies(&self) -> impl Iterator<Item = (&str, SlicePolicy)> {
        let held = self.state.cells().map(|(name, cell)| (&**name, cell.policy()));
        held.chain(self.other_policies.iter().map(|(name, policy)| (name.as_str(), *policy)))
    }

    /// Computes a digest of the captured slices that are not empty. It does not depend on ids, times, labels,
    /// or which types are known.
    pub fn content_digest(&self) -> Result<Digest, SessionError> {
        let mut content = BTreeMap::new();
        for (name, cell) in self.cells().filter(|(_, cell)| cell.len() > 0) {
            let values: Result<Vec<_>, _> =
                cell.plain_items().map(|item| item.map(|item| item.value)).collect();
            content.insert(&**name, (cell.policy(), values?));
        }
        Digest::of_json(&content).map_err(|source| SessionError::Encode { slice: "(all)".to_owned(), source })
    }

    /// The captured slices.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Cell>)> {
        self.state.cells().filter(|(_, cell)| self.captured.contains(&cell.policy()))
    }

    pub(super) fn cell(&self, name: &str) -> Option<&Arc<Cell>> {
        self.state.cell(name).filter(|cell| self.captured.contains(&cell.policy()))
    }

    pub(super) fn policy_of(&self, name: &str) -> Option<SlicePolicy> {
        self.state.cell(name).map(|cell| cell.policy()).or_else(|| self.other_policies.get(name).copied())
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slices: BTreeMap<_, _> = self.cells().collect();
        let mut shown = formatter.debug_struct("Snapshot");
        shown.field("id", &self.id).field("session", &self.info.id).field("slices", &slices).finish()
    }
}
