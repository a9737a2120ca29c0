//! Files of other programs that are edited. They are read and written as a whole.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use serde_json::Value;
use toml_edit::{DocumentMut, TomlError};

use super::error::SettingsError;

/// The largest file.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Returns the error of an attempt to use a file.
pub(super) fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> SettingsError {
    let path = path.to_owned();
    move |source| SettingsError::Io { path, action, source }
}

/// Reads a file. Returns `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, SettingsError> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, "read")(error)),
    };
    if found.len() > LARGEST {
        return Err(SettingsError::TooLarge { path: path.to_owned(), most: LARGEST });
    }
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(SettingsError::NotUtf8 { path: path.to_owned() })
        }
        Err(error) => Err(failed(path, "read")(error)),
    }
}

/// Parses a file of TOML that is edited.
pub(super) fn parse_toml(path: &Path, text: &str) -> Result<DocumentMut, SettingsError> {
    text.parse().map_err(|error: TomlError| SettingsError::NotToml {
        path: path.to_owned(),
        reason: error.to_string().trim().to_owned(),
    })
}

/// Renders JSON as people write it.
pub(super) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Writes a file atomically. A link stays one: the file that it names is replaced.
pub(super) fn write(path: &Path, text: &str) -> Result<(), SettingsError> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    replace(&target, text).map_err(failed(path, "written"))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::IsADirectory)?;
    fs::create_dir_all(directory)?;
    let temporary = directory.join(format!(".backstitch-guard.{}", std::process::id()));
    let written = fs::write(&temporary, text).and_then(|()| {
        if let Ok(found) = fs::metadata(path) {
            fs::set_permissions(&temporary, found.permissions())?;
        }
        fs::rename(&temporary, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> Result<(), SettingsError> {
    fs::remove_file(path).map_err(failed(path, "removed"))
}

/// Creates a directory that only this user can enter, and the missing directories above it likewise.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
