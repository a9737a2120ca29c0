//! `guard status`: what is guarded, and what is not covered.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backstitch::ports::SessionQuery;
use backstitch::stores::{self, state_directory};
use backstitch_bridge::codex::{HookTrust, list_trust};
use backstitch_bridge::settings::{
    HookFile, InstalledHook, Plugin, Scope, added_directories, disabled_by, file_of,
};
use backstitch_bridge::{Program, hooks};
use serde_json::{Value, json};

use super::codex;
use super::session::{self, memory};
use crate::common::{Common, counted};
use crate::open::guarded::is_guarded;
use crate::open::{OpenStore, short};
use crate::report::Report;

/// How many of the newest sessions are counted.
const COUNTED: usize = 1_000;

/// The hooks of a program in one settings file.
struct HookStatus {
    program: Program,
    scope: Scope,
    path: PathBuf,
    events: Vec<String>,
    missing: Vec<&'static str>,
    strict: bool,
    problem: Option<String>,
    /// Whether Codex runs them.
    trust: Option<HookTrust>,
    /// The settings that turn all hooks off.
    disabled_by: Option<PathBuf>,
    /// The command that the hooks start, if it does not exist.
    missing_command: Option<PathBuf>,
}

impl HookStatus {
    async fn of(program: Program, scope: Scope, project: &Path) -> Option<Self> {
        let path = file_of(program, scope, project)?;
        let (path, installed, problem) = match HookFile::read(program, scope, project, &memory()) {
            Ok((path, file)) => (path, file.installed(), None),
            Err(error) => (path, Vec::new(), Some(format!("{:#}", anyhow::Error::from(error)))),
        };
        let trust = if program == Program::Codex && !installed.is_empty() {
            Some(list_trust(&path, scope, project).await)
        } else {
            None
        };
        let events: Vec<String> = installed.iter().map(|hook| hook.event.clone()).collect();
        let wanted = hooks::events(program).iter();
        let missing = wanted.filter(|event| !events.iter().any(|known| known == *event)).copied();
        let strict = installed.iter().any(|hook| hook.command.contains(" --strict"));
        let missing = missing.collect();
        let disabled_by = (program == Program::ClaudeCode).then(|| disabled_by(project)).flatten();
        let mut files = installed.iter().filter_map(InstalledHook::file);
        let missing_command = files.find(|file| !file.exists());
        Some(Self {
            program,
            scope,
            path,
            events,
            missing,
            strict,
            problem,
            trust,
            disabled_by,
            missing_command,
        })
    }

    fn scope_word(&self) -> &'static str {
        match self.scope {
            Scope::User => "user",
            Scope::Project => "project",
        }
    }

    fn to_json(&self) -> Value {
        let trusted = match &self.trust {
            None => Some(true),
            Some(HookTrust::Unknown(_)) => None,
            Some(trust) => Some(*trust == HookTrust::Trusted),
        };
        json!({"program": self.program.name(), "scope": self.scope_word(), "settings": self.path, "events": self.events,
            "missing": self.missing, "strict": self.strict, "problem": self.problem, "trusted": trusted,
            "disabled_by": self.disabled_by, "missing_command": self.missing_command})
    }

    /// Returns what keeps Codex from running the hooks, or that nothing does.
    fn trust_line(&self, common: &Common) -> Option<String> {
        let user = if self.scope == Scope::User { " --user" } else { "" };
        let again = common.hint(format_args!("guard install codex{user}"));
        Some(match self.trust.as_ref()? {
            HookTrust::Trusted => "Codex trusts these hooks".to_owned(),
            HookTrust::Untrusted(count) => {
                format!(
                    "Codex skips {} that it does not trust; `{again}` makes it trust them",
                    counted(*count, "hook")
                )
            }
            HookTrust::UntrustedProject => codex::PROJECT.to_owned(),
            HookTrust::Unknown(reason) => format!("whether Codex trusts these hooks is unknown: {reason}"),
        })
    }

    fn line(&self) -> Option<String> {
        let path = self.path.display();
        let title = self.program.title();
        if let Some(problem) = &self.problem {
            return Some(format!("{title}: {problem}"));
        }
        if self.events.is_empty() {
            return None;
        }
        if let Some(settings) = &self.disabled_by {
            let settings = settings.display();
            return Some(format!(
                "{title} is NOT guarded, although its hooks are in {path}: `disableAllHooks` in {settings} turns them off"
            ));
        }
        if let Some(command) = &self.missing_command {
            let (command, name) = (command.display(), self.program.name());
            let user = if self.scope == Scope::User { " --user" } else { "" };
            return Some(format!(
                "{title} is NOT guarded, although its hooks are in {path}: they start {command}, which does not exist; \
                 `backstitch guard install {name}{user}` repairs them"
            ));
        }
        let strict = if self.strict { ", calls that cannot be guarded are denied" } else { "" };
        let scope = match self.scope {
            Scope::User => "in all projects",
            Scope::Project => "in this project",
        };
        if self.missing.is_empty() {
            return Some(format!("{title} is guarded {scope} ({path}){strict}"));
        }
        let missing = self.missing.join(", ");
        Some(format!("{title} is guarded only in part {scope} ({path}): no hook for {missing}"))
    }
}

