//! The other sessions of the same agent and directory, and the calls that they know.
//!
//! A client that was restarted may be served by another session than before. A call that it repeats by its id belongs
//! to the session that knows it, so that it is never run twice.

use std::collections::{HashMap, HashSet};

use backstitch::Runtime;
use backstitch::host::read_records;
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{Position, RecordBody};
use backstitch::ports::{SessionQuery, Store};

/// The most sessions that are looked at, the latest ones.
const MOST: usize = 32;

/// What was read of the journals so far.
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
