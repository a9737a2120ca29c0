//! `rewind`, `undo` and `redo`: steps through the history of a session. `restore`: single files of a point.

use std::process::ExitCode;

use backstitch::host::one_line;
use backstitch::id::SessionId;
use backstitch::ports::{FilePath, ReversalConflicts};
use backstitch::report::RewindReport;
use backstitch::{
    DiscardedEffect, HistoryStep, PointSpec, RewindOptions, RewindScope, RewoundFiles, RuntimeError,
};
use clap::Args;
use serde_json::json;

use super::idle::IdleSession;
use super::points;
use super::restores::{self, RestoreCause, left_alone};
use super::scope::{self, ScopeArguments};
use crate::common::Common;
use crate::open::definition::MovedTo;
use crate::open::guarded::{CommandSession, ContinueCommand, GuardedSession, Patience};
use crate::open::{OpenStore, SessionPoints, in_session_or_whole, listed, short};
use crate::report::Report;
use crate::terminal;
use crate::usage;

#[derive(Args)]
pub(crate) struct Rewind {
    /// Session: its id, at least 4 characters of its beginning or end, or its name. Default: on a terminal, the latest session.
    session: Option<String>,
    /// Point to return to: a position, before:CALL, after:CALL, CALL, turn:N, start or rescue:POSITION. Default: a terminal
    /// lists the latest calls, and asks.
    point: Option<String>,
    /// Reason, which the log shows. Default: none.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    scope: ScopeArguments,
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
        let (session, point) = (Some(session.to_string()), Some(point.to_string()));
        let scope = ScopeArguments::forced(force);
        Self { session, point, reason, scope, continues, arguments: Vec::new(), moved }
    }

    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let SessionPoints { session, points } =
            SessionPoints::of([self.session.clone(), self.point.clone()])?;
        let mut points = points.into_iter();
        let point = points.next();
        if points.next().is_some() {
            return usage::refuse(
                "a session returns to one point: the first of two words has to be a session",
            );
        }
        if session.is_none() && !common.can_ask() {
            // The variable of a script that is not set must not change another session.
            return usage::refuse(
                "name the session to rewind; only on a terminal, the latest one is the default",
            );
        }
        let mut opened = IdleSession::open(common, session.as_deref(), Some(&self.moved)).await?;
        self.check_continuation(&opened)?;
        check_quiet(common, &mut opened, &self.scope).await?;
        let chosen = match point {
            Some(point) => Some(point),
            None => points::choose(common, &opened.place, &opened.view)?,
        };
        let Some(point) = chosen else { return Ok(unchanged(common)) };
        let options = RewindOptions { reason: self.reason, scope: self.scope.scope(), ..opened.options() };
        let step = HistoryStep::To(point);
        if !is_wanted(common, (&opened.place, opened.session), (&step, &options)).await? {
            return Ok(unchanged(common));
        }
        let done = take_step(&opened.place, opened.session, &step, &options).await?;
        if done.dry_run {
            return Ok(planned(&done, format!("would return to {}", done.to)).print(common));
        }
        opened.record_move().await?;
        let continues = continuation(&opened, self.continues.is_some()).await?;
        let prompt = self.continues.as_ref().and_then(Option::as_deref);
        let continues = continues.map(|continues| continues.with_arguments(prompt, &self.arguments));
        let headline = format!("back at {}", done.to);
        let report = report(common, &opened, &done, headline, (UNDO, continues.as_ref())).await?;
        let code = report.print(common);
        match continues.filter(|_| self.continues.is_some()) {
            Some(continues) => continues.run(opened.directory().map(ToOwned::to_owned)),
            None => Ok(code),
        }
    }

    /// Fails if there is no program to continue.
    fn check_continuation(&self, opened: &IdleSession) -> anyhow::Result<()> {
        if self.continues.is_none() {
            return Ok(());
        }
        match (CommandSession::of(&opened.view), GuardedSession::of(&opened.view)) {
            (Some(command), _) => Err(command.refusal()),
            (None, None) => {
                usage::refuse("`--continue` needs a guarded session; `resume` continues this one")
            }
            (None, Some(_)) => Ok(()),
        }
    }
}

// The help of `redo` and of `undo` is that of the command.
#[derive(Args)]
pub(crate) struct Redo {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    session: Option<String>,
    #[command(flatten)]
    scope: ScopeArguments,
    #[command(flatten)]
    moved: MovedTo,
}

#[derive(Args)]
pub(crate) struct Undo {
    #[command(flatten)]
    step: Redo,
    /// Undo what this call changed in the files, and nothing else: its id, or at least 4 characters of its beginning or
    /// end. Other calls keep their changes, and the conversation stays. Default: the latest rewind is undone.
    #[arg(long, value_name = "CALL", conflicts_with_all = ["all_files", "only"])]
    call: Option<String>,
}

impl Undo {
    /// Undoes the last rewind of a session.
    pub(crate) fn of(session: SessionId) -> Self {
        let (scope, moved) = (ScopeArguments::default(), MovedTo::default());
        Self { step: Redo { session: Some(session.to_string()), scope, moved }, call: None }
    }

    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        match self.call {
            Some(call) => self.step.step(common, HistoryStep::UndoCall(call), UNDO).await,
            None => self.step.step(common, HistoryStep::Undo, REDO).await,
        }
    }
}

