//! State of the workspace's own repository, as a value.

use std::collections::BTreeMap;

use backstitch_core::ports::MovedBranch;
use serde::{Deserialize, Serialize};

/// Head and references of the workspace's own repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitHead {
    /// Content of `HEAD`: a reference or a commit. `None` without a repository.
    pub head: Option<String>,
    /// References and the commits that they name.
    pub references: BTreeMap<String, String>,
    /// Digest of what else commands of git move: the entries of the index, unfinished operations, and the
    /// repositories of submodules and worktrees. `None` if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
}

impl GitHead {
    /// Describes the differences to a later state, one per line.
    pub fn changes(&self, later: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let word = |text: Option<&String>| text.map_or("nothing", String::as_str).to_owned();
        if self.head != later.head {
            lines.push(format!("HEAD: {} -> {}", word(self.head.as_ref()), word(later.head.as_ref())));
        }
        let names: std::collections::BTreeSet<_> =
            self.references.keys().chain(later.references.keys()).collect();
        for name in names {
            let (before, after) = (self.references.get(name), later.references.get(name));
            if before != after {
                lines.push(format!("{name}: {} -> {}", word(before), word(after)));
            }
        }
        lines
    }

    /// Returns the branches that moved or were created in a later state, and its `HEAD` where that names another commit.
    pub fn moved_branches(&self, later: &Self) -> Vec<MovedBranch> {
        let branches = later.references.iter().filter(|(name, commit)| {
            name.starts_with("refs/heads/") && self.references.get(*name) != Some(*commit)
        });
        let head = later.head.as_ref().filter(|head| !head.starts_with("ref:") && self.head != later.head);
        let head = head.map(|commit| MovedBranch { reference: "HEAD".to_owned(), commit: commit.clone() });
        let branches =
            branches.map(|(name, commit)| MovedBranch { reference: name.clone(), commit: commit.clone() });
        branches.chain(head).collect()
    }

    /// Describes everything that has moved in a later state, also the index. A state without it does not count.
    pub fn moves(&self, later: &Self) -> Vec<String> {
        let mut lines = self.changes(later);
        if self.rest.is_some() && self.rest != later.rest {
            lines.push("the index, an unfinished operation, a submodule or a worktree".to_owned());
        }
        lines
    }
}
