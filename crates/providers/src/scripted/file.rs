//! Script files, and errors that name file, line and key.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Script;
use crate::text_file::read_text;

/// The maximum size of a script in bytes.
const LARGEST_SCRIPT: u64 = 16 * 1024 * 1024;

/// The format of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptFormat {
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

impl ScriptFormat {
    /// The format of a file with this name: JSON for `.json`, TOML otherwise.
    pub fn of(path: &Path) -> Self {
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if is_json { Self::Json } else { Self::Toml }
    }
}

/// A script cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("the script {} cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The content is not a valid script.
    #[error("{}", at(.file, *.line, .key, .problem))]
    Invalid {
        /// The file, or the name of the source.
        file: PathBuf,
        /// The line number, from 1, if it is known.
        line: Option<usize>,
        /// The full key, such as `reply[2].calls[0].name`; empty for the whole file.
        key: String,
        /// The problem.
        problem: String,
    },
}

fn at(file: &Path, line: Option<usize>, key: &str, problem: &str) -> String {
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
    format!("{}{line}: {key}{problem}", file.display())
}

impl Script {
    /// Reads a script from a file of at most 16 MiB.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let text = read_text(path, LARGEST_SCRIPT)
            .map_err(|source| ScriptError::Unreadable { file: path.to_owned(), source })?;
        Self::parse(&text, ScriptFormat::of(path), path)
    }

    /// Parses a script. `file` is the name in errors.
    pub fn parse(text: &str, format: ScriptFormat, file: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let file = file.as_ref();
        let script: Self = match format {
            ScriptFormat::Toml => from_toml(text, file)?,
            ScriptFormat::Json => from_json(text, file)?,
        };
        script.check().map_err(|(key, problem)| invalid(file, None, &key, problem.to_owned()))?;
        Ok(script)
    }

    /// Checks what the types do not enforce: call names, and that each call has its arguments once.
    fn check(&self) -> Result<(), (String, &'static str)> {
        for (reply, answer) in self.replies.iter().enumerate() {
            for (index, call) in answer.calls.iter().enumerate() {
                let key = || format!("replies[{reply}].calls[{index}]");
                if call.arguments_text.is_some() && !call.arguments.is_empty() {
                    return Err((key(), "give `arguments` or `arguments_text`, not both"));
                }
                if call.name.is_empty() {
                    return Err((format!("{}.name", key()), "a call needs a name"));
                }
            }
        }
        Ok(())
    }
}

fn invalid(file: &Path, line: Option<usize>, key: &impl fmt::Display, problem: String) -> ScriptError {
    let key = key.to_string();
    // The path of the whole document is a dot.
    let key = if key == "." { String::new() } else { key };
    ScriptError::Invalid { file: file.to_owned(), line, key, problem }
}

fn from_toml(text: &str, file: &Path) -> Result<Script, ScriptError> {
    let failed = |key: &dyn fmt::Display, error: &toml::de::Error| {
        let start = error.span().map(|span| span.start);
        let line = start.and_then(|start| Some(1 + text.get(..start)?.matches('\n').count()));
        invalid(file, line, &key, error.message().trim().replace('\n', ", "))
    };
    let parser = toml::Deserializer::parse(text).map_err(|error| failed(&"", &error))?;
    serde_path_to_error::deserialize(parser).map_err(|error| failed(error.path(), error.inner()))
}

fn from_json(text: &str, file: &Path) -> Result<Script, ScriptError> {
    let failed = |key: &dyn fmt::Display, error: &serde_json::Error| {
        let text = error.to_string();
        // The line is named apart.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let problem = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        invalid(file, Some(error.line()).filter(|line| *line > 0), &key, problem)
    };
    let mut parser = serde_json::Deserializer::from_str(text);
    let script = serde_path_to_error::deserialize(&mut parser);
    let script = script.map_err(|error| failed(error.path(), error.inner()))?;
    parser.end().map_err(|error| failed(&"", &error))?;
    Ok(script)
}
