//! The file that holds the hooks of a program.

use std::path::{Path, PathBuf};

use super::error::SettingsError;
use super::hooks_json::SettingsFile;
use super::hooks_toml::HookTables;
use super::memory::Memory;
use super::{InstalledHook, Scope, codex_config, file_of};
use crate::program::Program;

/// A file with hooks, or one that they are added to.
#[derive(Debug)]
pub struct HookFile(HookForm);

#[derive(Debug)]
enum HookForm {
    /// Settings in JSON.
    Json(SettingsFile),
    /// The settings of Codex in TOML.
    Toml(HookTables),
}

impl HookFile {
    /// Reads the file for a program. Hooks of the user of Codex are in its `config.toml`, if others are there already.
    pub fn read(
        program: Program,
        scope: Scope,
        project: &Path,
        memory: &Memory,
    ) -> Result<(PathBuf, Self), SettingsError> {
        let path = file_of(program, scope, project).ok_or(SettingsError::NoHome { program })?;
        if program == Program::Codex && scope == Scope::User {
            let config = codex_config()?;
            if let Some(tables) = HookTables::read(&config)?
                && (!path.exists() || !tables.installed().is_empty())
            {
                return Ok((config, Self(HookForm::Toml(tables))));
            }
        }
        let settings = SettingsFile::read(program, &path, memory)?;
        Ok((path, Self(HookForm::Json(settings))))
    }

    /// Returns the hooks of this guard.
    pub fn installed(&self) -> Vec<InstalledHook> {
        match &self.0 {
            HookForm::Json(file) => file.installed(),
            HookForm::Toml(file) => file.installed(),
        }
    }

    /// Adds the hooks, in place of those that were there. Returns whether the file changed.
    pub fn install(self, command: &str) -> Result<bool, SettingsError> {
        match self.0 {
            HookForm::Json(file) => file.install(command),
            HookForm::Toml(file) => file.install(command),
        }
    }

    /// Removes the hooks. Returns whether there were any.
    pub fn uninstall(self) -> Result<bool, SettingsError> {
        match self.0 {
            HookForm::Json(file) => file.uninstall(),
            HookForm::Toml(file) => file.uninstall(),
        }
    }
}
