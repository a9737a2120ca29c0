//! The record of trust, a file in the state directory of the user.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use backstitch::providers::read_text;
use backstitch::stores::{self, Project};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::TrustError;

/// Maximum size of the file, in bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// What the user trusts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Ledger {
    v: u32,
    pub(super) directories: Vec<TrustedDirectory>,
    /// Addresses that keys may be sent to: scheme, host and port.
    #[serde(default)]
    pub(super) addresses: BTreeSet<String>,
    /// Projects in which the mode `full` was confirmed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) full: Vec<Project>,
}

/// A directory, and what is trusted in it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TrustedDirectory {
    pub(super) directory: Project,
    /// What is recorded about each file, by its path.
    pub(super) files: BTreeMap<String, String>,
}

/// Fails if another user may have written a file or a directory. A missing one is fine.
fn check_owner(path: &Path) -> Result<(), TrustError> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let own = rustix::process::geteuid().as_raw();
    let shown = path.display();
    let remedy = if found.uid() != own {
        format!("it belongs to another user; if you trust its content, run `chown {own} {shown}`")
    } else if found.mode() & 0o022 != 0 {
        format!("other users can write it; check its content, then run `chmod go-w {shown}`")
    } else {
        return Ok(());
    };
    Err(TrustError::Exposed { path: path.to_owned(), remedy })
}

impl Ledger {
    fn path() -> Result<PathBuf, TrustError> {
        Ok(stores::state_directory().map_err(TrustError::NoDirectory)?.join("trust.json"))
    }

    /// Reads the file. Without one, nothing is trusted.
    pub(super) fn read() -> Result<Self, TrustError> {
        match Self::path() {
            Ok(path) => Self::read_from(path),
            // Where nothing can be recorded, nothing is trusted.
            Err(_) => Ok(Self::default()),
        }
    }

    fn read_from(path: PathBuf) -> Result<Self, TrustError> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        check_owner(directory)?;
        check_owner(&path)?;
        match read_text(&path, LARGEST_FILE) {
            Ok(text) => serde_json::from_str(&text).map_err(|source| TrustError::Damaged { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { v: 1, ..Self::default() }),
            Err(source) => Err(TrustError::Unreadable { path, source }),
        }
    }

    /// Changes the file, atomically and one process at a time.
    pub(super) fn change<T>(change: impl FnOnce(&mut Self) -> T) -> Result<T, TrustError> {
        let path = Self::path()?;
        let unwritable = |source: io::Error| TrustError::Unwritable { path: path.clone(), source };
        let directory = path.parent().unwrap_or(Path::new("/"));
        stores::make_private(directory).map_err(unwritable)?;
        let private = || OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).to_owned();
        let lock = private().open(path.with_extension("lock")).map_err(unwritable)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| unwritable(error.into()))?;
        let mut ledger = Self::read_from(path.clone())?;
        let done = change(&mut ledger);
        let temporary = path.with_extension(format!("json.{}", std::process::id()));
        let write = || -> io::Result<()> {
            let mut file = private().open(&temporary)?;
            file.write_all(&serde_json::to_vec_pretty(&ledger)?)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        };
        write().map_err(unwritable)?;
        Ok(done)
    }

    /// Returns the entries of a directory, that of its path first. A renamed directory is found too.
    pub(super) fn of(&self, root: &Path) -> Vec<&TrustedDirectory> {
        let now = Project::at(root).ok();
        let is_moved =
            |entry: &&TrustedDirectory| now.as_ref().is_some_and(|now| entry.directory.is_same(now));
        let here = self.directories.iter().filter(|entry| entry.directory.path() == root);
        let moved = self.directories.iter().filter(|entry| entry.directory.path() != root).filter(is_moved);
        here.chain(moved).collect()
    }

    /// Adds files of a directory. Those that were trusted before stay trusted.
    pub(super) fn trust(&mut self, root: &Path, files: &BTreeMap<String, String>) {
        let mut all: BTreeMap<_, _> =
            self.of(root).into_iter().rev().flat_map(|entry| entry.files.clone()).collect();
        all.extend(files.clone());
        let Ok(directory) = Project::at(root) else { return };
        self.revoke(root);
        self.directories.push(TrustedDirectory { directory, files: all });
    }

    /// Forgets that the mode `full` was confirmed in a project. Returns whether it was.
    pub(super) fn revoke_full(&mut self, root: &Path) -> bool {
        let now = Project::at(root).ok();
        let before = self.full.len();
        self.full.retain(|known| known.path() != root && !now.as_ref().is_some_and(|now| known.is_same(now)));
        self.full.len() != before
    }

    /// Removes a directory. Returns whether it was trusted.
    pub(super) fn revoke(&mut self, root: &Path) -> bool {
        let now = Project::at(root).ok();
        let before = self.directories.len();
        self.directories.retain(|entry| {
            entry.directory.path() != root && !now.as_ref().is_some_and(|now| entry.directory.is_same(now))
        });
        self.directories.len() != before
    }
}
