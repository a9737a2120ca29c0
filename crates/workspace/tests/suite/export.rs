//! Export of roots as a git repository.

use std::fs;

use backstitch_core::time::Timestamp;
use backstitch_workspace::export::{Author, ExportCommit, ExportError, LeftOutReason, git};

use crate::support::{Place, run_git};

fn commit(
    root: backstitch_core::journal::WorkspaceRoot,
    message: &str,
    seconds: i64,
    parents: &[usize],
) -> ExportCommit {
    ExportCommit {
        root,
        message: message.to_owned(),
        author: Author { name: "A <b>\n".to_owned(), email: String::new() },
        time: Timestamp::from_unix_micros(seconds * 1_000_000).unwrap(),
        parents: parents.to_vec(),
    }
}

#[test]
fn a_history_is_read_by_git_and_checked_out_as_it_was() {
    let place = Place::new();
    let workspace = place.open();
    let empty = place.capture(&workspace);
    place.write("a.txt", "one\n");
    place.write("dir/run.sh", "#!/bin/sh\n");
    place.mode("dir/run.sh", 0o755);
    place.link("link", "a.txt");
    let first = place.capture(&workspace);
    place.write("a.txt", "two\n");
    place.write("sub/.git/HEAD", "ref: x");
    place.write("sub/file", "x");
    place.directory("nothing/here");
    place.write("odd", "x");
    place.mode("odd", 0o600);
    let second = place.capture(&workspace);
    place.write("a.txt", "side\n");
    let third = place.capture(&workspace);
    let commits = [
        commit(empty, "start", 0, &[]),
        commit(first, "edit: one\n\nbody\0", 1_700_000_000, &[0]),
        commit(second, "shell: two", 1_700_000_100, &[1]),
        commit(third, "side", -5, &[1]),
        commit(third, "joined", 1_700_000_200, &[2, 3]),
    ];
    let path = place.above.join("export.git");
    let exported = git(&*place.objects, &commits, &path, "session/main").unwrap();
    assert_eq!(exported.commits.len(), 5);
    let left: Vec<_> =
        exported.left_out.iter().map(|left| (left.path.as_str(), left.reason, left.commit)).collect();
    let wanted = [
        ("nothing/here", LeftOutReason::EmptyDirectory, 2),
        ("odd", LeftOutReason::Mode, 2),
        ("sub/.git", LeftOutReason::Name, 2),
    ];
    assert_eq!(left, wanted);

    assert_eq!(run_git(&path, &["fsck", "--strict", "--full"]), "");
    assert_eq!(
        run_git(&path, &["log", "--format=%s", "--first-parent"]),
        "joined\nshell: two\nedit: one\nstart"
    );
    assert_eq!(run_git(&path, &["rev-parse", "HEAD"]), exported.commits[4].to_string());
    assert_eq!(run_git(&path, &["rev-parse", "--is-bare-repository"]), "true");
    assert_eq!(run_git(&path, &["rev-parse", "HEAD~2^{tree}"]), first.tree.to_string());
    assert!(!run_git(&path, &["verify-pack", "-s", &pack(&path)]).is_empty());
    let clone = place.above.join("clone");
    run_git(&place.above, &["clone", "-q", path.to_str().unwrap(), clone.to_str().unwrap()]);
    assert_eq!(fs::read(clone.join("a.txt")).unwrap(), b"side\n");
    assert_eq!(fs::read_link(clone.join("link")).unwrap().to_str(), Some("a.txt"));
    let show = run_git(&path, &["log", "-1", "--format=%an|%ae|%at|%B", "HEAD~2"]);
    assert_eq!(show, "A b|unknown|1700000000|edit: one\n\nbody");
}

fn pack(path: &std::path::Path) -> String {
    let mut packs = fs::read_dir(path.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    packs.find(|path| path.extension().unwrap() == "idx").unwrap().display().to_string()
}

#[test]
fn content_that_git_refuses_is_left_out() {
    let place = Place::new();
    place.write("good/.gitmodules", "[submodule \"a\"]\n\tpath = a\n\turl = https://example.org/a\n");
    place.write("bad/.gitmodules", "[submodule \"a\"]\n\tpath = a\n\turl = --upload-pack=evil\n");
    place.write("only/here/.gitattributes", "x".repeat(3_000));
    place.write("fine/.gitattributes", "*.rs text\n");
    let root = place.capture(&place.open());
    let path = place.above.join("export.git");
    let exported = git(&*place.objects, &[commit(root, "x", 1, &[])], &path, "main").unwrap();
    let left: Vec<_> = exported.left_out.iter().map(|left| (left.path.as_str(), left.reason)).collect();
    let content = LeftOutReason::Content;
    assert_eq!(left, [("bad/.gitmodules", content), ("only/here/.gitattributes", content)]);
    run_git(&path, &["fsck", "--strict"]);
    assert_eq!(
        run_git(&path, &["ls-tree", "-r", "--name-only", "HEAD"]),
        "fine/.gitattributes\ngood/.gitmodules"
    );
}

#[test]
fn an_export_is_whole_or_not_there() {
    let place = Place::new();
    place.write("a", "one");
    place.write("b", "two");
    let root = place.capture(&place.open());
    let path = place.above.join("export.git");
    let none = git(&*place.objects, &[], &path, "main").unwrap();
    assert_eq!((none.commits.len(), none.objects), (0, 0));
    run_git(&path, &["fsck", "--strict"]);
    let again = git(&*place.objects, &[], &path, "main");
    assert!(matches!(again, Err(ExportError::Exists { .. })));

    let other = place.above.join("other.git");
    let forward = git(&*place.objects, &[commit(root, "x", 1, &[0])], &other, "main");
    assert!(matches!(forward, Err(ExportError::Parent { commit: 0, parent: 0 })));
    for branch in ["", "-x", "a..b", "../x", "a//b", ".a", "x.lock", "a b"] {
        assert!(
            matches!(git(&*place.objects, &[], &other, branch), Err(ExportError::Branch { .. })),
            "{branch}"
        );
    }
    place.objects.0.lock().unwrap().remove(&backstitch_core::object::Object::blob(*b"two").id());
    assert!(git(&*place.objects, &[commit(root, "x", 1, &[])], &other, "main").is_err());
    let names: Vec<_> = fs::read_dir(&place.above).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("other")), "{names:?}");
}
