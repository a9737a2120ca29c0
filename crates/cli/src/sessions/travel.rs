//! `rewind`, `undo` and `fork`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::agent_file::AgentDefinition;
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::journal::RecordBody;
use backstitch::ports::{SessionQuery, Workspace};
use backstitch::view::JournalView;
use backstitch::workspace::{Coverage, HostWorkspace};
use backstitch::{
    DiscardedEffect, KeptFiles, LiveSession, PointSpec, SessionOptions, WorkspaceSpec, discarded_effects,
    locate, one_line,
};
use clap::Args;
use serde_json::json;

use super::definition::{MovedTo, changed, definition_of};
use super::guarded::{CommandSession, ContinueCommand, GuardedSession, is_guarded, kept_files};
use super::holder::{WhenDriven, set_free};
use super::isolated::bring_back;
use super::place::{OpenStore, short, uncovered};
use super::restores::{RestoreCause, Restores};
use crate::common::Common;
use crate::error::CommandError;
use crate::usage::Usage;

/// The newest sessions of a directory whose programs may run.
const NEIGHBOURS: usize = 50;

#[derive(Args)]
pub(crate) struct Rewind {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Point to return to: a position, before:CALL, after:CALL, CALL, turn:N, start or rescue:POSITION.
    point: PointSpec,
    /// Reason, which the log shows. Default: none.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Rewind although the program of a guarded session may still change files.
    #[arg(long)]
    force: bool,
    /// Then run the program of a guarded session, so that it continues from the point. With a PROMPT it needs no terminal.
    #[arg(long = "continue", value_name = "PROMPT", num_args = 0..=1, require_equals = true)]
    continues: Option<Option<String>>,
    /// More arguments for the program that `--continue` runs, after `--`.
    #[arg(last = true, value_name = "ARGUMENT", requires = "continues")]
    arguments: Vec<String>,
    #[command(flatten)]
    moved: MovedTo,
}

impl Rewind {
    /// Rewinds a session to a point.
    pub(super) fn to(session: SessionId, point: PointSpec, force: bool) -> Self {
        let (reason, continues, moved) = (None, None, MovedTo::default());
        Self { session: session.to_string(), point, reason, force, continues, arguments: Vec::new(), moved }
    }

    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let SessionToRewind { live, workspace, moved, mut restores, store, .. } =
            opened_with_files(common, Some(&self.session), Some(&self.moved)).await?;
        let mut refused = self.refused(&live.state().await.view, &store);
        if refused.is_ok() && !self.force {
            refused = check_neighbours(common, &live, workspace.as_deref()).await;
        }
        if let Err(error) = refused {
            live.release().await?;
            return Err(error);
        }
        let directory = workspace.as_ref().map(|workspace| workspace.path().to_owned());
        if let Some(workspace) = workspace.filter(|_| !common.json) {
            warn(&live, &workspace, &self.point).await?;
        }
        let done = live.rewind(&self.point, self.reason).await;
        if done.is_ok() {
            live.record(moved).await?;
        }
        live.release().await?;
        let done = done?;
        let runs = self.continues.is_some();
        let continues = continuation(&live, &store, directory.as_deref(), runs).await?;
        let continues = match self.continues.clone().flatten() {
            Some(prompt) => continues.map(|continues| continues.with_prompt(&prompt)),
            None => continues,
        };
        let continues = continues.map(|continues| continues.with_arguments(&self.arguments));
        report(common, &mut restores, &live, &done, ("undo", continues.as_ref())).await?;
        drop(live);
        match continues.filter(|_| self.continues.is_some()) {
            Some(continues) => {
                let ended = continues.run(directory)?;
                let code = ended.code().and_then(|code| u8::try_from(code).ok());
                Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
            }
            None => Ok(ExitCode::SUCCESS),
        }
    }

    /// Fails if the program of a guarded session may still change files, or there is no program to continue.
    fn refused(&self, view: &JournalView, store: &Path) -> anyhow::Result<()> {
        if let Some(command) = CommandSession::of(view) {
            return match () {
                () if self.continues.is_some() => Err(command.refusal()),
                () if self.force => Ok(()),
                () => command.check_quiet(store),
            };
        }
        match GuardedSession::of(view) {
            Some(_) if self.force => Ok(()),
            Some(guarded) => guarded.check_quiet(view),
            None if self.continues.is_some() => {
                Err(Usage("`--continue` needs a guarded session; `resume` continues this one".to_owned())
                    .into())
            }
            None => Ok(()),
        }
    }
}

