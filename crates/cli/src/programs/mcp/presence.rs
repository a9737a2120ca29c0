//! Which server continues which session.
//!
//! A server claims its session for the time of a call only. So a file beside the store, locked for as long as the server
//! runs, shows that the session has a server: the next one for the same agent and directory continues another session,
//! and each window of a client has its own history. The lock ends with the process, however it ends.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backstitch::Runtime;
use backstitch::host::read_records;
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{Position, RecordBody};
use backstitch::ports::{SessionQuery, Store};
use backstitch::stores::make_private;
use backstitch::stores::side_files::SERVERS;
use rustix::fs::{FlockOperation, flock};

/// How long a server waits for one that is ending.
const LONGEST_END: Duration = Duration::from_secs(10);

/// The lock of a session's server, until it is dropped. The file names its process.
pub(super) struct Presence {
    path: PathBuf,
    _file: File,
}

impl Presence {
    /// Takes the place of the server of a session. Returns `None` if it has one. A server that was killed closes its
    /// connections before its locks, so the client may have started the next one already: it waits for the end of the first.
    pub(super) async fn take(store: &Path, session: SessionId) -> io::Result<Option<Self>> {
        let directory = store.join(SERVERS);
        make_private(&directory)?;
        let path = directory.join(format!("{session}.lock"));
        let until = Instant::now() + LONGEST_END;
        loop {
            let mut file = File::options().create(true).truncate(false).write(true).open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK)
                    if Instant::now() < until && names_ending_process(&path) =>
                {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            // A server that has just ended may have removed the file that was locked here.
            let is_there = fs::metadata(&path).is_ok_and(|now| {
                file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (now.dev(), now.ino()))
            });
            if is_there {
                file.set_len(0)?;
                write!(file, "{}", std::process::id())?;
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

/// Whether a file names a process that is ending, or has just ended.
fn names_ending_process(path: &Path) -> bool {
    let process = fs::read_to_string(path).ok().and_then(|text| text.parse::<u32>().ok());
    process.is_some_and(|process| Path::new("/proc/self/stat").exists() && is_ending(process))
}

/// Whether a process is being ended by the system, or is not there.
fn is_ending(process: u32) -> bool {
    /// The flag of a process that is closing its files (`PF_EXITING`).
    const EXITING: u64 = 4;
    let Ok(text) = fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    let mut fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let is_dead = fields.next().is_some_and(|state| matches!(state, "Z" | "X" | "x"));
    is_dead
        || fields.nth(5).and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & EXITING != 0)
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

    fn session_ids() -> [SessionId; 2] {
        let clock = std::sync::Arc::new(backstitch::SystemClock::default());
        let ids = backstitch::host::fresh_ids(clock).unwrap();
        [ids.next(), ids.next()]
    }

    #[tokio::test]
    async fn a_session_has_one_server_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = session_ids();
        let take = async |session| Presence::take(directory.path(), session).await.unwrap();
        let first = take(one).await;
        assert!(first.is_some());
        assert!(take(one).await.is_none());
        assert!(take(other).await.is_some());
        drop(first);
        assert!(take(one).await.is_some());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_server_waits_for_one_that_is_ending() {
        let directory = tempfile::tempdir().unwrap();
        let [session, _] = session_ids();
        let first = Presence::take(directory.path(), session).await.unwrap().unwrap();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        fs::write(&first.path, dead.id().to_string()).unwrap();
        let (second, ()) = tokio::join!(Presence::take(directory.path(), session), async { drop(first) });
        assert!(second.unwrap().is_some());
    }
}
