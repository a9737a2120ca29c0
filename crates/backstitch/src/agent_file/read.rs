//! Reading agent files.
//!
//! A file is read in two steps. First its syntax is checked: TOML, known keys, right types. Then its
//! references are resolved: the script, the schema and the directory are looked up relative to the file. The
//! agent is also built once without a model, so that every error is reported with its line before anything
//! starts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use backstitch_providers::{RefusedOption, read_text};
use serde_json::Value;

use super::answering::DataDefinition;
use super::definition::{AgentDefinition, OutputDefinition};
use super::error::{AgentFileError, Problem};
use super::model::{ModelName, ModelProvider};
use super::offered::below;
use super::provider::ProviderDefinition;
use super::source::TomlSource;
use super::sub_agent::DEEPEST;
use crate::Script;

/// Maximum size of an agent file, in bytes.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Maximum size of a JSON file that an agent file refers to, in bytes.
const LARGEST_DATA: u64 = 64 * 1024 * 1024;

/// An agent file that was read, with the files that it refers to.
#[derive(Debug, Clone, Default)]
pub struct AgentFile {
    /// The definition.
    pub definition: AgentDefinition,
    /// The keys at the top of the file.
    pub keys: BTreeSet<String>,
    /// The file itself, and the files that it refers to.
    pub files: Vec<PathBuf>,
}

impl AgentFile {
    /// Reads a file, and the files that it refers to.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, AgentFileError> {
        Self::read_knowing(path, &[])
    }

    /// Reads a file whose models may be those of these providers too.
    pub fn read_knowing(
        path: impl AsRef<Path>,
        providers: &[ProviderDefinition],
    ) -> Result<Self, AgentFileError> {
        let path = path.as_ref();
        let file = Self::read_at(path, 0)?;
        let source = TomlSource { file: Some(path), text: &text_of(path)? };
        file.definition.check_models(providers).map_err(|error| source.located(error))?;
        Ok(file)
    }

    /// Reads the file of an agent that has so many agents above it.
    fn read_at(path: &Path, depth: usize) -> Result<Self, AgentFileError> {
        let source = TomlSource { file: Some(path), text: &text_of(path)? };
        let mut definition = parse_definition(&source)?;
        let beside = path.parent().map(Path::to_owned).unwrap_or_default();
        let mut files = vec![path.to_owned()];
        definition
            .resolve(&beside, &mut files, depth)
            .and_then(|()| definition.check())
            .map_err(|error| source.located(error))?;
        let keys = source.parse::<toml::Table>()?.keys().cloned().collect();
        Ok(Self { definition, keys, files })
    }
}

impl AgentDefinition {
    /// Reads a file, and the files that it refers to. What the file leaves open about rights is set: the mode, which is
    /// [`Auto`](crate::mode::AgentMode::Auto), and the sandbox of commands. [`AgentFile::read`] returns only what the file says.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, AgentFileError> {
        let mut definition = AgentFile::read(path)?.definition;
        definition.complete_rights();
        Ok(definition)
    }

    /// Parses a text. Paths are relative to the current directory, and rights are set as [`read`](Self::read) does.
    pub fn from_toml(text: &str) -> Result<Self, AgentFileError> {
        let source = TomlSource { file: None, text };
        let mut definition = parse_definition(&source)?;
        definition
            .resolve(Path::new(""), &mut Vec::new(), 0)
            .and_then(|()| definition.check())
            .and_then(|()| definition.check_models(&[]))
            .map_err(|error| source.located(error))?;
        definition.complete_rights();
        Ok(definition)
    }

    /// Sets the model. The file of a scripted one is read.
    pub fn set_model(&mut self, model: ModelName) -> Result<(), AgentFileError> {
        self.script = match model.provider {
            ModelProvider::Scripted => Some(Script::load(&model.model)?),
            _ => None,
        };
        self.model = Some(model);
        Ok(())
    }

    /// Sets a model of any provider. Request options that its provider does not support are removed and returned:
    /// they were set for another one.
    pub fn switch_model(&mut self, model: ModelName) -> Result<Vec<RefusedOption>, AgentFileError> {
        let is_other = self.model.as_ref().is_some_and(|before| before.provider != model.provider);
        self.set_model(model)?;
        let mut dropped = self.drop_refused_options();
        if let Some(provider) = self.format().filter(|_| is_other) {
            for option in self.request.clear_own_parts() {
                let reason = "it was set for another provider".to_owned();
                dropped.push(RefusedOption { provider, option, reason });
            }
        }
        Ok(dropped)
    }

    /// Reads the files that the definition refers to, and adds them to `files`. Their paths are relative to this directory.
    fn resolve(
        &mut self,
        directory: &Path,
        files: &mut Vec<PathBuf>,
        depth: usize,
    ) -> Result<(), AgentFileError> {
        self.check_providers()?;
        if let Some(ModelName { provider: ModelProvider::Scripted, model }) = &self.model
            && self.script.is_none()
        {
            files.push(directory.join(model));
            self.script = Some(Script::load(directory.join(model))?);
        }
        if let Some(path) = &self.workspace.path {
            let path = std::path::absolute(directory.join(path));
            self.workspace.path = Some(path.map_err(|error| Problem::new(["workspace", "path"], error))?);
        }
        for (index, path) in self.sandbox.iter_mut().flat_map(|sandbox| &mut sandbox.write).enumerate() {
            let index = index.to_string();
            let problem = |message| Problem::new(["sandbox", "write", &index], message);
            *path = writable_path(directory, path).map_err(problem)?;
        }
        if let Some(sandbox) = &mut self.sandbox {
            for (key, paths) in [("hide", &mut sandbox.hide), ("read", &mut sandbox.read)] {
                for (index, path) in paths.iter_mut().enumerate() {
                    let index = index.to_string();
                    let problem = |message| Problem::new(["sandbox", key, &index], message);
                    *path = writable_path(directory, path).map_err(problem)?;
                }
            }
        }
        if self.sandbox.as_ref().is_some_and(|sandbox| sandbox.missing.is_some()) {
            let message = "only sessions record which paths were missing: remove it";
            return Err(Problem::new(["sandbox", "missing"], message).into());
        }
        self.complete_sandbox();
        if let Some(OutputDefinition { schema, file: Some(file) }) = &self.output {
            if schema.is_some() {
                return Err(Problem::new(["output"], "set either `schema` or `file`, not both").into());
            }
            files.push(directory.join(file));
            let schema = json_in(&directory.join(file), ["output", "file"])?;
            self.output = Some(OutputDefinition { schema: Some(schema), file: None });
        }
        for (name, data) in &mut self.data {
            let Some(file) = data.file.take() else { continue };
            files.push(directory.join(&file));
            *data = DataDefinition::read(name, &directory.join(file))?;
        }
        for (index, sub_agent) in self.sub_agents.iter_mut().enumerate() {
            let key = below(&[], "sub_agent", index);
            let wrong = |message: String| Problem { key: key.clone(), message };
            if depth >= DEEPEST {
                return Err(wrong(format!("sub-agents are nested more than {DEEPEST} levels deep")).into());
            }
            match (sub_agent.file.take(), &mut sub_agent.agent) {
                (Some(_), Some(_)) => {
                    return Err(wrong("set either `file` or `agent`, not both".to_owned()).into());
                }
                (Some(file), agent @ None) => {
                    let read = AgentFile::read_at(&directory.join(file), depth + 1)?;
                    files.extend(read.files);
                    *agent = Some(Box::new(read.definition));
                }
                (None, Some(agent)) => agent.resolve(directory, files, depth + 1)?,
                (None, None) => {}
            }
        }
        Ok(())
    }
}

