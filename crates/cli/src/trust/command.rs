//! `trust`: trust the files of a project, list what is trusted, and revoke it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::ledger::Ledger;
use super::subject::Subject;
use crate::common::Common;
use crate::report::Report;
use crate::usage;

#[derive(Args)]
pub(crate) struct Trust {
    /// Directories of projects, or single files such as agent files. Default: the project of the current directory.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// List what is trusted.
    #[arg(long, conflicts_with_all = ["paths", "revoke"])]
    list: bool,
    /// Stop trusting the directories.
    #[arg(long)]
    revoke: bool,
}

impl Trust {
    /// Runs the command. `found` returns the files of a project, or a single file, that need trust.
    pub(crate) fn run(
        self,
        common: &Common,
        found: impl Fn(&Path) -> anyhow::Result<Subject>,
    ) -> anyhow::Result<ExitCode> {
        if self.list {
            return list(common);
        }
        let here = vec![std::env::current_dir()?];
        for path in if self.paths.is_empty() { &here } else { &self.paths } {
            if self.revoke {
                revoke(path)?.print(common);
                continue;
            }
            let subject = found(path)?;
            if subject.is_empty() {
                return usage::refuse(format!("{} has no files that need trust", path.display()));
            }
            subject.record()?;
            let root = subject.root.to_string_lossy();
            let files: Vec<_> = subject.files.keys().collect();
            Report::new(&json!({"v": 1, "directory": root, "files": files, "trusted": true}))
                .line(format!("trusted in {root}:"))
                .lines(files.iter().map(|name| format!("  {name}")))
                .print(common);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(common: &Common) -> anyhow::Result<ExitCode> {
    let ledger = Ledger::read()?;
    for entry in &ledger.directories {
        let directory = entry.directory.path();
        let directory = directory.to_string_lossy();
        let files: Vec<_> = entry.files.keys().collect();
        Report::new(&json!({"v": 1, "directory": directory, "files": files}))
            .line(&*directory)
            .lines(files.iter().map(|name| format!("  {name}")))
            .print(common);
    }
    for project in &ledger.full {
        let directory = project.path();
        let directory = directory.to_string_lossy();
        Report::new(&json!({"v": 1, "directory": directory, "mode": "full"}))
            .line(&*directory)
            .lines(["  agents may use the mode full".to_owned()])
            .print(common);
    }
    if ledger.directories.is_empty() && ledger.full.is_empty() && !common.json {
        println!("nothing is trusted");
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(path: &Path) -> anyhow::Result<Report> {
    // A directory that is gone is revoked by its old path.
    let path = path.canonicalize().or_else(|_| std::path::absolute(path))?;
    let root = crate::project::root(&path);
    let was_trusted = Ledger::change(|ledger| ledger.revoke(&root) | ledger.revoke_full(&root))?;
    let root = root.to_string_lossy();
    let value = json!({"v": 1, "directory": root, "trusted": false, "was_trusted": was_trusted});
    let state = if was_trusted { "is trusted no more" } else { "was not trusted" };
    Ok(Report::new(&value).line(format!("{root} {state}")))
}