impl Redo {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        self.step(common, HistoryStep::Redo, UNDO).await
    }

    async fn step(self, common: &Common, step: HistoryStep, opposite: Opposite) -> anyhow::Result<ExitCode> {
        let mut opened = IdleSession::open(common, self.session.as_deref(), Some(&self.moved)).await?;
        check_quiet(common, &mut opened, &self.scope).await?;
        let options = RewindOptions { scope: self.scope.scope(), ..opened.options() };
        let of_call = match &step {
            HistoryStep::UndoCall(call) => Some(call.clone()),
            _ => None,
        };
        if !is_wanted(common, (&opened.place, opened.session), (&step, &options)).await? {
            return Ok(unchanged(common));
        }
        let done = take_step(&opened.place, opened.session, &step, &options).await?;
        if done.dry_run {
            let headline = match &of_call {
                Some(call) => format!("would undo what {call} changed"),
                None => format!("would return to {}", done.to),
            };
            return Ok(planned(&done, headline).print(common));
        }
        let headline = match &of_call {
            Some(call) => format!("what {call} changed is undone"),
            None => format!("back at {}", done.to),
        };
        opened.record_move().await?;
        let continues = continuation(&opened, false).await?;
        let report = report(common, &opened, &done, headline, (opposite, continues.as_ref())).await?;
        Ok(report.print(common))
    }
}

/// The command that leads back from a step: its name, and what it does.
type Opposite = (&'static str, &'static str);

const UNDO: Opposite = ("undo", "undoes it");
const REDO: Opposite = ("redo", "repeats what was undone");

/// The question after the list of what a step would do.
const QUESTION: &str = "do it like this? [y/N] ";

/// Fails if the program of the session, or another session in its directory, may still change files.
async fn check_quiet(
    common: &Common,
    opened: &mut IdleSession,
    scope: &ScopeArguments,
) -> anyhow::Result<()> {
    match scope.needs_quiet() {
        true => opened.check_quiet(common).await,
        false => Ok(()),
    }
}

/// Shows a person what a step would do, if it leaves files alone or merges them, and asks whether to do it. Without a terminal,
/// or if the files are forced, nobody is asked.
pub(crate) async fn is_wanted(
    common: &Common,
    (place, session): (&OpenStore, SessionId),
    (step, options): (&HistoryStep, &RewindOptions),
) -> anyhow::Result<bool> {
    let scope = options.scope;
    let is_forced = scope.conflicts == ReversalConflicts::TakeTarget || scope.files == RewoundFiles::All;
    if scope.dry_run || is_forced || !common.can_ask() {
        return Ok(true);
    }
    let preview = RewindOptions { scope: RewindScope { dry_run: true, ..scope }, ..options.clone() };
    let plan = take_step(place, session, step, &preview).await?;
    if plan.own_files.merged.is_empty() && plan.own_files.conflicts.is_empty() {
        return Ok(true);
    }
    scope::planned_lines(&plan).iter().for_each(terminal::error_line);
    Ok(terminal::confirm(QUESTION)?)
}

/// Takes a step once no guard records the session or its directory.
async fn take_step(
    place: &OpenStore,
    session: SessionId,
    step: &HistoryStep,
    options: &RewindOptions,
) -> Result<RewindReport, RuntimeError> {
    let step = || place.runtime.step(session, step.clone(), options.clone());
    Patience::of_person().retry(place, step).await
}

/// Says that a person has decided against a step.
fn unchanged(common: &Common) -> ExitCode {
    Report::new(&json!({"v": 1, "changed": false})).line("nothing was changed").print(common)
}

/// Returns the command with which the program of a guarded session continues from its current point. If it `runs` now,
/// the conversation is prepared for it.
async fn continuation(opened: &IdleSession, runs: bool) -> anyhow::Result<Option<ContinueCommand>> {
    let view = opened.place.view(opened.session).await?;
    let Some(guarded) = GuardedSession::of(&view) else { return Ok(None) };
    let (mut continues, store) = (guarded.continue_from(&view), &opened.place.directory);
    if runs {
        let directory = opened.directory().map(ToOwned::to_owned).map_or_else(std::env::current_dir, Ok)?;
        continues.prepare(store, opened.session, &directory).await?;
    } else {
        continues.bind(store, opened.session)?;
    }
    Ok(Some(continues))
}

/// Reports what a step would do.
fn planned(done: &RewindReport, headline: String) -> Report {
    let lines = scope::planned_lines(done);
    Report::new(done).line(headline).lines(lines).lines(effect_lines(&done.effects))
}

