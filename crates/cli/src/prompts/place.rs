//! The directories that hold commands and skills.

use std::path::{Path, PathBuf};

use backstitch_bridge::Program;
use serde::Serialize;

use crate::config::user_directory;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PromptKind {
    /// A text that a person sends by its name.
    Command,
    /// A text that a model loads.
    Skill,
}

impl PromptKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Skill => "skill",
        }
    }
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PromptOwner {
    User,
    Project,
}

impl PromptOwner {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// A directory with files of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PromptPlace {
    pub(super) kind: PromptKind,
    pub(super) owner: PromptOwner,
    pub(super) directory: PathBuf,
}

/// Returns the directories, in the order in which their names apply: those of the user first, so that no project replaces what
/// the user has.
pub(super) fn places(root: Option<&Path>) -> Vec<PromptPlace> {
    use PromptKind::{Command, Skill};
    let own = user_directory();
    let (claude, codex) = (Program::ClaudeCode.home(), Program::Codex.home());
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let of_user = [
        (&own, "commands", Command),
        (&claude, "commands", Command),
        (&codex, "prompts", Command),
        (&own, "skills", Skill),
        (&claude, "skills", Skill),
        (&codex, "skills", Skill),
        (&home, ".agents/skills", Skill),
    ];
    let place = |kind, owner, directory| PromptPlace { kind, owner, directory };
    let mut places: Vec<PromptPlace> = of_user
        .into_iter()
        .filter_map(|(base, name, kind)| Some(place(kind, PromptOwner::User, base.as_ref()?.join(name))))
        .collect();
    let of_project = [
        (".backstitch/commands", Command),
        (".claude/commands", Command),
        (".backstitch/skills", Skill),
        (".claude/skills", Skill),
        (".codex/skills", Skill),
        (".agents/skills", Skill),
    ];
    for (name, kind) in of_project {
        // The project may be the home directory.
        let directory = root.map(|root| root.join(name));
        let directory = directory.filter(|own| places.iter().all(|known| known.directory != *own));
        places.extend(directory.map(|directory| place(kind, PromptOwner::Project, directory)));
    }
    places
}
