//! Three-way merges of files.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use backstitch_core::journal::{WorkspaceRevision, WorkspaceRoot};
use backstitch_core::ports::{
    ConflictKind, ConflictResolution, IgnoredPaths, MergedCapture, OwnStep, Reversal, ReversalConflicts,
    UncoveredReason, Workspace as _, WorkspaceMerge,
};
use backstitch_filesystem::FilePath;
use proptest::prelude::*;

use crate::support::Place;

/// Replaces all files of a place.
fn fill(place: &Place, files: &[(&str, &str)]) {
    for entry in fs::read_dir(&place.root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    for (path, text) in files {
        place.write(path, text);
    }
}

fn merge_of(base: WorkspaceRoot, theirs: WorkspaceRoot, resolution: ConflictResolution) -> WorkspaceMerge {
    let theirs = WorkspaceRevision { root: theirs, coverage: None };
    WorkspaceMerge { base, theirs, paths: Vec::new(), resolution, ignored: IgnoredPaths::LeaveOut }
}

/// Merges, and writes the result if there is no conflict.
fn merge(
    place: &Place,
    base: &[(&str, &str)],
    theirs: &[(&str, &str)],
    ours: &[(&str, &str)],
    resolution: ConflictResolution,
) -> (MergedCapture, BTreeMap<String, String>) {
    let workspace = place.open();
    fill(place, base);
    let base = place.capture(&workspace);
    fill(place, theirs);
    let theirs = place.capture(&workspace);
    fill(place, ours);
    let merged = workspace.capture_merged(&merge_of(base, theirs, resolution)).unwrap();
    let mut brought = merged.before.objects.clone();
    brought.extend(merged.objects.iter().cloned());
    workspace.restore_bringing(merged.after, None, &brought).unwrap();
    assert_eq!(workspace.capture().unwrap().root, merged.after, "a merged root is what a capture finds");
    let picture = place.picture();
    let files = picture.into_iter().filter(|(_, (kind, ..))| *kind == 'f' || *kind == '-');
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let files = files.map(|(path, (_, _, content))| (text(path), text(content)));
    (merged, files.collect())
}

fn conflicts(merged: &MergedCapture) -> Vec<(&str, ConflictKind)> {
    merged.conflicts.iter().map(|conflict| (conflict.path.as_str(), conflict.kind)).collect()
}

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n";

#[test]
fn changes_of_both_sides_are_merged() {
    let place = Place::new();
    let base = [("a", LINES), ("b", "b\n"), ("d/x", "x\n"), ("gone", "gone\n"), ("e/y", "y\n")];
    let theirs =
        [("a", "1\nTWO\n3\n4\n5\n6\n7\n"), ("b", "b\n"), ("d/x", "x\n"), ("new/z", "z\n"), ("e/y", "Y\n")];
    let ours = [
        ("a", "1\n2\n3\n4\n5\nSIX\n7\n"),
        ("b", "B\n"),
        ("gone", "gone\n"),
        ("e/y", "y\n"),
        ("own", "own\n"),
    ];
    let (merged, files) = merge(&place, &base, &theirs, &ours, ConflictResolution::List);
    assert_eq!(conflicts(&merged), []);
    let expected = [
        ("a", "1\nTWO\n3\n4\n5\nSIX\n7\n"),
        ("b", "B\n"),
        ("e/y", "Y\n"),
        ("new/z", "z\n"),
        ("own", "own\n"),
    ];
    assert_eq!(files, expected.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
}

#[test]
fn conflicts_have_kinds_and_leave_the_files_alone() {
    let place = Place::new();
    let base = [("lines", "1\n"), ("bytes", "\0one"), ("del", "1\n"), ("gone", "1\n"), ("kind", "1\n")];
    let theirs = [("lines", "2\n"), ("bytes", "\0two"), ("gone", "2\n"), ("both", "2\n"), ("kind/x", "2\n")];
    let ours = [("lines", "3\n"), ("bytes", "\0three"), ("del", "3\n"), ("both", "3\n"), ("kind", "3\n")];
    let (merged, files) = merge(&place, &base, &theirs, &ours, ConflictResolution::List);
    use ConflictKind::*;
    let expected = [
        ("both", BothAdded),
        ("bytes", BothChangedBinary),
        ("del", DeletedInResult),
        ("gone", DeletedInDirectory),
        ("kind", TypeChanged),
        ("lines", BothChanged),
    ];
    assert_eq!(conflicts(&merged), expected);
    let of = |side: &[(&str, &str)]| -> BTreeMap<String, String> {
        side.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    };
    assert_eq!(files, of(&ours));
    let (merged, files) = merge(&place, &base, &theirs, &ours, ConflictResolution::Ours);
    assert_eq!((conflicts(&merged), merged.decided.len(), files), (vec![], 6, of(&ours)));
    let (merged, files) = merge(&place, &base, &theirs, &ours, ConflictResolution::Theirs);
    assert_eq!((conflicts(&merged), merged.decided.len(), files), (vec![], 6, of(&theirs)));
    let (merged, _) = merge(&place, &base, &theirs, &ours, ConflictResolution::Markers);
    assert_eq!(merged.decided.len(), 2, "only texts have markers");
    assert_eq!(merged.conflicts.len(), 4);
}

/// A restore that was killed while it replaced a directory by a file leaves such remains.
#[test]
fn a_directory_that_only_lost_files_is_replaced_without_a_conflict() {
    let place = Place::new();
    let base = [("kind/a", "1\n"), ("kind/deep/b", "2\n"), ("kind/deep/c", "3\n"), ("other", "4\n")];
    let theirs = [("kind", "file\n"), ("other", "4\n")];
    for ours in [&base[1..], &base[2..], &base[3..]] {
        let (merged, files) = merge(&place, &base, &theirs, ours, ConflictResolution::List);
        assert_eq!(conflicts(&merged), []);
        assert_eq!(files["kind"], "file\n", "{ours:?}");
    }
    for edited in [[("kind/deep/c", "5\n"), base[3]], [("kind/new", "6\n"), base[3]]] {
        let (merged, _) = merge(&place, &base, &theirs, &edited, ConflictResolution::List);
        assert_eq!(conflicts(&merged), [("kind", ConflictKind::TypeChanged)], "{edited:?}");
    }
}

#[test]
fn a_file_that_became_a_directory_replaces_an_unchanged_file() {
    let place = Place::new();
    let (base, theirs) = ([("kind", "1\n")], [("kind/a", "2\n"), ("kind/deep/b", "3\n")]);
    let (merged, files) = merge(&place, &base, &theirs, &base, ConflictResolution::List);
    assert_eq!(conflicts(&merged), []);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["kind/a", "kind/deep/b"]);
}

#[test]
fn what_others_write_before_changes_are_restored_stays() {
    let place = Place::new();
    let workspace = place.open_with(|options| options.file_bytes = 4_000);
    fill(&place, &[("own", "old"), ("text", "1\n2\n3\n4\n5\n"), ("same", "old"), ("both", "old")]);
    let to = place.capture(&workspace);
    let text = "one\n2\n3\n4\n5\n";
    fill(&place, &[("own", "new"), ("text", text), ("same", "old"), ("both", "new"), ("added", "new")]);
    let from = place.capture(&workspace);
    place.write("text", "one\n2\n3\n4\nfive\n");
    for path in ["same", "both", "mine"] {
        place.write(path, "by hand");
    }
    place.write("large", vec![7; 9_000]);

    let restored = workspace.restore_changes(from, to, None, &[]).unwrap();
    let kept: Vec<_> = restored.kept.iter().map(|kept| (kept.path.as_str(), kept.reason)).collect();
    assert_eq!(kept, [("both", UncoveredReason::ChangedByOthers)]);
    let text = |path: &str| fs::read_to_string(place.path(path)).unwrap();
    assert_eq!(["own", "text"].map(text), ["old", "1\n2\n3\n4\nfive\n"]);
    assert_eq!(["same", "both", "mine"].map(text), ["by hand"; 3]);
    assert!(!place.path("added").exists());
    assert_eq!(fs::read(place.path("large")).unwrap().len(), 9_000, "it cannot be captured");
    assert!(workspace.restore_changes(from, to, None, &[]).unwrap().changed.is_empty(), "it is done");
}

#[test]
fn a_conflict_about_the_mode_of_a_directory_does_not_concern_its_files() {
    let place = Place::new();
    let workspace = place.open();
    let revision = || WorkspaceRevision { root: place.capture(&workspace), coverage: None };
    place.write("d/own", "old");
    place.mode("d", 0o755);
    let before = revision();
    place.write("d/own", "new");
    place.mode("d", 0o750);
    let after = revision();
    place.write("d/mine", "by hand");
    place.mode("d", 0o700);
    for conflicts in [ReversalConflicts::LeaveAlone, ReversalConflicts::TakeTarget] {
        let steps = vec![OwnStep { before, after }];
        let reversal = Reversal { steps, open: None, target: before, kept: Vec::new(), conflicts };
        let plan = workspace.capture_reversed(&reversal).unwrap().plan;
        let changed: Vec<_> = plan.changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(changed, ["d/own"]);
        let left: Vec<_> = plan.conflicts.iter().map(|left| (left.path.as_str(), left.kind)).collect();
        assert_eq!(left, [("d", ConflictKind::ModeChanged)]);
    }
}

#[test]
fn single_paths_are_merged_alone() {
    let place = Place::new();
    let workspace = place.open();
    fill(&place, &[("a", "1\n"), ("d/x", "1\n"), ("d/y", "1\n")]);
    let base = place.capture(&workspace);
    fill(&place, &[("a", "2\n"), ("d/x", "2\n"), ("d/y", "2\n"), ("n/m", "2\n"), ("n/o", "2\n")]);
    let theirs = place.capture(&workspace);
    fill(&place, &[("a", "1\n"), ("d/x", "1\n"), ("d/y", "1\n")]);
    let paths = ["d/x", "n/m"].map(|path| FilePath::new(path).unwrap()).to_vec();
    let merge = WorkspaceMerge { paths, ..merge_of(base, theirs, ConflictResolution::List) };
    let merged = workspace.capture_merged(&merge).unwrap();
    let changed: Vec<_> = merged.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(changed, ["d/x", "n/m"]);
}

#[test]
fn ignored_paths_are_left_out_unless_they_are_named() {
    let place = Place::new();
    let workspace = place.open();
    let base = [(".gitignore", "out/\n*.log\n!keep.log\n"), ("d/.gitignore", "x\n"), ("d/y", "1\n")];
    fill(&place, &base);
    let base = place.capture(&workspace);
    for path in ["out/built", "d/out/built", "a.log", "keep.log", "d/x", "d/y", "x"] {
        place.write(path, "2\n");
    }
    let theirs = place.capture(&workspace);
    for path in ["out/built", "d/out/built", "a.log", "keep.log", "d/x", "d/y", "x"] {
        place.write(path, "3\n");
    }
    fs::remove_file(place.path("keep.log")).unwrap();
    fs::remove_file(place.path("x")).unwrap();
    place.write("d/y", "1\n");
    let merge = merge_of(base, theirs, ConflictResolution::List);
    let merged = workspace.capture_merged(&merge).unwrap();
    let changed = |merged: &MergedCapture| -> Vec<String> {
        merged.changes.iter().map(|change| change.path.clone()).collect()
    };
    assert_eq!(
        (conflicts(&merged), changed(&merged)),
        (vec![], ["d/y", "keep.log", "x"].map(String::from).into())
    );
    let left: Vec<_> = merged.left_out.iter().map(|left| left.path.as_str()).collect();
    assert_eq!(left, ["a.log", "d/out", "d/x", "out"]);
    let paths = ["out/built", "a.log"].map(|path| FilePath::new(path).unwrap()).to_vec();
    let named = WorkspaceMerge { paths, resolution: ConflictResolution::Theirs, ..merge.clone() };
    assert_eq!(changed(&workspace.capture_merged(&named).unwrap()), ["a.log", "out/built"]);
    let all = WorkspaceMerge { ignored: IgnoredPaths::Merge, ..merge };
    assert_eq!(workspace.capture_merged(&all).unwrap().conflicts.len(), 4);
}

#[test]
fn modes_links_names_and_empty_directories_survive() {
    let place = Place::new();
    let workspace = place.open();
    place.write("script", "1\n");
    place.write("sub/.git/HEAD", "ref\n");
    place.directory("empty/below");
    let base = place.capture(&workspace);
    place.mode("script", 0o750);
    place.link("link", "script");
    place.write(b"\xff\xfe", "bytes");
    place.write("sub/.git/config", "config\n");
    fs::remove_dir(place.path("empty/below")).unwrap();
    let (theirs, picture) = (place.capture(&workspace), place.picture());
    fs::remove_file(place.path("link")).unwrap();
    fs::remove_file(place.path(b"\xff\xfe")).unwrap();
    fs::remove_file(place.path("sub/.git/config")).unwrap();
    place.directory("empty/below");
    place.mode("script", 0o644);
    assert_eq!(place.capture(&workspace), base);
    let merged = workspace.capture_merged(&merge_of(base, theirs, ConflictResolution::List)).unwrap();
    assert_eq!((merged.after, conflicts(&merged)), (theirs, vec![]));

    // A change of our own beside each of theirs.
    for own in ["own", "sub/own", "sub/.git/own", "empty/own"] {
        place.write(own, "own\n");
    }
    let merged = workspace.capture_merged(&merge_of(base, theirs, ConflictResolution::List)).unwrap();
    assert_eq!(conflicts(&merged), []);
    let mut brought = merged.before.objects.clone();
    brought.extend(merged.objects.iter().cloned());
    workspace.restore_bringing(merged.after, None, &brought).unwrap();
    assert_eq!(workspace.capture().unwrap().root, merged.after);
    for own in ["own", "sub/own", "sub/.git/own", "empty/own"] {
        fs::remove_file(place.path(own)).unwrap();
    }
    assert_eq!(place.picture(), picture);
}

/// What git makes of a merge: the text, and whether there is a conflict.
fn git_merge(place: &Place, base: &str, ours: &str, theirs: &str) -> Option<(String, bool)> {
    let file = |name: &str, text: &str| {
        let path = place.above.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let (base, ours, theirs) = (file("base", base), file("ours", ours), file("theirs", theirs));
    let output = Command::new("git").args(["merge-file", "-p"]).args([ours, base, theirs]).output().ok()?;
    Some((String::from_utf8(output.stdout).unwrap(), !output.status.success()))
}

/// A text of few different lines, so that changes meet.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0_u8..6, 0..12)
}

/// Changes of lines: the place, how many are removed, and what is inserted.
fn edits() -> impl Strategy<Value = Vec<(usize, usize, Vec<u8>)>> {
    proptest::collection::vec((0_usize..12, 0_usize..3, proptest::collection::vec(6_u8..10, 0..3)), 0..3)
}

fn edited(lines: &[u8], edits: &[(usize, usize, Vec<u8>)]) -> Vec<u8> {
    let mut lines = lines.to_vec();
    for (at, removed, inserted) in edits {
        let at = (*at).min(lines.len());
        let end = (at + removed).min(lines.len());
        lines.splice(at..end, inserted.iter().copied());
    }
    lines
}

fn text(lines: &[u8]) -> String {
    lines.iter().map(|line| format!("line {line}\n")).collect()
}

/// One side removes one of three equal lines, and the other replaces one. Which line each of them meant cannot be known.
#[test]
fn lines_that_repeat_are_a_conflict_if_they_can_be_matched_in_two_ways() {
    let place = Place::new();
    let (base, ours, theirs) = ("0\n2\n2\n2\n9\n", "0\n2\n2\n9\n", "0\n6\n2\n2\n9\n");
    let (merged, _) =
        merge(&place, &[("f", base)], &[("f", theirs)], &[("f", ours)], ConflictResolution::List);
    assert_eq!(conflicts(&merged), [("f", ConflictKind::BothChanged)]);
    let (_, files) =
        merge(&place, &[("f", base)], &[("f", theirs)], &[("f", ours)], ConflictResolution::Markers);
    assert_eq!(files["f"], "0\n<<<<<<< ours\n=======\n6\n>>>>>>> theirs\n2\n2\n9\n");
    let ends = [("2\n2\n2", "2\n2", "6\n2\n2"), ("2\n2\n2\n", "2\n2", "6\n2\n2\n")];
    for (base, ours, theirs) in ends {
        let (merged, _) =
            merge(&place, &[("f", base)], &[("f", theirs)], &[("f", ours)], ConflictResolution::List);
        assert!(!merged.conflicts.is_empty(), "{base:?}, {ours:?}, {theirs:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_merge_without_conflict_is_that_of_git(base in lines(), ours in edits(), theirs in edits()) {
        let place = Place::new();
        let (base, ours, theirs) = (text(&base), text(&edited(&base, &ours)), text(&edited(&base, &theirs)));
        let (merged, files) = merge(
            &place, &[("f", &base)], &[("f", &theirs)], &[("f", &ours)], ConflictResolution::List,
        );
        if theirs == base || theirs == ours {
            prop_assert_eq!(&files["f"], &ours);
        } else if ours == base {
            prop_assert_eq!(&files["f"], &theirs);
        }
        let Some((expected, is_conflict)) = git_merge(&place, &base, &ours, &theirs) else { return Ok(()) };
        // Lines that repeat can be matched in more than one way. What both call clean has to be the same.
        if merged.conflicts.is_empty() && !is_conflict {
            prop_assert_eq!(&files["f"], &expected);
        }
        if !merged.conflicts.is_empty() {
            prop_assert_eq!(&files["f"], &ours, "a conflict changes nothing");
        }
    }
}