/// Fails if a command of another guarded conversation runs in the directory of a session: its files would be rewound too.
async fn check_neighbours(
    common: &Common,
    live: &LiveSession,
    workspace: Option<&HostWorkspace>,
) -> anyhow::Result<()> {
    let Some(workspace) = workspace else { return Ok(()) };
    let place = OpenStore::for_reading(common)?;
    let directory = workspace.path().to_string_lossy().into_owned();
    let query = SessionQuery::roots().with_workspace(directory).with_limit(NEIGHBOURS);
    let page = place.runtime.sessions(query).await?;
    for other in page.sessions.iter().filter(|other| is_guarded(other) && other.id() != live.id()) {
        let view = place.view(other.id()).await?;
        if let Some(guarded) = GuardedSession::of(&view) {
            guarded.check_processes(&view)?;
        }
    }
    Ok(())
}

/// Returns the command with which the program of a guarded session continues from its current point. If it `runs` now, the
/// conversation is prepared for it.
async fn continuation(
    live: &LiveSession,
    store: &Path,
    directory: Option<&Path>,
    runs: bool,
) -> anyhow::Result<Option<ContinueCommand>> {
    let view = live.state().await.view.clone();
    let Some(guarded) = GuardedSession::of(&view) else { return Ok(None) };
    let mut continues = guarded.continue_from(&view);
    if runs {
        let here = std::env::current_dir()?;
        continues.prepare(store, live.id(), directory.unwrap_or(&here)).await?;
    } else {
        continues.bind(store, live.id())?;
    }
    Ok(Some(continues))
}

#[derive(Args)]
pub(crate) struct Undo {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    session: Option<String>,
    #[command(flatten)]
    moved: MovedTo,
}

impl Undo {
    /// Undoes the last rewind of a session.
    pub(super) fn of(session: SessionId) -> Self {
        Self { session: Some(session.to_string()), moved: MovedTo::default() }
    }

    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let SessionToRewind { live, workspace, moved, mut restores, store, .. } =
            opened_with_files(common, self.session.as_deref(), Some(&self.moved)).await?;
        let done = live.undo().await;
        if done.is_ok() {
            live.record(moved).await?;
        }
        live.release().await?;
        let done = done?;
        let directory = workspace.as_ref().map(|workspace| workspace.path().to_owned());
        let continues = continuation(&live, &store, directory.as_deref(), false).await?;
        report(common, &mut restores, &live, &done, ("redo", continues.as_ref())).await
    }
}

#[derive(Args)]
pub(crate) struct Redo {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    session: Option<String>,
    #[command(flatten)]
    moved: MovedTo,
}

impl Redo {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let SessionToRewind { live, workspace, moved, mut restores, store, .. } =
            opened_with_files(common, self.session.as_deref(), Some(&self.moved)).await?;
        let done = live.redo().await;
        if done.is_ok() {
            live.record(moved).await?;
        }
        live.release().await?;
        let done = done?;
        let directory = workspace.as_ref().map(|workspace| workspace.path().to_owned());
        let continues = continuation(&live, &store, directory.as_deref(), false).await?;
        report(common, &mut restores, &live, &done, ("undo", continues.as_ref())).await
    }
}

