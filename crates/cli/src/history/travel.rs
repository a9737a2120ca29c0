//! `rewind`, `undo`, `redo` and `fork`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::agent_file::AgentDefinition;
use backstitch::code::ErrorCode;
use backstitch::host::{KeptFiles, locate, one_line};
use backstitch::id::SessionId;
use backstitch::journal::Note;
use backstitch::ports::SessionQuery;
use backstitch::view::JournalView;
use backstitch::workspace::{Coverage, HostWorkspace};
use backstitch::{
    DiscardedEffect, ForkOptions, ForkReport, OperationFiles, PointSpec, RewindOptions, RewindReport,
    Runtime, RuntimeError, WorkspaceSpec,
};
use clap::Args;
use serde_json::json;

use super::isolated::bring_back;
use super::restores::{Restore, RestoreCause, Restores};
use crate::common::Common;
use crate::error::CommandError;
use crate::open::definition::{MovedTo, changed, definition_of};
use crate::open::guarded::{CommandSession, ContinueCommand, GuardedSession, is_guarded, kept_files};
use crate::open::holder::{WhenDriven, set_free};
use crate::open::place::{OpenStore, short, uncovered};
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
    /// Restart the guarded program at this point. With a PROMPT it needs no terminal.
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
    pub(crate) fn to(session: SessionId, point: PointSpec, force: bool) -> Self {
        let (reason, continues, moved) = (None, None, MovedTo::default());
        Self { session: session.to_string(), point, reason, force, continues, arguments: Vec::new(), moved }
    }

    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let mut opened = SessionToRewind::open(common, Some(&self.session), Some(&self.moved)).await?;
        self.check_program(&opened)?;
        if !self.force {
            opened.check_neighbours().await?;
        }
        if !common.json {
            opened.warn(&self.point).await?;
        }
        let options = RewindOptions { reason: self.reason, ..opened.options() };
        let done = opened.runtime().rewind_with(opened.session, self.point, options).await?;
        opened.record_move().await?;
        let continues = opened.continuation(self.continues.is_some()).await?;
        let continues = match self.continues.as_ref().and_then(Option::as_ref) {
            Some(prompt) => continues.map(|continues| continues.with_prompt(prompt)),
            None => continues,
        };
        let continues = continues.map(|continues| continues.with_arguments(&self.arguments));
        opened.report(common, &done, ("undo", continues.as_ref())).await?;
        let directory = opened.directory();
        // The program works in the directory, too.
        drop(opened);
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
    fn check_program(&self, opened: &SessionToRewind) -> anyhow::Result<()> {
        if let Some(command) = CommandSession::of(&opened.view) {
            return match () {
                () if self.continues.is_some() => Err(command.refusal()),
                () if self.force => Ok(()),
                () => command.check_quiet(&opened.place.directory()),
            };
        }
        match GuardedSession::of(&opened.view) {
            Some(_) if self.force => Ok(()),
            Some(guarded) => guarded.check_quiet(&opened.view),
            None if self.continues.is_some() => {
                Err(Usage("`--continue` needs a guarded session; `resume` continues this one".to_owned())
                    .into())
            }
            None => Ok(()),
        }
    }
}

// The arguments of `undo` and of `redo`. Their help is that of the command.
#[derive(Args)]
pub(crate) struct Undo {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    session: Option<String>,
    #[command(flatten)]
    moved: MovedTo,
}

impl Undo {
    /// Undoes the last rewind of a session.
    pub(crate) fn of(session: SessionId) -> Self {
        Self { session: Some(session.to_string()), moved: MovedTo::default() }
    }

    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        self.carry_out(common, UndoStep::Undo).await
    }

    /// Repeats what was undone.
    pub(crate) async fn redo(self, common: &Common) -> anyhow::Result<ExitCode> {
        self.carry_out(common, UndoStep::Redo).await
    }

    async fn carry_out(self, common: &Common, step: UndoStep) -> anyhow::Result<ExitCode> {
        let mut opened = SessionToRewind::open(common, self.session.as_deref(), Some(&self.moved)).await?;
        let (runtime, session, options) = (opened.runtime(), opened.session, opened.options());
        let (done, opposite) = match step {
            UndoStep::Undo => (runtime.undo_with(session, options).await?, "redo"),
            UndoStep::Redo => (runtime.redo_with(session, options).await?, "undo"),
        };
        opened.record_move().await?;
        let continues = opened.continuation(false).await?;
        opened.report(common, &done, (opposite, continues.as_ref())).await
    }
}

