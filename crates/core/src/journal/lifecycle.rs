//! Records of the creation, pauses and rewinds of sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Point, Position};
use crate::code::ErrorCode;
use crate::extra::Extra;
use crate::id::{CallId, SessionId};
use crate::message::{Large, OptionResult, large};
use crate::object::ObjectId;
use crate::payload::{ApprovalSubject, Provenance, Wait, WorkspaceRoot, large::large_records};
use crate::rng::Seed;
use crate::session::StoredSlice;
use crate::time::Timestamp;

/// The first record of every journal: the identity of the session and its initial state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionCreated {
    /// Id of the session itself.
    pub session_id: SessionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// Relation to another session, if there is one.
    #[serde(default)]
    pub origin: Origin,
    /// For a fork, the length of the other session's journal when it was forked. Forks of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_head: Option<Position>,
    /// For a fork, the directory that its files were restored into, where the definition of the agent does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Seed of all random numbers of the session.
    pub seed: Seed,
    /// The resolved definition of the agent, without secrets.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub agent: Value,
    /// Initial content of the slices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<StoredSlice>,
    /// Provenance of the initial conversation, if the session adopted a snapshot or a conversation.
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
            parent_head: None,
            directory: None,
            seed,
            agent: Value::Null,
            state: Vec::new(),
            adopted: None,
            tags: BTreeMap::new(),
            extra: Extra::default(),
        }
    }
}

/// Relation of a session to the one that created it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// The session is independent.
    #[default]
    Root,
    /// The session continues another one from a position. It shares the records before that position.
    Fork {
        /// The other session.
        session: SessionId,
        /// The first record of the other session that is not shared.
        position: Position,
    },
    /// The session is a child session of a call.
    Call {
        /// The parent session.
        session: SessionId,
        /// The call of the parent.
        call: CallId,
    },
}

impl Origin {
    /// Whether the session was started by itself.
    pub fn is_root(&self) -> bool {
        matches!(self, Self::Root)
    }

    /// Returns the parent or the forked session.
    pub fn parent(&self) -> Option<SessionId> {
        match self {
            Self::Root => None,
            Self::Fork { session, .. } | Self::Call { session, .. } => Some(*session),
        }
    }
}

/// The session pauses and waits for a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionPaused {
    /// Reason for the pause.
    pub reason: PauseReason,
    /// The call that needs the decision, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// Details for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Position of a result of the same call, or of the call that it repeats, that was discarded and can be reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Point>,
    /// The discarded call whose effect outside the call would repeat, if that is another call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<CallId>,
    /// The session that waits, if it is a child session of the call. The decision is made there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Whether files changed while the machine was restarted, so that a person has to decide whether to keep
    /// or restore them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files_changed: bool,
    /// What the person is asked about, if a call needs approval. Questions of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ApprovalSubject>,
    /// Paths of files about which a person has to decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What the call waits for, if it waits for neither a decision nor more of anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The most files that a pause lists.
const MOST_DOUBTFUL: usize = 1_000;

impl SessionPaused {
    /// Creates a pause of the whole session for this reason.
    pub fn new(reason: PauseReason) -> Self {
        Self {
            reason,
            call_id: None,
            detail: None,
            offer: None,
            repeats: None,
            session: None,
            files_changed: false,
            subject: None,
            files: Vec::new(),
            wait: None,
            extra: Extra::default(),
        }
    }

    /// Creates the pause of a session whose files changed while the machine was restarted.
    pub fn of_changed_files() -> Self {
        let detail = "files changed while the machine was restarted: decide whether to keep or restore them";
        Self { files_changed: true, ..Self::new(PauseReason::Asked).with_detail(detail) }
    }

    /// Creates the pause of a session with an interrupted call, if it is unknown whether the call or others changed these files.
    /// Only the first thousand are listed.
    pub fn of_doubtful_files(mut files: Vec<String>) -> Self {
        let named = match &files[..] {
            [one] => one.clone(),
            [first, others @ ..] => format!("{first} and {} more", others.len()),
            [] => "files".to_owned(),
        };
        let detail = format!("it is unknown whether the interrupted call or others changed {named}");
        files.truncate(MOST_DOUBTFUL);
        Self { files, ..Self::new(PauseReason::Files).with_detail(detail) }
    }

    /// Creates the pause of a call that waits for a time or a signal.
    pub fn of_wait(call: CallId, name: &str, wait: Wait) -> Self {
        let detail = format!("{name} waits {wait}");
        Self { wait: Some(wait), ..Self::new(PauseReason::Wait).of_call(call).with_detail(detail) }
    }

    /// Adds details for a person.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// Limits the pause to one call.
    #[must_use]
    pub fn of_call(self, call: CallId) -> Self {
        Self { call_id: Some(call), ..self }
    }

    /// Says what the person is asked about.
    #[must_use]
    pub fn about(self, subject: ApprovalSubject) -> Self {
        Self { subject: Some(subject), ..self }
    }
}

/// Reason for a pause.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A call needs approval.
    Approval,
    /// It is unknown whether a call took effect.
    EffectUnknown,
    /// The budget is spent.
    Budget,
    /// A user or process requested the pause.
    Asked,
    /// An answer reached its token limit. It can be continued, or accepted as it is.
    Truncated,
    /// The deadline of the evaluation has passed. It needs more time to continue.
    Deadline,
    /// It is unknown whether an interrupted call or others changed files. A person decides whether to restore or keep them.
    Files,
    /// A call waits for a time or a signal. Nobody has to decide, and the call runs again once that has come.
    Wait,
    /// The files could not be restored. A person has to check them before the session continues.
    Poisoned,
}

