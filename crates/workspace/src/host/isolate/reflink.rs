//! Copies of files by reference.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Makes a new file share the content of another until one of them is changed. Fails if the file system cannot.
#[cfg(target_os = "linux")]
pub(super) fn clone_file(from: impl AsFd, to: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn clone_file(_: impl AsFd, _: impl AsFd) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns whether files in a directory can be copied by reference. It writes and removes two small files there.
pub fn supports_reflinks(directory: &Path) -> bool {
    let path = |name: &str| directory.join(format!(".backstitch-{}-{name}", std::process::id()));
    let (one, other) = (path("one"), path("other"));
    let probe = || -> io::Result<()> {
        std::fs::write(&one, [0; 4096])?;
        clone_file(&File::open(&one)?, &File::create_new(&other)?)
    };
    let supported = probe().is_ok();
    for file in [one, other] {
        let _ = std::fs::remove_file(file);
    }
    supported
}
