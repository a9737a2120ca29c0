//! The settings of a project.

use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::layer::{Config, Layer, Scope};

/// The settings in `backstitch.toml` at the root of a project. They are used only if the user trusts them.
#[derive(Debug, Clone)]
pub(crate) struct ProjectSettings {
    pub(crate) path: PathBuf,
    layer: Layer,
}

impl ProjectSettings {
    /// Name of the file at the root of the project.
    pub(crate) const FILE: &'static str = "backstitch.toml";

    /// Reads the file of a project, if there is one.
    pub(crate) fn read(root: &Path) -> Result<Option<Self>, ConfigError> {
        let path = root.join(Self::FILE);
        if std::fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        let layer = Layer::read(&path, Scope::Project)?;
        Ok(Some(Self { path, layer }))
    }

    /// Returns the agent file of new sessions.
    pub(crate) fn agent(&self) -> Option<&Path> {
        self.layer.settings.agent.as_deref()
    }

    /// Formats each setting as a line.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.layer.entries.iter().map(|entry| format!("{} = {}", entry.key.join("."), entry.value))
    }
}

impl Config {
    /// Adds the settings of a project.
    #[must_use]
    pub(crate) fn with_project(mut self, settings: ProjectSettings) -> Self {
        self.project = settings.layer;
        self
    }
}
