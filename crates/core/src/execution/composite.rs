//! A snapshot of everything.
//!
//! A [`CompositeSnapshot`] holds the session, each snapshotable resource and the generator of chance, taken together, with
//! why it was taken. As JSON it can be restored in another process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::ExecutionStateError;
use super::snapshotable::ResourceSnapshot;
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::{CallId, SnapshotId};
use crate::json::JsonLimits;
use crate::rng::Rng;
use crate::session::{BoxError, Snapshot, SnapshotRestoreError};
use crate::time::Timestamp;

/// The version of the stored form that this program writes.
pub const COMPOSITE_VERSION: u32 = 1;

/// Why a snapshot was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMetadata {
    /// A free label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The call at whose boundary it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<CallId>,
    /// The tool of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// When in the life of a call it was taken.
    #[serde(default)]
    pub phase: SnapshotPhase,
}

impl SnapshotMetadata {
    /// Just a label.
    pub fn tag(tag: impl Into<String>) -> Self {
        Self { tag: Some(tag.into()), ..Self::default() }
    }

    /// A boundary of a call.
    pub fn of_call(call: CallId, tool: &str, phase: SnapshotPhase) -> Self {
        Self { tag: None, tool_call_id: Some(call), tool_name: Some(tool.to_owned()), phase }
    }
}

/// When in the life of a call a snapshot was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotPhase {
    /// Before it.
    PreTool,
    /// After it.
    PostTool,
    /// At a checkpoint of its own.
    Checkpoint,
    /// Because someone asked.
    #[default]
    Manual,
}

/// Everything, as it was at one moment.
#[derive(Debug, Clone)]
pub struct CompositeSnapshot {
    /// Names the snapshot.
    pub snapshot_id: SnapshotId,
    /// When it was taken.
    pub created_at: Timestamp,
    /// The session.
    pub session: Snapshot,
    /// The resources, by stored name.
    pub resources: BTreeMap<String, ResourceSnapshot>,
    /// The generator of chance.
    pub rng: Option<Rng>,
    /// Why it was taken.
    pub metadata: SnapshotMetadata,
    /// Fields that this version does not know.
    pub extra: Extra,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    snapshot_id: SnapshotId,
    created_at: Timestamp,
    /// A snapshot is a document of its own, with its own version, so it is kept as one.
    session: String,
    #[serde(default)]
    resources: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rng: Option<Rng>,
    #[serde(default)]
    metadata: SnapshotMetadata,
    #[serde(flatten)]
    extra: Extra,
}

impl CompositeSnapshot {
    /// The snapshot as JSON.
    pub fn to_json(&self) -> Result<String, ExecutionStateError> {
        let stored = Stored {
            version: COMPOSITE_VERSION,
            snapshot_id: self.snapshot_id,
            created_at: self.created_at,
            session: self.session.to_json()?,
            resources: self.resources_by(ResourceSnapshot::to_json)?,
            rng: self.rng.clone(),
            metadata: self.metadata.clone(),
            extra: self.extra.clone(),
        };
        serde_json::to_string(&stored).map_err(|source| ExecutionStateError::Snapshot {
            resource: "(composite)".to_owned(),
            source: source.into(),
        })
    }

    /// Reads a snapshot within the default limits.
    pub fn from_json(text: &str) -> Result<Self, SnapshotRestoreError> {
        Self::from_json_within(text.as_bytes(), JsonLimits::default())
    }

    /// Reads a snapshot within these limits, which also hold for the session's part.
    pub fn from_json_within(text: &[u8], limits: JsonLimits) -> Result<Self, SnapshotRestoreError> {
        limits.check(text)?;
        let stored: Stored = serde_json::from_slice(text)?;
        if stored.version != COMPOSITE_VERSION {
            let known = COMPOSITE_VERSION;
            return Err(SnapshotRestoreError::UnknownVersion { stored: stored.version, known });
        }
        let resources = stored.resources.into_iter();
        Ok(Self {
            snapshot_id: stored.snapshot_id,
            created_at: stored.created_at,
            session: Snapshot::from_json_within(stored.session.as_bytes(), limits)?,
            resources: resources.map(|(name, value)| (name, ResourceSnapshot::Stored(value))).collect(),
            rng: stored.rng,
            metadata: stored.metadata,
            extra: stored.extra,
        })
    }

    /// A digest of the content: session, resources and chance. Ids, times and labels do not count.
    pub fn content_digest(&self) -> Result<Digest, ExecutionStateError> {
        let session = self.session.content_digest()?;
        Digest::of_json(&(session, self.resources_by(ResourceSnapshot::content)?, &self.rng)).map_err(
            |source| ExecutionStateError::Snapshot {
                resource: "(composite)".to_owned(),
                source: source.into(),
            },
        )
    }

    fn resources_by(
        &self,
        part: fn(&ResourceSnapshot) -> Result<Value, BoxError>,
    ) -> Result<BTreeMap<String, Value>, ExecutionStateError> {
        let resources = self.resources.iter().map(|(name, snapshot)| match part(snapshot) {
            Ok(value) => Ok((name.clone(), value)),
            Err(source) => Err(ExecutionStateError::Snapshot { resource: name.clone(), source }),
        });
        resources.collect()
    }
}

/// Whether two snapshots hold the same content, whenever and by whomever they were taken.
pub fn snapshots_equivalent(
    one: &CompositeSnapshot,
    other: &CompositeSnapshot,
) -> Result<bool, ExecutionStateError> {
    Ok(one.content_digest()? == other.content_digest()?)
}
