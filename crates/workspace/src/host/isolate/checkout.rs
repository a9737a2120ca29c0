//! Checkouts: directories of a worker, each for the files of one session.
//!
//! A checkout is a directory with the id of its session and a number. In it are the files, in a directory of their own, their stat cache,
//! and a mark that names the claim under which they were used last. Everything else about them is in the store, so a checkout that no
//! process uses may be deleted at any time.
//!
//! A process that uses a checkout holds a lock on it, which the system releases with the process. One that has lost its session may still
//! write into its checkout. So one that is locked is left to that process, also the path of it, and the session gets another number.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use backstitch_core::ports::UncoveredPath;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::copy::CopyWalk;
use super::{DirectoryLock, IsolateError, git, lock_directory, remove_copy};
use crate::host::private;
use crate::host::workspace::write_durably;
use crate::options::IgnoredBudget;

/// Name of the mark in a checkout.
const MARK: &str = "checkout.json";

/// The version of marks.
const VERSION: u32 = 1;

/// A checkout. Others use and remove it only once this value is dropped.
#[derive(Debug)]
pub struct Checkout {
    whole: PathBuf,
    _lock: DirectoryLock,
}

/// What is known about the files of a checkout. Without a mark they were not completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutMark {
    v: u32,
    /// Name of the directory of the files.
    pub name: String,
    /// Number of the claim under which the session used them last.
    pub fence: u64,
}

impl CheckoutMark {
    /// Creates a mark.
    pub fn new(name: impl Into<String>, fence: u64) -> Self {
        Self { v: VERSION, name: name.into(), fence }
    }
}

impl Checkout {
    /// Claims a checkout of a session in a place that is created if it does not exist: the latest that no process uses, or a new
    /// one. Older ones that no process uses are removed.
    pub fn claim(place: &Path, session: &str) -> Result<Self, IsolateError> {
        private::create_directories(place).map_err(IsolateError::at(place))?;
        let place = fs::canonicalize(place).map_err(IsolateError::at(place))?;
        // One process at a time, so that a new directory is locked before another process looks at it.
        let _choosing =
            lock_directory(&place, FlockOperation::LockExclusive).map_err(IsolateError::at(&place))?;
        let entries = fs::read_dir(&place).map_err(IsolateError::at(&place))?;
        let mut numbers: Vec<u64> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str().and_then(|name| number_of(name, session)))
            .collect();
        numbers.sort_unstable();
        let mut free: Option<Self> = None;
        for number in numbers.iter().rev() {
            let whole = place.join(format!("{session}.{number}"));
            let Ok(lock) = lock_directory(&whole, FlockOperation::NonBlockingLockExclusive) else { continue };
            if free.is_some() {
                // What cannot be removed now is removed later.
                let _ = remove_copy(&whole);
            } else {
                free = Some(Self { whole, _lock: lock });
            }
        }
        if let Some(free) = free {
            return Ok(free);
        }
        let number = numbers.last().map_or(1, |last| last.saturating_add(1));
        let whole = place.join(format!("{session}.{number}"));
        private::create_directories(&whole).map_err(IsolateError::at(&whole))?;
        let lock = lock_directory(&whole, FlockOperation::NonBlockingLockExclusive)
            .map_err(IsolateError::at(&whole))?;
        Ok(Self { whole, _lock: lock })
    }

    /// Returns the name of the directory of the files for those of a project: its own name, where that can be used.
    pub fn name_for(project: &Path) -> String {
        let name = project.file_name().and_then(|name| name.to_str()).filter(|name| is_name(name));
        name.unwrap_or("files").to_owned()
    }

    /// Returns its mark.
    pub fn mark(&self) -> Option<CheckoutMark> {
        let mark: CheckoutMark = serde_json::from_slice(&fs::read(self.whole.join(MARK)).ok()?).ok()?;
        let is_one = mark.v == VERSION && is_name(&mark.name) && self.directory(&mark.name).is_dir();
        is_one.then_some(mark)
    }

    /// Sets its mark durably, or removes it.
    pub fn set_mark(&self, mark: Option<&CheckoutMark>) -> Result<(), IsolateError> {
        let path = self.whole.join(MARK);
        let done = match mark {
            Some(mark) => {
                serde_json::to_vec(mark).map_err(io::Error::from).and_then(|text| write_durably(&path, &text))
            }
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
        };
        done.map_err(IsolateError::at(&path))
    }

    /// Returns the directory of the files.
    pub fn directory(&self, name: &str) -> PathBuf {
        self.whole.join(name)
    }

    /// Returns the path of the stat cache.
    pub fn cache(&self) -> PathBuf {
        self.whole.join("stat")
    }

    /// Creates the directory of the files. One that exists keeps what it holds.
    pub fn create_directory(&self, name: &str) -> Result<PathBuf, IsolateError> {
        let directory = self.directory(name);
        let failed = || IsolateError::at(&directory);
        private::create_directories(&directory).map_err(failed())?;
        // The mode of a new directory. The one around it is private.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).map_err(failed())?;
        Ok(directory)
    }

    /// Fills the directory of the files with a copy of a project, and returns what was left out. What an interrupted copy has left is
    /// removed first.
    pub fn copy_project(
        &self,
        project: &Path,
        name: &str,
        store_directory: &Path,
    ) -> Result<Vec<UncoveredPath>, IsolateError> {
        let project = fs::canonicalize(project).map_err(IsolateError::at(project))?;
        if self.whole.starts_with(&project) || project.starts_with(&self.whole) {
            return Err(IsolateError::Nested { project, place: self.whole.clone() });
        }
        let target = self.directory(name);
        remove_copy(&target).map_err(IsolateError::at(&target))?;
        let mut copying = CopyWalk::new(Some(store_directory), IgnoredBudget::default());
        copying.tree(&project, &target)?;
        git::repository(&mut copying, &project, &target, &target)?;
        copying.left_out.sort_unstable();
        Ok(copying.left_out)
    }
}