/// Reports a step, what it restored, what it left as it is, and how to continue.
async fn report(
    common: &Common,
    opened: &IdleSession,
    done: &RewindReport,
    headline: String,
    ((name, does), continues): (Opposite, Option<&ContinueCommand>),
) -> anyhow::Result<Report> {
    let session = done.session;
    let offer = continues.map(|continues| continues.offer(common, session));
    let command = common.hint(format_args!("{name} {}", short(session)));
    let report = Report::new(done)
        .with("restored", restores::events(common, &done.restored))
        .with("continue", offer.clone())
        .line(format!("{headline}; `{command}` {does}"))
        .lines(outcome_lines(common, done));
    if let (Some(continues), Some(offer)) = (continues, offer) {
        let caveat = continues.caveat.clone();
        return Ok(report.line(format!("continue from here with: {offer}")).lines(caveat));
    }
    let view = opened.place.view(session).await?;
    if let Some(command) = CommandSession::of(&view) {
        return Ok(report.lines(command.again().map(|again| format!("`{again}` runs it again"))));
    }
    let next = match view.latest_evaluation() {
        Some(_) => common.hint(format_args!("resume {}", short(session))),
        None => common.hint(format_args!("ask {} TEXT", short(session))),
    };
    Ok(report.line(format!("`{next}` continues from here")))
}

/// Names what a step restored, what it left as it is, and the effects outside that it does not undo.
pub(crate) fn outcome_lines(common: &Common, done: &RewindReport) -> Vec<String> {
    let restored = done.restored.iter();
    let restored = restored.flat_map(|restored| restores::lines(common, restored, RestoreCause::Person));
    let lines = effect_lines(&done.effects).chain(restored).chain(scope::shared_lines(done));
    lines.chain(untouched_lines(done)).collect()
}

/// Names what a step did not restore: uncovered paths, and the workspace's own repository.
fn untouched_lines(done: &RewindReport) -> impl Iterator<Item = String> {
    let paths: Vec<String> = done.left_alone.iter().map(|left| left.path.clone()).collect();
    let paths = listed(&paths).map(|paths| format!("not covered, and so left as they are: {paths}"));
    let moved = done.repository_changes.iter();
    let moved = moved.map(|change| format!("the repository has moved since, and is left as it is: {change}"));
    paths.into_iter().chain(moved)
}

/// Names the calls whose effects outside are not undone, with their results.
pub(super) fn effect_lines(effects: &[DiscardedEffect]) -> impl Iterator<Item = String> {
    effects.iter().map(|effect| {
        let arguments = one_line(&effect.arguments.to_string(), 60);
        let result = effect.result.as_deref().map(|result| one_line(result, 60));
        let result = result.unwrap_or_else(|| "interrupted, so its outcome is not known".to_owned());
        format!("not undone outside: {} {arguments}: {result}", effect.name)
    })
}

#[derive(Args)]
pub(crate) struct Restore {
    /// Files and directories to restore, relative to the directory of the session. `.` is the current directory.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Point whose files are restored: a position, before:CALL, after:CALL, CALL, turn:N, start, head or rescue:POSITION.
    #[arg(long, value_name = "POINT")]
    from: PointSpec,
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// With `.`: restore all files, not only those that the session changed.
    #[arg(long)]
    all_files: bool,
    /// With `.`: restore also files that others changed, where the changes cannot be merged; restore files although another
    /// session in the directory may still change them.
    #[arg(long)]
    force: bool,
    /// List what would be restored, merged and left alone, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Restore {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let mut opened = IdleSession::open(common, self.session.as_deref(), None).await?;
        if !self.force && !self.dry_run {
            opened.check_quiet(common).await?;
        }
        let paths = self.paths.iter().map(|path| in_session_or_whole(&opened.view, path));
        let paths = paths.collect::<anyhow::Result<Vec<_>>>()?;
        let files = if self.all_files { RewoundFiles::All } else { RewoundFiles::Own };
        let conflicts =
            if self.force { ReversalConflicts::TakeTarget } else { ReversalConflicts::LeaveAlone };
        let attempt = |dry_run: bool| {
            let scope = RewindScope { files, conflicts, dry_run, ..RewindScope::default() };
            let options = RewindOptions { scope, ..opened.options() };
            opened.place.runtime.restore_with(opened.session, self.from.clone(), paths.clone(), options)
        };
        let restore = |dry_run: bool| Patience::of_person().retry(&opened.place, move || attempt(dry_run));
        // Only the root is merged. What is named is restored.
        let is_merged = paths.iter().any(FilePath::is_root) && !self.all_files && !self.force;
        if is_merged && !self.dry_run && common.can_ask() {
            let plan = restore(true).await?;
            if !(plan.merged.is_empty() && plan.conflicts.is_empty()) {
                scope::restore_lines(&plan).iter().for_each(terminal::error_line);
                if !terminal::confirm(QUESTION)? {
                    return Ok(unchanged(common));
                }
            }
        }
        let done = restore(self.dry_run).await?;
        if done.dry_run {
            let headline = format!("would restore from {}", done.from);
            return Ok(Report::new(&done).line(headline).lines(scope::restore_lines(&done)).print(common));
        }
        let undo = common.hint(format_args!("undo {}", short(opened.session)));
        let left: Vec<String> = left_alone(&done.kept).collect();
        Ok(Report::new(&done)
            .with("left_alone", left.clone())
            .lines(scope::restore_lines(&done))
            .lines(left)
            .line(format!("restored from {}; `{undo}` undoes it", done.from))
            .print(common))
    }
}
