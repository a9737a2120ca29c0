//! What a person is asked about before a call runs.
//!
//! A question and the decision about it name what would run by digests, so that nothing else runs: not other arguments, and
//! not what has replaced a file or a definition since. The runner compares them right before the call starts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::extra::Extra;

/// Digests of what a call starts beside its arguments, by names for people, such as "the file /usr/bin/make".
pub type CoveredDigests = BTreeMap<String, Digest>;

/// What a person is asked about: the arguments of a call, and what it starts.
///
/// ```
/// use backstitch_core::digest::Digest;
/// use backstitch_core::journal::{ApprovalSubject, CoveredDigests};
/// use serde_json::Map;
///
/// let covered = |text: &str| CoveredDigests::from([("the file hem.sh".to_owned(), Digest::of(text.as_bytes()))]);
/// let asked = ApprovalSubject::new(&Map::new(), covered("sew"));
/// assert_eq!(asked.difference(&ApprovalSubject::new(&Map::new(), covered("sew"))), None);
/// let now = ApprovalSubject::new(&Map::new(), covered("rip"));
/// assert_eq!(asked.difference(&now).unwrap(), "the file hem.sh");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalSubject {
    /// Of the arguments.
    pub arguments: Digest,
    /// Of what the call starts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub covered: CoveredDigests,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ApprovalSubject {
    /// Creates the subject of a question about a call with these arguments.
    pub fn new(arguments: &Map<String, Value>, covered: CoveredDigests) -> Self {
        Self { arguments: digest_of(arguments), covered, extra: Extra::default() }
    }

    /// Returns the subject of a call with other arguments.
    #[must_use]
    pub fn with_arguments(self, arguments: &Map<String, Value>) -> Self {
        Self { arguments: digest_of(arguments), ..self }
    }

    /// Returns the names of what differs now, as a list for people; `None` if nothing does.
    pub fn difference(&self, now: &Self) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        if self.arguments != now.arguments {
            names.push("its arguments");
        }
        let differs = |name: &&String| self.covered.get(*name) != now.covered.get(*name);
        let new = now.covered.keys().filter(|name| !self.covered.contains_key(*name));
        names.extend(self.covered.keys().chain(new).filter(differs).map(String::as_str));
        (!names.is_empty()).then(|| names.join(", "))
    }
}

fn digest_of(arguments: &Map<String, Value>) -> Digest {
    Digest::of_json(arguments).expect("invariant: a JSON object has a text")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn subject(arguments: Value, covered: &[(&str, &str)]) -> ApprovalSubject {
        let covered = covered.iter().map(|(name, text)| ((*name).to_owned(), Digest::of(text.as_bytes())));
        ApprovalSubject::new(arguments.as_object().unwrap(), covered.collect())
    }

    #[test]
    fn every_difference_is_named_once() {
        let asked = subject(json!({"a": 1, "b": [2]}), &[("x", "1"), ("y", "1")]);
        let same = subject(json!({"b": [2], "a": 1}), &[("y", "1"), ("x", "1")]);
        assert_eq!(asked.difference(&same), None);
        let names = |now: ApprovalSubject| asked.difference(&now).unwrap();
        assert_eq!(names(asked.clone().with_arguments(&Map::new())), "its arguments");
        let arguments = json!({"a": 1, "b": [2]});
        assert_eq!(names(subject(arguments.clone(), &[("x", "2"), ("y", "1")])), "x");
        assert_eq!(names(subject(arguments.clone(), &[("x", "1")])), "y", "it is gone");
        let more = [("x", "1"), ("y", "1"), ("z", "1")];
        assert_eq!(names(subject(arguments, &more)), "z", "it is new");
        assert_eq!(names(subject(json!({"a": "1", "b": [2]}), &[])), "its arguments, x, y");
        // Two integers that are one double.
        let large = |number: u64| subject(json!({"a": number}), &[]);
        assert!(large(9_007_199_254_740_993).difference(&large(9_007_199_254_740_992)).is_some());
    }
}