/// Returns the number of a checkout of a session, from its name.
fn number_of(name: &str, session: &str) -> Option<u64> {
    name.strip_prefix(session)?.strip_prefix('.')?.parse().ok()
}

/// Returns whether a name is that of an entry of a directory.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['/', '\0'])
        && name != "."
        && name != ".."
        && name != MARK
        && name != "stat"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_that_is_in_use_is_left_alone_and_free_ones_are_used_again() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().join("checkouts");
        let first = Checkout::claim(&place, "s").unwrap();
        assert_eq!(first.mark(), None);
        first.create_directory("project").unwrap();
        let mark = CheckoutMark::new("project", 7);
        first.set_mark(Some(&mark)).unwrap();
        assert_eq!(first.mark(), Some(mark.clone()));
        // The holder of the first one may still write into it.
        let second = Checkout::claim(&place, "s").unwrap();
        assert_ne!(second.whole, first.whole);
        assert_ne!(Checkout::claim(&place, "s2").unwrap().whole, first.whole);
        let old = first.whole.clone();
        drop((first, second));
        let again = Checkout::claim(&place, "s").unwrap();
        assert!(again.whole.ends_with("s.2") && !old.exists(), "the older one is not needed");
        again.set_mark(Some(&mark)).unwrap();
        assert_eq!(again.mark(), None, "its files are gone");
        again.set_mark(None).unwrap();
    }

    /// A child that is being started has all files of this process, until it executes its program.
    #[test]
    fn a_checkout_is_free_although_a_child_still_has_its_lock() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().join("checkouts");
        let first = Checkout::claim(&place, "s").unwrap();
        let whole = first.whole.clone();
        let _of_child = first._lock.0.try_clone().unwrap();
        drop(first);
        assert_eq!(Checkout::claim(&place, "s").unwrap().whole, whole);
    }

    #[test]
    fn names_in_marks_stay_inside() {
        for name in ["", ".", "..", "a/b", "../a", MARK, "stat"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name("a project"));
    }
}
