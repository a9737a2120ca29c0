//! Records of calls and requests: the intent before, the outcome after, and what both cost.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::budget::{Amounts, Reservation};
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::{CallId, EvaluationId, ReservationId, SessionId};
use crate::message::{Large, large};
use crate::object::ObjectId;

/// What a call may do to the world outside of the session, and so what may be done about it after a crash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It only reads: it runs again.
    Pure,
    /// It changes only session state and files of the workspace: they are put back and it runs again.
    Workspace,
    /// It changes the world, but twice under one key is once: it runs again with the same key.
    Idempotent,
    /// It changes the world: it never runs again unasked. What is not declared is this.
    #[default]
    External,
}

/// The key under which a call's effect must happen at most once: the session's id and the call's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key of a call.
    pub fn new(session: SessionId, call: CallId) -> Self {
        Self(format!("{session}/{call}"))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The state of a workspace, by content: its files as git would hold them, and what git cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WorkspaceRoot {
    /// The tree.
    pub tree: ObjectId,
    /// What git cannot hold: modes, empty directories, refused names.
    pub manifest: ObjectId,
}

/// The files at one moment: their root, and what was decided about what it does not cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkspaceRevision {
    /// The root.
    pub root: WorkspaceRoot,
    /// The object that lists what the root does not cover.
    pub coverage: Option<ObjectId>,
}

impl WorkspaceRevision {
    /// The files of a record that may have a root.
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
    /// The option.
    pub name: String,
    /// The arguments, where they are not those of the call's message.
    #[serde(flatten, with = "large::arguments")]
    pub arguments: Option<Large<Map<String, Value>>>,
    /// What the call may do.
    pub effect: Effect,
    /// The key of its effect.
    pub idempotency_key: IdempotencyKey,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The workspace before it, for calls that may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<WorkspaceRoot>,
    /// The object that lists what the root does not cover; none when it covers all that can be. It holds until the call ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// What is held back for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// The session that works for it, when the option is another agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An outside sub-step of a call is done. A call that runs again gets its value from here instead of doing it twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFinished {
    /// The call.
    pub call_id: CallId,
    /// The step, by a name that is its own within the call.
    pub name: String,
    /// What it gave.
    pub value: Value,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl StepFinished {
    /// Creates the end of a sub-step.
    pub fn new(call_id: CallId, name: impl Into<String>, value: Value) -> Self {
        Self { call_id, name: name.into(), value, extra: Extra::default() }
    }
}

/// A process that a call starts. It is recorded before the program does anything, so that whoever takes over after a crash can
/// end what is left of it. A number alone would not do: numbers are given out again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStarted {
    /// The call.
    pub call_id: CallId,
    /// The program, for people.
    pub program: String,
    /// The process group, which is also the number of its first process.
    pub group: u32,
    /// When the first process started, as the system tells it.
    pub started: String,
    /// Which start of the system that time belongs to.
    pub boot: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call has ended. It is the last record of its batch that belongs to the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallFinished {
    /// The call.
    pub call_id: CallId,
    /// Whether its changes stand.
    pub outcome: CallVerdict,
    /// The workspace after it, for calls that may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<WorkspaceRoot>,
    /// The object that lists what that root, or the rescue, does not cover; none when it covers all that can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// The workspace as a failed call left it, before it was put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<WorkspaceRoot>,
    /// What a failed call left and the rescue does not hold, because it was too much; of very many, the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OmittedFile>,
    /// How long it took, in microseconds.
    pub elapsed_micros: u64,
    /// A line about its result, for lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CallFinished {
    /// Creates the end of a call that took no time and left no files.
    pub fn new(call_id: CallId, outcome: CallVerdict) -> Self {
        Self {
            call_id,
            outcome,
            root: None,
            coverage: None,
            rescue: None,
            left_out: Vec::new(),
            elapsed_micros: 0,
            summary: None,
            extra: Extra::default(),
        }
    }
}

/// Something that was not kept before files were put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedFile {
    /// Where it was.
    pub path: String,
    /// How large it was, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Whether a call's changes stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallVerdict {
    /// They do.
    Succeeded,
    /// They were rolled back.
    Failed,
}

/// A model is about to be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestStarted {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The number that the response will have.
    pub turn: u64,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The digest of the rendered request. The request itself is not kept: it can be rendered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The length of the rendered request, in bytes.
    #[serde(default)]
    pub length: u64,
    /// The version of what rendered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renderer: Option<String>,
    /// What is held back for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Something was paid for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetCharged {
    /// The reservation that this settles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationId>,
    /// What was paid.
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
