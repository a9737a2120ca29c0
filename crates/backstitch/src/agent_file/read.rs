//! Reading agent files.
//!
//! A file is read in two steps. First its form: TOML, known keys, right types. Then what it refers to: the script, the schema
//! and the directory are looked up beside the file, and the agent is put together once without a model, so that everything that can be
//! wrong is said with its line before anything starts.

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

/// The most bytes that an agent file may have.
const LARGEST_FILE: u64 = 1024 * 1024;

/// The most bytes that a file of JSON may have that an agent file names.
const LARGEST_DATA: u64 = 64 * 1024 * 1024;

impl AgentDefinition {
    /// Reads a file, and everything that it refers to.
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

    /// Reads a text. What it refers to is looked for in the current directory.
    pub fn from_toml(text: &str) -> Result<Self, AgentFileError> {
        let source = Source { file: None, text };
        let mut definition: Self = source.parse()?;
        definition
            .resolve(Path::new(""))
            .and_then(|()| definition.check())
            .map_err(|error| source.located(error))?;
        Ok(definition)
    }

    /// Says which model decides. A script is read.
    pub fn set_model(&mut self, model: ModelName) -> Result<(), AgentFileError> {
        self.script = match model.provider {
            ModelProvider::Scripted => Some(Script::load(&model.model)?),
            ModelProvider::Wire(_) => None,
        };
        self.model = Some(model);
        Ok(())
    }

    /// Reads what lies in other files, whose paths are taken from this directory on.
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
                return Err(Problem::new(["output"], "say `schema` or `file`, and not both").into());
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
    /// Reads what a name stands for from a file of JSON.
    pub fn read(name: &str, path: &Path) -> Result<Self, AgentFileError> {
        Ok(Self { value: Some(json_in(path, ["data", name])?), file: None })
    }
}

/// What a file of JSON holds. Some programs write a mark of the byte order before it.
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

/// A text, and where it comes from.
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

    /// An error about a key, with the line at which the key stands.
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

/// What is said of an unknown name, with the known one that was probably meant. The names stand in the message between
/// backquotes, the unknown one first.
fn with_hint(message: &str) -> String {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.split_first() {
        Some((unknown, known)) if message.starts_with("unknown ") => {
            format!("{message}{}", near(unknown, known))
        }
        _ => message.to_owned(),
    }
}
