//! Uncovered paths are reported and not touched.

use std::fs;
use std::os::unix::net::UnixListener;

use backstitch_core::object::Object;
use backstitch_core::ports::{UncoveredReason, Workspace as _};
use backstitch_workspace::{Coverage, HostWorkspace, IgnoredBudget};

use crate::support::{Place, uncovered};

fn reasons(place: &Place, workspace: &HostWorkspace) -> Vec<(String, UncoveredReason)> {
    let captured = workspace.capture().unwrap();
    let found = uncovered(&captured);
    place.store(captured);
    found
}

#[test]
fn whatever_is_left_out_is_listed() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    place.write("kept", "x");
    place.write("large", vec![0; 2_000]);
    place.write("logs/a.log", "x");
    place.write("secret/key", "x");
    place.fifo("fifo");
    let _socket = UnixListener::bind(place.path("socket")).unwrap();
    place.directory(".backstitch");
    let workspace = place.open_with(|options| {
        options.store_directory = place.path(".backstitch");
        options.excludes = vec!["*.log".to_owned(), "/secret/".to_owned()];
        options.file_bytes = 1_000;
    });
    let mut found = reasons(&place, &workspace);
    found.sort();
    let wanted = [
        (".backstitch", UncoveredReason::OwnFiles),
        (".git", UncoveredReason::OwnRepository),
        ("fifo", UncoveredReason::Special),
        ("large", UncoveredReason::TooLarge),
        ("logs/a.log", UncoveredReason::Excluded),
        ("secret", UncoveredReason::Excluded),
        ("socket", UncoveredReason::Special),
    ];
    assert_eq!(found, wanted.map(|(path, reason)| (path.to_owned(), reason)));
    let large =
        workspace.capture().unwrap().uncovered.into_iter().find(|found| found.path == "large").unwrap();
    assert_eq!(large.bytes, Some(2_000));
}

#[test]
fn a_store_deep_inside_is_left_out_wherever_it_lies() {
    let place = Place::new();
    place.write("a/b/store/database", "x");
    place.write("a/other", "x");
    let workspace = place.open_with(|options| options.store_directory = place.path("a/b/store"));
    let root = place.capture(&workspace);
    fs::write(place.path("a/b/store/database"), "changed").unwrap();
    assert_eq!(place.capture(&workspace), root);
    // The directory above it should be deleted, and stays because of it.
    fs::remove_file(place.path("a/other")).unwrap();
    let without = place.capture(&workspace);
    place.write("a/b/more", "x");
    place.write("a/b/c/more", "x");
    let restored = workspace.restore(without).unwrap();
    assert_eq!(restored.kept, []);
    assert_eq!(place.capture(&workspace), without);
    assert_eq!(fs::read(place.path("a/b/store/database")).unwrap(), b"changed");
}

#[test]
fn a_directory_that_holds_only_what_is_not_covered_is_kept_as_empty() {
    let place = Place::new();
    place.directory("run");
    place.fifo("run/fifo");
    let workspace = place.open();
    let root = place.capture(&workspace);
    fs::remove_file(place.path("run/fifo")).unwrap();
    fs::remove_dir(place.path("run")).unwrap();
    workspace.restore(root).unwrap();
    assert!(place.path("run").is_dir());
}

#[test]
fn an_ignored_directory_is_covered_until_it_exceeds_its_budget() {
    let place = Place::new();
    place.write(".gitignore", "target/\n*.o\n");
    place.write("x.o", "ignored, and covered");
    place.write("target/a", "1");
    place.write("crate/target/b", "2");
    let workspace = place.open_with(|options| options.ignored = IgnoredBudget { bytes: 100, entries: 5 });
    assert_eq!(reasons(&place, &workspace), []);
    place.write("target/big", vec![0; 200]);
    assert_eq!(reasons(&place, &workspace), [("target".to_owned(), UncoveredReason::IgnoredBudget)]);
    for number in 0..6 {
        place.write(format!("crate/target/f{number}"), "");
    }
    assert_eq!(reasons(&place, &workspace).len(), 2);
    // It is not walked again: it stays omitted as long as this process lives, even if it has become small.
    fs::remove_file(place.path("target/big")).unwrap();
    assert_eq!(reasons(&place, &workspace).len(), 2);
    drop(workspace);
    let workspace = place.open_with(|options| options.ignored = IgnoredBudget { bytes: 100, entries: 5 });
    assert_eq!(reasons(&place, &workspace), [("crate/target".to_owned(), UncoveredReason::IgnoredBudget)]);
    fs::remove_dir_all(place.path("crate/target")).unwrap();
    assert_eq!(reasons(&place, &workspace), []);
}

