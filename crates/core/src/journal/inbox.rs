//! The inbox: what is said to a session from outside.
//!
//! A session has one writer, and whoever else wants something of it (a person with another message, an approval, a wish to
//! cancel) puts an item into its inbox. The writer takes items in with the batch that says what came of them
//! ([`Batch::take`](super::Batch::take)), so an item is either waiting or journaled, and never both or neither.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::id::EvaluationId;
use crate::storable::{self, NotStorable};
use crate::time::Timestamp;

/// The number of an item in the inboxes of a store. A later item has a larger one, and none is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InboxId(pub u64);

impl fmt::Display for InboxId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// What an item in an inbox is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InboxKind {
    /// A message to the agent.
    Message,
    /// A decision about what the session waits for.
    Resolution,
    /// The wish that the evaluation ends.
    Cancel,
    /// The wish that the session pauses.
    Pause,
    /// Something that is not known here.
    Other(String),
}

impl InboxKind {
    /// The stored word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Message => "message",
            Self::Resolution => "resolution",
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for InboxKind {
    fn from(word: &str) -> Self {
        let known = [Self::Message, Self::Resolution, Self::Cancel, Self::Pause];
        let known = known.into_iter().find(|kind| kind.as_str() == word);
        known.unwrap_or_else(|| Self::Other(word.to_owned()))
    }
}

impl FromStr for InboxKind {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(word.into())
    }
}

impl fmt::Display for InboxKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for InboxKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for InboxKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Ok((*word).into())
    }
}

/// Something that was said to a session from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxItem {
    /// What it is.
    pub kind: InboxKind,
    /// When it was sent.
    pub at: Timestamp,
    /// What it says, in the form of its kind.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl InboxItem {
    /// A wish about one evaluation: that it is cancelled, or that it pauses.
    pub fn about(kind: InboxKind, evaluation: EvaluationId, at: Timestamp) -> Self {
        Self { kind, at, data: serde_json::json!({ "evaluation_id": evaluation }) }
    }

    /// The evaluation that a wish is about. Items of older versions name none: they are about the one that was open then.
    pub fn evaluation(&self) -> Option<EvaluationId> {
        serde_json::from_value(self.data.get("evaluation_id")?.clone()).ok()
    }

    /// Refuses an item that would not come back as it is.
    pub fn check(&self) -> Result<(), NotStorable> {
        storable::check(&self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_known_are_kept() {
        for word in ["message", "resolution", "cancel", "pause", "nudge"] {
            let kind = InboxKind::from(word);
            assert_eq!(kind.as_str(), word);
            assert_eq!(matches!(kind, InboxKind::Other(_)), word == "nudge");
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<InboxKind>(&text).unwrap(), kind);
        }
    }
}
