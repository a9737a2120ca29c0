//! Records of how sessions begin, pause and go back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Point, Position};
use crate::code::ErrorCode;
use crate::extra::Extra;
use crate::id::{CallId, SessionId};
use crate::message::{Large, OptionResult, large};
use crate::object::ObjectId;
use crate::payload::{Provenance, WorkspaceRoot, large::large_records};
use crate::rng::Seed;
use crate::session::StoredSlice;
use crate::time::Timestamp;

/// The first record of every journal: who the session is and what it starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionCreated {
    /// The session.
    pub session_id: SessionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// Where it comes from.
    #[serde(default)]
    pub origin: Origin,
    /// The seed of all its chance.
    pub seed: Seed,
    /// The resolved definition of the agent, without secrets.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub agent: Value,
    /// What its slices hold at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<StoredSlice>,
    /// What is known of the conversation among them, when the session adopted a snapshot or a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Box<Provenance>>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SessionCreated {
    /// Creates the first record of a session that starts from nothing, without an agent.
    pub fn new(session_id: SessionId, created_at: Timestamp, seed: Seed) -> Self {
        Self {
            session_id,
            created_at,
            origin: Origin::Root,
            seed,
            agent: Value::Null,
            state: Vec::new(),
            adopted: None,
            tags: BTreeMap::new(),
            extra: Extra::default(),
        }
    }
}

/// Where a session comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// It was started by itself.
    #[default]
    Root,
    /// It goes on from a place in another session, whose records before that place are also its own.
    Fork {
        /// The other session.
        session: SessionId,
        /// Everything before this record of the other session is shared.
        position: Position,
    },
    /// It works for a call of another session.
    Call {
        /// The other session.
        session: SessionId,
        /// The call.
        call: CallId,
    },
}

impl Origin {
    /// The session that this one comes from.
    pub fn parent(&self) -> Option<SessionId> {
        match self {
            Self::Root => None,
            Self::Fork { session, .. } | Self::Call { session, .. } => Some(*session),
        }
    }
}

/// The session stops and waits for a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionPaused {
    /// What it waits for.
    pub reason: PauseReason,
    /// The call that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// More about it, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Where a result of the call is recorded that the session has gone back from, and that can be used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Point>,
    /// The session that waits, when it is one that works for the call: what is decided is decided there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SessionPaused {
    /// Creates a pause of the whole session for this reason.
    pub fn new(reason: PauseReason) -> Self {
        Self { reason, call_id: None, detail: None, offer: None, session: None, extra: Extra::default() }
    }

    /// The pause with more about it, for a person.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// The pause as one of this call.
    #[must_use]
    pub fn of_call(self, call: CallId) -> Self {
        Self { call_id: Some(call), ..self }
    }
}

/// What a paused session waits for.
///
/// ```
/// use backstitch_core::journal::PauseReason;
///
/// /// Whether resuming is enough, without a decision or more of anything.
/// fn resumes(reason: PauseReason) -> bool {
///     matches!(reason, PauseReason::Asked | PauseReason::Truncated)
/// }
/// assert!(resumes(PauseReason::Asked) && !resumes(PauseReason::Approval));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A call needs approval.
    Approval,
    /// It is not known whether a call's effect happened.
    EffectUnknown,
    /// The budget is spent.
    Budget,
    /// Someone asked it to.
    Asked,
    /// An answer reached its token limit: it is continued, or taken as it is.
    Truncated,
    /// The evaluation's deadline has passed: it goes on with more time.
    Deadline,
    /// Its files could not be put back: nothing goes on until a person has looked.
    Poisoned,
}

impl PauseReason {
    /// The stable code that explains the pause.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Approval => ErrorCode::Approval,
            Self::EffectUnknown => ErrorCode::EffectUnknown,
            Self::Budget => ErrorCode::Budget,
            Self::Asked => ErrorCode::Asked,
            Self::Truncated => ErrorCode::Truncated,
            Self::Deadline => ErrorCode::Deadline,
            Self::Poisoned => ErrorCode::Poisoned,
        }
    }
}

/// What a paused session waited for was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PauseResolved {
    /// The call that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// What was decided.
    pub decision: Decision,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl PauseResolved {
    /// Creates the decision about a pause of the whole session.
    pub fn new(decision: Decision) -> Self {
        Self { call_id: None, decision, by: None, extra: Extra::default() }
    }

    /// The decision as one about this call, if it is about one.
    #[must_use]
    pub fn of_call(self, call: impl Into<Option<CallId>>) -> Self {
        Self { call_id: call.into(), ..self }
    }

    /// The decision as one that this person or process made, if that is known.
    #[must_use]
    pub fn by(self, by: impl Into<Option<String>>) -> Self {
        Self { by: by.into(), ..self }
    }
}

/// What was decided about a paused session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decision {
    /// Go on.
    Continue,
    /// The answer that reached its token limit is taken as it is.
    Accept,
    /// The call may run.
    Approve,
    /// The call may run with these arguments.
    Edit {
        /// The arguments.
        arguments: serde_json::Map<String, Value>,
    },
    /// The call must not run.
    Deny {
        /// Why, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The call did happen, with this result.
    Happened {
        /// The result.
        result: Box<OptionResult>,
    },
    /// The call is to run again.
    Retry,
    /// The call is to count as failed.
    Fail {
        /// Why, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// The session goes back: what is visible from here on is what was visible at the cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRewound {
    /// The cut: everything before this position, as it was visible then.
    pub to: Position,
    /// What the files are put back to; without it they are left as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<WorkspaceRoot>,
    /// The object that lists what that root does not cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// The workspace as it was found, before it was put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<WorkspaceRoot>,
    /// Why, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SessionRewound {
    /// Creates a rewind to this position that concerns no files.
    pub fn new(to: Position) -> Self {
        Self { to, root: None, coverage: None, rescue: None, reason: None, extra: Extra::default() }
    }
}

/// The files were looked at outside of any call, and this is what they were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkspaceObserved {
    /// What they were.
    pub root: WorkspaceRoot,
    /// The object that lists what the root does not cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// Why they were looked at.
    pub cause: ObservationCause,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl WorkspaceObserved {
    /// Creates an observation of files that the root covers entirely.
    pub fn new(root: WorkspaceRoot, cause: ObservationCause) -> Self {
        Self { root, coverage: None, cause, extra: Extra::default() }
    }
}

/// Why files were looked at outside of any call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationCause {
    /// The session begins with them.
    Started,
    /// They were put back after the session went back. Until this is recorded, that has to be done again.
    Restored,
    /// They are not what they were when the session was last driven.
    Drifted,
    /// They are as found, and are about to be restored: to before a call that was cut off or failed, or to where the session
    /// went back to. In the second case the session still has to restore them.
    Interrupted,
}

/// Something worth keeping that no view needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// What it is about.
    pub topic: String,
    /// What it says, in a line or two.
    pub text: String,
    /// More, as data.
    #[serde(flatten, with = "large::data", skip_serializing_if = "Large::is_null")]
    pub data: Large<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Note {
    /// Creates a note without data.
    pub fn new(topic: impl Into<String>, text: impl Into<String>) -> Self {
        let (topic, text) = (topic.into(), text.into());
        Self { topic, text, data: Value::Null.into(), extra: Extra::default() }
    }

    /// The note with this data.
    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        Self { data: data.into(), ..self }
    }
}

large_records!(Note.data);
