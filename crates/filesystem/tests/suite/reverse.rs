//! Steps of a session that are undone in files that others change too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use backstitch_core::journal::WorkspaceRevision;
use backstitch_core::ports::{
    OwnStep, Reversal, ReversalConflicts, ReversalPlan, ReversedCapture, Workspace as _, WorkspaceCapture,
};
use backstitch_filesystem::MemoryWorkspace;
use backstitch_testkit::filesystem::StoredObjects;
use backstitch_testkit::filesystem::tree::{Leaf, Tree, tree_of};
use proptest::prelude::*;

use super::graft::filled;

/// The paths that all change.
const PATHS: [&str; 4] = ["a", "b", "d/x", "d/y"];

/// The session whose steps are undone. All other actors, another session and a person, are the same to it.
const SESSION: u8 = 0;

/// Files, each with a number for its content.
type Files = BTreeMap<&'static str, u8>;

/// The content is not a text, so two changes of one file always conflict.
fn tree_of_numbers(files: &Files) -> Tree {
    files.iter().map(|(path, number)| ((*path).to_owned(), Leaf::file(vec![0, *number]))).collect()
}

fn texts(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| ((*path).to_owned(), Leaf::file(*text))).collect()
}

/// A store in which trees are captured.
#[derive(Default)]
struct Roots(Arc<StoredObjects>);

impl Roots {
    fn capture(&self, tree: &Tree) -> WorkspaceCapture {
        let captured = MemoryWorkspace::new(filled(tree), self.0.clone()).capture().unwrap();
        self.0.store(&captured);
        captured
    }

    fn revision(&self, tree: &Tree) -> WorkspaceRevision {
        WorkspaceRevision { root: self.capture(tree).root, coverage: None }
    }

    fn step(&self, before: &Tree, after: &Tree) -> OwnStep {
        OwnStep { before: self.revision(before), after: self.revision(after) }
    }

    /// Undoes steps in the files `now`, and returns the files after that.
    fn reverse(
        &self,
        now: &Tree,
        steps: Vec<OwnStep>,
        target: &Tree,
        conflicts: ReversalConflicts,
    ) -> (Tree, ReversedCapture) {
        let workspace = MemoryWorkspace::new(filled(now), self.0.clone());
        let target = self.revision(target);
        let reversal = Reversal { steps, open: None, target, kept: Vec::new(), conflicts };
        let reversed = workspace.capture_reversed(&reversal).unwrap();
        self.0.store(&reversed.captured);
        workspace.restore(reversed.captured.root).unwrap();
        let mut files = tree_of(&**workspace.memory());
        files.retain(|_, leaf| *leaf != Leaf::EmptyDirectory);
        (files, reversed)
    }
}

/// The model: each path by itself. Returns the files, and the paths with conflicts.
fn model(now: &Files, steps: &[(Files, Files)]) -> (Files, BTreeSet<String>) {
    let mut joined: Vec<(Files, Files)> = Vec::new();
    for (before, after) in steps.iter().filter(|(before, after)| before != after).cloned() {
        match joined.last_mut() {
            Some(last) if last.1 == before => {
                last.1 = after;
                if last.0 == last.1 {
                    joined.pop();
                }
            }
            _ => joined.push((before, after)),
        }
    }
    let (mut files, mut conflicts) = (now.clone(), BTreeSet::new());
    for path in PATHS {
        let mut state = now.get(path);
        for (before, after) in joined.iter().rev() {
            let (before, after) = (before.get(path), after.get(path));
            if before == after || state == before {
                continue;
            }
            if state != after {
                conflicts.insert(path.to_owned());
                state = now.get(path);
                break;
            }
            state = before;
        }
        match state {
            Some(number) => files.insert(path, *number),
            None => files.remove(path),
        };
    }
    (files, conflicts)
}

proptest! {
    #[test]
    fn any_interleaving_keeps_what_others_changed(
        edits in prop::collection::vec((0..3u8, 0..PATHS.len(), prop::option::of(0..3u8)), 1..12),
        point in any::<prop::sample::Index>(),
    ) {
        let (roots, mut files) = (Roots::default(), Files::from([("a", 0), ("d/x", 0)]));
        let point = point.index(edits.len());
        let mut at_point = files.clone();
        let (mut steps, mut own, mut foreign) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for (index, (actor, path, content)) in edits.into_iter().enumerate() {
            if index == point {
                at_point = files.clone();
            }
            let (before, path) = (files.clone(), PATHS[path]);
            match content {
                Some(number) => files.insert(path, number),
                None => files.remove(path),
            };
            if index < point || before == files {
                continue;
            }
            if actor == SESSION {
                own.insert(path);
                steps.push((before, files.clone()));
            } else {
                foreign.insert(path);
            }
        }
        let recorded = steps
            .iter()
            .map(|(before, after)| roots.step(&tree_of_numbers(before), &tree_of_numbers(after)))
            .collect();
        let (now, target) = (tree_of_numbers(&files), tree_of_numbers(&at_point));
        let (found, reversed) = roots.reverse(&now, recorded, &target, ReversalConflicts::LeaveAlone);
        let (expected, mut conflicts) = model(&files, &steps);
        conflicts.retain(|path| files.get(path.as_str()) != at_point.get(path.as_str()));
        prop_assert_eq!(&found, &tree_of_numbers(&expected));
        let listed: BTreeSet<String> = reversed.plan.conflicts.iter().map(|one| one.path.clone()).collect();
        prop_assert_eq!(listed, conflicts);
        for path in PATHS {
            if !own.contains(path) {
                prop_assert_eq!(found.get(path), now.get(path), "{} is not the session's", path);
            } else if !foreign.contains(path) {
                prop_assert_eq!(found.get(path), target.get(path), "{} is the session's alone", path);
            }
        }
    }
}

