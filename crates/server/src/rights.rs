//! What clients may do on this machine: no more than the person gave who started the server.
//!
//! A session works in a directory at or below a root, links resolved, or in a copy of one that was made for it. A session that was started
//! elsewhere, or whose changes were applied elsewhere, can be looked at, but not changed: a rewind would move files there. Nothing is driven in
//! the mode in which nothing is asked.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch::Runtime;
use backstitch::code::ErrorCode;
use backstitch::host::resolve_beginning;
use backstitch::id::SessionId;
use backstitch::isolated::copy_of;
use backstitch::journal::Origin;
use backstitch::mode::AgentMode;
use backstitch::view::JournalView;

use crate::agents::RunnableAgent;
use crate::problem::Problem;
use crate::views::Views;

/// The most bytes of the path of a directory, as on Linux.
const MOST_PATH_BYTES: usize = 4_096;

/// Codes of errors for a journal that cannot be read.
const UNREADABLE: [ErrorCode; 2] = [ErrorCode::StoreDamaged, ErrorCode::JournalInvalid];

/// Directories in which sessions may work.
pub(crate) struct Rights {
    roots: Vec<PathBuf>,
}

impl Rights {
    pub(crate) fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots }
    }

    /// Resolves the links of a directory, and refuses one that is not at or below a root.
    pub(crate) fn check_directory(&self, directory: &Path) -> Result<PathBuf, Problem> {
        if directory.as_os_str().len() > MOST_PATH_BYTES {
            let detail = format!("the path of the directory has more than {MOST_PATH_BYTES} bytes");
            return Err(Problem::invalid(detail));
        }
        if !directory.is_absolute() {
            let detail = format!("the directory {:?} is not an absolute path", directory.display());
            return Err(Problem::invalid(detail));
        }
        let resolved = resolve_beginning(directory)?;
        if self.roots.iter().any(|root| resolved.starts_with(root)) {
            return Ok(resolved);
        }
        let roots: Vec<String> = self.roots.iter().map(|root| root.display().to_string()).collect();
        Err(Problem::beyond(format!(
            "{} is not in a directory in which this server may work; it may in: {}",
            directory.display(),
            roots.join(", ")
        )))
    }

    /// Refuses to change a session that works elsewhere, itself or as the sub-agent of one that does.
    pub(crate) async fn check_session(
        &self,
        runtime: &Runtime,
        views: &Views,
        session: SessionId,
    ) -> Result<(), Problem> {
        let mut view = views.load(runtime, session).await?;
        let (mut seen, mut owners, mut worked_in) = (HashSet::new(), Vec::new(), Vec::new());
        loop {
            if !seen.insert(view.session_id()) {
                let detail = format!("session {session} is recorded as a sub-agent of itself");
                return Err(Problem::beyond(detail));
            }
            for directory in directories_applied_to(&view) {
                self.check_directory(&directory)?;
            }
            worked_in.extend(directories_worked_in(&view));
            owners.extend(owners_of_copies(&view));
            let Origin::Call { session: caller, .. } = view.created().origin else { break };
            view = Arc::new(runtime.view(caller).await?);
        }
        // A sub-agent works in the copy of its caller.
        for directory in worked_in {
            if !is_copy_of_any(&directory, &owners) {
                self.check_directory(&directory)?;
            }
        }
        Ok(())
    }

    /// Refuses to delete a session that works elsewhere. Of one that cannot be read, the index still knows the directory.
    pub(crate) async fn check_removal(
        &self,
        runtime: &Runtime,
        views: &Views,
        session: SessionId,
    ) -> Result<(), Problem> {
        match self.check_session(runtime, views, session).await {
            Err(problem) if UNREADABLE.iter().any(|code| code.as_str() == problem.code) => {}
            done => return done,
        }
        let unknown = || {
            let detail =
                format!("session {session} cannot be read, and the index does not know its directory");
            Problem::beyond(detail).with_hint(Some("delete it with the command on this machine"))
        };
        let summary = runtime.store().summary(session).await.ok().flatten().ok_or_else(unknown)?;
        let directory = summary.workspace.as_deref().map(PathBuf::from).ok_or_else(unknown)?;
        if copy_of(&directory, session).is_none() {
            self.check_directory(&directory)?;
        }
        Ok(())
    }

    /// Refuses an agent that may do too much. `view` is that of the session that it continues, which may work in a copy.
    pub(crate) fn check_agent(
        &self,
        agent: &RunnableAgent,
        view: Option<&JournalView>,
    ) -> Result<(), Problem> {
        if agent.mode == Some(AgentMode::Full) {
            let detail = "sessions in the mode full are not driven over HTTP";
            return Err(Problem::beyond(detail).with_hint(Some("use the command, or the mode auto")));
        }
        // An agent whose definition names no directory may work in the current one. Files in memory have none.
        let opened = agent.built.agent.workspace_spec().map(|spec| spec.path);
        let opened = opened.filter(|directory| !directory.as_os_str().is_empty());
        for directory in agent.directory.iter().chain(&opened) {
            if !view.is_some_and(|view| is_copy(view, directory)) {
                self.check_directory(directory)?;
            }
        }
        Ok(())
    }
}

/// Returns whether a directory is a copy that was made for a session, or for the one that it is a fork of.
pub(crate) fn is_copy(view: &JournalView, directory: &Path) -> bool {
    is_copy_of_any(directory, &owners_of_copies(view))
}

fn is_copy_of_any(directory: &Path, owners: &[SessionId]) -> bool {
    owners.iter().any(|owner| copy_of(directory, *owner).is_some())
}

/// Returns the sessions whose copies a session may work in. A fork has the record of the copy of its parent.
fn owners_of_copies(view: &JournalView) -> Vec<SessionId> {
    let mut owners = vec![view.session_id()];
    owners.extend(view.isolation().map(|isolated| isolated.point.session));
    owners
}

/// Returns the directories that the changes of a session were applied to, and the project that they are applied to next.
fn directories_applied_to(view: &JournalView) -> Vec<PathBuf> {
    let applies = view.applied().iter().chain(view.pending_apply());
    let mut directories: Vec<PathBuf> = applies.map(|apply| PathBuf::from(&apply.record.directory)).collect();
    directories.extend(view.isolation().map(|isolated| PathBuf::from(&isolated.record.project)));
    directories
}

/// Returns the directories that a session works in, or worked in when it started.
fn directories_worked_in(view: &JournalView) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = view.directory().map(PathBuf::from).into_iter().collect();
    directories.extend(view.isolation().map(|isolated| PathBuf::from(&isolated.record.directory)));
    directories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_at_or_below_a_root_are_allowed_links_resolved() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        let root = outer.join("root");
        std::fs::create_dir_all(root.join("inside")).unwrap();
        std::fs::create_dir_all(outer.join("root-beside")).unwrap();
        std::os::unix::fs::symlink(&outer, root.join("up")).unwrap();
        let rights = Rights::new(vec![root.clone()]);
        for allowed in ["", "inside", "inside/new/one", "inside/../inside"] {
            assert!(rights.check_directory(&root.join(allowed)).is_ok(), "{allowed}");
        }
        for refused in ["..", "inside/../..", "up", "up/new", "../root-beside", "new/../../x"] {
            assert!(rights.check_directory(&root.join(refused)).is_err(), "{refused}");
        }
        assert_eq!(rights.check_directory(Path::new("inside")).unwrap_err().status, 400);
        assert_eq!(rights.check_directory(&root.join("a/".repeat(30_000))).unwrap_err().status, 400);
    }
}
