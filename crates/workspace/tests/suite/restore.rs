//! A restore undoes every change of a tool or a shell exactly.

use std::fs;
use std::os::unix::fs::symlink;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::Object;
use backstitch_core::ports::{ChangeKind, Workspace as _, WorkspaceError};

use crate::support::{Place, set_mode};

fn furnish(place: &Place) {
    place.write("a.txt", "hello\n");
    place.write("src/lib.rs", "pub fn x() {}\n");
    place.write("src/deep/er/file", "deep");
    place.write("src/run.sh", "#!/bin/sh\n");
    place.mode("src/run.sh", 0o755);
    place.write("private", "key");
    place.mode("private", 0o600);
    place.directory("empty/inside");
    place.link("link", "src/lib.rs");
    place.write(b"not-\xff-text/n\xfeme".as_slice(), "bytes");
    place.write(".gitignore", "target\n");
    place.write("target/ignored", "and covered");
    place.shell("mkdir sub; cd sub; git init -q; echo x > f; git add f; git -c user.name=t -c user.email=t@t commit -qm one");
    place.fifo("fifo");
}

/// Makes a change, restores everything, and compares.
fn undone(name: &str, act: impl FnOnce(&Place)) {
    let place = Place::new();
    furnish(&place);
    let workspace = place.open();
    let root = place.capture(&workspace);
    let before = place.picture();
    act(&place);
    assert_ne!(place.picture(), before, "{name} did something");
    workspace.restore(root).unwrap();
    assert_eq!(place.picture(), before, "{name}");
    assert_eq!(place.capture(&workspace), root, "{name}");
    let again = workspace.restore(root).unwrap();
    assert_eq!(again.changed, [], "{name}");

    // The same by a process without knowledge of the present files.
    let fresh = Place::new();
    furnish(&fresh);
    drop(workspace);
    let other = place.open_with(|options| options.cache = Some(place.above.join("no cache")));
    other.restore(root).unwrap();
    assert_eq!(place.picture(), before, "{name}, without a cache");
}

#[test]
fn each_kind_of_change_is_undone() {
    undone("a shell that wrote here and there", |place| {
        place.shell("echo more >> a.txt; echo new > src/new; mkdir -p x/y; echo z > x/y/z; rm src/lib.rs; cp -r src copy");
    });
    undone("a deleted directory", |place| fs::remove_dir_all(place.path("src")).unwrap());
    undone("everything deleted", |place| place.shell("find . -mindepth 1 ! -name fifo -delete"));
    undone("changed modes", |place| {
        place.shell("chmod 777 a.txt; chmod 644 src/run.sh; chmod 700 src empty .; chmod 644 private; chmod u+s src/lib.rs");
    });
    undone("a file replaced by a link", |place| {
        fs::remove_file(place.path("a.txt")).unwrap();
        symlink("/etc/passwd", place.path("a.txt")).unwrap();
    });
    undone("a link that leads elsewhere", |place| place.shell("ln -sfn /tmp link"));
    undone("a link replaced by a directory", |place| place.shell("rm link; mkdir link; echo x > link/y"));
    undone("a directory replaced by a link to what it was", |place| {
        place.shell("mv src moved; ln -s moved src")
    });
    undone("a directory replaced by a file", |place| place.shell("rm -r src; echo file > src"));
    undone("a file replaced by a directory", |place| place.shell("rm a.txt; mkdir a.txt; echo x > a.txt/y"));
    undone("a file replaced by a pipe", |place| place.shell("rm a.txt; mkfifo a.txt"));
    undone("a thousand new files", |place| {
        (0..1_000).for_each(|number| place.write(format!("many/f{number}"), format!("{number}")));
    });
    undone("a changed nested repository", |place| {
        place.shell("cd sub; echo y > f; git -c user.name=t -c user.email=t@t commit -qam two; git gc -q --prune=now; rm -r .git/hooks");
    });
    undone("a nested repository deleted", |place| place.shell("rm -rf sub/.git"));
    undone("a new nested repository", |place| place.shell("mkdir new; cd new; git init -q"));
    undone("touched ignored files", |place| {
        place.shell("echo y >> target/ignored; echo z > target/more; mkdir target/sub")
    });
    undone("names that are not text", |place| {
        fs::rename(place.path(b"not-\xff-text".as_slice()), place.path(b"other-\xfe".as_slice())).unwrap();
    });
    undone("empty directories", |place| {
        place.shell("rmdir empty/inside; mkdir -p new/empty/one; echo x > empty/file")
    });
    undone("only times", |place| {
        place.shell("echo x > src/t; rm src/t; touch a.txt src/lib.rs; chmod 600 a.txt");
    });
    undone("files and directories that cannot be written to", |place| {
        place.shell("mkdir -p locked/in; echo x > locked/in/f; chmod 400 locked/in/f; chmod 500 locked/in locked; chmod 500 src; chmod 0 private");
    });
}

