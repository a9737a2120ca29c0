//! Names of tools.

use std::fmt;
use std::sync::Arc;

use crate::message::PolicyName;
use crate::text_form::stored_as_text;

/// The name of a tool: 1 to 64 ASCII letters, digits, `_` or `-`. Every provider accepts such names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

stored_as_text!(ToolName, "a string", ToolName::new);

/// The text is not a valid name of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a name of a tool: {reason}")]
pub struct InvalidToolName {
    /// The rejected name.
    pub name: String,
    /// The rule that the name breaks.
    pub reason: &'static str,
}

impl ToolName {
    /// Largest length of a name.
    pub const MAX_LENGTH: usize = 64;

    /// Checks and creates a name.
    pub fn new(name: &str) -> Result<Self, InvalidToolName> {
        let refuse = |reason| InvalidToolName { name: name.chars().take(80).collect(), reason };
        if name.is_empty() || name.len() > Self::MAX_LENGTH {
            return Err(refuse("it has 1 to 64 characters"));
        }
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
            return Err(refuse("it consists of ASCII letters, digits, `_` and `-`"));
        }
        // A result has the name of its tool as its policy, so a tool must not have the name of the runtime.
        if PolicyName::new(name).is_err() {
            return Err(refuse("it is kept for the runtime"));
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_providers_accept() {
        for name in ["a", "read_file", "Search-2", &"x".repeat(64)] {
            assert_eq!(ToolName::new(name).unwrap().as_str(), name);
        }
        for name in ["", "a b", "a.b", "é", "runtime", "executor", &"x".repeat(65)] {
            assert!(ToolName::new(name).is_err(), "{name}");
        }
    }
}
