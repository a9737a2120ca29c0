//! File operations of tools, on top of any filesystem.

use backstitch_core::ports::{Filesystem, FilesystemError, WriteMode};

use super::FilePath;
use super::edit::{self, EditReport, EditTarget};
use super::grep::{self, Grep, GrepOptions};
use super::search::{self, Glob, SearchLimits};
use super::text::{self, LineWindow, TextFile, TextWindow};

/// File operations of tools. Every [`Filesystem`] has them.
///
/// Errors are written for the caller, which is more often a model than a person: they name the problem and
/// the remedy.
pub trait FileOperations: Filesystem {
    /// Reads a file as text.
    fn read_text(&self, path: &FilePath) -> Result<String, FilesystemError> {
        text::read_text(self, path)
    }

    /// Reads a window of lines.
    fn read(&self, path: &FilePath, window: LineWindow) -> Result<TextWindow, FilesystemError> {
        Ok(text::window(&text::read_text(self, path)?, window))
    }

    /// Writes text to a file, and creates the directories above it.
    fn write(&self, path: &FilePath, text: &str, mode: WriteMode) -> Result<(), FilesystemError> {
        self.write_bytes(path, text.as_bytes(), mode)
    }

    /// Replaces one text by another.
    fn edit(
        &self,
        path: &FilePath,
        old: &str,
        new: &str,
        occurrence: EditTarget,
    ) -> Result<EditReport, FilesystemError> {
        let limit = self.limits().file_bytes;
        let file = TextFile { path, text: &self.read_text(path)? };
        let (text, edited) = edit::replaced(&file, old, new, occurrence, limit)?;
        self.write(path, &text, WriteMode::Overwrite)?;
        Ok(edited)
    }

    /// Finds entries below a directory whose relative path matches a pattern.
    ///
    /// `*` and `?` do not match `/`, `**` does; `[a-z]` and `{a,b}` are supported. Links are found, but not
    /// followed.
    fn glob(&self, pattern: &str, below: &FilePath, limits: SearchLimits) -> Result<Glob, FilesystemError> {
        search::glob(self, pattern, below, limits)
    }

    /// Finds the lines of files that match a regular expression.
    fn grep(&self, regex: &str, options: &GrepOptions) -> Result<Grep, FilesystemError> {
        grep::grep(self, regex, options)
    }
}

impl<F: Filesystem + ?Sized> FileOperations for F {}
