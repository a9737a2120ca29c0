//! Second phase of a restore: executes the plan.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use backstitch_core::crash_point;
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::{UncoveredReason, WorkspaceError};
use backstitch_filesystem::format::fetch;
use backstitch_filesystem::format::names::{join, shown};
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, symlinkat, unlinkat};

use super::plan::{Plan, Step};
use super::sync::Sync;
use super::{Progress, Restore};
use crate::host::sweep;
use crate::host::sys::{self, EntryStat, Kind, set_mode};
use crate::temporary::TEMPORARY;

/// A restore in progress.
pub(super) struct Apply<'a, 'r, 'p> {
    pub(super) restore: &'a mut Restore<'r>,
    pub(super) root: BorrowedFd<'a>,
    pub(super) hoisted: Vec<Vec<u8>>,
    pub(super) sync: Sync,
    progress: Option<Progress<'p>>,
    temporaries: u64,
    /// True for root, which needs no permissions.
    privileged: bool,
}

impl<'a, 'r, 'p> Apply<'a, 'r, 'p> {
    pub(super) fn new(
        restore: &'a mut Restore<'r>,
        root: BorrowedFd<'a>,
        device: u64,
        progress: Option<Progress<'p>>,
    ) -> Self {
        let privileged = rustix::process::geteuid().is_root();
        Self {
            restore,
            root,
            hoisted: Vec::new(),
            sync: Sync::new(device),
            progress,
            temporaries: 0,
            privileged,
        }
    }

    pub(super) fn run(mut self, mut plan: Plan) -> Result<(), WorkspaceError> {
        let root = self.root;
        self.clear(root, &[], &mut plan)?;
        self.remove_hoisted()?;
        self.directory(root, &[], plan)?;
        self.remove_hoisted()?;
        self.tick(&[])?;
        self.sync.finish(root).map_err(|error| sys::io_error(&[], error))
    }

    /// Deletes the entries that the plan removes, and takes these steps out of the plan.
    fn clear(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &[u8],
        plan: &mut Plan,
    ) -> Result<(), WorkspaceError> {
        let failed = |error| refused(path, error);
        let makes_room = self.restore.how.makes_room;
        let deletes = |step: &Step| match step {
            Step::Remove => true,
            Step::File { .. } => makes_room,
            _ => false,
        };
        if plan.steps.iter().any(|(_, step)| deletes(step)) {
            let found = sys::file_stat(directory).map_err(failed)?;
            if self.allow(directory, &found).map_err(failed)? != found.mode {
                plan.mode = plan.mode.or(Some(found.mode));
            }
        }
        for (name, mut step) in std::mem::take(&mut plan.steps) {
            let path = join(path, &name);
            let cleared = match &mut step {
                Step::Remove => self.remove(directory, &name, &path).map(drop),
                Step::File { .. } if makes_room => self.clear_file(directory, &name, &path),
                Step::Enter(below) => match sys::open_directory_anyway(directory, &name) {
                    Ok(directory) => self.clear(directory.as_fd(), &path, below),
                    Err(error) => Err(refused(&path, error)),
                },
                _ => Ok(()),
            };
            self.or_leave(&path, cleared)?;
            if !matches!(step, Step::Remove) {
                plan.steps.push((name, step));
            }
        }
        Ok(())
    }

    /// Deletes a file before it is rewritten.
    fn clear_file(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
    ) -> Result<(), WorkspaceError> {
        let found = sys::entry_stat(directory, name).map_err(|error| refused(path, error))?;
        match found.filter(|found| found.kind == Kind::File) {
            Some(found) if !self.restore.open_files.is_written(&found) => {
                self.tick(path)?;
                unlinkat(directory, name, AtFlags::empty()).map_err(|error| refused(path, error.into()))
            }
            _ => Ok(()),
        }
    }

    /// Skips a path that other processes keep changing, in the last attempt.
    fn or_leave(&mut self, path: &[u8], done: Result<(), WorkspaceError>) -> Result<(), WorkspaceError> {
        match done {
            Err(error) if self.restore.how.leaves_contended && sys::is_contended(&error) => {
                self.restore.keep(path, UncoveredReason::InUse, None);
                Ok(())
            }
            done => done,
        }
    }

