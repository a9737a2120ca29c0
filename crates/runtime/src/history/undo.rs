//! Undo and redo of rewinds, and of the files of single calls.
//!
//! Both are rewinds themselves, and say which rewind they undo or repeat. Undoing several times therefore undoes
//! several rewinds, the latest first, and redoing repeats them in the opposite order, until something new is
//! recorded. Nothing is ever deleted.

use backstitch_core::id::CallId;
use backstitch_core::journal::{Position, RecordBody, SessionRewound, WorkspaceRevision};
use backstitch_core::ports::OwnStep;
use backstitch_core::view::{Boundary, Call};
use std::sync::Arc;

use super::locate::{ResolvedPoint, find_call};
use super::own::{RewindScope, StepsSince};
use super::rewind::{RewindCause, RewindReport, check_kept};
use super::shared::CallWindow;
use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, load_view, read_records};

/// The rewinds of a session that can be undone, and those that can be repeated, the latest last.
#[derive(Debug, Default, PartialEq)]
struct UndoStacks {
    undo: Vec<Position>,
    redo: Vec<Position>,
}

impl UndoStacks {
    fn add(&mut self, at: Position, rewound: &SessionRewound) {
        match (rewound.undoes, rewound.redoes) {
            (Some(undone), _) => {
                self.undo.retain(|other| *other != undone);
                self.redo.push(undone);
            }
            (None, Some(redone)) => {
                self.redo.retain(|other| *other != redone);
                self.undo.push(redone);
            }
            (None, None) => {
                self.undo.push(at);
                self.redo.clear();
            }
        }
    }
}

impl LiveSession {
    /// Undoes the latest rewind that is not undone: the records before it are visible again, and the files are
    /// restored to their state then. Undoing again undoes the rewind before it.
    pub async fn undo(&self) -> Result<RewindReport> {
        self.undo_within(RewindScope::default()).await
    }

    /// Like [`undo`](Self::undo), for one half of the session, for all files, or without doing it.
    pub async fn undo_within(&self, scope: RewindScope) -> Result<RewindReport> {
        self.undo_for(None, scope).await
    }

    /// Like [`undo_within`](Self::undo_within), for a call of a caller outside.
    pub(crate) async fn undo_for(&self, call: Option<CallId>, scope: RewindScope) -> Result<RewindReport> {
        let rewinds = self.settled_rewinds().await?;
        let mut stacks = UndoStacks::default();
        rewinds.iter().for_each(|(at, rewound)| stacks.add(*at, rewound));
        let Some(at) = stacks.undo.last().copied() else {
            return Err(RuntimeError::NothingToUndo { session: self.id() });
        };
        let reason = Some(format!("undoes the rewind at {at}"));
        let cause = RewindCause { reason, undoes: Some(at), call, ..RewindCause::default() };
        self.return_to_before(at, &rewinds, cause, scope).await
    }

    /// Repeats the rewind that was undone last. Fails with [`RuntimeError::NothingToRedo`] if none was undone, or if
    /// the session has continued since then.
    pub async fn redo(&self) -> Result<RewindReport> {
        self.redo_within(RewindScope::default()).await
    }

    /// Like [`redo`](Self::redo), for one half of the session, for all files, or without doing it.
    pub async fn redo_within(&self, scope: RewindScope) -> Result<RewindReport> {
        let rewinds = self.settled_rewinds().await?;
        let mut stacks = UndoStacks::default();
        rewinds.iter().for_each(|(at, rewound)| stacks.add(*at, rewound));
        let nothing = || RuntimeError::NothingToRedo { session: self.id() };
        let redone = stacks.redo.last().copied().ok_or_else(nothing)?;
        let latest = rewinds.last().map(|(at, _)| *at).ok_or_else(nothing)?;
        let since = read_records(&**self.store(), self.id(), latest, None).await?;
        let is_work = |body: &RecordBody| {
            matches!(body, RecordBody::EvaluationStarted(_) | RecordBody::EvaluationResumed(_))
        };
        if since.iter().any(|record| is_work(&record.body)) {
            return Err(nothing());
        }
        let undone = rewinds.iter().rev().find(|(_, rewound)| rewound.undoes == Some(redone));
        let at = undone.map(|(at, _)| *at).ok_or_else(nothing)?;
        let reason = Some(format!("repeats the rewind at {redone}"));
        let cause = RewindCause { reason, redoes: Some(redone), ..RewindCause::default() };
        self.return_to_before(at, &rewinds, cause, scope).await
    }