/// Few files, many and very many are synced in different ways.
#[test]
fn many_files_come_back() {
    for count in [3, 300, 1_500] {
        let place = Place::new();
        (0..count).for_each(|number| place.write(format!("d{}/f{number}", number % 50), format!("{number}")));
        let workspace = place.open();
        let root = place.capture(&workspace);
        let before = place.picture();
        place.shell("rm -r d0; for f in d*/*; do echo changed > $f; done; touch new");
        workspace.restore(root).unwrap();
        assert_eq!(place.picture(), before, "{count}");
        assert_eq!(place.capture(&workspace), root, "{count}");
    }
}

#[test]
fn deep_trees_come_back() {
    let place = Place::new();
    let deep = "d/".repeat(110);
    place.write(format!("{deep}file"), "deep");
    let workspace = place.open();
    let root = place.capture(&workspace);
    let before = place.picture();
    fs::remove_dir_all(place.path("d")).unwrap();
    workspace.restore(root).unwrap();
    assert_eq!(place.picture(), before);
}

#[test]
fn only_what_differs_is_written() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::new();
    furnish(&place);
    let workspace = place.open();
    let root = place.capture(&workspace);
    let stamp = |path: &str| {
        let found = fs::symlink_metadata(place.path(path)).unwrap();
        (found.ino(), found.ctime(), found.ctime_nsec())
    };
    let unchanged = ["src/lib.rs", "link", "private", "sub/.git/HEAD", "src/deep"].map(stamp);
    place.write("a.txt", "changed");
    place.mode("src/run.sh", 0o700);
    fs::remove_dir(place.path("empty/inside")).unwrap();
    let restored = workspace.restore(root).unwrap();
    let changed: Vec<_> =
        restored.changed.iter().map(|change| (change.path.as_str(), change.change)).collect();
    let wanted = [
        ("a.txt", ChangeKind::Modified),
        ("empty/inside", ChangeKind::Added),
        ("src/run.sh", ChangeKind::Mode),
    ];
    assert_eq!(changed, wanted);
    assert_eq!(["src/lib.rs", "link", "private", "sub/.git/HEAD", "src/deep"].map(stamp), unchanged);

    // Also by a process without a cache: content is compared, not rewritten.
    drop(workspace);
    let other = place.open_with(|options| options.cache = Some(place.above.join("no cache")));
    assert_eq!(other.restore(root).unwrap().changed, []);
    assert_eq!(["src/lib.rs", "link", "private", "sub/.git/HEAD", "src/deep"].map(stamp), unchanged);
}

#[test]
fn what_a_person_edited_before_a_call_is_its_base() {
    let place = Place::new();
    place.write("file", "one");
    let workspace = place.open();
    place.capture(&workspace);
    place.write("file", "edited by hand");
    place.write("new by hand", "x");
    let base = place.capture(&workspace);
    place.write("file", "by the tool");
    fs::remove_file(place.path("new by hand")).unwrap();
    workspace.restore(base).unwrap();
    assert_eq!(fs::read(place.path("file")).unwrap(), b"edited by hand");
    assert_eq!(fs::read(place.path("new by hand")).unwrap(), b"x");
}

