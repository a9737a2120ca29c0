//! What all tools for files have in common: paths, and errors that say what to do.

use std::sync::Arc;

use crate::filesystem::FilePath;
use crate::ports::{FileKind, Filesystem, FilesystemError};
use crate::secrets::REPLACEMENT;
use crate::tool::{ToolContext, ToolError};

/// As many names of a directory are shown to who asked for one that is not there.
const SHOWN_NAMES: usize = 12;

/// The files of a call, with errors that a model can act on.
pub(super) struct Files(Arc<dyn Filesystem>);

impl Files {
    pub(super) fn of(context: &ToolContext) -> Result<Self, ToolError> {
        Ok(Self(context.filesystem()?))
    }

    /// Parses a path.
    pub(super) fn path(&self, text: &str) -> Result<FilePath, ToolError> {
        FilePath::within(text, self.0.limits()).map_err(|error| ToolError::of_kind("invalid_path", error))
    }

    /// Refuses a text in which something stands for a key: written to a file, it would overwrite the key.
    pub(super) fn check_whole(context: &ToolContext, text: &str) -> Result<(), ToolError> {
        match context.secrets().is_redacted(text) {
            true => Err(ToolError::of_kind(
                "redacted",
                format_args!(
                    "the text holds {REPLACEMENT}, which stands for a key that is not shown; writing it would overwrite the \
                     key. Leave the lines with the key as they are, and change others with edit_file"
                ),
            )),
            false => Ok(()),
        }
    }

    /// Does something with the files.
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
                ("exists", Some("choose another path, or delete what is there first".to_owned()))
            }
            FilesystemError::IsDirectory { .. } => {
                ("is_directory", Some("give the path of a file, or use list_files".to_owned()))
            }
            FilesystemError::NotDirectory { .. } => {
                ("not_directory", Some("give the path of a directory".to_owned()))
            }
            FilesystemError::NotEmpty { .. } => ("not_empty", None),
            FilesystemError::Outside { .. } => {
                ("outside", Some("only files of the workspace can be used".to_owned()))
            }
            FilesystemError::Reserved { .. } => ("reserved", Some("leave it alone".to_owned())),
            FilesystemError::Special { .. } => {
                ("special", Some("give the path that a link leads to, or of a plain file".to_owned()))
            }
            FilesystemError::ReadOnly { .. } => ("read_only", None),
            FilesystemError::TooLarge { .. } => ("too_large", Some("work on a smaller file".to_owned())),
            FilesystemError::InvalidPath(_) => ("invalid_path", None),
            FilesystemError::NotText { path } => {
                let text = format!(
                    "{path}: it is not UTF-8 text, so it can be neither shown nor edited; stat tells its size"
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

    /// What there is where a path leads nowhere.
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

/// A name that shows what it is the name of: a directory's ends in `/`.
pub(super) fn name_of(name: &str, kind: FileKind) -> String {
    match kind {
        FileKind::Directory => format!("{name}/"),
        FileKind::File | FileKind::Link | FileKind::Other => name.to_owned(),
    }
}

/// The first bytes of a text, cut between characters.
pub(super) fn first_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Notes as one text; none when there are none.
pub(super) fn note(notes: Vec<String>) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}