#[derive(Args)]
pub(crate) struct Fork {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Point to fork from: a position, before:CALL, after:CALL, CALL, turn:N, start or head.
    #[arg(default_value = "head")]
    point: PointSpec,
    /// Directory for the files of the fork, outside of the session's own. Default: a new one beside it.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl Fork {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let view = place.view(session).await?;
        let effects = discarded_effects(&**place.runtime.store(), session, &self.point).await?;
        let (id, directory) = forked(&place, &view, self.point, self.workspace).await?;
        if common.json {
            println!(
                "{}",
                json!({
                    "v": 1, "session": id, "fork_of": session, "workspace": directory, "effects": effects,
                })
            );
        } else {
            println!("forked into {}", short(id));
            effect_lines(&effects).for_each(|line| println!("{line}"));
            if let Some(directory) = directory {
                println!("its files are in {}", directory.display());
            }
            match GuardedSession::of(&view) {
                Some(guarded) => println!("the conversation stays with {}", guarded.title()),
                None if CommandSession::of(&view).is_some() => {}
                None => println!("`{}` continues it", common.hint(format_args!("resume {}", short(id)))),
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Forks a session at a point, into a directory of its own. Returns the fork and its directory.
pub(super) async fn forked(
    place: &OpenStore,
    view: &JournalView,
    point: PointSpec,
    workspace: Option<PathBuf>,
) -> anyhow::Result<(SessionId, Option<PathBuf>)> {
    let mut definition = definition_of(place, view, None).await?;
    let own = definition.workspace.path.take();
    let directory = match (&workspace, &own) {
        (Some(directory), _) => Some(directory.clone()),
        (None, None) => None,
        (None, Some(parent)) => Some(beside(parent)?),
    };
    if let (Some(own), Some(parent)) = (&directory, &own) {
        let (own, parent) = (resolved(own)?, resolved(parent)?);
        if own.starts_with(&parent) || parent.starts_with(&own) {
            let message = format!(
                "{} lies in or around the session's own directory {}; name one beside it",
                own.display(),
                parent.display()
            );
            return Err(CommandError::new(ErrorCode::WorkspaceRefused, message).into());
        }
    }
    let id = place.runtime.new_id()?;
    let workspace = match &directory {
        Some(directory) => {
            let mut spec = WorkspaceSpec::new(directory);
            spec.excludes.clone_from(&definition.workspace.excludes);
            Some(place.runtime.open_workspace(&spec, id).await?.workspace)
        }
        None => None,
    };
    // The fork has the definition of its parent, with a directory of its own.
    let directory = directory.map(|directory| directory.canonicalize()).transpose()?;
    definition.workspace.path = directory.clone();
    let definition = Some(definition.to_recorded());
    let options = SessionOptions { workspace, definition, id: Some(id), ..SessionOptions::default() };
    place.runtime.fork_session(view.session_id(), point, options).await?.release().await?;
    Ok((id, directory))
}

/// Resolves a path of which possibly only the beginning exists.
fn resolved(path: &std::path::Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(there), ..) => Ok(there),
        (Err(_), Some(parent), Some(name)) => Ok(resolved(parent)?.join(name)),
        (Err(error), ..) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Returns the path of a directory beside that of a session, which does not exist yet.
fn beside(parent: &std::path::Path) -> anyhow::Result<PathBuf> {
    let name = parent.file_name().and_then(|name| name.to_str()).unwrap_or("workspace");
    let around =
        parent.parent().ok_or_else(|| no_room("there can be no directory beside that of the session"))?;
    (1..1_000)
        .map(|number| around.join(format!("{name}-fork-{number}")))
        .find(|directory| !directory.exists())
        .ok_or_else(|| no_room("there are too many forks beside the session's directory").into())
}

fn no_room(message: &str) -> CommandError {
    CommandError::new(ErrorCode::WorkspaceRefused, message).with_hint("use `--workspace DIR`")
}

/// A session to decide about.
pub(super) struct SessionToDecide {
    pub(super) live: Arc<LiveSession>,
    /// Reports the files that the decision restores.
    pub(super) restores: Restores,
    pub(super) definition: AgentDefinition,
}

/// Opens a session to decide about it.
pub(super) async fn opened_to_decide(
    common: &Common,
    session: Option<&str>,
) -> anyhow::Result<SessionToDecide> {
    let SessionToRewind { live, restores, definition, .. } = opened_with_files(common, session, None).await?;
    Ok(SessionToDecide { live, restores: restores.with_cause(RestoreCause::Call), definition })
}

/// A session that this process holds and does not drive.
pub(super) struct SessionToRewind {
    pub(super) live: Arc<LiveSession>,
    workspace: Option<Arc<HostWorkspace>>,
    /// Records to append if the files were moved.
    moved: Vec<RecordBody>,
    pub(super) restores: Restores,
    definition: AgentDefinition,
    /// Directory of the store.
    store: PathBuf,
}

/// Opens a session with its files, to change both. Fails if another process drives it.
pub(super) async fn opened_with_files(
    common: &Common,
    session: Option<&str>,
    moved: Option<&MovedTo>,
) -> anyhow::Result<SessionToRewind> {
    let place = OpenStore::existing(common)?;
    let session = place.session(session).await?;
    let view = place.view(session).await?;
    let mut definition = definition_of(&place, &view, None).await?;
    let is_other = moved.map(|moved| moved.apply(&mut definition)).transpose()?.unwrap_or_default();
    set_free(common, &place, session, WhenDriven::Refuse).await?;
    bring_back(&place, &view, &definition).await?;
    let workspace = place.workspace(&definition, session)?;
    let files = workspace.clone().map(|workspace| workspace as Arc<dyn Workspace>);
    let options = SessionOptions { workspace: files, ..SessionOptions::default() };
    let live = place.runtime.open_idle(session, options).await?;
    if let Some(workspace) = workspace.as_ref().filter(|_| GuardedSession::of(&view).is_some()) {
        live.keep_files(KeptFiles { paths: kept_files(workspace.path()), objects: place.store.clone() });
    }
    let moved = if is_other { vec![changed(&definition)] } else { Vec::new() };
    let head = live.state().await.view.head();
    let restores = Restores::from(live.store().clone(), session, head, RestoreCause::Person);
    Ok(SessionToRewind { live, workspace, moved, restores, definition, store: place.directory() })
}

/// Warns about what a rewind does not restore: uncovered paths, and the workspace's own repository.
async fn warn(live: &LiveSession, workspace: &HostWorkspace, point: &PointSpec) -> anyhow::Result<()> {
    if let Some(paths) = uncovered(workspace) {
        eprintln!("not covered, and so left as they are: {paths}");
    }
    let view = live.state().await.view.clone();
    let place = locate(&**live.store(), &view, point).await?;
    let Some(coverage) = place.files.and_then(|files| files.coverage) else { return Ok(()) };
    let Some(object) = live.store().object(coverage).await? else { return Ok(()) };
    let then = Coverage::git_head(object.bytes())?;
    for change in then.changes(&workspace.git_head()) {
        eprintln!("the repository has moved since, and is left as it is: {change}");
    }
    Ok(())
}

/// Names the calls whose effects outside are not undone, with their results.
fn effect_lines(effects: &[DiscardedEffect]) -> impl Iterator<Item = String> {
    effects.iter().map(|effect| {
        let arguments = one_line(&effect.arguments.to_string(), 60);
        let result = effect.result.as_deref().map(|result| one_line(result, 60));
        let result = result.unwrap_or_else(|| "interrupted, so its outcome is not known".to_owned());
        format!("not undone outside: {} {arguments}: {result}", effect.name)
    })
}

async fn report(
    common: &Common,
    restores: &mut Restores,
    live: &LiveSession,
    done: &backstitch::RewindReport,
    (opposite, continues): (&str, Option<&ContinueCommand>),
) -> anyhow::Result<ExitCode> {
    let session = live.id();
    let restored = restores.new_ones().await?;
    if common.json {
        println!(
            "{}",
            json!({
                "v": 1, "session": session, "at": done.at, "to": done.to, "root": done.root, "rescue": done.rescue,
                "restored": restored.iter().map(|restore| restore.event(common)).collect::<Vec<_>>(),
                "continue": continues.map(|continues| continues.offer(common, session)), "effects": done.effects,
            })
        );
    } else {
        let command = common.hint(format_args!("{opposite} {}", short(session)));
        let does = if opposite == "undo" { "undoes it" } else { "repeats what was undone" };
        println!("back at {}; `{command}` {does}", done.to);
        effect_lines(&done.effects).for_each(|line| println!("{line}"));
        restored.iter().flat_map(|restore| restore.lines(common)).for_each(|line| println!("{line}"));
        if let Some(continues) = continues {
            println!("continue from here with: {}", continues.offer(common, session));
            continues.caveat.iter().for_each(|caveat| println!("{caveat}"));
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(command) = CommandSession::of(&live.state().await.view) {
            command.again().iter().for_each(|again| println!("`{again}` runs it again"));
            return Ok(ExitCode::SUCCESS);
        }
        let next = match live.state().await.view.latest_evaluation() {
            Some(_) => common.hint(format_args!("resume {}", short(session))),
            None => common.hint(format_args!("ask {} TEXT", short(session))),
        };
        println!("`{next}` continues from here");
    }
    Ok(ExitCode::SUCCESS)
}