#[test]
fn a_root_that_is_not_stored_changes_nothing() {
    let place = Place::new();
    place.write("a", "one");
    place.write("dir/b", "two");
    let workspace = place.open();
    let root = place.capture(&workspace);
    let blob = Object::blob(*b"two").id();
    place.write("a", "changed");
    fs::remove_dir_all(place.path("dir")).unwrap();
    let before = place.picture();
    let removed = place.objects.0.lock().unwrap().remove(&blob).unwrap();
    match workspace.restore(root) {
        Err(WorkspaceError::MissingObject { object }) => assert_eq!(object, blob),
        other => panic!("{other:?}"),
    }
    assert_eq!(place.picture(), before);
    let missing = WorkspaceRoot { tree: blob, manifest: root.manifest };
    assert!(matches!(workspace.restore(missing), Err(WorkspaceError::MissingObject { .. })));
    place.objects.0.lock().unwrap().insert(blob, removed);
    // A blob in place of a tree is damage.
    assert!(matches!(workspace.restore(missing), Err(WorkspaceError::DamagedObject { .. })));
    assert_eq!(place.picture(), before);
    workspace.restore(root).unwrap();
}

#[test]
fn a_hostile_tree_is_refused() {
    use backstitch_core::object::ObjectKind;
    let place = Place::new();
    place.write("a", "one");
    let workspace = place.open();
    let root = place.capture(&workspace);
    let before = place.picture();
    let blob = Object::blob(*b"one");
    for name in ["..", ".", "../evil", "/etc/evil", "a/b", ""] {
        let entry = [b"100644 ", name.as_bytes(), b"\0", blob.id().as_bytes()].concat();
        let tree = Object::new(ObjectKind::Tree, entry);
        let hostile = WorkspaceRoot { tree: tree.id(), manifest: root.manifest };
        place.objects.0.lock().unwrap().insert(tree.id(), tree);
        assert!(matches!(workspace.restore(hostile), Err(WorkspaceError::DamagedObject { .. })), "{name:?}");
    }
    for path in ["../evil", "/evil", "a/../../evil"] {
        let text = format!(r#"{{"v":1,"empty_directories":["{path}"]}}"#);
        let manifest = Object::blob(text.into_bytes());
        let hostile = WorkspaceRoot { tree: root.tree, manifest: manifest.id() };
        place.objects.0.lock().unwrap().insert(manifest.id(), manifest);
        assert!(matches!(workspace.restore(hostile), Err(WorkspaceError::DamagedObject { .. })), "{path:?}");
    }
    assert_eq!(place.picture(), before);
}

#[test]
fn a_link_in_the_place_of_a_directory_leads_nowhere() {
    let place = Place::new();
    place.write("dir/file", "inside");
    let workspace = place.open();
    let root = place.capture(&workspace);
    let outside = place.above.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    set_mode(&outside, 0o700);
    fs::remove_dir_all(place.path("dir")).unwrap();
    symlink(&outside, place.path("dir")).unwrap();
    place.capture(&workspace);
    workspace.restore(root).unwrap();
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"outside");
    assert_eq!(fs::read(place.path("dir/file")).unwrap(), b"inside");
    assert!(!fs::symlink_metadata(place.path("dir")).unwrap().is_symlink());
}

#[test]
fn a_read_only_workspace_is_not_restored() {
    let place = Place::new();
    place.write("a", "one");
    let workspace = place.open_with(|options| options.access = backstitch_core::ports::Access::ReadOnly);
    let root = place.capture(&workspace);
    assert_eq!(crate::support::blocked(workspace.restore(root)), ".");
}
