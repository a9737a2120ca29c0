//! Paths that processes may write: resolved once, and opened without following links.
//!
//! A process that may write a directory can replace what is in it by links. If a path were resolved again for each
//! call, such a link would make its target writable. So links are followed only when a session starts, the result is
//! recorded, and a link in it is an error from then on.

use std::path::{Component, Path, PathBuf};

use backstitch_core::ports::Sandbox;

/// Resolves the paths of `write`, when a session starts. Those that do not exist are not writable for this session, and
/// become [`missing`](Sandbox::missing). A sandbox that was resolved already is not changed.
pub fn resolve_writable(sandbox: &mut Sandbox) {
    if sandbox.is_off() || sandbox.missing.is_some() {
        return;
    }
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for path in sandbox.write.drain(..) {
        match path.canonicalize() {
            Ok(path) if found.contains(&path) => {}
            Ok(path) => found.push(path),
            Err(_) => missing.push(path),
        }
    }
    (sandbox.write, sandbox.missing) = (found, Some(missing));
}

/// A path of `write` of a sandbox that no session has resolved.
#[cfg(unix)]
pub(super) enum GivenPath {
    /// It holds no links.
    Found(PathBuf),
    /// It does not exist.
    Missing,
}

/// Looks at a path that was not resolved when the session started. Fails if it holds a link, since nothing says who
/// created the link.
#[cfg(unix)]
pub(super) fn check_given(path: &Path) -> Result<GivenPath, String> {
    let Ok(found) = path.canonicalize() else { return Ok(GivenPath::Missing) };
    let absolute = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut plain = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    if plain == found {
        return Ok(GivenPath::Found(found));
    }
    Err(format!(
        "`write` allows {}, which leads through a link to {}; write that path, or resolve the sandbox when the session \
         starts",
        path.display(),
        found.display()
    ))
}

/// Opens a path that was resolved when the session started.
#[cfg(target_os = "linux")]
pub(super) fn open(path: &Path) -> Result<rustix::fd::OwnedFd, String> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;

    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).map_err(|error| {
        let what = path.display();
        let changed = path.ancestors().filter(|part| part.is_symlink()).last();
        match (error, changed) {
            (Errno::LOOP, Some(link)) if link == path => format!(
                "{what} was not a link when the session started and is one now, so nothing runs that may write it; \
                 restore it"
            ),
            (Errno::LOOP, Some(link)) => format!(
                "{what} may be written, and {} was a directory when the session started and is a link now, so nothing \
                 runs; restore it",
                link.display()
            ),
            (Errno::NOENT | Errno::NOTDIR, _) => format!(
                "{what} may be written, and was there when the session started and is gone now; create it again"
            ),
            (error, _) => format!("{what} may be written, and cannot be opened: {error}"),
        }
    })
}

/// Paths as the bytes that they are, since not every path is text.
#[cfg(target_os = "linux")]
pub(super) mod as_bytes {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let all: Vec<_> = paths.iter().map(|path| path.as_os_str()).collect();
        all.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let all = Vec::<OsString>::deserialize(deserializer)?;
        Ok(all.into_iter().map(PathBuf::from).collect())
    }
}
