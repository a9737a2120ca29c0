//! `guard install` and `guard uninstall`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use backstitch::ports::Workspace as _;
use backstitch::store::{GcMode, Retention};
use clap::Args;
use serde_json::json;

use super::binding::PATIENCE;
use super::codex;
use super::leftovers;
use super::program::{Program, Scope};
use super::resume::PROGRAM;
use super::session;
use super::settings::SettingsFile;
use crate::common::{Common, quoted};
use crate::sessions::place::{OpenStore, uncovered};

/// How long the boundaries of guarded sessions are kept.
const DAYS: u32 = 14;

/// How often they are collected at most.
const COLLECT_EVERY: Duration = Duration::from_hours(24);

/// Where the hooks are.
#[derive(Args, Clone, Copy)]
pub(super) struct ScopeFlags {
    /// For all projects of this user. Default: for this project only.
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// For this project only, which is the default.
    #[arg(long)]
    project: bool,
}

impl ScopeFlags {
    pub(super) fn scope(self) -> Scope {
        if self.user { Scope::User } else { Scope::Project }
    }
}

#[derive(Args)]
pub(crate) struct Install {
    /// The program to guard.
    #[arg(value_enum)]
    program: Program,
    #[command(flatten)]
    scope: ScopeFlags,
    /// Deny a call that cannot be guarded. Default: it runs, and the log shows the gap.
    #[arg(long)]
    strict: bool,
}

impl Install {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let project = std::env::current_dir()?.canonicalize()?;
        let path = settings_path(self.program, self.scope.scope(), &project)?;
        let file = SettingsFile::read(self.program, &path)?;
        if self.scope.scope() == Scope::Project {
            let place = OpenStore::existing_or_new(common, &project);
            let opened = place.and_then(|place| place.open_workspace(&project, &[], "that is being guarded"));
            opened.context("this directory cannot be guarded, and nothing was changed")?;
        }
        let program = std::env::current_exe().context("the path of this command is unknown")?;
        let mut command =
            format!("{} guard hook {}", quoted(&program.to_string_lossy()), self.program.name());
        if self.strict {
            command.push_str(" --strict");
        }
        if let Some(store) = common.store.as_ref().filter(|_| self.scope.scope() == Scope::Project) {
            let store = std::path::absolute(store)?;
            command.push_str(&format!(" --store {}", quoted(&store.to_string_lossy())));
        }
        let changed = file.install(&command)?;
        // The first capture reads all files, so it is taken here and not by a hook; and after the settings are written, since
        // they may lie in the project.
        let captured = capture(common, self.program, &project).await;
        if self.scope.scope() == Scope::Project
            && let Err(error) = captured
        {
            return Err(error.context("the hooks are installed, and the files could not be captured yet"));
        }
        let advice = match self.program {
            Program::Codex => codex::trust_advice(self.scope.scope()),
            Program::ClaudeCode => None,
        };
        if common.json {
            println!(
                "{}",
                json!({"v": 1, "program": self.program.name(), "settings": path, "changed": changed, "command": command,
                    "strict": self.strict, "covered": captured.is_ok(), "advice": advice})
            );
            return Ok(ExitCode::SUCCESS);
        }
        let state = if changed { "guarded from its next start" } else { "guarded already" };
        println!("{} is {state}: the hooks are in {}", self.program.title(), path.display());
        match captured {
            Ok(CaptureSummary { uncovered }) => {
                println!("captured {}", project.display());
                if let Some(paths) = uncovered {
                    println!("not covered, and never changed by a rewind: {paths}");
                }
            }
            Err(error) => println!("{} is not covered: {error:#}", project.display()),
        }
        if let Some(advice) = advice {
            println!("{advice}");
        }
        println!(
            "`{}` shows what it does; `{}` removes the hooks",
            common.hint("log"),
            common.hint(self.opposite())
        );
        Ok(ExitCode::SUCCESS)
    }

    fn opposite(&self) -> String {
        let user = if self.scope.user { " --user" } else { "" };
        format!("guard uninstall {}{user}", self.program.name())
    }
}

#[derive(Args)]
pub(crate) struct Uninstall {
    /// The program whose hooks are removed.
    #[arg(value_enum)]
    program: Program,
    #[command(flatten)]
    scope: ScopeFlags,
}

impl Uninstall {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let project = std::env::current_dir()?.canonicalize()?;
        let path = settings_path(self.program, self.scope.scope(), &project)?;
        let removed = SettingsFile::read(self.program, &path)?.uninstall()?;
        if common.json {
            println!(
                "{}",
                json!({"v": 1, "program": self.program.name(), "settings": path, "removed": removed})
            );
        } else if removed {
            println!("the hooks are removed from {}; recorded sessions stay", path.display());
        } else {
            println!("{} holds no hooks of this command", path.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub(super) fn settings_path(program: Program, scope: Scope, project: &Path) -> anyhow::Result<PathBuf> {
    program
        .settings(scope, project)
        .with_context(|| format!("HOME names no directory for the settings of {}", program.title()))
}

struct CaptureSummary {
    uncovered: Option<String>,
}

/// Captures the files of a project, so that the first hook only has to look for changes.
async fn capture(common: &Common, program: Program, project: &Path) -> anyhow::Result<CaptureSummary> {
    let place = OpenStore::existing_or_new(common, project)?;
    let binding = session::prepared(&place, program, project)?;
    let until = Instant::now() + PATIENCE;
    let prepared = match session::bound(&place, &binding).await {
        Some(known) => session::open(&place, program.name(), known, project, until).await?,
        None => session::create(&place, program.name(), None, project, until).await?,
    };
    binding.bind("", prepared.id(), Some(project))?;
    let started = prepared.started().await;
    prepared.live().release().await?;
    started?;
    drop(prepared);
    // The second capture finds everything stored, and leaves a cache that says so.
    let workspace = place.open_workspace(project, &[], "that is being guarded")?;
    let found = workspace.clone();
    tokio::task::spawn_blocking(move || found.capture()).await??;
    workspace.save_cache()?;
    Ok(CaptureSummary { uncovered: uncovered(&workspace) })
}

/// Removes old boundaries of guarded sessions, at most once a day. It is only maintenance, so a failure is only said and the
/// next day tries again.
pub(super) async fn collect(place: &OpenStore) {
    let mark = place.directory().join("guard").join("collected");
    let age = std::fs::metadata(&mark).and_then(|found| found.modified()).ok();
    let age = age.and_then(|at| SystemTime::now().duration_since(at).ok());
    if age.is_some_and(|age| age < COLLECT_EVERY) {
        return;
    }
    let _ = std::fs::write(&mark, b"");
    // The first start has nothing to collect.
    if age.is_none() {
        return;
    }
    let retention = Retention::keep_all().keep_days(DAYS).only_tagged(PROGRAM);
    if let Err(error) = place.store.gc(retention, GcMode::Now) {
        eprintln!("old boundaries of guarded sessions could not be removed: {error}");
    }
    leftovers::remove(place).await;
}
