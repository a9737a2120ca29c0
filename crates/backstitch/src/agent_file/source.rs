//! TOML texts whose errors name the file, the line and the key.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::de::DeTable;

use super::error::{AgentFileError, Problem, SourceLocation, near};
use super::locate;

/// A TOML text, and the file that it comes from.
pub struct TomlSource<'a> {
    /// The file; `None` for a text that is not in a file.
    pub file: Option<&'a Path>,
    /// The text.
    pub text: &'a str,
}

impl TomlSource<'_> {
    /// Parses the text. An error names the line and the key, and suggests a known name for an unknown one.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, AgentFileError> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().unwrap_or_default();
            let key = self.table().and_then(|table| locate::key_at(table.get_ref(), &at));
            let message = with_hint(error.message());
            let problem = Problem { key: key.unwrap_or_default(), message };
            AgentFileError::InFile { place: self.place(&at), problem }
        })
    }

    /// Adds the line of the key to an error.
    pub fn located(&self, error: AgentFileError) -> AgentFileError {
        let AgentFileError::InDefinition(problem) = error else { return error };
        let at = self.table().and_then(|table| locate::place_of(table.get_ref(), &problem.key));
        let at = at.unwrap_or_default();
        AgentFileError::InFile { place: self.place(&(at..at)), problem }
    }

    /// Returns the line of a key, or of its longest existing prefix.
    pub fn line_of(&self, key: &[String]) -> Option<usize> {
        let at = self.table().and_then(|table| locate::place_of(table.get_ref(), key))?;
        Some(locate::line(self.text, at))
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
