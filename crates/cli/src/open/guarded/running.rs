//! Which sessions a running `guard -- COMMAND` records, and which ones a killed one has left.
//!
//! Each guard locks a file beside the store until it ends. A file that is not locked therefore belongs to a guard that was
//! killed.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use backstitch::id::SessionId;
use backstitch::stores::make_private;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::tags::COMMAND;

/// Extension of a file that is not locked yet.
const BEGUN: &str = "begun";

/// The file of a guard that runs.
#[derive(Debug)]
pub(crate) struct RunningGuard {
    path: PathBuf,
    _file: File,
}

#[derive(Debug, Serialize, Deserialize)]
struct GuardNote {
    v: u32,
    session: SessionId,
    directory: PathBuf,
    /// The guard.
    process: u32,
}

fn place_of(store: &Path) -> PathBuf {
    store.join("guard").join(COMMAND)
}

fn is_locked(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
}

fn read(file: &mut File) -> Option<GuardNote> {
    let mut text = Vec::new();
    file.take(64 * 1024).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl RunningGuard {
    /// Claims a session for this process, until it ends.
    pub(crate) fn new(store: &Path, session: SessionId, directory: &Path) -> io::Result<Self> {
        let place = place_of(store);
        make_private(&place)?;
        let path = place.join(session.to_string());
        // Under its own name it is locked from the beginning.
        let begun = path.with_extension(BEGUN);
        let mut file = File::options().create_new(true).read(true).write(true).open(&begun)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let note = GuardNote { v: 1, session, directory: directory.to_owned(), process: std::process::id() };
        file.write_all(&serde_json::to_vec(&note)?)?;
        fs::rename(begun, &path)?;
        Ok(Self { path, _file: file })
    }

    /// Removes the file: everything is recorded.
    pub(crate) fn clear(self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Removes the file if the end of the command is recorded. Otherwise the next guard records it.
    pub(crate) fn clear_if_recorded(self, is_recorded: bool) {
        if is_recorded {
            self.clear();
        }
    }

    /// Returns the process that guards the command of a session, if it runs.
    pub(crate) fn of(store: &Path, session: SessionId) -> Option<u32> {
        let mut file = File::open(place_of(store).join(session.to_string())).ok()?;
        is_locked(&file).then(|| read(&mut file).map_or(0, |note| note.process))
    }
}

/// The file that a killed guard has left. It is locked, so that no other guard records the same.
pub(crate) struct KilledGuard {
    path: PathBuf,
    _file: File,
    /// The session and the directory, if it wrote them.
    pub(crate) command: Option<(SessionId, PathBuf)>,
}

impl KilledGuard {
    /// Finds the files of guards that were killed, one after the other.
    pub(crate) fn all(store: &Path) -> impl Iterator<Item = Self> {
        let entries = fs::read_dir(place_of(store)).into_iter().flatten();
        let paths = entries.flatten().map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension().is_none_or(|extension| extension != BEGUN));
        paths.filter_map(|path| {
            let mut file = File::open(&path).ok().filter(|file| !is_locked(file))?;
            let command = read(&mut file).map(|note| (note.session, note.directory));
            Some(Self { path, _file: file, command })
        })
    }

    /// Removes the file: everything is recorded.
    pub(crate) fn clear(self) {
        let _ = fs::remove_file(&self.path);
    }
}
