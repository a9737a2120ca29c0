//! Which server continues which session.
//!
//! A server claims its session for the time of a call only. So a file beside the store, locked for as long as the server
//! runs, shows that the session has a server: the next one for the same agent and directory continues another session,
//! and each window of a client has its own history. The lock ends with the process, however it ends.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use backstitch::id::SessionId;
use backstitch::stores::make_private;
use rustix::fs::{FlockOperation, flock};

/// The lock of a session's server, until it is dropped.
pub(super) struct Presence {
    path: PathBuf,
    _file: File,
}

impl Presence {
    /// Takes the place of the server of a session. Returns `None` if it has one.
    pub(super) fn take(store: &Path, session: SessionId) -> io::Result<Option<Self>> {
        let directory = store.join("mcp");
        make_private(&directory)?;
        let path = directory.join(format!("{session}.lock"));
        loop {
            let file = File::options().create(true).truncate(false).write(true).open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            // A server that has just ended may have removed the file that was locked here.
            let is_there = fs::metadata(&path).is_ok_and(|now| {
                file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (now.dev(), now.ino()))
            });
            if is_there {
                return Ok(Some(Self { path, _file: file }));
            }
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_server_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let clock = std::sync::Arc::new(backstitch::SystemClock::default());
        let ids = backstitch::host::fresh_ids(clock).unwrap();
        let (one, other): (SessionId, SessionId) = (ids.next(), ids.next());
        let first = Presence::take(directory.path(), one).unwrap();
        assert!(first.is_some());
        assert!(Presence::take(directory.path(), one).unwrap().is_none());
        assert!(Presence::take(directory.path(), other).unwrap().is_some());
        drop(first);
        assert!(Presence::take(directory.path(), one).unwrap().is_some());
    }
}
