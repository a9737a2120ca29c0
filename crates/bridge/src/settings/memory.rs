//! What is remembered about files that were edited, outside of them.

use std::fs;
use std::path::{Path, PathBuf};

use backstitch_core::digest::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::SettingsError;
use super::file::{create_private, failed};

/// A directory for what is remembered about files of programs. Without one, nothing is remembered.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) directory: Option<PathBuf>,
}

impl Memory {
    /// Remembers below the state directory of this user.
    pub fn new(state: Option<&Path>) -> Self {
        Self { directory: state.map(|state| state.join("guard")) }
    }

    /// Names what is remembered about a file; `kind` distinguishes several things about one file.
    pub(crate) fn of(&self, file: &Path, kind: &str) -> FileMemory {
        let path = std::path::absolute(file).ok().zip(self.directory.as_deref()).map(|(file, directory)| {
            let name = Digest::of(file.as_os_str().as_encoded_bytes()).to_string();
            let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
            directory.join(format!("{name}{kind}.json"))
        });
        FileMemory { path }
    }
}

/// What is remembered about a file.
#[derive(Debug)]
pub(crate) struct FileMemory {
    path: Option<PathBuf>,
}

impl FileMemory {
    pub(crate) fn get<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&fs::read(self.path.as_ref()?).ok()?).ok()
    }

    pub(crate) fn set<T: Serialize>(&self, value: &T) -> Result<(), SettingsError> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(directory) = path.parent() {
            create_private(directory).map_err(failed(directory, "created"))?;
        }
        let text = serde_json::to_vec(value).map_err(|error| failed(path, "written")(error.into()))?;
        fs::write(path, text).map_err(failed(path, "written"))
    }

    pub(crate) fn forget(&self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}
