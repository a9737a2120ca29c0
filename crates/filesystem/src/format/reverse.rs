//! Undoes a session's own changes in files that others change too.
//!
//! This is the one rule of rewinds, of undoing and of repeating them. Each step of the session is merged backwards into the
//! current files: the files after it are the base, those before it are the result. So a path that the session never changed
//! stays as it is, and what others changed between two steps survives.
//!
//! A path with a conflict stays as it is now for all steps, because a path that is undone by half is a state that nobody
//! made. Steps that meet, with nothing changed in between, count as one.

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::journal::{WorkspaceRevision, WorkspaceRoot};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    ConflictKind, ConflictResolution, MergeConflict, ObjectOverlay, Objects, OwnStep, Reversal,
    ReversalConflicts, ReversalPlan, ReversedCapture, WorkspaceCapture, WorkspaceError,
};

use super::diff::diff;
use super::graft::{GraftedRoot, graft};
use super::merge::{Merge, MergedRoot, merge};
use super::stored::{StoredItem, with_item};

/// Conflicts by path.
type Conflicts = BTreeMap<String, ConflictKind>;

/// Returns a capture as if the steps had been undone. Paths in `excluded` stay as they are, and everything below them. All
/// roots must be stored with all their trees, or be the captured one.
pub fn reversed(
    mut captured: WorkspaceCapture,
    objects: &dyn Objects,
    reversal: &Reversal,
    excluded: BTreeSet<Vec<u8>>,
) -> Result<ReversedCapture, WorkspaceError> {
    let now = captured.root;
    let mut known = ObjectOverlay::new(captured.objects.iter().cloned(), objects);
    let coverage = captured.coverage.as_ref().map(Object::id);
    let after = WorkspaceRevision { root: now, coverage };
    let open = reversal.open.map(|before| OwnStep { before, after });
    let steps = joined_steps(reversal.steps.iter().copied().chain(open));
    let (mut root, new, mut conflicts) = undo_steps(&known, now, &steps, reversal, excluded)?;
    new.iter().for_each(|object| known.insert(object.clone()));
    captured.objects.extend(new);
    if !conflicts.is_empty() {
        let differing = differing_paths(&known, root, reversal.target.root)?;
        // A path that is as at the point has nothing left to undo, such as after a rewind that was forced.
        conflicts.retain(|path, _| {
            let below = format!("{path}/");
            let next = differing.range(below.clone()..).next();
            differing.contains(path) || next.is_some_and(|next| next.starts_with(&below))
        });
    }
    let mut forced = Conflicts::new();
    if reversal.conflicts == ReversalConflicts::TakeTarget {
        for (path, kind) in std::mem::take(&mut conflicts) {
            if is_mode_of_directory(&known, now, &path, kind)? {
                conflicts.insert(path, kind);
                continue;
            }
            match graft(&known, root, reversal.target.root, &[path.as_bytes()]) {
                Ok(GraftedRoot { root: with_target, objects, .. }) => {
                    root = with_target;
                    objects.iter().for_each(|object| known.insert(object.clone()));
                    captured.objects.extend(objects);
                    forced.insert(path, kind);
                }
                // Something else is in its place now.
                Err(WorkspaceError::Blocked { .. }) => {
                    conflicts.insert(path, kind);
                }
                Err(error) => return Err(error),
            }
        }
    }
    captured.root = root;
    let changes = diff(&known, now, root)?;
    let differing = differing_paths(&known, root, reversal.target.root)?;
    let merged = changes.iter().filter(|change| differing.contains(&change.path));
    let merged = merged.map(|change| change.path.clone()).collect();
    let listed = |conflicts: Conflicts| {
        conflicts.into_iter().map(|(path, kind)| MergeConflict { path, kind }).collect::<Vec<_>>()
    };
    let plan = ReversalPlan { changes, merged, conflicts: listed(conflicts), forced: listed(forced) };
    Ok(ReversedCapture { captured, found: now, plan })
}

/// Returns a captured root with the difference between two others, and the conflicts, whose paths are those of the captured one.
/// Paths in `excluded` stay as they are.
pub fn rebased(
    objects: &dyn Objects,
    now: WorkspaceRoot,
    (from, to): (WorkspaceRoot, WorkspaceRoot),
    excluded: &BTreeSet<Vec<u8>>,
) -> Result<MergedRoot, WorkspaceError> {
    let resolution = ConflictResolution::List;
    merge(objects, &Merge { base: from, ours: now, theirs: to, paths: &[], excluded, resolution }, None)
}

/// Undoes the steps, the latest first. Returns the root, its new objects, and the conflicts, whose paths are those of `now`.
fn undo_steps(
    objects: &dyn Objects,
    now: WorkspaceRoot,
    steps: &[OwnStep],
    reversal: &Reversal,
    mut excluded: BTreeSet<Vec<u8>>,
) -> Result<(WorkspaceRoot, Vec<Object>, Conflicts), WorkspaceError> {
    excluded.extend(reversal.kept.iter().map(|path| path.as_str().as_bytes().to_vec()));
    let mut conflicts = Conflicts::new();
    // Each round leaves out the paths with conflicts of the rounds before it.
    loop {
        let mut known = ObjectOverlay::new([], objects);
        let (mut root, mut found) = (now, false);
        for step in steps.iter().rev() {
            let back = (step.after.root, step.before.root);
            let MergedRoot { root: next, objects, conflicts: new, .. } =
                rebased(&known, root, back, &excluded)?;
            objects.into_iter().for_each(|object| known.insert(object));
            root = next;
            for MergeConflict { path, kind } in new {
                found |= conflicts.insert(path, kind).is_none();
            }
        }
        if !found {
            return Ok((root, known.into_new().collect(), conflicts));
        }
        for (path, kind) in &conflicts {
            if !is_mode_of_directory(objects, now, path, *kind)? {
                excluded.insert(path.as_bytes().to_vec());
            }
        }
    }
}

/// Returns whether a conflict is about the mode of a directory alone, and not about the paths below it.
fn is_mode_of_directory(
    objects: &dyn Objects,
    root: WorkspaceRoot,
    path: &str,
    kind: ConflictKind,
) -> Result<bool, WorkspaceError> {
    if kind != ConflictKind::ModeChanged || path == "." {
        return Ok(kind == ConflictKind::ModeChanged);
    }
    let is_directory = |item: &StoredItem<'_>| matches!(item, StoredItem::Directory(_));
    Ok(with_item(objects, root, path.as_bytes(), is_directory)?.unwrap_or(false))
}

fn differing_paths(
    objects: &dyn Objects,
    from: WorkspaceRoot,
    to: WorkspaceRoot,
) -> Result<BTreeSet<String>, WorkspaceError> {
    Ok(diff(objects, from, to)?.into_iter().map(|change| change.path).collect())
}

/// Joins steps that meet, and drops those that change nothing.
fn joined_steps(steps: impl Iterator<Item = OwnStep>) -> Vec<OwnStep> {
    let mut joined: Vec<OwnStep> = Vec::new();
    for step in steps.filter(|step| step.before.root != step.after.root) {
        match joined.last_mut() {
            Some(last) if last.after.root == step.before.root => {
                last.after = step.after;
                if last.before.root == last.after.root {
                    joined.pop();
                }
            }
            _ => joined.push(step),
        }
    }
    joined
}
