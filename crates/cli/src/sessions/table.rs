//! Sessions as an aligned table, sub-agents below their parents.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use backstitch::id::SessionId;
use backstitch::journal::{EvaluationOutcome, Origin};
use backstitch::ports::{IndexedSession, IndexedStatus};
use backstitch::{one_line, reason_word};

use super::failure;
use super::place::short;
use crate::terminal::safe;

/// How much of a mission is shown.
const MISSION: usize = 60;

/// The columns before the mission, each as wide as its widest cell.
const COLUMNS: usize = 5;

/// One session, as text.
struct TableRow {
    cells: [String; COLUMNS],
    mission: String,
    /// Why it has no answer, below the row.
    below: Option<String>,
}

/// The table of sessions, which are given oldest first, with those that cannot be read before it.
pub(super) fn rows(sessions: &[IndexedSession], unreadable: &[(SessionId, String)]) -> String {
    let mut text = String::new();
    for (session, error) in unreadable {
        let _ = writeln!(text, "{}  unreadable: {}", short(session), one_line(error, 200));
    }
    if sessions.is_empty() {
        return text;
    }
    let heading = ["session", "created", "status", "outcome", "turns"].map(str::to_owned);
    let mut table = vec![TableRow { cells: heading, mission: "mission".to_owned(), below: None }];
    table.extend(arranged(sessions).into_iter().map(|(depth, session)| row(session, depth)));
    let width =
        |column: usize| table.iter().map(|row| row.cells[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    for row in &table {
        let [session, created, status, outcome, turns] = &row.cells;
        let line = format!(
            "{session:<0$}  {created:<1$}  {status:<2$}  {outcome:<3$}  {turns:>4$}  {5}",
            widths[0], widths[1], widths[2], widths[3], widths[4], row.mission
        );
        let _ = writeln!(text, "{}", line.trim_end());
        if let Some(below) = &row.below {
            let _ = writeln!(text, "{:<1$}  {below}", "", widths[0]);
        }
    }
    text
}

/// The sessions in the order of the table, each with its depth: sub-agents follow their parent.
fn arranged(sessions: &[IndexedSession]) -> Vec<(usize, &IndexedSession)> {
    let listed: HashSet<SessionId> = sessions.iter().map(IndexedSession::id).collect();
    let mut children: HashMap<SessionId, Vec<&IndexedSession>> = HashMap::new();
    let mut tops = Vec::new();
    for session in sessions {
        match session.summary.origin {
            Origin::Call { session: parent, .. } if listed.contains(&parent) => {
                children.entry(parent).or_default().push(session);
            }
            _ => tops.push(session),
        }
    }
    let mut open: Vec<(usize, &IndexedSession)> = tops.into_iter().rev().map(|top| (0, top)).collect();
    let mut arranged = Vec::with_capacity(sessions.len());
    while let Some((depth, session)) = open.pop() {
        arranged.push((depth, session));
        let below = children.remove(&session.id()).unwrap_or_default();
        open.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
    }
    arranged
}

fn row(session: &IndexedSession, depth: usize) -> TableRow {
    let summary = &session.summary;
    let created = summary.created_at.to_string();
    let created = created.get(..16).unwrap_or(&created).replace('T', " ");
    let status = match (session.status(), summary.pause) {
        (IndexedStatus::Paused, Some(reason)) => format!("paused ({})", reason_word(reason)),
        (status, _) => status.to_string(),
    };
    let outcome = match (summary.outcome, &summary.failure) {
        (Some(EvaluationOutcome::Failed), Some(failure)) => one_line(&failure.kind, 24),
        (Some(outcome), _) => outcome.as_str().to_owned(),
        (None, _) => String::new(),
    };
    let from = match summary.origin {
        Origin::Fork { session, .. } => format!(" (fork of {})", short(session)),
        Origin::Call { session, .. } if depth == 0 => {
            format!(" (sub-agent of {})", short(session))
        }
        _ => String::new(),
    };
    let turns = match summary.turns {
        0 => String::new(),
        turns => turns.to_string(),
    };
    TableRow {
        cells: [format!("{}{}", "  ".repeat(depth), short(session.id())), created, status, outcome, turns],
        // Escaped here, so that the table stays aligned.
        mission: safe(&format!("{}{from}", one_line(&summary.mission, MISSION))).into_owned(),
        below: summary.failure.as_ref().map(failure::text),
    }
}
