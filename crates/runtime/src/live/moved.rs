//! What is left of an interrupted call after the history has moved files: a rewind or a restore takes away some of its changes, and
//! an undo brings them back. Nothing of the call runs meanwhile, so whatever else changes is the work of others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backstitch_core::journal::{Position, RecordBody, SessionRewound, WorkspaceRevision};
use backstitch_core::ports::WorkspaceError;
use backstitch_core::view::Call;

use super::{LiveSession, blocking, read_records};
use crate::error::{Result, RuntimeError};

/// Paths that may hold changes of a call.
type Paths = HashSet<String>;

/// The paths that may hold changes of a call, from one move of files to the next.
#[derive(Debug)]
struct LeftPaths {
    paths: Paths,
    /// The paths that each move took away.
    taken: HashMap<Position, Paths>,
}

impl LeftPaths {
    /// Starts with everything that changed until the first move.
    fn new(paths: Paths) -> Self {
        Self { paths, taken: HashMap::new() }
    }

    /// Leaves out what others changed between two moves.
    fn change(&mut self, by_others: &Paths) {
        self.paths.retain(|path| !by_others.contains(path));
    }

    /// Follows a move of these paths.
    fn follow(&mut self, at: Position, rewound: &SessionRewound, moved: &Paths) {
        let brought = rewound.undoes.and_then(|undone| self.taken.remove(&undone)).unwrap_or_default();
        let taken: Paths = self.paths.extract_if(|path| moved.contains(path)).collect();
        self.paths.extend(brought.into_iter().filter(|path| moved.contains(path)));
        for position in [Some(at), rewound.redoes].into_iter().flatten() {
            self.taken.insert(position, taken.clone());
        }
    }
}

impl LiveSession {
    /// Returns the paths that may still hold changes of an interrupted call, if the history has moved files since. `None` if it has
    /// not, or if that is not known.
    pub(super) async fn left_since_move(
        &self,
        call: &Call,
        before: WorkspaceRevision,
    ) -> Result<Option<HashSet<String>>> {
        let moves = self.moves_since(call).await?;
        let last =
            moves.iter().rev().find_map(|(_, moved)| WorkspaceRevision::of(moved.root, moved.coverage));
        let (Some(last), Some(workspace)) = (last, self.workspace().cloned()) else { return Ok(None) };
        let left = blocking(move || {
            let paths = |from, to| -> Result<Paths, WorkspaceError> {
                Ok(workspace.diff(from, to)?.into_iter().map(|change| change.path).collect())
            };
            let (mut left, mut known): (Option<LeftPaths>, _) = (None, before.root);
            for (at, moved) in moves {
                let Some(after) = moved.root else { continue };
                let found = moved.rescue.unwrap_or(after);
                let since = paths(known, found)?;
                let left = match &mut left {
                    None => left.insert(LeftPaths::new(since)),
                    Some(left) => {
                        left.change(&since);
                        left
                    }
                };
                left.follow(at, &moved, &paths(found, after)?);
                known = after;
            }
            Ok(left.map(|left| left.paths))
        });
        let left = match left.await {
            Err(RuntimeError::Workspace(WorkspaceError::MissingObject { .. })) => return Ok(None),
            left => left?,
        };
        let later = self.capture_since(last, Vec::new()).await?.plan.changes;
        let later: Paths = later.into_iter().map(|change| change.path).collect();
        Ok(left.map(|left| &left - &later))
    }

    /// Returns the rewinds and restores of files since a call was started, with their positions.
    async fn moves_since(&self, call: &Call) -> Result<Vec<(Position, Arc<SessionRewound>)>> {
        let start = call.intent.as_ref().filter(|intent| intent.point.session == self.id());
        let start = start.map(|intent| intent.point.position);
        let last = self.view().await.lineage().rewinds().last().map(|(at, _)| *at);
        let Some(start) = start.filter(|start| last.is_some_and(|last| last > *start)) else {
            return Ok(Vec::new());
        };
        let records = read_records(&**self.store(), self.id(), start, None).await?;
        let moves = records.iter().filter_map(|record| match &record.body {
            RecordBody::Rewound(moved) => Some((record.position, moved.clone())),
            _ => None,
        });
        Ok(moves.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Paths {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn rewind() -> SessionRewound {
        SessionRewound::new(Position::START)
    }

    fn undo(undone: u64) -> SessionRewound {
        SessionRewound { undoes: Some(Position::new(undone)), ..rewind() }
    }

    fn redo(undone: u64) -> SessionRewound {
        SessionRewound { redoes: Some(Position::new(undone)), ..rewind() }
    }

    #[test]
    fn an_undo_brings_back_what_its_rewind_took() {
        let mut left = LeftPaths::new(paths(&["a", "b"]));
        left.follow(Position::new(1), &rewind(), &paths(&["a", "of others"]));
        assert_eq!(left.paths, paths(&["b"]));
        left.change(&paths(&["b"]));
        left.follow(Position::new(2), &undo(1), &paths(&["a", "of others"]));
        assert_eq!(left.paths, paths(&["a"]), "and nothing else that it moved");
    }

    #[test]
    fn an_undo_does_not_bring_back_what_it_does_not_move() {
        let mut left = LeftPaths::new(paths(&["a", "b"]));
        left.follow(Position::new(1), &rewind(), &paths(&["a", "b"]));
        left.follow(Position::new(2), &undo(1), &paths(&["a"]));
        assert_eq!(left.paths, paths(&["a"]), "others have changed the other one");
    }

    #[test]
    fn a_rewind_that_is_repeated_can_be_undone_again() {
        let mut left = LeftPaths::new(paths(&["a"]));
        left.follow(Position::new(1), &rewind(), &paths(&["a"]));
        left.follow(Position::new(2), &undo(1), &paths(&["a"]));
        left.follow(Position::new(3), &redo(1), &paths(&["a"]));
        assert_eq!(left.paths, paths(&[]));
        left.follow(Position::new(4), &undo(3), &paths(&["a"]));
        assert_eq!(left.paths, paths(&["a"]));
    }
}
