//! The programs that can be guarded.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// A program that can be guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Program {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
}

/// Whose settings hold the hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All projects of the user.
    User,
    /// One project.
    Project,
}

impl Program {
    pub(super) const ALL: [Self; 2] = [Self::ClaudeCode, Self::Codex];

    /// Name on the command line and in records.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }

    /// Name for people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
        }
    }

    /// The events that it reports to the hooks.
    pub(super) fn events(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "SubagentStop",
                "Stop",
                "SessionEnd",
            ],
            Self::Codex => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "SubagentStop",
                "Stop",
                "Interrupt",
                "SessionEnd",
            ],
        }
    }

    /// Returns the command of a hook. If the calls that cannot be guarded are denied, those are too that find no command.
    pub(super) fn hook_command(self, event: &str, command: &str) -> String {
        let denies = event == "PreToolUse" && command.contains(" --strict");
        if denies { format!("{command} || exit 2") } else { command.to_owned() }
    }

    /// Seconds after which it ends a hook. Codex warns if a hook at its end may take longer.
    pub(super) fn timeout(self, event: &str) -> u64 {
        match (self, event) {
            (Self::Codex, "SessionEnd" | "Interrupt") => 3,
            _ => 60,
        }
    }

    /// The provider of its model, in records of its requests.
    pub(super) fn provider(self) -> &'static str {
        match self {
            Self::ClaudeCode => "anthropic",
            Self::Codex => "openai",
        }
    }

    /// Returns the file that holds the hooks.
    pub(super) fn settings(self, scope: Scope, project: &Path) -> Option<PathBuf> {
        match (self, scope) {
            // Not the shared `settings.json`: the command has the path of this user.
            (Self::ClaudeCode, Scope::Project) => Some(project.join(".claude/settings.local.json")),
            (Self::ClaudeCode, Scope::User) => {
                let own = variable("CLAUDE_CONFIG_DIR");
                Some(own.or_else(|| Some(home()?.join(".claude")))?.join("settings.json"))
            }
            (Self::Codex, Scope::Project) => Some(project.join(".codex/hooks.json")),
            (Self::Codex, Scope::User) => Some(codex_home()?.join("hooks.json")),
        }
    }
}

/// Returns the directory of the settings of Codex.
pub(super) fn codex_home() -> Option<PathBuf> {
    variable("CODEX_HOME").or_else(|| Some(home()?.join(".codex")))
}

fn home() -> Option<PathBuf> {
    variable("HOME")
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
