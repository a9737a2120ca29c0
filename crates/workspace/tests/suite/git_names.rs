//! Names that git refuses are stored beside the tree, and are restored.

use std::path::Path;

use backstitch_core::ports::Workspace as _;
use backstitch_workspace::export::{Author, ExportCommit, git};

use crate::support::{Place, run_git};

/// Names that some system treats like `.git` or a list of submodules, and some that none does.
fn names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        ".git",
        ".GIT",
        ".Git",
        "git~1",
        "GIT~1",
        "git~2",
        ".git ",
        ".git.",
        ".git...",
        ".git. .",
        ".git:",
        ".git:x",
        ".git::$INDEX_ALLOCATION",
        "git~1:x",
        "git~1 .",
        ".git\\x",
        "a\\.git",
        "a\\.git\\b",
        "x\\git~1",
        "a:b\\.git",
        ".g\u{200c}it",
        "\u{feff}.git",
        ".git\u{200d}",
        ".git\u{200d} ",
        ".gitx",
        "git",
        ".gitignore",
        ".gitattributes",
        ".gitmodules",
        ".GITMODULES",
        ".gitmodules ",
        ".gitmodules:x",
        "gitmod~1",
        "GITMOD~4",
        "gitmod~5",
        "gi7eba~1",
        "gi7eb~10",
        "gi7eba~0",
        ".gitm\u{200c}odules",
        "x\\.gitmodules",
        "gi7d29~1",
        ".mailmap",
        "con",
        "a\\b",
        "~1000000",
    ]
    .iter()
    .map(|name| name.as_bytes().to_vec())
    .collect();
    names.push(b".git\xff".to_vec());
    names.push(b".git\xffx".to_vec());
    names.push(b"\xff.git".to_vec());
    names.push(b".gi\xfft".to_vec());
    names
}

fn fsck(objects: &Place, root: backstitch_core::journal::WorkspaceRoot, to: &Path) -> Vec<String> {
    let commit = ExportCommit {
        root,
        message: "names".to_owned(),
        author: Author::default(),
        time: backstitch_core::time::Timestamp::UNIX_EPOCH,
        parents: Vec::new(),
    };
    let exported = git(&*objects.objects, &[commit], to, "main").unwrap();
    run_git(to, &["fsck", "--strict", "--no-dangling"]);
    exported.left_out.into_iter().map(|left| left.path).collect()
}

#[test]
fn whatever_the_name_and_the_kind_git_accepts_the_rest_and_all_comes_back() {
    for kind in ["file", "link", "directory"] {
        let place = Place::new();
        for name in names() {
            // The one at the top is the workspace's own repository.
            let path = [b"in/", &*name].concat();
            match kind {
                "file" => place.write(&path, "x"),
                "link" => place.link(&path, "target"),
                _ => place.write([&*path, b"/inside/file"].concat(), "x"),
            }
        }
        let workspace = place.open();
        let root = place.capture(&workspace);
        let before = place.picture();
        let left_out = fsck(&place, root, &place.above.join("export"));
        assert!(left_out.len() > 15, "{kind}: {left_out:?}");
        std::fs::remove_dir_all(place.path("in")).unwrap();
        workspace.restore(root).unwrap();
        assert_eq!(place.picture(), before, "{kind}");
        assert_eq!(place.capture(&workspace), root, "{kind}");
    }
}

#[test]
fn a_repository_inside_of_a_repository_inside() {
    let place = Place::new();
    place.write("a/.git/modules/b/.git/HEAD", "x");
    place.write("a/.git/modules/b/.git/hooks/run", "x");
    place.mode("a/.git/modules/b/.git/hooks/run", 0o755);
    place.directory("a/.git/modules/b/.git/refs/heads");
    place.directory("b/.git");
    let workspace = place.open();
    let root = place.capture(&workspace);
    let before = place.picture();
    place.shell("rm -r a b");
    workspace.restore(root).unwrap();
    assert_eq!(place.picture(), before);
    assert_eq!(workspace.diff(root, place.capture(&workspace)).unwrap(), []);
}
