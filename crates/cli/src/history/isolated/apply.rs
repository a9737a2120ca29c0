//! `apply`: merges the changes of an isolated session into its project.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backstitch::host::undoable_apply;
use backstitch::ports::{ConflictKind, ConflictResolution, FilePath, MovedBranch};
use backstitch::report::ApplyReport;
use backstitch::view::JournalView;
use backstitch::{ApplyDirection, ApplyOptions, OperationFiles};
use clap::Args;
use serde_json::{Value, json};

use crate::common::{Common, counted, quoted};
use crate::error::{CommandError, ErrorCode, ReportedError};
use crate::history::idle::IdleSession;
use crate::history::neighbours;
use crate::look::diff::named;
use crate::open::{OpenStore, in_session, short};
use crate::report::Report;
use crate::terminal::{Role, Text};

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
    /// Apply although another session in the directory may still change files.
    #[arg(long)]
    force: bool,
    /// Directory to apply to. Default: the project that was copied; with `--undo`, the directory that was applied to.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

impl Apply {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        let view = place.view(session).await?;
        // Whether it works in a copy does not depend on who drives it.
        let directory = self.directory(&view)?;
        let opened = IdleSession::of_view(common, place, view, None).await?;
        let paths = self.paths.iter().map(|path| in_project(&opened.view, &directory, path));
        let paths = paths.collect::<Result<_, _>>()?;
        check_target(&directory)?;
        if !self.force && !self.dry_run {
            neighbours::check(common, &opened.place, &directory, session).await?;
        }
        // A copy that is gone is not needed: the store has its files.
        let files = match opened.view.directory().is_some_and(|directory| Path::new(directory).is_dir()) {
            true => opened.files.clone(),
            false => OperationFiles::Untouched,
        };
        let direction = if self.undo { ApplyDirection::Undo } else { ApplyDirection::Apply };
        let (resolution, dry_run) = (self.resolution(), self.dry_run);
        let project = self.to.map(Into::into);
        let options = ApplyOptions { direction, paths, resolution, dry_run, files, project };
        let done = opened.place.runtime.apply(session, options).await?;
        let code = report(common, &done).print(common);
        if done.conflicts.is_empty() { Ok(code) } else { Err(conflict(common, &done)) }
    }

    /// Returns the directory that changes are applied to, or undone in.
    fn directory(&self, view: &JournalView) -> Result<PathBuf, CommandError> {
        let Some(isolated) = view.isolation() else {
            let id = short(view.session_id());
            let message = format!("session {id} does not work in a copy, so there is nothing to apply");
            return Err(CommandError::new(ErrorCode::NotIsolated, message)
                .with_hint("`backstitch run MISSION --isolated` starts a session in a copy"));
        };
        let applied = undoable_apply(view).filter(|_| self.undo);
        let known = applied.map_or(&isolated.record.project, |applied| &applied.record.directory);
        Ok(self.to.clone().unwrap_or_else(|| known.into()))
    }

    fn resolution(&self) -> ConflictResolution {
        match (self.markers, self.ours, self.theirs) {
            (true, _, _) => ConflictResolution::Markers,
            (_, true, _) => ConflictResolution::Ours,
            (_, _, true) => ConflictResolution::Theirs,
            _ => ConflictResolution::List,
        }
    }
}

/// Reports an application, and the commands that fetch the commits of the copy.
fn report(common: &Common, done: &ApplyReport) -> Report {
    let commits: Vec<_> = done.commits.iter().map(|moved| fetch(done, moved)).collect();
    let described = commits.iter().zip(&done.commits).map(|((what, command), moved)| {
        json!({
            "what": what, "command": command, "reference": moved.reference, "commit": moved.commit,
        })
    });
    let changed = done.changes.iter().filter(|_| done.conflicts.is_empty()).map(named);
    let conflicts = [(&done.conflicts, "conflict"), (&done.decided, "decided")];
    let conflicts = conflicts.into_iter().flat_map(|(all, word)| all.iter().map(move |one| (one, word)));
    let conflicts = conflicts.map(|(conflict, word)| {
        let text = Text::new().add(Role::Warning, word).plain(": ").add(Role::Emphasis, &conflict.path);
        text.plain(format!(" ({})", meaning(conflict.kind)))
    });
    let left = done.left_out.iter().map(|left| format!("left out: {} ({})", left.path, left.reason));
    let kept = done.kept.iter().map(|kept| format!("kept as it is: {} ({})", kept.path, kept.reason));
    let fetched = commits.iter().filter(|_| !done.undo).flat_map(|(what, command)| {
        [
            format!("commits were made in the copy ({what}), which this command fetches:"),
            format!("  {command}"),
        ]
    });
    Report::new(done)
        .with("commits", described.collect::<Vec<Value>>())
        .lines(changed)
        .lines(conflicts)
        .lines(left)
        .lines(kept)
        .lines(summary(common, done))
        .lines(fetched)
}

/// Returns the line about all files; `None` with conflicts.
fn summary(common: &Common, done: &ApplyReport) -> Option<String> {
    let (files, shown) = (counted(done.changes.len() as u64, "file"), &done.directory);
    match &done.conflicts[..] {
        [] if done.dry_run => Some(format!("{files} would change in {shown}")),
        [] if done.undo => Some(format!("undone in {shown}: {files} changed")),
        [] if done.changes.is_empty() => Some(format!("{shown} has all changes of the session already")),
        [] => {
            let undo = common.hint(format_args!("apply {} --undo", short(done.session)));
            Some(format!("applied to {shown}: {files} changed; `{undo}` undoes it"))
        }
        _ => None,
    }
}

/// Returns where a branch of the copy is, and the command that fetches it. The references of the copy are read without running
/// git, whose configuration there belongs to the agent.
fn fetch(done: &ApplyReport, moved: &MovedBranch) -> (String, String) {
    let MovedBranch { reference, commit } = moved;
    let branch = reference.strip_prefix("refs/heads/");
    let what = format!("{} is at {}", branch.unwrap_or(reference), commit.get(..10).unwrap_or(commit));
    let from = quoted(done.copy.as_deref().unwrap_or_default());
    let to = match branch {
        Some(branch) => format!("{reference}:refs/heads/backstitch/{}/{branch}", short(done.session)),
        None => reference.clone(),
    };
    (what, format!("git fetch {from} {}", quoted(&to)))
}

/// Returns the error for changes that cannot be merged. The report has named them.
fn conflict(common: &Common, done: &ApplyReport) -> anyhow::Error {
    let (id, undo) = (short(done.session), if done.undo { " --undo" } else { "" });
    let command = |option: &str| common.hint(format_args!("apply {id}{undo} {option}"));
    let message = format!("session {id} and {} changed the same things; nothing was changed", done.directory);
    let hint = format!(
        "`{}` writes both versions to the files, `{}` keeps those of the directory, `{}` takes those of the session",
        command("--markers"),
        command("--ours"),
        command("--theirs")
    );
    ReportedError(CommandError::new(ErrorCode::ApplyConflict, message).with_hint(hint).into()).into()
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
        ConflictKind::Shared => "calls of two sessions changed it at the same time",
        _ => "changed on both sides",
    }
}
