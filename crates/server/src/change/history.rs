//! Routes that go back, fork and apply.

use std::path::PathBuf;

use backstitch::id::SessionId;
use backstitch::ports::{ConflictResolution, FilePath, ReversalConflicts};
use backstitch::report::{ApplyReport, FileRestoreReport, ForkReport, RewindReport};
use backstitch::{
    ApplyDirection, ApplyOptions, ForkOptions, HistoryStep, OperationFiles, PointSpec, RewindOptions,
    RewindScope, RewoundFiles, RewoundHalf, WorkspaceSpec,
};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

use super::files::{check_own, files_of};
use crate::problem::Problem;
use crate::table::{Call, NoFields, Route};

/// What a step through history moves.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepBody {
    /// The point of a rewind: a position, before:CALL, after:CALL, turn:N, start.
    to: Option<String>,
    /// The call whose changes an undo undoes. By default, the latest rewind is undone.
    call: Option<String>,
    /// files or conversation: only one half.
    only: Option<String>,
    /// The whole directory, not only the files that the session changed.
    #[serde(default)]
    all_files: bool,
    /// Also files that others changed, where the changes cannot be merged.
    #[serde(default)]
    force: bool,
    /// Why, for the log.
    reason: Option<String>,
    /// Report what would be done, and do nothing.
    #[serde(default)]
    dry_run: bool,
}

/// Which files are restored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RestoreBody {
    /// The point.
    from: String,
    /// Paths in the directory of the session.
    paths: Vec<String>,
    /// Also files that others changed, where the changes cannot be merged.
    #[serde(default)]
    force: bool,
    /// Report what would be done, and do nothing.
    #[serde(default)]
    dry_run: bool,
}

/// Where a fork begins, and where it works.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    /// The point. By default, head.
    at: Option<String>,
    /// The directory of its files, at or below a root of the server. By default, a new one beside that of its parent.
    directory: Option<PathBuf>,
    /// Work in a copy of that directory.
    #[serde(default)]
    isolated: bool,
}

/// What is applied.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyBody {
    /// Files and directories. By default, everything.
    #[serde(default)]
    paths: Vec<String>,
    /// list, markers, ours or theirs: what to do about conflicts. By default, they are listed and nothing is written.
    conflicts: Option<String>,
    /// Undo the latest apply.
    #[serde(default)]
    undo: bool,
    /// Report what would be done, and do nothing.
    #[serde(default)]
    dry_run: bool,
}

pub(super) fn routes() -> Vec<Route> {
    let (post, ok) = (|path| (Method::POST, path), StatusCode::OK);
    vec![
        Route::change(post("/api/v1/sessions/{session}/rewind"), "Return to a point", ok, rewind),
        Route::change(post("/api/v1/sessions/{session}/undo"), "Undo the latest rewind, or a call", ok, undo),
        Route::change(
            post("/api/v1/sessions/{session}/redo"),
            "Repeat the rewind that was undone last",
            ok,
            redo,
        ),
        Route::change(post("/api/v1/sessions/{session}/restore"), "Restore single files", ok, restore),
        Route::change(
            post("/api/v1/sessions/{session}/fork"),
            "Start a session from a point of this one",
            StatusCode::CREATED,
            fork,
        ),
        Route::change(
            post("/api/v1/sessions/{session}/apply"),
            "Merge the changes of an isolated session into its project",
            ok,
            apply,
        ),
    ]
}

async fn rewind(call: Call<NoFields, StepBody>) -> Result<RewindReport, Problem> {
    let to = call.body.to.as_deref().ok_or_else(|| Problem::invalid("`to` names the point"))?;
    let to = HistoryStep::To(read_point(to)?);
    if call.body.call.is_some() {
        return Err(Problem::invalid("`call` stands only with undo"));
    }
    step(call, to).await
}

async fn undo(call: Call<NoFields, StepBody>) -> Result<RewindReport, Problem> {
    check_step(&call.body)?;
    let undone = call.body.call.clone().map_or(HistoryStep::Undo, HistoryStep::UndoCall);
    step(call, undone).await
}

async fn redo(call: Call<NoFields, StepBody>) -> Result<RewindReport, Problem> {
    check_step(&call.body)?;
    if call.body.call.is_some() {
        return Err(Problem::invalid("`call` stands only with undo"));
    }
    step(call, HistoryStep::Redo).await
}

fn check_step(body: &StepBody) -> Result<(), Problem> {
    match (&body.to, &body.reason) {
        (None, None) => Ok(()),
        _ => Err(Problem::invalid("`to` and `reason` stand only with rewind")),
    }
}

async fn step(call: Call<NoFields, StepBody>, step: HistoryStep) -> Result<RewindReport, Problem> {
    let (session, options) = options_of(&call).await?;
    Ok(call.runtime().step(session, step, options).await?)
}

