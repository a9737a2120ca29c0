//! Files that only their owner may read.
//!
//! Journals hold transcripts, and sometimes secrets. Every file and directory of a store is therefore created
//! for its owner alone, regardless of the umask: directories with mode 0700, files with 0600. SQLite gives
//! its log the mode of the database. Existing files and directories keep their modes, which may have been set
//! on purpose.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Creates a directory and its missing parents.
pub(super) fn create_directories(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    match create_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(parent) = path.parent() else { return Err(error) };
            create_directories(parent)?;
            match create_directory(path) {
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
                result => result,
            }
        }
        Err(_) if path.is_dir() => Ok(()),
        result => result,
    }
}

fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    set_mode(path, 0o700)
}

/// Creates a new file; fails if it exists.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    set_mode(path, 0o600)?;
    Ok(file)
}

/// Opens a file for reading and writing, and creates it if it does not exist.
pub(super) fn open_or_create_file(path: &Path) -> io::Result<File> {
    match create_file(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match OpenOptions::new().read(true).write(true).open(path) {
                // Removed in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => create_file(path),
                result => result,
            }
        }
        result => result,
    }
}

/// Creates the first file that does not exist of those with these numbers in their paths.
pub(super) fn create_numbered_file(path: impl Fn(u32) -> PathBuf) -> io::Result<(PathBuf, File)> {
    for path in (1..10_000).map(path) {
        match create_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|file| (path, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Sets the mode explicitly, because the umask may have removed even the owner's permissions.
#[cfg(unix)]
pub(super) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
pub(super) fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// Path of a file that SQLite keeps beside a store.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}
