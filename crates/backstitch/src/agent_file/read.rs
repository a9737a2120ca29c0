//! Reading agent files.
//!
//! A file is read in two steps. First its syntax is checked: TOML, known keys, right types. Then its
//! references are resolved: the script, the schema and the directory are looked up relative to the file. The
//! agent is also built once without a model, so that every error is reported with its line before anything
//! starts.

use std::ops::Range;
use std::path::{Path, PathBuf};

use backstitch_providers::read_text;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::de::DeTable;

use super::answering::DataDefinition;
use super::definition::{AgentDefinition, OutputDefinition};
use super::error::{AgentFileError, Problem, SourceLocation, near};
use super::locate;
use super::model::{ModelName, ModelProvider};
use crate::Script;

/// Maximum size of an agent file, in bytes.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Maximum size of a JSON file that an agent file refers to, in bytes.
const LARGEST_DATA: u64 = 64 * 1024 * 1024;

impl AgentDefinition {
    /// Reads a file, and the files that it refers to.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, AgentFileError> {
        let path = path.as_ref();
        let source = Source { file: Some(path), text: &text_of(path)? };
        let mut definition: Self = source.parse()?;
        let beside = path.parent().map(Path::to_owned).unwrap_or_default();
        definition
            .resolve(&beside)
            .and_then(|()| definition.check())
            .map_err(|error| source.located(error))?;
        Ok(definition)
    }

    /// Parses a text. Paths are relative to the current directory.
    pub fn from_toml(text: &str) -> Result<Self, AgentFileError> {
        let source = Source { file: None, text };
        let mut definition: Self = source.parse()?;
        definition
            .resolve(Path::new(""))
            .and_then(|()| definition.check())
            .map_err(|error| source.located(error))?;
        Ok(definition)
    }

    /// Sets the model. The file of a scripted one is read.
    pub fn set_model(&mut self, model: ModelName) -> Result<(), AgentFileError> {
        self.script = match model.provider {
            ModelProvider::Scripted => Some(Script::load(&model.model)?),
            ModelProvider::Wire(_) => None,
        };
        self.model = Some(model);
        Ok(())
    }

    /// Reads the files that the definition refers to. Their paths are relative to this directory.
    fn resolve(&mut self, directory: &Path) -> Result<(), AgentFileError> {
        if let Some(ModelName { provider: ModelProvider::Scripted, model }) = &self.model
            && self.script.is_none()
        {
            self.script = Some(Script::load(directory.join(model))?);
        }
        if let Some(path) = &self.workspace.path {
            let path = std::path::absolute(directory.join(path));
            self.workspace.path = Some(path.map_err(|error| Problem::new(["workspace", "path"], error))?);
        }
        if let Some(OutputDefinition { schema, file: Some(file) }) = &self.output {
            if schema.is_some() {
                return Err(Problem::new(["output"], "set either `schema` or `file`, not both").into());
            }
            let schema = json_in(&directory.join(file), ["output", "file"])?;
            self.output = Some(OutputDefinition { schema: Some(schema), file: None });
        }
        for (name, data) in &mut self.data {
            let Some(file) = data.file.take() else { continue };
            *data = DataDefinition::read(name, &directory.join(file))?;
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

/// A TOML text, and the file that it comes from.
struct Source<'a> {
    file: Option<&'a Path>,
    text: &'a str,
}

impl Source<'_> {
    fn parse<T: DeserializeOwned>(&self) -> Result<T, AgentFileError> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().unwrap_or_default();
            let key = self.table().and_then(|table| locate::key_at(table.get_ref(), &at));
            let message = with_hint(error.message());
            let problem = Problem { key: key.unwrap_or_default(), message };
            AgentFileError::InFile { place: self.place(&at), problem }
        })
    }

    /// Adds the line of the key to an error.
    fn located(&self, error: AgentFileError) -> AgentFileError {
        let AgentFileError::InDefinition(problem) = error else { return error };
        let at = self.table().and_then(|table| locate::place_of(table.get_ref(), &problem.key));
        let at = at.unwrap_or_default();
        AgentFileError::InFile { place: self.place(&(at..at)), problem }
    }

    fn table(&self) -> Option<toml::Spanned<DeTable<'_>>> {
        DeTable::parse(self.text).ok()
    }

    fn place(&self, at: &Range<usize>) -> SourceLocation {
        SourceLocation { file: self.file.map(PathBuf::from), line: locate::line(self.text, at.start) }
    }
}

/// Adds a suggestion to a message about an unknown name. The message holds the names between backquotes, the
/// unknown one first.
fn with_hint(message: &str) -> String {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.split_first() {
        Some((unknown, known)) if message.starts_with("unknown ") => {
            format!("{message}{}", near(unknown, known))
        }
        _ => message.to_owned(),
    }
}
