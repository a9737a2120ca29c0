//! The programs that are known here: their names, and the directories and variables that they use.

use std::path::PathBuf;

/// A coding agent that is guarded, or that is an engine of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
}

impl Program {
    /// All programs.
    pub const ALL: [Self; 2] = [Self::ClaudeCode, Self::Codex];

    /// Name on command lines, in agent files and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// Returns the program with a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }

    /// Name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
        }
    }

    /// The provider of its model, in records of its requests.
    pub const fn provider(self) -> &'static str {
        match self {
            Self::ClaudeCode => "anthropic",
            Self::Codex => "openai",
        }
    }

    /// Returns the directory of its settings and conversations, which a variable may name.
    pub fn home(self) -> Option<PathBuf> {
        let (own, usual) = match self {
            Self::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude"),
            Self::Codex => ("CODEX_HOME", ".codex"),
        };
        directory_in(own).or_else(|| Some(directory_in("HOME")?.join(usual)))
    }

    /// The variable with the id of the conversation, in everything that the program starts.
    pub const fn conversation_variable(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("CLAUDE_CODE_SESSION_ID"),
            Self::Codex => None,
        }
    }

    /// The variable with the directory of the project, in the hooks that the program starts.
    pub const fn project_variable(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("CLAUDE_PROJECT_DIR"),
            Self::Codex => None,
        }
    }
}

fn directory_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
