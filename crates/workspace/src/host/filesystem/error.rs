//! Translation of system errors into errors of tools.

use std::io;

use backstitch_core::ports::FilesystemError;
use backstitch_filesystem::FilePath;
use rustix::io::Errno;

use crate::host::sys::{EntryStat, Kind};

/// Builds the error for a path.
pub(super) fn failed(path: &FilePath, error: impl Into<io::Error>) -> FilesystemError {
    let (error, path) = (error.into(), path.to_string());
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::NotFound, _) => FilesystemError::NotFound { path },
        (io::ErrorKind::AlreadyExists, _) => FilesystemError::Exists { path },
        (io::ErrorKind::NotADirectory, _) => FilesystemError::NotDirectory { path },
        (io::ErrorKind::IsADirectory, _) => FilesystemError::IsDirectory { path },
        (io::ErrorKind::DirectoryNotEmpty, _) => FilesystemError::NotEmpty { path },
        // An error without a code of the operating system means that the path leads out.
        (io::ErrorKind::PermissionDenied, None) => FilesystemError::Outside { path },
        (_, Some(code)) if code == Errno::XDEV.raw_os_error() || code == Errno::LOOP.raw_os_error() => {
            FilesystemError::Outside { path }
        }
        _ => FilesystemError::Io { path, source: error },
    }
}

/// Error of opening a path that was a file a moment ago: if it is something else now, it is not opened.
pub(super) fn swapped(path: &FilePath, error: io::Error) -> FilesystemError {
    match error.kind() {
        io::ErrorKind::InvalidInput => FilesystemError::Special { path: path.to_string() },
        _ => failed(path, error),
    }
}

/// Fails unless the entry is a regular file.
pub(super) fn expect_file(path: &FilePath, found: &EntryStat) -> Result<(), FilesystemError> {
    let path = path.to_string();
    match found.kind {
        Kind::File => Ok(()),
        Kind::Directory => Err(FilesystemError::IsDirectory { path }),
        // It was not a link when it was checked.
        Kind::Link => Err(FilesystemError::Outside { path }),
        Kind::Special => Err(FilesystemError::Special { path }),
    }
}
