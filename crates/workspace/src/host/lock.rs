//! Exclusive claims to directories: one session at a time in a directory, in those inside it and in those
//! around it.
//!
//! Each claimed directory has a file in one place of the machine, which its holder keeps locked. The system
//! releases the lock when the process ends, however it ends. The file names the directory and the holder. To
//! claim a directory, a process takes a short lock on the place itself, reads all files, and looks for a
//! locked one whose directory is the same, inside or around. The place is not the store's directory, because
//! two stores may lie in nested directories.
//!
//! The directory itself is not locked, because the user's tools may lock it.
//!
//! A holder that is killed while it starts a child leaves its lock with the child until that executes its
//! program. A process that finds the lock of an ended process therefore waits for it briefly.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backstitch_core::ports::WorkspaceError;
use backstitch_filesystem::format::names::{decode, encode};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::sys::io_error;

/// Maximum time that a lock may outlive its holder.
const LONGEST_OUTLIVED: Duration = Duration::from_secs(5);

/// A claim to a directory, until it is dropped.
///
/// The file stays: removing it could remove that of the next holder. The next claim removes abandoned files.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

#[derive(Serialize, Deserialize)]
struct Holder {
    directory: String,
    holder: String,
    process: u32,
}

/// Place of all locks of this user.
pub(crate) fn default_place() -> PathBuf {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let user = rustix::process::geteuid().as_raw();
    match state.or_else(home).filter(|path| path.is_absolute()) {
        Some(state) if make_private(&state.join("backstitch/locks")).is_ok() => {
            state.join("backstitch/locks")
        }
        _ => PathBuf::from(format!("/tmp/backstitch-{user}/locks")),
    }
}

impl Lock {
    /// Claims a directory. Its path must be canonical.
    pub(crate) fn take(place: &Path, directory: &Path, holder: &str) -> Result<Self, WorkspaceError> {
        let failed = |error: io::Error| io_error(place.as_os_str().as_bytes(), error);
        make_private(place).map_err(failed)?;
        let all = open(&place.join("all")).map_err(failed)?;
        flock(&all, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        for entry in fs::read_dir(place).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "lock") {
                check(&path, directory).map_err(failed)?.map_or(Ok(()), Err)?;
            }
        }
        let name = blake3::hash(directory.as_os_str().as_bytes()).to_hex();
        let path = place.join(format!("{}.lock", &name[..32]));
        Ok(Self { file: write(&path, directory, holder).map_err(failed)? })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started has it too, until it executes
        // its program.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Returns the refusal of a claim, if a holder of the lock file prevents it. Removes the file of one that is gone.
fn check(path: &Path, wanted: &Path) -> io::Result<Option<WorkspaceError>> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut is_gone = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => false,
        locked => locked.map(|()| true)?,
    };
    let mut refused = None;
    if !is_gone {
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let Ok(held) = serde_json::from_slice::<Holder>(&text) else { return Ok(None) };
        let Some(bytes) = decode(held.directory.as_bytes()) else { return Ok(None) };
        let directory = PathBuf::from(std::ffi::OsStr::from_bytes(&bytes));
        if !directory.starts_with(wanted) && !wanted.starts_with(&directory) {
            return Ok(None);
        }
        is_gone = has_ended(held.process) && is_freed(&file);
        let holder = format!("{} (process {})", held.holder, held.process);
        refused = Some(WorkspaceError::Held { path: directory.display().to_string(), holder });
    }
    if is_gone {
        let _ = fs::remove_file(path);
    }
    Ok(refused.filter(|_| !is_gone))
}

/// Returns whether there is no process with this id.
fn has_ended(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH))
}

/// Waits for the lock of an ended holder and takes it. Returns whether that succeeded.
fn is_freed(file: &File) -> bool {
    let until = Instant::now() + LONGEST_OUTLIVED;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return true,
            Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return false,
        }
    }
}

fn write(path: &Path, directory: &Path, holder: &str) -> io::Result<File> {
    let mut file = open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let directory = encode(directory.as_os_str().as_bytes());
    let text =
        serde_json::to_vec(&Holder { directory, holder: holder.to_owned(), process: std::process::id() })?;
    file.set_len(0)?;
    file.write_all(&text)?;
    Ok(file)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
}

/// Creates a directory that only this user can write to. Fails if it exists and belongs to another user.
fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let found = fs::symlink_metadata(path)?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && own {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a lock whose file names this process as its holder.
    fn held_by(place: &Path, directory: &Path, process: u32) -> File {
        let lock = Lock::take(place, directory, "A").unwrap();
        let file = lock.file.try_clone().unwrap();
        // The lock lives on in the clone, as it would in a child.
        std::mem::forget(lock);
        let path = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
        let path = path.into_iter().find(|path| path.extension().is_some_and(|one| one == "lock")).unwrap();
        let directory = encode(directory.as_os_str().as_bytes());
        let holder = Holder { directory, holder: "A".to_owned(), process };
        fs::write(path, serde_json::to_vec(&holder).unwrap()).unwrap();
        file
    }

    #[test]
    fn a_lock_that_outlives_its_holder_is_waited_for() {
        let above = tempfile::tempdir().unwrap();
        let (place, directory) = (above.path().join("locks"), above.path().join("work"));
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let file = held_by(&place, &directory, ended.id());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                flock(&file, FlockOperation::Unlock).unwrap();
            });
            Lock::take(&place, &directory, "B").unwrap();
        });
    }

    #[test]
    fn a_lock_of_a_process_that_lives_is_not_waited_for() {
        let above = tempfile::tempdir().unwrap();
        let (place, directory) = (above.path().join("locks"), above.path().join("work"));
        let _file = held_by(&place, &directory, std::process::id());
        assert!(matches!(Lock::take(&place, &directory, "B"), Err(WorkspaceError::Held { .. })));
    }
}
