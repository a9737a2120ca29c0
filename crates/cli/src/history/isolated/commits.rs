//! Commits that were made in the copy of a project.
//!
//! Applying changes brings files, not commits. The references of the copy are read without running git, whose configuration
//! there belongs to the agent.

use backstitch::view::JournalView;
use backstitch::workspace::{Coverage, GitHead, HostWorkspace};

use crate::common::quoted;
use crate::open::place::{OpenStore, short};

/// Branches that moved in a copy, each with the command that fetches it.
pub(super) async fn of(
    place: &OpenStore,
    view: &JournalView,
    copy: &HostWorkspace,
) -> anyhow::Result<Vec<(String, String)>> {
    let Some(coverage) = view.isolation().and_then(|isolated| isolated.record.coverage) else {
        return Ok(Vec::new());
    };
    let Some(object) = place.store.object(coverage).await? else { return Ok(Vec::new()) };
    let (then, now) = (Coverage::git_head(object.bytes())?, copy.git_head());
    let path = quoted(&copy.path().to_string_lossy());
    Ok(moved(&then, &now, &path, &short(view.session_id())))
}

fn moved(then: &GitHead, now: &GitHead, path: &str, session: &str) -> Vec<(String, String)> {
    let mut moved = Vec::new();
    for (name, commit) in &now.references {
        let Some(branch) = name.strip_prefix("refs/heads/") else { continue };
        if then.references.get(name) != Some(commit) {
            let what = format!("{branch} is at {}", abbreviated(commit));
            let to = format!("{name}:refs/heads/backstitch/{session}/{branch}");
            moved.push((what, format!("git fetch {path} {}", quoted(&to))));
        }
    }
    let head = now.head.as_deref().filter(|head| !head.starts_with("ref:"));
    if let Some(head) = head.filter(|_| then.head != now.head) {
        moved.push((format!("HEAD is at {}", abbreviated(head)), format!("git fetch {path} HEAD")));
    }
    moved
}

fn abbreviated(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
