//! Snapshots of the whole execution state.
//!
//! A [`CompositeSnapshot`] holds the session, each snapshotable resource and the random number generator,
//! captured together, and the reason for the capture. As JSON it can be restored in another process.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::error::ExecutionStateError;
use super::files::WorkspaceResource;
use super::resources::Resources;
use super::snapshotable::ResourceSnapshot;
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::{CallId, SnapshotId};
use crate::json::{JsonLimits, RawFields, from_bytes};
use crate::rng::Rng;
use crate::session::{BoxError, Session, Snapshot, SnapshotRestoreError};
use crate::time::Timestamp;

/// The version of the stored form that this program writes.
pub const COMPOSITE_VERSION: u32 = 2;

/// The reason for a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMetadata {
    /// Free label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The call at whose boundary it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<CallId>,
    /// The tool of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Phase of the call at which it was taken.
    #[serde(default)]
    pub phase: SnapshotPhase,
}

impl SnapshotMetadata {
    /// Creates metadata with a label alone.
    pub fn tag(tag: impl Into<String>) -> Self {
        Self { tag: Some(tag.into()), ..Self::default() }
    }

    /// Creates metadata for a boundary of a call, with the label `pre:` or `post:` and the call's id.
    pub fn of_call(call: CallId, tool: &str, phase: SnapshotPhase) -> Self {
        let tag = match phase {
            SnapshotPhase::PreTool => Some(format!("pre:{call}")),
            SnapshotPhase::PostTool => Some(format!("post:{call}")),
            SnapshotPhase::Checkpoint | SnapshotPhase::Manual => None,
        };
        Self { tag, tool_call_id: Some(call), tool_name: Some(tool.to_owned()), phase }
    }
}

/// Phase of a call at which a snapshot was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotPhase {
    /// Before the call.
    PreTool,
    /// After the call.
    PostTool,
    /// At a checkpoint outside of calls.
    Checkpoint,
    /// On request of the caller.
    #[default]
    Manual,
}

/// The whole execution state at one moment.
#[derive(Debug, Clone)]
pub struct CompositeSnapshot {
    /// Id of the snapshot.
    pub snapshot_id: SnapshotId,
    /// Time of the capture.
    pub created_at: Timestamp,
    /// The session.
    pub session: Snapshot,
    /// The states of the resources, by stored name.
    pub resources: BTreeMap<String, ResourceSnapshot>,
    /// Random number generator.
    pub rng: Option<Rng>,
    /// Reason for the capture.
    pub metadata: SnapshotMetadata,
    /// Fields that this version does not know.
    pub extra: Extra,
}

/// The stored form. Version 1 held the session as JSON text inside of a string.
#[derive(Serialize)]
struct StoredComposite<'a> {
    version: u32,
    snapshot_id: SnapshotId,
    created_at: Timestamp,
    /// A snapshot is a separate document, with its own version.
    session: Box<RawValue>,
    resources: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rng: Option<&'a Rng>,
    metadata: &'a SnapshotMetadata,
    #[serde(flatten)]
    extra: &'a Extra,
}

/// The fields of the stored form except the version and the session.
#[derive(Deserialize)]
struct CompositeRest {
    snapshot_id: SnapshotId,
    created_at: Timestamp,
    #[serde(default)]
    resources: BTreeMap<String, Value>,
    #[serde(default)]
    rng: Option<Rng>,
    #[serde(default)]
    metadata: SnapshotMetadata,
    #[serde(flatten)]
    extra: Extra,
}

impl CompositeSnapshot {
    /// Captures a session and all snapshotable resources.
    pub fn capture(
        session: &Session,
        resources: &Resources,
        metadata: SnapshotMetadata,
    ) -> Result<Self, ExecutionStateError> {
        let resources = resources.snapshotable_resources().map(|resource| {
            let name = resource.name().to_owned();
            match resource.snapshot() {
                Ok(snapshot) => Ok((name, snapshot)),
                Err(source) => Err(ExecutionStateError::Snapshot { resource: name, source }),
            }
        });
        Ok(Self {
            snapshot_id: session.ids().next(),
            created_at: session.ids().clock().now(),
            session: session.snapshot(),
            resources: resources.collect::<Result<_, _>>()?,
            rng: None,
            metadata,
            extra: Extra::default(),
        })
    }

