//! `guard status`: what is guarded, and what is not covered.

use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use backstitch::ports::SessionQuery;
use backstitch::stores;
use clap::Args;
use serde_json::{Value, json};

use super::codex;
use super::program::{Program, Scope};
use super::resume::is_guarded;
use super::settings::SettingsFile;
use crate::common::{Common, counted};
use crate::sessions::place::{OpenStore, short, uncovered_paths};

/// How many of the newest sessions are counted.
const COUNTED: usize = 1_000;

#[derive(Args)]
pub(crate) struct Status {}

/// The hooks of a program in one settings file.
struct HookStatus {
    program: Program,
    scope: Scope,
    path: PathBuf,
    events: Vec<String>,
    missing: Vec<&'static str>,
    strict: bool,
    problem: Option<String>,
}

impl HookStatus {
    fn of(program: Program, scope: Scope, project: &Path) -> Option<Self> {
        let path = program.settings(scope, project)?;
        let (installed, problem) = match SettingsFile::read(program, &path) {
            Ok(file) => (file.installed(), None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        let events: Vec<String> = installed.iter().map(|hook| hook.event.clone()).collect();
        let missing =
            program.events().iter().filter(|event| !events.iter().any(|known| known == *event)).copied();
        let strict = installed.iter().any(|hook| hook.command.contains(" --strict"));
        let missing = missing.collect();
        Some(Self { program, scope, path, events, missing, strict, problem })
    }

    fn scope_word(&self) -> &'static str {
        match self.scope {
            Scope::User => "user",
            Scope::Project => "project",
        }
    }

    fn to_json(&self) -> Value {
        json!({"program": self.program.name(), "scope": self.scope_word(), "settings": self.path, "events": self.events,
            "missing": self.missing, "strict": self.strict, "problem": self.problem})
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

impl Status {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let project = std::env::current_dir()?.canonicalize()?;
        let scopes = [Scope::Project, Scope::User];
        let hooks: Vec<HookStatus> = Program::ALL
            .into_iter()
            .flat_map(|program| scopes.map(|scope| (program, scope)))
            .filter_map(|(program, scope)| HookStatus::of(program, scope, &project))
            .collect();
        let has_store = common.store.is_some() || stores::existing(&project).ok().flatten().is_some();
        let (mut sessions, mut uncovered, mut problem) = (Vec::new(), Vec::new(), None);
        if has_store {
            let place = OpenStore::existing_or_new(common, &project)?;
            let page = place.runtime.sessions(SessionQuery::roots().with_limit(COUNTED)).await?;
            // The session that `install` prepared has no mission yet.
            let guarded = page
                .sessions
                .iter()
                .filter(|session| is_guarded(session) && !session.summary.mission.is_empty());
            sessions = guarded.map(|session| session.id()).collect();
            match place.open_workspace(&project, &[], "that is being looked at") {
                Ok(workspace) => uncovered = uncovered_paths(&workspace),
                Err(error) => problem = Some(format!("{error:#}")),
            }
        }
        let beside = added_directories(&project);
        if common.json {
            let hooks: Vec<Value> = hooks.iter().map(HookStatus::to_json).collect();
            println!(
                "{}",
                json!({"v": 1, "directory": project, "hooks": hooks, "sessions": sessions, "uncovered": uncovered,
                    "added_directories": beside, "problem": problem})
            );
            return Ok(ExitCode::SUCCESS);
        }
        let lines: Vec<String> = hooks.iter().filter_map(HookStatus::line).collect();
        if lines.is_empty() {
            println!(
                "nothing is guarded here; `{}` guards Claude Code",
                common.hint("guard install claude-code")
            );
        }
        lines.iter().for_each(|line| println!("{line}"));
        let has_codex = hooks.iter().find(|hook| hook.program == Program::Codex && !hook.events.is_empty());
        if let Some(advice) = has_codex.and_then(|hook| codex::trust_advice(hook.scope)) {
            println!("{advice}");
        }
        if let Some(problem) = problem {
            println!("{} is not covered: {problem}", project.display());
        } else if !lines.is_empty() {
            println!("covered: {}", project.display());
        }
        if !uncovered.is_empty() {
            println!("not covered, and never changed by a rewind: {}", uncovered.join(", "));
        }
        for directory in beside {
            println!("not covered, because it is beside the project: {}", directory.display());
        }
        if let Some(latest) = sessions.first() {
            let count = counted(sessions.len(), "session");
            println!(
                "{count} recorded; `{}` shows the latest",
                common.hint(format_args!("log {}", short(latest)))
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the directories that the settings of Claude Code add to the project. Those of its command line are not known.
fn added_directories(project: &Path) -> Vec<PathBuf> {
    let files = [
        Program::ClaudeCode.settings(Scope::User, project),
        Some(project.join(".claude/settings.json")),
        Some(project.join(".claude/settings.local.json")),
    ];
    let mut directories = Vec::new();
    for text in files.into_iter().flatten().filter_map(|path| std::fs::read(path).ok()) {
        let Ok(settings) = serde_json::from_slice::<Value>(&text) else { continue };
        let added = settings.pointer("/permissions/additionalDirectories").and_then(Value::as_array);
        let added =
            added.into_iter().flatten().filter_map(Value::as_str).map(|path| plain(&project.join(path)));
        directories.extend(added.filter(|path| !path.starts_with(project)));
    }
    directories.sort();
    directories.dedup();
    directories
}

/// Removes `.` and `..` from a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
