//! The settings of Claude Code and Codex, and what the guard adds to them.
//!
//! Files of other programs are edited so that everything else in them stays: JSON keeps its order, TOML its form, and what is
//! not understood is refused and left alone. What was added is remembered, so that it can be removed without a trace.

mod claude_code;
mod error;
mod exclude;
mod file;
mod hook_file;
mod hooks_json;
mod hooks_toml;
mod memory;
mod plugin;
mod trust_file;

use std::path::{Path, PathBuf};

use crate::program::Program;

pub use claude_code::{added_directories, disabled_by};
pub use error::SettingsError;
pub use exclude::{add_to_excludes, remove_from_excludes};
pub(crate) use file::create_private;
pub use hook_file::HookFile;
pub use memory::Memory;
pub use plugin::{Plugin, PluginCommand};
pub(crate) use trust_file::{TrustFile, TrustedHook};

/// Settings of the programs in the files of a project. They hold hooks, and permissions that the person has granted.
pub const PROJECT_FILES: [&str; 3] =
    [".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json"];

/// Whose settings are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All projects of the user.
    User,
    /// One project.
    Project,
}

/// A hook of the guard in the settings of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledHook {
    /// The event.
    pub event: String,
    /// The command that it runs.
    pub command: String,
}

impl InstalledHook {
    /// Returns the file that its command starts, if it is named by a path.
    pub fn file(&self) -> Option<PathBuf> {
        let first = shlex::split(&self.command)?.into_iter().next()?;
        Some(PathBuf::from(first)).filter(|path| path.is_absolute())
    }
}

/// Returns the file that holds hooks, if it is known where the settings of the user are.
pub fn file_of(program: Program, scope: Scope, project: &Path) -> Option<PathBuf> {
    Some(match (program, scope) {
        // Not the shared `settings.json`: the command has the path of this user.
        (Program::ClaudeCode, Scope::Project) => project.join(".claude/settings.local.json"),
        (Program::ClaudeCode, Scope::User) => program.home()?.join("settings.json"),
        (Program::Codex, Scope::Project) => project.join(".codex/hooks.json"),
        (Program::Codex, Scope::User) => program.home()?.join("hooks.json"),
    })
}

/// Returns the settings of Codex in TOML.
pub(crate) fn codex_config() -> Result<PathBuf, SettingsError> {
    let home = Program::Codex.home().ok_or(SettingsError::NoHome { program: Program::Codex })?;
    Ok(home.join("config.toml"))
}

/// Returns whether a command is a hook of the guard, of any version and with any options, wherever the command was
/// installed and whatever it was named then.
pub(crate) fn is_own(program: Program, command: &str) -> bool {
    let Some(words) = shlex::split(command) else { return false };
    matches!(words.as_slice(), [_, guard, hook, name, rest @ ..]
        if guard == "guard" && hook == "hook" && name == program.name()
            && rest.first().is_none_or(|next| next.starts_with("--") || next == "||"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_of_this_guard_are_its_own() {
        let own = |command| is_own(Program::ClaudeCode, command);
        assert!(own("/opt/backstitch guard hook claude-code"));
        assert!(own("'/a b/backstitch' guard hook claude-code --strict"));
        assert!(own("/opt/other guard hook claude-code --strict || exit 2"), "whatever it is named");
        assert!(!own("echo guard hook claude-code later") && !own("'guard hook claude-code"));
        assert!(!own("backstitch guard hook claude-code2"));
        assert!(!own("backstitch guard hook codex"));
    }

    #[test]
    fn the_file_of_a_hook_is_a_path() {
        let file =
            |command: &str| InstalledHook { event: "Stop".to_owned(), command: command.to_owned() }.file();
        assert_eq!(file("'/a b/backstitch' guard hook codex"), Some(PathBuf::from("/a b/backstitch")));
        assert_eq!((file("backstitch guard hook codex"), file("'x"), file("")), (None, None, None));
    }
}
