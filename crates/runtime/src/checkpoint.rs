//! Where the snapshots of a [`MainLoop`](crate::MainLoop) are kept, and how that fails.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use backstitch_core::session::{SessionError, Snapshot, SnapshotRestoreError};

/// Where snapshots of requests are kept.
pub trait CheckpointHandler<R>: Send + Sync {
    /// The snapshot of an earlier attempt, if there is one.
    fn load(&self, request: &R) -> Result<Option<Snapshot>, CheckpointError>;

    /// Keeps a snapshot in place of the one before.
    fn save(&self, request: &R, snapshot: &Snapshot) -> Result<(), CheckpointError>;

    /// Forgets the snapshot of a request that was answered.
    fn clear(&self, request: &R) -> Result<(), CheckpointError>;
}

/// A snapshot could not be kept or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Where.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// The file is no snapshot: it is damaged, or of another program. Clear it to start again.
    #[error("{path} is no snapshot that can be restored")]
    Restore {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: SnapshotRestoreError,
    },
    /// The session cannot be written down.
    #[error(transparent)]
    Snapshot(#[from] SessionError),
    /// The name of a request cannot be the name of a file.
    #[error("{name:?} cannot be the name of a file")]
    Name {
        /// The name.
        name: String,
    },
}

/// Snapshots as files of a directory. A file is written whole or not at all: beside, synced, renamed.
pub struct FileCheckpointHandler<N> {
    directory: PathBuf,
    name: N,
}

impl<N> FileCheckpointHandler<N> {
    /// Keeps snapshots in a directory; `name` gives the name of a request, under which its file is found again.
    pub fn new(directory: impl Into<PathBuf>, name: N) -> Self {
        Self { directory: directory.into(), name }
    }

    fn path<R>(&self, request: &R) -> Result<PathBuf, CheckpointError>
    where
        N: Fn(&R) -> String,
    {
        let name = (self.name)(request);
        let legal = !name.is_empty()
            && name.len() <= 200
            && !name.starts_with('.')
            && name.chars().all(|character| character.is_alphanumeric() || "-_.".contains(character));
        match legal {
            true => Ok(self.directory.join(format!("{name}.json"))),
            false => Err(CheckpointError::Name { name }),
        }
    }
}

impl<R, N> CheckpointHandler<R> for FileCheckpointHandler<N>
where
    N: Fn(&R) -> String + Send + Sync,
{
    fn load(&self, request: &R) -> Result<Option<Snapshot>, CheckpointError> {
        let path = self.path(request)?;
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let snapshot = Snapshot::from_json(&text);
                snapshot.map(Some).map_err(|source| CheckpointError::Restore { path, source })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(CheckpointError::File { path, source }),
        }
    }

    fn save(&self, request: &R, snapshot: &Snapshot) -> Result<(), CheckpointError> {
        let (path, text) = (self.path(request)?, snapshot.to_json()?);
        write_whole(&self.directory, &path, text.as_bytes())
            .map_err(|source| CheckpointError::File { path, source })
    }

    fn clear(&self, request: &R) -> Result<(), CheckpointError> {
        let path = self.path(request)?;
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(CheckpointError::File { path, source })
            }
            _ => Ok(()),
        }
    }
}

fn write_whole(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let beside = path.with_extension("json.new");
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    File::open(directory)?.sync_all()
}
