//! Coverage of a root, as a value.
//!
//! Some paths are never covered: the workspace's own repository, the runtime's files, and paths that
//! configured patterns exclude. Others are decided by a capture: paths that are too large, ignored and over
//! budget, special, unreadable or nested too deeply. These decisions are a [`Coverage`]. It is fixed from the
//! start of a call to its end, so that a rollback is exact: covered paths are restored even if they have
//! exceeded a limit since, new paths are deleted even if they could not have been captured, and uncovered
//! paths are not touched.

use std::collections::BTreeMap;

use backstitch_core::object::Object;
use backstitch_core::ports::{UncoveredPath, UncoveredReason};
use backstitch_filesystem::format::names::{decode, encode, is_path, shown};
use serde::{Deserialize, Serialize};

use crate::git_head::GitHead;

const VERSION: u64 = 1;

/// Paths that a capture omitted, with the reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    paths: BTreeMap<Vec<u8>, UncoveredReason>,
}

/// The bytes are not a valid coverage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCoverage {
    /// The JSON has the wrong shape.
    #[error("it cannot be decoded as a coverage")]
    Json(#[source] serde_json::Error),
    /// The version is unknown.
    #[error("its version is {version}, but only {VERSION} is supported")]
    Version {
        /// Version number in the JSON.
        version: u64,
    },
    /// A path is invalid.
    #[error("{path:?} is not a path below a workspace")]
    Path {
        /// Text of the invalid path.
        path: String,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredCoverage {
    v: u64,
    uncovered: Vec<(String, UncoveredReason)>,
    /// Head of the workspace's own repository, which is not covered either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    git: Option<GitHead>,
}

impl Coverage {
    pub(crate) fn insert(&mut self, path: &[u8], reason: UncoveredReason) {
        self.paths.insert(path.to_vec(), reason);
    }

    /// Reason why a path is not covered, or `None` if this value does not exclude it.
    pub(crate) fn reason(&self, path: &[u8]) -> Option<UncoveredReason> {
        if self.paths.is_empty() { None } else { self.paths.get(path).copied() }
    }

    /// Returns the part that the next capture keeps without checking again.
    pub(crate) fn sticky(&self) -> Self {
        let kept = self.paths.iter().filter(|(_, reason)| **reason == UncoveredReason::IgnoredBudget);
        Self { paths: kept.map(|(path, reason)| (path.clone(), *reason)).collect() }
    }

    /// Returns whether no path was omitted.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Lists the bytes of the paths whose content is not covered, with the reasons.
    pub(crate) fn omitted(&self) -> impl Iterator<Item = (&Vec<u8>, UncoveredReason)> {
        let omitted = self.paths.iter().filter(|(_, reason)| !reason.covers_content());
        omitted.map(|(path, reason)| (path, *reason))
    }

    /// Lists the omitted paths in order.
    pub fn uncovered(&self) -> impl Iterator<Item = UncoveredPath> {
        self.paths.iter().map(|(path, reason)| UncoveredPath {
            path: shown(path),
            reason: *reason,
            bytes: None,
        })
    }

    /// Encodes the coverage as JSON, to be stored with a root.
    pub fn to_json(&self) -> String {
        self.to_json_beside(None)
    }

    fn to_json_beside(&self, git: Option<GitHead>) -> String {
        let uncovered = self.paths.iter().map(|(path, reason)| (encode(path), *reason)).collect();
        serde_json::to_string(&StoredCoverage { v: VERSION, uncovered, git })
            .expect("invariant: strings and numbers encode as JSON")
    }

    /// Encodes the coverage and the head of the workspace's own repository as an object, to be stored with a
    /// root. Returns `None` if no path was omitted and there is no repository.
    pub(crate) fn to_object(&self, git: GitHead) -> Option<Object> {
        let git = Some(git).filter(|git| git.head.is_some());
        let says_something = git.is_some() || !self.is_empty();
        says_something.then(|| Object::blob(self.to_json_beside(git).into_bytes()))
    }

    /// Reads the head of the workspace's own repository from a stored coverage.
    pub fn git_head(bytes: &[u8]) -> Result<GitHead, InvalidCoverage> {
        let stored: StoredCoverage = serde_json::from_slice(bytes).map_err(InvalidCoverage::Json)?;
        Ok(stored.git.unwrap_or_default())
    }

    /// Decodes the output of [`Self::to_json`].
    pub fn from_json(bytes: &[u8]) -> Result<Self, InvalidCoverage> {
        let stored: StoredCoverage = serde_json::from_slice(bytes).map_err(InvalidCoverage::Json)?;
        if stored.v != VERSION {
            return Err(InvalidCoverage::Version { version: stored.v });
        }
        let mut coverage = Self::default();
        for (text, reason) in stored.uncovered {
            match decode(text.as_bytes()).filter(|path| is_path(path)) {
                Some(path) => coverage.insert(&path, reason),
                None => return Err(InvalidCoverage::Path { path: text }),
            }
        }
        Ok(coverage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coverage_survives_its_text() {
        let mut coverage = Coverage::default();
        coverage.insert(b"a b/\xff", UncoveredReason::TooLarge);
        coverage.insert(b"target", UncoveredReason::IgnoredBudget);
        assert_eq!(
            coverage.to_json(),
            r#"{"v":1,"uncovered":[["a%20b/%ff","too_large"],["target","ignored_budget"]]}"#
        );
        assert_eq!(Coverage::from_json(coverage.to_json().as_bytes()).unwrap(), coverage);
        assert_eq!(coverage.sticky().uncovered().count(), 1);
        for text in ["", "{}", r#"{"v":2,"uncovered":[]}"#, r#"{"v":1,"uncovered":[["../a","too_large"]]}"#] {
            assert!(Coverage::from_json(text.as_bytes()).is_err(), "{text}");
        }
    }
}