#[test]
fn a_text_that_a_person_edited_since_is_merged_by_lines() {
    let roots = Roots::default();
    let before = texts(&[("thesis", "one\ntwo\nthree\nfour\nfive\n"), ("other", "as it was\n")]);
    let after = texts(&[("thesis", "ONE\ntwo\nthree\nfour\nfive\n"), ("other", "as it was\n")]);
    let now = texts(&[("thesis", "ONE\ntwo\nthree\nfour\nFIVE\n"), ("other", "edited\n"), ("my", "new\n")]);
    let steps = vec![roots.step(&before, &after)];
    let (found, reversed) = roots.reverse(&now, steps, &before, ReversalConflicts::LeaveAlone);
    let expected =
        texts(&[("thesis", "one\ntwo\nthree\nfour\nFIVE\n"), ("other", "edited\n"), ("my", "new\n")]);
    assert_eq!(found, expected);
    assert_eq!(reversed.plan.merged, ["thesis"]);
    assert!(reversed.plan.conflicts.is_empty());
}

#[test]
fn an_edit_between_two_steps_survives_both() {
    let roots = Roots::default();
    let text = |first: &str, last: &str| {
        let lines = format!("{first}\n2\n3\n4\n{last}\n");
        texts(&[("seams", lines.as_str())])
    };
    let steps = vec![
        roots.step(&text("1", "5"), &text("one", "5")),
        // A person has edited the last line.
        roots.step(&text("one", "FIVE"), &text("uno", "FIVE")),
    ];
    let (found, reversed) =
        roots.reverse(&text("uno", "FIVE"), steps, &text("1", "5"), ReversalConflicts::LeaveAlone);
    assert_eq!(found, text("1", "FIVE"));
    assert_eq!(reversed.plan.merged, ["seams"]);
}

#[test]
fn a_conflict_leaves_the_path_as_it_is_unless_it_is_forced() {
    let roots = Roots::default();
    let (before, after) = (texts(&[("note", "old\n")]), texts(&[("note", "agent\n"), ("made", "agent\n")]));
    let now = texts(&[("note", "person\n"), ("made", "person\n")]);
    let steps = || vec![roots.step(&before, &after)];
    let (found, reversed) = roots.reverse(&now, steps(), &before, ReversalConflicts::LeaveAlone);
    assert_eq!(found, now);
    let paths: Vec<&str> = reversed.plan.conflicts.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["made", "note"]);
    let (found, reversed) = roots.reverse(&now, steps(), &before, ReversalConflicts::TakeTarget);
    assert_eq!(found, before);
    assert!(reversed.plan.conflicts.is_empty());
    assert_eq!(reversed.plan.forced.len(), 2);
}

#[test]
fn a_path_that_is_as_at_the_point_is_not_a_conflict() {
    let roots = Roots::default();
    let note = |text: &str| texts(&[("note", text)]);
    // A person has edited what the session left, and a rewind was forced.
    let steps = vec![roots.step(&note("old"), &note("agent")), roots.step(&note("person"), &note("old"))];
    for conflicts in [ReversalConflicts::LeaveAlone, ReversalConflicts::TakeTarget] {
        let (found, reversed) = roots.reverse(&note("old"), steps.clone(), &note("old"), conflicts);
        assert_eq!(found, note("old"));
        assert_eq!(reversed.plan, ReversalPlan::default());
    }
}

#[test]
fn everything_since_the_start_of_an_open_call_counts_as_its_change() {
    let roots = Roots::default();
    let before = texts(&[("note", "old\n")]);
    let now = texts(&[("note", "half\n"), ("made", "half\n"), ("settings", "a person's\n")]);
    let workspace = MemoryWorkspace::new(filled(&now), roots.0.clone());
    let target = roots.revision(&before);
    let kept = vec!["settings".parse().unwrap()];
    let conflicts = ReversalConflicts::LeaveAlone;
    let reversal = Reversal { steps: Vec::new(), open: Some(target), target, kept, conflicts };
    let reversed = workspace.capture_reversed(&reversal).unwrap();
    roots.0.store(&reversed.captured);
    workspace.restore(reversed.captured.root).unwrap();
    let expected = texts(&[("note", "old\n"), ("settings", "a person's\n")]);
    assert_eq!(tree_of(&**workspace.memory()), expected);
    assert_eq!(reversed.plan.merged, Vec::<String>::new());
}
