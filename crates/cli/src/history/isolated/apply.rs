//! `apply`: merges the changes of an isolated session into its project.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backstitch::code::ErrorCode;
use backstitch::host::undoable_apply;
use backstitch::id::SessionId;
use backstitch::ports::{ConflictKind, ConflictResolution, FilePath};
use backstitch::view::JournalView;
use backstitch::{ApplyOptions, ApplyReport, OperationFiles, WorkspaceSpec};
use clap::Args;
use serde_json::json;

use super::commits;
use super::pending::{ApplyMark, complete};
use crate::common::{Common, counted};
use crate::error::{CommandError, ReportedError};
use crate::look::diff::print_name;
use crate::open::definition::definition_of;
use crate::open::file_names::in_session;
use crate::open::holder::{WhenDriven, set_free};
use crate::open::place::{OpenStore, short};
use crate::terminal;
use crate::terminal::style::{Role, Text};

#[derive(Args)]
pub(crate) struct Apply {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Files and directories to apply, relative to the project. Default: all changes.
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Report what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write both versions of conflicting lines to the files, between markers.
    #[arg(long, conflicts_with_all = ["ours", "theirs"])]
    markers: bool,
    /// Keep the files of the directory where there is a conflict.
    #[arg(long, conflicts_with = "theirs")]
    ours: bool,
    /// Take the files of the session where there is a conflict.
    #[arg(long)]
    theirs: bool,
    /// Undo the latest apply; again, the one before it.
    #[arg(long, conflicts_with = "paths")]
    undo: bool,
    /// Directory to apply to. Default: the project that was copied; with `--undo`, the directory that was applied to.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

impl Apply {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let view = place.view(session).await?;
        let Some(isolated) = view.isolation() else {
            let message =
                format!("session {} does not work in a copy, so there is nothing to apply", short(session));
            return Err(CommandError::new(ErrorCode::NotIsolated, message)
                .with_hint("`backstitch run MISSION --isolated` starts a session in a copy")
                .into());
        };
        let applied = undoable_apply(&view).map(|applied| applied.record.directory.clone());
        let known = applied.filter(|_| self.undo).unwrap_or_else(|| isolated.record.project.clone());
        let directory = self.to.clone().unwrap_or_else(|| known.into());
        set_free(common, &place, session, WhenDriven::Refuse).await?;
        let definition = definition_of(&place, &view, None).await?;
        let paths =
            self.paths.iter().map(|path| in_project(&view, &directory, path)).collect::<Result<_, _>>()?;
        // It may be the directory that is applied to, so it is completed before that one is opened.
        complete(&place, session).await?;
        check_target(&directory)?;
        let mut project = WorkspaceSpec::new(&directory);
        project.excludes.clone_from(&definition.workspace.excludes);
        // A copy that is gone is not needed: the store has its files.
        let has_copy = definition.workspace.path.as_ref().is_some_and(|path| path.is_dir());
        let copy = if has_copy { place.workspace(&definition, session)? } else { None };
        let commits = match &copy {
            Some(copy) => commits::of(&place, &view, copy).await?,
            None => Vec::new(),
        };
        let options = ApplyOptions {
            paths,
            resolution: self.resolution(),
            dry_run: self.dry_run,
            files: copy.map_or(OperationFiles::Untouched, OperationFiles::within),
            project: Some(project),
        };
        let mark = ApplyMark::set(&place, session)?;
        let done = match self.undo {
            true => place.runtime.undo_apply(session, options).await,
            false => place.runtime.apply(session, options).await,
        };
        if place.view(session).await?.pending_apply().is_none() {
            mark.remove();
        }
        self.report(common, session, &directory, &done?, &commits)
    }

    fn resolution(&self) -> ConflictResolution {
        match (self.markers, self.ours, self.theirs) {
            (true, _, _) => ConflictResolution::Markers,
            (_, true, _) => ConflictResolution::Ours,
            (_, _, true) => ConflictResolution::Theirs,
            _ => ConflictResolution::List,
        }
    }

