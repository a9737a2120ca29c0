//! Removes temporary files that an interrupted write or restore left behind.

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{AtFlags, unlinkat};

use backstitch_filesystem::format::MAX_DEPTH;
use backstitch_filesystem::format::names::push;

use super::rules::Rules;
use super::sys::{self, Kind, Names};
use crate::coverage::Coverage;
use crate::temporary::is_temporary;

/// Removes temporary files from all directories in which a restore or a write could have left them. A file
/// that cannot be removed is ignored: no scan includes it.
pub(crate) fn sweep(root: BorrowedFd<'_>, rules: &Rules, coverage: &Coverage) {
    let Ok(directory) = sys::open_directory(root, ".") else { return };
    Sweep { rules, coverage, path: Vec::new() }.directory(directory.as_fd(), 0);
}

struct Sweep<'a> {
    rules: &'a Rules,
    coverage: &'a Coverage,
    path: Vec<u8>,
}

impl Sweep<'_> {
    fn directory(&mut self, directory: BorrowedFd<'_>, depth: usize) {
        let Ok(names) = Names::read(directory) else { return };
        for (name, may_be_directory) in names.hinted() {
            if is_temporary(name.to_bytes()) {
                remove(directory, name.to_bytes(), 0);
                continue;
            }
            if !may_be_directory || depth >= MAX_DEPTH {
                continue;
            }
            let above = self.path.len();
            push(&mut self.path, name.to_bytes());
            if let Ok(Some(found)) = sys::entry_stat(directory, name)
                && found.kind == Kind::Directory
                && self.rules.never(&self.path, true, &found.stamp).is_none()
                && self.coverage.reason(&self.path).is_none()
                && let Ok(below) = sys::open_directory(directory, name)
            {
                self.directory(below.as_fd(), depth + 1);
            }
            self.path.truncate(above);
        }
    }
}

/// Removes a temporary file or directory, as far as that is possible.
pub(super) fn remove(parent: BorrowedFd<'_>, name: &[u8], depth: usize) {
    if unlinkat(parent, name, AtFlags::empty()).is_ok() || depth > MAX_DEPTH {
        return;
    }
    if let Ok(directory) = sys::open_directory_anyway(parent, name) {
        for name in Names::read(directory.as_fd()).unwrap_or_default().iter() {
            remove(directory.as_fd(), name.to_bytes(), depth + 1);
        }
    }
    let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
}