    /// Undoes what one call changed in the files, and nothing else: other calls keep their changes, as do people. State and
    /// conversation stay. It is recorded like a rewind, so [`undo`](Self::undo) undoes it. The call is named by the beginning
    /// or the end of its id. Of the scope, only the conflicts and the dry run count.
    pub async fn undo_call(&self, name: &str, scope: RewindScope) -> Result<RewindReport> {
        self.settle_files().await?;
        self.restore_missing_files().await?;
        self.flush().await?;
        let view = self.view().await;
        let call = find_call(&view, name)?;
        let refused =
            |reason: &str| RuntimeError::NoSuchPoint { point: name.to_owned(), reason: reason.to_owned() };
        let known = view.call(call).and_then(Call::checkpoint);
        let known = known.ok_or_else(|| refused("the call was not started"))?;
        let after = known.after.ok_or_else(|| refused("the call has not ended"))?;
        let files = |boundary: Boundary| WorkspaceRevision::of(boundary.root, boundary.coverage);
        let step = files(known.before).zip(files(after)).filter(|(before, after)| before.root != after.root);
        let (before, after) = step.ok_or_else(|| refused("the call changed no files, or failed"))?;
        for files in [before, after] {
            check_kept(&**self.store(), Some(files)).await?;
        }
        let window = view.call(call).and_then(CallWindow::of);
        let target = self.without_call(OwnStep { before, after }, scope.conflicts, window).await?;
        let conflicts: Vec<&str> = target.plan.conflicts.iter().map(|one| one.path.as_str()).collect();
        if target.plan.changes.is_empty() && !conflicts.is_empty() && !scope.dry_run {
            let paths = conflicts.join(", ");
            return Err(refused(&format!("its files were changed since, which cannot be merged: {paths}")));
        }
        let cause = RewindCause { reason: Some(format!("undoes call {call}")), ..RewindCause::default() };
        self.rewind_to_target(&view, (view.head(), target), cause, scope.dry_run).await
    }

    /// Brings files and journal into agreement, and reads all rewinds.
    async fn settled_rewinds(&self) -> Result<Vec<(Position, Arc<SessionRewound>)>> {
        self.settle_files().await?;
        self.restore_missing_files().await?;
        self.flush().await?;
        let rewinds = self.view().await.lineage().rewinds().to_vec();
        let mut all = Vec::new();
        for (at, _) in rewinds {
            let records = read_records(&**self.store(), self.id(), at, Some(at.next())).await?;
            if let Some(RecordBody::Rewound(rewound)) = records.first().map(|record| &record.body) {
                all.push((at, rewound.clone()));
            }
        }
        Ok(all)
    }

    /// Rewinds to the state before a rewind, with the files that it rescued.
    async fn return_to_before(
        &self,
        at: Position,
        rewinds: &[(Position, Arc<SessionRewound>)],
        cause: RewindCause,
        scope: RewindScope,
    ) -> Result<RewindReport> {
        let view = self.view().await;
        let rewound = rewinds.iter().find(|(position, _)| *position == at).map(|(_, rewound)| rewound);
        // A rewind that rescued nothing has found the files that it names.
        let found = rewound
            .and_then(|rewound| WorkspaceRevision::of(rewound.rescue.or(rewound.root), rewound.coverage));
        let before = load_view(&**self.store(), self.id(), Some(at)).await?;
        let files = found.or(before.files());
        let place = ResolvedPoint { session: self.id(), cut: at, files };
        let since = if found.is_some() { StepsSince::Rescue(at) } else { StepsSince::Position(at) };
        self.rewind_with_files(&view, (place, since), cause, scope).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(rewinds: &[(u64, Option<u64>, Option<u64>)]) -> (Vec<u64>, Vec<u64>) {
        let mut stacks = UndoStacks::default();
        for (at, undoes, redoes) in rewinds {
            let rewound = SessionRewound {
                undoes: undoes.map(Position::new),
                redoes: redoes.map(Position::new),
                ..SessionRewound::new(Position::new(1))
            };
            stacks.add(Position::new(*at), &rewound);
        }
        let numbers = |positions: Vec<Position>| positions.into_iter().map(Position::number).collect();
        (numbers(stacks.undo), numbers(stacks.redo))
    }

    #[test]
    fn undo_walks_back_and_redo_walks_forward() {
        let (a, b) = ((10, None, None), (20, None, None));
        assert_eq!(stacks(&[a, b]), (vec![10, 20], vec![]));
        assert_eq!(stacks(&[a, b, (30, Some(20), None)]), (vec![10], vec![20]));
        assert_eq!(stacks(&[a, b, (30, Some(20), None), (40, Some(10), None)]), (vec![], vec![20, 10]));
        let redone = [a, b, (30, Some(20), None), (40, Some(10), None), (50, None, Some(10))];
        assert_eq!(stacks(&redone), (vec![10], vec![20]));
        // A new rewind ends what could be repeated.
        assert_eq!(stacks(&[a, b, (30, Some(20), None), (40, None, None)]), (vec![10, 40], vec![]));
    }
}
