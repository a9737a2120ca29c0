//! System calls of scans and restores.
//!
//! Every call is relative to an open directory and names one component, and no link is ever followed. If a
//! directory is swapped for a link during a walk, the call fails instead of leaving the root.

use std::ffi::CStr;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use backstitch_core::ports::WorkspaceError;
use backstitch_filesystem::format::names::shown;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};

/// Identifies a state of a file, as far as the system shows it without reading the content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mtime: (i64, u32),
    pub(crate) ctime: (i64, u32),
}

/// Stat result of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryStat {
    pub(crate) kind: Kind,
    pub(crate) stamp: Stamp,
    /// Permissions, with the set-id and sticky bits.
    pub(crate) mode: u32,
    pub(crate) links: u64,
    pub(crate) owner: (u32, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    Special,
}

// The widths of these fields differ between systems.
#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    reason = "the widths of these fields differ between systems"
)]
fn found(stat: &Stat) -> EntryStat {
    let kind = match FileType::from_raw_mode(stat.st_mode as _) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        _ => Kind::Special,
    };
    EntryStat {
        kind,
        stamp: Stamp {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            mtime: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            ctime: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        },
        mode: stat.st_mode as u32 & 0o7777,
        links: stat.st_nlink as u64,
        owner: (stat.st_uid as u32, stat.st_gid as u32),
    }
}

/// Stats a name, or returns `None` if it does not exist.
pub(crate) fn entry_stat(
    directory: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
) -> io::Result<Option<EntryStat>> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(found(&stat))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Stats an open file.
pub(crate) fn file_stat(file: impl AsFd) -> io::Result<EntryStat> {
    Ok(found(&fstat(file)?))
}

/// Opens a directory by its name, without following a link.
pub(crate) fn open_directory(parent: BorrowedFd<'_>, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// Opens a directory, and makes it readable and writable first if needed. The caller restores the mode.
pub(crate) fn open_directory_anyway(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    match open_directory(parent, name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            allow(parent, name)?;
            open_directory(parent, name)
        }
        opened => opened,
    }
}

/// Gives the owner all permissions of a directory, without following a link in its place.
#[cfg(target_os = "linux")]
fn allow(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(parent, name, flags, Mode::empty())?;
    let mode = Mode::from_bits_truncate((file_stat(&handle)?.mode | 0o700) as _);
    // A path-only handle cannot change a mode, but its name in `/proc` can.
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    Ok(rustix::fs::chmod(path, mode)?)
}

#[cfg(not(target_os = "linux"))]
fn allow(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let mode = entry_stat(parent, name)?.map_or(0, |found| found.mode) | 0o700;
    let mode = Mode::from_bits_truncate(mode as _);
    Ok(rustix::fs::chmodat(parent, name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Sets the permissions of an open file.
#[allow(clippy::unnecessary_cast, reason = "the width differs between systems")]
pub(crate) fn set_mode(file: impl AsFd, mode: u32) -> io::Result<()> {
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode as _))?)
}

/// Opens a regular file for reading. It does not block if the entry has become something else.
pub(crate) fn open_file(
    parent: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
) -> io::Result<(OwnedFd, EntryStat)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(parent, name, flags, Mode::empty())?;
    let found = file_stat(&file)?;
    match found.kind {
        Kind::File => Ok((file, found)),
        Kind::Directory | Kind::Link | Kind::Special => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Reads the beginning of a regular file, up to a limit.
pub(crate) fn read_at_most(
    parent: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
    limit: u64,
) -> io::Result<Vec<u8>> {
    let (file, _) = open_file(parent, name)?;
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Gives a file to a user and a group. A failure is harmless: the file then belongs to this process.
pub(crate) fn set_owner(file: impl AsFd, (user, group): (u32, u32)) {
    use rustix::process::{Gid, Uid};
    let _ = rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
}

/// Names in a directory, in byte order.
#[derive(Debug, Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    /// Start and end of each name, and whether it may be a directory.
    spans: Vec<(u32, u32, bool)>,
}

impl Names {
    /// Reads a directory that was just opened.
    // Not inlined, because the buffer must not become part of the frames of recursive callers.
    #[inline(never)]
    pub(crate) fn read(directory: BorrowedFd<'_>) -> io::Result<Self> {
        let mut names = Self::default();
        each_name(directory, |name, kind| {
            let bytes = name.to_bytes_with_nul();
            if !matches!(bytes, b".\0" | b"..\0") {
                let start = names.bytes.len() as u32;
                names.bytes.extend_from_slice(bytes);
                let may_be_directory = matches!(kind, FileType::Directory | FileType::Unknown);
                names.spans.push((start, names.bytes.len() as u32, may_be_directory));
            }
        })?;
        let bytes = &names.bytes;
        names.spans.sort_unstable_by(|left, right| {
            // The terminating zero does not change the order, since it is less than any byte of a name.
            bytes[left.0 as usize..left.1 as usize].cmp(&bytes[right.0 as usize..right.1 as usize])
        });
        Ok(names)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CStr> {
        self.hinted().map(|(name, _)| name)
    }

    /// Names, each with a flag that is true if it may be a directory.
    pub(crate) fn hinted(&self) -> impl Iterator<Item = (&CStr, bool)> {
        self.spans.iter().map(|(start, end, may_be_directory)| {
            let name = CStr::from_bytes_with_nul(&self.bytes[*start as usize..*end as usize])
                .expect("invariant: each name ends with its zero byte");
            (name, *may_be_directory)
        })
    }
}

#[cfg(target_os = "linux")]
fn each_name(directory: BorrowedFd<'_>, mut visit: impl FnMut(&CStr, FileType)) -> io::Result<()> {
    let mut buffer = [const { std::mem::MaybeUninit::<u8>::uninit() }; 8192];
    let mut entries = rustix::fs::RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        visit(entry.file_name(), entry.file_type());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn each_name(directory: BorrowedFd<'_>, mut visit: impl FnMut(&CStr, FileType)) -> io::Result<()> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        visit(entry.file_name(), entry.file_type());
    }
    Ok(())
}

/// Builds an error with its path.
pub(crate) fn io_error(path: &[u8], source: impl Into<io::Error>) -> WorkspaceError {
    WorkspaceError::Io { path: shown(path), source: source.into() }
}

/// Returns whether an error means that an entry is gone or has become something else.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    let raw = error.raw_os_error();
    use rustix::io::Errno;
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::STALE, Errno::NXIO]
        .iter()
        .any(|gone| raw == Some(gone.raw_os_error()))
        || error.kind() == io::ErrorKind::InvalidInput
}

/// Returns whether an error means that another process has changed an entry concurrently: a retry may help.
pub(crate) fn is_contended(error: &WorkspaceError) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, IsADirectory};
    let WorkspaceError::Io { source, .. } = error else { return false };
    is_gone(source) || matches!(source.kind(), AlreadyExists | DirectoryNotEmpty | IsADirectory)
}

/// Returns whether an error means that the disk is full.
pub(crate) fn is_full(error: &WorkspaceError) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error, WorkspaceError::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
}
