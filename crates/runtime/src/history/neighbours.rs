//! Programs that report their calls, and work in the directory of a session.
//!
//! A session that a process drives holds its directory. One that a program reports to does not, because each of its reports opens
//! the directory only for a moment. So a session whose files are about to be moved looks for calls of such programs that have not
//! ended. It holds the directory meanwhile, so no call can begin unseen.

use std::path::Path;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{IndexedSession, IndexedStatus, SessionQuery};
use backstitch_core::view::{Call, JournalView};

use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, find_view};
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
                let Some(view) = find_view(&**self.store(), session).await? else { continue };
                if let Some(call) = reported_call(&view) {
                    return Err(RuntimeError::DirectoryBusy { session, tool: call.name.clone() });
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

/// Returns an open call that a program has reported. Those of an engine are not among them: the process that drives it reports
/// them, and holds the directory.
fn reported_call(view: &JournalView) -> Option<&Call> {
    view.calls().filter(|call| call.is_open()).find(|call| {
        let is_reported = call.intent.as_ref().is_some_and(|intent| is_observed(&intent.record));
        is_reported && view.evaluation(call.evaluation_id).and_then(observed_origin).is_some()
    })
}