    fn report(
        &self,
        common: &Common,
        session: SessionId,
        directory: &Path,
        report: &ApplyReport,
        commits: &[(String, String)],
    ) -> anyhow::Result<ExitCode> {
        let commands = || commits.iter().map(|(what, command)| json!({"what": what, "command": command}));
        if common.json {
            println!(
                "{}",
                json!({
                    "v": 1, "session": session, "directory": directory, "dry_run": self.dry_run, "undo": self.undo,
                    "at": report.at, "before": report.before, "after": report.after, "files": report.changes,
                    "conflicts": report.conflicts, "decided": report.decided, "left_out": report.left_out,
                    "kept": report.kept, "commits": commands().collect::<Vec<_>>(),
                })
            );
        } else {
            self.print(common, session, directory, report, commits);
        }
        if report.conflicts.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let command = |option: &str| {
            common.hint(format_args!("apply {}{} {option}", short(session), self.undo_option()))
        };
        let message = format!(
            "session {} and {} changed the same things; nothing was changed",
            short(session),
            directory.display()
        );
        let hint = format!(
            "`{}` writes both versions to the files, `{}` keeps those of the directory, `{}` takes those of the session",
            command("--markers"),
            command("--ours"),
            command("--theirs")
        );
        let error = anyhow::Error::from(CommandError::new(ErrorCode::ApplyConflict, message).with_hint(hint));
        // The report says it too.
        Err(if common.json { ReportedError(error).into() } else { error })
    }

    fn undo_option(&self) -> &'static str {
        if self.undo { " --undo" } else { "" }
    }

    fn print(
        &self,
        common: &Common,
        session: SessionId,
        directory: &Path,
        report: &ApplyReport,
        commits: &[(String, String)],
    ) {
        if report.conflicts.is_empty() {
            report.changes.iter().for_each(print_name);
        }
        for (conflicts, word) in [(&report.conflicts, "conflict"), (&report.decided, "decided")] {
            for conflict in conflicts {
                let text =
                    Text::new().add(Role::Warning, word).plain(": ").add(Role::Emphasis, &conflict.path);
                terminal::line(&text.plain(format!(" ({})", meaning(conflict.kind))));
            }
        }
        for left in &report.left_out {
            println!("left out: {} ({})", left.path, left.reason);
        }
        for kept in &report.kept {
            println!("kept as it is: {} ({})", kept.path, kept.reason);
        }
        let files = counted(report.changes.len() as u64, "file");
        let shown = directory.display();
        let id = short(session);
        match &report.conflicts[..] {
            [] if self.dry_run => println!("{files} would change in {shown}"),
            [] if self.undo => println!("undone in {shown}: {files} changed"),
            [] if report.changes.is_empty() => println!("{shown} has all changes of the session already"),
            [] => {
                let undo = common.hint(format_args!("apply {id} --undo"));
                println!("applied to {shown}: {files} changed; `{undo}` undoes it");
            }
            _ => {}
        }
        for (what, command) in commits.iter().filter(|_| !self.undo) {
            println!("commits were made in the copy ({what}), which this command fetches:\n  {command}");
        }
    }
}

/// Fails if the directory that changes are applied to does not exist.
fn check_target(directory: &Path) -> Result<(), CommandError> {
    if !directory.is_dir() {
        let message = format!("the directory {} is gone, and nothing was changed", directory.display());
        return Err(CommandError::new(ErrorCode::WorkspaceGone, message)
            .with_hint("if it was moved, `--to DIR` names its new path"));
    }
    Ok(())
}

/// Returns the path of a file in the project. One that starts with `./` is relative to the current directory.
fn in_project(view: &JournalView, directory: &Path, path: &str) -> anyhow::Result<FilePath> {
    let whole = std::path::absolute(path).ok();
    let is_elsewhere = path.starts_with('/') || path.starts_with("./") || path.starts_with("../");
    let inside = whole
        .filter(|_| is_elsewhere)
        .and_then(|whole| whole.strip_prefix(directory).ok().map(Path::to_owned));
    match inside.as_deref().and_then(Path::to_str) {
        Some(inside) => in_session(view, inside),
        None => in_session(view, path),
    }
}

fn meaning(kind: ConflictKind) -> &'static str {
    match kind {
        ConflictKind::BothChanged => "both changed the same lines",
        ConflictKind::BothChangedBinary => "both sides changed a binary file",
        ConflictKind::BothAdded => "both added it",
        ConflictKind::DeletedInResult => "changed here, deleted in the session",
        ConflictKind::DeletedInDirectory => "deleted here, changed in the session",
        ConflictKind::TypeChanged => {
            "a file, a link or a directory on one side is something else on the other"
        }
        ConflictKind::ModeChanged => "both changed its mode",
        _ => "changed on both sides",
    }
}
