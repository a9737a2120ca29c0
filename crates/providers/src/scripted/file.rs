//! Scripts in files, and what is wrong with them: which file, which line, which key.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Script;
use crate::text_file::read_text;

/// The most bytes that a script may have.
const LARGEST_SCRIPT: u64 = 16 * 1024 * 1024;

/// How a script is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptFormat {
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

impl ScriptFormat {
    /// What a file with this name holds: JSON where it ends with `.json`, TOML otherwise.
    pub fn of(path: &Path) -> Self {
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if is_json { Self::Json } else { Self::Toml }
    }
}

/// A script cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// Its file cannot be read.
    #[error("the script {} cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not what a script looks like.
    #[error("{}", at(.file, *.line, .key, .problem))]
    Invalid {
        /// The file, or what the text came from.
        file: PathBuf,
        /// The line, from 1, where it is known.
        line: Option<usize>,
        /// The key, from the outermost one on, such as `reply[2].calls[0].name`; empty for the whole.
        key: String,
        /// What is wrong with it.
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

    /// Reads a script from a text. `file` is what errors name.
    pub fn parse(text: &str, format: ScriptFormat, file: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let found = match format {
            ScriptFormat::Toml => from_toml(text),
            ScriptFormat::Json => from_json(text),
        };
        let script = found.map_err(|found| found.into_error(file.as_ref()))?;
        script.check().map_err(|(key, problem)| {
            let found = ScriptProblem { line: None, key, problem: problem.to_owned() };
            found.into_error(file.as_ref())
        })?;
        Ok(script)
    }

    /// What no type says: that a call has its arguments once.
    fn check(&self) -> Result<(), (String, &'static str)> {
        for (reply, said) in self.replies.iter().enumerate() {
            for (index, call) in said.calls.iter().enumerate() {
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

/// What was found to be wrong.
struct ScriptProblem {
    line: Option<usize>,
    key: String,
    problem: String,
}

impl ScriptProblem {
    fn new(line: Option<usize>, key: &impl fmt::Display, problem: String) -> Self {
        let key = key.to_string();
        // The whole is written as a dot.
        Self { line, key: if key == "." { String::new() } else { key }, problem }
    }

    fn into_error(self, file: &Path) -> ScriptError {
        let Self { line, key, problem } = self;
        ScriptError::Invalid { file: file.to_owned(), line, key, problem }
    }
}

fn from_toml(text: &str) -> Result<Script, ScriptProblem> {
    let line_of = |error: &toml::de::Error| {
        let start = error.span()?.start;
        Some(1 + text.get(..start)?.matches('\n').count())
    };
    let problem_of = |error: &toml::de::Error| error.message().trim().replace('\n', ", ");
    let parser = toml::Deserializer::parse(text)
        .map_err(|error| ScriptProblem::new(line_of(&error), &"", problem_of(&error)))?;
    serde_path_to_error::deserialize(parser).map_err(|error| {
        let inner = error.inner();
        ScriptProblem::new(line_of(inner), error.path(), problem_of(inner))
    })
}

fn from_json(text: &str) -> Result<Script, ScriptProblem> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let script = serde_path_to_error::deserialize(&mut parser).map_err(|error| {
        let (line, problem) = json_problem(error.inner());
        ScriptProblem::new(line, error.path(), problem)
    })?;
    parser.end().map_err(|error| {
        let (line, problem) = json_problem(&error);
        ScriptProblem::new(line, &"", problem)
    })?;
    Ok(script)
}

/// The line, and what is wrong without the place that the message ends with.
fn json_problem(error: &serde_json::Error) -> (Option<usize>, String) {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let problem = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    (Some(error.line()).filter(|line| *line > 0), problem)
}
