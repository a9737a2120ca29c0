//! Programs that report their calls, and work in the directory of a session.
//!
//! A session that a process drives holds its directory. One that a program reports to does not, because each of its reports opens
//! the directory only for a moment. So a session whose files are about to be moved looks for calls of such programs that have not
//! ended. It holds the directory meanwhile, so no call can begin unseen.

use std::path::Path;

use backstitch_core::id::SessionId;
use backstitch_core::journal::RecordBody;
use backstitch_core::ports::{IndexedSession, IndexedStatus, SessionQuery, Store};

use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, find_view, read_records};
use crate::observed::{is_observed, observed_origin};

impl LiveSession {
    /// Fails if another session has an open call of a program that reports its calls, in the directory of this one, inside of it
    /// or around it.
    pub(crate) async fn check_neighbours(&self) -> Result<()> {
        let Some(directory) = self.host_directory() else { return Ok(()) };
        let mut query = SessionQuery::roots()
            .with_status(IndexedStatus::Running)
            .with_status(IndexedStatus::Interrupted)
            .with_status(IndexedStatus::Stopped);
        loop {
            let page = self.store().query(query.clone()).await?;
            let others = page.sessions.iter().filter(|other| shares_files(other, &directory));
            let others: Vec<SessionId> = others.map(IndexedSession::id).collect();
            for session in others.into_iter().filter(|session| *session != self.id()) {
                if let Some(tool) = reported_call(&**self.store(), session).await? {
                    return Err(RuntimeError::DirectoryBusy { session, tool });
                }
            }
            query.after = page.next;
            if query.after.is_none() {
                return Ok(());
            }
        }
    }
}

/// Whether the directory of a session is this one, or inside of it, or around it.
fn shares_files(other: &IndexedSession, directory: &Path) -> bool {
    let known = other.summary.workspace.as_deref().map(Path::new);
    known.is_some_and(|known| known.starts_with(directory) || directory.starts_with(known))
}

/// Returns the tool of an open call that a program has reported. Those of an engine are not among them: the process that drives
/// it reports them, and holds the directory. Neither are calls whose end a rewind has hidden.
async fn reported_call(store: &dyn Store, session: SessionId) -> Result<Option<String>> {
    let Some(view) = find_view(store, session).await? else { return Ok(None) };
    let mut open = Vec::new();
    for call in view.calls().filter(|call| call.is_open()) {
        let intent = call.intent.as_ref().filter(|intent| intent.point.session == session);
        let is_reported = view.evaluation(call.evaluation_id).and_then(observed_origin).is_some();
        if let Some(intent) = intent.filter(|intent| is_reported && is_observed(&intent.record)) {
            open.push((intent.point.position, call));
        }
    }
    let Some(first) = open.iter().map(|(position, _)| *position).min() else { return Ok(None) };
    for record in read_records(store, session, first, None).await? {
        if let RecordBody::CallFinished(ended) = &record.body {
            open.retain(|(_, call)| call.call_id != ended.call_id);
        }
    }
    Ok(open.first().map(|(_, call)| call.name.clone()))
}
