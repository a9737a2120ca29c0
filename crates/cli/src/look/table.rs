//! Sessions as an aligned table, sub-agents below their parents.
//!
//! For people, times are relative, and local with their zone where there is room. For a pipe they are RFC 3339.

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal as _;

use backstitch::host::{one_line, reason_word};
use backstitch::id::SessionId;
use backstitch::journal::{EvaluationOutcome, PauseReason};
use backstitch::ports::{IndexedStatus, OriginKind};
use backstitch::report::{ListedSession, SessionList, UnreadableEntry};
use backstitch::time::Timestamp;

use crate::open::guarded::PROGRAM;
use crate::open::short;
use crate::terminal::{self, Role, Table, Text, time};

/// How much of a mission is printed to a pipe. On a terminal, its width decides.
const MISSION: usize = 60;

/// How much of a mission is laid out for a terminal, which is wider than any.
const LONGEST: usize = 1_000;

/// Columns that a mission gets before other columns are left out.
const ROOM: usize = 24;

/// Prints the sessions, with those that cannot be read before them.
pub(crate) fn print(list: &SessionList, now: Timestamp) {
    for UnreadableEntry { session, error, .. } in &list.unreadable {
        let text = Text::new().add(Role::Id, short(session)).plain("  ").add(Role::Failure, "unreadable");
        terminal::line(&text.plain(": ").plain(one_line(error, 200)));
    }
    if list.sessions.is_empty() {
        return;
    }
    let for_person = std::io::stdout().is_terminal();
    let mut table = if for_person {
        Table::new(["session", "created at", "created", "status", "outcome", "turns", "mission"])
            .align_right(5..6)
            .leave_out([1, 5, 4, 2], ROOM)
    } else {
        Table::new(["session", "created", "status", "outcome", "turns", "mission"]).align_right(4..5)
    };
    for (depth, session) in arranged(&list.sessions) {
        let id = Text::new().plain("  ".repeat(depth)).add(Role::Id, short(session.session));
        let created = Text::new().add(Role::Dim, time::local(session.created_at));
        let turns = if session.turns == 0 { String::new() } else { session.turns.to_string() };
        let (status, outcome, turns) = (status(session), outcome(session), Text::from(turns));
        let isolated = if session.isolated_from.is_some() { "(isolated) " } else { "" };
        let mission = origin(session, depth).add(Role::Dim, isolated);
        let mission = match &session.name {
            Some(name) => mission.add(Role::Id, &**name).plain("  "),
            None => mission,
        };
        let mission = match &*session.mission {
            // The index holds the beginning of a mission, unless that is too large for its record.
            "" if session.turns > 0 => mission.add(Role::Dim, "(a long mission)"),
            text => mission.plain(one_line(text, if for_person { LONGEST } else { MISSION })),
        };
        if for_person {
            let age = Text::from(time::relative(session.created_at, now));
            table.row([id, created, age, status, outcome, turns, mission]);
        } else {
            table.row([id, created, status, outcome, turns, mission]);
        }
        // Why it has no answer.
        if let Some(failure) = &session.failure {
            table.below(Text::new().add(Role::Dim, failure.to_string()));
        }
    }
    table.print();
}

/// The sessions in the order of the table, each with its depth: sub-agents follow their parent.
fn arranged(sessions: &[ListedSession]) -> Vec<(usize, &ListedSession)> {
    let listed: HashSet<SessionId> = sessions.iter().map(|session| session.session).collect();
    let mut children: HashMap<SessionId, Vec<&ListedSession>> = HashMap::new();
    let mut tops = Vec::new();
    for session in sessions {
        match session.parent.filter(|parent| listed.contains(parent)) {
            Some(parent) if session.origin == OriginKind::Call => {
                children.entry(parent).or_default().push(session);
            }
            _ => tops.push(session),
        }
    }
    let mut open: Vec<(usize, &ListedSession)> = tops.into_iter().rev().map(|top| (0, top)).collect();
    let mut arranged = Vec::with_capacity(sessions.len());
    while let Some((depth, session)) = open.pop() {
        arranged.push((depth, session));
        let below = children.remove(&session.session).unwrap_or_default();
        open.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
    }
    arranged
}

/// What a session is doing.
pub(super) fn status(session: &ListedSession) -> Text {
    let status = session.status;
    let role = match status {
        IndexedStatus::Running | IndexedStatus::Runnable | IndexedStatus::New => Role::Accent,
        IndexedStatus::Interrupted | IndexedStatus::Stopped | IndexedStatus::Paused => Role::Warning,
        IndexedStatus::Failed | IndexedStatus::Poisoned => Role::Failure,
        _ => Role::Plain,
    };
    match (status, session.reason) {
        // Nothing has to be decided.
        (IndexedStatus::Paused, Some(PauseReason::Asked)) => Text::new().add(role, "paused"),
        (IndexedStatus::Paused, Some(reason)) => {
            Text::new().add(role, format!("paused ({})", reason_word(reason)))
        }
        // Between two hooks no process holds it.
        (IndexedStatus::Interrupted, _) if session.tags.contains_key(PROGRAM) => {
            Text::new().add(Role::Accent, "guarded")
        }
        _ => Text::new().add(role, status.to_string()),
    }
}

/// How the latest evaluation ended.
fn outcome(session: &ListedSession) -> Text {
    match (session.outcome, &session.failure) {
        (None, _) => Text::new(),
        (Some(EvaluationOutcome::Failed), Some(failure)) => {
            Text::new().add(Role::Failure, one_line(&failure.kind, 24))
        }
        (Some(EvaluationOutcome::Completed), _) => {
            Text::new().add(Role::Success, EvaluationOutcome::Completed.as_str())
        }
        (Some(outcome), _) => Text::new().add(Role::Warning, outcome.as_str()),
    }
}

/// The session that a session comes from, if that is not shown by its place.
fn origin(session: &ListedSession, depth: usize) -> Text {
    let words = match (session.origin, session.parent) {
        (OriginKind::Fork, Some(parent)) => format!("(fork of {}) ", short(parent)),
        (OriginKind::Call, Some(parent)) if depth == 0 => format!("(sub-agent of {}) ", short(parent)),
        _ => return Text::new(),
    };
    Text::new().add(Role::Dim, words)
}
