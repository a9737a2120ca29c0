//! Files that a command creates.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;

use crate::error::{CommandError, ErrorCode};

/// Creates a file with a mode. An existing one is never overwritten.
pub(crate) fn write_new(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let unwritten = || format!("{} cannot be written", path.display());
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!("{} exists already, and was not changed", path.display());
            return Err(CommandError::new(ErrorCode::AlreadyExists, message).into());
        }
        opened => opened.with_context(unwritten)?,
    };
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(unwritten)
}