    /// Encodes the snapshot as JSON.
    pub fn to_json(&self) -> Result<String, ExecutionStateError> {
        let stored = || -> Result<String, BoxError> {
            let session = RawValue::from_string(self.session.to_json()?)?;
            let stored = StoredComposite {
                version: COMPOSITE_VERSION,
                snapshot_id: self.snapshot_id,
                created_at: self.created_at,
                session,
                resources: self.resources_by(|_, snapshot| snapshot.to_json())?,
                rng: self.rng.as_ref(),
                metadata: &self.metadata,
                extra: &self.extra,
            };
            let text = serde_json::to_string(&stored)?;
            around(JsonLimits::default()).check(text.as_bytes())?;
            Ok(text)
        };
        stored().map_err(not_composed)
    }

    /// Decodes a snapshot within the default limits.
    pub fn from_json(text: &str) -> Result<Self, SnapshotRestoreError> {
        Self::from_json_within(text.as_bytes(), JsonLimits::default())
    }

    /// Decodes a snapshot within these limits, which also apply to the session's part.
    pub fn from_json_within(text: &[u8], limits: JsonLimits) -> Result<Self, SnapshotRestoreError> {
        around(limits).check(text)?;
        let RawFields(mut fields) = from_bytes(text)?;
        check_names(&fields)?;
        let mut take = |name: &'static str| match fields.iter().position(|(field, _)| field == name) {
            Some(place) => Ok(fields.remove(place).1),
            None => Err(serde_json::Error::missing_field(name)),
        };
        let (version, session) = (take("version")?, take("session")?);
        let session = match serde_json::from_str(version.get())? {
            1 => serde_json::from_str(session.get())?,
            COMPOSITE_VERSION => session.get().to_owned(),
            stored => {
                return Err(SnapshotRestoreError::UnknownVersion { stored, known: COMPOSITE_VERSION });
            }
        };
        let rest: Map<String, Value> = fields
            .into_iter()
            .map(|(name, raw)| Ok((name, serde_json::from_str(raw.get())?)))
            .collect::<Result<_, serde_json::Error>>()?;
        let rest: CompositeRest = serde_json::from_value(Value::Object(rest))?;
        let resources = rest.resources.into_iter();
        Ok(Self {
            snapshot_id: rest.snapshot_id,
            created_at: rest.created_at,
            session: Snapshot::from_json_within(session.as_bytes(), limits)?,
            resources: resources.map(|(name, value)| (name, ResourceSnapshot::Stored(value))).collect(),
            rng: rest.rng,
            metadata: rest.metadata,
            extra: rest.extra,
        })
    }

    /// Computes a digest of the content: session, resources and random number generator. Ids, times and
    /// labels do not count.
    pub fn content_digest(&self) -> Result<Digest, ExecutionStateError> {
        let session = self.session.content_digest()?;
        let resources = self.resources_by(|name, snapshot| {
            let mut value = snapshot.to_json()?;
            // The root names all objects, so objects that are part of the snapshot do not count.
            if let Some(fields) = value.as_object_mut().filter(|_| name == WorkspaceResource::NAME) {
                fields.remove("objects");
            }
            Ok(value)
        })?;
        Digest::of_json(&(session, resources, &self.rng)).map_err(|source| not_composed(source.into()))
    }

    fn resources_by(
        &self,
        part: impl Fn(&str, &ResourceSnapshot) -> Result<Value, BoxError>,
    ) -> Result<BTreeMap<String, Value>, ExecutionStateError> {
        let resources = self.resources.iter().map(|(name, snapshot)| match part(name, snapshot) {
            Ok(value) => Ok((name.clone(), value)),
            Err(source) => Err(ExecutionStateError::Snapshot { resource: name.clone(), source }),
        });
        resources.collect()
    }
}

fn not_composed(source: BoxError) -> ExecutionStateError {
    ExecutionStateError::Snapshot { resource: "(composite)".to_owned(), source }
}

/// Returns the limits of a text that encloses one with these limits.
fn around(limits: JsonLimits) -> JsonLimits {
    JsonLimits { depth: limits.depth.saturating_add(1), ..limits }
}

fn check_names(fields: &[(String, &RawValue)]) -> Result<(), serde_json::Error> {
    let mut names = BTreeSet::new();
    match fields.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(serde_json::Error::custom(format_args!("the field {name:?} occurs twice"))),
        None => Ok(()),
    }
}

/// Returns whether two snapshots hold the same content, regardless of their ids, times and labels.
pub fn snapshots_equivalent(
    one: &CompositeSnapshot,
    other: &CompositeSnapshot,
) -> Result<bool, ExecutionStateError> {
    Ok(one.content_digest()? == other.content_digest()?)
}
