//! Storage of the snapshots of a [`MainLoop`](crate::MainLoop), and its errors.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use backstitch_core::session::{SessionError, Snapshot, SnapshotRestoreError};

/// Storage of snapshots by request.
pub trait CheckpointHandler<R>: Send + Sync {
    /// Loads the snapshot of an earlier attempt, if there is one.
    fn load(&self, request: &R) -> Result<Option<Snapshot>, CheckpointError>;

    /// Saves a snapshot, and replaces the previous one.
    fn save(&self, request: &R, snapshot: &Snapshot) -> Result<(), CheckpointError>;

    /// Deletes the snapshot of a request that was answered.
    fn clear(&self, request: &R) -> Result<(), CheckpointError>;
}

/// A failure to save or load a snapshot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file is not a snapshot: it is damaged, or another program wrote it. Clear it to start again.
    #[error("{path} is not a valid snapshot")]
    Restore {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: SnapshotRestoreError,
    },
    /// The session cannot be serialized.
    #[error(transparent)]
    Snapshot(#[from] SessionError),
    /// The name of a request cannot be the name of a file.
    #[error("{name:?} cannot be the name of a file")]
    Name {
        /// The rejected name.
        name: String,
    },
}

/// Snapshots as files of a directory. Writes are atomic: a temporary file is written, synced and renamed.
pub struct FileCheckpointHandler<N> {
    directory: PathBuf,
    name: N,
}

impl<N> FileCheckpointHandler<N> {
    /// Keeps snapshots in a directory. `name` returns the name of a request, which names its file.
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
        if legal {
            Ok(self.directory.join(format!("{name}.json")))
        } else {
            Err(CheckpointError::Name { name })
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