    fn directory(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &[u8],
        plan: Plan,
    ) -> Result<(), WorkspaceError> {
        let failed = |error| refused(path, error);
        let found = sys::file_stat(directory).map_err(failed)?;
        let mode = plan.mode.unwrap_or(found.mode);
        let mut has = found.mode;
        if !plan.steps.is_empty() {
            has = self.allow(directory, &found).map_err(failed)?;
        }
        for (name, step) in plan.steps {
            let path = join(path, &name);
            let done = self.step(directory, &found, &name, &path, step);
            self.or_leave(&path, done)?;
        }
        if has != mode {
            self.tick(path)?;
            set_mode(directory, mode).map_err(failed)?;
        }
        self.sync.directory(directory, found.stamp.device).map_err(failed)
    }

    /// Makes a directory writable, and returns its resulting mode.
    pub(super) fn allow(&self, directory: BorrowedFd<'_>, found: &EntryStat) -> io::Result<u32> {
        if self.privileged || found.mode & 0o700 == 0o700 {
            return Ok(found.mode);
        }
        set_mode(directory, found.mode | 0o700)?;
        Ok(found.mode | 0o700)
    }

    fn step(
        &mut self,
        directory: BorrowedFd<'_>,
        parent: &EntryStat,
        name: &[u8],
        path: &[u8],
        step: Step,
    ) -> Result<(), WorkspaceError> {
        let failed = |error| refused(path, error);
        match step {
            Step::Remove => self.remove(directory, name, path).map(drop),
            Step::File { id, mode } => self.file(directory, parent, (name, path), id, mode),
            Step::Link { id } => {
                let before = self.clear_directory(directory, name, path)?;
                if self.leaves_open(path, before.as_ref()) {
                    return Ok(());
                }
                let target = fetch(self.restore.objects, id, ObjectKind::Blob)?;
                let temporary = self.temporary();
                self.tick(path)?;
                symlinkat(&**target.bytes(), directory, &*temporary).map_err(|error| failed(error.into()))?;
                self.place(directory, &temporary, name, path)
            }
            Step::Mode { mode, id } => {
                self.tick(path)?;
                match sys::open_file(directory, name) {
                    Ok((file, found)) => {
                        set_mode(&file, mode).map_err(failed)?;
                        self.sync.file(file, found.stamp.device).map_err(failed)
                    }
                    // A file that not even its owner may read is rewritten.
                    Err(_) => self.file(directory, parent, (name, path), id, mode),
                }
            }
            Step::Make(plan) => {
                if sys::entry_stat(directory, name)
                    .map_err(failed)?
                    .is_some_and(|found| found.kind != Kind::Directory)
                {
                    self.remove(directory, name, path)?;
                }
                // Another process may have made it since then.
                if let Ok(below) = sys::open_directory(directory, name) {
                    return self.directory(below.as_fd(), path, plan);
                }
                let temporary = self.temporary();
                let made = self.make(directory, parent, &temporary, (name, path), plan);
                made.inspect_err(|_| sweep::remove(directory, &temporary, 0))
            }
            Step::Enter(plan) => {
                let below = sys::open_directory_anyway(directory, name).map_err(failed)?;
                self.directory(below.as_fd(), path, plan)
            }
        }
    }

    /// Makes a directory under a temporary name, renames it and fills it. It never has its name without its mode: after an
    /// interruption, another mode would look like a change by a person. Where its mode does not let this process fill it, it is
    /// filled before it is renamed.
    fn make(
        &mut self,
        directory: BorrowedFd<'_>,
        parent: &EntryStat,
        temporary: &[u8],
        (name, path): (&[u8], &[u8]),
        plan: Plan,
    ) -> Result<(), WorkspaceError> {
        let failed = |error| refused(path, error);
        self.tick(path)?;
        mkdirat(directory, temporary, Mode::RWXU).map_err(|error| failed(error.into()))?;
        let below = sys::open_directory(directory, temporary).map_err(failed)?;
        let made = sys::file_stat(&below).map_err(failed)?;
        self.own(&below, &made, parent);
        match plan.mode {
            Some(mode) if self.privileged || mode & 0o700 == 0o700 => {
                set_mode(&below, mode).map_err(failed)?;
                self.place(directory, temporary, name, path)?;
                self.directory(below.as_fd(), path, plan)
            }
            _ => {
                self.directory(below.as_fd(), path, plan)?;
                self.place(directory, temporary, name, path)
            }
        }
    }

