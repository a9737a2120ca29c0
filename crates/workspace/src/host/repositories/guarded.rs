//! The guarded files of repositories: what git runs, and what tells it to.
//!
//! These are the settings, the hooks, the attributes and excludes of a repository, the file that names its
//! common directory, and files named `.git` that point to a repository. They are small. A file over the limit
//! is not read: its size and time show a change, but it cannot be restored.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use backstitch_filesystem::format::names::{decode, encode, join, split};
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, readlinkat, symlinkat, unlinkat};
use serde::{Deserialize, Serialize};

use super::super::filesystem::delete_all;
use super::super::sys::{self, EntryStat, Kind, Names, set_mode};
use super::find::Repositories;

/// Maximum size of a guarded file.
const MOST_BYTES: u64 = 1024 * 1024;

/// Maximum number of entries below the hooks of a repository.
const MOST_HOOKS: usize = 1_000;

/// Maximum depth of directories below the hooks of a repository.
const MOST_DEPTH: usize = 4;

/// Maximum number of repositories.
const MOST_REPOSITORIES: usize = 2_000;

/// Bytes that are stored as percent-encoded text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(in crate::host) struct Bytes(pub(super) Vec<u8>);

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        encode(&bytes.0)
    }
}

impl TryFrom<String> for Bytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        decode(text.as_bytes()).map(Self).ok_or(text)
    }
}

/// The guarded files of all repositories of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::host) struct GuardedFiles {
    pub(super) v: u64,
    /// The repositories, by path.
    pub(super) repositories: BTreeMap<Bytes, GuardedRepository>,
    /// The files and links named `.git`, by path.
    pub(super) pointers: BTreeMap<Bytes, GuardedFile>,
    /// The number of repositories over the limit.
    #[serde(default)]
    pub(super) more: usize,
}

/// The guarded files of one repository, by path below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::host) struct GuardedRepository {
    /// Device and inode of the directory, which it keeps when it is moved.
    pub(super) identity: (u64, u64),
    pub(super) files: BTreeMap<Bytes, GuardedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::host) enum GuardedFile {
    File {
        mode: u32,
        bytes: Bytes,
    },
    Link {
        target: Bytes,
    },
    /// Anything else: a large file, a directory in the place of a file, a device.
    Opaque {
        size: u64,
        seconds: i64,
        nanos: u32,
    },
}

impl GuardedFiles {
    pub(super) fn read(root: BorrowedFd<'_>, found: &Repositories) -> Self {
        let mut guarded = Self { v: 1, ..Self::default() };
        guarded.more = found.directories.len().saturating_sub(MOST_REPOSITORIES);
        for path in found.directories.iter().take(MOST_REPOSITORIES) {
            let repository = open_below(root, path).ok().and_then(|open| GuardedRepository::read(&open));
            guarded.repositories.extend(repository.map(|found| (Bytes(path.clone()), found)));
        }
        for path in found.pointers.keys() {
            let (above, name) = split(path);
            let file = open_below(root, above).ok();
            let file = file.and_then(|above| GuardedFile::read(above.as_fd(), name));
            guarded.pointers.extend(file.map(|file| (Bytes(path.clone()), file)));
        }
        guarded
    }
}

impl GuardedRepository {
    fn read(directory: &OwnedFd) -> Option<Self> {
        let found = sys::file_stat(directory).ok()?;
        let mut repository =
            Self { identity: (found.stamp.device, found.stamp.inode), files: BTreeMap::new() };
        for name in [&b"config"[..], b"config.worktree", b"commondir"] {
            repository.add(directory.as_fd(), name, name);
        }
        match sys::open_directory(directory.as_fd(), "info") {
            Ok(info) => {
                for name in [&b"attributes"[..], b"exclude"] {
                    repository.add(info.as_fd(), name, &join(b"info", name));
                }
            }
            Err(_) => repository.add(directory.as_fd(), b"info", b"info"),
        }
        match sys::open_directory(directory.as_fd(), "hooks") {
            Ok(hooks) => repository.add_hooks(&hooks, b"hooks", 0),
            Err(_) => repository.add(directory.as_fd(), b"hooks", b"hooks"),
        }
        Some(repository)
    }

    fn add(&mut self, directory: BorrowedFd<'_>, name: &[u8], path: &[u8]) {
        self.files.extend(GuardedFile::read(directory, name).map(|file| (Bytes(path.to_vec()), file)));
    }