#[test]
fn content_of_an_omitted_directory_is_captured_only_if_it_is_elsewhere_too() {
    let place = Place::new();
    place.write(".gitignore", "out\n");
    place.write("a", "before");
    (0..9).for_each(|number| place.write(format!("out/{number}"), format!("content {number}")));
    place.write("z/copy", "content 3");
    let workspace = place.open_with(|options| options.ignored = IgnoredBudget { bytes: 1_000, entries: 5 });
    let captured = workspace.capture().unwrap();
    assert_eq!(uncovered(&captured), [("out".to_owned(), UncoveredReason::IgnoredBudget)]);
    let has = |text: &str| captured.objects.contains(&Object::blob(text.as_bytes().to_vec()));
    assert!(has("before") && has("content 3") && !has("content 1"));
}

#[test]
fn the_innermost_ignore_file_decides_and_an_unignored_directory_has_no_budget() {
    let place = Place::new();
    place.write(".gitignore", "out\n");
    place.write("keep/.gitignore", "!out\n");
    for path in ["out", "keep/out"] {
        place.write(format!("{path}/big"), vec![0; 200]);
    }
    let workspace = place.open_with(|options| options.ignored = IgnoredBudget { bytes: 100, entries: 5 });
    assert_eq!(reasons(&place, &workspace), [("out".to_owned(), UncoveredReason::IgnoredBudget)]);
}

#[test]
fn coverage_is_fixed_from_the_start_of_a_call() {
    let place = Place::new();
    place.write(".gitignore", "cache/\n");
    place.write("cache/old", "kept");
    place.write("grows", "small");
    place.write("large", vec![7; 3_000]);
    place.fifo("fifo");
    let options = |options: &mut backstitch_workspace::OpenOptions| {
        options.file_bytes = 1_000;
        options.ignored = IgnoredBudget { bytes: 500, entries: 50 };
    };
    let workspace = place.open_with(options);
    let before = place.capture(&workspace);
    let coverage = workspace.coverage();
    let picture = place.picture();

    place.write("grows", vec![1; 5_000]);
    place.write("new-large", vec![2; 5_000]);
    place.write("cache/huge", vec![3; 900]);
    place.fifo("new-fifo");
    // A capture in between does not affect a caller that kept the coverage.
    let during = workspace.capture_with(&coverage).unwrap();
    assert!(uncovered(&during).contains(&("cache".to_owned(), UncoveredReason::IgnoredBudget)));
    assert_eq!(workspace.coverage(), coverage);
    let restored = workspace.restore_with(before, &coverage, None).unwrap();
    assert_eq!(restored.kept, []);
    assert_eq!(place.picture(), picture);
    assert_eq!(place.capture(&workspace), before);
}

#[test]
fn the_process_that_undoes_a_call_knows_its_coverage() {
    let place = Place::new();
    place.write("large", vec![7; 3_000]);
    place.write("grows", "small");
    let options = |options: &mut backstitch_workspace::OpenOptions| options.file_bytes = 1_000;
    let workspace = place.open_with(options);
    let before = place.capture(&workspace);
    let picture = place.picture();
    place.write("grows", vec![1; 5_000]);
    place.write("appeared", vec![1; 5_000]);
    drop(workspace);
    let workspace = place.open_with(options);
    workspace.restore(before).unwrap();
    assert_eq!(place.picture(), picture);
}

