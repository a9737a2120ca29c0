//! The same operations with git, which syncs what it stores.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository.
pub(super) struct Git {
    root: PathBuf,
}

impl Git {
    pub(super) fn init(root: &Path) -> Result<Self, String> {
        let git = Self { root: root.to_owned() };
        git.run(&["init", "-q"])?;
        // What the first commit stores is not measured, so it need not wait for the disk.
        git.run(&["-c", "core.fsync=none", "add", "-A"])?;
        git.run(&["-c", "core.fsync=none", "commit", "-qm", "first"])?;
        Ok(git)
    }

    pub(super) fn commit(&self) {
        self.must(&["-c", "core.fsync=all", "add", "-A"]);
        self.must(&["-c", "core.fsync=all", "commit", "-qm", "changed"]);
    }

    /// Updates the index, so that git has to read only files that change after this.
    pub(super) fn refresh(&self) {
        self.must(&["status", "--porcelain"]);
    }

    pub(super) fn reset(&self) {
        self.must(&["-c", "core.fsync=all", "reset", "-q", "--hard"]);
    }

    fn must(&self, arguments: &[&str]) {
        self.run(arguments).expect("git did it before");
    }

    fn run(&self, arguments: &[&str]) -> Result<(), String> {
        let output = Command::new("git")
            .args(["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"])
            .args(["-c", "maintenance.auto=false"])
            .args(arguments)
            .current_dir(&self.root)
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}
