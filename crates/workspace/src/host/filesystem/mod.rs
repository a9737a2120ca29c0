//! A host directory from the view of tools.
//!
//! The operating system resolves a path below the root and refuses everything that would leave it, including
//! links, even those that are put in place during the resolution (cap-std). The resolved directory is then
//! kept open, and a check ensures that it lies inside the root and outside the runtime's own directory,
//! however it was reached. The last name is used relative to that handle, and a link is never followed unless
//! it was checked first.
//!
//! Repositories are read-only: git runs programs that their settings and hooks name.
//!
//! Only regular files are opened. Overwriting is atomic: a reader sees the old content or the new.

mod error;
mod resolve;
mod write;

use std::collections::HashSet;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::Path;

use backstitch_core::ports::{
    Access, DirectoryEntry, FileKind, Filesystem, FilesystemError, FilesystemLimits, Recursion, Stat,
    WorkspaceError, WriteMode,
};
use backstitch_core::time::Timestamp;
use backstitch_filesystem::FilePath;
use cap_std::fs::Dir;

use super::root;
use super::sys::{self, EntryStat, Kind, Names};
use crate::temporary::is_temporary;
use error::failed;
pub(super) use write::delete_all;

/// Device and inode, which identify a directory as long as it exists.
type Identity = (u64, u64);

/// A host directory from the view of tools.
#[derive(Debug)]
pub struct HostFilesystem {
    root: Dir,
    identity: Identity,
    store: Option<Identity>,
    /// Directories between the root and the runtime's own, which must stay in place.
    around_store: HashSet<Identity>,
    access: Access,
    limits: FilesystemLimits,
}

impl HostFilesystem {
    /// Opens a directory without claiming it. If there is a directory of the runtime, tools cannot access it.
    pub fn open(
        path: &Path,
        store_directory: Option<&Path>,
        access: Access,
        limits: FilesystemLimits,
    ) -> Result<Self, WorkspaceError> {
        let path = root::check(path, &root::homes(), &root::OwnPlaces::of_user())?;
        Self::of(&path, store_directory, access, limits)
    }

    pub(crate) fn of(
        path: &Path,
        store_directory: Option<&Path>,
        access: Access,
        limits: FilesystemLimits,
    ) -> Result<Self, WorkspaceError> {
        let at = |path: &Path| path.display().to_string().into_bytes();
        let root = Dir::open_ambient_dir(path, cap_std::ambient_authority())
            .map_err(|error| sys::io_error(&at(path), error))?;
        let identity = identity(&sys::file_stat(&root).map_err(|error| sys::io_error(&at(path), error))?);
        let mut around_store = HashSet::new();
        let mut store = None;
        if let Some(directory) = store_directory {
            let failed = |error| sys::io_error(&at(directory), error);
            let canonical = std::fs::canonicalize(directory).map_err(failed)?;
            for above in canonical.ancestors() {
                let found = sys::file_stat(std::fs::File::open(above).map_err(failed)?).map_err(failed)?;
                store.get_or_insert(self::identity(&found));
                if self::identity(&found) == identity {
                    break;
                }
                around_store.insert(self::identity(&found));
            }
        }
        Ok(Self { root, identity, store, around_store, access, limits })
    }

    fn check_write(&self, path: &FilePath) -> Result<(), FilesystemError> {
        match self.access {
            Access::ReadWrite if path.segments().any(|name| is_git(name.as_bytes())) => {
                Err(FilesystemError::Repository { path: path.to_string() })
            }
            Access::ReadWrite => Ok(()),
            Access::ReadOnly => Err(FilesystemError::ReadOnly { path: path.to_string() }),
        }
    }

    fn check_size(&self, path: &FilePath, bytes: u64) -> Result<(), FilesystemError> {
        let limit = self.limits.file_bytes;
        if bytes > limit {
            Err(FilesystemError::TooLarge { path: path.to_string(), bytes, limit })
        } else {
            Ok(())
        }
    }

    /// Fails if the runtime needs the entry in its place.
    fn check_free(&self, path: &FilePath, found: &EntryStat) -> Result<(), FilesystemError> {
        if found.kind == Kind::Directory && self.around_store.contains(&identity(found)) {
            Err(FilesystemError::Reserved { path: path.to_string() })
        } else {
            Ok(())
        }
    }
}

