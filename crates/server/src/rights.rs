//! What clients may do on this machine: no more than the person gave who started the server.
//!
//! A session works in a directory at or below a root, links resolved. A session that was started elsewhere can be looked at, but not changed:
//! a rewind would move files there. Nothing is driven in the mode in which nothing is asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch::Runtime;
use backstitch::host::resolve_beginning;
use backstitch::id::SessionId;
use backstitch::journal::Origin;
use backstitch::mode::AgentMode;
use backstitch::view::JournalView;

use crate::agents::RunnableAgent;
use crate::problem::Problem;
use crate::views::Views;

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
        loop {
            if let Some(directory) = directory_of(&view) {
                self.check_directory(&directory)?;
            }
            let Origin::Call { session, .. } = view.created().origin else { return Ok(()) };
            view = Arc::new(runtime.view(session).await?);
        }
    }

    /// Refuses an agent that may do too much.
    pub(crate) fn check_agent(&self, agent: &RunnableAgent) -> Result<(), Problem> {
        if agent.mode == Some(AgentMode::Full) {
            let detail = "sessions in the mode full are not driven over HTTP";
            return Err(Problem::beyond(detail).with_hint(Some("use the command, or the mode auto")));
        }
        match &agent.directory {
            Some(directory) => self.check_directory(directory).map(drop),
            None => Ok(()),
        }
    }
}

/// Returns the directory that a session changes: for an isolated one, the project that its changes are applied to.
fn directory_of(view: &JournalView) -> Option<PathBuf> {
    match view.isolation() {
        Some(isolated) => Some(PathBuf::from(&isolated.record.project)),
        None => view.directory().map(PathBuf::from),
    }
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
    }
}
