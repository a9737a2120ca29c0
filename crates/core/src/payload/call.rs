//! Records of calls and requests: the intent before, the outcome after, and the cost of both.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::changes::CallChanges;
use super::effect::Effect;
use crate::budget::{Amounts, Reservation};
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::{CallId, EvaluationId, ReservationId, SessionId};
use crate::message::{Large, large};
use crate::object::ObjectId;

/// The key under which a call's effect must happen at most once: the ids of the session and of the call.
///
/// ```
/// use backstitch_core::id::{CallId, SessionId};
/// use backstitch_core::journal::IdempotencyKey;
///
/// let session: SessionId = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse()?;
/// let call: CallId = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1e".parse()?;
/// let key = IdempotencyKey::new(session, call);
/// assert_eq!(key.to_string(), format!("{session}/{call}"));
/// assert_eq!((key.session(), key.call()), (Some(session), Some(call)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Creates the key of a call.
    pub fn new(session: SessionId, call: CallId) -> Self {
        Self(format!("{session}/{call}"))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the session that the call was made in first. `None` for a key in another form.
    pub fn session(&self) -> Option<SessionId> {
        self.0.split_once('/')?.0.parse().ok()
    }

    /// Returns the call. `None` for a key in another form.
    pub fn call(&self) -> Option<CallId> {
        self.0.split_once('/')?.1.parse().ok()
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The state of a workspace, by content: its files in git's format, and a manifest of what git cannot
/// represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceRoot {
    /// The tree.
    pub tree: ObjectId,
    /// Manifest of what git cannot represent: modes, empty directories, refused names.
    pub manifest: ObjectId,
}

/// The files at one moment: their root, and the coverage of that root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkspaceRevision {
    /// The root.
    pub root: WorkspaceRoot,
    /// The object that lists the paths that the root does not cover.
    pub coverage: Option<ObjectId>,
}

impl WorkspaceRevision {
    /// Returns the files of a record that may have a root.
    pub fn of(root: Option<WorkspaceRoot>, coverage: Option<ObjectId>) -> Option<Self> {
        root.map(|root| Self { root, coverage })
    }
}

/// The durable intent: a call is about to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The call.
    pub call_id: CallId,
    /// The evaluation that it belongs to.
    pub evaluation_id: EvaluationId,
    /// Name of the option.
    pub name: String,
    /// The arguments, if they differ from those of the call's message.
    #[serde(flatten, with = "large::arguments")]
    pub arguments: Option<Large<Map<String, Value>>>,
    /// Effect class of the call.
    pub effect: Effect,
    /// Idempotency key of the call.
    pub idempotency_key: IdempotencyKey,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The workspace before the call, for calls that may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<WorkspaceRoot>,
    /// The object that lists the paths that the root does not cover; none if everything coverable is covered.
    /// It applies until the call ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// Budget held back for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// The child session of the call, if the option is a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An external step of a call is done. A call that runs again uses the recorded value instead of repeating
/// the step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFinished {
    /// The call.
    pub call_id: CallId,
    /// Name of the step, unique within the call.
    pub name: String,
    /// Value of the step.
    pub value: Value,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl StepFinished {
    /// Creates the end of a step.
    pub fn new(call_id: CallId, name: impl Into<String>, value: Value) -> Self {
        Self { call_id, name: name.into(), value, extra: Extra::default() }
    }
}

/// A process that a call starts. It is recorded before the program does anything, so that the next process
/// that drives the session after a crash can kill the rest of it. A process id alone is not enough, because
/// ids are reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStarted {
    /// The call.
    pub call_id: CallId,
    /// Name of the program, for people.
    pub program: String,
    /// The process group, which is also the id of its first process.
    pub group: u32,
    /// Start time of the first process, in the system's own format.
    pub started: String,
    /// The boot of the system that the start time refers to.
    pub boot: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call has ended. This is the last record of the call in its batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallFinished {
    /// The call.
    pub call_id: CallId,
    /// Whether its changes are kept.
    pub outcome: CallVerdict,
    /// The workspace after the call, for calls that may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<WorkspaceRoot>,
    /// The object that lists the paths that the root, or the rescue, does not cover; none if everything
    /// coverable is covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// The workspace as a failed call left it, before the restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<WorkspaceRoot>,
    /// Files of a failed call that the rescue omits because of their size. Only the first of very many are
    /// listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OmittedFile>,
    /// The paths in which the files before the call differ from those after it, or from the rescue. None for calls of
    /// older versions, calls that changed nothing, and those whose files could not be compared: the roots say the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<CallChanges>,
    /// Duration of the call, in microseconds.
    pub elapsed_micros: u64,
    /// One-line summary of the result, for lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CallFinished {
    /// Creates the end of a call without duration and files.
    pub fn new(call_id: CallId, outcome: CallVerdict) -> Self {
        Self {
            call_id,
            outcome,
            root: None,
            coverage: None,
            rescue: None,
            left_out: Vec::new(),
            changes: None,
            elapsed_micros: 0,
            summary: None,
            extra: Extra::default(),
        }
    }
}

/// A file that was not saved before a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OmittedFile {
    /// Path in the workspace.
    pub path: String,
    /// Size of the file, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Whether a call's changes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallVerdict {
    /// The changes are kept.
    Succeeded,
    /// The changes were rolled back.
    Failed,
}

/// A request is about to be sent to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestStarted {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Number of the response.
    pub turn: u64,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Digest of the rendered request. The request itself is not stored: it can be rendered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Length of the rendered request, in bytes.
    #[serde(default)]
    pub length: u64,
    /// Version of the renderer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renderer: Option<String>,
    /// Budget held back for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Costs were charged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetCharged {
    /// The reservation that the charge settles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationId>,
    /// Amounts charged.
    pub amounts: Amounts,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl BudgetCharged {
    /// Creates a charge, which ends the reservation if there is one.
    pub fn new(reservation: Option<ReservationId>, amounts: Amounts) -> Self {
        Self { reservation, amounts, extra: Extra::default() }
    }
}