    /// Writes a file under a temporary name and renames it.
    fn file(
        &mut self,
        directory: BorrowedFd<'_>,
        parent: &EntryStat,
        (name, path): (&[u8], &[u8]),
        id: ObjectId,
        mode: u32,
    ) -> Result<(), WorkspaceError> {
        let failed = |error| refused(path, error);
        let before = self.clear_directory(directory, name, path)?;
        if self.leaves_open(path, before.as_ref()) {
            return Ok(());
        }
        let content = fetch(self.restore.objects, id, ObjectKind::Blob)?;
        let temporary = self.temporary();
        self.tick(path)?;
        // The umask may clear some bits, which are then set again.
        let open_mode = Mode::from_raw_mode((mode & 0o777) as _);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory, &*temporary, flags, open_mode).map_err(|error| failed(error.into()))?;
        let written = self.fill(file, content.bytes(), path);
        // Free the space of an incomplete file, as the disk may be full.
        let file = written.inspect_err(|_| _ = unlinkat(directory, &*temporary, AtFlags::empty()))?;
        let like = before.as_ref().filter(|before| before.kind == Kind::File).unwrap_or(parent);
        let made = sys::file_stat(&file).map_err(failed)?;
        let given = self.own(&file, &made, like);
        if given || made.mode != mode {
            set_mode(&file, mode).map_err(failed)?;
        }
        self.place(directory, &temporary, name, path)?;
        self.sync.file(file, parent.stamp.device).map_err(failed)
    }

    fn fill(&mut self, file: OwnedFd, bytes: &[u8], path: &[u8]) -> Result<OwnedFd, WorkspaceError> {
        let mut file = std::fs::File::from(file);
        // An observer may interrupt in the middle of a file; otherwise the file is written in one go.
        let middle = if self.progress.is_some() { bytes.len() / 2 } else { 0 };
        let (first, rest) = bytes.split_at(middle);
        file.write_all(first).map_err(|error| refused(path, error))?;
        self.tick(path)?;
        crash_point!("workspace.restore.half");
        file.write_all(rest).map_err(|error| refused(path, error))?;
        Ok(file.into())
    }

    fn place(
        &mut self,
        directory: BorrowedFd<'_>,
        temporary: &[u8],
        name: &[u8],
        path: &[u8],
    ) -> Result<(), WorkspaceError> {
        self.tick(path)?;
        renameat(directory, temporary, directory, name).map_err(|error| {
            let _ = unlinkat(directory, temporary, AtFlags::empty());
            refused(path, error.into())
        })
    }

    /// Deletes a directory, which a rename cannot replace. Returns its former state.
    fn clear_directory(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
    ) -> Result<Option<EntryStat>, WorkspaceError> {
        let found = sys::entry_stat(directory, name).map_err(|error| refused(path, error))?;
        if found.is_none_or(|found| found.kind != Kind::Directory) || self.remove(directory, name, path)? {
            return Ok(found);
        }
        // The plan found nothing in it that stays, so another process has made it or writes a file in it.
        Err(refused(path, io::ErrorKind::DirectoryNotEmpty.into()))
    }

    /// Keeps and lists a file that a process outside the call is writing. Returns whether it did.
    pub(super) fn leaves_open(&mut self, path: &[u8], found: Option<&EntryStat>) -> bool {
        match found.filter(|found| self.restore.open_files.is_written(found)) {
            Some(found) => {
                self.restore.keep(path, UncoveredReason::InUse, Some(found));
                true
            }
            None => false,
        }
    }

    /// Gives a file the owner of its surroundings, if this process has the permission. Returns whether it
    /// tried.
    fn own(&self, file: &OwnedFd, made: &EntryStat, like: &EntryStat) -> bool {
        if !self.privileged || made.owner == like.owner {
            return false;
        }
        // Owners are not part of a root, so a failure is ignored.
        sys::set_owner(file, like.owner);
        true
    }

    pub(super) fn temporary(&mut self) -> Vec<u8> {
        self.temporaries += 1;
        let name = format!("{}-{}", std::process::id(), self.temporaries);
        [TEMPORARY, name.as_bytes()].concat()
    }

    pub(super) fn tick(&mut self, path: &[u8]) -> Result<(), WorkspaceError> {
        let ticked = self.progress.as_mut().map_or(Ok(()), |progress| progress());
        ticked.map_err(|error| sys::io_error(path, error))
    }
}

/// Error of a change: operations that the system forbids are reported as blocked.
pub(super) fn refused(path: &[u8], error: io::Error) -> WorkspaceError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            WorkspaceError::Blocked { path: shown(path), reason: error.to_string() }
        }
        _ => sys::io_error(path, error),
    }
}