async fn options_of(call: &Call<NoFields, StepBody>) -> Result<(SessionId, RewindOptions), Problem> {
    let StepBody { only, all_files, force, reason, dry_run, .. } = &call.body;
    let only = match only.as_deref() {
        None => None,
        Some("files") => Some(RewoundHalf::Files),
        Some("conversation") => Some(RewoundHalf::Conversation),
        Some(_) => return Err(Problem::invalid("`only` is files or conversation")),
    };
    let view = call.view().await?;
    check_own(&view)?;
    let scope = RewindScope {
        files: if *all_files { RewoundFiles::All } else { RewoundFiles::Own },
        conflicts: conflicts(*force),
        only,
        dry_run: *dry_run,
    };
    let files = files_of(call, &view).await?;
    Ok((view.session_id(), RewindOptions { reason: reason.clone(), files, kept: None, scope }))
}

fn conflicts(force: bool) -> ReversalConflicts {
    if force { ReversalConflicts::TakeTarget } else { ReversalConflicts::LeaveAlone }
}

async fn restore(call: Call<NoFields, RestoreBody>) -> Result<FileRestoreReport, Problem> {
    let RestoreBody { from, paths, force, dry_run } = &call.body;
    let from = read_point(from)?;
    if paths.is_empty() {
        return Err(Problem::invalid("`paths` names no path"));
    }
    let paths = paths.iter().map(|path| read_path(path)).collect::<Result<Vec<_>, _>>()?;
    let view = call.view().await?;
    check_own(&view)?;
    let scope = RewindScope { conflicts: conflicts(*force), dry_run: *dry_run, ..RewindScope::default() };
    let files = files_of(&call, &view).await?;
    let options = RewindOptions { files, scope, ..RewindOptions::default() };
    Ok(call.runtime().restore_with(view.session_id(), from, paths, options).await?)
}

async fn fork(call: Call<NoFields, ForkBody>) -> Result<ForkReport, Problem> {
    let ForkBody { at, directory, isolated } = &call.body;
    let at = at.as_deref().map_or(Ok(PointSpec::Head), read_point)?;
    let view = call.view().await?;
    let workspace = match directory {
        Some(directory) => {
            let mut spec = WorkspaceSpec::new(call.state.rights.check_directory(directory)?);
            spec.isolated = *isolated;
            Some(spec)
        }
        None if *isolated => {
            return Err(Problem::invalid("`isolated` needs the `directory` that is copied"));
        }
        None => {
            // A new directory is made beside that of the parent, which may be outside of the roots. The definition names
            // where the files were moved to.
            let definition = call.runtime().recorded_agent(view.session_id()).await.ok();
            let defined = definition.and_then(|definition| definition.workspace.path);
            for own in defined.into_iter().chain(view.directory().map(PathBuf::from)) {
                if let Some(around) = own.parent() {
                    call.state.rights.check_directory(around)?;
                }
            }
            None
        }
    };
    let options = ForkOptions { workspace, definition: None };
    Ok(call.runtime().fork_with(view.session_id(), at, options).await?)
}

async fn apply(call: Call<NoFields, ApplyBody>) -> Result<ApplyReport, Problem> {
    let ApplyBody { paths, conflicts, undo, dry_run } = &call.body;
    let resolution = match conflicts.as_deref() {
        None | Some("list") => ConflictResolution::List,
        Some("markers") => ConflictResolution::Markers,
        Some("ours") => ConflictResolution::Ours,
        Some("theirs") => ConflictResolution::Theirs,
        Some(_) => return Err(Problem::invalid("`conflicts` is list, markers, ours or theirs")),
    };
    let view = call.view().await?;
    let is_there = view.directory().is_some_and(|directory| PathBuf::from(directory).is_dir());
    let options = ApplyOptions {
        direction: if *undo { ApplyDirection::Undo } else { ApplyDirection::Apply },
        paths: paths.iter().map(|path| read_path(path)).collect::<Result<_, _>>()?,
        resolution,
        dry_run: *dry_run,
        // A copy that is gone is not needed: the store has its files.
        files: if is_there { files_of(&call, &view).await? } else { OperationFiles::Untouched },
        project: None,
    };
    Ok(call.runtime().apply(view.session_id(), options).await?)
}

fn read_point(text: &str) -> Result<PointSpec, Problem> {
    text.parse().map_err(|error: <PointSpec as std::str::FromStr>::Err| Problem::invalid(error.to_string()))
}

fn read_path(text: &str) -> Result<FilePath, Problem> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(200).collect();
        Problem::invalid(format!("{shown:?} is not a path in the directory of a session"))
    })
}
