//! Other sessions that work in a directory, before a command moves its files.
//!
//! Files that another session may be writing are not moved: those of a session which a process drives, and those of a guarded program
//! whose command runs or whose call is open. What is dead is closed first: calls that have ended without a report, and processes
//! that a killed runtime has left. A window that is open and idle is not in the way, since only files of the session itself are
//! moved.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use backstitch::host::end_survivors;
use backstitch::id::SessionId;
use backstitch::journal::JournalState;
use backstitch::ports::{IndexedSession, IndexedStatus, SessionQuery};

use crate::common::Common;
use crate::error::{CommandError, ErrorCode};
use crate::open::guarded::{
    CommandSession, GuardedSession, RunningGuard, close_ended, is_guarded, running_conversations,
};
use crate::open::{OpenStore, holder, short};

/// The newest sessions that are looked at, whatever they do: of the directory, and of the store. A process that a program has
/// left may outlive the work of its session.
const NEWEST: usize = 50;

/// Fails if another session works in a directory, inside of it or around it, and names it. The directory may not exist yet.
pub(crate) async fn check(
    common: &Common,
    place: &OpenStore,
    directory: &Path,
    own: SessionId,
) -> anyhow::Result<()> {
    let directory = &resolved(directory);
    let newest = SessionQuery::roots().with_limit(NEWEST);
    let here = newest.clone().with_workspace(directory.to_string_lossy().into_owned());
    let mut at_work = SessionQuery::roots();
    at_work.statuses = vec![IndexedStatus::Running, IndexedStatus::Interrupted, IndexedStatus::Stopped];
    let (mut seen, mut running) = (HashSet::from([own]), None);
    for (mut query, is_whole) in [(here, false), (newest, false), (at_work, true)] {
        loop {
            let page = place.runtime.sessions(query.clone()).await?;
            for other in page.sessions.iter().filter(|other| shares_files(other, directory)) {
                if !seen.insert(other.id()) {
                    continue;
                }
                if is_guarded(other) {
                    let running = running.get_or_insert_with(running_conversations);
                    check_guarded(place, other.id(), running).await?;
                } else {
                    check_driven(common, place, other).await?;
                }
            }
            query.after = page.next.filter(|_| is_whole);
            if query.after.is_none() {
                break;
            }
        }
    }
    Ok(())
}

/// Resolves a path of which possibly only the beginning exists.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.clone(),
    }
}

/// Whether the directory of a session is this one, or inside of it, or around it.
fn shares_files(other: &IndexedSession, directory: &Path) -> bool {
    let known = other.summary.workspace.as_deref().map(Path::new);
    known.is_some_and(|known| known.starts_with(directory) || directory.starts_with(known))
}

/// Fails if a process drives a session. Ends the processes that a killed one has left in an open call.
async fn check_driven(common: &Common, place: &OpenStore, other: &IndexedSession) -> anyhow::Result<()> {
    // The calls are read before the holder, so that those of a process that resumes the session now are not among them.
    let view = match other.summary.state {
        JournalState::Open => Some(place.view(other.id()).await?),
        _ => None,
    };
    let Some(driver) = place.runtime.holder(other.id()).await? else {
        let open = view.iter().flat_map(|view| view.calls()).filter(|call| call.is_open());
        end_survivors(open.flat_map(|call| call.processes.iter()).map(|process| &**process)).await?;
        return Ok(());
    };
    let id = short(other.id());
    let message = format!("session {id} works in this directory, driven by {}", driver.owner);
    let hint = holder::hint(common, other.id());
    Err(CommandError::new(ErrorCode::WorkspaceHeld, message).with_hint(hint).into())
}

/// Fails if the program of a guarded session may change files. `running` are the conversations of all processes.
async fn check_guarded(
    place: &OpenStore,
    session: SessionId,
    running: &HashSet<String>,
) -> anyhow::Result<()> {
    let view = place.view(session).await?;
    if let Some(command) = CommandSession::of(&view) {
        let may_run =
            running.contains(&session.to_string()) || RunningGuard::of(&place.directory, session).is_some();
        return if may_run { command.check_quiet(&place.directory) } else { Ok(()) };
    }
    let Some(guarded) = GuardedSession::of(&view) else { return Ok(()) };
    if guarded.is_among(&view, running) {
        guarded.check_processes(&view)?;
    }
    guarded.check_calls(place, &close_ended(place, view).await?).await
}
