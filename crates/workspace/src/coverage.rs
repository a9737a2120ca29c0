//! What a root covers, as a value.
//!
//! Some things are never covered: the workspace's own repository, the runtime's files, and what configured patterns exclude.
//! Others are decided when files are captured: whatever is too large, ignored and over its budget, special, unreadable or too
//! deep. These decisions are a [`Coverage`]. It is fixed at the start of a call and used until the call has ended, so that a
//! rollback is exact: what was covered is put back even if it has grown over a limit since, what appeared since is deleted
//! even if it could not have been captured, and what was not covered is not touched.

use std::collections::BTreeMap;

use backstitch_core::object::Object;
use backstitch_core::ports::{Uncovered, UncoveredReason};
use backstitch_filesystem::format::names::{decode, encode, is_path, shown};
use serde::{Deserialize, Serialize};

use crate::git_head::GitHead;

const VERSION: u64 = 1;

/// The paths that a capture left out, with the reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    paths: BTreeMap<Vec<u8>, UncoveredReason>,
}

/// The text is no coverage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCoverage {
    /// It is not JSON of the right shape.
    #[error("it cannot be read as a coverage")]
    Json(#[source] serde_json::Error),
    /// It is of a version that is not known.
    #[error("its version is {version}, and only {VERSION} is known")]
    Version {
        /// The version.
        version: u64,
    },
    /// A path in it is none.
    #[error("{path:?} is no path below a workspace")]
    Path {
        /// What stands there.
        path: String,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredCoverage {
    v: u64,
    uncovered: Vec<(String, UncoveredReason)>,
    /// Where the workspace's own repository stood, which is not covered either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    git: Option<GitHead>,
}

impl Coverage {
    pub(crate) fn insert(&mut self, path: &[u8], reason: UncoveredReason) {
        self.paths.insert(path.to_vec(), reason);
    }

    /// Why a path is not covered; none if it is, as far as this value tells.
    pub(crate) fn reason(&self, path: &[u8]) -> Option<UncoveredReason> {
        if self.paths.is_empty() { None } else { self.paths.get(path).copied() }
    }

    /// The part that the next capture keeps without looking again.
    pub(crate) fn sticky(&self) -> Self {
        let kept = self.paths.iter().filter(|(_, reason)| **reason == UncoveredReason::IgnoredBudget);
        Self { paths: kept.map(|(path, reason)| (path.clone(), *reason)).collect() }
    }

    /// Whether everything is covered that can be.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// What is not covered, by path.
    pub fn uncovered(&self) -> impl Iterator<Item = Uncovered> {
        self.paths.iter().map(|(path, reason)| Uncovered { path: shown(path), reason: *reason, bytes: None })
    }

    /// The coverage as text, for keeping it with a root.
    pub fn to_json(&self) -> String {
        self.to_json_beside(None)
    }

    fn to_json_beside(&self, git: Option<GitHead>) -> String {
        let uncovered = self.paths.iter().map(|(path, reason)| (encode(path), *reason)).collect();
        serde_json::to_string(&StoredCoverage { v: VERSION, uncovered, git })
            .expect("invariant: texts and numbers can be written as JSON")
    }

    /// The coverage as an object, for keeping it with a root, with where the workspace's own repository stands. None when all is
    /// covered that can be and there is no repository.
    pub(crate) fn to_object(&self, git: GitHead) -> Option<Object> {
        let git = Some(git).filter(|git| git.head.is_some());
        let says_something = git.is_some() || !self.is_empty();
        says_something.then(|| Object::blob(self.to_json_beside(git).into_bytes()))
    }

    /// Where the workspace's own repository stood when a coverage was kept.
    pub fn git_head(bytes: &[u8]) -> Result<GitHead, InvalidCoverage> {
        let stored: StoredCoverage = serde_json::from_slice(bytes).map_err(InvalidCoverage::Json)?;
        Ok(stored.git.unwrap_or_default())
    }

    /// Reads what [`Self::to_json`] wrote.
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
