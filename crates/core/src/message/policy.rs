//! The names of policies.
//!
//! A policy makes decisions: a model with a prompt, a person, a script. Each message names its policy; the
//! result of an option names the invoked option. A [`PolicyName`] is never empty, has at most
//! [`PolicyName::MAX_BYTES`] bytes and no control characters, so that it fits into a log line or a list of
//! file names.
//!
//! Two names are reserved: `runtime` and `executor` are the author of results that the runtime itself
//! creates, for refused arguments or interrupted calls. [`PolicyName::new`], the constructor for names from
//! users, refuses them. Decoding accepts them, because journals hold them.

use std::sync::Arc;

use super::MessageError;
use crate::text_form::{checked_text, stored_as_text};

const RUNTIME: &str = "runtime";
const EXECUTOR: &str = "executor";

/// The name of a policy, or of an option as the policy behind a result.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyName(Arc<str>);

checked_text!(PolicyName, MessageError);
// Journals hold the reserved names, which `new` and `FromStr` refuse.
stored_as_text!(PolicyName, "a string", PolicyName::parse);

impl PolicyName {
    /// Largest length of a name, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Checks and creates a name from a user. Fails for invalid and for reserved names.
    pub fn new(name: impl AsRef<str>) -> Result<Self, MessageError> {
        let name = Self::parse(name.as_ref())?;
        if name.is_reserved() {
            return Err(MessageError::ReservedPolicyName { name });
        }
        Ok(name)
    }

    /// The name of the runtime as an author. Not for policies.
    pub fn runtime() -> Self {
        Self(RUNTIME.into())
    }

    /// The name of an executor of options other than this runtime, as an author. Not for policies. The
    /// runtime reserves the name and never uses it: the policy of its own results is [`PolicyName::runtime`].
    /// Imported journals and conversations may hold it.
    pub fn executor() -> Self {
        Self(EXECUTOR.into())
    }

    /// Returns whether the name is reserved for the runtime.
    pub fn is_reserved(&self) -> bool {
        matches!(self.as_str(), RUNTIME | EXECUTOR)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses a name of a journal, where reserved names are allowed.
    fn parse(name: &str) -> Result<Self, MessageError> {
        if name.is_empty() {
            return Err(MessageError::EmptyPolicyName);
        }
        if name.len() > Self::MAX_BYTES {
            return Err(MessageError::LongPolicyName { bytes: name.len(), limit: Self::MAX_BYTES });
        }
        if let Some(character) = name.chars().find(|character| character.is_control()) {
            return Err(MessageError::IllegalPolicyName { character });
        }
        Ok(Self(name.into()))
    }
}

impl PartialEq<str> for PolicyName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for PolicyName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_refused_also_when_read() {
        let long = "n".repeat(PolicyName::MAX_BYTES + 1);
        for text in ["", "a\nb", "a\u{0}", "\u{85}", &long] {
            assert!(PolicyName::new(text).is_err(), "{text:?}");
            let json = serde_json::to_string(text).unwrap();
            assert!(serde_json::from_str::<PolicyName>(&json).is_err(), "{json}");
        }
        assert!(PolicyName::new("n".repeat(PolicyName::MAX_BYTES)).is_ok());
        assert_eq!(PolicyName::new("Ada, the planner ✂").unwrap(), "Ada, the planner ✂");
    }

    #[test]
    fn reserved_names_are_refused_to_people_and_read_from_journals() {
        for name in [PolicyName::runtime(), PolicyName::executor()] {
            assert!(name.is_reserved());
            let error = PolicyName::new(&name).unwrap_err();
            assert!(matches!(&error, MessageError::ReservedPolicyName { name: refused } if *refused == name));
            assert!(name.as_str().parse::<PolicyName>().is_err());
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<PolicyName>(&json).unwrap(), name);
        }
        assert!(!PolicyName::new("runtimes").unwrap().is_reserved());
    }
}
