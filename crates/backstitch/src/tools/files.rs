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
            FilesystemError::NotFound { path } => ("not_found", self.nearby(path)),
            FilesystemError::Exists { .. } => {
                ("exists", Some("choose another path, or delete the existing one first".to_owned()))
            }
            FilesystemError::IsDirectory { .. } => {
                ("is_directory", Some("use the path of a file, or list the directory".to_owned()))
            }
            FilesystemError::NotDirectory { .. } => {
                ("not_directory", Some("use the path of a directory".to_owned()))
            }
            FilesystemError::NotEmpty { .. } => ("not_empty", None),
            FilesystemError::Outside { .. } => {
                ("outside", Some("only files of the workspace can be used".to_owned()))
            }
            FilesystemError::Reserved { .. } => ("reserved", Some("leave it alone".to_owned())),
            FilesystemError::Repository { .. } => (
                "repository",
                Some(
                    "use git commands for the repository, and ask the user to change its settings or hooks"
                        .to_owned(),
                ),
            ),
            FilesystemError::Special { .. } => {
                ("special", Some("use the target of a link, or a regular file".to_owned()))
            }
            FilesystemError::ReadOnly { .. } => ("read_only", None),
            FilesystemError::TooLarge { .. } => ("too_large", Some("work on a smaller file".to_owned())),
            FilesystemError::InvalidPath(_) => ("invalid_path", None),
            FilesystemError::NotText { path } => {
                let text = format!(
                    "{path}: it is not UTF-8 text, so it cannot be shown or edited; stat returns its size"
                );
                return ToolError::of_kind("not_text", text);
            }
            FilesystemError::Edit { .. } => ("edit_does_not_fit", None),
            FilesystemError::Pattern { .. } => ("invalid_pattern", None),
            FilesystemError::Revoked { .. } => return ToolError::Revoked,
            _ => ("io", None),
        };
        match advice {
            Some(advice) => ToolError::of_kind(kind, format_args!("{error}; {advice}")),
            None => ToolError::of_kind(kind, error),
        }
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

/// Returns a name that shows its kind: that of a directory ends in `/`.
pub(super) fn name_of(name: &str, kind: FileKind) -> String {
    match kind {
        FileKind::Directory => format!("{name}/"),
        FileKind::File | FileKind::Link | FileKind::Other => name.to_owned(),
    }
}

/// Returns at most the first `most` bytes of a text, cut between characters.
pub(super) fn first_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Joins notes to one text; `None` if there are none.
pub(super) fn note(notes: Vec<String>) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}
