//! Copies directories, entry by entry, without following links.

use std::ffi::CStr;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use backstitch_core::object::Object;
use backstitch_core::ports::{UncoveredPath, UncoveredReason};
use backstitch_filesystem::format::MAX_DEPTH;
use backstitch_filesystem::format::names::{push, shown};
use rustix::fs::{Mode, OFlags, mkdirat, openat, readlinkat, symlinkat};

use super::IsolateError;
use super::reflink::clone_file;
use crate::host::rules::{Ignores, MOST_IGNORE_BYTES};
use crate::host::sys::{self, EntryStat, Kind, Names, is_gone};
use crate::options::IgnoredBudget;
use crate::temporary::is_temporary;

/// The state of a copy that is being made.
pub(super) struct CopyWalk {
    /// Device and inode of the runtime's directory.
    store: Option<(u64, u64)>,
    budget: IgnoredBudget,
    ignores: Ignores,
    pub(super) left_out: Vec<UncoveredPath>,
    /// Whether the file system copies by reference; not known before the first file.
    pub(super) reflinks: Option<bool>,
}

/// Whether a directory is copied with the rules of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyRules {
    /// The repository at the top and the runtime's files are left out, ignored directories have a budget.
    Project,
    /// Everything is copied except for lock files, as in a repository.
    Repository,
}

impl CopyWalk {
    pub(super) fn new(store: Option<&Path>, budget: IgnoredBudget) -> Self {
        let found = store.and_then(|store| sys::file_stat(File::open(store).ok()?).ok());
        Self {
            store: found.map(|found| (found.stamp.device, found.stamp.inode)),
            budget,
            ignores: Ignores::default(),
            left_out: Vec::new(),
            reflinks: None,
        }
    }

    /// Copies a project without its repository.
    pub(super) fn tree(&mut self, project: &Path, target: &Path) -> Result<(), IsolateError> {
        let from = open(project)?;
        fs::create_dir(target).map_err(IsolateError::at(target))?;
        let to = open(target)?;
        let found = sys::file_stat(&from).map_err(IsolateError::at(project))?;
        self.directory(from.as_fd(), to.as_fd(), &mut Vec::new(), CopyRules::Project, 0)?;
        sys::set_mode(&to, found.mode | 0o700).map_err(IsolateError::at(target))
    }

    /// Copies a directory of a repository to one that may exist. `shown_as` is its path in reports.
    pub(super) fn repository(
        &mut self,
        from: &Path,
        target: &Path,
        shown_as: &str,
    ) -> Result<(), IsolateError> {
        let source = match sys::open_directory(rustix::fs::CWD, from) {
            Err(error) if is_gone(&error) => return Ok(()),
            opened => opened.map_err(IsolateError::at(from))?,
        };
        fs::create_dir_all(target).map_err(IsolateError::at(target))?;
        let to = open(target)?;
        let mut path = shown_as.as_bytes().to_vec();
        self.directory(source.as_fd(), to.as_fd(), &mut path, CopyRules::Repository, 0)
    }

