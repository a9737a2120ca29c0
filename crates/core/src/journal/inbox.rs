//! The inbox: messages and requests to a session from outside.
//!
//! A session has one writer. Every other process or user (with another message, an approval, a request to
//! cancel) puts an item into the session's inbox. The writer removes an item together with the batch that
//! records its outcome ([`Batch::take`](super::Batch::take)), so an item is either waiting or journaled,
//! never both or neither.

use std::convert::Infallible;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{EvaluationId, SessionId};
use crate::storable::{self, NotStorable};
use crate::text_form::stored_as_text;
use crate::time::Timestamp;

/// The number of an item in the inboxes of a store. Later items have larger numbers, and none is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InboxId(pub u64);

impl fmt::Display for InboxId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// Kind of an inbox item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InboxKind {
    /// A message to the agent.
    Message,
    /// A decision about a pause of the session.
    Resolution,
    /// A request to end the evaluation.
    Cancel,
    /// A request to pause the session.
    Pause,
    /// A signal that calls may wait for.
    Signal,
    /// A kind that this version does not know.
    Other(String),
}

stored_as_text!(InboxKind, "a string", |word| Ok::<_, Infallible>(word.into()));

impl InboxKind {
    /// The stored word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Message => "message",
            Self::Resolution => "resolution",
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Signal => "signal",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for InboxKind {
    fn from(word: &str) -> Self {
        let known = [Self::Message, Self::Resolution, Self::Cancel, Self::Pause, Self::Signal];
        let known = known.into_iter().find(|kind| kind.as_str() == word);
        known.unwrap_or_else(|| Self::Other(word.to_owned()))
    }
}

impl fmt::Display for InboxKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The field of an item's data that names the sub-agent it is for.
const ADDRESSEE: &str = "for_session";

/// A message or request to a session from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxItem {
    /// Kind, which determines the form of `data`.
    pub kind: InboxKind,
    /// Time at which the item was sent.
    pub at: Timestamp,
    /// Content, in the form of the kind.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl InboxItem {
    /// Creates a message of a user.
    pub fn message(text: impl Into<String>, at: Timestamp) -> Self {
        Self { kind: InboxKind::Message, at, data: Value::String(text.into()) }
    }

    /// Creates a signal, whose value the wait for this name returns.
    pub fn signal(name: impl Into<String>, value: Value, at: Timestamp) -> Self {
        let data = serde_json::json!({ "name": name.into(), "value": value });
        Self { kind: InboxKind::Signal, at, data }
    }

    /// Addresses a decision or a signal to a sub-agent. The outermost session receives it and passes it on, since only that one is
    /// driven.
    #[must_use]
    pub fn for_sub_agent(mut self, session: SessionId) -> Self {
        if let Some(data) = self.data.as_object_mut() {
            data.insert(ADDRESSEE.to_owned(), Value::String(session.to_string()));
        }
        self
    }

    /// Returns the sub-agent that an item is addressed to, and the item for it.
    pub fn to_sub_agent(&self) -> Option<(SessionId, Self)> {
        if !matches!(self.kind, InboxKind::Resolution | InboxKind::Signal) {
            return None;
        }
        let mut item = self.clone();
        let session = item.data.as_object_mut()?.shift_remove(ADDRESSEE)?;
        Some((session.as_str()?.parse().ok()?, item))
    }

    /// Returns the name of a signal.
    pub fn signal_name(&self) -> Option<&str> {
        (self.kind == InboxKind::Signal).then(|| self.data.get("name")?.as_str()).flatten()
    }

    /// Creates a request to cancel or pause one evaluation.
    pub fn about(kind: InboxKind, evaluation: EvaluationId, at: Timestamp) -> Self {
        Self { kind, at, data: serde_json::json!({ "evaluation_id": evaluation }) }
    }

    /// The evaluation that a request is about. Items of older versions name none; they are about the
    /// evaluation that was open then.
    pub fn evaluation(&self) -> Option<EvaluationId> {
        serde_json::from_value(self.data.get("evaluation_id")?.clone()).ok()
    }

    /// Refuses an item that would not survive storage unchanged.
    pub fn check(&self) -> Result<(), NotStorable> {
        storable::check(&self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_known_are_kept() {
        for word in ["message", "resolution", "cancel", "pause", "signal", "nudge"] {
            let kind = InboxKind::from(word);
            assert_eq!(kind.as_str(), word);
            assert_eq!(matches!(kind, InboxKind::Other(_)), word == "nudge");
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<InboxKind>(&text).unwrap(), kind);
        }
    }
}