/// A step through the rewinds of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UndoStep {
    Undo,
    Redo,
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
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let view = place.view(session).await?;
        let (ForkReport { session: id, effects }, directory) =
            forked(&place, &view, self.point, self.workspace).await?;
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
pub(crate) async fn forked(
    place: &OpenStore,
    view: &JournalView,
    point: PointSpec,
    workspace: Option<PathBuf>,
) -> anyhow::Result<(ForkReport, Option<PathBuf>)> {
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
    // The fork has the definition of its parent, with a directory of its own.
    let directory = directory.map(|directory| resolved(&directory)).transpose()?;
    let workspace = directory.as_ref().map(|directory| {
        let mut spec = WorkspaceSpec::new(directory);
        spec.excludes.clone_from(&definition.workspace.excludes);
        spec
    });
    definition.workspace.path = directory.clone();
    let definition = Some(definition.to_recorded());
    let options = ForkOptions { workspace, definition };
    let report = place.runtime.fork_with(view.session_id(), point, options).await?;
    Ok((report, directory))
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

/// A session whose history or files change, with its files.
pub(crate) struct SessionToRewind {
    pub(crate) place: OpenStore,
    pub(crate) session: SessionId,
    /// Its view before the change.
    pub(crate) view: JournalView,
    pub(crate) definition: AgentDefinition,
    workspace: Option<Arc<HostWorkspace>>,
    /// The note to add if the files were moved.
    moved: Option<Note>,
    restores: Restores,
}

impl SessionToRewind {
    /// Opens the files of a session. Fails if another process drives it.
    pub(crate) async fn open(
        common: &Common,
        session: Option<&str>,
        moved: Option<&MovedTo>,
    ) -> anyhow::Result<Self> {
        let place = OpenStore::existing(common)?;
        let session = place.session(session).await?;
        let view = place.view(session).await?;
        let mut definition = definition_of(&place, &view, None).await?;
        let is_other = moved.map(|moved| moved.apply(&mut definition)).transpose()?.unwrap_or_default();
        set_free(common, &place, session, WhenDriven::Refuse).await?;
        bring_back(&place, &view, &definition).await?;
        let workspace = place.workspace(&definition, session)?;
        let moved = is_other.then(|| changed(&definition));
        let store = place.runtime.store().clone();
        let restores = Restores::from(store, session, view.head(), RestoreCause::Person);
        Ok(Self { place, session, view, definition, workspace, moved, restores })
    }

    /// Names another cause of the files that are restored.
    pub(crate) fn with_cause(self, cause: RestoreCause) -> Self {
        Self { restores: self.restores.with_cause(cause), ..self }
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.place.runtime
    }

    /// The files for an operation. A session without a directory has none.
    pub(crate) fn files(&self) -> OperationFiles {
        self.workspace.clone().map_or(OperationFiles::Untouched, OperationFiles::within)
    }

    /// The options of a rewind. The settings of a guarded program stay as they are.
    pub(crate) fn options(&self) -> RewindOptions {
        let guarded = self.workspace.as_ref().filter(|_| GuardedSession::of(&self.view).is_some());
        let kept = guarded.map(|workspace| KeptFiles {
            paths: kept_files(workspace.path()),
            objects: self.place.objects.clone(),
        });
        RewindOptions { files: self.files(), kept, reason: None }
    }

    /// Returns the restores that were recorded since the files were opened.
    pub(crate) async fn new_restores(&mut self) -> Result<Vec<Restore>, RuntimeError> {
        self.restores.new_ones().await
    }

    /// Records the new directory, if the files were moved.
    async fn record_move(&mut self) -> anyhow::Result<()> {
        match self.moved.take() {
            Some(moved) => Ok(self.runtime().add_note(self.session, moved).await?),
            None => Ok(()),
        }
    }

    fn directory(&self) -> Option<PathBuf> {
        self.workspace.as_ref().map(|workspace| workspace.path().to_owned())
    }

    /// Fails if a command of another guarded conversation runs in the directory of the session: its files would be rewound
    /// too.
    async fn check_neighbours(&self) -> anyhow::Result<()> {
        let Some(directory) = self.directory() else { return Ok(()) };
        let directory = directory.to_string_lossy().into_owned();
        let query = SessionQuery::roots().with_workspace(directory).with_limit(NEIGHBOURS);
        let page = self.runtime().sessions(query).await?;
        for other in page.sessions.iter().filter(|other| is_guarded(other) && other.id() != self.session) {
            let view = self.place.view(other.id()).await?;
            if let Some(guarded) = GuardedSession::of(&view) {
                guarded.check_processes(&view)?;
            }
        }
        Ok(())
    }

    /// Warns about what a rewind does not restore: uncovered paths, and the workspace's own repository.
    async fn warn(&self, point: &PointSpec) -> anyhow::Result<()> {
        let Some(workspace) = &self.workspace else { return Ok(()) };
        if let Some(paths) = uncovered(&**workspace) {
            eprintln!("not covered, and so left as they are: {paths}");
        }
        let store = self.runtime().store();
        let point = locate(&**store, &self.view, point).await?;
        let Some(coverage) = point.files.and_then(|files| files.coverage) else { return Ok(()) };
        let Some(object) = store.object(coverage).await? else { return Ok(()) };
        let then = Coverage::git_head(object.bytes())?;
        for change in then.changes(&workspace.git_head()) {
            eprintln!("the repository has moved since, and is left as it is: {change}");
        }
        Ok(())
    }

    /// Returns the command with which the program of a guarded session continues from its current point. If it `runs` now,
    /// the conversation is prepared for it.
    async fn continuation(&self, runs: bool) -> anyhow::Result<Option<ContinueCommand>> {
        let view = self.place.view(self.session).await?;
        let Some(guarded) = GuardedSession::of(&view) else { return Ok(None) };
        let (mut continues, store) = (guarded.continue_from(&view), self.place.directory());
        if runs {
            let directory = self.directory().map_or_else(std::env::current_dir, Ok)?;
            continues.prepare(&store, self.session, &directory).await?;
        } else {
            continues.bind(&store, self.session)?;
        }
        Ok(Some(continues))
    }

    /// Prints a rewind, what it restored, and how to continue.
    async fn report(
        &mut self,
        common: &Common,
        done: &RewindReport,
        (opposite, continues): (&str, Option<&ContinueCommand>),
    ) -> anyhow::Result<ExitCode> {
        let session = self.session;
        let restored = self.new_restores().await?;
        if common.json {
            println!(
                "{}",
                json!({
                    "v": 1, "session": session, "at": done.at, "to": done.to, "root": done.root, "rescue": done.rescue,
                    "restored": restored.iter().map(|restore| restore.event(common)).collect::<Vec<_>>(),
                    "continue": continues.map(|continues| continues.offer(common, session)), "effects": done.effects,
                })
            );
            return Ok(ExitCode::SUCCESS);
        }
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
        let view = self.place.view(session).await?;
        if let Some(command) = CommandSession::of(&view) {
            command.again().iter().for_each(|again| println!("`{again}` runs it again"));
            return Ok(ExitCode::SUCCESS);
        }
        let next = match view.latest_evaluation() {
            Some(_) => common.hint(format_args!("resume {}", short(session))),
            None => common.hint(format_args!("ask {} TEXT", short(session))),
        };
        println!("`{next}` continues from here");
        Ok(ExitCode::SUCCESS)
    }
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
