//! JSON encoding of snapshots.
//!
//! The text names each slice, its version and its policy, and holds its items as plain data. Decoding checks
//! size and depth first, constructs nothing by a type's name, and keeps unknown data: a slice without a Rust
//! type is written again, item by item, as it was read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SessionInfo;
use super::cell::{Cell, PlainItem};
use super::error::{SessionError, SnapshotRestoreError};
use super::op;
use super::provenance::CarriedProvenance;
use super::slice::{Slice, SlicePolicy};
use super::snapshot::Snapshot;
use super::state::SliceMap;
use crate::extra::Extra;
use crate::id::SnapshotId;
use crate::json::{JsonLimits, from_bytes};
use crate::object::ObjectId;
use crate::payload::{CarriedObject, Provenance};
use crate::storable;
use crate::time::Timestamp;

/// The version of the stored form that this program writes.
pub const SNAPSHOT_VERSION: u32 = 1;

/// A slice as plain data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredSlice {
    /// The slice's stored name.
    pub name: String,
    /// Version of the items.
    pub version: u32,
    /// The slice's policy.
    pub policy: SlicePolicy,
    /// The items, from first to last.
    pub items: Vec<Value>,
    /// Version of each item, if they differ, as in slices of unknown types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub item_versions: Vec<u32>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl StoredSlice {
    /// Encodes items of a slice as plain data, for a session that starts with them.
    pub fn of<S: Slice>(items: &[Arc<S>]) -> Result<Self, SessionError> {
        let items = items.iter().map(|item| op::encode_item(&**item));
        Ok(Self {
            name: S::NAME.to_owned(),
            version: S::VERSION,
            policy: S::POLICY,
            items: items.collect::<Result<_, _>>()?,
            item_versions: Vec::new(),
            extra: Extra::default(),
        })
    }

    pub(crate) fn from_cell(name: &str, cell: &Cell) -> Result<Self, SessionError> {
        let items = cell.plain_items().collect::<Result<Vec<_>, _>>()?;
        let version = items.iter().map(|item| item.version).max().unwrap_or(1);
        let item_versions = if items.iter().all(|item| item.version == version) {
            Vec::new()
        } else {
            items.iter().map(|item| item.version).collect()
        };
        Ok(Self {
            name: name.to_owned(),
            version,
            policy: cell.policy(),
            items: items.into_iter().map(|item| item.value).collect(),
            item_versions,
            extra: cell.extra().clone(),
        })
    }

    pub(crate) fn into_cell(self) -> Result<Cell, SnapshotRestoreError> {
        let (items, versions) = (self.items.len(), self.item_versions.len());
        if versions != 0 && versions != items {
            return Err(SnapshotRestoreError::ItemVersions { slice: self.name, items, versions });
        }
        let version_of = |position: usize| self.item_versions.get(position).copied().unwrap_or(self.version);
        for item in &self.items {
            storable::check_item(item)
                .map_err(|source| SnapshotRestoreError::NotStorable { slice: self.name.clone(), source })?;
        }
        let items = self.items.into_iter().enumerate();
        let items = items.map(|(position, value)| PlainItem { version: version_of(position), value });
        Ok(Cell::plain(self.policy, items.collect::<Vec<_>>(), self.extra))
    }
}

#[derive(Serialize, Deserialize)]
struct StoredSnapshot {
    version: u32,
    snapshot_id: SnapshotId,
    created_at: Timestamp,
    #[serde(flatten)]
    session: Arc<SessionInfo>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    captured: BTreeSet<SlicePolicy>,
    policies: BTreeMap<String, SlicePolicy>,
    slices: Vec<StoredSlice>,
    /// Provenance from the session's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provenance: Option<Arc<Provenance>>,
    /// Media that the messages refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    objects: Vec<CarriedObject>,
    /// Content that the messages refer to and the snapshot does not hold. It is written for readers, and
    /// computed again on decoding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refers_to: Vec<ObjectId>,
    #[serde(flatten)]
    extra: Extra,
}

impl Snapshot {
    /// Returns the captured slices as plain data, ordered by name. A new session may start from them.
    pub fn stored_slices(&self) -> Result<Vec<StoredSlice>, SessionError> {
        self.cells().map(|(name, cell)| StoredSlice::from_cell(name, cell)).collect()
    }

    /// Encodes the snapshot as JSON. Slices and labels are ordered by name, so that equal snapshots are equal
    /// texts.
    pub fn to_json(&self) -> Result<String, SessionError> {
        let slices = self.stored_slices()?;
        let stored = StoredSnapshot {
            version: SNAPSHOT_VERSION,
            snapshot_id: self.id,
            created_at: self.created_at,
            session: self.info.clone(),
            tags: self.tags.clone(),
            captured: self.captured.clone(),
            policies: self.policies().map(|(name, policy)| (name.to_owned(), policy)).collect(),
            slices,
            provenance: self.provenance(),
            objects: self.objects.clone(),
            // Messages that cannot be decoded are written as they are.
            refers_to: self.refers_to().unwrap_or_default(),
            extra: self.extra.clone(),
        };
        serde_json::to_string(&stored)
            .map_err(|source| SessionError::Encode { slice: "(snapshot)".to_owned(), source })
    }

    /// Decodes a snapshot within the default limits.
    pub fn from_json(text: &str) -> Result<Self, SnapshotRestoreError> {
        Self::from_json_within(text.as_bytes(), JsonLimits::default())
    }

    /// Decodes a snapshot within these limits.
    pub fn from_json_within(text: &[u8], limits: JsonLimits) -> Result<Self, SnapshotRestoreError> {
        /// Decoded first, so that a snapshot of a newer program is refused because of its version and not its
        /// fields.
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        limits.check(text)?;
        let Version { version } = from_bytes(text)?;
        if version != SNAPSHOT_VERSION {
            return Err(SnapshotRestoreError::UnknownVersion { stored: version, known: SNAPSHOT_VERSION });
        }
        let stored: StoredSnapshot = from_bytes(text)?;
        let mut other_policies = stored.policies;
        let mut state = SliceMap::default();
        for slice in stored.slices {
            let name: Arc<str> = slice.name.as_str().into();
            if state.cell(&name).is_some() {
                return Err(SnapshotRestoreError::DuplicateSlice { slice: slice.name });
            }
            let entry = slice.policy;
            if let Some(table) = other_policies.remove(&slice.name)
                && table != entry
            {
                return Err(SnapshotRestoreError::PolicyDisagrees { slice: slice.name, entry, table });
            }
            if !stored.captured.contains(&entry) {
                return Err(SnapshotRestoreError::NotCaptured { slice: slice.name, policy: entry });
            }
            state.put(name, Arc::new(slice.into_cell()?));
        }
        Ok(Self {
            id: stored.snapshot_id,
            created_at: stored.created_at,
            info: stored.session,
            captured: stored.captured,
            tags: stored.tags,
            state,
            other_policies,
            carried: stored.provenance.map_or(CarriedProvenance::Nothing, CarriedProvenance::Stored),
            objects: stored.objects,
            extra: stored.extra,
        })
    }
}
