//! Files that are being written by processes outside of a call.
//!
//! A rollback that replaces the log a person redirects output to, or the file behind a `tee`, cuts it off: the writer goes on
//! writing to a file without a name. When files are put back the processes of the call have ended, so whoever still has a file
//! open for writing is somebody else. Of this process only its standard output and error count: its other files may have been
//! opened by the call itself.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd as _;

use super::sys::{self, EntryStat, Kind};

/// The files that processes outside of a call write, by device and inode. They are looked for when they are first asked about.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    written: Option<HashSet<(u64, u64)>>,
}

impl OpenFiles {
    /// Whether somebody else is writing a file.
    pub(crate) fn is_written(&mut self, found: &EntryStat) -> bool {
        let written = self.written.get_or_insert_with(|| {
            let mut written = own_output();
            written.extend(system::written_by_others());
            written
        });
        found.kind == Kind::File && written.contains(&(found.stamp.device, found.stamp.inode))
    }
}

/// The files behind standard output and error.
fn own_output() -> HashSet<(u64, u64)> {
    let (output, error) = (io::stdout(), io::stderr());
    let files = [output.as_fd(), error.as_fd()].into_iter().filter_map(|file| sys::look_at(file).ok());
    files.filter(|file| file.kind == Kind::File).map(|file| (file.stamp.device, file.stamp.inode)).collect()
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::path::Path;

    /// The regular files that other processes have open for writing, as far as this user may know.
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
            // The rights of the link are those that the file was opened with.
            let may_write = fs::symlink_metadata(&path).ok()?.permissions().mode() & 0o200 != 0;
            let found = may_write.then(|| fs::metadata(&path).ok()).flatten()?;
            found.is_file().then(|| (found.dev(), found.ino()))
        });
        written.collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// The system does not tell.
    pub(super) fn written_by_others() -> Vec<(u64, u64)> {
        Vec::new()
    }
}
