//! A session as a line of JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use backstitch::budget::Amounts;
use backstitch::id::SessionId;
use backstitch::journal::{EvaluationOutcome, Origin, PauseReason, Position, SessionFailure, SessionStopped};
use backstitch::ports::{IndexedSession, IndexedStatus, OriginKind, Owner};
use backstitch::stores::KnownStore;
use backstitch::time::Timestamp;
use serde::Serialize;
use serde_json::json;

#[derive(Serialize)]
struct SessionLine<'a> {
    v: u32,
    session: SessionId,
    created_at: Timestamp,
    updated_at: Timestamp,
    records: Position,
    status: IndexedStatus,
    outcome: Option<EvaluationOutcome>,
    mission: &'a str,
    agent: Option<&'a str>,
    workspace: Option<&'a str>,
    isolated_from: Option<&'a str>,
    tags: &'a BTreeMap<String, String>,
    holder: &'a Option<Owner>,
    waiting: bool,
    origin: OriginKind,
    parent: Option<SessionId>,
    fork_of: Option<ForkPoint>,
    failure: &'a Option<SessionFailure>,
    stopped: &'a Option<SessionStopped>,
    turns: u64,
    spent: &'a Amounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<PauseReason>,
    #[serde(flatten)]
    store: Option<StoreOfSession>,
}

/// Where a fork begins.
#[derive(Serialize)]
struct ForkPoint {
    session: SessionId,
    position: Position,
}

/// The store of a session, where several are listed.
#[derive(Serialize)]
struct StoreOfSession {
    store: PathBuf,
    project: PathBuf,
}

impl<'a> SessionLine<'a> {
    fn new(session: &'a IndexedSession, of: Option<&KnownStore>) -> Self {
        let summary = &session.summary;
        let fork_of = match summary.origin {
            Origin::Fork { session, position } => Some(ForkPoint { session, position }),
            _ => None,
        };
        Self {
            v: 1,
            session: summary.session,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            records: summary.position,
            status: session.status(),
            outcome: summary.outcome,
            mission: &summary.mission,
            agent: summary.agent.as_deref(),
            workspace: summary.workspace.as_deref(),
            isolated_from: summary.project.as_deref(),
            tags: &summary.tags,
            holder: &session.holder,
            waiting: session.has_waiting,
            origin: OriginKind::from(&summary.origin),
            parent: summary.origin.parent(),
            fork_of,
            failure: &summary.failure,
            stopped: &summary.stopped,
            turns: summary.turns,
            spent: &summary.spent,
            reason: summary.pause,
            store: of.map(|known| StoreOfSession { store: known.store(), project: known.project.path() }),
        }
    }
}

/// Prints sessions, one in a line, with those that cannot be read before them.
pub(crate) fn print(
    sessions: &[IndexedSession],
    unreadable: &[(SessionId, String)],
    of: Option<&KnownStore>,
) -> anyhow::Result<()> {
    let mut lines = String::new();
    for (session, error) in unreadable {
        let _ = writeln!(lines, "{}", json!({"v": 1, "session": session, "error": error}));
    }
    for session in sessions {
        lines.push_str(&serde_json::to_string(&SessionLine::new(session, of))?);
        lines.push('\n');
    }
    print!("{lines}");
    Ok(())
}