/// Reports which programs are guarded here.
pub(super) async fn run(common: &Common) -> anyhow::Result<ExitCode> {
    let project = std::env::current_dir()?.canonicalize()?;
    let scopes = [Scope::Project, Scope::User];
    let mut hooks = Vec::new();
    for (program, scope) in Program::ALL.into_iter().flat_map(|program| scopes.map(|scope| (program, scope)))
    {
        hooks.extend(HookStatus::of(program, scope, &project).await);
    }
    let covered = session::covered(&project);
    let has_store = common.store.is_some() || stores::existing(&project).ok().flatten().is_some();
    let (mut sessions, mut problem) = (Vec::new(), None);
    let mut uncovered: Vec<String> = Vec::new();
    if has_store {
        let place = OpenStore::existing_or_new(common, &project)?;
        let page = place.runtime.sessions(SessionQuery::roots().with_limit(COUNTED)).await?;
        // The session that `install` prepared has no mission yet.
        let guarded =
            page.sessions.iter().filter(|session| is_guarded(session) && !session.summary.mission.is_empty());
        sessions = guarded.map(|session| session.id()).collect();
        match place.runtime.uncovered_paths(&covered).await {
            Ok(paths) => uncovered = paths.into_iter().map(|one| one.path).collect(),
            Err(error) => problem = Some(error.to_string()),
        }
    }
    let beside = added_directories(&project);
    let plugin = state_directory().ok().map(|state| Plugin::below(&state)).filter(Plugin::exists);
    let values: Vec<Value> = hooks.iter().map(HookStatus::to_json).collect();
    let value = json!({"v": 1, "directory": project, "hooks": values, "sessions": sessions, "uncovered": uncovered,
        "added_directories": beside, "problem": problem, "covered": covered, "plugin": plugin.as_ref().map(Plugin::marketplace)});
    let lines = hooks.iter().flat_map(|hook| hook.line().into_iter().chain(hook.trust_line(common)));
    let mut lines: Vec<String> = lines.collect();
    if let Some(plugin) = &plugin {
        let place = plugin.directory();
        lines.push(format!(
            "a plugin for Claude Code is in {}; `claude plugin list` shows whether it is installed",
            place.display()
        ));
    }
    let has_hooks = !lines.is_empty();
    if !has_hooks {
        let install = common.hint("guard install claude-code");
        lines.push(format!("nothing is guarded here; `{install}` guards Claude Code"));
    }
    if let Some(problem) = problem {
        lines.push(format!("{} is not covered: {problem}", covered.display()));
    } else if has_hooks {
        lines.push(format!("covered: {}", covered.display()));
    }
    if !uncovered.is_empty() {
        lines.push(format!("not covered, and never changed by a rewind: {}", uncovered.join(", ")));
    }
    for directory in beside {
        lines.push(format!("not covered, because it is beside the project: {}", directory.display()));
    }
    if let Some(latest) = sessions.first() {
        let (count, log) = (counted(sessions.len(), "session"), format!("log {}", short(latest)));
        lines.push(format!("{count} recorded; `{}` shows the latest", common.hint(log)));
    }
    Ok(Report::new(&value).lines(lines).print(common))
}