#[test]
fn what_is_not_covered_now_is_left_and_said() {
    let place = Place::new();
    place.write("file", "small");
    place.write("dir/inner.txt", "x");
    let workspace = place.open_with(|options| options.file_bytes = 1_000);
    let early = place.capture(&workspace);
    place.write("file", vec![1; 5_000]);
    place.write("dir/uncovered", vec![2; 5_000]);
    let late = place.capture(&workspace);
    // A restore across a change of coverage: currently uncovered paths stay, and are reported.
    let restored = workspace.restore(early).unwrap();
    assert_eq!(restored.kept.len(), 1);
    assert_eq!((restored.kept[0].path.as_str(), restored.kept[0].bytes), ("file", Some(5_000)));
    assert_eq!(fs::read(place.path("file")).unwrap().len(), 5_000);
    assert_eq!(fs::read(place.path("dir/uncovered")).unwrap().len(), 5_000);
    assert_eq!(place.capture(&workspace), late);

    // A directory that should be deleted stays because of its content.
    fs::remove_file(place.path("file")).unwrap();
    place.write("gone/covered", "x");
    place.write("gone/large", vec![2; 5_000]);
    place.capture(&workspace);
    let restored = workspace.restore(early).unwrap();
    assert_eq!(restored.kept.iter().map(|kept| kept.path.as_str()).collect::<Vec<_>>(), ["gone/large"]);
    assert!(!place.path("gone/covered").exists());
    assert!(place.path("gone/large").exists());
}

#[test]
fn a_directory_that_must_become_a_file_blocks_if_something_in_it_must_stay() {
    let place = Place::new();
    place.write("thing", "a file");
    let workspace = place.open_with(|options| options.excludes = vec!["*.keep".to_owned()]);
    let root = place.capture(&workspace);
    fs::remove_file(place.path("thing")).unwrap();
    place.write("thing/deep/x.keep", "mine");
    place.write("other", "would be deleted");
    let before = place.picture();
    assert_eq!(crate::support::blocked(workspace.restore(root)), "thing");
    // This is detected before anything is changed.
    assert_eq!(place.picture(), before);
}

#[test]
fn excluded_files_are_never_touched() {
    let place = Place::new();
    place.write("a.log", "one");
    place.write("kept", "x");
    let workspace = place.open_with(|options| options.excludes = vec!["*.log".to_owned()]);
    let root = place.capture(&workspace);
    place.write("a.log", "two");
    place.write("b.log", "new");
    place.write("kept", "y");
    workspace.restore(root).unwrap();
    assert_eq!(fs::read(place.path("a.log")).unwrap(), b"two");
    assert_eq!(fs::read(place.path("b.log")).unwrap(), b"new");
    assert_eq!(fs::read(place.path("kept")).unwrap(), b"x");
    assert!(workspace.coverage().is_empty());
    assert_eq!(workspace.coverage(), Coverage::default());
}

#[test]
fn what_is_too_deep_is_said_and_can_be_deleted() {
    let place = Place::new();
    place.write("a", "x");
    let workspace = place.open();
    let root = place.capture(&workspace);
    place.shell("for i in $(seq 700); do mkdir d; cd d; done; echo x > file");
    let found = reasons(&place, &workspace);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].1, UncoveredReason::TooDeep);
    // It existed at the start of the call, so it is not covered and stays.
    let restored = workspace.restore(root).unwrap();
    assert_eq!(restored.kept.len(), 1);
    place.shell("rm -r d");
    let root = place.capture(&workspace);
    place.shell("for i in $(seq 700); do mkdir d; cd d; done; echo x > file");
    workspace.restore(root).unwrap();
    assert!(!place.path("d").exists());
    assert_eq!(fs::read_dir(&place.root).unwrap().count(), 1);
}

#[test]
fn a_pattern_that_is_none_is_refused() {
    let place = Place::new();
    let mut options = place.options();
    options.excludes = vec!["a{b".to_owned()];
    assert!(HostWorkspace::open(options).is_err());
}