impl DataDefinition {
    /// Reads the value of a name from a JSON file.
    pub fn read(name: &str, path: &Path) -> Result<Self, AgentFileError> {
        Ok(Self { value: Some(json_in(path, ["data", name])?), file: None })
    }
}

/// Parses a definition. A key with an earlier meaning is refused, and the error has its name of today. A sandbox that does
/// not name the network has none, unlike one that a session recorded.
fn parse_definition(source: &TomlSource<'_>) -> Result<AgentDefinition, AgentFileError> {
    let table: toml::Table = source.parse()?;
    if let Some("tools" | "lisp") = table.get("mode").and_then(toml::Value::as_str) {
        let message = "the form of the answers has the name `answers`: write `answers = \"lisp\"`";
        return Err(source.located(Problem::new(["mode"], message).into()));
    }
    let mut definition = source.parse()?;
    close_network(&mut definition, &table);
    Ok(definition)
}

/// Closes the network of commands where a file does not name it, also in sub-agents. An engine needs it for its model.
fn close_network(definition: &mut AgentDefinition, table: &toml::Table) {
    let names_network = table.get("sandbox").is_some_and(|sandbox| sandbox.get("network").is_some());
    let has_engine = definition.engine.is_some();
    if let Some(sandbox) = definition.sandbox.as_mut().filter(|sandbox| !sandbox.is_off() && !names_network) {
        sandbox.network = has_engine;
    }
    let tables = table.get("sub_agent").and_then(toml::Value::as_array);
    for (sub_agent, table) in definition.sub_agents.iter_mut().zip(tables.into_iter().flatten()) {
        let table = table.get("agent").and_then(toml::Value::as_table);
        if let (Some(agent), Some(table)) = (&mut sub_agent.agent, table) {
            close_network(agent, table);
        }
    }
}

/// Resolves a path of a sandbox: `~` is the home directory, other paths are relative to the file.
fn writable_path(directory: &Path, path: &Path) -> Result<PathBuf, String> {
    let Ok(below) = path.strip_prefix("~") else {
        if path.as_os_str().is_empty() {
            return Err("the path is empty".to_owned());
        }
        return std::path::absolute(directory.join(path)).map_err(|error| error.to_string());
    };
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let home = home.ok_or("`~` stands for the home directory, and HOME is not set")?;
    Ok(home.join(below))
}

/// Parses a JSON file. Some programs write a byte order mark before the JSON.
fn json_in(path: &Path, key: [&str; 2]) -> Result<Value, Problem> {
    let wrong =
        |problem: &dyn std::fmt::Display| Problem::new(key, format_args!("{}: {problem}", path.display()));
    let text = read_text(path, LARGEST_DATA).map_err(|error| wrong(&error))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    serde_json::from_str(text).map_err(|error| wrong(&error))
}

fn text_of(path: &Path) -> Result<String, AgentFileError> {
    let unreadable = |source| AgentFileError::Unreadable { path: path.to_owned(), source };
    read_text(path, LARGEST_FILE).map_err(unreadable)
}
