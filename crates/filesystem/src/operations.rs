//! What tools do with files, on top of any filesystem.

use backstitch_core::ports::{Filesystem, FilesystemError, WriteMode};

use super::FilePath;
use super::edit::{self, EditReport, EditTarget};
use super::grep::{self, Grep, GrepOptions};
use super::search::{self, Glob, SearchLimits};
use super::text::{self, LineWindow, TextFile, TextWindow};

/// What tools do with files. Every [`Filesystem`] has it.
///
/// Errors are written for whoever asked, which is a model more often than a person: they say what is wrong and what to do.
pub trait FileOperations: Filesystem {
    /// The text of a file.
    fn read_text(&self, path: &FilePath) -> Result<String, FilesystemError> {
        text::read_text(self, path)
    }

    /// Some lines of a file.
    fn read(&self, path: &FilePath, window: LineWindow) -> Result<TextWindow, FilesystemError> {
        Ok(text::window(&text::read_text(self, path)?, window))
    }

    /// Writes text to a file, making the directories above it.
    fn write(&self, path: &FilePath, text: &str, mode: WriteMode) -> Result<(), FilesystemError> {
        self.write_bytes(path, text.as_bytes(), mode)
    }

    /// Puts one text in the place of another.
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

    /// What below a directory has a path, seen from there, that matches a pattern.
    ///
    /// `*` and `?` do not match `/`, `**` does; `[a-z]` and `{a,b}` are known. Links are found, and not followed.
    fn glob(&self, pattern: &str, below: &FilePath, limits: SearchLimits) -> Result<Glob, FilesystemError> {
        search::glob(self, pattern, below, limits)
    }

    /// The lines of files that match a regular expression.
    fn grep(&self, regex: &str, options: &GrepOptions) -> Result<Grep, FilesystemError> {
        grep::grep(self, regex, options)
    }
}

impl<F: Filesystem + ?Sized> FileOperations for F {}