/// True for the name of a repository. Some file systems do not distinguish cases.
fn is_git(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

fn identity(found: &EntryStat) -> Identity {
    (found.stamp.device, found.stamp.inode)
}

fn kind(found: &EntryStat) -> FileKind {
    match found.kind {
        Kind::File => FileKind::File,
        Kind::Directory => FileKind::Directory,
        Kind::Link => FileKind::Link,
        Kind::Special => FileKind::Other,
    }
}

fn size(found: &EntryStat) -> u64 {
    if found.kind == Kind::File { found.stamp.size } else { 0 }
}

impl Filesystem for HostFilesystem {
    fn access(&self) -> Access {
        self.access
    }

    fn limits(&self) -> FilesystemLimits {
        self.limits
    }

    fn stat(&self, path: &FilePath) -> Result<Stat, FilesystemError> {
        let found = if path.is_root() {
            sys::file_stat(&self.root).map_err(|error| failed(path, error))?
        } else {
            self.present(path)?.1
        };
        let (seconds, nanos) = found.stamp.mtime;
        let micros = seconds.saturating_mul(1_000_000).saturating_add(i64::from(nanos / 1_000));
        Ok(Stat {
            kind: kind(&found),
            bytes: size(&found),
            executable: found.kind == Kind::File && found.mode & 0o111 != 0,
            modified: Timestamp::from_unix_micros(micros).ok(),
        })
    }

    fn read_bytes(&self, path: &FilePath) -> Result<Vec<u8>, FilesystemError> {
        let Some(spot) = self.followed(path)? else {
            return Err(FilesystemError::IsDirectory { path: path.to_string() });
        };
        let found =
            spot.entry_stat(path)?.ok_or_else(|| FilesystemError::NotFound { path: path.to_string() })?;
        error::expect_file(path, &found)?;
        self.check_size(path, found.stamp.size)?;
        let (file, found) =
            sys::open_file(spot.parent.as_fd(), &*spot.name).map_err(|error| error::swapped(path, error))?;
        self.check_size(path, found.stamp.size)?;
        let mut bytes = Vec::new();
        let limit = self.limits.file_bytes.saturating_add(1);
        std::fs::File::from(file).take(limit).read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
        self.check_size(path, bytes.len() as u64)?;
        Ok(bytes)
    }

    fn write_bytes(&self, path: &FilePath, bytes: &[u8], mode: WriteMode) -> Result<(), FilesystemError> {
        self.check_write(path)?;
        self.check_size(path, bytes.len() as u64)?;
        match mode {
            WriteMode::Create => self.create(path, bytes),
            WriteMode::Overwrite => self.overwrite(path, bytes),
            WriteMode::Append => self.append(path, bytes),
        }
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirectoryEntry>, FilesystemError> {
        let failed = |error| failed(path, error);
        // A path-only handle of a directory cannot be read.
        let directory = sys::open_directory(self.directory(path)?.as_fd(), ".").map_err(failed)?;
        let mut entries = Vec::new();
        for name in Names::read(directory.as_fd()).map_err(failed)?.iter() {
            if is_temporary(name.to_bytes()) {
                continue;
            }
            let Some(found) = sys::entry_stat(directory.as_fd(), name).map_err(failed)? else { continue };
            if found.kind == Kind::Directory && self.store == Some(identity(&found)) {
                continue;
            }
            let name = name.to_string_lossy().into_owned();
            entries.push(DirectoryEntry { name, kind: kind(&found), bytes: size(&found) });
        }
        Ok(entries)
    }

    fn delete(&self, path: &FilePath, recursion: Recursion) -> Result<(), FilesystemError> {
        self.check_write(path)?;
        if path.is_root() {
            return Err(FilesystemError::Outside { path: path.to_string() });
        }
        let (spot, found) = self.present(path)?;
        self.check_free(path, &found)?;
        self.check_not_git(path, &spot)?;
        write::delete(path, spot.parent.as_fd(), &spot.name, &found, recursion)
    }

    fn make_directory(&self, path: &FilePath) -> Result<(), FilesystemError> {
        self.check_write(path)?;
        self.make(path).map(drop)
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<(), FilesystemError> {
        self.check_write(from)?;
        self.check_write(to)?;
        if from.is_root() || to.is_root() {
            return Err(FilesystemError::Outside { path: ".".to_owned() });
        }
        let (source, found) = self.present(from)?;
        self.check_free(from, &found)?;
        let target = self.spot(to)?;
        self.check_not_git(from, &source)?;
        self.check_not_git(to, &target)?;
        write::rename((from, &source), (to, &target))
    }
}
