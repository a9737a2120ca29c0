//! Snapshots: what a session held at one moment.
//!
//! Taking one is a clone in constant time, whatever the session holds. A default snapshot captures State and Journal
//! slices, which is enough to resume from; [`CaptureOptions`] asks for more or less. As JSON ([`super::stored`]) a snapshot
//! survives the process, and slices of types that the reader does not know survive it too.

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

/// What a snapshot captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    pub(super) policies: BTreeSet<SlicePolicy>,
    pub(super) tags: BTreeMap<String, String>,
}

impl Default for CaptureOptions {
    /// State and Journal slices: what is needed to resume.
    fn default() -> Self {
        Self::policies([SlicePolicy::State, SlicePolicy::Journal])
    }
}

impl CaptureOptions {
    /// Slices of these policies only.
    pub fn policies(policies: impl IntoIterator<Item = SlicePolicy>) -> Self {
        Self { policies: policies.into_iter().collect(), tags: BTreeMap::new() }
    }

    /// Slices of all policies.
    pub fn include_all() -> Self {
        Self::policies(SlicePolicy::ALL)
    }

    /// Labels the snapshot, beside the labels of its session.
    #[must_use]
    pub fn tag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(name.into(), value.into());
        self
    }
}

/// What a session held at one moment.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) id: SnapshotId,
    pub(super) created_at: Timestamp,
    pub(super) info: Arc<SessionInfo>,
    pub(super) captured: BTreeSet<SlicePolicy>,
    pub(super) tags: BTreeMap<String, String>,
    /// The whole state of the session, of which only slices with a captured policy count. Not filtering it is what makes
    /// taking a snapshot cheap.
    pub(super) state: SliceMap,
    /// Policies of slices that a stored snapshot knew of but did not capture.
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

    /// Captures the slices that `capture` names.
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

    /// When it was taken.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The session that it was taken of.
    pub fn session(&self) -> &SessionInfo {
        &self.info
    }

    /// The snapshot's own labels.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }

    /// The policies whose slices were captured.
    pub fn captured(&self) -> &BTreeSet<SlicePolicy> {
        &self.captured
    }

    /// The items of a slice as they were then. Without the slice, or when its policy was not captured, there are none.
    pub fn all<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        self.cell(S::NAME).map_or_else(|| Ok(Items::default()), |cell| cell.items())
    }

    /// The policy of each slice, of those not captured too.
    pub fn policies(&self) -> impl Iterator<Item = (&str, SlicePolicy)> {
        let held = self.state.cells().map(|(name, cell)| (&**name, cell.policy()));
        held.chain(self.other_policies.iter().map(|(name, policy)| (name.as_str(), *policy)))
    }

    /// A digest of the content: the captured slices that are not empty. Ids, times and labels do not count, and neither does
    /// whether the types of the slices are known here.
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
