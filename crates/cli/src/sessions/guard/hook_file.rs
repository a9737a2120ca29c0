//! The file that holds the hooks of a program.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::codex::HookTables;
use super::program::{Program, Scope, codex_home};
use super::settings::{InstalledHook, SettingsFile};

/// A file with hooks, or one that they are added to.
#[derive(Debug)]
pub(super) enum HookFile {
    /// Settings in JSON.
    Json(SettingsFile),
    /// The settings of Codex in TOML.
    Toml(HookTables),
}

impl HookFile {
    /// Reads the file for a program. Hooks of the user of Codex are in its `config.toml`, if others are there already.
    pub(super) fn read(program: Program, scope: Scope, project: &Path) -> anyhow::Result<(PathBuf, Self)> {
        let path = program
            .settings(scope, project)
            .with_context(|| format!("HOME names no directory for the settings of {}", program.title()))?;
        if program == Program::Codex
            && scope == Scope::User
            && let Some(config) = codex_home().map(|home| home.join("config.toml"))
            && let Some(tables) = HookTables::read(&config)?
            && (!path.exists() || !tables.installed().is_empty())
        {
            return Ok((config, Self::Toml(tables)));
        }
        let settings = SettingsFile::read(program, &path)?;
        Ok((path, Self::Json(settings)))
    }

    /// Returns the hooks of this guard.
    pub(super) fn installed(&self) -> Vec<InstalledHook> {
        match self {
            Self::Json(file) => file.installed(),
            Self::Toml(file) => file.installed(),
        }
    }

    /// Adds the hooks, in place of those that were there. Returns whether the file changed.
    pub(super) fn install(self, command: &str) -> anyhow::Result<bool> {
        match self {
            Self::Json(file) => file.install(command),
            Self::Toml(file) => file.install(command),
        }
    }

    /// Removes the hooks. Returns whether there were any.
    pub(super) fn uninstall(self) -> anyhow::Result<bool> {
        match self {
            Self::Json(file) => file.uninstall(),
            Self::Toml(file) => file.uninstall(),
        }
    }
}