    /// Copies the entries of a directory, files first: the first one shows whether the file system copies by reference.
    fn directory(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        path: &mut Vec<u8>,
        rules: CopyRules,
        depth: usize,
    ) -> Result<(), IsolateError> {
        let names = Names::read(from).map_err(at(path))?;
        let above = path.len();
        let mut below = Vec::new();
        for name in names.iter() {
            let bytes = name.to_bytes();
            push(path, bytes);
            let found = sys::entry_stat(from, name).map_err(at(path))?;
            match found {
                None => {}
                Some(_) if rules == CopyRules::Project && &**path == b".git" => {}
                Some(_) if rules == CopyRules::Repository && bytes.ends_with(b".lock") => {}
                Some(_) if is_temporary(bytes) => {}
                Some(found) if found.kind == Kind::Directory => below.push((name, found)),
                Some(found) => self.leaf(from, to, name, found, path)?,
            }
            path.truncate(above);
        }
        let ignores = match rules {
            CopyRules::Project => sys::read_at_most(from, c".gitignore", MOST_IGNORE_BYTES).ok(),
            CopyRules::Repository => None,
        };
        if let Some(content) = &ignores {
            self.ignores.enter(path, Object::blob(content.clone()).id(), || content.clone());
        }
        for (name, found) in below {
            push(path, name.to_bytes());
            let copied = self.below(from, to, name, found, path, rules, depth);
            path.truncate(above);
            copied?;
        }
        if ignores.is_some() {
            self.ignores.leave();
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the state of a walk")]
    fn below(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &CStr,
        found: EntryStat,
        path: &mut Vec<u8>,
        rules: CopyRules,
        depth: usize,
    ) -> Result<(), IsolateError> {
        if rules == CopyRules::Project && self.store == Some((found.stamp.device, found.stamp.inode)) {
            return Ok(());
        }
        if depth >= MAX_DEPTH {
            self.leave_out(path, UncoveredReason::TooDeep, None);
            return Ok(());
        }
        let source = match sys::open_directory(from, name) {
            Ok(source) => source,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.leave_out(path, UncoveredReason::Unreadable, None);
                return Ok(());
            }
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(at(path)(error)),
        };
        if rules == CopyRules::Project
            && self.reflinks != Some(true)
            && self.ignores.is_ignored(path, true)
            && self.is_over_budget(&source).map_err(at(path))?
        {
            self.leave_out(path, UncoveredReason::IgnoredBudget, None);
            return Ok(());
        }
        match mkdirat(to, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(at(path)(error.into())),
        }
        let target = sys::open_directory(to, name).map_err(at(path))?;
        self.directory(source.as_fd(), target.as_fd(), path, rules, depth + 1)?;
        sys::set_mode(&target, found.mode).map_err(at(path))
    }

    fn leaf(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &CStr,
        found: EntryStat,
        path: &[u8],
    ) -> Result<(), IsolateError> {
        match found.kind {
            Kind::File => self.file(from, to, name, found, path),
            Kind::Link => {
                let link = match readlinkat(from, name, Vec::new()) {
                    Ok(link) => link,
                    Err(error) if is_gone(&error.into()) => return Ok(()),
                    Err(error) => return Err(at(path)(error.into())),
                };
                match symlinkat(&*link, to, name) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
                    Err(error) => Err(at(path)(error.into())),
                }
            }
            Kind::Special | Kind::Directory => {
                self.leave_out(path, UncoveredReason::Special, None);
                Ok(())
            }
        }
    }

    fn file(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &CStr,
        found: EntryStat,
        path: &[u8],
    ) -> Result<(), IsolateError> {
        let source = match sys::open_file(from, name) {
            Ok((source, _)) => File::from(source),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.leave_out(path, UncoveredReason::Unreadable, Some(found.stamp.size));
                return Ok(());
            }
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(at(path)(error)),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = match openat(to, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(target) => File::from(target),
            // A directory of the repository is copied from two places, and the first one counts.
            Err(rustix::io::Errno::EXIST) => return Ok(()),
            Err(error) => return Err(at(path)(error.into())),
        };
        let mut is_copied = false;
        if found.stamp.size > 0 && self.reflinks != Some(false) {
            is_copied = clone_file(&source, &target).is_ok();
            self.reflinks = self.reflinks.or(Some(is_copied));
        }
        if !is_copied {
            io::copy(&mut &source, &mut &target).map_err(at(path))?;
        }
        if let Ok(modified) = source.metadata().and_then(|found| found.modified()) {
            // Build tools compare times. One that cannot be set costs a build, and no content.
            let _ = target.set_times(FileTimes::new().set_modified(modified));
        }
        sys::set_mode(&target, found.mode).map_err(at(path))
    }

    fn is_over_budget(&self, directory: &OwnedFd) -> io::Result<bool> {
        let mut left = self.budget;
        Ok(!fits(directory.as_fd(), &mut left, 0)?)
    }

    pub(super) fn leave_out(&mut self, path: &[u8], reason: UncoveredReason, bytes: Option<u64>) {
        self.left_out.push(UncoveredPath { path: shown(path), reason, bytes });
    }
}

/// Subtracts the entries of a directory from a budget. Returns whether they fit.
fn fits(directory: BorrowedFd<'_>, left: &mut IgnoredBudget, depth: usize) -> io::Result<bool> {
    let again = sys::open_directory(directory, c".")?;
    for name in Names::read(again.as_fd())?.iter() {
        let Some(found) = sys::entry_stat(directory, name)? else { continue };
        let bytes = if found.kind == Kind::File { found.stamp.size } else { 0 };
        let (Some(entries), Some(bytes)) = (left.entries.checked_sub(1), left.bytes.checked_sub(bytes))
        else {
            return Ok(false);
        };
        *left = IgnoredBudget { entries, bytes };
        if found.kind == Kind::Directory && depth < MAX_DEPTH {
            let Ok(below) = sys::open_directory(directory, name) else { continue };
            if !fits(below.as_fd(), left, depth + 1)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn open(path: &Path) -> Result<OwnedFd, IsolateError> {
    sys::open_directory(rustix::fs::CWD, path).map_err(IsolateError::at(path))
}

fn at(path: &[u8]) -> impl FnOnce(io::Error) -> IsolateError {
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
    move |source| IsolateError::Io { path, source }
}
