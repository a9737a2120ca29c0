//! Files that processes outside a call are writing.
//!
//! Replacing such a file, for example a log with redirected output or the file behind a `tee`, disconnects
//! its writer, which continues writing to a file without a name. The processes of a call have ended before a
//! restore, so any remaining writer is unrelated to the call. Of this process only standard output and error
//! count: its other files may have been opened by the call itself.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd as _;

use super::sys::{self, EntryStat, Kind};

/// Files that processes outside a call are writing, by device and inode. They are looked up on first use.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    written: Option<HashSet<(u64, u64)>>,
}

impl OpenFiles {
    /// Returns whether a process outside the call is writing a file.
    pub(crate) fn is_written(&mut self, found: &EntryStat) -> bool {
        let written = self.written.get_or_insert_with(|| {
            let mut written = own_output();
            written.extend(system::written_by_others());
            written
        });
        found.kind == Kind::File && written.contains(&(found.stamp.device, found.stamp.inode))
    }
}

/// Files behind standard output and error.
fn own_output() -> HashSet<(u64, u64)> {
    let (output, error) = (io::stdout(), io::stderr());
    let files = [output.as_fd(), error.as_fd()].into_iter().filter_map(|file| sys::file_stat(file).ok());
    files.filter(|file| file.kind == Kind::File).map(|file| (file.stamp.device, file.stamp.inode)).collect()
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::path::Path;

    /// Regular files that other processes have open for writing, as far as this user may know.
    pub(super) fn written_by_others() -> Vec<(u64, u64)> {
        let own = std::process::id();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = processes.filter(|process| {
            let number = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            number.is_some_and(|number| number != own)
        });
        processes.flat_map(|process| written_by(&process.path().join("fd"))).collect()
    }

    fn written_by(descriptors: &Path) -> Vec<(u64, u64)> {
        let descriptors = fs::read_dir(descriptors).into_iter().flatten().flatten();
        let written = descriptors.filter_map(|descriptor| {
            let path = descriptor.path();
            // The mode of the link shows how the file was opened.
            let may_write = fs::symlink_metadata(&path).ok()?.permissions().mode() & 0o200 != 0;
            let found = may_write.then(|| fs::metadata(&path).ok()).flatten()?;
            found.is_file().then(|| (found.dev(), found.ino()))
        });
        written.collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// The system does not provide this information.
    pub(super) fn written_by_others() -> Vec<(u64, u64)> {
        Vec::new()
    }
}
