//! Which server continues which session.
//!
//! A server claims its session for the time of a call only. So a file beside the store, locked for as long as the server
//! runs, shows that the session has a server: the next one for the same agent and directory continues another session,
//! and each window of a client has its own history. The lock ends with the process, however it ends.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use backstitch::Runtime;
use backstitch::host::read_records;
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{Position, RecordBody};
use backstitch::ports::{SessionQuery, Store};
use backstitch::stores::make_private;
use backstitch::stores::side_files::SERVERS;
use rustix::fs::{FlockOperation, flock};

/// The lock of a session's server, until it is dropped.
pub(super) struct Presence {
    path: PathBuf,
    _file: File,
}

impl Presence {
    /// Takes the place of the server of a session. Returns `None` if it has one.
    pub(super) fn take(store: &Path, session: SessionId) -> io::Result<Option<Self>> {
        let directory = store.join(SERVERS);
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

/// The most sessions that are looked at, the latest ones.
const MOST: usize = 32;

/// The calls that the other sessions of an agent and a directory know, as far as their journals were read.
///
/// A client that was restarted may be served by another session than before. A call that it repeats by its id belongs to the
/// session that knows it, so that it is never run twice.
#[derive(Default)]
pub(super) struct SiblingCalls(HashMap<SessionId, ReadCalls>);

#[derive(Default)]
struct ReadCalls {
    /// The position of the next record to read.
    next: Position,
    calls: HashSet<CallId>,
}

/// Returns the sessions of an agent and a directory, the latest first.
pub(super) async fn sessions(
    runtime: &Runtime,
    (tag, agent): (&str, &str),
    directory: Option<&std::path::Path>,
) -> anyhow::Result<Vec<SessionId>> {
    let mut query = SessionQuery::roots().with_tag(tag, agent).with_limit(MOST);
    if let Some(directory) = directory {
        query = query.with_workspace(directory.display().to_string());
    }
    let page = runtime.sessions(query).await?;
    Ok(page.sessions.iter().map(|session| session.id()).collect())
}

impl SiblingCalls {
    /// Returns the session that knows a call by the id of its client.
    pub(super) async fn find(
        &mut self,
        store: &dyn Store,
        sessions: &[SessionId],
        id: &str,
    ) -> anyhow::Result<Option<SessionId>> {
        for session in sessions {
            let read = self.0.entry(*session).or_default();
            let records = read_records(store, *session, read.next, None).await?;
            read.next = read.next.after(records.len());
            for record in &records {
                match &record.body {
                    RecordBody::MessageAppended(message) => {
                        read.calls.extend(message.message.option_call().map(|call| call.invocation_id));
                    }
                    // A change of history is named before it is made.
                    RecordBody::Note(note) if note.topic == "outside" => {
                        let call = note.data.inline().and_then(|data| data.get("call_id")?.as_str());
                        read.calls.extend(call.and_then(|call| call.parse::<CallId>().ok()));
                    }
                    _ => {}
                }
            }
            if read.calls.contains(&CallId::of_foreign(*session, id)) {
                return Ok(Some(*session));
            }
        }
        Ok(None)
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
