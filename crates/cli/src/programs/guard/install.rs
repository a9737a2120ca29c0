//! `guard install` and `guard uninstall`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use backstitch::SystemClock;
use backstitch::ports::{GcMode, Retention, UncoveredPath};
use backstitch::stores::state_directory;
use backstitch::time::Clock as _;
use backstitch_bridge::Program;
use backstitch_bridge::codex::{distrust, trust};
use backstitch_bridge::settings::{
    HookFile, Plugin, PluginCommand, Scope, add_to_excludes, disabled_by, remove_from_excludes,
};
use clap::Args;
use serde_json::json;

use super::codex;
use super::leftovers;
use super::program::program_parser;
use super::session::{self, memory};
use crate::common::{Common, quoted};
use crate::open::guarded::{PROGRAM, Patience};
use crate::open::{OpenStore, listed};
use crate::report::Report;
use crate::usage;

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
    #[arg(value_parser = program_parser())]
    program: Program,
    #[command(flatten)]
    scope: ScopeFlags,
    /// Deny a call that cannot be guarded. Default: it runs, and the log shows the gap.
    #[arg(long)]
    strict: bool,
    /// Do not add the hooks to the trusted hooks of Codex, which skips all others until you trust them.
    #[arg(long)]
    no_trust: bool,
    /// Write a plugin of Claude Code in place of hooks in its settings. It adds commands for rewinding too.
    #[arg(long, conflicts_with_all = ["user", "project"])]
    plugin: bool,
    /// Ask before a command that discards work in git, such as `git reset --hard`. Codex cannot ask, so there it is denied.
    #[arg(long)]
    ask_destructive: bool,
}

/// Whether the program runs the hooks.
enum Trust {
    /// It runs all hooks.
    NotNeeded,
    /// The hashes are in this file.
    Added(PathBuf),
    /// The person has to trust them, for this reason.
    Left(Option<String>),
}

impl Install {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let here = std::env::current_dir()?.canonicalize()?;
        let project = session::covered(&here);
        let program = std::env::current_exe().context("the path of this command is unknown")?;
        if self.plugin {
            return self.write_plugin(common, &program, &project).await;
        }
        let (path, file) = HookFile::read(self.program, self.scope.scope(), &here, &memory())?;
        let is_project = self.scope.scope() == Scope::Project;
        let (program, flags) = (quoted(&program.to_string_lossy()), self.hook_flags());
        let mut command = format!("{program} guard hook {}{flags}", self.program.name());
        if is_project {
            let covered = uncovered_paths(common, &project).await;
            covered.context("this directory cannot be guarded, and nothing was changed")?;
            command.push_str(&store_option(common)?);
        }
        let changed = file.install(&command)?;
        if is_project {
            add_to_excludes(&path)?;
        }
        // The first capture reads all files, so it is taken here and not by a hook; and after the settings are written, since
        // they may lie in the project.
        let captured = match capture(common, self.program, &project).await {
            Err(error) if is_project => {
                return Err(error.context("the hooks are installed, and the files could not be captured yet"));
            }
            captured => captured,
        };
        let trust = self.trust(&path, &here).await;
        let disabled_by = (self.program == Program::ClaudeCode).then(|| disabled_by(&here)).flatten();
        let (trusted, advice) = match &trust {
            Trust::NotNeeded | Trust::Added(_) => (true, None),
            Trust::Left(reason) => (false, Some(codex::trust_advice(reason.as_deref()))),
        };
        let value = json!({"v": 1, "program": self.program.name(), "settings": path, "changed": changed, "command": command,
            "strict": self.strict, "covered": captured.is_ok(), "trusted": trusted, "advice": advice,
            "disabled_by": disabled_by});
        let state = if changed { "guarded from its next start" } else { "guarded already" };
        let mut lines = vec![match &disabled_by {
            Some(settings) => format!(
                "the hooks are in {}, and do NOT run: `disableAllHooks` in {} turns them off",
                path.display(),
                settings.display()
            ),
            None => format!("{} is {state}: the hooks are in {}", self.program.title(), path.display()),
        }];
        if is_project {
            let here = here.display();
            lines.push(format!("they run if it is started in {here}; `--user` guards it everywhere"));
        }
        match captured {
            Ok(paths) => {
                lines.push(format!("captured {}", project.display()));
                if let Some(paths) = listed(&paths) {
                    lines.push(format!("not covered, and never changed by a rewind: {paths}"));
                }
            }
            Err(error) => lines.push(format!("{} is not covered: {error:#}", project.display())),
        }
        if let Trust::Added(config) = &trust {
            lines.push(format!("Codex trusts them: their hashes are in {}", config.display()));
            lines.extend(is_project.then(|| codex::PROJECT.to_owned()));
        }
        lines.extend(advice.iter().flat_map(|advice| advice.lines()).map(str::to_owned));
        let (log, opposite) = (common.hint("log"), common.hint(self.opposite()));
        lines.push(format!("`{log}` shows what it does; `{opposite}` removes the hooks"));
        Ok(Report::new(&value).lines(lines).print(common))
    }

    fn hook_flags(&self) -> String {
        let strict = if self.strict { " --strict" } else { "" };
        let ask = if self.ask_destructive { " --ask-destructive" } else { "" };
        format!("{strict}{ask}")
    }

    /// Writes the plugin, and captures the project.
    async fn write_plugin(
        &self,
        common: &Common,
        program: &Path,
        project: &Path,
    ) -> anyhow::Result<ExitCode> {
        if self.program != Program::ClaudeCode {
            return usage::refuse("only Claude Code has a plugin of this guard; leave `--plugin` out");
        }
        let store = store_option(common)?;
        let (flags, denies) = (self.hook_flags(), self.strict);
        let program = quoted(&program.to_string_lossy());
        let plugin = Plugin::below(&state_directory()?);
        plugin.write(&PluginCommand { program, flags, store, denies })?;
        let marketplace = plugin.marketplace();
        let commands = [
            format!("claude plugin marketplace add {}", quoted(&marketplace.to_string_lossy())),
            format!("claude plugin install {}", Plugin::INSTALLED_AS),
        ];
        let captured = capture(common, self.program, project).await;
        let value = json!({"v": 1, "program": self.program.name(), "plugin": marketplace, "strict": self.strict,
            "covered": captured.is_ok(), "commands": commands});
        let directory = quoted(&plugin.directory().to_string_lossy());
        Ok(Report::new(&value)
            .line(format!("the plugin is in {}", marketplace.display()))
            .line("install it for all projects with:")
            .lines(commands.iter().map(|line| format!("  {line}")))
            .line(format!("or try it once: claude --plugin-dir {directory}"))
            .line(match captured {
                Ok(_) => format!("captured {}", project.display()),
                Err(error) => format!("{} is not covered: {error:#}", project.display()),
            })
            .print(common))
    }

    async fn trust(&self, settings: &Path, project: &Path) -> Trust {
        match self.program {
            Program::ClaudeCode => Trust::NotNeeded,
            Program::Codex if self.no_trust => Trust::Left(None),
            Program::Codex => match trust(settings, self.scope.scope(), project, &memory()).await {
                Ok(config) => Trust::Added(config),
                Err(error) => Trust::Left(Some(format!("{:#}", anyhow::Error::from(error)))),
            },
        }
    }

    fn opposite(&self) -> String {
        let user = if self.scope.user { " --user" } else { "" };
        format!("guard uninstall {}{user}", self.program.name())
    }
}

