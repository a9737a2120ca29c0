//! The sessions that a shell offers to complete.

use backstitch::host::one_line;
use backstitch::ports::{IndexedSession, SessionOrder, SessionQuery};
use clap_complete::CompletionCandidate;

use super::place::{OpenStore, short};
use crate::common::Common;
use crate::terminal;

/// How many of the newest sessions are offered.
const OFFERED: usize = 50;

/// Columns of the description of a session.
const DESCRIPTION: usize = 60;

/// Returns the newest sessions of the store that a command line refers to. A store that cannot be read has none.
pub(crate) fn candidates() -> Vec<CompletionCandidate> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let sessions = runtime.block_on(newest()).unwrap_or_default();
    sessions.iter().map(candidate).collect()
}

async fn newest() -> anyhow::Result<Vec<IndexedSession>> {
    let place = OpenStore::for_reading(&Common::of_command_line(std::env::args_os()))?;
    let query = SessionQuery::roots().with_order(SessionOrder::NewestFirst).with_limit(OFFERED);
    Ok(place.runtime.sessions(query).await?.sessions)
}

fn candidate(session: &IndexedSession) -> CompletionCandidate {
    let mission = one_line(&session.summary.mission, DESCRIPTION);
    let description = terminal::cut(&format!("{}: {mission}", session.status()), DESCRIPTION);
    CompletionCandidate::new(short(session.id())).help(Some(description.into()))
}
