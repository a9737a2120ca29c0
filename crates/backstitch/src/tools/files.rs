//! Common parts of all tools for files: paths, and errors with advice.

use std::sync::Arc;

use crate::filesystem::FilePath;
use crate::ports::{FileKind, Filesystem, FilesystemError};
use crate::secrets::REPLACEMENT;
use crate::tool::{ToolContext, ToolError};

/// Maximum number of names that an error about a missing path lists.
const SHOWN_NAMES: usize = 12;

/// The files of a call, with errors that a model can act on.
pub(crate) struct Files(Arc<dyn Filesystem>);

impl Files {
    pub(crate) fn of(context: &ToolContext) -> Result<Self, ToolError> {
        Ok(Self(context.filesystem()?))
    }

    /// Parses a path.
    pub(crate) fn path(&self, text: &str) -> Result<FilePath, ToolError> {
        FilePath::within(text, self.0.limits()).map_err(|error| ToolError::of_kind("invalid_path", error))
    }

    /// Refuses a text that holds the placeholder of a redacted key: written to a file, it would overwrite the
    /// key.
    pub(super) fn check_whole(context: &ToolContext, text: &str) -> Result<(), ToolError> {
        if context.secrets().is_redacted(text) {
            return Err(ToolError::of_kind(
                "redacted",
                format_args!(
                    "the text holds {REPLACEMENT}, which stands for a key that is not shown; writing it would overwrite the \
                     key. Leave the lines with the key as they are, and change others in place"
                ),
            ));
        }
        Ok(())
    }

    /// Runs work on the files, and adds advice to its error.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&dyn Filesystem) -> Result<T, FilesystemError>,
    ) -> Result<T, ToolError> {
        work(&*self.0).map_err(|error| self.explained(&error))
    }

    fn explained(&self, error: &FilesystemError) -> ToolError {
        let (kind, advice) = match error {
            FilesystemError::NotFound { path } => {
                return with_advice("not_found", error, &self.nearby(path).unwrap_or_default());
            }
            FilesystemError::Exists { .. } => {
                ("exists", "choose another path, or delete the existing one first")
            }
            FilesystemError::IsDirectory { .. } => {
                ("is_directory", "use the path of a file, or list the directory")
            }
            FilesystemError::NotDirectory { .. } => ("not_directory", "use the path of a directory"),
            FilesystemError::NotEmpty { .. } => ("not_empty", ""),
            FilesystemError::Outside { .. } => ("outside", "only files of the workspace can be used"),
            FilesystemError::Reserved { .. } => ("reserved", "leave it alone"),
            FilesystemError::Repository { .. } => (
                "repository",
                "use git commands for the repository, and ask the user to change its settings or hooks",
            ),
            FilesystemError::Special { .. } => ("special", "use the target of a link, or a regular file"),
            FilesystemError::ReadOnly { .. } => ("read_only", ""),
            FilesystemError::TooLarge { .. } => ("too_large", "work on a smaller file"),
            FilesystemError::InvalidPath(_) => ("invalid_path", ""),
            FilesystemError::NotText { path } => {
                let text = format!(
                    "{path}: it is not UTF-8 text, so it cannot be shown or edited; stat returns its size"
                );
                return ToolError::of_kind("not_text", text);
            }
            FilesystemError::Edit { .. } => ("edit_does_not_fit", ""),
            FilesystemError::Pattern { .. } => ("invalid_pattern", ""),
            FilesystemError::Revoked { .. } => return ToolError::Revoked,
            _ => ("io", ""),
        };
        with_advice(kind, error, advice)
    }

    /// Lists the nearest existing directory above a missing path.
    fn nearby(&self, path: &str) -> Option<String> {
        let mut directory = self.path(path).ok()?.parent()?;
        let entries = loop {
            match self.0.list(&directory) {
                Ok(entries) => break entries,
                Err(_) => directory = directory.parent()?,
            }
        };
        let mut names: Vec<String> = entries.iter().map(|entry| name_of(&entry.name, entry.kind)).collect();
        if names.is_empty() {
            return Some(format!("the directory {directory} is empty"));
        }
        names.sort();
        let more = match names.len().checked_sub(SHOWN_NAMES) {
            Some(more @ 1..) => format!(" and {more} more"),
            _ => String::new(),
        };
        names.truncate(SHOWN_NAMES);
        Some(format!("the directory {directory} holds {}{more}", names.join(", ")))
    }
}

fn with_advice(kind: &str, error: &FilesystemError, advice: &str) -> ToolError {
    let separator = if advice.is_empty() { "" } else { "; " };
    ToolError::of_kind(kind, format_args!("{error}{separator}{advice}"))
}

/// Returns a name that shows its kind: that of a directory ends in `/`.
pub(super) fn name_of(name: &str, kind: FileKind) -> String {
    match kind {
        FileKind::Directory => format!("{name}/"),
        FileKind::File | FileKind::Link | FileKind::Other => name.to_owned(),
    }
}

/// Joins notes to one text; `None` if there are none.
pub(super) fn note(notes: Vec<String>) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}