#[derive(Args)]
pub(crate) struct Uninstall {
    /// The program whose hooks are removed.
    #[arg(value_parser = program_parser())]
    program: Program,
    #[command(flatten)]
    scope: ScopeFlags,
}

impl Uninstall {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let project = std::env::current_dir()?.canonicalize()?;
        let (path, file) = HookFile::read(self.program, self.scope.scope(), &project, &memory())?;
        let removed = file.uninstall()?;
        if self.scope.scope() == Scope::Project && removed {
            remove_from_excludes(&path)?;
        }
        let distrusted = match self.program {
            Program::ClaudeCode => None,
            Program::Codex => distrust(&path, &memory())?,
        };
        let value = json!({"v": 1, "program": self.program.name(), "settings": path, "removed": removed, "distrusted": distrusted});
        let distrusted = distrusted.as_ref();
        Ok(Report::new(&value)
            .line(match removed {
                true => format!("the hooks are removed from {}; recorded sessions stay", path.display()),
                false => format!("{} holds no hooks of this command", path.display()),
            })
            .lines(distrusted.map(|config| format!("their hashes are removed from {}", config.display())))
            .print(common))
    }
}

/// Returns the paths of a project that are not covered. Fails if it cannot be guarded.
async fn uncovered_paths(common: &Common, project: &Path) -> anyhow::Result<Vec<UncoveredPath>> {
    let place = OpenStore::existing_or_new(common, project)?;
    Ok(place.runtime.uncovered_paths(project).await?)
}

/// Captures the files of a project, so that the first hook only has to look for changes. Returns the paths that are not
/// covered.
async fn capture(common: &Common, program: Program, project: &Path) -> anyhow::Result<Vec<String>> {
    let place = OpenStore::existing_or_new(common, project)?;
    let binding = session::open_prepared(&place, program, project)?;
    let patience = Patience::of_guard();
    let prepared = match session::find_bound(&place, &binding).await {
        Some(known) => session::open(&place, program.name(), known, project, patience).await?,
        None => {
            let id = place.runtime.new_id()?;
            binding.bind("", id, Some(project))?;
            session::create_with_id(&place, program.name(), None, (project, id), patience).await?
        }
    };
    let started = prepared.record_start().await;
    prepared.release().await?;
    started?;
    drop(prepared);
    // The second capture finds everything stored, and leaves a cache that says so.
    let uncovered = place.runtime.prepare_captures(project).await?;
    Ok(uncovered.into_iter().map(|one| one.path).collect())
}

/// Returns the option that names the store in the command of a hook. A store in memory would end with each hook.
fn store_option(common: &Common) -> anyhow::Result<String> {
    let Some(store) = &common.store else { return Ok(String::new()) };
    if store.path().is_none() {
        return usage::refuse(format!("hooks need a store that is a file, and {store} is not"));
    }
    Ok(format!(" --store {}", quoted(&store.absolute()?.to_string())))
}

/// Removes old boundaries of guarded sessions, at most once a day. It is only maintenance, so a failure is only said and the
/// next day tries again.
pub(super) async fn collect(place: &OpenStore) {
    let mark = place.directory.join("guard").join("collected");
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
    let retention = Retention::keep_all().keep_days(SystemClock::new().now(), DAYS).only_tagged(PROGRAM);
    if let Err(error) = place.admin.collect(retention, GcMode::Now).await {
        eprintln!("old boundaries of guarded sessions could not be removed: {error}");
    }
    leftovers::remove(place).await;
}
