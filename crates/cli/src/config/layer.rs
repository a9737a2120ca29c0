//! Layers of settings: files and the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use backstitch::agent_file::{AgentFileError, Problem, TomlSource};
use backstitch::mode::AgentMode;
use backstitch::providers::read_text;
use serde::Serialize;
use toml::{Table, Value};

use super::environment;
use super::error::ConfigError;
use super::settings::{Settings, USER_ONLY};

/// Maximum size of a file, in bytes.
const LARGEST_FILE: u64 = 256 * 1024;

/// Where the value of a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "origin", rename_all = "snake_case")]
pub(crate) enum Origin {
    Default,
    User { file: String, line: usize },
    Project { file: String, line: usize },
    Environment { variable: &'static str },
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::User { file, line } => write!(formatter, "user {file}:{line}"),
            Self::Project { file, line } => write!(formatter, "project {file}:{line}"),
            Self::Environment { variable } => write!(formatter, "environment {variable}"),
        }
    }
}

/// A single value of a layer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// Path of the key, outermost part first.
    pub(crate) key: Vec<String>,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    User,
    Project,
}

/// The settings of one place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    pub(crate) settings: Settings,
    pub(crate) entries: Vec<Entry>,
}

impl Layer {
    /// Reads a file. One that does not exist has no settings.
    pub(super) fn read(path: &Path, scope: Scope) -> Result<Self, ConfigError> {
        match read_text(path, LARGEST_FILE) {
            Ok(text) => Self::parse(path, &text, scope),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
        }
    }

    /// Parses the text of a file.
    pub(super) fn parse(path: &Path, text: &str, scope: Scope) -> Result<Self, ConfigError> {
        let source = TomlSource { file: Some(path), text };
        let table: Table = source.parse().map_err(ConfigError::of_source)?;
        let mut settings: Settings = source.parse().map_err(ConfigError::of_source)?;
        let network = table.get("sandbox").and_then(|sandbox| sandbox.get("network"));
        settings.network = network.and_then(Value::as_bool);
        let refused = USER_ONLY.iter().find(|(key, _)| scope == Scope::Project && table.contains_key(*key));
        let checked = match refused {
            Some((key, why)) => {
                Err(Problem::new([*key], format_args!("set this in the config of the user: {why}")))
            }
            None if scope == Scope::User => settings.check().and_then(|()| settings.check_model()),
            None => settings.check(),
        };
        checked.map_err(|problem| {
            ConfigError::of_source(source.located(AgentFileError::InDefinition(problem)))
        })?;
        settings.resolve(path.parent().unwrap_or_else(|| Path::new("")));
        let mut entries = Vec::new();
        leaves(&table, &mut Vec::new(), &mut |key, value| {
            let (file, line) = (path.to_string_lossy().into_owned(), source.line_of(key).unwrap_or(1));
            let origin = match scope {
                Scope::User => Origin::User { file, line },
                Scope::Project => Origin::Project { file, line },
            };
            entries.push(Entry { key: key.to_vec(), value: value.clone(), origin });
        });
        Ok(Self { settings, entries })
    }

    fn defaults() -> Self {
        let values = [
            ("approve", Value::from("auto")),
            ("color", Value::from("auto")),
            ("instructions", Value::from(true)),
            ("mode", Value::from(AgentMode::default().as_str())),
            ("tools", Value::from("all")),
        ];
        let entry =
            |(key, value): (&str, Value)| Entry { key: vec![key.to_owned()], value, origin: Origin::Default };
        Self { settings: Settings::default(), entries: values.into_iter().map(entry).collect() }
    }
}

/// Visits the values of a table that are not tables themselves.
fn leaves(table: &Table, above: &mut Vec<String>, visit: &mut impl FnMut(&[String], &Value)) {
    for (name, value) in table {
        above.push(name.clone());
        match value {
            Value::Table(inner) => leaves(inner, above, visit),
            other => visit(above, other),
        }
        above.pop();
    }
}

/// All layers, weakest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    pub(super) user: Layer,
    pub(super) project: Layer,
    pub(super) environment: Layer,
}

impl Config {
    /// Reads the file of the user, and the environment.
    pub(crate) fn load() -> Result<Self, ConfigError> {
        let user = match user_file() {
            Some(path) => Layer::read(&path, Scope::User)?,
            None => Layer::default(),
        };
        let environment = environment::layer(&|name| std::env::var_os(name))?;
        Ok(Self { user, project: Layer::default(), environment })
    }

    /// Iterates over the layers, weakest first.
    pub(crate) fn layers(&self) -> impl DoubleEndedIterator<Item = &Layer> {
        [&self.user, &self.project, &self.environment].into_iter()
    }

    /// Returns the strongest value of a setting.
    pub(crate) fn strongest<T>(&self, of: impl Fn(&Settings) -> Option<T>) -> Option<T> {
        self.layers().rev().find_map(|layer| of(&layer.settings))
    }

    /// Returns the value of each key and where it comes from, by the name of the key.
    pub(crate) fn effective(&self) -> Vec<Entry> {
        let defaults = Layer::defaults();
        let mut all = BTreeMap::new();
        for layer in std::iter::once(&defaults).chain(self.layers()) {
            all.extend(layer.entries.iter().map(|entry| (entry.key.clone(), entry.clone())));
        }
        all.into_values().collect()
    }
}

/// Returns the path of the user's file: `BACKSTITCH_CONFIG`, else `backstitch/config.toml` in the configuration
/// directory.
pub(crate) fn user_file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("BACKSTITCH_CONFIG").filter(|path| !path.is_empty()) {
        return Some(std::path::absolute(&path).unwrap_or_else(|_| PathBuf::from(path)));
    }
    Some(user_directory()?.join("config.toml"))
}

/// Returns the directory of the user's configuration.
pub(crate) fn user_directory() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Some(config?.join("backstitch"))
}

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