    fn add_hooks(&mut self, directory: &OwnedFd, path: &[u8], depth: usize) {
        let Ok(names) = Names::read(directory.as_fd()) else { return };
        for name in names.iter().map(|name| name.to_bytes()) {
            // Git does not run samples.
            if name.ends_with(b".sample") || self.files.len() >= MOST_HOOKS {
                continue;
            }
            let path = join(path, name);
            match sys::open_directory(directory.as_fd(), name) {
                Ok(below) if depth < MOST_DEPTH => self.add_hooks(&below, &path, depth + 1),
                _ => self.add(directory.as_fd(), name, &path),
            }
        }
    }
}

impl GuardedFile {
    fn read(directory: BorrowedFd<'_>, name: &[u8]) -> Option<Self> {
        let found = sys::entry_stat(directory, name).ok()??;
        match found.kind {
            Kind::File if found.stamp.size <= MOST_BYTES => {
                // Mode and content of the same file, even if another takes its name meanwhile.
                let Ok((file, found)) = sys::open_file(directory, name) else {
                    return Some(Self::opaque(&found));
                };
                let mut bytes = Vec::new();
                match File::from(file).take(MOST_BYTES + 1).read_to_end(&mut bytes) {
                    Ok(_) if bytes.len() as u64 <= MOST_BYTES => {
                        Some(Self::File { mode: found.mode, bytes: Bytes(bytes) })
                    }
                    _ => Some(Self::opaque(&found)),
                }
            }
            Kind::Link => {
                let target = readlinkat(directory, name, Vec::new()).ok()?;
                Some(Self::Link { target: Bytes(target.to_bytes().to_vec()) })
            }
            Kind::File | Kind::Directory | Kind::Special => Some(Self::opaque(&found)),
        }
    }

    fn opaque(found: &EntryStat) -> Self {
        let (seconds, nanos) = found.stamp.mtime;
        Self::Opaque { size: found.stamp.size, seconds, nanos }
    }

    /// Bytes of a file; empty for a missing one. `None` for everything else.
    pub(super) fn text(file: Option<&Self>) -> Option<&[u8]> {
        match file {
            None => Some(b""),
            Some(Self::File { bytes, .. }) => Some(&bytes.0),
            Some(Self::Link { .. } | Self::Opaque { .. }) => None,
        }
    }
}

/// Whether a file was changed after a time, in nanoseconds since 1970: its content, and anything else of it.
pub(super) fn is_changed_after(root: BorrowedFd<'_>, path: &[u8], time: i64) -> bool {
    let (above, name) = split(path);
    let found = open_below(root, above).and_then(|above| sys::entry_stat(above.as_fd(), name));
    let is_later = |(seconds, nanos): (i64, u32)| {
        seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(nanos)) > time
    };
    let is_later = |found: EntryStat| is_later(found.stamp.mtime) && is_later(found.stamp.ctime);
    found.is_ok_and(|found| found.is_some_and(is_later))
}

/// Makes a path what it is to be: a file, a link, or nothing. No link on the way is followed.
pub(super) fn write(root: BorrowedFd<'_>, path: &[u8], file: Option<&GuardedFile>) -> io::Result<()> {
    if let Some(GuardedFile::Opaque { .. }) = file {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it was too large to be captured"));
    }
    let (above, name) = split(path);
    let directory = match (open_below(root, above), file) {
        (Err(error), None) if sys::is_gone(&error) => return Ok(()),
        (Err(error), Some(_)) if sys::is_gone(&error) => {
            let (further, name) = split(above);
            mkdirat(open_below(root, further)?, name, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
            open_below(root, above)?
        }
        (directory, _) => directory?,
    };
    let directory = directory.as_fd();
    match sys::entry_stat(directory, name)?.map(|found| found.kind) {
        Some(Kind::Directory) => delete_all(directory, name, 0)?,
        Some(_) => unlinkat(directory, name, AtFlags::empty())?,
        None => {}
    }
    match file {
        Some(GuardedFile::File { mode, bytes }) => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut written = File::from(openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?);
            written.write_all(&bytes.0)?;
            set_mode(&written, *mode)
        }
        Some(GuardedFile::Link { target }) => Ok(symlinkat(&*target.0, directory, name)?),
        Some(GuardedFile::Opaque { .. }) | None => Ok(()),
    }
}

fn open_below(root: BorrowedFd<'_>, path: &[u8]) -> io::Result<OwnedFd> {
    let mut directory = sys::open_directory(root, ".")?;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        directory = sys::open_directory(directory.as_fd(), name)?;
    }
    Ok(directory)
}
