//! Files of other programs that this command edits, and what it remembers about them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use backstitch::code::ErrorCode;
use backstitch::digest::Digest;
use backstitch::stores::{make_private, state_directory};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml_edit::{DocumentMut, TomlError};

use crate::error::CommandError;

/// The largest file.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Returns the error about a file that cannot be edited without a loss.
pub(super) fn invalid(message: String) -> CommandError {
    CommandError::new(ErrorCode::SettingsInvalid, message)
        .with_hint("remove comments and marks that JSON does not have, or repair the file, and try again")
}

/// Reads a file. Returns `None` if it does not exist.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    let name = path.display();
    match fs::metadata(path) {
        Ok(found) if found.len() > LARGEST => {
            Err(invalid(format!("{name} has more than {LARGEST} bytes")).into())
        }
        Ok(_) => match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(invalid(format!("{name} is not UTF-8, and was left as it is")).into())
            }
            Err(error) => Err(error).with_context(|| format!("{name} cannot be read")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{name} cannot be read")),
    }
}

/// Parses a file of TOML that is edited.
pub(super) fn parse_toml(path: &Path, text: &str) -> anyhow::Result<DocumentMut> {
    text.parse().map_err(|error: TomlError| {
        let (name, reason) = (path.display(), error.to_string());
        invalid(format!("{name} is not TOML, and was left as it is: {}", reason.trim())).into()
    })
}

/// Writes a file atomically. A link stays one: the file that it names is replaced.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be written", path.display());
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().with_context(failed)?;
    fs::create_dir_all(directory).with_context(failed)?;
    let temporary = directory.join(format!(".backstitch-guard.{}", std::process::id()));
    let written = fs::write(&temporary, text).and_then(|()| {
        if let Ok(found) = fs::metadata(&path) {
            fs::set_permissions(&temporary, found.permissions())?;
        }
        fs::rename(&temporary, &path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.with_context(failed)
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    fs::remove_file(path).with_context(|| format!("{} cannot be removed", path.display()))
}

/// What this command remembers about a file. Without a state directory it remembers nothing.
pub(super) struct Memory {
    path: Option<PathBuf>,
}

impl Memory {
    /// Names what is remembered about a file; `kind` tells several things about one file apart.
    pub(super) fn of(file: &Path, kind: &str) -> Self {
        let path = std::path::absolute(file).ok().zip(state_directory().ok()).map(|(file, state)| {
            let name = Digest::of(file.as_os_str().as_encoded_bytes()).to_string();
            let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
            state.join("guard").join(format!("{name}{kind}.json"))
        });
        Self { path }
    }

    pub(super) fn get<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&fs::read(self.path.as_ref()?).ok()?).ok()
    }

    pub(super) fn set<T: Serialize>(&self, value: &T) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(directory) = path.parent() {
            make_private(directory).with_context(|| format!("{} cannot be created", directory.display()))?;
        }
        fs::write(path, serde_json::to_vec(value)?)
            .with_context(|| format!("{} cannot be written", path.display()))
    }

    pub(super) fn forget(&self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}