impl PauseReason {
    /// Whether the session waits for a decision about a call.
    pub fn is_about_call(self) -> bool {
        matches!(self, Self::Approval | Self::EffectUnknown)
    }

    /// Whether answers of a person can end the pause, and the session continues with them.
    pub fn is_askable(self) -> bool {
        self.is_about_call() || matches!(self, Self::Asked | Self::Files)
    }

    /// The stable code that explains the pause.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Approval => ErrorCode::Approval,
            Self::EffectUnknown => ErrorCode::EffectUnknown,
            Self::Budget => ErrorCode::Budget,
            Self::Asked => ErrorCode::Asked,
            Self::Truncated => ErrorCode::Truncated,
            Self::Deadline => ErrorCode::Deadline,
            Self::Files => ErrorCode::Files,
            Self::Wait => ErrorCode::Waiting,
            Self::Poisoned => ErrorCode::Poisoned,
        }
    }
}

/// A decision about a pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PauseResolved {
    /// The call that the decision is about, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The decision itself.
    pub decision: Decision,
    /// Person or process that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What the approval is about. The call does not run if that has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ApprovalSubject>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl PauseResolved {
    /// Creates the decision about a pause of the whole session.
    pub fn new(decision: Decision) -> Self {
        Self { call_id: None, decision, by: None, subject: None, extra: Extra::default() }
    }

    /// Limits the decision to one call, if there is one.
    #[must_use]
    pub fn of_call(self, call: impl Into<Option<CallId>>) -> Self {
        Self { call_id: call.into(), ..self }
    }

    /// Names the person or process that decided, if it is known.
    #[must_use]
    pub fn by(self, by: impl Into<Option<String>>) -> Self {
        Self { by: by.into(), ..self }
    }

    /// Returns the author of a decision that an approval rule made.
    pub fn rule_author(rule: impl std::fmt::Display) -> String {
        format!("{RULE}{rule}")
    }

    /// Returns whether a person let the call run. An approval of a rule holds only as long as there is the rule.
    pub fn is_approval_of_person(&self) -> bool {
        let is_rule = self.by.as_ref().is_some_and(|by| by.starts_with(RULE));
        !is_rule && matches!(self.decision, Decision::Approve | Decision::Edit { .. })
    }
}

/// The author of a decision that a rule made begins with this.
const RULE: &str = "rule ";

/// Decisions about a paused session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decision {
    /// Continue the evaluation.
    Continue,
    /// Accept the answer that reached its token limit.
    Accept,
    /// Run the call.
    Approve,
    /// Run the call with other arguments.
    Edit {
        /// Arguments that replace those of the model.
        arguments: serde_json::Map<String, Value>,
    },
    /// Do not run the call.
    Deny {
        /// Reason, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The call took effect, with this result.
    Happened {
        /// The result.
        result: Box<OptionResult>,
    },
    /// Run the call again.
    Retry,
    /// Mark the call as failed.
    Fail {
        /// Reason, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// The session is rewound: from this record on, only records that were visible at the cut are visible.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionRewound {
    /// The cut: everything before this position that was visible then.
    pub to: Position,
    /// Root that the files are restored to. Without one they are left unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<WorkspaceRoot>,
    /// The object that lists the paths that the root does not cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// State of the workspace before the restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<WorkspaceRoot>,
    /// Reason, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Position of the rewind that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Position>,
    /// Position of the rewind that was undone and that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redoes: Option<Position>,
    /// Call of a caller outside that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// Whether a restore of files alone has undone what open calls did. A rewind of the conversation does so without this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_calls: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SessionRewound {
    /// Creates a rewind to this position that concerns no files.
    pub fn new(to: Position) -> Self {
        Self { to, ..Self::default() }
    }
}

/// The files were captured outside of any call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkspaceObserved {
    /// State of the files.
    pub root: WorkspaceRoot,
    /// The object that lists the paths that the root does not cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ObjectId>,
    /// Reason for the capture.
    pub cause: ObservationCause,
    /// The files before an interrupted call, if they are restored next. What others have changed since stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<WorkspaceRoot>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl WorkspaceObserved {
    /// Creates an observation of files that the root covers entirely.
    pub fn new(root: WorkspaceRoot, cause: ObservationCause) -> Self {
        Self { root, coverage: None, cause, restored: None, extra: Extra::default() }
    }
}

/// Reason for a capture outside of any call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationCause {
    /// The session starts with these files.
    Started,
    /// The files were restored after a rewind. Until this is recorded, the restore has to be repeated.
    Restored,
    /// The files differ from those at the end of the last run of the session.
    Drifted,
    /// The state of the files before a restore, either to the point before an interrupted or failed call, or
    /// to the target of a rewind. In the second case the restore is still pending.
    Interrupted,
}

/// Information that is recorded although no view needs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Subject of the note.
    pub topic: String,
    /// Text of one or two lines.
    pub text: String,
    /// Structured details.
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

    /// Adds structured details.
    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        Self { data: data.into(), ..self }
    }
}

large_records!(Note.data);
